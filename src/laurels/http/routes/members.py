"""Members of a project, over all of its boards."""

from typing import Annotated

import msgspec
from fastapi import APIRouter, Depends, Path, Request
from pydantic import BaseModel

from laurels.http.authentication import Call, admit
from laurels.http.openapi import own_name, problem_answers
from laurels.http.parameters import NoParameters, query

router = APIRouter(tags=["members"], generate_unique_id_function=own_name)


class Erased(BaseModel):
    """Where the member was: boards, live windows, and rows of the archive."""

    boards: int
    windows: int
    rows: int


async def _keeper(
    request: Request,
    project: Annotated[str, Path(description="A tenant.", examples=["acme"])],  # noqa: ARG001  # for the document
) -> Call:
    call = await admit(request, "admin")
    query(request, NoParameters)
    return call


@router.delete(
    "/v1/projects/{project:segment}/members/{member:segment}",
    summary="Erase a member",
    responses={
        200: {"content": {"application/json": {"example": {"boards": 2, "windows": 5, "rows": 120}}}},
        **problem_answers(401, 403, 404, 422, 429, 503),
    },
)
async def erase_member(
    call: Annotated[Call, Depends(_keeper)],
    member: Annotated[str, Path(description="Who is ranked.", examples=["ada"])],
) -> Erased:
    """Out of live windows, journal and snapshots of all boards of the project. Windows that ended keep their
    ranks, under a name that leads nowhere. Erasing again changes nothing.

    Needs the scope `admin`.
    """
    erased = await call.laurels.erase(call.project, member)
    return Erased(**msgspec.structs.asdict(erased))

"""A board before it is defined: what its definition would make of this moment."""

from datetime import datetime
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Depends
from pydantic import BaseModel

from laurels.boards.definition import BoardDefinition, parse_definition
from laurels.errors import Drop
from laurels.http import body
from laurels.http.authentication import Call
from laurels.http.openapi import own_name, problem_answers
from laurels.http.routes.boards import check_reach, definition_taken, for_board

router = APIRouter(tags=["boards"], generate_unique_id_function=own_name)

_anything = msgspec.json.Decoder()


class PreviewedKey(BaseModel):
    """What a window is called in Valkey; of a group, `…` stands for the values."""

    group: str
    key: str


class PreviewedWindow(BaseModel):
    """The slot that is current now, and the one that follows."""

    period: str
    slot: str
    starts_at: datetime | None
    ends_at: datetime | None
    next_slot: str | None
    keys: list[PreviewedKey]


class Preview(BaseModel):
    """A definition in full, and what it would change.

    `changed`: fields that differ from the definition in force. `conflict`: why the entries that the board
    holds forbid it, and what to do instead; null when it may be defined so. `drops`: what each window would
    lose, which `PUT` does once these windows are named in `allow_drop`.
    """

    definition: BoardDefinition
    is_new: bool
    changed: list[str]
    conflict: str | None
    drops: list[Drop]
    windows: list[PreviewedWindow]


_DEFINITION = {"windows": [{"period": "daily", "keep": 30}], "groups": [["country"]]}
_PREVIEW: dict[str, Any] = {
    "definition": parse_definition(_DEFINITION).model_dump(mode="json"),
    "is_new": False,
    "changed": ["windows"],
    "conflict": None,
    "drops": [{"window": "weekly", "entries": 150_002, "snapshots": 12}],
    "windows": [
        {
            "period": "daily",
            "slot": "2025-10-24",
            "starts_at": "2025-10-24T00:00:00Z",
            "ends_at": "2025-10-25T00:00:00Z",
            "next_slot": "2025-10-25",
            "keys": [
                {"group": "", "key": "lb:{acme/arcade}:daily:2025-10-24"},
                {"group": "country=…", "key": "lb:{acme/arcade}:daily:2025-10-24:country=…"},
            ],
        }
    ],
}


@router.post(
    "/v1/projects/{project:segment}/boards/{board:segment}/preview",
    summary="Preview a board",
    responses={
        200: {"content": {"application/json": {"example": _PREVIEW}}},
        **problem_answers(400, 401, 403, 408, 413, 415, 422, 429, 503),
    },
    openapi_extra=definition_taken(_DEFINITION),
)
async def preview_board(call: Annotated[Call, Depends(for_board("admin"))]) -> Preview:
    """What defining it so would do; nothing is changed. A definition that is wrong is refused as there.

    Needs the scope `admin`.
    """
    definition = parse_definition(await body.read_json(call.request, _anything))
    await check_reach(call, definition)
    found = await call.laurels.preview(call.board, definition)
    return Preview.model_validate(found, from_attributes=True)

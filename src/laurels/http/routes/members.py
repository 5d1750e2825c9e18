"""Erases members from all boards of a project."""

from laurels.history.records import Erased
from laurels.http.authentication import Call
from laurels.http.operation import PROJECT, Routes

routes = Routes("members")


@routes.delete(
    f"{PROJECT}/members/{{member:segment}}",
    scope="admin",
    example={"boards": 2, "windows": 5, "rows": 120},
    problems=(404,),
)
async def erase_member(call: Call, member: str) -> Erased:
    """Erase a member.

    From live windows, journal and snapshots of all boards of the project. Ended windows keep their ranks: the
    entries stay there under a random name. Erasing again changes nothing.
    """
    return await call.laurels.erase(call.project, member)

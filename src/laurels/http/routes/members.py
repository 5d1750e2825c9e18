"""Members of a project, over all of its boards."""

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

    Out of live windows, journal and snapshots of all boards of the project. Windows that ended keep their
    ranks, under a name that leads nowhere. Erasing again changes nothing.
    """
    return await call.laurels.erase(call.project, member)

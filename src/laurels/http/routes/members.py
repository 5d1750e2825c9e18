"""Exports and erases everything about a member."""

from typing import Annotated

from msgspec import Meta, Struct, structs

from laurels.history.member_export import MOST_ROWS
from laurels.history.records import Erased, MemberExport
from laurels.http.authentication import Call
from laurels.http.operation import PROJECT, Routes

routes = Routes("members")


class ExportParameters(Struct, forbid_unknown_fields=True):
    limit: Annotated[int, Meta(ge=1, le=MOST_ROWS, description="How many rows of the journal.")] = MOST_ROWS
    cursor: Annotated[str | None, Meta(description="`next` of the part before.")] = None


@routes.get(
    f"{PROJECT}/members/{{member:segment}}/export",
    scope="admin",
    example={
        "project": "acme",
        "member": "ada",
        "person": {"id": "ada", "name": "Ada", "avatar_url": None, "place": "oslo", "timezone": None},
        "entries": [
            {
                "board": "arcade",
                "period": "daily",
                "slot": "2025-10-24",
                "group": "",
                "score": 1200,
                "rank": 1,
                "total": 250,
                "metadata": {"level": 7},
            }
        ],
        "snapshots": [],
        "journal": [
            {
                "board": "arcade",
                "recorded_at": "2025-10-24T12:00:00.123000Z",
                "kind": "submit",
                "id": "game-1",
                "score": 1200,
                "at": "2025-10-24T12:00:00Z",
                "groups": {"country": "BR"},
                "op": None,
                "metadata": {"level": 7},
            }
        ],
        "users": [],
        "streaks": [],
        "badges": [],
        "days": [],
        "next": None,
    },
    problems=(404,),
)
async def export_member(call: Call, member: str, query: ExportParameters) -> MemberExport:
    """Export a member's data.

    The person, entries of live windows and of snapshots, rows of the journal; for users of campuses also
    their streak, badges and days. If there are more than `limit` rows of the journal, `next` asks for those
    after them, without the rest.
    """
    return await call.laurels.export_member(call.project, member, **structs.asdict(query))


@routes.delete(
    f"{PROJECT}/members/{{member:segment}}",
    scope="admin",
    example={"boards": 2, "windows": 5, "rows": 120},
    problems=(404,),
)
async def erase_member(call: Call, member: str) -> Erased:
    """Erase a member.

    From live windows, journal and snapshots of all boards of the project, and from its people; users of
    campuses also from their days, streaks, badges and events. Ended windows and campuses keep their ranks:
    the entries stay there under a random name. Erasing again changes nothing.
    """
    return await call.laurels.erase(call.project, member)

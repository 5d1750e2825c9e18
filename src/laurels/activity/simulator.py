"""Simulates campuses and what their people do; the same seed gives the same events. Pure.

Chance is an argument, as time is. Events come in the order of their times; each carries its own (`ts`).
"""

from __future__ import annotations

from bisect import bisect
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import accumulate
from typing import TYPE_CHECKING, Final, NamedTuple

from laurels.activity import valkey_keys
from laurels.activity.days import day_at, day_of
from laurels.boards.timezones import zone
from laurels.errors import InvalidInput
from laurels.moments import HOUR, Moment, datetime_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from random import Random

PLACES: Final = (
    ("Harbour University", "Pacific/Auckland"),  # among the first to begin a day; has summer time
    ("Lagoon College", "Pacific/Honolulu"),  # beyond the date line; has no summer time
    ("Old Bridge University", "America/New_York"),
    ("Linden Institute", "Europe/Berlin"),
    ("Maple Polytechnic", "Asia/Tokyo"),
    ("Foothill University", "Asia/Kathmandu"),  # its days begin at a quarter past the hour, by UTC
    ("Cordillera College", "America/Santiago"),  # some of its midnights do not exist
    ("Coral Campus", "Pacific/Apia"),
)
NAMES: Final = """
    ada bela carlos dina emre fay goran hana ivo june kofi lena milo nora omar pia quinn rosa sami tara
    uma vito wanda xiu yara zeno
""".split()  # noqa: SIM905  # easier to read than a list
KINDS: Final = ("chess", "trivia", "pool", "karaoke", "table tennis")

# Activity by the local hour: least before dawn, most in the evening.
RHYTHM: Final = (4, 2, 1, 1, 1, 1, 2, 4, 7, 9, 10, 10, 12, 11, 10, 10, 11, 13, 15, 17, 18, 16, 12, 8)
EVENTS_A_DAY: Final = 40
"""The average for one user."""
FRIENDS: Final = 12
SPAMMERS: Final = 100
"""One in this many users sends a burst of messages once a day."""
BURST_SECONDS: Final = 20
BURST_RATE: Final = 8


class SimulatedCampus(NamedTuple):
    id: str
    name: str
    timezone: str


class SimulatedPerson(NamedTuple):
    id: str
    handle: str
    campus: int
    """Index of the campus."""
    friends: tuple[int, ...]
    """Indexes of people, most of them of the same campus."""


class SimulatedEvent(NamedTuple):
    stream: str
    at: int
    """Milliseconds since 1970, as `ts` says."""
    fields: dict[str, str]


@dataclass(frozen=True)
class SimulationPlan:
    campuses: int = 3
    users: int = 300
    """On all campuses together."""
    days: int = 3
    """Today included, by each campus's own calendar."""
    events: int | None = None
    """About how many; None for the average of these users and days."""

    def __post_init__(self) -> None:
        if not 1 <= self.campuses <= len(PLACES):
            raise InvalidInput.at("campuses", f"must be 1 to {len(PLACES)}")
        if self.users < 2 * self.campuses:
            raise InvalidInput.at("users", "must be at least two a campus")


class World:
    def __init__(self, plan: SimulationPlan, chance: Random) -> None:
        self.campuses = [SimulatedCampus(_uuid(chance), *PLACES[i]) for i in range(plan.campuses)]
        self.rooms = [[_uuid(chance) for _ in range(8)] for _ in self.campuses]
        self.residents = [range(i, plan.users, plan.campuses) for i in range(plan.campuses)]
        self.people = [self._person(number, plan, chance) for number in range(plan.users)]
        # Cumulative weights: a few people cause most events.
        self.liveliness = [
            list(accumulate(1 / (1 + place) ** 0.7 for place in range(len(residents))))
            for residents in self.residents
        ]

    def _person(self, number: int, plan: SimulationPlan, chance: Random) -> SimulatedPerson:
        campus = number % plan.campuses
        near, anywhere = self.residents[campus], range(plan.users)
        friends = {chance.choice(anywhere if chance.random() < 0.05 else near) for _ in range(FRIENDS)} - {
            number
        }
        handle = f"{chance.choice(NAMES)}_{number}"
        return SimulatedPerson(_uuid(chance), handle, campus, tuple(sorted(friends)))

    def random_person(self, campus: int, chance: Random) -> int:
        weights = self.liveliness[campus]
        return self.residents[campus][bisect(weights, chance.random() * weights[-1], hi=len(weights) - 1)]

    def other_person(self, person: int, chance: Random) -> int:
        """A friend most of the time."""
        friends = self.people[person].friends
        if friends and chance.random() < 0.85:
            return chance.choice(friends)
        residents = self.residents[self.people[person].campus]
        while (other := chance.choice(residents)) == person:
            pass
        return other


def expected_events(plan: SimulationPlan) -> int:
    return plan.events or plan.users * plan.days * EVENTS_A_DAY


def simulate(world: World, plan: SimulationPlan, until: Moment, chance: Random) -> Iterator[SimulatedEvent]:
    """The events of these people up to a moment, in order."""
    begins = [_first_day(campus.timezone, plan.days, until) for campus in world.campuses]
    hours = range(min(begins) // HOUR, until // HOUR + 1)
    weights = [
        [_rhythm(campus.timezone, hour) if (hour + 1) * HOUR > begin else 0 for hour in hours]
        for campus, begin in zip(world.campuses, begins, strict=True)
    ]
    wanted = expected_events(plan)
    bursts = _bursts(world, begins, until, chance)
    spam = len(bursts) * BURST_SECONDS * BURST_RATE
    total = sum(map(sum, weights)) or 1
    each = max(0, wanted - spam) / total
    rest = 0.0
    for i, hour in enumerate(hours):
        found: list[SimulatedEvent] = []
        for campus, begin in enumerate(begins):
            rest += each * weights[campus][i]
            first, last = max(begin, hour * HOUR) // 1000, min(until, (hour + 1) * HOUR) // 1000
            while rest >= 1 and first < last:
                rest -= 1
                found.append(_event(world, campus, chance.randrange(first, last), chance))
        for began, person in bursts:
            if began // HOUR == hour:
                found += _burst(world, person, began // 1000, until // 1000, chance)
        found.sort(key=lambda event: event.at)
        yield from found


def _first_day(timezone: str, days: int, until: Moment) -> Moment:
    ymd = day_at(timezone, until - 1).ymd
    today = date(ymd // 10_000, ymd // 100 % 100, ymd % 100)
    for back in range(days - 1, -1, -1):
        wanted = today - timedelta(days=back)
        try:
            return day_of(timezone, int(f"{wanted:%Y%m%d}")).begins
        except ValueError:  # a day that the zone's calendar skipped
            continue
    raise AssertionError("today is a day")


def _rhythm(timezone: str, hour: int) -> int:
    return RHYTHM[datetime_of(hour * HOUR).astimezone(zone(timezone)).hour]


def _bursts(world: World, begins: list[Moment], until: Moment, chance: Random) -> list[tuple[Moment, int]]:
    """The begin of each burst, and the person who sends it."""
    spammers = range(0, len(world.people), SPAMMERS)
    return [
        (chance.randrange(begin, min(until, begin + 24 * HOUR)), person)
        for person in spammers
        for begin in range(begins[world.people[person].campus], until - HOUR, 24 * HOUR)
    ]


def _burst(world: World, person: int, began: int, until: int, chance: Random) -> Iterator[SimulatedEvent]:
    """`BURST_RATE` messages a second for `BURST_SECONDS`."""
    for second in range(BURST_SECONDS):
        for _ in range(BURST_RATE):
            at = began // 1000 * 1000 + second * 1000 + chance.randrange(1000)
            if at >= until:
                continue
            make = chance.choice((_direct_message, _room_message))
            yield make(world, person, at, chance)


def _event(world: World, campus: int, at: int, chance: Random) -> SimulatedEvent:
    make = _MAKERS[bisect(_BOUNDS, chance.random() * _BOUNDS[-1], hi=len(_BOUNDS) - 1)]
    return make(world, world.random_person(campus, chance), at, chance)


def _direct_message(world: World, person: int, at: int, chance: Random) -> SimulatedEvent:
    other = world.other_person(person, chance)
    convo = "-".join(str(number) for number in sorted((person, other)))
    fields = {"event": "msg:new", "convo_id": convo, **_two(world, "from", person, "to", other)}
    return _made(valkey_keys.CHAT, at, fields)


def _room_message(world: World, person: int, at: int, chance: Random) -> SimulatedEvent:
    return _made(valkey_keys.ROOMCHAT, at, {"event": "msg:new", **_in_room(world, person, chance)})


def _room(world: World, person: int, at: int, chance: Random) -> SimulatedEvent:
    (event,) = chance.choices(("join", "leave", "created", "mute", "kick", "role"), (50, 35, 6, 4, 2, 3))
    return _made(valkey_keys.ROOMS, at, {"event": event, **_in_room(world, person, chance)})


def _invitation(world: World, person: int, at: int, chance: Random) -> SimulatedEvent:
    (event,) = chance.choices(("sent", "accepted", "declined", "cancelled"), (50, 35, 10, 5))
    other = world.other_person(person, chance)
    return _made(valkey_keys.INVITES, at, {"event": event, **_two(world, "from", person, "to", other)})


def _friendship(world: World, person: int, at: int, chance: Random) -> SimulatedEvent:
    (event,) = chance.choices(("accepted", "blocked", "unblocked"), (90, 7, 3))
    other = world.other_person(person, chance)
    return _made(
        valkey_keys.FRIENDSHIPS, at, {"event": event, **_two(world, "user_a", person, "user_b", other)}
    )


def _activity(world: World, person: int, at: int, chance: Random) -> SimulatedEvent:
    (event,) = chance.choices(("created", "started", "ended"), (25, 25, 50))
    players = _two(world, "a", person, "b", world.other_person(person, chance))
    fields = {"event": event, "kind": chance.choice(KINDS), **players}
    if event == "ended" and chance.random() < 0.85:
        fields["winner"] = chance.choice(list(players.values()))
    return _made(valkey_keys.ACTIVITIES, at, fields)


def _heartbeat(world: World, person: int, at: int, chance: Random) -> SimulatedEvent:  # noqa: ARG001  # as the others
    return _made(valkey_keys.HEARTBEATS, at, {"user_id": world.people[person].id})


_SHARES: Final[dict[Callable[[World, int, int, Random], SimulatedEvent], int]] = {
    _direct_message: 38,
    _room_message: 20,
    _heartbeat: 20,
    _room: 9,
    _activity: 6,
    _invitation: 5,
    _friendship: 2,
}
_MAKERS: Final = list(_SHARES)
_BOUNDS: Final = list(accumulate(_SHARES.values()))


def _two(world: World, one: str, person: int, other: str, another: int) -> dict[str, str]:
    return {one: world.people[person].id, other: world.people[another].id}


def _in_room(world: World, person: int, chance: Random) -> dict[str, str]:
    room = chance.choice(world.rooms[world.people[person].campus])
    return {"room_id": room, "user_id": world.people[person].id}


def _made(stream: str, at: int, fields: dict[str, str]) -> SimulatedEvent:
    return SimulatedEvent(stream, at, {**fields, "ts": str(at)})


def _uuid(chance: Random) -> str:
    """A version 4 UUID."""
    digits = f"{chance.getrandbits(128) & ~(0xF << 76) & ~(0x3 << 62) | 4 << 76 | 2 << 62:032x}"
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))

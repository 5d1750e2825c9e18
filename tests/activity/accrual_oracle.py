"""The counters that the streams should give: a plain fold over all events, one at a time, in dictionaries."""

from __future__ import annotations

from collections import Counter, defaultdict
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from laurels.activity.simulator import SimulatedEvent

Place = tuple[str, str]  # ymd, user


class Folded:
    """Counters and sets by day and user, as the document's pseudocode leaves them; without bursts, and
    without what belongs to days that had expired by now.
    """

    def __init__(self, zones: Mapping[str, str], now: datetime) -> None:
        self._now = now
        self._zones = {user: ZoneInfo(zone) for user, zone in zones.items()}
        self.counters: dict[Place, Counter[str]] = defaultdict(Counter)
        self.senders: dict[Place, set[str]] = defaultdict(set)
        self.accepts: dict[Place, set[str]] = defaultdict(set)
        self.seconds: dict[Place, dict[int, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))

    def add_all(self, events: Iterable[SimulatedEvent]) -> Folded:
        for event in events:
            self._add(event.stream, event.fields)
        return self

    def _place(self, fields: Mapping[str, str], user: str) -> Place:
        """Touches the user's day."""
        when = datetime.fromtimestamp(int(fields["ts"]) / 1000, self._zones[user])
        place = f"{when:%Y%m%d}", user
        self.counters[place]["touched"] = 1
        return place

    def _add(self, stream: str, fields: Mapping[str, str]) -> None:  # noqa: C901  # the seven streams, as documented
        event = fields.get("event")
        match stream, event:
            case "x:invites.events", "accepted":
                self.counters[self._place(fields, fields["from"])]["invites_accepted"] += 1
                self.accepts[self._place(fields, fields["to"])].add(fields["from"])
            case "x:friendships.events", "accepted":
                for name in ("user_a", "user_b"):
                    self.counters[self._place(fields, fields[name])]["friends_new"] += 1
            case "x:chat.events", _:
                self._sent(fields, fields["from"], "dm_sent")
                self.senders[self._place(fields, fields["to"])].add(fields["from"])
            case "x:roomchat.events", _:
                self._sent(fields, fields["user_id"], "room_sent")
            case "x:rooms.events", _:
                place = self._place(fields, fields["user_id"])
                if event in ("created", "join"):
                    self.counters[place]["rooms_created" if event == "created" else "rooms_joined"] += 1
            case "x:activities.events", "ended":
                for name in ("a", "b"):
                    place = self._place(fields, fields[name])
                    self.counters[place]["acts_played"] += 1
                    if fields.get("winner") == fields[name]:
                        self.counters[place]["acts_won"] += 1
            case "x:presence.heartbeats", _:
                self._place(fields, fields["user_id"])
            case _:
                pass

    def _sent(self, fields: Mapping[str, str], user: str, what: str) -> None:
        self.seconds[self._place(fields, user)][int(fields["ts"]) // 1000][what] += 1

    def muted(self, place: Place) -> set[int]:
        """The seconds in runs of more than ten seconds with more than five messages each."""
        hot = {second for second, sent in self.seconds[place].items() if sent.total() > 5}
        found: set[int] = set()
        for second in hot:
            first = last = second
            while first - 1 in hot:
                first -= 1
            while last + 1 in hot:
                last += 1
            if last - first + 1 > 10:
                found.add(second)
        return found

    def is_over(self, place: Place) -> bool:
        ended = datetime.strptime(place[0], "%Y%m%d").replace(tzinfo=self._zones[place[1]]) + timedelta(
            days=1
        )
        return ended.timestamp() + 48 * 3600 <= self._now.timestamp()

    def hashes(self) -> dict[Place, dict[str, str]]:
        """Every day's hash without zeros, the campus and the flag."""
        made: dict[Place, dict[str, Any]] = {}
        for place, counters in self.counters.items():
            if self.is_over(place):
                continue
            whole = Counter(counters)
            muted = self.muted(place)
            for second, sent in self.seconds[place].items():
                if second not in muted:
                    whole += sent
            whole["uniq_senders"] = len(self.senders[place])
            whole["uniq_invite_accept_from"] = len(self.accepts[place])
            made[place] = {name: str(count) for name, count in whole.items() if count}
        return made

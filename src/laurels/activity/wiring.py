"""Wires the parts of the flow to Valkey and PostgreSQL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from laurels.activity.campus_people import CampusPeople
from laurels.activity.campuses import UserCampuses
from laurels.activity.consume import Accrual
from laurels.activity.erase import ActivityEraser
from laurels.activity.export import ActivityExporter
from laurels.activity.finalize import Finalizer
from laurels.activity.outbox import Relay
from laurels.activity.rankings import Rankings
from laurels.activity.rescore import Rescorer
from laurels.activity.store.days import CampusDays
from laurels.activity.store.export import ActivityExportStore
from laurels.activity.store.outbox import OutboxStore
from laurels.activity.store.reads import CampusReads
from laurels.activity.store.totals import Totals
from laurels.activity.summary import CampusReader
from laurels.activity.valkey_keys import ActivityKeys

if TYPE_CHECKING:
    from laurels.activity.store.people import CampusStore
    from laurels.boards.catalog import Catalog
    from laurels.boards.define import Definer
    from laurels.clock import Clock
    from laurels.people.records import Person, Place
    from laurels.people.store import RecordStore
    from laurels.scores.queries import Reader
    from laurels.scores.submit import Submitter
    from laurels.valkey.client import Valkey


class Activity:
    """The campus flow, from the streams to the boards and the finalized days."""

    def __init__(  # noqa: PLR0913, PLR0917  # the parts of the engine that it stands on
        self,
        valkey: Valkey,
        store: CampusStore,
        boards: tuple[Catalog, Definer, Submitter],
        reader: Reader,
        people: tuple[RecordStore[Person], RecordStore[Place], str],
        clock: Clock,
    ) -> None:
        """`people`: the people, the places, and the timezone of a place that has none."""
        postgres = store.postgres
        self.keys = ActivityKeys(cluster=valkey.is_cluster)
        self.store = store
        self.people = CampusPeople(store, *people)
        self.campuses = UserCampuses(valkey, self.people, self.keys)
        self.accrual = Accrual(valkey, self.campuses, clock)
        self.totals = Totals(postgres)
        self.rankings = Rankings(valkey, *boards, clock)
        scored = (valkey, self.people, CampusDays(postgres), self.rankings, self.totals, clock)
        self.rescorer = Rescorer(*scored)
        self.finalizer = Finalizer(*scored)
        self.exporter = ActivityExporter(
            valkey, self.keys, ActivityExportStore(postgres), self.people, self.campuses, clock
        )
        self.eraser = ActivityEraser(valkey, postgres, self.accrual, self.rescorer)
        self.relay = Relay(valkey, OutboxStore(postgres), clock)
        self.reader = CampusReader(reader, self.people, self.campuses, CampusReads(postgres), clock)

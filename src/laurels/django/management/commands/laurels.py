"""`manage.py laurels build|rebuild|verify|status|run`."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from django.apps import apps
from django.core.management.base import BaseCommand, CommandError, CommandParser

from laurels.django.index import leaderboards_of
from laurels.django.opened import Opened
from laurels.errors import LaurelsError
from laurels.index.declare import declared

if TYPE_CHECKING:
    from collections.abc import Generator

    from django.db.models import Model

    from laurels.django.opened import DjangoIndexes

MODELS: Final = "such as scores.GameScore; by default all"


class Command(BaseCommand):
    help = "Builds, verifies, shows and maintains the leaderboards of models."

    def add_arguments(self, parser: CommandParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        for name, text in {
            "build": "index the rows that are there, and apply what waits",
            "rebuild": "index all rows again, beside what is read meanwhile",
            "verify": "compare every row with every window; exits with 1 if they differ",
            "status": "show what each leaderboard has, and what waits",
        }.items():
            actions.add_parser(name, help=text).add_argument("models", nargs="*", help=MODELS)
        actions.add_parser("run", help="apply commits as they happen, until it is stopped")

    def handle(self, *_: Any, **options: Any) -> None:
        try:
            if options["action"] == "run":
                self._run()
            else:
                chosen = [_model(label) for label in options["models"]]
                with _opened() as opened:
                    getattr(self, f"_{options['action']}")(_chosen(opened, chosen), opened)
        except LaurelsError as error:
            raise CommandError(str(error)) from error

    def _build(self, chosen: list[tuple[DjangoIndexes, type[Any]]], opened: Opened) -> None:
        for indexes, twin in chosen:
            opened.run(indexes.build(twin, self._progress))
        self._status(chosen, opened)

    def _rebuild(self, chosen: list[tuple[DjangoIndexes, type[Any]]], opened: Opened) -> None:
        for indexes, twin in chosen:
            opened.run(indexes.rebuild(twin, self._progress))
        self._status(chosen, opened)

    def _verify(self, chosen: list[tuple[DjangoIndexes, type[Any]]], opened: Opened) -> None:
        is_equal = True
        for indexes, twin in chosen:
            found = opened.run(indexes.verify(twin))
            is_equal &= found.is_equal
            self.stdout.write(
                f"{twin.__name__}: {found.records} rows, {found.entries} entries, "
                f"{found.different} differences"
            )
            for difference in found.differences:
                self.stdout.write(f"  {difference}")
        if not is_equal:
            raise CommandError("the leaderboards differ from their tables: run manage.py laurels rebuild")

    def _status(self, chosen: list[tuple[DjangoIndexes, type[Any]]], opened: Opened) -> None:
        for indexes, twin in chosen:
            boards = {index.name: indexes.board(index) for index in declared(twin)}
            for each in opened.run(indexes.status(twin)):
                built = "built" if each.is_built else "not built: run manage.py laurels build"
                kept = "maintained" if each.is_maintained else "not maintained: run manage.py laurels run"
                self.stdout.write(
                    f"{each.index}: {built}, {kept}, {each.waiting} changes wait, board {boards[each.index]}"
                )

    def _progress(self, rows: int) -> None:
        self.stdout.write(f"  {rows:,} rows")

    def _run(self) -> None:
        ended = threading.Event()

        def end(*_: object) -> None:
            ended.set()

        for each in (signal.SIGINT, signal.SIGTERM):
            signal.signal(each, end)
        with _opened(maintain=True) as opened:
            names = ", ".join(index.name for twin in opened.twins.values() for index in declared(twin))
            self.stdout.write(f"Maintaining {names}. Ctrl-C stops.")
            ended.wait()


@contextmanager
def _opened(*, maintain: bool = False) -> Generator[Opened]:
    opened = Opened(maintain=maintain)
    opened.open()
    try:
        yield opened
    finally:
        opened.close()


def _model(label: str) -> type[Model]:
    try:
        model = apps.get_model(label)
    except (LookupError, ValueError) as error:
        raise CommandError(f"{error}; write app.Model, {MODELS}") from error
    if not any(leaderboards_of(model)):
        raise CommandError(f"{label} declares no leaderboard in its Meta.indexes")
    return model


def _chosen(opened: Opened, models: list[type[Model]]) -> list[tuple[DjangoIndexes, type[Any]]]:
    wanted = [opened.twins[model] for model in models]
    return [
        (indexes, twin)
        for indexes in opened.indexes().values()
        for twin in indexes.models
        if not wanted or twin in wanted
    ]

from __future__ import annotations

from importlib import import_module

from django.apps import AppConfig
from django.db.models.signals import post_migrate


class LaurelsConfig(AppConfig):
    name = "laurels.django"
    label = "laurels"
    verbose_name = "Laurels"

    def ready(self) -> None:
        import_module("laurels.django.checks")  # registers them, once the settings are there
        from laurels.django.migrated import remove_orphans  # noqa: PLC0415  # once the settings are there

        post_migrate.connect(remove_orphans, sender=self)

from __future__ import annotations

from django.apps import AppConfig
from django.db.models.signals import post_migrate


class LaurelsConfig(AppConfig):
    name = "laurels.django"
    label = "laurels"
    verbose_name = "Laurels"

    def ready(self) -> None:
        from laurels.django import checks  # noqa: F401, PLC0415  # registers them, once the settings are there
        from laurels.django.migrated import remove_orphans  # noqa: PLC0415  # as above

        post_migrate.connect(remove_orphans, sender=self)

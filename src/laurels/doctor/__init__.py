"""Checks a deployment: what was checked, what was found, and how to fix it."""

from laurels.doctor.checks import Finding, Status
from laurels.doctor.examine import examine, examine_open

__all__ = ["Finding", "Status", "examine", "examine_open"]

"""What could be wrong with a deployment: each thing looked at, what was found, and how to mend it."""

from laurels.doctor.checks import Finding, Status
from laurels.doctor.examine import examine, examine_open

__all__ = ["Finding", "Status", "examine", "examine_open"]

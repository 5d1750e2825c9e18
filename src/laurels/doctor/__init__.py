"""What could be wrong with a deployment: each thing looked at, what was found, and how to mend it."""

from laurels.doctor.examination import examine, examine_open
from laurels.doctor.judgements import Finding, Status

__all__ = ["Finding", "Status", "examine", "examine_open"]

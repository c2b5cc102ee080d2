"""The desk of a collection: work lists with drafts, and the verdicts of indexers.

Everything is in `desk.sqlite` beside the documents. It is not derived from
anything: a backup has to include it.
"""

from __future__ import annotations

from labelkin.desk.decisions import VERDICTS, Decision, Verdict
from labelkin.desk.desk import Desk
from labelkin.desk.files import write_decisions
from labelkin.desk.worklists import STATUSES, Heading, WorkItem, WorkList, WorkListWriter

__all__ = [
    "STATUSES",
    "VERDICTS",
    "Decision",
    "Desk",
    "Heading",
    "Verdict",
    "WorkItem",
    "WorkList",
    "WorkListWriter",
    "write_decisions",
]

"""The account that a reader gives of what it read and what it could not."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

logger = logging.getLogger(__name__)

# A file of the wrong kind must not flood the terminal: the rest is counted.
SHOWN_PROBLEMS = 20


@dataclass
class ReadReport:
    """Counts of one pass over a corpus; problems are logged as they come.

    `files_damaged` names the files that broke off, `files_refused` those of
    which nothing could be read at all.
    """

    read: int = 0
    skipped: int = 0
    without_labels: int = 0
    deletions: int = 0
    files: int = 0
    files_damaged: list[str] = field(default_factory=list)
    files_refused: list[str] = field(default_factory=list)
    problems: int = 0

    def skip(self, source: str, where: str, reason: str) -> None:
        """Count a record that could not be read."""
        self.skipped += 1
        self.note(source, where, f"{reason}; record skipped")

    def note(self, source: str, where: str, message: str) -> None:
        """Tell of something that was mended or is worth knowing."""
        self.problems += 1
        level = logging.WARNING if self.problems <= SHOWN_PROBLEMS else logging.DEBUG
        logger.log(level, "%s, %s: %s", source, where, message)
        if self.problems == SHOWN_PROBLEMS:
            logger.warning("further problems are counted; --verbose shows them all")

    def damage(self, source: str, reason: str) -> None:
        """A file broke off; the records before the damage stand."""
        self.files_damaged.append(source)
        logger.error("%s: %s", source, reason)

    def refuse(self, source: str, reason: str) -> None:
        """A file of which nothing can be read."""
        self.files_refused.append(source)
        logger.error("%s: %s", source, reason)

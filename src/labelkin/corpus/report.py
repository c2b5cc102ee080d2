"""Counts of what a reader read, skipped and had to repair."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

from labelkin.exceptions import DamagedFileError

logger = logging.getLogger(__name__)

# Further problems are only counted, so that a bad file does not flood the terminal.
SHOWN_PROBLEMS = 20
_ENOUGH_PROBLEMS = 1000


@dataclass
class ReadReport:
    """Counts of one pass over a corpus; problems are logged as they occur.

    `read` counts all records, also those that were skipped, and corrections.
    `files_damaged` lists the files that were read in part, `files_refused`
    those that could not be read at all, `files_left_out` those of a folder that
    are no corpus files.
    """

    read: int = 0
    skipped: int = 0
    without_labels: int = 0
    corrections: int = 0
    deletions: int = 0
    files: int = 0
    files_damaged: list[str] = field(default_factory=list)
    files_refused: list[str] = field(default_factory=list)
    files_left_out: list[str] = field(default_factory=list)
    problems: int = 0

    @property
    def documents(self) -> int:
        """The records that became documents."""
        return self.read - self.skipped

    def skip(self, source: str, where: str, reason: str) -> None:
        """Count and log a record that cannot be used."""
        self.read += 1
        self.skipped += 1
        self.note(source, where, f"{reason}; record skipped")

    def note(self, source: str, where: str, message: str) -> None:
        """Log a problem that did not cost a record, such as a repaired value."""
        self.problems += 1
        level = logging.WARNING if self.problems <= SHOWN_PROBLEMS else logging.DEBUG
        logger.log(level, "%s, %s: %s", source, where, message)
        if self.problems == SHOWN_PROBLEMS:
            logger.warning("further problems are only counted; --verbose shows them all")

    def damage(self, source: str, reason: str) -> None:
        """Log a truncated or corrupt file; the records before the damage count."""
        self.files_damaged.append(source)
        logger.error("%s: %s", source, reason)

    def refuse(self, source: str, reason: str) -> None:
        """Log a file that cannot be read at all."""
        self.files_refused.append(source)
        logger.error("%s: %s", source, reason)


class QuietReport(ReadReport):
    """A report that logs nothing."""

    def note(self, source: str, where: str, message: str) -> None:  # noqa: ARG002
        """Count without logging."""
        self.problems += 1

    def damage(self, source: str, reason: str) -> None:  # noqa: ARG002
        """List the file without logging."""
        self.files_damaged.append(source)

    def refuse(self, source: str, reason: str) -> None:  # noqa: ARG002
        """List the file without logging."""
        self.files_refused.append(source)


class SilentReport(QuietReport):
    """A report that logs nothing, for a look at the beginning of a file.

    It ends the reading of a file with too many problems: such a look must not
    read a large file to its end.
    """

    def note(self, source: str, where: str, message: str) -> None:
        """Count without logging."""
        super().note(source, where, message)
        if self.problems > _ENOUGH_PROBLEMS:
            raise DamagedFileError(f"{source}, {where}: {message}")

"""Revisions of records: dates or version numbers, by which an older record is recognised.

A revision is kept as text in one of two forms: a date or time in ISO 8601, in
UTC (`2024-03-05`, `2024-03`, `2024-03-05T10:30:00`), or numbers between dots
(`7`, `1.4.2`). Four digits are a number, or a year if they are compared with a date.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from itertools import zip_longest

_LONGEST = 60
_NUMBERS = re.compile(r"\d+(\.\d+)*", re.ASCII)
_YEAR = re.compile(r"\d{4}", re.ASCII)
_A_YEAR = re.compile(r"(?<!\d)\d{4}(?!\d)")
_DIGITS = re.compile(r"\d+", re.ASCII)
_MONTH = re.compile(r"\d{4}-(0[1-9]|1[0-2])", re.ASCII)


def parse_revision(value: object) -> str | None:
    """The revision that a source writes as a string or a number; None if it is not one."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    text = str(value).strip().replace("/", "-")
    if not text or len(text) > _LONGEST:
        return None
    number = text.removeprefix("v").removeprefix("V")
    if _NUMBERS.fullmatch(number):
        return number
    return text if _MONTH.fullmatch(text) else _iso_date(text)


def _iso_date(text: str) -> str | None:
    try:
        if len(text) <= len("2024-03-05"):
            return date.fromisoformat(text).isoformat()
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is not None:
            moment = moment.astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        return None
    return moment.isoformat()


def is_date(revision: str) -> bool:
    """Whether a revision is a date or a time; a year may as well be a number."""
    return _NUMBERS.fullmatch(revision) is None


def sort_key(revision: str, *, among_dates: bool = False) -> tuple[int, tuple[int, ...]]:
    """A key that puts older revisions first, and version numbers before dates.

    `among_dates` if any of the revisions to sort is a date: four digits are a year then.
    """
    numbers = [int(number) for number in _DIGITS.findall(revision)]
    if is_date(revision) or (among_dates and _YEAR.fullmatch(revision)):
        return 1, tuple(numbers)
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return 0, tuple(numbers)


def year_in(value: object) -> int | None:
    """The first year in what metadata call the year: 1998, "1998" or "1998 Jul-Aug"."""
    year = _A_YEAR.search(str(value)) if isinstance(value, int | str) else None
    return int(year.group()) if year else None


def revision_after(stored: str | None, given: str | None) -> str | None:
    """The revision of a document that a record which is not older has changed.

    It never says less than the stored one: that gives way to a newer one, or to
    one that dates it more finely, and not to one that it cannot be compared with.
    """
    if stored is None or given is None:
        return given or stored
    is_finer = _can_be_compared(stored, given) and len(given) > len(stored)
    return given if is_finer or is_older(stored, given) else stored


def is_older(revision: str | None, than: str | None) -> bool:
    """Whether one revision precedes another; not if one is missing or they cannot be compared.

    Dates are compared as far as both are known: a day is not older than a time
    on that day. A date and a number that is no year cannot be compared.
    """
    if revision is None or than is None:
        return False
    if not _can_be_compared(revision, than):
        return False
    if not (_NUMBERS.fullmatch(revision) and _NUMBERS.fullmatch(than)):
        known = min(len(revision), len(than))
        return revision[:known] < than[:known]
    pairs = zip_longest(revision.split("."), than.split("."), fillvalue="0")
    return next((int(one) < int(other) for one, other in pairs if int(one) != int(other)), False)


def is_newer(revision: str | None, than: str | None) -> bool:
    """Whether one revision follows another; also if one is missing or they cannot be compared."""
    if revision is None or than is None or not _can_be_compared(revision, than):
        return True
    return is_older(than, revision)


def _can_be_compared(revision: str, other: str) -> bool:
    """Whether both are version numbers, or both are dates or years."""
    numbers = [one for one in (revision, other) if _NUMBERS.fullmatch(one)]
    return len(numbers) == 2 or all(_YEAR.fullmatch(one) for one in numbers)

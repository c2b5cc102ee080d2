"""Records that fail: told from troubles of the executor, left out or named."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from labelkin.cluster.task import lies_within
from labelkin.corpus.document import Document
from labelkin.exceptions import ClusterError, LabelkinError
from labelkin.scoring.annotation import Suggest, failed_record
from labelkin.scoring.journal import FAILED, Record
from labelkin.wording import shortened

logger = logging.getLogger(__name__)

# What an executor lacks is no fault of a record.
_NO_THREAD = "can't start new thread"
# If each of so many documents fails, it is not because of the documents.
_SEVERAL = 10
_LONGEST = 500

Result = TypeVar("Result")


def annotate_each(suggest: Suggest, documents: list[Document], workspace: Path) -> list[Record]:
    """The records of a batch; if it fails, its documents are tried one by one.

    Troubles of the executor fail the batch, and so does what fails for each of many documents.
    """
    try:
        return suggest(documents)
    except Exception as error:
        if _is_of_executor(error, workspace):
            raise
        logger.debug("a batch of %d fails: %r", len(documents), error)
        if len(documents) == 1:
            return [failed_record(documents[0], error)]
        records = [
            one for document in documents for one in annotate_each(suggest, [document], workspace)
        ]
        if len(records) >= _SEVERAL and all(FAILED in record for record in records):
            raise ClusterError(
                f"all {len(records)} records of a batch fail, the first: {_line(records[0])}; "
                "check the method, and what it needs, on the workers"
            ) from error
        return records


def with_failures_named(
    work: Callable[[list[Document]], Result], documents: list[Document], workspace: Path
) -> Result:
    """What `work` gives for a batch; if it fails, ClusterError names the first record that does.

    That is found by trying the documents one by one.
    """
    try:
        return work(documents)
    except Exception as error:
        if _is_of_executor(error, workspace):
            raise
        for document in documents:
            try:
                work([document])
            except Exception as alone:
                if _is_of_executor(alone, workspace):
                    raise
                record = failed_record(document, alone)
                raise ClusterError(
                    f"{_line(record)}; correct the record or leave it out"
                ) from alone
        raise


def _is_of_executor(error: Exception, workspace: Path) -> bool:
    """Whether an error is not the fault of a record.

    Errors that labelkin raises on purpose concern the collection or its models. Others are a
    lack of memory, a module that cannot be loaded, or a disk; but a file that is missing
    outside the workspace may be one that a method looks for because of a record.
    """
    if isinstance(error, FileNotFoundError):
        return lies_within(error, workspace)
    if isinstance(error, LabelkinError | MemoryError | OSError | ImportError):
        return True
    return _NO_THREAD in str(error)


def _line(record: Record) -> str:
    return shortened(record[FAILED], _LONGEST)

"""Everything labelkin raises on purpose.

    LabelkinError
    ├── InputError              a file that cannot be read as the expected kind
    │   ├── FormatError         its format is unknown or not the one given
    │   │   └── WrongKindError      it looks like something else: a vocabulary, an archive
    │   └── DamagedFileError    it is truncated or corrupt
    ├── VocabularyError         an inconsistent vocabulary, an unknown heading
    ├── ConfigError             labelkin.toml has an unknown key or a bad value
    ├── CollectionError         a collection folder that cannot be used
    │   ├── CollectionNotFoundError
    │   ├── CollectionExistsError
    │   ├── CollectionDamagedError
    │   ├── CollectionTooNewError
    │   ├── CollectionReadOnlyError
    │   ├── CollectionFullError     no space left on the disk
    │   ├── CollectionBusyError     another process is writing
    │   └── CollectionBehindError   it has not reached a generation that a caller requires
    ├── ModelError              a trained model that cannot be used
    │   ├── ModelNotFoundError      nothing has been trained yet
    │   ├── ModelDamagedError
    │   ├── ModelTooNewError
    │   └── ModelMismatchError      it was trained on another vocabulary
    ├── TrainingError           training cannot start or continue
    ├── StaleNeighboursError    saved neighbours that no longer match the collection
    ├── ClusterError            a Spark cluster cannot be used, or a job on it has failed
    ├── ServiceError            the service cannot be reached, or refuses a request
    └── MissingExtraError       an optional dependency is not installed

Each message is one line: what failed, the offending value, the next step. The
command line prints it unchanged and shows no traceback.
"""

from __future__ import annotations


class LabelkinError(Exception):
    """Base of all errors that a user can fix; `problem` is the message without the `remedy`."""

    def __init__(self, problem: str = "", remedy: str = "") -> None:
        super().__init__(f"{problem}; {remedy}" if remedy else problem)
        self.problem = problem


class InputError(LabelkinError):
    """A file cannot be read as the expected kind."""


class FormatError(InputError):
    """A file's format is unknown or not the one given."""


class WrongKindError(FormatError):
    """A file looks like something else than was expected; `kind` names what, in a word or two."""

    def __init__(self, message: str, kind: str) -> None:
        super().__init__(message)
        self.kind = kind


class DamagedFileError(InputError):
    """A file is truncated or corrupt; the records before the damage were read."""


class VocabularyError(LabelkinError):
    """A vocabulary is inconsistent, or a heading is not in it."""


class ConfigError(LabelkinError):
    """labelkin.toml has an unknown key or a bad value."""


class CollectionError(LabelkinError):
    """A collection folder cannot be used."""


class CollectionNotFoundError(CollectionError):
    """There is no collection at this path."""


class CollectionExistsError(CollectionError):
    """A collection, or something else, is already at this path."""


class CollectionDamagedError(CollectionError):
    """A file of the collection is missing or corrupt."""


class CollectionTooNewError(CollectionError):
    """The collection was written by a newer labelkin."""


class CollectionReadOnlyError(CollectionError):
    """The collection cannot be written to."""


class CollectionFullError(CollectionError):
    """The disk is full; the last transaction was rolled back."""


class CollectionBusyError(CollectionError):
    """Another process holds the writer lock."""


class CollectionBehindError(CollectionError):
    """The collection has not reached a generation that a caller requires."""


class ModelError(LabelkinError):
    """A trained model cannot be used."""


class ModelNotFoundError(ModelError):
    """Nothing has been trained yet."""


class ModelDamagedError(ModelError):
    """A file of the model is missing or corrupt."""


class ModelTooNewError(ModelError):
    """The model was written by a newer labelkin."""


class ModelMismatchError(ModelError):
    """The model was trained on another vocabulary."""


class TrainingError(LabelkinError):
    """Training cannot start or continue."""


class StaleNeighboursError(LabelkinError):
    """Saved neighbours belong to another state of the collection or to other settings."""


class ClusterError(LabelkinError):
    """A Spark cluster cannot be used, or a job on it has failed."""


class ServiceError(LabelkinError):
    """The service cannot be reached, or refuses a request; `status` is its answer's, 0 for none."""

    def __init__(self, message: str, *, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class MissingExtraError(LabelkinError):
    """An optional dependency is not installed."""

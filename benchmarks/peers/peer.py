"""What a peer has to say of itself: packages, trainings, systems, commands."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from .data_folder import DataFolder
from .label_sets import LabelSets
from .meter import Command

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

ROOT = Path(__file__).resolve().parents[2]
# Labels that every system has to rank for a record.
TOP = 100


@dataclass(frozen=True)
class Place:
    """Where a peer works on a data set, and with what."""

    data: DataFolder
    folder: Path
    environment: Path
    threads: int = 1
    collection: Path | None = None

    @property
    def python(self) -> Path:
        """The interpreter of the peer's environment."""
        return self.environment / "bin" / "python"

    def model(self, training: str) -> Path:
        """The folder of what a training leaves."""
        return self.folder / "models" / training

    def output(self, system: str, part: str) -> Path:
        """The folder of what a system writes about a part; there only while it is needed."""
        return self.folder / "output" / f"{system}-{part}"

    def ranking(self, system: str, part: str) -> Path:
        """The file of a system's ranking of a part, in the columns of the data set."""
        return self.folder / "rankings" / f"{system}-{part}.npz"

    def own_measures(self, system: str) -> Path:
        """The file of the measures by the peer's own evaluation."""
        return self.folder / f"own-{system}.json"


@dataclass(frozen=True)
class System:
    """A row of the tables: a name, its settings, and the trainings that it needs.

    A system that `sees_dev` is trained on every second record of dev, from the first on: its cut
    is chosen on the others.
    """

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    trainings: tuple[str, ...] = ()
    sees_dev: bool = False


class Peer(ABC):
    """A tool with one or more systems, each in its own processes.

    `installs` are the arguments of `pip install`, one call after another; without any, the peer
    runs in our own environment.
    """

    name: str
    installs: Sequence[Sequence[str]] = ()
    # Whether it can be run at all, or has left its output only.
    runs = True
    note = ""
    # Systems of the peer that are left out, and why.
    unable: ClassVar[Mapping[str, str]] = {}
    # Why its own measures may differ from ours.
    evaluation_note = ""

    @abstractmethod
    def systems(self, data: DataFolder) -> Sequence[System]:
        """The systems on a data set."""

    def equip(self, environment: Path) -> None:  # noqa: B027 - most peers need nothing
        """Add what pip does not install, unless it is there."""

    def prepare(self, place: Place) -> None:  # noqa: B027 - most peers need nothing
        """Write what the commands read, beside the data set's own files."""

    def train(self, place: Place, training: str) -> Sequence[Command]:  # noqa: ARG002
        """The commands of a training; none if there is nothing to train."""
        return ()

    def training_settings(self, place: Place, training: str) -> Mapping[str, Any]:  # noqa: ARG002
        """What a training depends on; it is repeated if that changes."""
        return {}

    def parts(self, data: DataFolder) -> Sequence[str]:
        """The held-out parts that its systems can label."""
        return [part for part in data.sizes if part != "train"]

    def predict(
        self,
        place: Place,
        system: System,
        part: str,
        *,
        ready: bool = False,
    ) -> Command | None:
        """The command that labels a part from its texts, or from `ready` features.

        None if the peer cannot do that.
        """
        raise NotImplementedError(f"{self.name} labels nothing ({place}, {system}, {part})")

    @abstractmethod
    def read(self, place: Place, system: System, part: str) -> LabelSets:
        """What `predict` has written, in the columns of the data set."""

    def model_files(self, place: Place, system: System) -> Sequence[Path]:
        """Files and folders that a system needs to label a text."""
        return [place.model(training) for training in system.trainings]

    def own_evaluation(self, place: Place, system: System) -> OwnEvaluation | None:  # noqa: ARG002
        """What the peer's own evaluation finds, if it has one."""
        return None


@dataclass(frozen=True)
class OwnEvaluation:
    """A command that writes a peer's own measures of one part to `Place.own_measures`, as JSON.

    `names` maps their names to ours.
    """

    part: str
    command: Command
    names: Mapping[str, str]


class FeaturePeer(Peer):
    """A peer that takes features and runs through `worker` in its environment.

    A system's settings name its `features`; its training has its own name.
    """

    variants: ClassVar[Mapping[str, Mapping[str, Any]]]
    # Whether it has measures of its own.
    evaluates = False

    def systems(self, data: DataFolder) -> Sequence[System]:  # noqa: ARG002
        """One per variant."""
        return [System(name, settings, (name,)) for name, settings in self.variants.items()]

    def training_settings(self, place: Place, training: str) -> Mapping[str, Any]:  # noqa: ARG002
        """Those of the variant."""
        return self.variants[training]

    def train(self, place: Place, training: str) -> Sequence[Command]:
        """Fit in the peer's environment, from ready features."""
        return [self._command(place, "train", training)]

    def predict(
        self, place: Place, system: System, part: str, *, ready: bool = False
    ) -> Command | None:
        """Rank labels in the peer's environment."""
        output = place.output(system.name, part) / "ranking.npz"
        ready_option = ["--ready"] if ready else []
        return self._command(
            place, "predict", system.name, "--part", part, "--output", output, *ready_option
        )

    def read(self, place: Place, system: System, part: str) -> LabelSets:
        """What `worker` has written."""
        return LabelSets.load(place.output(system.name, part) / "ranking.npz")

    def model_files(self, place: Place, system: System) -> Sequence[Path]:
        """The model, and the features' terms."""
        features = place.data.features(system.settings["features"])
        return [place.model(system.name), features / "terms.txt", features / "idf.npy"]

    def own_evaluation(self, place: Place, system: System) -> OwnEvaluation | None:
        """The peer's measures of its own ranking of the timed part."""
        if not self.evaluates:
            return None
        part, output = place.data.timed, place.own_measures(system.name)
        ranking = place.ranking(system.name, part)
        options: list[str | Path] = ["--part", part, "--ranking", ranking, "--output", output]
        command = self._command(place, "evaluate", system.name, *options)
        return OwnEvaluation(part, command, {"P@1": "P@1", "P@5": "P@5"})

    def _command(self, place: Place, verb: str, system: str, *options: str | Path) -> Command:
        arguments: list[str | Path] = [place.python, "-m", f"{__package__}.worker", verb]
        arguments += [self.name, system, place.data.path, place.model(system)]
        arguments += ["--threads", str(place.threads), *options]
        return Command(arguments, {"PYTHONPATH": str(ROOT)}, ROOT)

    @abstractmethod
    def fit(
        self,
        settings: Mapping[str, Any],
        rows: csr_matrix[Any],
        labels: csr_matrix[Any],
        model: Path,
        threads: int,
    ) -> None:
        """Train on features and labels of the same records and write the model."""

    @abstractmethod
    def rank(
        self, settings: Mapping[str, Any], model: Path, rows: csr_matrix[Any], threads: int
    ) -> LabelSets:
        """Load the model and rank the best `TOP` labels for each row."""

    def evaluate(self, gold: LabelSets, ranking: LabelSets, width: int) -> dict[str, float]:
        """The peer's own P@1 and P@5."""
        raise NotImplementedError(f"{self.name} has no measures ({gold}, {ranking}, {width})")


def our_python() -> Path:
    """The interpreter of labelkin's own environment."""
    return Path(sys.executable)

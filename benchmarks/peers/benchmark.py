"""Runs peers on data sets, one step after another; what is done is not repeated."""

from __future__ import annotations

import json
import platform
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

from . import meter, scores
from .data_folder import FEW, MANY, DataFolder
from .datasets import DATA_SETS, ROOT, Sample, prepare, write_json
from .environment import installed
from .label_sets import LabelSets
from .meter import Command, CommandError, Cost
from .peer import OwnEvaluation, Peer, Place, System, our_python
from .registry import OURS, PEERS
from .results import Results
from .scores import Scorer
from .throughput import READY, TEXT, of_rounds

DATA = "data"
SPEEDS = "throughput.json"
# The peers that an unfinished run has begun to repeat.
REPEATED = "repeated.json"


@dataclass(frozen=True)
class Benchmark:
    """A work folder, and how peers are run in it.

    | path | content |
    |---|---|
    | `env/PEER` | its environment |
    | `DATASET/data` | the prepared data set |
    | `DATASET/PEER/result.json` | all steps of the peer: costs, cuts, measures |
    | `DATASET/PEER/log.txt` | what its commands have printed |
    | `DATASET/throughput.json` | rounds of all systems |
    | `repeated.json` | what an unfinished run has begun to repeat |
    """

    work: Path
    sample: Sample | None = None
    collections: Mapping[str, Path] = field(default_factory=dict)
    threads: int = 1
    rounds: int = 3

    def run(self, name: str, peers: Sequence[str], *, again: bool = False) -> None:
        """Run peers on a data set; if `again`, repeat those that are complete."""
        data = self.data(name)
        self._check_collection(data)
        for peer in map(PEERS.__getitem__, peers if again else ()):
            self._begin_again(peer, data)
        self._prepare(data, [PEERS[peer] for peer in peers])
        for peer in map(PEERS.__getitem__, peers):
            self._run_peer(peer, data)

    def finish(self) -> None:
        """End a run that repeats peers: the next one repeats them again."""
        (self.work / REPEATED).unlink(missing_ok=True)

    def data(self, name: str) -> DataFolder:
        """The prepared data set."""
        return prepare(DATA_SETS[name], self.work / name / DATA, self.sample)

    def place(self, peer: Peer, data: DataFolder) -> Place:
        """Where a peer works on a data set."""
        return Place(
            data,
            self.work / data.name / peer.name,
            self.work / "env" / peer.name,
            self.threads,
            self.collections.get(data.name),
        )

    def results(self, peer: Peer, data: DataFolder) -> Results:
        """What is known of a peer on a data set."""
        return Results(self.place(peer, data).folder / "result.json")

    def shared_results(self, data: DataFolder) -> Results:
        """The steps that all peers share."""
        return Results(data.path / "result.json")

    def is_complete(self, peer: Peer, data: DataFolder) -> bool:
        """Whether all systems of a peer have been measured."""
        results = self.results(peer, data)
        return all(results.outcome(f"scores {one.name}") for one in systems(peer, data))

    def known_data(self) -> list[DataFolder]:
        """The data sets that there is something of."""
        folders = [DataFolder(self.work / name / DATA) for name in DATA_SETS]
        return [folder for folder in folders if (folder.path / "data.json").exists()]

    def publish(self, folder: Path) -> None:
        """Copy the figures, but no data and no models, to a folder with the same layout.

        Figures of a peer replace those that are there unless systems would be lost, steps that
        peers share are added to them, and figures of other data are removed. Ratios of speeds hold
        within one run: the speeds that are there stay, unless a run measured all these systems.
        Figures of samples are not published.
        """
        for data in self.known_data():
            if data.is_sample:
                _tell(f"{data.name}: a sample, not published")
                continue
            target = folder / data.name
            known = DataFolder(target / DATA)
            if (known.path / "data.json").exists() and (
                known.description["fingerprint"] != data.description["fingerprint"]
            ):
                shutil.rmtree(target)
            names = [f"{DATA}/data.json"]
            if missing := _lacks(self.work / data.name / SPEEDS, target / SPEEDS):
                _tell(f"{data.name}: speeds are not published: {', '.join(missing)} not measured")
            else:
                names.append(SPEEDS)
            names += [
                f"{peer.name}/result.json"
                for peer in PEERS.values()
                if self._is_worth_publishing(peer, data, folder)
            ]
            for name in names:
                source = self.work / data.name / name
                if source.exists():
                    (target / name).parent.mkdir(parents=True, exist_ok=True)
                    write_json(target / name, json.loads(source.read_text()))
            self.shared_results(known).update(self.shared_results(data))

    def _is_worth_publishing(self, peer: Peer, data: DataFolder, folder: Path) -> bool:
        """Whether there is something of a peer, and no system of those published is missing."""
        results = self.results(peer, data)
        measured = results.names("scores")
        published = Results(folder / data.name / peer.name / "result.json").names("scores")
        names = [one.name for one in systems(peer, data)]
        lost = [name for name in names if name in published and name not in measured]
        if lost and results.path.exists():
            _tell(f"{data.name} {peer.name}: not published: {', '.join(lost)} not measured")
        return not lost and bool(measured or results.failures())

    def _begin_again(self, peer: Peer, data: DataFolder) -> None:
        """Drop what is known of a complete peer, once: a run that was interrupted is continued."""
        begun, path = f"{data.name}/{peer.name}", self.work / REPEATED
        repeated: list[str] = json.loads(path.read_text()) if path.exists() else []
        if begun in repeated:
            return
        folder = self.place(peer, data).folder
        if folder.exists() and self.is_complete(peer, data):
            _tell(f"{data.name} {peer.name}: complete, repeated")
            shutil.rmtree(folder)
        write_json(path, [*repeated, begun])

    def _check_collection(self, data: DataFolder) -> None:
        from labelkin import Indexer

        given = self.collections.get(data.name)
        if given is None:
            return
        with Indexer.open(given, read_only=True) as indexer:
            documents = indexer.collection.count()
        if documents != data.sizes["train"]:
            raise CommandError(
                f"{given}: {documents:,} documents, but {data.name} is trained on "
                f"{data.sizes['train']:,}; give a collection of the training records"
            )

    def _prepare(self, data: DataFolder, peers: Sequence[Peer]) -> None:
        """The features that the peers take, and the counts of neighbours."""
        results, fingerprint = self.shared_results(data), data.description["fingerprint"]
        log = data.path / "log.txt"
        wanted = {
            str(system.settings["features"])
            for peer in peers
            for system in systems(peer, data)
            if "features" in system.settings
        }
        for name in sorted(wanted):
            for verb in ("fit-features", "write-rows"):
                module = f"{__package__}.worker"
                command = Command(
                    [our_python(), "-m", module, verb, data.path, name],
                    {"PYTHONPATH": str(ROOT)},
                    ROOT,
                )
                results.step(f"{verb} {name}", fingerprint, partial(_cost, [command], log))
        collection = self.collections.get(data.name)
        results.step("counts", fingerprint, lambda: scores.write_counts(data, collection))

    def _run_peer(self, peer: Peer, data: DataFolder) -> None:
        place, results = self.place(peer, data), self.results(peer, data)
        chosen = systems(peer, data)
        if not chosen:
            return
        place.folder.mkdir(parents=True, exist_ok=True)
        try:
            if peer.installs:
                self._install(peer, place, results)
            described = [data.description["fingerprint"], [asdict(one) for one in chosen]]
            results.step("prepare", described, lambda: peer.prepare(place))
        except CommandError as error:
            _tell(f"{data.name} {peer.name}: failed: {error}")
            return
        for system in chosen:
            try:
                self._run_system(peer, place, results, system)
            except CommandError as error:
                _tell(f"{data.name} {system.name}: failed: {error}")

    def _install(self, peer: Peer, place: Place, results: Results) -> None:
        """The peer's environment. What is recorded may have been deleted."""
        try:
            packages = installed(place.environment, peer.installs)
            peer.equip(place.environment)
        except CommandError as error:
            results.failed("environment", str(error))
            raise
        results.step("environment", peer.installs, lambda: packages)

    def _run_system(self, peer: Peer, place: Place, results: Results, system: System) -> None:
        data, log = place.data, place.folder / "log.txt"
        shared: list[Any] = [data.description["fingerprint"], [list(one) for one in peer.installs]]
        if place.threads != 1:
            shared.append({"threads": place.threads})
        given = place.collection if peer.name == OURS else None
        trainings = {
            name: [name, dict(peer.training_settings(place, name)), str(given)]
            for name in system.trainings
        }
        basis = [*shared, *trainings.values()]
        ranked = [basis, dict(system.settings)]
        scored = [*ranked, [*scores.MEASURES, *scores.BAND_MEASURES]]
        # What is done next may fail or be interrupted: no figures of other settings are shown.
        results.forget_other(f"scores {system.name}", scored)
        for name, settings in trainings.items():
            train = partial(self._train, peer, place, name)
            results.step(f"train {name}", [*shared, settings], train)
        parts = list(peer.parts(data))
        for part in parts:
            predict = partial(self._predict, peer, place, system, part)
            results.step(f"predict {system.name} {part}", ranked, predict)
        size = partial(_megabytes, peer, place, system)
        results.step(f"size {system.name}", basis, size)

        def measured() -> dict[str, Any]:
            rankings = {one: LabelSets.load(place.ranking(system.name, one)) for one in parts}
            return _scorer(data.path).scores(rankings, sees_dev=system.sees_dev)

        outcome = results.step(f"scores {system.name}", scored, measured)
        last = {part: round(one["measures"]["MiF"], 4) for part, one in outcome["parts"].items()}
        _tell(f"{data.name} {system.name}: MiF {last}")
        own = peer.own_evaluation(place, system)
        if own is not None:
            check = partial(_own_measures, place, system, own, log)
            results.step(f"own {system.name}", ranked, check)

    def _train(self, peer: Peer, place: Place, training: str) -> dict[str, Any]:
        commands = peer.train(place, training)
        if not commands:
            return {"given": True} if place.collection is not None else {}
        _tell(f"{place.data.name} {peer.name}: training {training}")
        # What an interrupted training has left.
        shutil.rmtree(place.model(training), ignore_errors=True)
        cost = _cost(commands, place.folder / "log.txt")
        _tell(f"{place.data.name} {peer.name}: {training} took {cost['cpu_seconds']:.0f} CPU-s")
        finished = time.strftime("%Y-%m-%d %H:%M:%S")
        return {**cost, "finished": finished, "machine": machine(), "threads": place.threads}

    def _predict(self, peer: Peer, place: Place, system: System, part: str) -> dict[str, Any]:
        output = place.output(system.name, part)
        shutil.rmtree(output, ignore_errors=True)
        cost: dict[str, Any] = {}
        if peer.runs:
            command = peer.predict(place, system, part)
            assert command is not None
            cost = _cost([command], place.folder / "log.txt")
        ranking = peer.read(place, system, part)
        if len(ranking) != place.data.sizes[part]:
            raise CommandError(
                f"{system.name} has labelled {len(ranking):,} of {place.data.sizes[part]:,} "
                f"records of {part}"
            )
        path = place.ranking(system.name, part)
        path.parent.mkdir(parents=True, exist_ok=True)
        ranking.save(path)
        shutil.rmtree(output, ignore_errors=True)
        return {**cost, "records": len(ranking)}

    # Throughput.

    def measure_throughput(self, name: str) -> None:
        """Rounds of all systems that are trained, in one run.

        A run with the same models that was interrupted is continued; one with others begins anew.
        """
        data = self.data(name)
        jobs = dict(self._jobs(data))
        path = self.work / name / SPEEDS
        basis = {
            "sizes": data.description["timed"],
            "models": self._models(data),
            "jobs": sorted(jobs),
        }
        stored = json.loads(path.read_text()) if path.exists() else {}
        rounds: list[dict[str, Any]] = stored.get("rounds", [])
        if {key: stored.get(key) for key in basis} != basis:
            rounds = []
        started = stored["started"] if rounds else time.strftime("%Y-%m-%d %H:%M:%S")
        if len(rounds) < self.rounds:
            rounds += [{} for _ in range(self.rounds - len(rounds))]
        for number, costs in enumerate(rounds, start=1):
            for key, (peer, system, way, part) in jobs.items():
                if key in costs and "failed" not in costs[key]:
                    continue
                try:
                    costs[key] = self._timed(data, peer, system, way, part)
                except CommandError as error:
                    costs[key] = {"failed": str(error)}
                    _tell(f"{name} {key}: failed: {error}")
                write_json(path, {**basis, "started": started, "rounds": rounds})
            _tell(f"{name}: throughput, round {number} of {len(rounds)}")

    def _jobs(self, data: DataFolder) -> Iterator[tuple[str, tuple[Peer, System, str, str]]]:
        for peer in PEERS.values():
            results, place = self.results(peer, data), self.place(peer, data)
            for system in systems(peer, data) if peer.runs else ():
                if results.outcome(f"scores {system.name}") is None:
                    continue
                for way in (TEXT, READY):
                    if peer.predict(place, system, FEW, ready=way == READY) is not None:
                        for part in (MANY, FEW):
                            yield f"{system.name}/{way}/{part}", (peer, system, way, part)

    def _models(self, data: DataFolder) -> dict[str, str]:
        """When each model was trained."""
        found = {}
        for peer in PEERS.values():
            results = self.results(peer, data)
            for system in systems(peer, data):
                for training in system.trainings:
                    outcome = results.outcome(f"train {training}") or {}
                    found[f"{peer.name} {training}"] = str(outcome.get("finished", ""))
        return found

    def _timed(
        self, data: DataFolder, peer: Peer, system: System, way: str, part: str
    ) -> dict[str, Any]:
        place = self.place(peer, data)
        output = place.output(system.name, part)
        shutil.rmtree(output, ignore_errors=True)
        command = peer.predict(place, system, part, ready=way == READY)
        assert command is not None
        cost = _cost([command], place.folder / "log.txt")
        shutil.rmtree(output, ignore_errors=True)
        return cost


def systems(peer: Peer, data: DataFolder) -> list[System]:
    """The systems of a peer that are measured on a data set."""
    measures = DATA_SETS[data.name].measures
    return [one for one in peer.systems(data) if measures(one.name)]


@cache
def _scorer(path: Path) -> Scorer:
    return Scorer(DataFolder(path))


def _cost(commands: Sequence[Command], log: Path) -> dict[str, Any]:
    cost: Cost = meter.run_all(commands, log)
    return {key: round(value, 3) for key, value in asdict(cost).items()}


def _megabytes(peer: Peer, place: Place, system: System) -> float:
    """The size of what a system needs to label a text."""
    paths = [
        file
        for path in peer.model_files(place, system)
        for file in (path.rglob("*") if path.is_dir() else (path,))
    ]
    return round(sum(path.stat().st_size for path in paths if path.is_file()) / 1e6, 2)


def _own_measures(place: Place, system: System, own: OwnEvaluation, log: Path) -> dict[str, Any]:
    """The measures by the peer's own evaluation under our names."""
    path = place.own_measures(system.name)
    path.unlink(missing_ok=True)
    meter.run(own.command, log)
    measures = json.loads(path.read_text())
    return {name: measures[theirs] for theirs, name in own.names.items()}


def _lacks(measured: Path, published: Path) -> list[str]:
    """The systems whose speeds are published, but were not measured in every round of a run."""
    if not (measured.exists() and published.exists()):
        return []
    run, known = (json.loads(path.read_text()) for path in (measured, published))
    now, before = (set(of_rounds(one["rounds"], one["sizes"])) for one in (run, known))
    return sorted(before - now)


def machine() -> str:
    """What the figures were measured on."""
    model = platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [line for line in info.read_text().splitlines() if line.startswith("model name")]
        model = names[0].partition(":")[2].strip() if names else model
    return f"{model}, Python {platform.python_version()}"


def _tell(message: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {message}", flush=True)

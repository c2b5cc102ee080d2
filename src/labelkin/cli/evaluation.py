"""`labelkin eval`: how good suggestions are."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from labelkin.cli.build import build_with_progress, expect_with_progress
from labelkin.cli.cluster import Cluster, OnMaster, opened_cluster, warm_up_here
from labelkin.cli.console import counted, print_message
from labelkin.cli.exits import exit_after_reading
from labelkin.cli.languages import heading_language, report_foreign_texts
from labelkin.cli.measures import Measures, PerLabel, parsed_measures, show_measures
from labelkin.cli.options import (
    CollectionPath,
    CorpusFiles,
    CorpusFormat,
    Json,
    LabelSeparator,
    MethodNames,
    ReadingOptions,
    RepresentationName,
    takes,
)
from labelkin.cli.outputs import check_table
from labelkin.cli.settings import (
    asked_settings,
    print_known_documents,
    print_unknown_labels,
    print_unresolved,
)
from labelkin.cli.side_by_side import show_side_by_side
from labelkin.cli.texts import read_labelled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from labelkin.corpus import Document
    from labelkin.evaluate import Evaluation
    from labelkin.indexer import Indexer
    from labelkin.scoring.ranking import Ranking
    from labelkin.scoring.settings import Settings
    from labelkin.store.snapshot import Snapshot


@takes(ReadingOptions, "reading")
def evaluate(
    collection: CollectionPath,
    files: CorpusFiles,
    reading: ReadingOptions,
    k: Annotated[
        int | None, typer.Option("-k", min=1, max=10_000, help="How many neighbours vote.")
    ] = None,
    weighting: Annotated[str | None, typer.Option(help="majority, difference or square.")] = None,
    threshold: Annotated[
        float | None, typer.Option(min=0, max=1, help="Suggest no heading with a lower score.")
    ] = None,
    measures: Measures = None,
    per_label: PerLabel = None,
    bands: Annotated[
        bool,
        typer.Option("--bands", help="Also by frequency of labels: head, torso and tail."),
    ] = False,
    method: MethodNames = None,
    representation: RepresentationName = None,
    format: CorpusFormat = None,
    label_separator: LabelSeparator = "|",
    save: Annotated[
        bool,
        typer.Option(
            "--save", help="Store the values in the collection, for the dashboard of `serve`."
        ),
    ] = False,
    on: OnMaster = None,
    json: Json = False,
) -> None:
    """Suggest headings for documents that have them, and measure how many are right."""
    from labelkin.evaluate import evaluate as values_of
    from labelkin.evaluate.gold import unknown_labels
    from labelkin.evaluate.stored import EvaluationSummary
    from labelkin.indexer import Indexer

    asked = parsed_measures(measures)
    if per_label is not None:
        check_table(per_label, [collection, *files], option="--per-label", results=json)
    documents, corpus = read_labelled(files, "evaluate", format, label_separator, reading)
    with Indexer.open(collection) as indexer, ExitStack() as stack:
        methods: Sequence[str | None] = list(dict.fromkeys(method)) if method else [None]
        settings = [
            asked_settings(
                indexer,
                one,
                k=k,
                weighting=weighting,
                threshold=threshold,
                lenient=len(methods) > 1,
            )
            for one in methods
        ]
        ranked, cluster = None, None
        if on is not None:
            indexer.check_representation(settings, representation)
            # Starting Spark takes a while; the state that is evaluated comes after it.
            cluster = stack.enter_context(opened_cluster(indexer, on))
        if any(one.k for one in settings):
            build_with_progress(indexer, representation, settings)
        language = heading_language(indexer)
        if cluster is not None:
            ranked = _ranked_on(cluster, indexer, documents, settings, representation)
        evaluations = indexer.compare(
            documents, settings, representation=representation, ranked=ranked
        )
        vocabulary = indexer.vocabulary if ranked is None else ranked[0].vocabulary
        labels = [(concept.id, concept.name(language)) for concept in vocabulary]
        print_message(f"Evaluated {counted(len(documents), 'document')} with labels.")
        print_known_documents(indexer, documents, settings)
        report_foreign_texts(indexer, documents)
        unknown = unknown_labels(documents, vocabulary)
        if unknown:
            labels += [(label, "") for label in unknown]
            print_unresolved(unknown)
        print_unknown_labels(indexer, settings)
        if save:
            values = {
                one.method: values_of(evaluation, asked)
                for one, evaluation in zip(settings, evaluations, strict=True)
            }
            indexer.save_evaluation(EvaluationSummary.now(len(documents), values))
    if len(evaluations) == 1:
        show_measures(evaluations[0], asked, labels, per_label, json, bands=bands)
    else:
        if per_label is not None or bands:
            print_message("--per-label and --bands need a single method; ignored.")
        by_method: dict[str, Evaluation] = {
            s.method: e for s, e in zip(settings, evaluations, strict=True)
        }
        show_side_by_side(by_method, asked, json)
    exit_after_reading(corpus.report, strict=False)


def _ranked_on(
    cluster: Cluster,
    indexer: Indexer,
    documents: Sequence[Document],
    settings: Sequence[Settings],
    representation: str | None,
) -> tuple[Snapshot, list[tuple[Ranking, Ranking]]]:
    """Rank labels on a cluster, with a copy of a state of the collection in its workspace."""
    from labelkin.cluster.evaluation import KIND, rank_on_cluster

    snapshot = indexer.snapshot()
    has_neighbours = any(one.k for one in settings)
    is_bulk = has_neighbours and expect_with_progress(indexer, representation, len(documents))

    def state() -> dict[str, Any]:
        """What rankings depend on besides the documents, as it is now."""
        search = indexer.search(representation) if has_neighbours else None
        return {
            "neighbours": search.fingerprint() if search else {},
            "vocabulary": indexer.collection.vocabulary_state.key,
            "methods": [asdict(one) for one in settings],
            "models": [indexer.models_checksum(one.method) for one in settings],
            "config": indexer.config.model_dump(exclude={"cluster"}),
        }

    depends_on = state()
    warm_up_here(lambda texts: indexer.rankings(texts, settings, representation=representation))
    rankings = rank_on_cluster(
        cluster.session,
        cluster.workspace,
        cluster.replica(indexer, snapshot.generation(), depends_on, state),
        documents,
        settings,
        representation,
        depends_on,
        is_bulk=is_bulk,
        progress=partial(cluster.show, "Evaluating"),
    )
    cluster.workspace.sweep(KIND)
    return snapshot, rankings

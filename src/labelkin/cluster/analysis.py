"""The terms of a collection, extracted on a cluster and taken back into its cache."""

from __future__ import annotations

from functools import partial

from labelkin.cluster.collection_files import export_collection
from labelkin.cluster.search import StageProgress
from labelkin.cluster.session import Session
from labelkin.cluster.terms import AnalysisSettings, extract_terms, take_back
from labelkin.cluster.workspace import Workspace
from labelkin.represent.cache import TermCache
from labelkin.represent.representation import make_representation
from labelkin.store.snapshot import Snapshot


def extract_on_cluster(
    session: Session,
    workspace: Workspace,
    snapshot: Snapshot,
    name: str,
    cache: TermCache,
    progress: StageProgress,
) -> int:
    """Extract the terms of all labelled documents; how many texts were taken back."""
    section = snapshot.config.representation
    representation = make_representation(name, section)
    files = export_collection(snapshot, workspace, partial(progress, "Exporting"))
    analysis = AnalysisSettings.of(representation, section)
    extracting = partial(progress, "Extracting terms")
    terms = extract_terms(session, workspace, files, analysis, extracting)
    return take_back(terms, representation.kinds, cache, partial(progress, "Taking back"))

"""The model card of a reranker."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from labelkin.rerank.fitting import LearningReport


def reranker_card(report: LearningReport) -> str:
    """What the reranker is, and how good, in Markdown."""
    info, training = report.info, report.info.training
    versions = ", ".join(f"{name} {version}" for name, version in info.versions.items())
    return f"""# Reranker

Gradient-boosted trees over {len(info.groups)} groups of features ({", ".join(info.groups)}),
with calibrated scores. Made by `labelkin train` with {versions}.

- Statistics over {training["documents"]:,} documents; learned from {training["taken_out"]:,} that
  were taken out of them and {training["given"]:,} given documents.
- {training["candidate_recall"]:.1%} of their headings are among the candidates.
- On {info.calibration.documents:,} documents kept aside: MiF {report.score:.4f} at a threshold
  of {report.threshold}, against {report.votes:.4f} of plain votes; expected calibration error
  {info.calibration.error:.4f} (`reliability.png`).
- {training["seconds"]:,.0f} s.
"""

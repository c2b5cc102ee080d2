"""The model card: what a reader of a model folder should know, in Markdown."""

from __future__ import annotations

from collections.abc import Iterator

from labelkin.autoencoder.model import ModelInfo


def model_card(info: ModelInfo) -> str:
    """A card for one trained model."""
    architecture, data, labels = info.architecture, info.data, len(info.labels)
    learned = labels - info.origin.get("in_no_document", 0)
    versions = ", ".join(f"{name} {number}" for name, number in info.versions.items())
    lines = [
        "# Label autoencoder",
        "",
        "Maps sets of headings to a small latent space and back. labelkin averages the latent",
        "vectors of a text's most similar documents and decodes the average into headings.",
        "",
        "| | |",
        "|---|---|",
        f"| layers | {labels:,} – {architecture.first} – {architecture.second} – "
        f"{architecture.latent} – {architecture.second} – {architecture.first} – {labels:,} |",
        f"| trainable parameters | {architecture.trainable_parameters(labels):,} |",
        f"| embedding | {architecture.activation} |",
        *_origin(info),
    ]
    if info.training["epochs"]:
        lines += [
            f"| trained on | {data['documents']:,} label sets, {learned:,} headings, "
            f"{data['labels_seen_once']:,} of them seen once |",
            f"| kept aside | {data['held_out']:,} label sets |",
            *_course(info),
        ]
    else:
        lines.append("| trained on | nothing since: taken over as it was |")
    lines += [
        f"| seed | {info.seed} |",
        f"| made with | {versions} |",
        "",
        "It knows the headings in `model.json` and no others. Headings seen a few times only are",
        "decoded poorly: a small latent space keeps what many label sets share.",
        "",
        "Read it with `labelkin.autoencoder.model.LabelModel`; weights are safetensors in float32.",
        "",
    ]
    return "\n".join(lines)


def _origin(info: ModelInfo) -> Iterator[str]:
    origin = info.origin
    if origin:
        yield (
            f"| started from | model `{origin['model']}`, trained on "
            f"{origin['data'].get('documents', 0):,} label sets |"
        )
        yield (
            f"| of its headings | {origin['taken_over']:,} taken over, "
            f"{origin['in_no_document']:,} of them in no document of this collection; "
            f"{origin['left_out']:,} left out; {origin['new']:,} new ones |"
        )


def _course(info: ModelInfo) -> Iterator[str]:
    training, best = info.training, info.training["best"]
    aside = "kept aside" if info.data["held_out"] else "it was trained on, as none were kept aside"
    yield (
        f"| epochs | {training['epochs']} (best: {training['best_epoch']}), "
        f"stopped by {training['stopped']} |"
    )
    yield (
        f"| time | {training['seconds'] / 60:.1f} min, {training['processes']} "
        f"{'process' if training['processes'] == 1 else 'processes'} on {training['device']} |"
    )
    yield (
        f"| reconstruction of label sets {aside} | MiF {best['MiF']:.4f}, "
        f"MiP {best['MiP']:.4f}, MiR {best['MiR']:.4f} at 0.5 |"
    )
    if "predicted_MiF" in best:
        yield (
            f"| prediction from 20 neighbours of the same | MiF {best['predicted_MiF']:.4f}, "
            f"MiP {best['predicted_MiP']:.4f}, MiR {best['predicted_MiR']:.4f} at 0.5 |"
        )

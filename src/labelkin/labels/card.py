"""The model card: what a reader of a model folder should know, in Markdown."""

from __future__ import annotations

from labelkin.labels.model import ModelInfo


def model_card(info: ModelInfo) -> str:
    """A card for one trained model."""
    architecture, data, training = info.architecture, info.data, info.training
    best = training["best"]
    labels = len(info.labels)
    aside = "kept aside" if data["held_out"] else "it was trained on, as none were kept aside"
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
        f"| trained on | {data['documents']:,} label sets, {data['labels']:,} headings, "
        f"{data['labels_seen_once']:,} of them seen once |",
        f"| kept aside | {data['held_out']:,} label sets |",
        f"| epochs | {training['epochs']} (best: {training['best_epoch']}), "
        f"stopped by {training['stopped']} |",
        f"| time | {training['seconds'] / 60:.1f} min, {training['processes']} "
        f"{'process' if training['processes'] == 1 else 'processes'} on {training['device']} |",
        f"| reconstruction of label sets {aside} | MiF {best['MiF']:.4f}, "
        f"MiP {best['MiP']:.4f}, MiR {best['MiR']:.4f} at 0.5 |",
    ]
    if "predicted_MiF" in best:
        lines.append(
            f"| prediction from 20 neighbours of the same | MiF {best['predicted_MiF']:.4f}, "
            f"MiP {best['predicted_MiP']:.4f}, MiR {best['predicted_MiR']:.4f} at 0.5 |"
        )
    lines += [
        f"| seed | {info.seed} |",
        f"| made with | {versions} |",
        "",
        "It knows the headings in `model.json` and no others. Headings seen a few times only are",
        "decoded poorly: a small latent space keeps what many label sets share.",
        "",
        "Read it with `labelkin.labels.model.LabelModel`; weights are in safetensors, in float32.",
        "",
    ]
    return "\n".join(lines)

"""results/serve.md from the figures of benchmarks/serve.py."""

from __future__ import annotations

from typing import Any

METHODS = ("knn", "lexical", "label-ae", "mix", "mix-ranked", "rerank")
WITH_EVIDENCE = ("knn", "rerank")
PROJECTS = ("omikuji", "ensemble")
CLIENTS = (1, 8, 32)
RERANK_MILLISECONDS, FACTOR = 60.0, 5.0
Figures = dict[str, Any]


def report(content: Figures) -> str:
    """The whole page."""
    settings, machine = content["settings"], content["machine"]
    beside = " and Annif 1.4.3" if settings["annif"] else ""
    lines = [
        "# The service",
        "",
        f"`labelkin serve`{beside} under load on mesh47k (43,178 records, 30,764 headings). Made "
        f"by `python benchmarks/serve.py` (commit `{settings['commit']}`) on Python "
        f"{machine['python']}, {machine['cores']} cores, which the clients share.",
        "",
        *_speed(content),
        *_memory(content),
        *(_mixed(content["mixed"]) if "mixed" in content else ()),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _point(content: Figures, system: str, name: str, api: str, workers: int, clients: int) -> Any:
    """The better round of a measurement: noise only ever takes away."""
    rounds = [
        content["points"][f"{round_}/{system}/{name}/{api}/{workers}/{clients}"]
        for round_ in range(content["settings"]["rounds"])
    ]
    return max(rounds, key=lambda one: float(one["per second"]))


def _annif(content: Figures, project: str, clients: int) -> Any:
    """Annif with one or with two processes, whichever does better."""
    both = [_point(content, "Annif", project, "v1", workers, clients) for workers in (1, 2)]
    return max(both, key=lambda one: float(one["per second"]))


def _speed(content: Figures) -> list[str]:
    settings = content["settings"]
    points = content["points"].values()
    lines = [
        "## Suggestions per second",
        "",
        "Each client posts a text of l1000 (title and abstract), waits for its 10 headings and "
        f"posts the next. {settings['seconds']:g} seconds per figure after 3 of warm-up, "
        f"{_rounds(settings['rounds'])} in which the systems take turns; latencies in "
        "milliseconds, as the clients see them. CPU is that of the server per request. The "
        "clients are one separate process, which took up to "
        f"{max(one['client cores'] for one in points):.2f} cores. labelkin writes its "
        "access log and keeps nothing of the texts that it is asked about. "
        f"Requests: {sum(one['requests'] for one in points):,}; errors: "
        f"{sum(one['errors'] for one in points)}; answers without a heading: "
        f"{sum(one['empty'] for one in points)}.",
        "",
    ]
    if settings["annif"]:
        lines += _goals(content)
    titles = {
        "v1": "Annif's API (`/v1/projects/…/suggest`), as its clients use it",
        "api/v1": "labelkin's own API (`/api/v1/…/suggest`), each heading with its evidence",
    }
    for api, methods in (("v1", METHODS), ("api/v1", WITH_EVIDENCE)):
        lines += [f"### {titles[api]}", "", *_table(content, "labelkin", methods, api), ""]
    if settings["annif"]:
        lines += [
            "### Annif",
            "",
            "gunicorn with uvicorn workers; `omikuji` is Bonsai, `ensemble` omikuji 6, mllm 2 and "
            "tfidf 1 (benchmarks/annif_projects.py).",
            "",
            *_table(content, "Annif", PROJECTS, "v1"),
            "",
            *_ratios(content),
        ]
    return lines


def _table(content: Figures, system: str, names: tuple[str, ...], api: str) -> list[str]:
    what = "method" if system == "labelkin" else "project"
    lines = [
        f"| {what} | clients | 1 process: per second | p50 | p95 | p99 | CPU ms | "
        "2 workers: per second | p50 | p95 | p99 | CPU ms |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name in names:
        for clients in CLIENTS:
            cells = []
            for workers in (1, 2):
                point = _point(content, system, name, api, workers, clients)
                cells.append(f"{point['per second']:.1f}")
                cells += [f"{point[key]:.1f}" for key in ("p50", "p95", "p99", "cpu")]
            lines.append(f"| `{name}` | {clients} | " + " | ".join(cells) + " |")
    return lines


def _goals(content: Figures) -> list[str]:
    p50 = _point(content, "labelkin", "rerank", "v1", 1, 1)["p50"]
    is_fast = "reached" if p50 < RERANK_MILLISECONDS else "not reached"
    lines = [
        "| goal | measured | |",
        "|---|---|---|",
        f"| `rerank` p50 under {RERANK_MILLISECONDS:.0f} ms at one client | {p50:.1f} ms | "
        f"{is_fast} |",
    ]
    for clients in CLIENTS:
        annif = _annif(content, "ensemble", clients)["per second"]
        ratios = [
            _point(content, "labelkin", "rerank", "v1", workers, clients)["per second"] / annif
            for workers in (1, 2)
        ]
        outcome = "reached" if max(ratios) >= FACTOR else "not reached"
        lines.append(
            f"| `rerank` {FACTOR:.0f} × the suggestions per second of Annif's ensemble, {clients} "
            f"client{'s' if clients > 1 else ''} | {ratios[0]:.1f} × with 1 process, "
            f"{ratios[1]:.1f} × with 2 workers | {outcome} |"
        )
    return [*lines, ""]


def _ratios(content: Figures) -> list[str]:
    lines = [
        "### Beside Annif",
        "",
        "Suggestions per second of labelkin (Annif's API) as multiples of Annif's. Annif counts "
        "with 1 or 2 workers, whichever did better; labelkin with 1 process / with 2 workers.",
        "",
        "| method | " + " | ".join(f"{name}, {n} cl." for name in PROJECTS for n in CLIENTS) + " |",
        "|---|" + "---|" * (len(PROJECTS) * len(CLIENTS)),
    ]
    for method in METHODS:
        cells = []
        for project in PROJECTS:
            for clients in CLIENTS:
                annif = _annif(content, project, clients)["per second"]
                mine = [
                    _point(content, "labelkin", method, "v1", workers, clients)["per second"]
                    for workers in (1, 2)
                ]
                cells.append(" / ".join(f"{one / annif:.1f}" for one in mine))
        lines.append(f"| `{method}` | " + " | ".join(cells) + " |")
    return [*lines, ""]


def _memory(content: Figures) -> list[str]:
    lines = [
        "## Memory",
        "",
        "After the load, all processes of a server together; in the first figure pages that "
        "several of them share count once.",
        "",
        "| | MB | resident MB, summed up |",
        "|---|---|---|",
    ]
    for key, sizes in content["memory"].items():
        system, workers = key.split("/")
        name = f"{system}, " + ("1 process" if workers == "1" else f"{workers} workers")
        lines.append(f"| {name} | {sizes['proportional']:.0f} | {sizes['resident']:.0f} |")
    return [*lines, ""]


def _mixed(mixed: Figures) -> list[str]:
    first, last = mixed["megabytes"]
    opened = mixed["descriptors"]
    rows = {
        "reads": f"{mixed['reads']:,}",
        "writes acknowledged": f"{mixed['writes']:,}",
        "errors": f"{mixed['errors']}" + "".join(f"; {one}" for one in mixed["first errors"]),
        "documents written or deleted that were compared with what was acknowledged last": (
            f"{mixed['documents compared']:,}" + ("" if mixed["errors"] else ", all equal")
        ),
        "corrections that the next request counted": (
            f"{mixed['corrections seen by the next request']:,}"
        ),
        "resident MB after a minute and at the end": f"{first}, {last}",
        "growth in MB a minute after the first minute (least squares)": (
            f"{mixed['megabytes a minute']:+.2f}"
        ),
        "open descriptors after a minute, at the end, at most": (
            f"{opened[0]}, {opened[1]}, {mixed['most descriptors']}"
        ),
    }
    kinds = ", ".join(f"{kind} {count:,}" for kind, count in mixed["by kind"].items())
    lines = [
        "## Mixed load",
        "",
        f"{mixed['seconds'] / 60:.1f} minutes of {mixed['readers']} readers (all methods, "
        "different settings, with and without evidence, neighbours, searches, batches) beside "
        f"{mixed['writers']} writers that add, replace, correct, learn and delete, on one process "
        "and a copy of the collection.",
        "",
        "| | |",
        "|---|---|",
        *(f"| {name} | {value} |" for name, value in rows.items()),
        "",
        f"Requests by kind: {kinds}.",
        "",
        "| minute | reads | p50 ms | p95 | p99 | writes | p50 ms | p95 | p99 | resident MB | "
        "descriptors |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for number, minute in enumerate(mixed["by minute"], start=1):
        cells = [
            f"{minute[f'{kind}{key}']:g}" for kind in ("read", "write") for key in _MINUTE_KEYS
        ]
        cells += [f"{minute['megabytes']:g}", f"{minute['descriptors']:g}"]
        lines.append(f"| {number} | " + " | ".join(cells) + " |")
    return [*lines, ""]


_MINUTE_KEYS = ("s", " p50", " p95", " p99")


def _rounds(count: int) -> str:
    return "one round" if count == 1 else f"the better of {count} rounds"

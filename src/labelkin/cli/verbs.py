"""The verbs of the `labelkin` command; only the one that is used is imported."""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping
from functools import wraps
from importlib import import_module
from inspect import Parameter, Signature, signature
from typing import Annotated, Any, get_type_hints

import typer
from typer.main import get_group

from labelkin.cli.console import set_up_logging
from labelkin.cli.exits import ErrorsAsLines

Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Print more messages.")]
_MARK = "_labelkin_verbose"

# Module and function of each verb, in the order of the help; an `app` has verbs of its own.
_HOMES = {
    "init": ("init", "init"),
    "add": ("add", "add"),
    "learn": ("add", "learn"),
    "remove": ("remove", "remove"),
    "show": ("show", "show"),
    "info": ("info", "info"),
    "doctor": ("doctor", "doctor"),
    "check": ("doctor", "doctor"),
    "compact": ("compact", "compact"),
    "backup": ("backup", "backup"),
    "build": ("build", "build"),
    "neighbours": ("neighbours", "neighbours"),
    "train": ("train", "train"),
    "suggest": ("suggest", "suggest"),
    "annotate": ("annotate", "annotate"),
    "tune": ("tune", "tune"),
    "eval": ("evaluation", "evaluate"),
    "score": ("score", "score"),
    "compare": ("compare_methods", "compare"),
    "compare-representations": ("compare_representations", "compare_representations"),
    "experiment": ("experiment", "app"),
    "plot": ("plot", "app"),
    "serve": ("serve", "serve"),
    "verdicts": ("verdicts", "verdicts"),
    "demo": ("demo", "demo"),
    "vocab": ("vocab", "app"),
    "corpus": ("corpus", "app"),
}


class Verbs(MutableMapping[str, Any]):
    """Commands by name; each is imported when it is first used."""

    def __init__(self) -> None:
        self._made: dict[str, Any] = dict.fromkeys(_HOMES)

    def __getitem__(self, name: str) -> Any:
        if self._made[name] is None:
            self._made[name] = _command(name)
        return self._made[name]

    def __setitem__(self, name: str, command: Any) -> None:
        self._made[name] = command

    def __delitem__(self, name: str) -> None:
        del self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._made)

    def __len__(self) -> int:
        return len(self._made)

    def __contains__(self, name: object) -> bool:
        return name in self._made


class VerbGroup(ErrorsAsLines):
    """The command group of all verbs."""

    def __init__(self, *, commands: dict[str, Any] | None = None, **rest: Any) -> None:
        super().__init__(**rest)
        self.commands = Verbs()
        self.commands.update(commands or {})

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        """The names of all verbs."""
        return list(self.commands)


def _command(name: str) -> Any:
    module, attribute = _HOMES[name]
    verb = getattr(import_module(f"labelkin.cli.{module}"), attribute)
    alone = typer.Typer()
    if isinstance(verb, typer.Typer):
        for one in verb.registered_commands:
            if one.callback is not None:
                one.callback = with_verbose(one.callback)
        alone.add_typer(verb, name=name)
    else:
        alone.command(name)(with_verbose(verb))
    return get_group(alone).commands[name]


def with_verbose(verb: Callable[..., None]) -> Callable[..., None]:
    """Give a verb the option --verbose, which is also recognised before the verb."""
    if hasattr(verb, _MARK):
        return verb
    hints = get_type_hints(verb, include_extras=True)
    hints.pop("return", None)
    parameters = [
        one.replace(kind=Parameter.KEYWORD_ONLY, annotation=hints[one.name])
        for one in signature(verb).parameters.values()
    ]
    option = Parameter("verbose", Parameter.KEYWORD_ONLY, default=False, annotation=Verbose)

    @wraps(verb)
    def run(*, verbose: bool = False, **given: Any) -> None:
        if verbose:
            set_up_logging(verbose)
        verb(**given)

    run.__signature__ = Signature([*parameters, option])  # type: ignore[attr-defined]
    run.__annotations__ = {**hints, "verbose": Verbose}
    setattr(run, _MARK, True)
    return run

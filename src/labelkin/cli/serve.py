"""`labelkin serve`: the HTTP service."""

from __future__ import annotations

from typing import Annotated

import typer

from labelkin.cli.console import print_message
from labelkin.exceptions import MissingExtraError

_MEGABYTE = 1_000_000


def serve(
    collections: Annotated[
        list[str],
        typer.Argument(
            metavar="COLLECTION…",
            help="Collections to serve: paths, or NAME=PATH to choose the name in URLs.",
        ),
    ],
    host: Annotated[
        str, typer.Option(help="The address to listen at; 0.0.0.0 lets other machines in.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes any free port.")] = 8080,
    workers: Annotated[
        int,
        typer.Option(min=1, max=256, help="Processes; they share memory-mapped files."),
    ] = 1,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Refuse all writes, token or not.")
    ] = False,
    representation: Annotated[
        list[str] | None,
        typer.Option(
            help="Let requests ask for this representation too, e.g. stems,lsa; repeat for more."
        ),
    ] = None,
    cors: Annotated[
        list[str] | None,
        typer.Option(
            help="Let pages of this origin (https://example.org) use the service; repeat for more."
        ),
    ] = None,
    max_body: Annotated[
        float, typer.Option(min=0.001, help="Largest body in MB; streams are not limited.")
    ] = 20.0,
    max_characters: Annotated[
        int, typer.Option(min=1, help="Longest text of a document.")
    ] = 1_000_000,
    max_documents: Annotated[
        int, typer.Option(min=1, help="Most documents in one request; streams are not limited.")
    ] = 1000,
    concurrency: Annotated[
        int | None,
        typer.Option(min=1, help="Requests computed at a time in a process. Default: the cores."),
    ] = None,
    queue: Annotated[
        int, typer.Option(min=0, help="Requests that may wait; more are refused with 503.")
    ] = 256,
    client_requests: Annotated[
        int,
        typer.Option(
            min=0, help="Requests that one client may have under way (else 429); 0: any number."
        ),
    ] = 128,
    timeout: Annotated[
        float, typer.Option(min=0.1, help="Seconds until a request is given up with 503.")
    ] = 60.0,
    slow_client: Annotated[
        float,
        typer.Option(min=0.1, help="Seconds that a client may take for each part of a request."),
    ] = 20.0,
    access_log: Annotated[
        bool,
        typer.Option(help="Write a line of JSON per request to standard output; never texts."),
    ] = True,
) -> None:
    """Serve suggestions with their evidence over HTTP; Annif's clients can use it unchanged.

    Writing is off unless the environment variable LABELKIN_TOKEN is set.
    """
    try:
        from labelkin.serve.catalogue import served_paths
        from labelkin.serve.server import listening_socket, run
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"the service needs {error.name}; install it with: pip install 'labelkin[serve]'"
        ) from error
    from labelkin.serve.settings import ServiceSettings, token

    optional = {} if concurrency is None else {"concurrency": concurrency}
    settings = ServiceSettings(
        collections=served_paths(collections),
        host=host,
        port=port,
        workers=workers,
        read_only=read_only,
        representations=tuple(representation or ()),
        origins=tuple(cors or ()),
        max_body=int(max_body * _MEGABYTE),
        max_characters=max_characters,
        max_documents=max_documents,
        queue=queue,
        client_requests=client_requests,
        timeout_seconds=timeout,
        slow_seconds=slow_client,
        access_log=access_log,
        **optional,
    )
    with listening_socket(host, port) as listening:
        shown = f"[{host}]" if ":" in host else host
        names = ", ".join(settings.collections)
        writing = "writes need the token" if token() and not read_only else "read-only"
        print_message(
            f"Serving {names} at http://{shown}:{listening.getsockname()[1]} ({writing}); "
            "Ctrl+C ends it."
        )
        run(settings, listening)
    print_message("Stopped.")

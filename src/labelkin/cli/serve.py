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
            metavar="COLLECTION...",
            help="Collections to serve: a path, NAME=PATH to choose the name in URLs, or a folder "
            "of collections.",
        ),
    ],
    host: Annotated[
        str,
        typer.Option(
            help="Address to listen at. The default is for this machine only; 0.0.0.0 lets other "
            "machines in.",
        ),
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port to listen at; 0 takes any free one.")
    ] = 8080,
    workers: Annotated[
        int,
        typer.Option(
            min=1,
            max=256,
            help="Processes that answer; more of them use more cores and more memory.",
        ),
    ] = 1,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Refuse every write, even with the token.")
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
            metavar="ORIGIN",
            help="Let web pages of this origin (https://example.org) call the service; repeat it "
            "for more. Default: none.",
        ),
    ] = None,
    max_body: Annotated[
        float,
        typer.Option(
            min=0.001, help="Largest body of a request in MB (else 413), except JSON Lines."
        ),
    ] = 20.0,
    max_characters: Annotated[
        int, typer.Option(min=1, help="Longest text of a document in characters (else 413).")
    ] = 1_000_000,
    max_documents: Annotated[
        int,
        typer.Option(min=1, help="Most documents in one request (else 413), except JSON Lines."),
    ] = 1000,
    concurrency: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Requests that a process computes at a time. Default: the number of cores, at "
            "least 2.",
        ),
    ] = None,
    queue: Annotated[
        int,
        typer.Option(min=0, help="Further requests that may wait for their turn (else 503)."),
    ] = 256,
    client_requests: Annotated[
        int,
        typer.Option(
            min=0,
            help="Requests that one client address may have under way (else 429); 0: no limit.",
        ),
    ] = 128,
    timeout: Annotated[
        float, typer.Option(min=0.1, help="Seconds to wait and compute (else 503).")
    ] = 60.0,
    slow_client: Annotated[
        float,
        typer.Option(
            min=0.1,
            help="Seconds that a client may take to send or read the next part (else 408, or the "
            "connection is closed).",
        ),
    ] = 20.0,
    access_log: Annotated[
        bool,
        typer.Option(help="Print a line of JSON per request to standard output, without texts."),
    ] = True,
) -> None:
    """Serve suggestions with their evidence over HTTP; Annif's clients can use it unchanged.

    Everyone who reaches the address may read. Writing is off unless the
    environment variable LABELKIN_TOKEN is set; clients send it as a bearer token.
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

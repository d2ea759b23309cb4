"""``capdex serve`` and ``capdex stdio``: the two ways in for agents."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from capdex_server.cli.options import ConfigOption, Run, SpecOption, prepared
from capdex_server.cli.output import progress, reported_errors

ReadOnlyOption = Annotated[
    bool,
    typer.Option("--read-only", help="Deny every caller what can change something: all but GET and HEAD."),
]


def serve(
    host: Annotated[str | None, typer.Option(help="Address to listen on (default 127.0.0.1).")] = None,
    port: Annotated[
        int | None, typer.Option(help="Port to listen on; 0 takes a free one (default 8000).")
    ] = None,
    read_only: ReadOnlyOption = False,
    spec: SpecOption = None,
    config: ConfigOption = None,
) -> None:
    """Serve /mcp/agent and its REST twins.

    Example: capdex serve --port 8000 --spec petstore.yaml
    """
    with reported_errors(as_json=False), prepared(spec, config) as run:
        serve_forever(_with_options(run, host=host, port=port, read_only=read_only or None))


def _with_options(run: Run, **options: Any) -> Run:
    """Return the run with the options that are given; None is not given."""
    from capdex_server.config import with_options

    given = {key: value for key, value in options.items() if value is not None}
    return Run(with_options(run.settings, **given), run.credentials)


def serve_forever(run: Run) -> None:
    """Serve until interrupted."""
    import uvicorn

    from capdex_server.app import create_app
    from capdex_server.cli.serving import bound_socket, live_of, quotas_of, url_of
    from capdex_server.logs import configure_logs

    configure_logs()
    # Large answers are read in threads; while one works, each turn of the event loop waits this long for it.
    sys.setswitchinterval(0.0001)
    app = create_app(live_of(run), run.settings, quotas=quotas_of(run))
    with bound_socket(run.settings.host, run.settings.port) as listener:
        progress(f"serving {url_of(listener)}/mcp/agent (stop with Ctrl-C)")
        server = uvicorn.Server(
            uvicorn.Config(app, log_config=None, access_log=False, timeout_graceful_shutdown=10)
        )
        server.run([listener])


def stdio(read_only: ReadOnlyOption = False, spec: SpecOption = None, config: ConfigOption = None) -> None:
    """Serve the two tools over standard input and output, for clients that start their servers.

    Example: capdex stdio --spec petstore.yaml
    """
    with reported_errors(as_json=False), prepared(spec, config) as run:
        import anyio

        from capdex_server.cli.serving import live_of, quotas_of
        from capdex_server.logs import configure_logs
        from capdex_server.stdio import serve_stdio

        configure_logs()
        run = _with_options(run, read_only=read_only or None)
        anyio.run(serve_stdio, live_of(run), run.settings, quotas_of(run))

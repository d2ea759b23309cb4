"""Options that commands share, and how they become settings."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

if TYPE_CHECKING:
    from capdex_server.config import Settings
    from capdex_server.credentials import Credential

CONFIG_FILE: Final = "capdex.toml"
"""Read from the working folder when --config names no other."""

SpecOption = Annotated[
    list[str] | None,
    typer.Option(
        "--spec",
        metavar="FILE",
        help="An API description: a file, a folder or a URL, instead of the configuration's sources. "
        "Repeatable.",
    ),
]
ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config",
        envvar="CAPDEX_CONFIG",
        help=f"Configuration file (default: ./{CONFIG_FILE}, where there is one). With --spec, all of it but "
        "its sources counts.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]


@dataclass(frozen=True)
class Run:
    """What a command works on."""

    settings: Settings
    credentials: dict[str, dict[str, Credential]] = field(default_factory=dict)
    """Source -> scheme -> credential, beside those that the settings name."""


def parse_pairs(option: str, pairs: Sequence[str] | None) -> dict[str, str]:
    """Return ``NAME=VALUE`` options as a mapping; anything else is wrong usage."""
    parsed = {}
    for pair in pairs or ():
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise typer.BadParameter(f"write it as NAME=VALUE, not {pair.split('=')[0]!r}", param_hint=option)
        parsed[name] = value
    return parsed


@contextmanager
def prepared(
    specs: Sequence[str] | None,
    config: Path | None,
    *,
    credentials: dict[str, Credential] | None = None,
    **source_options: Any,
) -> Iterator[Run]:
    """Yield what a command works on: --spec, else the configuration's sources, else the embedded API.

    Args:
        specs: Documents named on the command line, instead of the configuration's sources; its other
            settings, callers among them, count all the same.
        config: The configuration file, where one is named; else the working folder's, where there is one.
        credentials: Scheme -> credential for every document named by ``specs``.
        source_options: Fields of ``SourceConfig`` for every document named by ``specs``.

    Raises:
        ConfigurationError: A setting or an option is wrong.
    """
    from capdex_server.config import load_settings, sources_for

    path = config or (Path(CONFIG_FILE) if Path(CONFIG_FILE).is_file() else None)
    settings = load_settings(path, os.environ, with_sources=not specs)
    if specs:
        sources = sources_for(specs, **source_options)
        yield Run(settings.model_copy(update={"sources": sources}), dict.fromkeys(sources, credentials or {}))
    elif settings.sources:
        yield Run(settings)
    else:
        with _embedded(settings) as run:
            yield run


@contextmanager
def _embedded(settings: Settings) -> Iterator[Run]:
    """Run the workforce API in this process and yield settings that know it alone."""
    import secrets

    from capdex_server.config import sources_for
    from capdex_server.demo import DEMO_SOURCE_NAME, create_demo_app, demo_location, run_in_thread

    key = secrets.token_urlsafe(24)
    with demo_location() as document, run_in_thread(create_demo_app(api_key=key)) as url:
        sources = sources_for([str(document)], server=url)
        run = Run(settings.model_copy(update={"sources": sources}), {DEMO_SOURCE_NAME: {"workforceKey": key}})
        yield run

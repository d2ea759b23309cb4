"""Logs: one structured line each on standard error; JSON when nobody watches a terminal.

Loggers are those of the standard library, so that a command which configures nothing shows
warnings alone, on standard error. Local variables never stand in tracebacks: they may be secrets.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, TextIO, cast

import structlog
from structlog.tracebacks import ExceptionDictTransformer

_SHARED: Final[list[structlog.types.Processor]] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
]
_OWN: Final = ("capdex_server", "capdex_engine")


def get_logger(name: str) -> structlog.stdlib.BoundLogger:
    """Return a module's logger; events are short names, everything else is a keyword."""
    logger = structlog.wrap_logger(
        logging.getLogger(name),
        processors=[
            structlog.stdlib.filter_by_level,
            *_SHARED,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        wrapper_class=structlog.stdlib.BoundLogger,
        context_class=dict,
    )
    return cast(structlog.stdlib.BoundLogger, logger)


def configure_logs(*, quiet: bool = False, stream: TextIO | None = None) -> None:
    """Write this package's events, and the warnings of others.

    Args:
        quiet: Leave out what is no warning.
        stream: Where to; standard error by default, since standard output may carry the protocol.
    """
    out = stream or sys.stderr
    handler = logging.StreamHandler(out)
    remove = structlog.stdlib.ProcessorFormatter.remove_processors_meta
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=_SHARED, processors=[remove, *_renderers(tty=out.isatty())]
        )
    )
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    for name in _OWN:
        logging.getLogger(name).setLevel(logging.WARNING if quiet else logging.INFO)


def hush_mcp_clients() -> None:
    """Keep the SDK's own words about servers that are called out of every log.

    It logs what it cannot read as it came, and a server may say the very token it was sent. What failed is
    told by events of our own.
    """
    for name in ("mcp.client", "mcp.shared"):
        logging.getLogger(name).setLevel(logging.CRITICAL)


@contextmanager
def warnings_as_lines() -> Iterator[None]:
    """Write warnings as plain lines for the person at the terminal, as long as the context lasts."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setLevel(logging.WARNING)
    plain = structlog.processors.LogfmtRenderer(key_order=["level", "event"])
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=_SHARED,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, _without_time, plain],
        )
    )
    root = logging.getLogger()
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)


def _without_time(_: object, __: str, event: structlog.types.EventDict) -> structlog.types.EventDict:
    event.pop("timestamp", None)
    return event


def _renderers(*, tty: bool) -> list[structlog.types.Processor]:
    if tty:
        return [structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)]
    exceptions = structlog.processors.ExceptionRenderer(ExceptionDictTransformer(show_locals=False))
    return [exceptions, structlog.processors.JSONRenderer()]

"""Catalogs and calls straight from the command line: no server, and no encoder loaded."""

from __future__ import annotations

import os
from typing import Any

import anyio

from capdex_engine.catalog import Catalog
from capdex_server.cli.options import Run
from capdex_server.live import Snapshot, build_snapshot
from capdex_server.outbound import Outbound


def load_snapshot(run: Run) -> Snapshot:
    """Return the run's catalog with what failed, without a searcher."""

    async def load() -> Snapshot:
        outbound = Outbound.from_settings(run.settings)
        try:
            return await _snapshot(run, outbound)
        finally:
            await outbound.aclose()

    return anyio.run(load)


def load_catalog(run: Run) -> tuple[Catalog, dict[str, dict[str, Any]]]:
    """Return the run's catalog, and source -> error object for every document that gave nothing."""
    snapshot = load_snapshot(run)
    return snapshot.catalog, failure_objects(snapshot)


def failure_objects(snapshot: Snapshot) -> dict[str, dict[str, Any]]:
    """Return source -> SPEC's error object."""
    from capdex_engine.errors import DocumentError

    reported = {report.source: report.error for report in snapshot.catalog.report.failed}
    return {
        source: (reported.get(source) or DocumentError(reason, location=source)).payload()
        for source, reason in snapshot.failures.items()
    }


def prepare(run: Run, request: Any, *, show_credentials: bool) -> dict[str, Any]:
    """Return the request that a call would send.

    Raises:
        CapdexError: The call's own, or the document's fault.
    """
    return _usable(load_snapshot(run)).executor.prepare(request, show_credentials=show_credentials)


def execute(run: Run, request: Any) -> dict[str, Any]:
    """Send one call and return its result.

    Raises:
        CapdexError: The call's own, or the document's fault.
    """

    async def send() -> dict[str, Any]:
        outbound = Outbound.from_settings(run.settings)
        try:
            return await _usable(await _snapshot(run, outbound)).executor.execute(request)
        finally:
            await outbound.aclose()

    return anyio.run(send)


async def _snapshot(run: Run, outbound: Outbound) -> Snapshot:
    return await build_snapshot(
        run.settings, outbound=outbound, encoder=None, environ=os.environ, credentials=run.credentials
    )


def _usable(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot; raise the document's error where there is no operation at all."""
    from capdex_engine.errors import DocumentError

    empty = not snapshot.catalog.operations and not snapshot.catalog.kept_out
    for source, reason in snapshot.failures.items():
        if empty:
            raise DocumentError(reason, location=source)
    return snapshot

"""Catalogs and calls straight from the command line: no server, and no encoder loaded."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio

from capdex_engine.catalog import Catalog
from capdex_server.cli.options import Run
from capdex_server.cli.output import print_error, progress
from capdex_server.live import Snapshot, build_snapshot
from capdex_server.outbound import Outbound
from capdex_server.upstream.making import connected, upstreams_for


def load_snapshot(run: Run) -> Snapshot:
    """Return the run's catalog with what failed, without a searcher."""

    async def load() -> Snapshot:
        async with _snapshot(run) as snapshot:
            return snapshot

    return anyio.run(load)


def load_catalog(run: Run) -> tuple[Catalog, dict[str, dict[str, Any]]]:
    """Return the run's catalog, and source -> error object for every document that gave nothing."""
    snapshot = load_snapshot(run)
    return snapshot.catalog, failure_objects(snapshot)


def failure_objects(snapshot: Snapshot) -> dict[str, dict[str, Any]]:
    """Return source -> SPEC's error object."""
    return {source: error.payload() for source, error in snapshot.failures.items()}


def prepare(run: Run, request: Any, *, show_credentials: bool) -> dict[str, Any]:
    """Return the request that a call would send.

    Raises:
        CapdexError: The call's own, or the document's fault.
    """
    return _usable(run, load_snapshot(run)).executor.prepare(request, show_credentials=show_credentials)


def execute(run: Run, request: Any) -> dict[str, Any]:
    """Send one call and return its result.

    Raises:
        CapdexError: The call's own, or the document's fault.
    """

    async def send() -> dict[str, Any]:
        async with _snapshot(run) as snapshot:
            return await _usable(run, snapshot).executor.execute(request)

    return anyio.run(send)


@asynccontextmanager
async def _snapshot(run: Run) -> AsyncIterator[Snapshot]:
    """Yield the run's catalog; its connections last as long as the context."""
    outbound = Outbound.from_settings(run.settings)
    upstreams = upstreams_for(run.settings, os.environ)
    try:
        async with connected(upstreams):
            yield await build_snapshot(
                run.settings,
                outbound=outbound,
                encoder=None,
                environ=os.environ,
                credentials=run.credentials,
                upstreams=upstreams,
            )
    finally:
        await outbound.aclose()


def _usable(run: Run, snapshot: Snapshot) -> Snapshot:
    """Return the snapshot, having said what is amiss; raise the first error where there is no operation."""
    failures = list(snapshot.failures.values())
    empty = not snapshot.catalog.operations and not snapshot.catalog.kept_out
    for error in failures[1:] if empty else failures:
        print_error(error.payload(), as_json=False)
    if failures and empty:
        raise failures[0]
    for remark in _remarks(run, snapshot):
        progress(remark)
    return snapshot


def _remarks(run: Run, snapshot: Snapshot) -> list[str]:
    """Return what was set in vain; options hold for all documents, and one that uses them is enough."""
    if not run.credentials:
        return [f"{source}: {text}" for source, text in snapshot.remarks]
    used = {snapshot.owners[operation.source] for operation in snapshot.catalog.operations}
    by_subject: dict[str, list[str]] = {}
    for _, text in snapshot.remarks:
        by_subject.setdefault(text.partition(";")[0], []).append(text)
    return [texts[0] for texts in by_subject.values() if len(texts) >= len(used)]

"""All upstream MCP servers of a configuration, as the builder and the executor know them."""

from __future__ import annotations

import random
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from types import TracebackType
from typing import Any, Self

import anyio
from anyio.abc import TaskGroup

from capdex_engine.errors import DocumentError, UpstreamUnreachable
from capdex_server.addresses import Resolve, resolve
from capdex_server.config import Settings, SourceConfig
from capdex_server.pieces import ToolsPiece
from capdex_server.upstream.connecting import Secrets, connector
from capdex_server.upstream.kept import KeptTools
from capdex_server.upstream.session import Connect
from capdex_server.upstream.supervisor import Listing, Upstream

MakeConnect = Callable[[str, SourceConfig], Connect]


class Upstreams:
    """Connects to every configured MCP server while its context lasts; the engine's ``CallTool``.

    Args:
        settings: Sources, limits, the cache folder.
        environ: Where secrets are looked up, and what programs get some of.
        connect: ``(source, its configuration)`` -> what connects to it, in tests.
        resolver: ``(host, port) -> addresses``.
        clock, sleep, chance: The outside world.
    """

    def __init__(
        self,
        settings: Settings,
        environ: Mapping[str, str],
        *,
        connect: MakeConnect | None = None,
        resolver: Resolve = resolve,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[Any]] = anyio.sleep,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._settings = settings
        self._environ = environ
        self._made = connect
        self._resolver = resolver
        self._world = {"clock": clock, "sleep": sleep, "chance": chance}
        self._news: set[str] = set()
        self._new = anyio.Event()
        self._tasks: TaskGroup | None = None
        self.servers = {
            name: self._server(name, config)
            for name, config in settings.sources.items()
            if config.kind == "mcp"
        }
        """Source -> its server."""

    def _server(self, name: str, config: SourceConfig) -> Upstream:
        secrets = Secrets(name, config, self._environ)
        kept = KeptTools(self._settings.cache / "tools", name, config)
        refresh = config.refresh if "refresh" in config.model_fields_set else self._settings.reload.refresh
        connect = self._made(name, config) if self._made else self._connect(name, config, secrets)
        return Upstream(
            name,
            connect,
            refresh=refresh,
            kept=kept.read(),
            keep=kept.write,
            told=lambda: self._tell(name),
            masker=secrets.masker,
            **self._world,  # type: ignore[arg-type]
        )

    def _connect(self, name: str, config: SourceConfig, secrets: Secrets) -> Connect:
        most = self._settings.limits.max_response_bytes
        return connector(
            name, config, secrets, self._environ, max_response_bytes=most, resolver=self._resolver
        )

    async def __aenter__(self) -> Self:
        """Begin to connect."""
        self._tasks = await anyio.create_task_group().__aenter__()
        for server in self.servers.values():
            self._tasks.start_soon(server.run)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        """End every connection and every process."""
        assert self._tasks is not None  # noqa: S101 - entered
        self._tasks.cancel_scope.cancel()
        tasks, self._tasks = self._tasks, None
        if isinstance(error, anyio.get_cancelled_exc_class()):
            return await tasks.__aexit__(kind, error, trace)
        # What the block raised goes on as it is; the group would put it into a group.
        await tasks.__aexit__(None, None, None)
        return None

    async def __call__(
        self, tool: str, arguments: dict[str, Any], *, source: str, timeout: float
    ) -> dict[str, Any]:
        """Call a tool as :class:`capdex_engine.call.CallTool` says."""
        server = self.servers.get(source)
        if server is None:
            raise UpstreamUnreachable(f"There is no MCP server of {source}.")
        return await server.call(tool, arguments, timeout)

    async def page(self, name: str) -> ToolsPiece:
        """Return a server's tools once it has been tried.

        Raises:
            DocumentError: It has never given any.
        """
        await self.servers[name].tried.wait()
        return self.now(name)

    def now(self, name: str) -> ToolsPiece:
        """Return a server's tools as far as they are known.

        Raises:
            DocumentError: It has never given any.
        """
        listing = self.servers[name].listing
        if listing.data is None:
            raise DocumentError(_why(listing), location=f"mcp://{name}")
        return ToolsPiece(listing.data, down=listing.down, problem=listing.problem)

    async def changed(self) -> set[str]:
        """Return the sources with other tools or another state than when this last returned."""
        await self._new.wait()
        news, self._news, self._new = self._news, set(), anyio.Event()
        return news

    def _tell(self, name: str) -> None:
        self._news.add(name)
        self._new.set()

    def __iter__(self) -> Iterator[Upstream]:
        return iter(self.servers.values())


def _why(listing: Listing) -> str:
    return listing.down or "it has not listed its tools yet."

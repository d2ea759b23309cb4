"""``/readyz`` and the tools' texts tell a caller of nothing that its rules do not give it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest

from capdex_engine.errors import ConfigurationError
from capdex_server.app import create_app

CALLERS: dict[str, dict[str, Any]] = {
    "all": {},
    "orders": {"allow": [{"tag": "orders"}]},
    "mails": {"allow": [{"tag": "mails"}]},
}


async def readiness(live: Any, settings: Any) -> dict[str, Any]:
    transport = httpx2.ASGITransport(app=create_app(live, settings))
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as http:
        return {
            name: (await http.get("/readyz", headers={"Authorization": f"Bearer {name}-token"})).json()
            for name in CALLERS
        }


@pytest.mark.anyio
async def test_a_source_that_stays_as_it_was_is_known_to_those_who_use_it(
    make_settings: Callable[..., Any], make_live: Callable[..., Any], documents: Path
) -> None:
    settings = make_settings(CALLERS)
    live = make_live(settings)
    await live.reload()
    (documents / "shop.json").write_text("{")
    await live.reload()
    told = await readiness(live, settings)
    assert set(told["all"]["reasons"]) == set(told["orders"]["reasons"]) == {"shop"}
    assert "reasons" not in told["mails"]
    assert [told[name]["operations"] for name in CALLERS] == [5, 3, 0]
    assert len({told[name]["revision"] for name in CALLERS}) == 3


@pytest.mark.anyio
async def test_why_no_catalog_could_be_built_is_told_to_who_may_know_all(
    make_settings: Callable[..., Any], make_live: Callable[..., Any]
) -> None:
    settings = make_settings(CALLERS)
    live = make_live(settings)
    await live.reload()

    async def build(_: object) -> Any:
        raise ConfigurationError("sources.mail.credentials: MAIL_KEY is not set")

    live.build = build
    await live.reload()
    told = await readiness(live, settings)
    assert "MAIL_KEY" in told["all"]["reasons"]["catalog"]
    assert "mail" not in str(told["orders"]).lower()
    assert told["orders"]["status"] == "degraded"

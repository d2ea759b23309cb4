from __future__ import annotations

import hashlib

import pytest
from mcp.server.auth.middleware.auth_context import auth_context_var
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser

from capdex_engine.errors import ConfigurationError
from capdex_server.callers import LOCAL, Callers, is_loopback
from capdex_server.config import CallerConfig, Settings


def configured(name: str, token: str, **fields) -> CallerConfig:
    digest = hashlib.sha256(token.encode()).hexdigest()
    return CallerConfig(name=name, tenant="acme", token_sha256=digest, **fields)


TWO = Settings(
    host="0.0.0.0", callers=(configured("a", "alpha"), configured("b", "beta", scopes=frozenset({"search"})))
)


def test_a_token_is_known_by_its_hash():
    callers = Callers(TWO)
    assert [callers.authenticate(token).name for token in ("alpha", "beta")] == ["a", "b"]
    assert callers.authenticate("gamma") is None
    assert callers.authenticate("") is None
    assert callers.authenticate("\udcff") is None


@pytest.mark.anyio
async def test_mcp_gets_scopes_and_tenant_but_not_the_token():
    access = await Callers(TWO).verify_token("beta")
    assert (access.client_id, access.subject, access.scopes, access.token) == ("b", "acme", ["search"], "")
    assert await Callers(TWO).verify_token("wrong") is None


@pytest.mark.anyio
async def test_the_current_caller_is_that_of_the_request():
    callers = Callers(TWO)
    token = auth_context_var.set(AuthenticatedUser(await callers.verify_token("beta")))
    try:
        assert callers.current().name == "b"
    finally:
        auth_context_var.reset(token)


def test_without_a_token_there_is_no_caller_when_some_are_configured():
    callers = Callers(TWO)
    assert callers.anonymous is None
    with pytest.raises(LookupError):
        callers.current()


def test_without_callers_everybody_here_is_the_local_one():
    callers = Callers(Settings())
    assert callers.anonymous is LOCAL
    assert callers.current() is LOCAL


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.2", "example.com", ""])
def test_without_callers_only_loopback_may_be_served(host):
    with pytest.raises(ConfigurationError):
        Callers(Settings(host=host))


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.9.9.9", "::1", "[::1]", "::ffff:127.0.0.1"])
def test_loopback_is_recognised_in_every_form(host):
    assert is_loopback(host)
    Callers(Settings(host=host))


@pytest.mark.parametrize("host", [None, "", "10.0.0.1", "localhost.evil.example", "::ffff:10.0.0.1"])
def test_other_hosts_are_not_loopback(host):
    assert not is_loopback(host)

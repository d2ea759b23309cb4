from __future__ import annotations

from pathlib import Path

import pytest

from capdex_engine.errors import ConfigurationError
from capdex_server.config import load_settings
from capdex_server.quota_text import shown, windows
from capdex_server.quotas import Quotas

SECRET = "s3cret-value-nobody-may-see"
CALLER = f"""
[[callers]]
name = "bot"
tenant = "acme"
token_sha256 = "{"0" * 64}"
"""


def load(folder: Path, text: str, environ: dict[str, str] | None = None):
    path = folder / "capdex.toml"
    path.write_text(text)
    return load_settings(path, environ or {})


def refused(folder: Path, text: str, environ: dict[str, str] | None = None) -> str:
    with pytest.raises(ConfigurationError) as caught:
        load(folder, text, environ)
    assert SECRET not in caught.value.message
    return caught.value.message


def test_without_a_table_nothing_is_limited():
    quotas = load_settings(None, {}).quotas
    assert (quotas.backend, quotas.search, quotas.execute, quotas.capability) == ("memory", None, None, ())


def test_everything_in_the_table_is_read(tmp_path):
    (tmp_path / "password").write_text(SECRET)
    quotas = load(
        tmp_path,
        f"""
        [quotas]
        backend = "rediss://capdex@cache.example:6380/2"
        password_file = "password"
        when_unreachable = "allow"
        search = "100/minute; 2000/day"
        execute = "60 per minute"
        [quotas.tenants.acme]
        execute = "OFF"
        [[quotas.capability]]
        tenant = "acme"
        source = "github"
        readOnly = true
        limit = "off"
        [[quotas.capability]]
        name = ["github.*", "jira.*"]
        limit = "10 per 5 minutes"
        {CALLER}
        """,
    ).quotas
    assert quotas.password_file == tmp_path / "password"
    assert quotas.when_unreachable == "allow"
    assert quotas.tenants["acme"].execute == "off"
    assert [one.limit for one in quotas.capability] == ["off", "10 per 5 minutes"]
    assert quotas.capability[0].read_only is True


def test_the_environment_sets_quotas_too(tmp_path):
    quotas = load(tmp_path, "", {"CAPDEX_QUOTAS__SEARCH": "5/second"}).quotas
    assert quotas.search == "5/second"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("100/minute", ["100/minute"]),
        ("2000/day;100/minute", ["100/minute", "2000/day"]),
        ("1 per 2 hours, 5 PER Day | 9/month", ["1/2hours", "5/day", "9/month"]),
        ("10per 1 year", ["10/year"]),
        ("off", []),
        (None, []),
    ],
)
def test_limits_are_read_with_the_shortest_window_first(text, expected):
    assert [shown(window) for window in windows(text)] == expected


@pytest.mark.parametrize(
    "limit",
    [
        *("", "many", "100", "100/", "/minute", "100/fortnight", "0/minute", "-1/minute", "1.5/minute"),
        *("100/0minutes", "1000000/day", "100/minute;", "100/minute;x", "1/minute and 5/hour", "10/minute:"),
    ],
)
@pytest.mark.parametrize(
    "key", ["quotas.search", "quotas.tenants.local.execute", "quotas.capability[0].limit"]
)
def test_a_limit_that_cannot_be_read_is_refused_at_the_start(tmp_path, limit, key):
    table = "[quotas]\n" if key == "quotas.search" else "[quotas.tenants.local]\n"
    table = "[[quotas.capability]]\n" if key.endswith("limit") else table
    message = refused(tmp_path, f'{table}{key.rpartition(".")[2]} = "{limit}"')
    assert key in message


@pytest.mark.parametrize(
    "backend",
    [
        *("", "redis", "memory://", "redis://", "redis:///0", "http://cache:6379", "redis://cache:x"),
        *("redis://cache:6379/zero", "redis://cache:0", "redis://cache?db=1", "redis://cache/1/2"),
        *(f"redis://:{SECRET}@cache", f"redis://cache?password={SECRET}"),
    ],
)
def test_a_backend_that_is_none_or_holds_the_password_is_refused(tmp_path, backend):
    assert "quotas.backend" in refused(tmp_path, f'[quotas]\nbackend = "{backend}"')


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ('[quotas]\nbackend = "redis://c"\npassword_env = "A"\npassword_file = "b"', "quotas"),
        ('[quotas]\npassword_env = "A"', "quotas.password_env"),
        ('[quotas]\nbackend = "redis://c"\npassword_file = "absent"', "quotas.password_file"),
        (f'{CALLER}[quotas.tenants.amce]\nsearch = "1/day"', "quotas.tenants.amce"),
        (f'{CALLER}[[quotas.capability]]\ntenant = "x"\nlimit = "1/day"', "quotas.capability[0].tenant"),
        ('[[quotas.capability]]\nname = "x"', "quotas.capability[0].limit"),
        ('[[quotas.capability]]\nnmae = "x"\nlimit = "1/day"', "quotas.capability[0].nmae"),
        ('[quotas]\nwhen_unreachable = "open"', "quotas.when_unreachable"),
        ("[quotas]\ntimeout = 0", "quotas.timeout"),
    ],
)
def test_each_mistake_names_its_key(tmp_path, text, key):
    assert key in refused(tmp_path, text)


def test_without_callers_the_local_tenant_can_have_quotas(tmp_path):
    assert load(tmp_path, '[quotas.tenants.local]\nsearch = "1/day"').quotas.tenants


@pytest.mark.parametrize("content", [None, b"", b"\xff"])
def test_a_password_that_is_not_there_is_refused_at_the_start(tmp_path, content):
    where = 'password_env = "CACHE_PASSWORD"'
    if content is not None:
        (tmp_path / "password").write_bytes(content)
        where = 'password_file = "password"'
    settings = load(tmp_path, f'[quotas]\nbackend = "redis://cache"\n{where}')
    with pytest.raises(ConfigurationError) as caught:
        Quotas.from_settings(settings.quotas, {})
    assert where.partition(" ")[0] in caught.value.message


def test_without_the_client_the_line_to_type_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "valkey.asyncio", None)
    settings = load(tmp_path, '[quotas]\nbackend = "redis://cache"')
    with pytest.raises(ConfigurationError) as caught:
        Quotas.from_settings(settings.quotas, {})
    assert "capdex[redis]" in caught.value.message

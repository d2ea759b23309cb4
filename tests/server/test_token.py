from __future__ import annotations

import hashlib
import re
import tomllib
from datetime import UTC, datetime, timedelta

import pytest
from typer.testing import CliRunner

from capdex_engine.errors import ConfigurationError
from capdex_server.callers import Callers
from capdex_server.cli import app
from capdex_server.config import CallerConfig, Settings, load_settings

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def new(*options: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["token", "new", *options])
    return result.exit_code, result.stdout, result.stderr


def hash_of(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def callers(now: datetime = NOON, **fields: object) -> Callers:
    config = CallerConfig.model_validate({"name": "bot", "tenant": "acme", **fields})
    return Callers(Settings(callers=(config,)), now=lambda: now)


def test_the_token_alone_is_on_standard_output_and_its_hash_beside_it():
    code, out, said = new()
    token = out.strip()
    assert code == 0 and re.fullmatch(r"capdex_[A-Za-z0-9_-]{43}", token)
    assert token not in said and hash_of(token) in said


def test_no_two_tokens_are_alike():
    assert new()[1] != new()[1]


def test_the_table_is_what_the_configuration_takes(tmp_path):
    options = ["--name", 'the "bot" \\ ü', "--tenant", "acme", "--scopes", "search", "--expires", "90d"]
    _, out, said = new(*options)
    (tmp_path / "capdex.toml").write_text(said)
    (config,) = load_settings(tmp_path / "capdex.toml", {}).callers
    assert (config.name, config.tenant, config.scopes) == ('the "bot" \\ ü', "acme", {"search"})
    assert timedelta(days=89) < config.expires - datetime.now(UTC) <= timedelta(days=90, seconds=1)
    assert Callers(Settings(callers=(config,))).authenticate(out.strip()).name == config.name


def test_the_table_allows_reading_alone_until_someone_widens_it():
    (caller,) = tomllib.loads(new()[2])["callers"]
    assert caller["allow"] == [{"readOnly": True}] and "expires" not in caller and "scopes" not in caller


@pytest.mark.parametrize(
    "options",
    [
        ["--scopes", "admin"],
        ["--scopes", ""],
        ["--expires", "soon"],
        ["--expires", "0d"],
        ["--expires", "2020-01-01"],
        ["--expires", "999999999w"],
        ["--name", ""],
        ["--name", "a\nb"],
        ["--tenant", "x" * 101],
    ],
)
def test_wrong_usage_prints_no_token(options):
    code, out, said = new(*options)
    assert (code, out) == (2, "") and options[0] in said


def test_a_token_is_valid_until_it_expires():
    for moment, valid in ((NOON - SECOND, True), (NOON, False), (NOON + SECOND, False)):
        known = callers(moment, token_sha256=hash_of("t"), expires=NOON)
        assert (known.authenticate("t") is not None) == valid


def test_two_tokens_are_valid_while_one_replaces_the_other():
    hashes = [{"sha256": hash_of("old"), "expires": NOON}, hash_of("new")]
    before, after = (callers(NOON + delta, token_sha256=hashes) for delta in (-SECOND, SECOND))
    assert [bool(before.authenticate(token)) for token in ("old", "new", "other")] == [True, True, False]
    assert [bool(after.authenticate(token)) for token in ("old", "new", "other")] == [False, True, False]


def test_a_tokens_own_end_wins_over_the_callers():
    hashes = [{"sha256": hash_of("long"), "expires": NOON + 2 * SECOND}, hash_of("short")]
    known = callers(NOON + SECOND, token_sha256=hashes, expires=NOON)
    assert known.authenticate("long") and not known.authenticate("short")


def test_an_expired_caller_does_not_open_the_server_to_everyone():
    known = callers(NOON, token_sha256=hash_of("t"), expires=NOON)
    assert known.anonymous is None


def test_tokens_that_expire_soon_are_named():
    hashes = [
        {"sha256": hash_of("gone"), "expires": NOON - SECOND},
        {"sha256": hash_of("soon"), "expires": NOON + timedelta(days=6)},
        {"sha256": hash_of("later"), "expires": NOON + timedelta(days=8)},
        hash_of("never"),
    ]
    found = list(callers(NOON, token_sha256=hashes).expiring())
    assert found == [("bot", "2026-01-31T11:59:59+00:00"), ("bot", "2026-02-06T12:00:00+00:00")]


@pytest.mark.parametrize("tokens", [0, 1, 2, 7])
def test_every_token_is_compared_with_every_hash(monkeypatch, tokens):
    from capdex_server import callers as module

    compared = []

    def compare(expected: bytes, given: bytes) -> bool:
        compared.append((expected, given))
        return expected == given

    hashes = [hash_of(f"t{number}") for number in range(8)]
    hashes[3] = {"sha256": hashes[3], "expires": NOON}
    known = callers(token_sha256=hashes)
    monkeypatch.setattr(module.hmac, "compare_digest", compare)
    for token in (f"t{tokens}", "wrong", "", "t3", "\udcff", "x" * 1_000_000):
        compared.clear()
        known.authenticate(token)
        assert len(compared) == 8
        assert {len(given) for _, given in compared} == {32}
        assert len({given for _, given in compared}) == 1


TABLE = "[[callers]]\nname = 'a'\ntenant = 't'\n"


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("token_sha256 = []", ["callers[0].token_sha256"]),
        ("token_sha256 = 'x'", ["64 hexadecimal"]),
        (f"token_sha256 = ['{'0' * 64}', 'x']", ["token_sha256[1]", "64 hexadecimal"]),
        (f"token_sha256 = ['{'0' * 64}', '{'0' * 64}']", ["token_sha256"]),
        (f"token_sha256 = {{ sha256 = '{'0' * 64}', expire = 1 }}", ["expires"]),
        (f"token_sha256 = '{'0' * 64}'\nexpires = 2026-12-31", ["callers[0].expires", "zone"]),
        (f"token_sha256 = '{'0' * 64}'\nexpires = 2026-12-31T00:00:00", ["zone"]),
        (f"token_sha256 = '{'0' * 64}'\nexpires = 'never'", ["callers[0].expires"]),
    ],
)
def test_a_mistake_is_named(tmp_path, text, named):
    (tmp_path / "capdex.toml").write_text(TABLE + text)
    with pytest.raises(ConfigurationError) as caught:
        load_settings(tmp_path / "capdex.toml", {})
    assert all(part in caught.value.message for part in named), caught.value.message

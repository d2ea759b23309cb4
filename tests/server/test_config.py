from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from capdex_engine.errors import ConfigurationError
from capdex_server.config import Settings, load_settings, sources_for, with_options

HASH = hashlib.sha256(b"token").hexdigest()
SECRET = "s3cret-value-nobody-may-see"


def write(folder: Path, text: str) -> Path:
    (folder / "api.json").write_text("{}")
    path = folder / "capdex.toml"
    path.write_text(text)
    return path


def refused(folder: Path, text: str, environ: dict[str, str] | None = None) -> str:
    with pytest.raises(ConfigurationError) as caught:
        load_settings(write(folder, text), environ or {})
    assert SECRET not in caught.value.message
    assert SECRET not in repr(caught.value.__cause__)
    return caught.value.message


def test_defaults_serve_loopback_without_a_file():
    settings = load_settings(None, {})
    assert (settings.host, settings.sources, settings.callers) == ("127.0.0.1", {}, ())
    assert settings.limits.max_response_bytes == 4 * 1024 * 1024


def test_everything_in_a_file_is_read(tmp_path):
    (tmp_path / "key").write_text("abc")
    settings = load_settings(
        write(
            tmp_path,
            f"""
            port = 9000
            allowed_hosts = "capdex.example"
            [limits]
            timeout = 5
            [sources.shop]
            location = "api.json"
            server = "https://shop.example/v1"
            include = ["tag:public*", "path:/x/*"]
            security = [{{ key = [] }}, {{}}]
            [sources.shop.security_schemes.key]
            type = "apiKey"
            in = "header"
            name = "X-Key"
            [sources.shop.credentials.key]
            file = "key"
            [sources.shop.overrides."GET /x"]
            keywords = ["ex"]
            [[callers]]
            name = "bot"
            tenant = "acme"
            token_sha256 = "{HASH.upper()}"
            scopes = ["search"]
            allow = [{{ source = "shop", readOnly = true }}]
            """,
        ),
        {},
    )
    shop = settings.sources["shop"]
    assert shop.location == str(tmp_path / "api.json")
    assert shop.credentials["key"].file == tmp_path / "key"
    assert shop.security == ({"key": ()}, {})
    assert shop.security_schemes["key"].location == "header"
    assert [token.sha256 for token in settings.callers[0].token_sha256] == [HASH]
    assert settings.callers[0].allow[0].read_only is True
    assert settings.allowed_hosts == ("capdex.example",)


def test_the_environment_wins_key_by_key(tmp_path):
    path = write(tmp_path, "port = 9000\n[limits]\ntimeout = 5\nmax_answer_bytes = 2048\n")
    settings = load_settings(path, {"CAPDEX_PORT": "9100", "CAPDEX_LIMITS__TIMEOUT": "7"})
    assert (settings.port, settings.limits.timeout, settings.limits.max_answer_bytes) == (9100, 7.0, 2048)


def test_constructing_settings_reads_no_environment(monkeypatch):
    monkeypatch.setenv("CAPDEX_PORT", "1")
    assert Settings().port == 8000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("prot = 1", ["prot", "'port'"]),
        ("port = 'many'", ["port", "integer"]),
        ("port = 99999", ["port", "65535"]),
        ("[limits]\ntimeout = 0", ["limits.timeout"]),
        ("[sources.x]\nlocation = 'api.json'\nservr = 'http://a'", ["sources.x.servr", "'server'"]),
        ("[sources.' ']\nlocation = 'api.json'", ["printable"]),
        ("[sources.x]\nkind = 'openapi'", ["sources.x.location", "missing"]),
        ("[sources.x]\nlocation = 'api.json'\nkind = 'soap'", ["sources.x.kind", "openapi"]),
        ("[sources.x]\nlocation = 'none.json'", ["sources.x.location", "none.json"]),
        ("[sources.x]\nlocation = 'api.json'\nserver = '/v1'", ["sources.x.server", "https://"]),
        ("[sources.x]\nlocation = 'api.json'\n[sources.x.credentials.k]", ["sources.x.credentials.k"]),
        (
            "[sources.x]\nlocation = 'api.json'\n[sources.x.credentials.k]\nuser_env = 'U'",
            ["sources.x.credentials.k", "password_env"],
        ),
        (
            "[sources.x]\nlocation = 'api.json'\n[sources.x.credentials.k]\nfile = 'gone'",
            ["sources.x.credentials.k.file", "gone"],
        ),
        (
            "[sources.x]\nlocation = 'api.json'\ntenant_credentials.acme.k.env = 'K'",
            ["sources.x.tenant_credentials.acme", "no caller"],
        ),
        (
            "[sources.x]\nlocation = 'api.json'\ntenant_credentials.acme.k = {}",
            ["sources.x.tenant_credentials.acme.k", "env"],
        ),
        (
            "[sources.x]\nlocation = 'api.json'\ncredentials.k = {user_env='U', password_env='P', scope='c'}",
            ["sources.x.credentials.k", "OAuth2"],
        ),
        (
            "[sources.x]\nlocation = 'api.json'\ncredentials.k = {env = 'E', token_auth = 'private_key_jwt'}",
            ["sources.x.credentials.k.token_auth", "client_secret_post"],
        ),
        (
            "[sources.x]\nlocation = 'api.json'\n[sources.x.security_schemes.k]\ntype = 'apiKey'\nname = 'k'",
            ["sources.x.security_schemes.k.in"],
        ),
        (
            f"[[callers]]\nname = 'a'\ntenant = 't'\ntoken_sha256 = '{SECRET}'",
            ["callers[0].token_sha256", "64"],
        ),
        (
            f"[[callers]]\nname = 'a'\ntenant = 't'\ntoken_sha256 = '{HASH}'\ntoken = '{SECRET}'",
            ["callers[0].token", "token_sha256"],
        ),
        (
            f"[[callers]]\nname = 'a'\ntenant = 't'\ntoken_sha256 = '{HASH}'\nallow = [{{ tags = 'x' }}]",
            ["callers[0].allow[0].tags", "'tag'"],
        ),
        (
            f"[[callers]]\nname = 'a'\ntenant = 't'\ntoken_sha256 = '{HASH}'\n" * 2,
            ["callers", "name"],
        ),
        ("port = 'x", ["TOML"]),
    ],
)
def test_a_mistake_names_file_and_key_and_what_is_right(tmp_path, text, expected):
    message = refused(tmp_path, text)
    assert "capdex.toml" in message
    for part in expected:
        assert part in message


def test_all_mistakes_are_told_at_once(tmp_path):
    assert refused(tmp_path, "prot = 1\nport = 'x'").count("\n") == 1


def test_options_of_a_command_line_are_checked_like_settings():
    settings = load_settings(None, {})
    assert with_options(settings, port=1, read_only=True).read_only
    for port in (99999, -1):
        with pytest.raises(ConfigurationError) as caught:
            with_options(settings, port=port)
        assert "port" in caught.value.message


def test_without_its_sources_the_rest_of_a_file_counts(tmp_path):
    path = write(tmp_path, 'port = 9000\n[sources.gone]\nlocation = "gone.json"')
    environ = {"CAPDEX_SOURCES__ALSO__LOCATION": "gone.json"}
    settings = load_settings(path, environ, with_sources=False)
    assert (settings.port, settings.sources) == (9000, {})


def test_a_missing_file_is_a_configuration_error(tmp_path):
    with pytest.raises(ConfigurationError) as caught:
        load_settings(tmp_path / "capdex.toml", {})
    assert "capdex.toml" in caught.value.message


def test_text_that_is_no_utf8_is_a_configuration_error(tmp_path):
    path = tmp_path / "capdex.toml"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigurationError):
        load_settings(path, {})


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"CAPDEX_PORT": SECRET}, "environment: port"),
        ({"CAPDEX_CALLERS": f"[{SECRET}"}, "CAPDEX_CALLERS"),
        ({"CAPDEX_LIMITS__TIMOUT": "3"}, "environment: limits.timout"),
    ],
)
def test_a_mistake_in_the_environment_says_so(tmp_path, environ, expected):
    assert expected in refused(tmp_path, "", environ)


def test_documents_of_a_command_line_are_named_like_their_files(tmp_path):
    path = tmp_path / "slack.web.swagger2.json"
    path.write_text("{}")
    sources = sources_for([str(path), "https://a.example/api/shop.yaml?v=1"], server="https://b.example")
    assert list(sources) == ["slack.web.swagger2", "shop"]
    assert sources["shop"].server == "https://b.example"


def test_two_documents_of_one_name_are_refused(tmp_path):
    (tmp_path / "a.json").write_text("{}")
    with pytest.raises(ConfigurationError):
        sources_for([str(tmp_path / "a.json")] * 2)


def test_a_document_of_a_command_line_must_exist(tmp_path):
    with pytest.raises(ConfigurationError):
        sources_for([str(tmp_path / "gone.json")])


@pytest.mark.parametrize(
    ("text", "seconds"),
    [('"90s"', 90.0), ('"5m"', 300.0), ('"1.5h"', 5400.0), ("30", 30.0), ('"OFF"', None), ('"1d"', 86400.0)],
)
def test_times_are_written_with_a_unit_or_off(tmp_path, text, seconds):
    path = tmp_path / "capdex.toml"
    path.write_text(f"[reload]\nrefresh = {text}\n")
    assert load_settings(path, {}).reload.refresh == seconds


def test_a_source_has_its_own_interval_or_the_default_and_files_have_none(tmp_path):
    path = tmp_path / "capdex.toml"
    (tmp_path / "c.json").write_text("{}")
    urls = "\n".join(
        f'[sources.{name}]\nlocation = "https://a.example/{name}"\n{line}'
        for name, line in (("a", ""), ("b", 'refresh = "1h"'), ("d", 'refresh = "off"'))
    )
    path.write_text(f'{urls}\n[sources.c]\nlocation = "c.json"\n')
    sources = load_settings(path, {}).sources
    assert {name: one.polled(300.0) for name, one in sources.items()} == {
        "a": 300.0,
        "b": 3600.0,
        "d": None,
        "c": None,
    }


@pytest.mark.parametrize(
    ("lines", "key"),
    [
        ('[reload]\nrefresh = "soon"', "reload.refresh"),
        ("[reload]\nrefresh = 0.1", "reload.refresh"),
        ("[documents]\nmax_files = -1", "documents.max_files"),
        ("[documents]\nmax_byte = 1", "max_bytes"),
        ('[sources.a]\nlocation = "x.json"\nreference_roots = ["gone"]', "sources.a.reference_roots"),
        (
            '[sources.a]\nlocation = "https://a.example"\nreference_roots = ["."]',
            "sources.a.reference_roots",
        ),
        *(
            (
                f'[sources.a]\nlocation = "x.json"\nreference_origins = ["{origin}"]',
                "sources.a.reference_origins",
            )
            for origin in (
                "schemas.example.com",
                "https://*.example.com",
                "https://a.example/x",
                "https://u@a.example",
            )
        ),
        ('[sources.a]\nlocation = "x.json"\nrefresh = "1x"', "sources.a.refresh"),
    ],
)
def test_mistakes_in_reading_and_reloading_name_their_key(tmp_path, lines, key):
    path = tmp_path / "capdex.toml"
    (tmp_path / "x.json").write_text("{}")
    path.write_text(lines)
    with pytest.raises(ConfigurationError) as caught:
        load_settings(path, {})
    assert key in caught.value.message


def test_roots_are_relative_to_the_file_that_names_them(tmp_path):
    (tmp_path / "common").mkdir()
    (tmp_path / "x.json").write_text("{}")
    path = tmp_path / "capdex.toml"
    path.write_text('[sources.a]\nlocation = "x.json"\nreference_roots = "common"\n')
    assert load_settings(path, {}).sources["a"].reference_roots == (tmp_path / "common",)


def test_files_of_tenants_are_relative_to_the_configuration_too(tmp_path):
    (tmp_path / "key").write_text("abc")
    text = f"""
        [sources.shop]
        location = "api.json"
        tenant_credentials.acme.key.file = "key"
        [[callers]]
        name = "bot"
        tenant = "acme"
        token_sha256 = "{HASH}"
        """
    settings = load_settings(write(tmp_path, text), {})
    assert settings.sources["shop"].tenant_credentials["acme"]["key"].file == tmp_path / "key"

"""Sources of kind mcp in the configuration: what is right, and what each mistake is told as."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from capdex_engine.errors import ConfigurationError
from capdex_server.config import Settings, load_settings
from capdex_server.mcp_config import MissingSecret, SecretConfig, read_secret
from capdex_server.outbound import configured_origins
from capdex_server.upstream.connecting import Secrets
from capdex_server.upstream.kept import KeptTools
from capdex_server.upstream.stdio import environment


def loaded(folder: Path, text: str) -> Settings:
    path = folder / "capdex.toml"
    path.write_text(f'[sources.odd]\nkind = "mcp"\n{text}\n')
    return load_settings(path, {})


def test_a_command_runs_in_the_configurations_folder_and_its_files_are_relative_to_it(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("  s3cret\n")
    text = 'command = "server"\nargs = ["--fast"]\nenv = { A = "1", B = { file = "key" } }\ninherit = "LANG"'
    source = loaded(tmp_path, text).sources["odd"]
    assert (source.location, source.command, source.args) == ("mcp://odd", ("server",), ("--fast",))
    assert (source.cwd, source.inherit, source.is_url, source.is_remote) == (tmp_path, ("LANG",), False, True)
    secrets = Secrets("odd", source, {})
    assert secrets.env() == {"A": "1", "B": "s3cret"}
    assert secrets.masker().text("a s3cret") == "a ***"


def test_a_url_is_an_origin_that_may_be_private_and_its_token_a_header(tmp_path: Path) -> None:
    text = 'url = "http://127.0.0.1:9/mcp"\ntoken = { env = "T" }\nheaders = { X-Team = "a" }'
    source = loaded(tmp_path, text).sources["odd"]
    assert configured_origins(source) == {("127.0.0.1", 9)}
    secrets = Secrets("odd", source, {"T": "tok3n-value"})
    assert secrets.headers() == {"X-Team": "a", "Authorization": "Bearer tok3n-value"}
    assert secrets.masker().text("tok3n-value") == "***"


def test_a_source_can_come_from_the_environment_alone() -> None:
    environ = {"CAPDEX_SOURCES": json.dumps({"odd": {"kind": "mcp", "command": ["a", "b"]}})}
    assert load_settings(None, environ).sources["odd"].location == "mcp://odd"


@pytest.mark.parametrize(
    ("text", "key", "said"),
    [
        ("", "sources.odd", "either command"),
        ('command = "a"\nurl = "https://a.example/mcp"', "sources.odd", "either command"),
        ('command = [""]', "command", "program"),
        ('command = "a"\nlocation = "b.json"', "location", "is not for"),
        ('command = "a"\nserver = "https://a.example"', "server", "is not for"),
        ('command = "a"\ncredentials = { k = { env = "A" } }', "credentials", "is not for"),
        (
            'command = "a"\ntenant_credentials = { t = { k = { env = "A" } } }',
            "tenant_credentials",
            "is not for",
        ),
        ('command = "a"\ntoken = { env = "A" }', "token", "url"),
        ('command = "a"\nheaders = { A = "b" }', "headers", "url"),
        ('command = "a"\ncwd = "missing"', "cwd", "no folder"),
        ('command = "a"\nenv = { "A=B" = "c" }', "env", "name of a variable"),
        ('command = "a"\nenv = { A = { file = "missing" } }', "env.A.file", "no file"),
        ('command = "a"\nenv = { A = { } }', "env.A", "one of env or file"),
        ('command = "a"\nenv = { A = { env = "B", file = "c" } }', "env.A", "one of env or file"),
        ('command = "a"\nenv = { A = 1 }', "env.A", ""),
        ('command = "a"\nstart_timeout = 0', "start_timeout", "greater than 0"),
        ('url = "ftp://a.example"', "url", "http"),
        ('url = "https://user:pass@a.example/mcp"', "url", "without user"),
        ('url = "https://a.example/mcp"\nargs = ["b"]', "args", "command"),
        ('url = "https://a.example/mcp"\nenv = { A = "b" }', "env", "command"),
        (
            'url = "https://a.example/mcp"\nheaders = { Authorization = "Bearer hunter2-x" }',
            "headers",
            "secret",
        ),
        ('url = "https://a.example/mcp"\nheaders = { X-Api-Key = "hunter2-x" }', "headers", "secret"),
        ('url = "https://a.example/mcp"\nheaders = { Host = "b" }', "headers.Host", "cannot be set"),
        (
            'url = "https://a.example"\ntoken = { env = "A" }\nheaders = { Authorization = { env = "B" } }',
            "sources.odd",
            "not both",
        ),
        ('comand = "a"', "comand", "did you mean 'command'"),
    ],
)
def test_each_mistake_names_its_key_and_shows_no_secret(
    tmp_path: Path, text: str, key: str, said: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        loaded(tmp_path, text)
    assert key in caught.value.message and said in caught.value.message
    assert "hunter2" not in caught.value.message


def test_what_is_for_tools_is_refused_for_documents(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("{}")
    path = tmp_path / "capdex.toml"
    path.write_text('[sources.odd]\nlocation = "a.json"\ncommand = "b"\n')
    with pytest.raises(ConfigurationError, match=r"sources\.odd\.command: is for sources of kind"):
        load_settings(path, {})


def test_a_program_gets_the_few_variables_that_all_need_and_those_that_are_named() -> None:
    environ = {"PATH": "/bin", "HOME": "/h", "AWS_SECRET": "x", "LANG": "C", "CAPDEX_CREDENTIAL_A_B": "y"}
    assert environment({"A": "1", "HOME": "/other"}, ["LANG", "MISSING"], environ) == {
        "PATH": "/bin",
        "HOME": "/other",
        "LANG": "C",
        "A": "1",
    }


@pytest.mark.parametrize("where", [SecretConfig(env="MISSING"), SecretConfig(file=Path("/no/such/file"))])
def test_a_secret_that_is_missing_is_told_by_its_key(where: SecretConfig) -> None:
    with pytest.raises(MissingSecret, match=r"^sources\.odd\.token: "):
        read_secret(where, {}, "sources.odd.token")


def test_a_secret_that_no_header_can_hold_is_told(tmp_path: Path) -> None:
    source = loaded(tmp_path, 'url = "https://a.example/mcp"\ntoken = { env = "T" }').sources["odd"]
    with pytest.raises(MissingSecret, match="no header"):
        Secrets("odd", source, {"T": "a\nb"}).headers()


def test_a_rotated_secret_is_used_at_once_and_the_old_one_stays_masked(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("old-value-1")
    source = loaded(tmp_path, 'url = "https://a.example/mcp"\ntoken = { file = "token" }').sources["odd"]
    secrets = Secrets("odd", source, {})
    secrets.headers()
    file.write_text("new-value-2")
    assert secrets.headers() == {"Authorization": "Bearer new-value-2"}
    assert secrets.masker().text("old-value-1 new-value-2") == "*** ***"


def test_kept_tools_belong_to_one_command_and_a_damaged_file_is_none(tmp_path: Path) -> None:
    one = loaded(tmp_path, 'command = ["a", "b"]').sources["odd"]
    other = loaded(tmp_path, 'command = ["a", "c"]').sources["odd"]
    kept = KeptTools(tmp_path / "tools", "odd", one)
    data = b'{"server":{},"tools":[],"quarantine":[]}'
    kept.write(data)
    assert kept.read() == data
    assert KeptTools(tmp_path / "tools", "odd", other).read() is None
    assert KeptTools(tmp_path / "tools", "even", one).read() is None
    kept.write(b"{")
    assert kept.read() is None


def test_a_disk_that_takes_nothing_costs_nothing(tmp_path: Path) -> None:
    (tmp_path / "tools").write_text("a file where the folder should be")
    source: Any = loaded(tmp_path, 'command = "a"').sources["odd"]
    KeptTools(tmp_path / "tools", "odd", source).write(b"{}")

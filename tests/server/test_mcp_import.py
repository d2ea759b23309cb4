"""A client's block of MCP servers becomes sources; its secrets stay where they are."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from capdex_engine.errors import ConfigurationError
from capdex_server.cli import app
from capdex_server.config import load_settings
from capdex_server.mcp_import import PLACEHOLDER, import_block, read_block

SECRET = "hunter2-hunter2"


def sources(block: dict[str, Any]) -> dict[str, Any]:
    imported = import_block(block)
    assert SECRET not in imported.toml + str(imported)
    found: dict[str, Any] = tomllib.loads(imported.toml).get("sources", {})
    return found


@pytest.mark.parametrize(
    "shape",
    [
        lambda block: {"mcpServers": block},
        lambda block: {"servers": block, "inputs": []},
        lambda block: {"mcp": {"servers": block}},
        lambda block: {"theme": "dark", "mcpServers": block},
    ],
    ids=["claude and cursor", "vs code", "vs code's settings", "beside others"],
)
def test_a_block_is_found_in_the_files_of_several_clients(shape: Any) -> None:
    block = {"files": {"command": "npx", "args": ["-y", "server", "/data"]}}
    assert read_block(json.dumps(shape(block))) == block
    assert sources(block) == {"files": {"kind": "mcp", "command": ["npx", "-y", "server", "/data"]}}


def test_comments_and_trailing_commas_are_read_over_but_not_inside_texts() -> None:
    text = '{ // mine\n "mcpServers": { /* all */ "a": {"url": "https://a.example/x,]//y", }, }, }'
    assert read_block(text) == {"a": {"url": "https://a.example/x,]//y"}}


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"mcpServers": []}', '"a"'])
def test_what_has_no_block_is_told(text: str) -> None:
    with pytest.raises(ConfigurationError):
        read_block(text)


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("API_KEY", SECRET, {"env": "API_KEY"}),
        ("GITHUB_PAT", "x", {"env": "GITHUB_PAT"}),
        ("DATABASE_URL", f"postgres://me:{SECRET}@db/x", {"env": "DATABASE_URL"}),
        ("ENDPOINT", f"https://a.example/?k={SECRET}", {"env": "ENDPOINT"}),
        ("ODD", f"{SECRET}/x=", {"env": "ODD"}),
        ("API_KEY", "${env:MY_KEY}", {"env": "MY_KEY"}),
        ("API_KEY", "${MY_KEY:-none}", {"env": "MY_KEY"}),
        ("API_KEY", "${input:perplexity-key}", {"env": "PERPLEXITY_KEY"}),
        ("LOG_LEVEL", "debug", "debug"),
        ("PORT", 8080, "8080"),
        ("VERBOSE", True, "true"),
        ("ROOT", "/srv/data", "/srv/data"),
        ("BASE", "https://api.example/v1", "https://api.example/v1"),
        ("EMPTY", "", ""),
    ],
)
def test_a_variable_is_written_only_where_it_plainly_is_no_secret(
    name: str, value: Any, expected: Any
) -> None:
    assert sources({"a": {"command": "b", "env": {name: value}}})["a"]["env"] == {name: expected}


def test_one_variable_of_two_servers_becomes_two_variables() -> None:
    block = {name: {"command": "b", "env": {"API_KEY": SECRET}} for name in ("one", "two")}
    found = sources(block)
    assert found["one"]["env"]["API_KEY"] == {"env": "API_KEY"}
    assert found["two"]["env"]["API_KEY"] == {"env": "TWO_API_KEY"}
    assert import_block(block).variables.keys() == {"API_KEY", "TWO_API_KEY"}


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (["--api-key", SECRET, "-v"], ["--api-key", PLACEHOLDER, "-v"]),
        ([f"--token={SECRET}"], [f"--token={PLACEHOLDER}"]),
        (["-e", f"API_KEY={SECRET}"], ["-e", f"API_KEY={PLACEHOLDER}"]),
        (["--key-file", "--fast"], ["--key-file", "--fast"]),
    ],
)
def test_a_secret_in_the_arguments_is_not_written_and_told(args: list[str], expected: list[str]) -> None:
    block = {"a": {"command": "b", "args": args}}
    assert sources(block)["a"]["command"] == ["b", *expected]
    assert bool(import_block(block).remarks) == (PLACEHOLDER in "".join(expected))


def test_a_remote_server_keeps_its_url_and_its_secrets_become_variables() -> None:
    block = {
        "a b": {
            "type": "http",
            "url": f"https://u:{SECRET}@a.example/mcp?api_key={SECRET}&team=x",
            "headers": {"Authorization": f"Bearer {SECRET}", "X-Team": "core", "X-Api-Key": SECRET},
        }
    }
    assert sources(block)["a b"] == {
        "kind": "mcp",
        "url": f"https://a.example/mcp?api_key={PLACEHOLDER}&team=x",
        "token": {"env": "A_B_TOKEN"},
        "headers": {"X-Team": "core", "X-Api-Key": {"env": "X_API_KEY"}},
    }


@pytest.mark.parametrize(
    "entry",
    [
        {"type": "sse", "url": "https://a.example/sse"},
        {"command": "a", "disabled": True},
        {},
        "x",
        {"command": 7},
    ],
)
def test_what_cannot_be_a_source_is_left_out_and_told(entry: Any) -> None:
    imported = import_block({"a": entry})
    assert (imported.toml, imported.names, len(imported.remarks)) == ("", [], 1)


def test_names_and_texts_of_every_kind_survive() -> None:
    odd = 'a"b\\c\té\u007f'
    found = sources({'my "odd".name': {"command": odd, "args": [odd], "cwd": "/x y"}})
    assert found == {'my "odd".name': {"kind": "mcp", "command": [odd, odd], "cwd": "/x y"}}


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["mcp", "import", *arguments])


@pytest.fixture
def block(tmp_path: Path) -> Path:
    file = tmp_path / "client.json"
    file.write_text(json.dumps({"mcpServers": {"a": {"command": "b", "env": {"API_KEY": SECRET}}}}))
    return file


def test_the_command_prints_the_sources_and_says_what_to_set(block: Path) -> None:
    result = run(str(block))
    assert result.exit_code == 0
    assert tomllib.loads(result.stdout)["sources"]["a"]["env"] == {"API_KEY": {"env": "API_KEY"}}
    assert "set the environment variable API_KEY" in result.stderr
    assert SECRET not in result.output


def test_the_command_adds_to_a_configuration_once_and_leaves_the_rest_as_it_is(
    block: Path, tmp_path: Path
) -> None:
    config = tmp_path / "capdex.toml"
    config.write_text("# mine\nport = 8123\n")
    assert run(str(block), "--write", "--config", str(config)).exit_code == 0
    assert config.read_text().startswith("# mine\nport = 8123\n")
    settings = load_settings(config, {})
    assert (settings.port, settings.sources["a"].command) == (8123, ("b",))
    before = config.read_text()
    again = run(str(block), "--write", "--config", str(config))
    assert (again.exit_code, config.read_text()) == (2, before)
    assert "already" in again.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"client.json", "capdex.toml"}


def test_the_command_makes_a_configuration_where_there_is_none(block: Path, tmp_path: Path) -> None:
    config = tmp_path / "new.toml"
    assert run(str(block), "--write", "--config", str(config)).exit_code == 0
    assert list(load_settings(config, {}).sources) == ["a"]


def test_a_block_that_no_configuration_could_hold_is_not_written(tmp_path: Path) -> None:
    file, config = tmp_path / "client.json", tmp_path / "capdex.toml"
    file.write_text(json.dumps({"mcpServers": {"a": {"command": "b", "cwd": "/no/such/folder"}}}))
    result = run(str(file), "--write", "--config", str(config))
    assert (result.exit_code, config.exists()) == (2, False)
    assert "no folder" in result.stderr


@pytest.mark.parametrize("file", ["missing.json", "."])
def test_a_file_that_cannot_be_read_is_told(tmp_path: Path, file: str) -> None:
    assert run(str(tmp_path / file)).exit_code == 2

"""``capdex mcp list`` and ``check`` over servers that work and one that does not."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from capdex_server.cli import app

SERVER = Path(__file__).with_name("faulty_mcp.py")


@pytest.fixture
def config(tmp_path: Path) -> Path:
    text = 'cache = "cache"\n'
    for name in ("mixed", "good", "dies"):
        command = json.dumps([sys.executable, str(SERVER), name])
        text += f'[sources.{name}]\nkind = "mcp"\ncommand = {command}\n'
    path = tmp_path / "capdex.toml"
    path.write_text(text)
    return path


def run(config: Path, *arguments: str) -> Any:
    return CliRunner().invoke(app, [*arguments, "--config", str(config)])


def test_list_shows_servers_states_and_tools(config: Path) -> None:
    result = run(config, "mcp", "list", "--json")
    assert result.exit_code == 0
    rows = {row["name"]: row for row in json.loads(result.stdout)}
    assert (rows["good"]["state"], rows["good"]["tools"], rows["good"]["transport"]) == (
        "up",
        ["good"],
        "stdio",
    )
    assert (rows["dies"]["state"], "code 5" in rows["dies"]["reason"]) == ("down", True)
    shown = run(config, "mcp", "list")
    assert "good" in shown.stdout and "dies: " in shown.stderr


def test_check_reports_quarantine_limits_and_times_and_fails_for_a_server_without_tools(config: Path) -> None:
    result = run(config, "mcp", "check", "--json")
    assert result.exit_code == 1
    rows = {row["name"]: row for row in json.loads(result.stdout)}
    assert {fault["code"] for fault in rows["mixed"]["quarantine"]} == {
        "MCP_CATALOG_INVALID_TOOL",
        "MCP_CATALOG_SCHEMA_TOO_DEEP",
    }
    assert (rows["good"]["pages"], rows["good"]["bytes"] > 0, rows["good"]["seconds"] is not None) == (
        1,
        True,
        True,
    )


def test_check_of_chosen_servers_and_its_exit_codes(config: Path) -> None:
    assert run(config, "mcp", "check", "good").exit_code == 0
    assert run(config, "mcp", "check", "mixed").exit_code == 0
    strict = run(config, "mcp", "check", "mixed", "--strict")
    assert (strict.exit_code, "MCP_CATALOG_SCHEMA_TOO_DEEP" in strict.stdout) == (1, True)
    assert run(config, "mcp", "check", "other").exit_code == 2


def test_catalog_commands_and_calls_take_tools_like_operations(config: Path) -> None:
    listed = run(config, "catalog", "list", "--json")
    rows = {row["name"]: row for row in json.loads(listed.stdout)}
    assert rows["good.good"]["path"] == "mcp://good/good"
    report = json.loads(run(config, "catalog", "check", "--json").stdout)
    assert (report["documents"], report["failed"], report["broken"]) == (3, 1, 4)
    called = run(config, "call", "MCP mcp://good/good", "--args", "{}")
    assert json.loads(called.stdout)["content"] == [{"type": "text", "text": "done"}]
    wrong = run(config, "call", "good.good", "--args", '{"body": [1]}', "--json")
    assert (wrong.exit_code, json.loads(wrong.stdout)["error"]["code"]) == (1, "invalid_capability_arguments")
    dry = run(config, "call", "good.good", "--dry-run")
    assert json.loads(dry.stdout) == {"tool": "good", "source": "good", "arguments": {}}

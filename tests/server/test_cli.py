"""The command line's forms, which programs rely on: arguments, JSON shapes, exit codes."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from capdex_server.cli import app, serve
from capdex_server.cli.options import Run
from capdex_server.demo import create_demo_app, run_in_thread

DOCUMENT = {
    "openapi": "3.1.0",
    "info": {"title": "Lockers", "version": "1"},
    "servers": [{"url": "/v1"}],
    "paths": {
        "/lockers/{number}": {
            "parameters": [{"name": "number", "in": "path", "required": True, "schema": {"type": "integer"}}],
            "get": {
                "operationId": "getLocker",
                "summary": "Show one locker",
                "responses": {"200": {"description": "ok"}},
            },
            "put": {
                "operationId": "assignLocker",
                "summary": "Give a locker to a person",
                "security": [{"key": []}],
                "requestBody": {
                    "required": True,
                    "content": {
                        "application/json": {
                            "schema": {
                                "type": "object",
                                "required": ["person"],
                                "properties": {
                                    "person": {"type": "string"},
                                    "note": {"type": ["string", "null"]},
                                },
                            }
                        }
                    },
                },
                "responses": {"200": {"description": "ok"}},
            },
        },
        "/broken": {"post": {"operationId": "broken", "requestBody": {"$ref": "#/components/nowhere"}}},
        "/report": {"get": {"operationId": "report", "security": [{"login": []}], "responses": {}}},
    },
    "components": {
        "securitySchemes": {
            "key": {"type": "apiKey", "in": "header", "name": "X-Key"},
            "login": {"type": "http", "scheme": "basic"},
        }
    },
}


FIRST = '{"pathParams": {"number": 1}}'


@pytest.fixture
def spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "lockers.v1.json"
    path.write_text(json.dumps(DOCUMENT))
    return path


def run(*arguments: object) -> tuple[int, object]:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, json.loads(result.stdout) if result.stdout.startswith(
        ("{", "[")
    ) else result.output


def call(spec: Path, name: str, *arguments: str) -> tuple[int, dict]:
    code, answer = run("call", name, "--spec", spec, "--json", *arguments)
    assert isinstance(answer, dict), answer
    return code, answer


def test_catalog_list_holds_every_operation_and_says_why_one_is_not_callable(spec: Path) -> None:
    code, rows = run("catalog", "list", "--spec", spec, "--json")
    assert code == 0
    by_name = {row["name"]: row for row in rows}
    assert set(by_name) == {"getLocker", "assignLocker", "broken", "report"}
    assert set(by_name["getLocker"]) == {
        "name", "source", "method", "path", "pathParams", "queryParams", "headerParams", "cookieParams",
        "hasBody", "bodySchema", "schemaDigest", "summary", "executable", "reason",
    }  # fmt: skip
    assert by_name["getLocker"]["source"] == "lockers.v1"
    assert by_name["getLocker"]["pathParams"] == ["number"]
    assert by_name["assignLocker"]["bodySchema"]["required"] == ["person"]
    assert not by_name["broken"]["executable"]
    assert "nowhere" in by_name["broken"]["reason"]


def test_an_operation_without_a_server_says_which_option_is_missing(spec: Path) -> None:
    _, rows = run("catalog", "list", "--spec", spec, "--json")
    row = next(row for row in rows if row["name"] == "getLocker")
    assert not row["executable"]
    assert "server" in row["reason"]


def test_a_dry_run_prints_the_request_and_needs_no_credential(spec: Path) -> None:
    arguments = {"pathParams": {"number": 7}, "body": {"person": "Ada", "note": None}}
    url = "https://api.example.com/docs/openapi.json"
    code, answer = call(
        spec, "assignLocker", "--args", json.dumps(arguments), "--document-url", url, "--dry-run"
    )
    assert code == 0
    assert answer["method"] == "PUT"
    assert answer["url"] == "https://api.example.com/v1/lockers/7"
    assert json.loads(answer["body"]) == {"person": "Ada", "note": None}


def test_credentials_are_masked_unless_asked_for(spec: Path) -> None:
    arguments = (
        "--args",
        "{}",
        "--server",
        "https://x.example",
        "--credential",
        'login=["ada","p:w&1"]',
        "--dry-run",
    )
    _, masked = call(spec, "report", *arguments)
    assert "p:w&1" not in json.dumps(masked)
    _, shown = call(spec, "report", *arguments, "--show-credentials")
    headers = {name.lower(): value for name, value in dict(shown["headers"]).items()}
    assert base64.b64decode(headers["authorization"].removeprefix("Basic ")) == b"ada:p:w&1"


def test_a_method_and_a_path_name_an_operation(spec: Path) -> None:
    code, answer = call(
        spec,
        "GET /lockers/{number}",
        "--args",
        '{"pathParams": {"number": 3}}',
        "--server",
        "https://x.example/b/",
        "--dry-run",
    )
    assert (code, answer["url"]) == (0, "https://x.example/b/lockers/3")


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("getLocke", ["--args", "{}"], "unknown_capability"),
        ("broken", ["--args", "{}", "--server", "https://x.example"], "not_executable"),
        ("getLocker", ["--args", FIRST], "not_executable"),
        ("getLocker", ["--args", "{}", "--server", "https://x.example"], "invalid_capability_arguments"),
        ("getLocker", ["--args", "[]", "--server", "https://x.example"], "invalid_request"),
        ("report", ["--args", "{}", "--server", "https://x.example"], "missing_credentials"),
        ("getLocker", ["--args", FIRST, "--server", "http://127.0.0.1:9"], "upstream_unreachable"),
    ],
)  # fmt: skip
def test_faults_are_error_objects_with_exit_code_1(
    spec: Path, name: str, arguments: list[str], expected: str
) -> None:
    code, answer = call(spec, name, *arguments)
    assert (code, answer["error"]["code"]) == (1, expected)


@pytest.mark.parametrize(
    "arguments",
    [
        ("call", "getLocker", "--args", "{not json"),
        ("call", "getLocker", "--credential", "no-equals-sign"),
        ("call", "getLocker", "--server-variable", "novalue"),
        ("call", "getLocker", "--server", "ftp://x.example"),
        ("search",),
        ("nonsense",),
    ],
)
def test_wrong_usage_ends_with_exit_code_2(spec: Path, arguments: tuple[str, ...]) -> None:
    code, _ = run(*arguments, *(["--spec", str(spec)] if arguments[0] == "call" else []))
    assert code == 2


def test_a_missing_document_is_wrong_usage(spec: Path) -> None:
    code, text = run("catalog", "list", "--spec", "nowhere.json", "--json")
    assert code == 2
    assert "nowhere.json" in str(text)


def test_a_document_that_cannot_be_read_is_an_error_object(spec: Path) -> None:
    spec.write_text("{ not: [closed")
    code, answer = run("catalog", "list", "--spec", spec, "--json")
    assert (code, answer["error"]["code"]) == (1, "document_error")


def test_a_document_that_cannot_be_read_does_not_hide_the_others(spec: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text("[1, 2]")
    code, rows = run("catalog", "list", "--spec", spec, "--spec", tmp_path / "bad.yaml", "--json")
    assert code == 1
    assert len(rows) == 4


def test_files_that_are_called_alike_are_told_apart_by_their_folders(spec: Path, tmp_path: Path) -> None:
    specs = []
    for folder in ("east", "west"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "openapi.json").write_text(json.dumps(DOCUMENT))
        specs += ["--spec", tmp_path / folder / "openapi.json"]
    _, rows = run("catalog", "list", *specs, "--json")
    assert {row["source"] for row in rows} == {"east.openapi", "west.openapi"}
    code, _ = run("catalog", "list", *specs, "--spec", tmp_path / "east" / "openapi.json", "--json")
    assert code == 2


def test_catalog_check_fails_when_a_document_is_unusable(spec: Path, tmp_path: Path) -> None:
    code, report = run("catalog", "check", spec, "--json")
    assert code == 0
    assert (report["operations"], report["keptOut"]) == (3, 1)
    bad = tmp_path / "bad.yaml"
    bad.write_text("[1, 2]")
    code, _ = run("catalog", "check", spec, "--spec", bad, "--json")
    assert code == 1


def test_search_answers_in_the_shape_of_the_tool(spec: Path) -> None:
    code, answer = run("search", "give a locker to somebody", "--spec", spec, "--json")
    assert code == 0
    assert answer["matches"][0]["name"] == "assignLocker"
    assert answer["revision"]


def test_explain_shows_what_each_part_adds_to_the_score(spec: Path) -> None:
    _, answer = run("search", "give a locker to somebody", "--spec", spec, "--explain", "--json")
    parts = answer["matches"][0]["parts"]
    assert parts["meaning"] > 0
    _, text = run("search", "give a locker to somebody", "--spec", spec, "--explain")
    assert "meaning +" in str(text)


def test_explain_shows_how_a_misspelt_or_foreign_request_is_read(spec: Path) -> None:
    _, answer = run("search", "giev a lokcer to somebody", "--spec", spec, "--explain", "--json")
    assert answer["readAs"] == "give a locker to somebody"
    assert answer["matches"][0]["name"] == "assignLocker"
    _, text = run("search", "asignar un casillero a alguien", "--spec", spec, "--explain")
    assert "read as: assign" in str(text)
    _, answer = run("search", "give a locker to somebody", "--spec", spec, "--explain", "--json")
    assert "readAs" not in answer


def test_search_reports_a_wrong_limit_as_an_invalid_request(spec: Path) -> None:
    code, answer = run("search", "locker", "--spec", spec, "--limit", "99", "--json")
    assert (code, answer["error"]["code"]) == (1, "invalid_request")


def test_search_without_json_prints_a_table_that_names_the_operations(spec: Path) -> None:
    code, text = run("search", "give a locker to somebody", "--spec", spec)
    assert code == 0
    assert "assignLocker" in text


def test_without_documents_the_embedded_api_is_searched_and_called(spec: Path) -> None:
    code, rows = run("catalog", "list", "--json")
    assert code == 0
    assert {row["source"] for row in rows} == {"workforce"}
    code, answer = run("call", "listWorkers", "--json")
    assert (code, answer["status"]) == (0, 200)


def test_help_and_catalog_and_call_import_no_encoder(spec: Path) -> None:
    script = (
        "import sys; sys.argv = ['capdex', *sys.argv[1:]]\n"
        "from capdex_server.cli import app\n"
        "app(standalone_mode=False)\n"
        "heavy = {'onnxruntime', 'faiss', 'torch', 'sentence_transformers', 'mcp', 'fastapi'}\n"
        "heavy &= set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    for arguments in (
        ["--help"],
        ["catalog", "list", "--spec", str(spec), "--json"],
        [
            "call",
            "getLocker",
            "--spec",
            str(spec),
            "--server",
            "https://x.example",
            "--dry-run",
            "--args",
            FIRST,
        ],
    ):
        done = subprocess.run(
            [sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr


def streams(*arguments: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


@pytest.fixture
def folder(tmp_path: Path, spec: Path) -> Path:
    """A folder of two documents, one part of a document, and one that is damaged."""
    home = tmp_path / "team"
    home.mkdir()
    (home / "odd.json").write_text(spec.read_text())
    (home / "two.json").write_text(spec.read_text().replace("ocker", "adder"))
    (home / "part.json").write_text('{"Locker": {}}')
    return home


def test_the_server_of_a_folder_is_reached_by_each_of_its_documents(folder: Path) -> None:
    with run_in_thread(create_demo_app(api_key="k")) as url:
        for name in ("getLocker", "getLadder"):
            code, answer = call(folder, name, "--args", FIRST, "--server", url)
            assert (code, answer.get("status")) == (0, 404), answer


def test_a_configuration_in_the_working_folder_counts_beside_named_documents(
    spec: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    served: list[Run] = []
    monkeypatch.setattr(serve, "serve_forever", served.append)
    caller = '[[callers]]\nname = "bot"\ntenant = "t"\ntoken_sha256 = "' + "0" * 64 + '"\n'
    (tmp_path / "capdex.toml").write_text(
        f'port = 9000\nread_only = false\n{caller}[sources.x]\nlocation = "gone.json"\n'
    )
    code, _, stderr = streams("serve", "--spec", spec, "--read-only")
    assert code == 0, stderr
    settings = served[0].settings
    assert [one.name for one in settings.callers] == ["bot"]
    assert (set(settings.sources), settings.port, settings.read_only) == ({"lockers.v1"}, 9000, True)


@pytest.mark.parametrize("port", ["99999", "-1"])
def test_a_port_out_of_range_is_wrong_usage(spec: Path, port: str) -> None:
    code, _, stderr = streams("serve", "--spec", spec, "--port", port)
    assert code == 2
    assert "port" in stderr


def test_stdio_can_be_read_only(spec: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    served = []

    async def serve_stdio(live: object, settings: object, quotas: object) -> None:
        served.append(settings)

    monkeypatch.setattr("capdex_server.stdio.serve_stdio", serve_stdio)
    monkeypatch.setattr("capdex_server.logs.configure_logs", lambda: None)
    assert streams("stdio", "--spec", spec, "--read-only")[0] == 0
    assert served[0].read_only


def test_catalog_check_names_the_files_concerned(folder: Path) -> None:
    (folder / "bad.json").write_text('{"openapi": "3.1.0"')
    code, stdout, stderr = streams("catalog", "check", folder)
    assert code == 1
    for name in ("odd.json", "two.json", "part.json"):
        assert str(folder / name) in stdout
    assert str(folder / "bad.json") in stderr
    _, report, _ = streams("catalog", "check", folder, "--json")
    assert json.loads(report)["notDocuments"] == {"team": [str(folder / "part.json")]}


def test_a_search_with_unusable_documents_says_so_in_one_line_each(spec: Path, tmp_path: Path) -> None:
    bad = [tmp_path / name for name in ("bad.yaml", "worse.yaml")]
    for path in bad:
        path.write_text("[1, 2]")
    code, _, stderr = streams("search", "locker", "--spec", bad[0])
    assert (code, stderr.count("\n")) == (1, 1)
    assert stderr.startswith("error: ") and str(bad[0]) in stderr
    code, _, stderr = streams("search", "locker", "--spec", bad[0], "--spec", spec)
    assert (code, stderr.count("\n")) == (0, 1)
    assert str(bad[0]) in stderr
    code, _, stderr = streams("search", "locker", "--spec", bad[0], "--spec", bad[1])
    assert code == 1
    assert all(str(path) in stderr for path in bad)


def test_a_call_says_which_document_is_unusable(spec: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text("[1, 2]")
    rest = ("--args", FIRST, "--server", "https://x.example", "--dry-run")
    code, _, stderr = streams("call", "getLocker", "--spec", spec, "--spec", bad, *rest)
    assert code == 0
    assert str(bad) in stderr


def test_a_call_says_which_options_fit_nothing(spec: Path) -> None:
    rest = ("--args", FIRST, "--server", "https://x.example", "--dry-run")
    given = ("--credential", "nope=1", "--credential", "key=2", "--server-variable", "zone=eu")
    code, _, stderr = streams("call", "getLocker", "--spec", spec, *rest, *given)
    assert code == 0
    lines = stderr.splitlines()
    assert len(lines) == 2
    assert "zone" in lines[0]
    assert "credential nope" in lines[1] and "key" in lines[1] and "login" in lines[1]


def test_an_option_that_one_of_several_documents_uses_is_no_slip(spec: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    other.write_text(spec.read_text().replace('"key"', '"token"').replace("ocker", "adder"))
    rest = ("--args", FIRST, "--server", "https://x.example", "--dry-run", "--credential", "token=1")
    code, _, stderr = streams("call", "getLocker", "--spec", spec, "--spec", other, *rest)
    assert (code, stderr) == (0, "")


def test_warnings_of_a_command_are_plain_lines(spec: Path, tmp_path: Path) -> None:
    config = tmp_path / "own.toml"
    config.write_text(
        f'[sources.lockers]\nlocation = "{spec.name}"\n[sources.lockers.credentials.key]\nenv = "UNSET_KEY"\n'
    )
    code, _, stderr = streams("catalog", "list", "--config", config)
    assert code == 0
    assert stderr.startswith("level=warning event=credential.not_set key=")

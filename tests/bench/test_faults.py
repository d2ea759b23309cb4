from __future__ import annotations

import base64
import json
from urllib.parse import quote

import pytest

from capdex_bench.faults import failures
from capdex_bench.faults_calls import Watch
from capdex_bench.faults_cases import FAULTS, PLACES, SOUND, document, name_of, said
from capdex_bench.faults_page import faults_page
from capdex_bench.faults_secrets import SECRET

ROW = {"said": "200", "retryable": None, "seconds": 0.1, "masked": False}
WELL = {
    "rows": [{"fault": "x", "text": "a fault", "GET": ROW, "POST": ROW}],
    "timeout": 3.0,
    "rate": 30,
    "alone": {"calls": 10, "p50_ms": 4.0, "p99_ms": 8.0},
    "calm": {"calls": 10, "p50_ms": 5.0, "p99_ms": 10.0},
    "sound_calls": 9,
    "faulty": {"calls": 10, "p50_ms": 5.0, "p99_ms": 15.0},
    "ratio": 1.5,
    "fault_calls": 20,
    "rss_before": 100.0,
    "rss_after": 101.0,
    "rss_peak": 110.0,
    "alive": True,
    "leaks": [],
    "internal": [],
    "wrong": [],
    "log_lines": 5,
}


def test_every_fault_has_its_own_name_and_two_operations_in_the_document_of_its_place():
    names = [fault.name for fault in FAULTS]
    assert len(set(names)) == len(names)
    for place in PLACES:
        paths = document(place, "http://127.0.0.1:1")["paths"]
        here = [fault for fault in (*FAULTS, *SOUND) if fault.place == place]
        assert {item["post"]["operationId"] for item in paths.values()} == {
            name_of(one, "POST") for one in here
        }
    assert {fault.place for fault in FAULTS} <= set(PLACES)


def test_what_came_of_a_call_is_a_code_or_a_status():
    assert said({"error": {"code": "upstream_timeout"}}) == "upstream_timeout"
    assert said({"status": 204, "truncated": False}) == "204"
    assert said({"status": 200, "truncated": True}) == "200+"


def test_a_run_without_faults_of_its_own_passes():
    assert failures(WELL) == []
    assert "All is well" in faults_page(WELL)


@pytest.mark.parametrize(
    "change",
    [
        {"alive": False},
        {"leaks": ["log: x"]},
        {"internal": ["hang"]},
        {"wrong": ["GET hang: 200"]},
        {"ratio": 2.5},
        {"rows": [{"fault": "x", "text": "a fault", "GET": ROW, "POST": {**ROW, "seconds": 9.0}}]},
    ],
)
def test_each_failing_of_the_server_fails_the_run_and_stands_on_the_page(change: dict):
    assert len(failures({**WELL, **change})) == 1
    assert "Not well" in faults_page({**WELL, **change})


@pytest.mark.parametrize(
    "text",
    [
        SECRET,
        quote(SECRET),
        base64.b64encode(SECRET.encode()).decode(),
        json.dumps({"text": json.dumps({"key": SECRET})}),
    ],
)
def test_the_planted_secret_is_seen_in_every_form(text: str):
    watch = Watch()
    watch.look("here", text)
    assert watch.leaks and not watch.internal


def test_an_internal_error_is_seen_inside_a_tools_text():
    watch = Watch()
    watch.look("here", json.dumps({"text": json.dumps({"error": {"code": "internal_error"}})}))
    assert watch.internal == ["here"]

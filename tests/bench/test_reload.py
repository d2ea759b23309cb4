from __future__ import annotations

import json

from capdex_bench.reload import Phase, document, measure_reload


def answer(revision: str, *versions: int, schema: int | None = None) -> dict:
    matches = [
        {
            "name": f"getThingV{version}",
            "queryParams": [f"v{version}"],
            "argumentsSchema": {"properties": {f"v{version if schema is None else schema}": {}}},
        }
        for version in versions
    ]
    return {"matches": matches, "revision": revision}


def test_answers_of_one_version_each_are_not_mixed():
    phase = Phase()
    for one in (answer("a", 1, 1), answer("b", 2), answer("a", 1)):
        phase.note(one)
    assert not phase.mixed and phase.row()["revisions"] == 2


def test_an_answer_of_two_versions_is_mixed():
    phase = Phase()
    phase.note(answer("a", 1, 2))
    assert phase.mixed


def test_a_revision_that_stands_for_two_versions_is_mixed():
    phase = Phase()
    phase.note(answer("a", 1))
    phase.note(answer("a", 2))
    assert phase.mixed


def test_a_schema_of_another_version_is_mixed():
    phase = Phase()
    phase.note(answer("a", 1, schema=2))
    assert phase.mixed


def test_every_operation_bears_its_version():
    made = document(7, 20)
    operations = [item["get"] for item in made["paths"].values()]
    assert len({one["operationId"] for one in operations}) == 20
    assert all(one["operationId"].endswith("V7") for one in operations)
    assert json.dumps(made).count('"v7"') == 20


def test_searches_of_a_real_server_are_whole_while_its_document_changes():
    figures = measure_reload(seconds=3, rate=10, operations=16)
    changing = figures["changing"]
    assert (changing["searches"], changing["failures"], changing["mixed"]) == (30, 0, 0), figures
    assert changing["revisions"] > 1, figures

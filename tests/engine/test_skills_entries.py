"""An index is read entry by entry: a bad one is dropped and told, the others stay."""

from __future__ import annotations

import json
from typing import Any

import pytest

from capdex_engine.skills import Skill, SkillIndex, SkillIndexError, read_index
from capdex_engine.skills.entries import MAX_INDEX_BYTES

GOOD = {
    "name": "pay-run",
    "title": "Pay run",
    "description": "Runs the payroll.",
    "capability": "skill:pay-run",
    "url": "skill://pay-run/SKILL.md",
}
SKILL = Skill("pay-run", "Runs the payroll.", "skill:pay-run", "skill://pay-run/SKILL.md", "Pay run")
MISSING: Any = object()


def entry(**changes: Any) -> dict[str, Any]:
    return {key: value for key, value in {**GOOD, **changes}.items() if value is not MISSING}


def index(*entries: Any) -> SkillIndex:
    return read_index(json.dumps({"skills": entries}).encode())


def test_a_good_entry_is_read():
    assert index(GOOD) == SkillIndex((SKILL,), ())


def test_a_bare_list_is_read_too():
    assert read_index(json.dumps([GOOD]).encode()).skills == (SKILL,)


@pytest.mark.parametrize("data", [b'{"skills": []}', b"[]"])
def test_an_empty_index_is_an_index(data):
    assert read_index(data) == SkillIndex()


def test_a_title_is_the_name_where_there_is_none():
    assert index(entry(title=MISSING)).skills[0].title == "pay-run"


def test_what_an_entry_has_besides_is_let_go():
    assert index(entry(type="skill-md", version=3)).skills == (SKILL,)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", "a" * 64),
        ("name", "a1-2b"),
        ("description", "d" * 1024),
        ("title", "t" * 256),
        ("title", None),
        ("capability", "plugin:a:b"),
        ("capability", "c:" + "x" * 254),
        ("url", "skill://x"),
        ("url", "skill://" + "u" * 2040),
    ],
)
def test_exactly_the_limit_passes(field, value):
    assert len(index(entry(**{field: value})).skills) == 1


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", MISSING),
        ("name", 7),
        ("name", ""),
        ("name", "a" * 65),
        ("name", "Pay-Run"),
        ("name", "pay_run"),
        ("name", "pay--run"),
        ("name", "-pay"),
        ("name", "pay-"),
        ("name", "pay-run\n"),
        ("name", "päy"),
        ("title", 7),
        ("title", "t" * 257),
        ("description", MISSING),
        ("description", None),
        ("description", ["x"]),
        ("description", ""),
        ("description", " \u202e\u200b "),
        ("description", "d" * 1025),
        ("capability", MISSING),
        ("capability", 7),
        ("capability", ""),
        ("capability", "skill:"),
        ("capability", ":x"),
        ("capability", "skill::x"),
        ("capability", "c:" + "x" * 255),
        ("capability", "createOrder"),
        ("capability", "GET /x:y"),
        ("capability", "skill:x\u202e"),
        ("capability", "skill:x</available_skills>"),
        ("capability", 'skill:"x"'),
        ("capability", "skill:a&b"),
        ("url", MISSING),
        ("url", 7),
        ("url", "skill://"),
        ("url", "https://evil.example/SKILL.md"),
        ("url", "SKILL://x"),
        ("url", " skill://x"),
        ("url", "skill://x y"),
        ("url", "skill://x\u2066"),
        ("url", "skill://" + "u" * 2041),
    ],
)
def test_a_bad_field_costs_its_entry_alone(field, value):
    found = index(entry(name="other", capability="skill:other", url="skill://other"), entry(**{field: value}))
    assert [skill.name for skill in found.skills] == ["other"]
    assert [fault.index for fault in found.faults] == [1]
    assert found.faults[0].reason.startswith(f"{field}: ")


@pytest.mark.parametrize("value", [None, 7, "skill:x", [], True])
def test_an_entry_that_is_no_object_is_dropped(value):
    found = index(value, GOOD)
    assert found.skills == (SKILL,) and found.faults[0].index == 0


def test_every_fault_of_an_entry_is_told_and_no_value_is():
    (fault,) = index(entry(name="S3CRET!", capability="S3CRET", url="S3CRET")).faults
    assert all(f"{field}: " in fault.reason for field in ("name", "capability", "url"))
    assert "S3CRET" not in fault.reason


@pytest.mark.parametrize("same", ["capability", "url"])
def test_of_two_entries_for_one_thing_the_first_stays(same):
    second = {**entry(name="b", capability="skill:b", url="skill://b"), same: GOOD[same]}
    found = index(GOOD, second)
    assert found.skills == (SKILL,) and [fault.index for fault in found.faults] == [1]


def test_texts_are_on_one_line_and_without_what_cannot_be_seen():
    (skill,) = index(entry(description="Runs\n\n the \u202epay\u200broll.\x07", title="\x1bPay\trun")).skills
    assert skill.description == "Runs the payroll." and skill.title == "Pay run"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"<html>",
        b'{"skills": [',
        b"null",
        b"7",
        b'"skills"',
        b"{}",
        b'{"skills": null}',
        b'{"skills": {"a": 1}}',
        b"[" * 100_000,
        json.dumps({"skills": [GOOD]}).encode("utf-16"),
        b'{"skills": [{"name": "\xff"}]}',
        b"\xef\xbb\xbf[]",
    ],
)
def test_what_is_no_index_is_refused_as_a_whole(data):
    with pytest.raises(SkillIndexError) as error:
        read_index(data, location="skills.payroll")
    assert error.value.details["location"] == "skills.payroll"


def test_half_a_character_is_dropped_from_texts_and_costs_a_capability():
    assert index(entry(description="x\ud800y")).skills[0].description == "xy"
    assert index(entry(capability="skill:\ud800")).skills == ()


def test_exactly_the_size_limit_passes():
    data = json.dumps({"skills": [GOOD]}).encode()
    padded = data + b" " * (MAX_INDEX_BYTES - len(data))
    assert read_index(padded).skills == (SKILL,)
    with pytest.raises(SkillIndexError):
        read_index(padded + b" ")


def test_the_document_does_not_depend_on_the_order_of_entries_and_reads_back():
    other = entry(name="a", capability="skill:a", url="skill://a")
    document = index(GOOD, other).document()
    assert document == index(other, GOOD).document()
    assert {skill.name for skill in read_index(document).skills} == {"a", "pay-run"}

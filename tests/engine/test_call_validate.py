from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from call_support import details, json_body, operation, parameter, prepared
from capdex_engine.call.formats import FORMATS
from capdex_engine.call.issues import MAX_ISSUES
from capdex_engine.call.lenient import repair
from capdex_engine.call.patterns import MAX_STEPS_PER_CALL, StepBudget, matches, spend
from capdex_engine.call.schema import MAX_DEPTH, SchemaChecker, depth
from capdex_engine.errors import InvalidArguments, NotExecutable
from capdex_engine.operation import OperationDetails

INTEGER = {"type": "integer"}
STRING = {"type": "string"}


def issues(found: OperationDetails, **call: Any) -> list[tuple[str, str, str]]:
    """Return (in, pointer, keyword) of every issue; none for a call that fits."""
    return [(each["in"], each["pointer"], each["keyword"]) for each in whole_issues(found, **call)]


def whole_issues(found: OperationDetails, **call: Any) -> list[dict[str, str]]:
    try:
        prepared(found, operation("POST"), **call)
    except InvalidArguments as error:
        return list(error.details["issues"])
    return []


def body_issues(schema: Any, value: Any, **definitions: Any) -> list[tuple[str, str, str]]:
    return issues(details(body=json_body(schema), definitions=definitions), body=value)


def test_every_issue_is_told_at_once():
    found = details(
        parameter("limit", schema={**INTEGER, "maximum": 10}),
        parameter("need", required=True),
        parameter("X-A", "header", {"type": "array"}),
        body=json_body({"type": "object", "required": ["a", "b"], "properties": {"c": INTEGER}}),
    )
    assert issues(found, queryParams={"limit": 50, "nope": 1}, headerParams={"X-A": 1}, body={"c": "x"}) == [
        ("query", "/nope", "additionalProperties"),
        ("query", "/limit", "maximum"),
        ("query", "/need", "required"),
        ("header", "/X-A", "type"),
        ("body", "/a", "required"),
        ("body", "/b", "required"),
        ("body", "/c", "type"),
    ]


def test_an_unknown_parameter_names_the_nearest_known_one():
    (found,) = whole_issues(details(parameter("perPage")), queryParams={"per_page": 3})
    assert "perPage" in found["message"]


def test_a_parameter_in_the_wrong_slot_names_the_right_one():
    found = whole_issues(details(parameter("id", "path")), queryParams={"id": "P"})
    assert sorted(each["keyword"] for each in found) == ["additionalProperties", "required"]
    assert any("pathParams" in each["message"] for each in found)


def test_an_unknown_member_of_a_closed_body_names_the_nearest_known_one():
    schema = {"type": "object", "properties": {"title": STRING}, "additionalProperties": False}
    (found,) = whole_issues(details(body=json_body(schema)), body={"titel": "x"})
    assert (found["pointer"], found["keyword"]) == ("/titel", "additionalProperties")
    assert "title" in found["message"]


def test_messages_never_repeat_a_value():
    schema = {"type": "object", "properties": {"a": INTEGER, "b": {"enum": [1]}, "c": {"pattern": "^x$"}}}
    value = {"a": "hush-hush", "b": "hush-hush", "c": "hush-hush"}
    found = whole_issues(details(body=json_body(schema)), body=value)
    assert len(found) == 3
    assert not any("hush" in each["message"] for each in found)


def test_long_enumerations_are_shortened_in_messages():
    schema = {"enum": [f"choice-{index}" for index in range(1000)]}
    (found,) = whole_issues(details(parameter("q", schema=schema)), queryParams={"q": "x"})
    assert len(found["message"]) < 300


def test_very_many_issues_are_counted():
    found = whole_issues(details(body=json_body({"items": INTEGER})), body=["x"] * 500)
    assert len(found) == MAX_ISSUES + 1


@pytest.mark.parametrize(
    ("schema", "value", "accepted"),
    [
        (INTEGER, "3", True),
        (INTEGER, "-3", True),
        (INTEGER, "3.5", False),
        (INTEGER, "007", False),
        (INTEGER, " 3", False),
        (INTEGER, "three", False),
        (INTEGER, True, False),
        ({"type": "number"}, "1e3", True),
        ({"type": "number"}, "1e999", False),
        ({"type": "number"}, "NaN", False),
        ({"type": "boolean"}, "true", True),
        ({"type": "boolean"}, "True", False),
        ({"type": "boolean"}, 1, False),
        (STRING, 3, True),
        (STRING, True, True),
        ({"type": "string", "pattern": "^[0-9]$"}, 3, True),
        ({"enum": [1, 2]}, "1", True),
        ({"enum": ["1", "2"]}, 1, True),
        ({"enum": ["1", "2"]}, 3, False),
        ({"type": "array", "items": INTEGER}, ["1", 2], True),
        ({"type": "array", "items": INTEGER}, "[1, 2]", True),
        ({"type": "array", "items": INTEGER}, "1,2", False),
        ({"type": "array"}, '{"a": 1}', False),
        ({"type": "object"}, '{"a": 1}', True),
        ({"type": "object"}, "{broken", False),
        ({"anyOf": [INTEGER, {"type": "null"}]}, "3", True),
        ({"$ref": "#/$defs/I"}, "3", True),
        ({"type": "integer", "maximum": 5}, "9", False),
    ],
)
def test_the_leniency_for_parameters_is_the_documented_one(schema, value, accepted):
    found = details(parameter("q", schema=schema), definitions={"I": INTEGER})
    assert (issues(found, queryParams={"q": value}) == []) is accepted


@pytest.mark.parametrize(
    ("schema", "value", "accepted"),
    [
        (INTEGER, "3", False),
        (STRING, 3, False),
        ({"type": "boolean"}, "true", False),
        ({"type": "object"}, '{"a": 1}', True),
        ({"type": "array"}, "[1]", True),
        ({"properties": {"a": {"type": "object"}}}, {"a": '{"b": 1}'}, True),
        ({"properties": {"a": INTEGER}, "type": "object"}, '{"a": "1"}', False),
    ],
)
def test_a_body_is_never_coerced_but_for_doubly_encoded_structures(schema, value, accepted):
    assert (body_issues(schema, value) == []) is accepted


def test_text_that_the_schema_admits_stays_text_even_if_it_is_json():
    shown = prepared(
        details(body=json_body({"type": ["object", "string"]})), operation("POST"), body='{"a": 1}'
    )
    assert shown["body"] == '"{\\"a\\": 1}"'


def test_what_is_sent_is_the_number_that_the_text_meant():
    shown = prepared(details(parameter("q", schema=INTEGER)), queryParams={"q": "1e3"})
    assert shown["url"].endswith("?q=1000")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(json_values, st.booleans())
@settings(max_examples=100, deadline=None)
def test_a_value_that_fits_is_never_touched_and_no_value_is_altered(value, scalars):
    before = copy.deepcopy(value)
    checker = SchemaChecker({})
    assert repair(value, lambda each: checker.errors(True, each), scalars=scalars) == (value, [])
    repair(value, lambda each: checker.errors(INTEGER, each), scalars=scalars)
    assert value == before


def test_null_for_an_optional_parameter_counts_as_not_given():
    found = details(parameter("n", schema=INTEGER), parameter("r", required=True))
    assert prepared(found, queryParams={"n": None, "r": "a"})["url"] == "https://api.test/x?r=a"
    assert issues(found, queryParams={"r": None}) == [("query", "/r", "required")]


def test_defaults_are_never_filled_in_and_falsy_values_are_kept():
    found = details(
        parameter("limit", schema={**INTEGER, "default": 20}),
        parameter("flag", schema={"type": "boolean"}),
        parameter("s", schema=STRING),
    )
    assert prepared(found, queryParams={"flag": False, "s": ""})["url"].endswith("/x?flag=false&s=")


def test_a_path_parameter_is_required_whatever_the_document_says():
    found = details(parameter("id", "path", required=False))
    with pytest.raises(InvalidArguments):
        prepared(found, operation(path="/x/{id}"))


def test_a_header_that_is_given_in_two_casings_is_told():
    found = details(parameter("X-Trace", "header", STRING), parameter("Accept", "header", STRING))
    (told,) = whole_issues(found, headerParams={"X-Trace": "a", "x-trace": "b", "accept": "c", "ACCEPT": "d"})
    assert (told["pointer"], told["message"]) == ("/x-trace", "header/x-trace is X-Trace, which is given too")


def test_header_names_match_in_any_casing():
    shown = prepared(details(parameter("X-Ids", "header")), headerParams={"x-ids": "1"})
    assert shown["headers"]["X-Ids"] == "1"


@pytest.mark.parametrize("name", ["Authorization", "accept", "Content-Type", "Host", "Transfer-Encoding"])
def test_a_header_that_is_not_the_callers_is_ignored(name):
    found = details(parameter(name, "header", required=True))
    shown = prepared(found, headerParams={name: "stolen"})
    assert "stolen" not in str(shown)


def test_a_body_for_a_capability_without_one_is_an_issue():
    assert issues(details(), body={"a": 1}) == [("body", "", "additionalProperties")]
    assert issues(details(), body={}) == issues(details(), body=None) == []


def test_a_required_body_is_demanded():
    assert issues(details(body=json_body())) == [("body", "", "required")]


def test_null_is_a_body_where_the_schema_admits_it():
    assert prepared(details(body=json_body()), operation("POST"), body=None)["body"] == "null"
    assert issues(details(body=json_body(STRING)), body=None) == [("body", "", "type")]
    optional = details(body=json_body(STRING, required=False))
    assert prepared(optional, operation("POST"), body=None)["body"] is None


def test_a_content_type_that_is_not_offered_is_an_issue():
    found = issues(details(body=json_body()), body={}, contentType="text/html")
    assert found == [("contentType", "", "enum")]


def test_alternatives_that_all_fail_are_explained_by_the_nearest_one():
    cat = {
        "type": "object",
        "required": ["lives"],
        "properties": {"kind": {"const": "cat"}, "lives": INTEGER},
    }
    dog = {"type": "object", "required": ["bark", "tail"], "properties": {"kind": {"const": "dog"}}}
    schema = {"anyOf": [dog, cat, {"type": "null"}]}
    assert body_issues(schema, {"kind": "cat", "lives": "x"}) == [("body", "/lives", "type")]
    assert body_issues(schema, {"kind": "dog"}) == [
        ("body", "/bark", "required"),
        ("body", "/tail", "required"),
    ]


def test_alternatives_of_bare_types_are_told_together():
    found = whole_issues(details(body=json_body({"anyOf": [STRING, {"type": "null"}]})), body=5)
    assert [each["keyword"] for each in found] == ["anyOf"]
    assert "string or null" in found[0]["message"]


def test_recursive_schemas_are_checked_to_the_depth_of_the_value():
    node = {"type": "object", "properties": {"v": INTEGER, "kids": {"items": {"$ref": "#/$defs/Node"}}}}
    deep = {"v": 1, "kids": [{"v": 2, "kids": [{"v": "x"}]}]}
    assert body_issues({"$ref": "#/$defs/Node"}, deep, Node=node) == [("body", "/kids/0/kids/0/v", "type")]


def test_a_schema_that_is_nothing_but_itself_accepts_everything():
    assert body_issues({"$ref": "#/$defs/A"}, {"x": 1}, A={"$ref": "#/$defs/A"}) == []


def test_alternatives_that_multiply_let_a_value_pass_instead_of_stalling():
    node = {"anyOf": [{"items": {"$ref": "#/$defs/N"}, "minItems": size} for size in (2, 3, 4)]}
    value = nested(14)
    assert body_issues({"$ref": "#/$defs/N"}, [value, value], N=node) == []


def test_a_reference_to_nothing_makes_a_capability_not_executable():
    with pytest.raises(NotExecutable):
        prepared(details(body=json_body({"$ref": "#/$defs/Nope"})), operation("POST"), body={})


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def test_values_nested_too_deeply_are_refused():
    node = {"anyOf": [INTEGER, {"type": "array", "items": {"$ref": "#/$defs/N"}}]}
    assert depth(nested(7)) == 7
    assert body_issues({"$ref": "#/$defs/N"}, nested(20), N=node) == []
    assert body_issues(True, nested(MAX_DEPTH)) == []
    assert body_issues(True, nested(MAX_DEPTH + 1)) == [("body", "", "maxDepth")]
    assert body_issues(True, nested(50_000)) == [("body", "", "maxDepth")]


def test_text_that_is_no_unicode_and_numbers_that_are_not_finite_are_refused():
    found = details(parameter("q"), body=json_body())
    assert issues(found, queryParams={"q": "\ud800"}, body={"a": ["\udfff"], "b": float("inf")}) == [
        ("query", "/q", "type"),
        ("body", "/a/0", "type"),
        ("body", "/b", "type"),
    ]
    assert issues(found, body={"\ud800": 1}) == [("body", "", "type")]


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("date", "2024-02-29", "2023-02-29"),
        ("date", "2024-01-01", "20240101"),
        ("date-time", "2024-01-01T00:00:00Z", "2024-01-01T00:00:00"),
        ("date-time", "2024-06-30T23:59:60.25+02:00", "2024-01-01T24:00:00Z"),
        ("date-time", "2024-01-01t00:00:00z", "2024-13-01T00:00:00Z"),
        ("uuid", "123e4567-e89b-12d3-a456-426614174000", "123e4567e89b12d3a456426614174000"),
        ("email", "a@b.test", "a.b.test"),
        ("email", "a b@c", "@b.test"),
        ("ipv4", "127.0.0.1", "127.0.0.256"),
        ("ipv6", "::1", "1::2::3"),
    ],
)
def test_formats_are_checked_where_it_is_certain(name, good, bad):
    assert FORMATS.conforms(good, name)
    assert not FORMATS.conforms(bad, name)
    assert FORMATS.conforms(5, name)
    assert issues(details(parameter("q", schema={"format": name})), queryParams={"q": bad}) == [
        ("query", "/q", "format")
    ]


def test_unknown_formats_are_not_checked():
    assert FORMATS.conforms("anything", "hostname")


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        ("^a+$", "aaa", True),
        ("^a+$", "aab", False),
        ("^a$", "a\n", False),
        ("[$]", "$", True),
        (r"\$", "x", False),
        (r"^[\p{L}]+$", "x", True),
        ("([", "y", True),
        ("b", "abc", True),
        ("^(foo|bar)$", "baz", False),
        ("^[a-z]{2,5}$", "abcdef", False),
        ("a,b", "a,b", True),
    ],
)
def test_patterns_are_searched_as_ecma_does_and_skipped_when_python_cannot(pattern, text, found):
    assert matches(pattern, text) is found


@pytest.mark.parametrize(
    "pattern",
    [
        "^(a+)+$",
        "^(a|a)*$",
        "^(a|b|ab)*c$",
        "^([a-z]+)*$",
        "(x+x+)+y",
        ".*.*.*.*=.*",
        r"^\s*\s*\s*\s*x$",
    ],
)
def test_a_catastrophic_pattern_is_checked_without_stalling(pattern):
    assert not matches(pattern, "a" * 200 + "!")


@pytest.mark.parametrize(
    "pattern",
    [r"^(.*)(.*)(.*)\3\2\1!$", "(x{1000}){1000}", "^(?=(a+)+$)b", "(?i)^(a+)+$", "^(a{1,50}){1,50}$"],
)
def test_what_no_linear_way_can_check_passes(pattern):
    assert matches(pattern, "a" * 5000 + "!")


def test_a_catastrophic_pattern_still_checks_short_values():
    assert not matches("^(a+)+$", "aaa!")


def test_many_costly_matches_share_one_budget():
    pattern = "^x*x*y$"
    assert not matches(pattern, "x" * 1000)
    with StepBudget():
        answers = [matches(pattern, "x" * 1000) for _ in range(1000)]
    assert answers[0] is False
    assert answers[-1] is True


def test_a_budget_inside_another_is_the_same_one():
    with StepBudget():
        with StepBudget():
            assert not spend(MAX_STEPS_PER_CALL + 1)
        assert not spend(1)
    assert spend(1)


def test_patterns_of_property_names_count_and_a_bad_one_is_skipped():
    schema = {"type": "object", "patternProperties": {"^n_": INTEGER}, "additionalProperties": False}
    assert body_issues(schema, {"n_a": 1}) == []
    assert body_issues(schema, {"n_a": "x", "b": 1}) == [
        ("body", "/n_a", "type"),
        ("body", "/b", "additionalProperties"),
    ]
    assert body_issues({**schema, "patternProperties": {"([": True}}, {"b": 1}) == []


@pytest.mark.parametrize(
    ("step", "value"), [(0.01, 19.99), (0.01, 0.07), (0.1, 0.3), (0.5, 1e20), (3, 9), (0.01, 5)]
)
def test_multiples_are_compared_as_decimals(step, value):
    assert body_issues({"multipleOf": step}, value) == []


@pytest.mark.parametrize(("step", "value"), [(0.01, 19.999), (0.5, 0.25), (3, 10), (2, 10**4000 + 1)])
def test_what_is_no_multiple_is_an_issue(step, value):
    assert body_issues({"multipleOf": step}, value) == [("body", "", "multipleOf")]


def test_what_cannot_be_sent_does_not_hide_the_other_issues():
    found = details(parameter("need", required=True), body=json_body({"type": "object", "required": ["a"]}))
    assert {each[2] for each in issues(found, body={"b": float("nan")})} == {"type", "required"}

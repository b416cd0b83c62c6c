"""Checking JSON values against a JSON Schema."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from croze.app.schema import SchemaProblem, check_schema, violation

TREE: dict[str, Any] = {
    "$ref": "#/$defs/node",
    "$defs": {
        "node": {
            "type": "object",
            "required": ["name"],
            "properties": {
                "name": {"type": "string"},
                "children": {"type": "array", "items": {"$ref": "#/$defs/node"}},
            },
            "additionalProperties": False,
        }
    },
}

CASES: list[tuple[dict[str, Any] | bool, list[Any], list[Any]]] = [
    ({"type": "integer"}, [1, 1.0, -3], [1.5, True, "1", None]),
    ({"type": "number"}, [1, 1.5], [True, "1"]),
    ({"type": ["string", "null"]}, ["", None], [0, False]),
    ({"type": "boolean"}, [True], [1, 0]),
    ({"enum": [1, "a", None]}, [1, 1.0, "a", None], [True, "b"]),
    ({"const": {"a": [1]}}, [{"a": [1.0]}], [{"a": [True]}, {"a": 1}]),
    ({"minimum": 1, "exclusiveMaximum": 3}, [1, 2.9, "x"], [0, 3]),
    ({"multipleOf": 0.1}, [0.3, 1], [0.35]),
    ({"minLength": 2, "maxLength": 3}, ["ab", "日本語", 5], ["a", "abcd"]),
    ({"pattern": "^a"}, ["ab", 3], ["ba"]),
    ({"minItems": 1, "maxItems": 2, "uniqueItems": True}, [[1], [1, True]], [[], [1, 1.0]]),
    ({"items": {"type": "string"}}, [[], ["a"], "x"], [[1]]),
    ({"prefixItems": [{"type": "string"}], "items": False}, [["a"], []], [[1], ["a", 1]]),
    ({"contains": {"const": 1}}, [[2, 1]], [[], [2]]),
    ({"minProperties": 1, "maxProperties": 1}, [{"a": 1}], [{}, {"a": 1, "b": 2}]),
    ({"propertyNames": {"pattern": "^[a-z]+$"}}, [{"a": 1}], [{"A": 1}]),
    (
        {"patternProperties": {"^n": {"type": "integer"}}, "additionalProperties": False},
        [{"n1": 1}],
        [{"n1": "x"}, {"m": 1}],
    ),
    ({"anyOf": [{"type": "string"}, {"minimum": 5}]}, ["a", 6], [4]),
    ({"oneOf": [{"minimum": 1}, {"maximum": 3}]}, [0, 5], [2]),
    ({"allOf": [{"minimum": 1}, {"maximum": 3}]}, [2], [0, 4]),
    ({"not": {"type": "string"}}, [1], ["a"]),
    ({"properties": {"a": False}}, [{}], [{"a": 1}]),
    (
        TREE,
        [{"name": "r", "children": [{"name": "c"}]}],
        [{"name": "r", "children": [{}]}, {"x": 1}],
    ),
]


@pytest.mark.parametrize(("schema", "good", "bad"), CASES)
def test_values_are_taken_or_named_as_wrong(
    schema: dict[str, Any], good: list[Any], bad: list[Any]
) -> None:
    check_schema(schema)
    assert [violation(value, schema) for value in good] == [None] * len(good)
    assert all(violation(value, schema) for value in bad)


def test_the_place_of_the_fault_is_named() -> None:
    value = {"name": "r", "children": [{"name": "c"}, {"name": 3}]}
    assert violation(value, TREE) == "children[1].name must be string"


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "strin"},
        {"typ": "string"},
        {"properties": {"a": {"if": {}}}},
        {"properties": []},
        {"items": 3},
        {"pattern": "("},
        {"patternProperties": {"(": {}}},
        {"minimum": "1"},
        {"multipleOf": 0},
        {"enum": "a"},
        {"anyOf": {}},
        {"$ref": "http://example.com/schema"},
        {"$ref": "#/$defs/none"},
        {"$ref": "#"},
        {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"},
    ],
)
def test_a_schema_that_can_not_be_held_is_refused(schema: dict[str, Any]) -> None:
    with pytest.raises(SchemaProblem):
        check_schema(schema)


def test_a_schema_that_goes_round_without_end_is_no_crash() -> None:
    schema = {"anyOf": [{"$ref": "#"}]}
    check_schema(schema)
    assert violation(1, schema) == "the value or the schema nests too deep"


def test_huge_numbers_are_numbers() -> None:
    assert violation(10**400, {"type": "integer", "minimum": 1, "multipleOf": 10}) is None
    assert violation(10**400, {"multipleOf": 0.5}) is not None


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(value=json_values)
def test_any_value_fits_the_schema_that_names_it(value: Any) -> None:
    schema = {"const": value}
    check_schema(schema)
    assert violation(value, schema) is None
    assert violation([value], schema) is not None


KEYWORDS = st.sampled_from(
    [
        "type",
        "enum",
        "items",
        "properties",
        "patternProperties",
        "minimum",
        "pattern",
        "$ref",
        "anyOf",
        "required",
    ]
)


@given(value=json_values, schema=st.dictionaries(KEYWORDS, json_values))
def test_any_document_is_refused_or_can_be_checked(value: Any, schema: dict[str, Any]) -> None:
    try:
        check_schema(schema)
    except SchemaProblem:
        return
    assert violation(value, schema) is None or isinstance(violation(value, schema), str)

"""The part of JSON Schema 2020-12 that the committed schemas use, as a validator for the tests."""

import re
from typing import Any

TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}
ANNOTATIONS = {"$schema", "$defs", "title", "description", "default"}


def violations(schema: dict[str, Any], value: Any, *, root: dict[str, Any] | None = None, at: str = "$") -> list[str]:
    """Return what of ``value`` the schema does not allow, each with its place.

    Raises:
        KeyError: the schema uses a word that this validator does not know.
    """
    whole = root if root is not None else schema
    found: list[str] = []
    for word, rule in schema.items():
        if word not in ANNOTATIONS:
            found += _RULES[word](rule, value, whole, at)
    return found


def _type(rule: str, value: Any, _: Any, at: str) -> list[str]:
    # Python's booleans are integers, JSON's are not.
    good = isinstance(value, TYPES[rule]) and (rule == "boolean" or not isinstance(value, bool))
    return [] if good else [f"{at}: {value!r} is no {rule}"]


def _properties(rule: dict[str, Any], value: Any, root: Any, at: str) -> list[str]:
    if not isinstance(value, dict):
        return []
    parts = [violations(rule[key], item, root=root, at=f"{at}.{key}") for key, item in value.items() if key in rule]
    return [line for part in parts for line in part]


def _each(rule: Any, values: Any, root: Any, at: str) -> list[str]:
    if rule is True:
        return []
    items = values.values() if isinstance(values, dict) else values if isinstance(values, list) else []
    return [line for item in items for line in violations(rule, item, root=root, at=f"{at}[]")]


def _any_of(rule: list[dict[str, Any]], value: Any, root: Any, at: str) -> list[str]:
    choices = [violations(choice, value, root=root, at=at) for choice in rule]
    return [] if [] in choices else [line for choice in choices for line in choice]


_RULES: dict[str, Any] = {
    "type": _type,
    "properties": _properties,
    "items": _each,
    "additionalProperties": _each,
    "anyOf": _any_of,
    "$ref": lambda rule, value, root, at: violations(root["$defs"][rule.rpartition("/")[2]], value, root=root, at=at),
    "required": lambda rule, value, _, at: (
        [f"{at}.{key}: missing" for key in rule if key not in value] if isinstance(value, dict) else []
    ),
    "enum": lambda rule, value, _, at: [] if value in rule else [f"{at}: {value!r} is none of {rule}"],
    "const": lambda rule, value, _, at: [] if value == rule else [f"{at}: {value!r} is not {rule!r}"],
    # Each of these judges values of its own type only, as the specification says.
    "pattern": lambda rule, value, _, at: (
        [f"{at}: {value!r} does not match {rule}"] if isinstance(value, str) and not re.search(rule, value) else []
    ),
    "minLength": lambda rule, value, _, at: (
        [f"{at}: {value!r} is too short"] if isinstance(value, str) and len(value) < rule else []
    ),
    "minimum": lambda rule, value, _, at: (
        [f"{at}: {value!r} is below {rule}"] if isinstance(value, (int, float)) and value < rule else []
    ),
}

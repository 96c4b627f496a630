"""A validator for the part of JSON Schema that `trail-schema.json` uses."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SCHEMA: dict[str, Any] = json.loads(
    (Path(__file__).parents[1] / "trail-schema.json").read_text("utf-8")
)
_TYPES: dict[str, Any] = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": (int, float),
}


def problems(value: Any, schema: dict[str, Any] = SCHEMA, at: str = "") -> list[str]:
    """Return the problems of a value, each with its place; empty if it is valid."""
    return [f"{place or 'document'}: {what}" for place, what in _problems(value, schema, at)]


def _problems(value: Any, schema: dict[str, Any], at: str) -> Iterator[tuple[str, str]]:
    if "$ref" in schema:
        yield from _problems(value, SCHEMA["$defs"][schema["$ref"].rpartition("/")[2]], at)
    if "anyOf" in schema and all(list(_problems(value, each, at)) for each in schema["anyOf"]):
        yield at, "none of the alternatives"
    if "type" in schema and not isinstance(value, _TYPES[schema["type"]]):
        yield at, f"not of type {schema['type']}"
        return
    if value != schema.get("const", value) or value not in schema.get("enum", [value]):
        yield at, f"not {schema.get('const', schema.get('enum'))}"
    if isinstance(value, str):
        if not schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value)):
            yield at, f"{len(value)} characters"
        if not re.search(schema.get("pattern", ""), value):
            yield at, f"not like {schema['pattern']}"
    elif isinstance(value, int | float):
        if not schema.get("minimum", value) <= value <= schema.get("maximum", value):
            yield at, "out of range"
        if value <= schema.get("exclusiveMinimum", value - 1):
            yield at, "too small"
    elif isinstance(value, dict):
        for name in schema.get("required", ()):
            if name not in value:
                yield at, f"has no {name}"
        for name, inner in schema.get("properties", {}).items():
            if name in value:
                yield from _problems(value[name], inner, f"{at}.{name}")
    elif isinstance(value, list) and "items" in schema:
        for number, each in enumerate(value):
            yield from _problems(each, schema["items"], f"{at}[{number}]")

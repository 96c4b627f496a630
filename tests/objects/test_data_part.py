"""A data part keeps a JSON object under the name of its schema, and reads as text everywhere else."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trace_store import Data, Message, Repo, Text
from trace_store.errors import CorruptObjectError, InvalidMessageError

SCHEMA = "example.invoice/1"
INVOICE = {"total": 12.5, "lines": [{"text": "Zürich → Basel", "count": 2}]}
CANONICAL = '{"lines":[{"count":2,"text":"Zürich → Basel"}],"total":12.5}'


JSON_OBJECTS = st.dictionaries(
    st.text(),
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(st.characters(codec=None)),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=8,
    ),
    max_size=4,
)


@pytest.fixture
def repo() -> Repo:
    made = Repo.memory()
    made.commit(
        [Message("assistant", [Text("The invoice:"), Data(SCHEMA, INVOICE)], kind="invoice")]
    )
    return made


def test_it_comes_back_as_it_was(repo: Repo) -> None:
    (message,) = repo.compile().messages
    _, part = message.parts
    assert isinstance(part, Data)
    assert (part.schema, part.value, part.text) == (SCHEMA, INVOICE, CANONICAL)
    assert message.kind == "invoice"


def test_two_are_equal_whatever_the_order_of_their_keys() -> None:
    turned = Data(SCHEMA, dict(reversed(INVOICE.items())))
    assert turned == Data(SCHEMA, INVOICE)
    assert turned != Data("example.invoice/2", INVOICE)
    assert turned != Text(CANONICAL)


@pytest.mark.parametrize("provider", ["anthropic", "gemini", "openai", "openai-responses"])
def test_a_model_sees_its_json(repo: Repo, provider: str) -> None:
    request = repo.compile().render(provider).to_bytes().decode()
    assert "Zürich → Basel" in request
    assert SCHEMA not in request


def test_its_tokens_are_those_of_its_json(repo: Repo) -> None:
    other = Repo.memory()
    other.append("assistant", [Text("The invoice:"), Text(CANONICAL)])
    assert repo.compile().token_count == other.compile().token_count


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ([1], "not a dict"),
        ({"a": float("nan")}, "no JSON object"),
        ({"a": {1, 2}}, "no JSON object"),
    ],
)
def test_what_is_no_json_object_is_refused(data: object, told: str) -> None:
    with pytest.raises(InvalidMessageError, match=told):
        Data(SCHEMA, data)  # type: ignore[arg-type]


def test_a_schema_has_a_name() -> None:
    with pytest.raises(InvalidMessageError, match="schema of Data is empty"):
        Message("assistant", [Data("", {})])


def test_damaged_json_is_told_when_its_value_is_asked_for() -> None:
    damaged = Data(SCHEMA, "[1")
    assert damaged.indented == "[1"
    with pytest.raises(CorruptObjectError, match=SCHEMA):
        _ = damaged.value


@given(JSON_OBJECTS)
def test_the_text_is_that_of_json(data: dict[str, Any]) -> None:
    text = json.dumps(data, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    assert Data("acme.thing/1", data).text == text
    assert Data("acme.thing/1", text).value == data

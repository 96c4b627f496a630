"""Commits that are written from pieces are those that are made of their operations, whatever a transcript holds."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import trace_store
from tests.importers.support.transcripts import each_real_file, lively
from trace_store.importers import write
from trace_store.importers.import_paths import import_paths
from trace_store.store.store import Store
from trace_store.writer import Writer


def _leave_it(*args: Any, **more: Any) -> None:
    """What `encode_plain` says of a commit that it has no form for."""


def imported(path: str, form: str | None, *, plain: bool, source: bool) -> tuple[object, ...]:
    """What an import leaves: refs, objects, and its report."""
    with pytest.MonkeyPatch.context() as patch:
        if not plain:
            patch.setattr(write, "encode_plain", _leave_it)
        store = Store.memory()
        report = import_paths(Writer(store), [path], source=source, format=form)
    return dict(store.refs.iterate("refs/")), set(store.objects.iterate()), repr(report)


def assert_equal(path: str, form: str | None = None) -> None:
    for source in (True, False):
        quick = imported(path, form, plain=True, source=source)
        assert quick == imported(path, form, plain=False, source=source)


def test_of_an_invented_transcript(tmp_path: Path) -> None:
    assert_equal(str(lively().write(tmp_path)))


def test_of_the_packaged_samples() -> None:
    for sample in (Path(trace_store.__file__).parent / "samples").glob("*.jsonl"):
        assert_equal(str(sample))


@pytest.mark.parametrize("path", each_real_file())
def test_of_real_transcripts(path: Path) -> None:
    assert_equal(str(path))


TEXTS = st.text(max_size=60) | st.sampled_from(["", '"\\\n\t' * 20, "\0" * 50, "é\ud800" * 30])
IDS = st.sampled_from(["a", "b", "c", "n" * 40, "n" * 300, "é", ""])
NUMBERS = st.integers(-1, 2**54) | st.none() | st.booleans() | st.floats(0, 9)
USAGES = st.dictionaries(
    st.sampled_from(
        ["input_tokens", "output_tokens", "cache_read_input_tokens", "output_tokens_details"]
    ),
    NUMBERS | st.dictionaries(st.sampled_from(["reasoning_tokens", "thinking_tokens"]), NUMBERS),
)
BLOCKS = st.one_of(
    TEXTS,
    st.fixed_dictionaries({"type": st.just("text"), "text": TEXTS}),
    st.fixed_dictionaries({"type": st.just("thinking"), "thinking": TEXTS, "signature": TEXTS}),
    st.fixed_dictionaries(
        {"type": st.just("tool_use"), "id": IDS, "name": IDS, "input": st.dictionaries(IDS, TEXTS)}
    ),
    st.fixed_dictionaries(
        {
            "type": st.just("tool_result"),
            "tool_use_id": IDS,
            "content": TEXTS | st.lists(st.fixed_dictionaries({"type": IDS, "text": TEXTS})),
            "is_error": st.booleans(),
        }
    ),
)
CONTENTS = TEXTS | st.lists(BLOCKS, max_size=4) | st.lists(BLOCKS, min_size=15, max_size=18)
CLAUDE_CODE = st.fixed_dictionaries(
    {
        "type": st.sampled_from(["user", "assistant", "system", "summary"]),
        "uuid": IDS,
        "parentUuid": st.none() | IDS,
        "isSidechain": st.sampled_from([False, False, False, True]),
        "sessionId": st.just("s"),
        "timestamp": st.datetimes().map(lambda at: at.isoformat(timespec="milliseconds") + "Z"),
        "message": st.fixed_dictionaries(
            {"role": st.just("user"), "id": IDS, "model": IDS, "content": CONTENTS, "usage": USAGES}
        ),
    },
    optional={
        "isCompactSummary": st.booleans(),
        "toolUseResult": st.fixed_dictionaries({"stdout": TEXTS, "agentId": IDS}),
        "data": st.fixed_dictionaries({"type": IDS}),
    },
)


@given(st.lists(CLAUDE_CODE, min_size=1, max_size=8))
def test_of_random_records(records: list[dict[str, Any]]) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "session.jsonl"
        path.write_text("".join(json.dumps(record) + "\n" for record in records))
        assert_equal(str(path), "claude-code")

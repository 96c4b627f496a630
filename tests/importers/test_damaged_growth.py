"""Growing files with random records: imported in pieces, they equal one import."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.importers.support.checks import damaged, heads, lines_of
from tests.importers.support.rollouts import Rollout
from tests.importers.support.rollouts import lively as rollout
from tests.importers.test_codex_exec import EVENTS
from tests.importers.test_copilot import lively as copilot
from tests.importers.test_entire import RECORDS
from tests.support.examples import examples
from trace_store.importers.import_paths import import_paths
from trace_store.store.store import Store
from trace_store.writer import Writer


def turned() -> Rollout:
    """A rollout in which the context starts over and goes back."""
    r = rollout()
    r.add("compacted", message="The parser is fixed.")
    r.prompts("And now?")
    r.happens("thread_rolled_back", num_turns=1)
    return r


FILES: dict[str, list[dict[str, Any]]] = {
    "codex": turned().records,
    "codex-exec": EVENTS,
    "copilot": copilot().records,
    "entire": RECORDS,
}


@pytest.mark.parametrize("format", FILES)
@settings(max_examples=examples(25))
@given(data=st.data(), cuts=st.tuples(st.floats(0, 1), st.floats(0, 1)))
def test_a_damaged_file_grows(format: str, data: st.DataObject, cuts: tuple[float, float]) -> None:
    records = [*FILES[format][:3], *data.draw(damaged(FILES[format]))]
    whole = lines_of(records)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "session.jsonl"
        path.write_bytes(whole)
        expected = Store.memory()
        import_paths(Writer(expected), [str(path)], format=format)
        with Store.init(str(Path(folder) / "project"), durability="fast") as store:
            for size in sorted([*(int(cut * len(whole)) for cut in cuts), len(whole)]):
                if size:
                    path.write_bytes(whole[:size])
                    import_paths(Writer(store), [str(path)], format=format)
            assert heads(store) == heads(expected)

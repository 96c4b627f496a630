"""An index made from appends, in place or by the decoder, has what a fold has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.message_strategies import messages as any_messages
from trace_store import Message, Repo
from trace_store.context.compile_index import cold_view
from trace_store.context.folding_history import fold
from trace_store.context.index_building import records_of_fold
from trace_store.context.index_records import END, MessageRecord
from trace_store.objects.commit import read_commit


def shown(records: Sequence[MessageRecord]) -> list[tuple[Any, ...]]:
    """Return what records say of messages, without how the file is laid out."""
    return [
        (
            (record.commit, record.number, record.place_commit, record.place_number),
            (record.flags & ~END, record.role, record.kind, record.prefix, record.ordinal),
        )
        for record in records
        if record.is_message
    ]


turns = st.lists(
    st.one_of(
        st.lists(any_messages, min_size=1, max_size=3),
        st.text(max_size=5).map(lambda text: [Message("user", text)]),
        st.sampled_from(["usage", "tools"]),
    ),
    min_size=1,
    max_size=12,
)


@given(turns)
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_appends_make_what_a_fold_makes(history: list[Any]) -> None:
    with Repo.memory() as repo:
        tools = None
        for number, turn in enumerate(history):
            if turn == "usage":
                repo.record_usage({"input_tokens": 1, "output_tokens": number})
            elif turn == "tools":
                tools = repo.set_tools([{"name": f"tool {number}"}]).oid
            else:
                repo.commit(turn)
        tip, read = repo.resolve("HEAD"), repo.store.objects.read
        view = cold_view(tip, read)
        expected = records_of_fold(tip, fold(tip, lambda oid: read_commit(oid, read)))
        assert shown(list(view.messages())) == shown(expected)
        assert (view.tip, view.prefix_hash) == (tip, expected[-1].prefix)
        assert view.message_count == expected[-1].ordinal
        assert view.tools_commit() == tools

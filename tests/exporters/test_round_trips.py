"""What is written in another program's format, and read again, is the session but for what was listed as lost."""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings

import trace_store
from tests.exporters.support.cases import CASES, CLAUDE, GPT, of
from tests.exporters.support.differing import (
    Words,
    counted,
    difference,
    import_bytes,
    read_back,
)
from tests.exporters.support.invented import sessions
from tests.exporters.support.sessions import rich_session
from tests.importers.support.broken import DAMAGES
from tests.importers.support.transcripts import chosen_files, each_chosen_file, real_format
from tests.support.examples import examples
from tests.support.gemini_checker import check_gemini
from tests.support.request_checker import check_anthropic, check_openai_chat
from tests.support.request_types import (
    validate_anthropic,
    validate_gemini,
    validate_openai,
    validate_openai_responses,
)
from tests.support.responses_checker import check_openai_responses
from tests.support.valid_requests import assert_valid_requests
from trace_store.errors import InvalidInputError
from trace_store.exporters.contract import LOSSES, Exported, ExportSession
from trace_store.exporters.registry import FORMS, writer_named
from trace_store.exporters.session import read_session
from trace_store.importers.import_paths import import_paths
from trace_store.importers.registry import formats
from trace_store.objects.message import Message
from trace_store.objects.parts import Reasoning, Text, ToolCall, ToolResult
from trace_store.store.store import Store
from trace_store.writer import Writer

PAGE = Path(__file__).resolve().parents[2] / "docs" / "format" / "programs.md"
SAMPLE = Path(trace_store.__file__).parent / "samples" / "claude-code.jsonl"
NAMES = sorted(set(FORMS) & set(formats()))
CHECKS: dict[str, Any] = {
    "anthropic": (check_anthropic, validate_anthropic),
    "gemini-contents": (check_gemini, validate_gemini),
    "openai": (check_openai_chat, validate_openai),
    "openai-responses": (check_openai_responses, validate_openai_responses),
}
NOTHING_LEFT = "this format can hold no message"


def write(session: ExportSession, name: str) -> Exported | None:
    """The session in a format; None when none of its messages can stand there."""
    try:
        return writer_named(name).write(session)
    except InvalidInputError as error:
        if NOTHING_LEFT not in str(error):
            raise
        return None


def round_trip(session: ExportSession, name: str) -> tuple[ExportSession, Words] | None:
    """The session as it comes back, and what was listed as lost; all that must hold of it is asserted."""
    exported = write(session, name)
    if exported is None:
        return None
    again = writer_named(name).write(session)
    assert (again.to_bytes(), again.losses) == (exported.to_bytes(), exported.losses)
    back = read_back(exported.to_bytes(), name)
    found = difference(session, back)
    assert not found.gained
    listed = counted(exported)
    assert found.words == listed
    return back, listed


def of_file(data: bytes, format: str) -> Iterator[ExportSession]:
    """The sessions of a transcript, and of all branches beside them."""
    _, store = import_bytes(data, format)
    return in_store(store)


def of_path(path: Path) -> Iterator[ExportSession]:
    store = Store.memory()
    import_paths(Writer(store), [str(path)])
    return in_store(store)


def in_store(store: Store) -> Iterator[ExportSession]:
    for ref, _ in store.refs.iterate("refs/heads/sessions/"):
        yield read_session(store, ref)


# What is written into every format is made once.


@cache
def with_everything() -> ExportSession:
    return rich_session()


@cache
def exported_from(name: str) -> tuple[ExportSession, ...]:
    """The sessions of a session with everything, written in a format."""
    exported = write(with_everything(), name)
    assert exported is not None
    return tuple(of_file(exported.to_bytes(), name))


@cache
def smallest() -> Mapping[str, ExportSession]:
    return {what: make() for what, (_, make) in CASES.items()}


@cache
def damaged() -> tuple[ExportSession, ...]:
    """The sessions of all transcripts that are broken."""
    found: list[ExportSession] = []
    for damage in DAMAGES:
        store = Store.memory()
        import_paths(Writer(store), ["-"], format="claude-code", stdin=io.BytesIO(damage.data()))
        found += in_store(store)
    return tuple(found)


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_lost_but_what_is_listed(name: str) -> None:
    @settings(
        max_examples=examples(80, daily=10), deadline=None, suppress_health_check=list(HealthCheck)
    )
    @given(sessions())
    def check(session: ExportSession) -> None:
        round_trip(session, name)

    check()


@pytest.mark.parametrize("name", NAMES)
def test_a_session_with_everything(name: str) -> None:
    found = round_trip(with_everything(), name)
    assert found is not None
    assert_valid_requests([turn.message for turn in found[0].turns], found[0].tools)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in CHECKS])
def test_what_came_back_comes_back_again(name: str) -> None:
    """What a format gave back once it gives back always. Requests do not tell whose reasoning theirs was."""
    found = round_trip(with_everything(), name)
    assert found is not None
    again = round_trip(found[0], name)
    assert again is not None
    assert set(again[1]) <= {"label", "message-id", "message-model", "message-time", "session-fact"}
    said = [[turn.message.message().parts for turn in s.turns] for s in (found[0], again[0])]
    assert said[0] == said[1]


@pytest.mark.parametrize("name", NAMES)
def test_from_every_format_into_this_one(name: str) -> None:
    """What each writer makes is an invented transcript of its format; all of them go into this one."""
    for other in NAMES:
        for session in exported_from(other):
            found = round_trip(session, name)
            assert found is not None, other


@pytest.mark.parametrize("name", NAMES)
def test_from_transcripts_that_are_broken(name: str) -> None:
    for session in damaged():
        round_trip(session, name)


@pytest.mark.parametrize("path", each_chosen_file())
def test_real_transcripts_into_every_format(path: Path) -> None:
    """With -s the losses of each are printed."""
    for session in of_path(path):
        if not session.turns:
            continue
        for name in NAMES:
            found = round_trip(session, name)
            words = "nothing can stand there" if found is None else _told(found[1])
            print(f"{path.parent.name}/{path.stem[:40]} {session.thread} -> {name}: {words}")
            if found is not None:
                back = found[0]
                assert_valid_requests([turn.message for turn in back.turns], back.tools)


@pytest.mark.parametrize(
    ("start", "over"),
    [("claude-code", "codex"), ("claude-code", "openai"), ("codex", "claude-code")],
)
def test_there_and_back_again(start: str, over: str) -> None:
    """From one agent into another's format and back: with -s what was lost on both ways, and in all."""
    for path in [SAMPLE, *chosen_files()]:
        if real_format(path) != start:
            continue
        for session in of_path(path):
            there = round_trip(session, over) if session.turns else None
            if there is None:
                continue
            back = round_trip(there[0], start)
            assert back is not None
            found = difference(session, back[0])
            assert not found.gained
            # Nothing is lost on both ways together that neither of them lists.
            assert set(found.words) <= set(there[1]) | set(back[1])
            print(f"{path.stem[:40]} {session.thread}: {len(session.turns)} messages")
            print(f"  {start} -> {over}: {_told(there[1])}")
            print(f"  {over} -> {start}: {_told(back[1])}")
            print(f"  in all: {_told(found.words)}")
            _answers_stay_answered(session, back[0])


def _answers_stay_answered(session: ExportSession, back: ExportSession) -> None:
    """Calls and results are all there, and are still of each other."""

    def ids(of: ExportSession, kind: type[ToolCall] | type[ToolResult]) -> Counter[str]:
        parts = (part for turn in of.turns for part in turn.message.parts)
        return Counter(
            part.id if isinstance(part, ToolCall) else part.call_id
            for part in parts
            if isinstance(part, ToolCall | ToolResult) and isinstance(part, kind)
        )

    called, answered = ids(session, ToolCall), ids(session, ToolResult)
    both = set(called) & set(answered)
    assert both <= set(ids(back, ToolCall)) & set(ids(back, ToolResult))


def _told(words: Words) -> str:
    told = (f"{count:,} {word}" for word, count in sorted(words.items()))
    return ", ".join(told) or "nothing"


def go_on(request: dict[str, Any], name: str) -> dict[str, Any]:
    """The request with one more question, as somebody would send it who goes on from the file."""
    listed = {"gemini-contents": "contents", "openai-responses": "input"}.get(name, "messages")
    text = {"type": "text", "text": "And?"}
    asked: dict[str, Any] = {"role": "user", "content": [text]}
    if name == "gemini-contents":
        asked = {"role": "user", "parts": [{"text": "And?"}]}
    elif name == "openai-responses":
        asked |= {"type": "message", "content": [{**text, "type": "input_text"}]}
    return {**request, listed: [*request[listed], asked]}


def assert_taken(exported: Exported, name: str, *, signed: bool = True) -> None:
    """Assert that the provider takes the request of a file."""
    check, validate = CHECKS[name]
    request = go_on(json.loads(exported.to_bytes()), name)
    problems = check(request, signed=signed) if name == "gemini-contents" else check(request)
    # Anthropic joins neighbours of the same role.
    assert not [problem for problem in problems if "speaks twice in a row" not in problem]
    validate(request)


@pytest.mark.parametrize("name", sorted(CHECKS))
def test_requests_are_taken_by_their_providers(name: str) -> None:
    @settings(
        max_examples=examples(80, daily=10), deadline=None, suppress_health_check=list(HealthCheck)
    )
    @given(sessions(tell_apart=False))
    def check(session: ExportSession) -> None:
        exported = write(session, name)
        assume(exported is not None)
        assert exported is not None
        models = [t.message.model for t in session.turns if t.message.role == "assistant"]
        gemini = [model for model in models if "gemini" in model]
        assert_taken(exported, name, signed=not (gemini and "gemini-2" in gemini[-1]))

    check()


@pytest.mark.parametrize("path", each_chosen_file())
def test_requests_of_real_transcripts_are_taken(path: Path) -> None:
    for session in of_path(path):
        for name in CHECKS if session.turns else ():
            exported = write(session, name)
            old = any("gemini-2" in turn.message.model for turn in session.turns)
            if exported is not None:
                assert_taken(exported, name, signed=not old)


@pytest.mark.parametrize("name", NAMES)
def test_equal_sessions_give_equal_files_wherever_they_were_imported(
    name: str, tmp_path: Path
) -> None:
    made = []
    for folder in ("one", "another/one"):
        path = tmp_path / folder / f"{'0' * 8}-1111-4222-8333-944455556666.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(SAMPLE.read_bytes())
        (session,) = of_path(path)
        exported = writer_named(name).write(session)
        assert str(tmp_path).encode() not in exported.to_bytes()
        made.append((exported.to_bytes(), exported.losses, exported.file_name))
    assert made[0] == made[1]


def lost(name: str) -> set[str]:
    """What of all things that may be lost is lost in a format."""
    found = set()
    for what, (word, _) in CASES.items():
        exported = write(smallest()[what], name)
        if exported is None or counted(exported)[word]:
            found.add(what)
    return found


@pytest.mark.parametrize("name", NAMES)
def test_the_smallest_sessions(name: str) -> None:
    for session in smallest().values():
        round_trip(session, name)


def test_every_word_of_losses_is_of_use() -> None:
    """Each word is told of some case, or of what no case is needed for."""
    words = {word for word, _ in CASES.values()}
    others = {"original-bytes", "subagent", "image-form", "opaque-form", "session-fact", "text"}
    assert words | others == set(LOSSES)


def table() -> str:
    """What each format cannot carry, as the page shows it."""
    missing = {name: lost(name) for name in NAMES}
    rows = ["| what | is lost in |", "|---|---|"]
    for what in CASES:
        formats_without = [name for name in NAMES if what in missing[name]]
        formats_with = [name for name in NAMES if what not in missing[name]]
        mostly = len(formats_without) > len(formats_with)
        told = ", ".join(f"`{name}`" for name in (formats_with if mostly else formats_without))
        if mostly:
            rows.append(f"| {what} | all but {told} |" if told else f"| {what} | all |")
        else:
            rows.append(f"| {what} | {told or 'none'} |")
    return "\n".join(rows)


def test_the_page_says_what_each_format_cannot_carry() -> None:
    assert table() in PAGE.read_text(encoding="utf-8"), f"\n{table()}"


def test_reasoning_goes_to_its_maker_only() -> None:
    """OpenAI's encrypted reasoning is in no file of another provider's."""
    sealed = Reasoning("", "gAAAAABsealed")
    session = of(Message("user", "Go on."), Message("assistant", [sealed, Text("So.")], model=GPT))
    for name in NAMES:
        exported = writer_named(name).write(session)
        holds = name in ("codex", "langchain", "openai-responses", "trace-json")
        assert (b"gAAAAABsealed" in exported.to_bytes()) == holds, name


def test_a_long_session_is_recognised_by_its_beginning() -> None:
    """What stands first may be longer than what is looked at."""
    long = Message("user", "Be patient. " * 60_000)
    for first in (Message("system", "Be brief. " * 60_000), Message("system", "Be brief.")):
        session = of(first, long, Message("assistant", "Yes.", model=CLAUDE))
        for name in NAMES:
            exported = writer_named(name).write(session)
            read_back(exported.to_bytes(), name)


@pytest.mark.parametrize(
    ("name", "mark"),
    [
        ("claude-code", b'"isCompactSummary":true'),
        ("claude-code", b'"compact_boundary"'),
        ("codex", b'"compacted"'),
    ],
)
def test_a_summary_by_trace_is_a_compaction_in_the_file(name: str, mark: bytes) -> None:
    session = CASES["marks of Trace's own summaries"][1]()
    exported = writer_named(name).write(session)
    assert mark in exported.to_bytes().replace(b": ", b":")
    assert not counted(exported)["compaction"]
    first = read_back(exported.to_bytes(), name).turns[0]
    assert (first.reason, first.message.text) == ("compaction", session.turns[0].message.text)

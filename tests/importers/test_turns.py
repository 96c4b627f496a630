"""Conversion of readers' turns to commits; a grown file equals a single import."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.importers.support.states import commits, context
from trace_store.context.compiler import ContextCompiler
from trace_store.contracts.ref_names import FILES
from trace_store.importers.contract import Format, PlannedMessage
from trace_store.importers.import_paths import import_paths
from trace_store.importers.registry import formats
from trace_store.importers.turn_plan import TurnFormat
from trace_store.importers.turns import (
    Compaction,
    DocumentReader,
    Event,
    ResultClearing,
    Rewind,
    Switch,
    Turn,
    TurnEdit,
    UsageReport,
)
from trace_store.maintenance.fsck import fsck
from trace_store.objects.parts import Text, ToolCall, ToolResult
from trace_store.store.store import Store
from trace_store.transcripts.segments import restore
from trace_store.transcripts.sources import Record, source_records
from trace_store.writer import Writer

PLACE = "refs/heads/sessions/play/"


class PlayReader(DocumentReader):
    """Reads an invented format in which each record names its action."""

    AGENT = "play"
    LISTS = ("acts",)

    def begin(self, fields: dict[str, Any]) -> None:  # type: ignore[override]
        self.state = {"session": fields["play"]}

    def read(self, record: Record) -> Iterator[Event]:
        data = record.data
        if "play" in data:
            self.state = {"session": data["play"]}
        what, words = data.get("does"), data.get("words", "")
        key = data.get("key", "")
        if what == "prompts":
            yield Turn((PlannedMessage("user", (Text(words),)),), key=key, author="user")
        elif what == "answers":
            yield Turn(
                (PlannedMessage("assistant", (Text(words),)),), key=key, group=data.get("group", "")
            )
        elif what == "calls":
            call = ToolCall(words, "look", {"at": words})
            yield Turn((PlannedMessage("assistant", (call,)),), group=data["group"])
        elif what == "returns":
            result = ToolResult(words, f"what {words} gave")
            group = f"results of {data['group']}"
            yield Turn((PlannedMessage("tool", (result,)),), key=key, group=group)
        elif what == "costs":
            usage: dict[str, int | str] = {"input_total": 9, "output_total": len(words)}
            usage["source"] = "play"
            yield UsageReport(usage, key)
        elif what == "sums up":
            yield Compaction((PlannedMessage("user", (Text(words),)),), key=key)
        elif what == "rewords":
            messages = tuple(PlannedMessage("user", (Text(part),)) for part in words.split("|"))
            yield TurnEdit(key, messages)
        elif what == "answers anew":
            usage = {"input_total": 1, "output_total": len(words), "source": "play"}
            yield TurnEdit(key, (PlannedMessage("assistant", (Text(words),)),), usage=usage)
        elif what == "forgets":
            results = tuple((key, 0, (call,)) for call in words.split())
            yield ResultClearing(results, "[gone]")
        elif what == "regrets":
            self.state = {**self.state, "regret": key}
        elif what == "goes back":
            yield Rewind(key or None)
        elif what == "leaves":
            yield Switch(words, at=key or None)
        elif what == "offers":
            schemas = tuple(json.dumps({"name": name}).encode() for name in words.split())
            yield Turn((PlannedMessage("system", (Text("Use them."),)),), tools=schemas)
        elif what == "pins":
            message = PlannedMessage(
                "user", (Text(words),), name="ada", priority="pinned", labels=("plan",)
            )
            yield Turn((message,))
        elif what == "happens":
            yield Turn((), meta={"event": words}, links=(("file", "a.py"),))

    def finish(self) -> Iterator[Event]:
        if "regret" in self.state:
            yield Rewind(self.state["regret"])


def is_document(head: bytes) -> bool:
    return b'"acts"' in head


@pytest.fixture(autouse=True)
def play(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    format: Format = TurnFormat(
        "play", (".play",), lambda head: b'"play"' in head, PlayReader, is_document
    )
    monkeypatch.setitem(formats(), "play", format)
    yield
    formats.cache_clear()


def act(does: str, words: str = "", **more: Any) -> dict[str, Any]:
    return {"does": does, "words": words, **more}


STORY: list[dict[str, Any]] = [
    {"play": "hamlet"},
    act("prompts", "Scan at both.", key="p1"),
    act("calls", "c1", group="a"),
    {"note": "between"},
    act("calls", "c2", group="a"),
    act("returns", "c1", group="a"),
    act("returns", "c2", group="a"),
    act("costs"),
    act("answers", "Both are fine.", key="a2"),
    act("prompts", "Then rename one.", key="p2"),
    act("answers", "Renamed.", key="a3"),
    act("goes back", key="p2"),
    act("prompts", "No, keep both.", key="p3"),
    act("rewords", "No, keep both!", key="p3"),
    act("answers", "Kept.", key="a4"),
    act("rewords", "Scan at both, please.|And hurry.", key="p1"),
    act("leaves", "agents/rosencrantz", key="a4"),
    act("prompts", "You are a helper.", key="s1"),
    act("answers", "Helped.", key="s2"),
    act("leaves", ""),
    act("sums up", "Both were kept.", key="sum"),
    act("prompts", "What is left?", key="p5"),
    act("answers", "Silence.", key="a5"),
    {"note": "the end"},
]


def write(folder: Path, records: list[dict[str, Any]], name: str = "x") -> str:
    path = folder / f"{name}.play"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return str(path)


def refs(store: Store) -> dict[str, Any]:
    return {name.removeprefix(PLACE): oid for name, oid in store.refs.iterate("refs/heads/")}


def test_a_story(tmp_path: Path) -> None:
    with Store.init(str(tmp_path / "project")) as store:
        (report,) = import_paths(Writer(store), [write(tmp_path, STORY)]).files
        found = refs(store)
        assert set(found) == {"hamlet", "hamlet/rewinds/p2", "hamlet/agents/rosencrantz"}
        assert context(store, found["hamlet"]) == [
            "user: Both were kept.",
            "user: What is left?",
            "assistant: Silence.",
        ]
        assert context(store, found["hamlet/rewinds/p2"])[-2:] == [
            "user: Then rename one.",
            "assistant: Renamed.",
        ]
        assert context(store, found["hamlet/agents/rosencrantz"]) == [
            "user: You are a helper.",
            "assistant: Helped.",
        ]
        line = commits(store, found["hamlet"])
        before = [c for c in line if c.meta["record"] != "sum"]
        summed = context(store, line[line.index(before[-1])].parents[0])
        assert "user: What is left?" in summed
        (called,) = [c for c in line if [o.name for o in c.operations] == ["add", "usage"]]
        assert len(called.operations[0].fields["messages"][0]["parts"]) == 2
        assert sum(report.records.values()) == len(STORY)
        assert not [finding for finding in fsck(store) if finding.severity == "error"]


def test_what_was_said_before_the_summary(tmp_path: Path) -> None:
    store = Store.memory()
    import_paths(Writer(store), [write(tmp_path, STORY[:16])])
    assert context(store, refs(store)["hamlet"]) == [
        "user: Scan at both, please.",
        "assistant: c1 | c2",
        "tool: c1=what c1 gave | c2=what c2 gave",
        "assistant: Both are fine.",
        "user: No, keep both!",
        "assistant: Kept.",
        "user: And hurry.",
    ]


def test_a_document_makes_what_lines_make(tmp_path: Path) -> None:
    document = tmp_path / "x.play"
    document.write_text(json.dumps({"play": "hamlet", "acts": STORY[1:]}, indent=2))
    stores = Store.memory(), Store.memory()
    import_paths(Writer(stores[0]), [str(document)])
    import_paths(Writer(stores[1]), [write(tmp_path, STORY, "y")])
    ((_, tip),) = stores[0].refs.iterate(FILES)
    assert b"".join(restore(tip, stores[0].objects.read)) == document.read_bytes()
    assert [context(stores[0], oid) for oid in refs(stores[0]).values()] == [
        context(stores[1], oid) for oid in refs(stores[1]).values()
    ]


@pytest.mark.parametrize("cut", range(1, 1200, 97))
def test_a_document_that_was_cut_short_gives_what_is_whole(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "x.play"
    whole = json.dumps({"play": "hamlet", "acts": STORY[1:]}, indent=2)
    path.write_text(whole[: len(whole) - cut])
    (report,) = import_paths(Writer(Store.memory()), [str(path)]).files
    assert [skip.reason for skip in report.skips][-1:] == ["cut-short"]
    assert report.messages > 0


@pytest.mark.parametrize("seed", range(6))
def test_a_grown_file_makes_what_one_import_makes(tmp_path: Path, seed: int) -> None:
    chosen = random.Random(seed)
    expected = Store.memory()
    import_paths(Writer(expected), [write(tmp_path, STORY, "whole")])
    with Store.init(str(tmp_path / "project"), durability="fast") as store:
        data = Path(write(tmp_path, STORY)).read_bytes()
        path = tmp_path / "growing.play"
        for cut in sorted(chosen.sample(range(20, len(data)), 9)):
            path.write_bytes(data[:cut])
            import_paths(Writer(store), [str(path)])
        path.write_bytes(data)
        import_paths(Writer(store), [str(path)])
        assert refs(store) == refs(expected)
        again = import_paths(Writer(store), [str(path)])
        assert (again.commits, again.files[0].skipped) == (0, "unchanged")


def test_a_round_that_grows(tmp_path: Path) -> None:
    """A repeated message in a round replaces the earlier one; usage is found by key."""
    words = "Both files are fine, as far as one can see from here without running anything."
    acts = [
        {"play": "hamlet"},
        act("prompts", "Scan at both.", key="p1"),
        act("answers", words, key="a1"),
        act("costs", "of a1", key="a1"),
        act("answers anew", words + " Now I ran it.", key="a1"),
        act("answers anew", words, key="a1"),
        act("costs", "of nobody", key="a0"),
    ]
    store = Store.memory()
    import_paths(Writer(store), [write(tmp_path, acts)])
    tip = refs(store)["hamlet"]
    assert context(store, tip) == ["user: Scan at both.", f"assistant: {words}"]
    last = commits(store, tip)[-1]
    (usage,) = [o for o in last.operations if o.name == "usage"]
    assert usage.fields["output_total"] == len(words)
    # All records are there, and the message's text is not stored twice.
    kept = source_records(last, store.objects.read)
    assert kept == [json.dumps(each).encode() for each in acts[2:]]
    assert store.objects.read(last.meta["source"]).count(words.encode()) == 1


def test_results_that_are_put_aside(tmp_path: Path) -> None:
    acts = [
        {"play": "hamlet"},
        act("prompts", "Scan at both.", key="p1"),
        act("calls", "c1", group="a"),
        act("calls", "c2", group="a"),
        act("returns", "c1", group="a", key="r"),
        act("returns", "c2", group="a"),
        act("answers", "Both are fine.", key="a2"),
        act("forgets", "c1", key="r"),
        act("forgets", "c1", key="nobody"),
        act("prompts", "And now?", key="p2"),
        act("sums up", "All is well.", key="s"),
        act("forgets", "c2", key="r"),
        act("answers", "Indeed.", key="a3"),
    ]
    store = Store.memory()
    import_paths(Writer(store), [write(tmp_path, acts)])
    line = commits(store, refs(store)["hamlet"])
    (cleared,) = [c for c in line if [o.name for o in c.operations] == ["edit"]]
    at = line.index(cleared)
    assert "tool: c1=[gone] | c2=what c2 gave" in context(store, line[at + 1].parents[0])
    assert "tool: c1=what c1 gave | c2=what c2 gave" in context(store, cleared.parents[0])
    assert context(store, refs(store)["hamlet"]) == ["user: All is well.", "assistant: Indeed."]


@pytest.mark.parametrize("key", ["p2", "p1"])
def test_a_file_whose_end_goes_back(tmp_path: Path, key: str) -> None:
    acts = [act("regrets", key=key), *STORY[1:11]]
    document = tmp_path / "x.play"
    document.write_text(json.dumps({"play": "hamlet", "acts": acts}))
    store = Store.memory()
    import_paths(Writer(store), [str(document)])
    found = refs(store)
    assert context(store, found[f"hamlet/rewinds/{key}"])[-1] == "assistant: Renamed."
    if key == "p2":
        assert context(store, found["hamlet"])[-1] == "assistant: Both are fine."
    else:
        assert "hamlet" not in found, "nothing is left that it could end with"
    assert import_paths(Writer(store), [str(document)]).commits == 0
    assert refs(store) == found


MARKS = [
    {"play": "hamlet"},
    act("offers", "look listen"),
    act("pins", "Scan at both."),
    act("happens", "a duel"),
    act("happens", "another"),
    act("offers", ""),
    act("answers", "Both are fine."),
]


@pytest.mark.parametrize("onto", [None, "main"])
def test_tools_marks_and_what_only_happens(tmp_path: Path, onto: str | None) -> None:
    store = Store.memory()
    (report,) = import_paths(Writer(store), [write(tmp_path, MARKS)], onto=onto).files
    (tip,) = (oid for _, oid in store.refs.iterate("refs/heads/"))
    line = commits(store, tip)
    assert [[o.name for o in commit.operations] for commit in line] == [
        *(["tools", "add"], ["add", "annotate"], [], [], ["tools", "add"], ["add"])
    ]
    compiler = ContextCompiler(store)
    assert compiler.compile(line[4].parents[0]).tools == ({"name": "look"}, {"name": "listen"})
    context = compiler.compile(tip)
    assert context.tools == ()
    pinned = context.messages[1]
    assert (pinned.name, pinned.priority, pinned.labels) == (
        "ada",
        "pinned",
        frozenset({"plan"}),
    )
    assert [(c.meta["event"], c.links) for c in line[2:4]] == [
        ("a duel", (("file", "a.py"),)),
        ("another", (("file", "a.py"),)),
    ]
    assert dict(report.records)["untyped", "event"] == 2
    again = import_paths(Writer(store), [write(tmp_path, MARKS)], onto=onto)
    assert (again.commits, report.messages) == (0, 4)


@pytest.mark.parametrize("source", [True, False])
def test_what_happens_is_kept_without_its_records_too(tmp_path: Path, source: bool) -> None:
    store = Store.memory()
    import_paths(Writer(store), [write(tmp_path, MARKS)], source=source)
    events = [c for c in commits(store, refs(store)["hamlet"]) if not c.operations]
    assert len(events) == 2

"""The checkpoint saver and the store of LangGraph, with the real package and its conformance kit."""

from __future__ import annotations

import asyncio
import operator
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest

from trace_store import Repo, errors

pytest.importorskip("langgraph")

from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, ToolMessage
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command, interrupt

from trace_store.integrations.langgraph import TraceSaver
from trace_store.integrations.langgraph_store import TraceStore

THREAD: Any = {"configurable": {"thread_id": "Ä/t 1", "checkpoint_ns": ""}}
SECRET = "password=Tr0ub4dor-3x"


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    with Repo.init(tmp_path, author="ada", durability="fast") as made:
        yield made


def checkpoint(id: str, version: int, **values: Any) -> Any:
    """Return a checkpoint whose channels all have one version."""
    versions = dict.fromkeys(values, f"{version:032}.0")
    return {
        "v": 4,
        "id": id,
        "ts": "2026-11-28T00:00:00+00:00",
        "versions_seen": {},
        "channel_values": values,
        "channel_versions": versions,
        "updated_channels": None,
    }


def put(saver: TraceSaver, config: Any, id: str, version: int, **values: Any) -> Any:
    made = checkpoint(id, version, **values)
    metadata: Any = {"source": "loop", "step": version, "parents": {}}
    return saver.put(config, made, metadata, made["channel_versions"])


def agent(saver: Any) -> Any:
    """Return a graph that answers, and asks a person about "stop?"."""

    def talk(state: MessagesState) -> Any:
        return {"messages": [AIMessage(f"answer to {state['messages'][-1].content}")]}

    def ask(state: MessagesState) -> Any:
        if state["messages"][-2].content == "stop?":
            interrupt("really?")
        return {}

    graph = StateGraph(MessagesState)
    graph.add_node("talk", talk)
    graph.add_node("ask", ask)
    graph.add_edge(START, "talk")
    graph.add_edge("talk", "ask")
    graph.add_edge("ask", END)
    return graph.compile(checkpointer=saver)


def say(graph: Any, text: str, config: Any = THREAD) -> Any:
    return graph.invoke({"messages": [HumanMessage(text)]}, config)["messages"]


def test_a_string_of_a_state_that_is_no_message_is_found_once_and_sent_to_no_model(
    repo: Repo,
) -> None:
    saver = TraceSaver(repo)
    config = put(saver, THREAD, "1", 1, messages=[HumanMessage("Where to?", id="m1")])
    state = {"route": {"stops": ["By train to Örebro", "Berlin"], "version": "0001.5"}}
    saver.put_writes(config, [("plan", state)], "task-1")
    asked = [HumanMessage("Where to?", id="m1"), AIMessage("Along the coast.", id="m2")]
    config = put(saver, config, "2", 2, messages=asked, plan=state)
    put(saver, config, "3", 3, messages=asked, plan={**state, "note": "a late note"})
    for word in ("train", "berlin"):
        (hit,) = repo.search(word)
        assert hit.hidden
        assert hit.ref.startswith(saver._store.name())
        assert hit.snippet.text[hit.snippet.start : hit.snippet.end].lower() == word
    (hit,) = repo.search('"late note"')
    assert (hit.hidden, hit.ref.rpartition("/")[2]) == ("channel/plan", "main")
    (hit,) = repo.search("coast")  # a message, which the channel has, too
    assert (hit.hidden, hit.role) == ("", "assistant")
    assert not repo.search("0001")
    assert len(repo.search("loop")) == 1  # each checkpoint has it
    assert not repo.search("berlin", role="user")
    assert not repo.search("berlin", hidden=False)
    assert "Berlin" not in str(repo.compile(hit.ref).render("openai").request)


def test_items_are_found_and_secrets_in_values_are_not(repo: Repo) -> None:
    store = TraceStore(repo)
    store.put(("users", "ada"), "home", {"city": "Linköping", "tags": ["near the lake"]})
    store.put(("users", "ada"), "login", {"said": f"remember {SECRET}"})
    (hit,) = repo.search("lake")
    assert hit.hidden
    assert not repo.search("remember")
    store.erase(("users",))
    assert not repo.search("lake")


def names(repo: Repo) -> list[str]:
    return [name for name, _ in repo.store.refs.iterate("refs/records/langgraph/")]


def main_of(repo: Repo) -> str:
    (name,) = (each for each in names(repo) if each.endswith("/main"))
    return name


def stored_bytes(repo: Repo, text: bytes) -> list[str]:
    """Return the files that hold a text, as it is or in an object."""
    repo.seal()
    found = [
        oid
        for oid, data in repo.store.objects.read_many(repo.store.objects.iterate())
        if text in data
    ]
    root = Path(repo.store.layout.root)
    files = [path.name for path in root.rglob("*") if path.is_file() and text in path.read_bytes()]
    return [*map(str, found), *files]


def test_the_conformance_kit_passes(tmp_path: Path) -> None:
    kit = pytest.importorskip(
        "langgraph.checkpoint.conformance", reason="needs langgraph-checkpoint-conformance"
    )
    count = 0

    @kit.checkpointer_test(name="TraceSaver")  # type: ignore[untyped-decorator]
    async def saver() -> AsyncIterator[TraceSaver]:
        nonlocal count
        count += 1
        with Repo.init(tmp_path / str(count), durability="fast") as made:
            yield TraceSaver(made)

    report = asyncio.run(kit.validate(saver))
    failures = [each for result in report.results.values() for each in result.failures or ()]
    assert not failures
    assert report.passed_all()
    assert sum(result.tests_passed for result in report.results.values()) >= 81


def test_a_thread_reads_like_a_branch(repo: Repo) -> None:
    graph = agent(TraceSaver(repo))
    say(graph, "first")
    said = say(graph, "second")
    name = main_of(repo)
    context = repo.compile(name)
    assert [(m.role, m.text) for m in context] == [
        ("user", "first"),
        ("assistant", "answer to first"),
        ("user", "second"),
        ("assistant", "answer to second"),
    ]
    assert not context.render("openai").repairs
    assert [m.id for m in context] == [m.id for m in said]
    summaries = [entry.summary() for entry in repo.log(name)]
    assert "assistant: answer to second" in summaries
    newest = graph.get_state(THREAD).config["configurable"]["checkpoint_id"]
    (entry,) = repo.log(name, meta=f"langgraph.checkpoint={newest}")
    assert entry.facts["langgraph.thread"] == "Ä/t 1"
    assert [hit.ref for hit in repo.search("second")][:1] == [name]
    assert [hit.ref for hit in repo.search("second", session="Ä/t 1")][:1] == [name], "by its id"
    assert not repo.branches.list()
    assert not repo.tags.list()
    assert not repo.maintenance.fsck()


def test_a_fork_and_an_interrupt_go_on_in_a_new_process(tmp_path: Path) -> None:
    with Repo.init(tmp_path, durability="fast") as repo:
        graph = agent(TraceSaver(repo))
        for text in ("q0", "q1"):
            say(graph, text)
        say(graph, "stop?")
        assert graph.get_state(THREAD).next == ("ask",)
        states = list(graph.get_state_history(THREAD))
        early = next(s for s in states if len(s.values.get("messages", [])) == 2 and not s.next)
    with Repo.open(tmp_path) as repo:
        graph = agent(TraceSaver(repo))
        resumed = graph.invoke(Command(resume=True), THREAD)["messages"]
        assert len(resumed) == 6
        forked = say(graph, "other way", early.config)
        assert [m.content for m in forked][1:3] == ["answer to q0", "other way"]
        lines = {name.rpartition("/")[2].partition("-")[0] for name in names(repo)}
        assert lines == {"main", "fork", "writes"}
        assert [m.text for m in repo.compile(main_of(repo))] == [m.content for m in resumed]
        history = [
            s.config["configurable"]["checkpoint_id"] for s in graph.get_state_history(THREAD)
        ]
        assert history == sorted(set(history), reverse=True)
        assert len(history) > len(states)


def test_the_context_follows_removed_and_changed_messages(repo: Repo) -> None:
    saver = TraceSaver(repo)
    a, b, c = (HumanMessage(text, id=text) for text in "abc")
    changed = HumanMessage("other b", id="b")
    steps = [[a], [a, b, c], [a, changed, c], [changed, c], [c], [HumanMessage("s", id="s"), c], []]
    config = THREAD
    for number, messages in enumerate(steps):
        config = put(saver, config, f"{number:04}", number + 1, messages=messages)
        shown = [m.text for m in repo.compile(main_of(repo))]
        assert shown == [m.content for m in messages]
        found = TraceSaver(repo).get_tuple(THREAD)
        assert found is not None
        assert found.checkpoint["channel_values"]["messages"] == messages
    earlier = [t.checkpoint["channel_values"]["messages"] for t in TraceSaver(repo).list(THREAD)]
    assert earlier == steps[::-1]


def test_a_message_that_a_user_removed_stays_in_the_state(repo: Repo) -> None:
    saver = TraceSaver(repo)
    messages: list[Any] = [HumanMessage(text, id=text) for text in "abc"]
    config = put(saver, THREAD, "1", 1, messages=messages)
    line = repo.line(main_of(repo))
    line.remove(line.compile().messages[1].address)
    assert saver.get_tuple(THREAD).checkpoint["channel_values"]["messages"] == messages  # type: ignore[union-attr]
    put(saver, config, "2", 2, messages=[*messages, AIMessage("d", id="d")])
    assert [m.text for m in line.compile()] == ["a", "c", "d"]
    assert not [name for name in names(repo) if "fork" in name]


def test_values_come_back_byte_for_byte_with_their_secrets(repo: Repo, caplog: Any) -> None:
    saver = TraceSaver(repo)
    call = {"name": "look", "args": {"q": SECRET}, "id": "c1", "type": "tool_call"}
    values = {
        "messages": [
            HumanMessage(SECRET, id="1"),
            AIMessage([{"type": "text", "text": "\x00 e\u0301"}], id="2", tool_calls=[call]),
            ToolMessage("found", tool_call_id="c1", id="3", artifact={"rows": [1, 2.5, None]}),
        ],
        "raw": b"\x00" + SECRET.encode() + b"\xff",
        "text": "x" * 150 + SECRET,
        "numbers": [1, 2, 3],
        "nested": {"a": [SECRET, [1, 2], {3, 4}], "big": "y" * 9_000_000},
    }
    config = put(saver, THREAD, "1", 1, **values)
    found = TraceSaver(repo).get_tuple(config)
    assert found is not None
    assert found.checkpoint["channel_values"] == values
    assert [type(m) for m in found.checkpoint["channel_values"]["messages"]] == [
        *(HumanMessage, AIMessage, ToolMessage)
    ]
    warnings = [each for each in caplog.messages if "secret" in each]
    assert len(warnings) == 1
    put(saver, config, "2", 2, more=SECRET)
    assert [each for each in caplog.messages if "secret" in each] == warnings
    assert "redacted" in repo.compile(main_of(repo)).messages[0].text
    assert {each.rule for each in repo.maintenance.scan_secrets().found} == {"password"}
    assert not repo.maintenance.fsck()


def test_a_store_may_refuse_secrets_and_says_what_it_cannot_do(repo: Repo) -> None:
    saver = TraceSaver(repo, secrets="refuse")
    with pytest.raises(errors.SecretFoundError):
        put(saver, THREAD, "1", 1, text=SECRET)
    assert saver.get_tuple(THREAD) is None
    with pytest.raises(errors.InvalidInputError, match="never changed"):
        TraceSaver(repo, secrets="redact")


def test_writes_are_in_the_order_of_their_paths_and_may_come_first(repo: Repo) -> None:
    saver = TraceSaver(repo)
    config: Any = {"configurable": {**THREAD["configurable"], "checkpoint_id": "1"}}
    saver.put_writes(config, [("a", 1), ("b", 2)], "task-1", "~2")
    saver.put_writes(config, [("a", 3)], "task-2", "~1")
    saver.put_writes(config, [("a", 9), ("__error__", "one")], "task-1", "~2")
    saver.put_writes(config, [("__error__", "two")], "task-1", "~2")
    put(saver, THREAD, "1", 1, x=0)
    found = TraceSaver(repo).get_tuple(THREAD)
    assert found is not None
    assert found.pending_writes == [
        ("task-2", "a", 3),
        ("task-1", "__error__", "two"),
        ("task-1", "a", 1),
        ("task-1", "b", 2),
    ]


def test_a_channel_of_changes_is_rebuilt_also_after_a_prune(repo: Repo) -> None:
    delta = pytest.importorskip("langgraph.channels.delta")

    def add(state: list[str], writes: list[list[str]]) -> list[str]:
        return state + [each for write in writes for each in write]

    channel = delta.DeltaChannel(add, snapshot_frequency=7)
    graph = StateGraph(TypedDict("State", {"log": Annotated[list[str], channel]}))  # type: ignore[operator]
    graph.add_node("note", lambda state: {"log": [f"n{len(state['log'])}"]})
    graph.add_edge(START, "note")
    graph.add_edge("note", END)
    saver = TraceSaver(repo)
    compiled = graph.compile(checkpointer=saver)
    for number in range(12):
        compiled.invoke({"log": [f"u{number}"]}, THREAD)
    wanted = compiled.get_state(THREAD).values["log"]
    assert len(wanted) == 24
    before = len(list(saver.list(THREAD)))
    saver.prune(["Ä/t 1"])
    assert len(list(saver.list(THREAD))) < before
    assert compiled.get_state(THREAD).values["log"] == wanted
    compiled.invoke({"log": ["u12"]}, THREAD)
    assert compiled.get_state(THREAD).values["log"][:24] == wanted


def test_a_deleted_thread_is_gone_from_the_disk(repo: Repo) -> None:
    saver = TraceSaver(repo)
    for thread in ("one", "two"):
        config: Any = {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}
        said = [HumanMessage("shared text", id="s"), HumanMessage(f"only in {thread}", id="o")]
        config = put(saver, config, "1", 1, messages=said, plan={"note": f"plan of {thread}"})
        saver.put_writes(config, [("plan", f"written by {thread}")], "task")
    repo.search("shared")
    for text in (b"only in one", b"plan of one", b"written by one"):
        assert stored_bytes(repo, text)
    saver.delete_thread("one")
    for text in (b"only in one", b"plan of one", b"written by one"):
        assert not stored_bytes(repo, text)
    other: Any = {"configurable": {"thread_id": "two", "checkpoint_ns": ""}}
    assert saver.get_tuple(other).checkpoint["channel_values"]["plan"]  # type: ignore[union-attr]
    assert {hit.snippet.text for hit in repo.search("only")} == {"only in two"}
    assert not repo.trash.list().refs
    assert not repo.maintenance.fsck()


def test_a_pruned_thread_frees_what_only_old_checkpoints_had(repo: Repo) -> None:
    saver = TraceSaver(repo)
    config: Any = THREAD
    messages: list[Any] = []
    for number in range(5):
        messages = [*messages[-1:], HumanMessage(f"message {number}", id=str(number))]
        config = put(
            saver, config, f"{number}", number + 1, messages=messages, plan=f"plan {number}"
        )
    saver.prune(["Ä/t 1"])
    found = saver.get_tuple(THREAD)
    assert found is not None
    assert found.checkpoint["channel_values"] == {"messages": messages, "plan": "plan 4"}
    assert [m.text for m in repo.compile(main_of(repo))] == ["message 3", "message 4"]
    assert not stored_bytes(repo, b"plan 3")
    assert not stored_bytes(repo, b"message 2")
    put(saver, config, "5", 6, messages=[*messages, HumanMessage("more", id="m")])
    assert [m.text for m in repo.compile(main_of(repo))] == ["message 3", "message 4", "more"]
    with pytest.raises(errors.InvalidInputError, match="strategy"):
        saver.prune(["Ä/t 1"], strategy="some")


def test_checkpoints_of_a_run_go_and_later_ones_stay(repo: Repo) -> None:
    saver = TraceSaver(repo)
    config: Any = THREAD
    for number, run in enumerate(["r1", "r2", "r1", "r3"]):
        messages = [HumanMessage(f"m{each}", id=str(each)) for each in range(number + 1)]
        made = checkpoint(f"{number}", number + 1, messages=messages, plan=f"plan {number}")
        metadata: Any = {"source": "loop", "step": number, "run_id": run}
        config = saver.put(config, made, metadata, made["channel_versions"])
    saver.copy_thread("Ä/t 1", "copy")
    saver.delete_for_runs(["r1"])
    for thread in ("Ä/t 1", "copy"):
        own: Any = {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}
        left = [(t.metadata["run_id"], t.checkpoint["channel_values"]) for t in saver.list(own)]
        assert [run for run, _ in left] == ["r3", "r2"]
        assert [m.content for m in left[0][1]["messages"]] == ["m0", "m1", "m2", "m3"]
    assert not stored_bytes(repo, b"plan 2")
    assert [m.text for m in repo.compile(main_of_thread(repo, "copy"))] == ["m0", "m1", "m2", "m3"]
    threads = {t.config["configurable"]["thread_id"] for t in saver.list(None)}
    assert threads == {"Ä/t 1", "copy"}
    with pytest.raises(errors.AlreadyExistsError):
        saver.copy_thread("Ä/t 1", "copy")


def main_of_thread(repo: Repo, thread: str) -> str:
    return next(each for each in names(repo) if f"/{thread}/" in each and each.endswith("/main"))


def test_twenty_threads_write_at_once(repo: Repo) -> None:
    graph = agent(TraceSaver(repo))

    def talk(number: int) -> int:
        config = {"configurable": {"thread_id": f"thread-{number}"}}
        for turn in range(3):
            say(graph, f"{number}-{turn}", config)
        return len(graph.get_state(config).values["messages"])

    with ThreadPoolExecutor(20) as pool:
        assert [*pool.map(talk, range(20))] == [6] * 20
    assert not repo.maintenance.fsck()


RACE = """
import sys
from trace_store import Repo
from trace_store.integrations.langgraph import TraceSaver
folder, who = sys.argv[1:]
with Repo.open(folder, durability="fast") as repo:
    saver = TraceSaver(repo)
    config = {"configurable": {"thread_id": "t", "checkpoint_ns": "", "checkpoint_id": "0"}}
    for number in range(1, 21):
        versions = {"x": f"{number:032}.{who}"}
        values = {"v": 4, "id": f"{number:04}{who}", "ts": "", "channel_values": {"x": f"{who}{number}"}}
        values |= {"channel_versions": versions, "versions_seen": {}, "updated_channels": None}
        config = saver.put(config, values, {"source": "loop", "step": number}, versions)
        saver.put_writes(config, [("x", f"{who}{number}")], f"task-{who}")
"""


def test_two_processes_on_one_thread_never_land_on_each_others_state(tmp_path: Path) -> None:
    with Repo.init(tmp_path, durability="fast") as repo:
        config: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
        put(TraceSaver(repo), config, "0", 1, x="root")
    started = [
        subprocess.Popen([sys.executable, "-c", RACE, str(tmp_path), who]) for who in ("a", "b")
    ]
    assert [each.wait(timeout=200) for each in started] == [0, 0]
    with Repo.open(tmp_path) as repo:
        saver = TraceSaver(repo)
        found = {t.checkpoint["id"]: t for t in saver.list(config)}
        assert len(found) == 41
        for who in ("a", "b"):
            id = f"0020{who}"
            for number in range(20, 0, -1):
                each = found[id]
                assert each.checkpoint["channel_values"] == {"x": f"{who}{number}"}
                assert each.pending_writes == [(f"task-{who}", "x", f"{who}{number}")]
                assert each.parent_config is not None
                id = each.parent_config["configurable"]["checkpoint_id"]
            assert id == "0"
        lines = [name for name in names(repo) if not name.endswith("/writes")]
        assert len(lines) == 2
        assert not repo.maintenance.fsck()


def test_what_a_serializer_encrypts_makes_no_context(repo: Repo) -> None:
    encrypted = pytest.importorskip("langgraph.checkpoint.serde.encrypted")

    class Reversing:
        def encrypt(self, plaintext: bytes) -> tuple[str, bytes]:
            return "reversed", plaintext[::-1]

        def decrypt(self, ciphername: str, ciphertext: bytes) -> bytes:
            return ciphertext[::-1]

    saver = TraceSaver(repo, serde=encrypted.EncryptedSerializer(Reversing()))
    said = [HumanMessage("hush", id="1")]
    put(saver, THREAD, "1", 1, messages=said)
    assert saver.get_tuple(THREAD).checkpoint["channel_values"] == {"messages": said}  # type: ignore[union-attr]
    assert not len(repo.compile(main_of(repo)))


def test_async_methods_do_the_same(repo: Repo) -> None:
    async def talk() -> tuple[int, int]:
        graph = agent(TraceSaver(repo))
        for text in ("one", "two"):
            await graph.ainvoke({"messages": [HumanMessage(text)]}, THREAD)
        state = await graph.aget_state(THREAD)
        await graph.aupdate_state(
            THREAD, {"messages": [RemoveMessage(state.values["messages"][0].id)]}
        )
        history = [each async for each in graph.aget_state_history(THREAD)]
        return len(history), len((await graph.aget_state(THREAD)).values["messages"])

    assert asyncio.run(talk()) == (9, 3)


def test_other_reducers_and_subgraphs_keep_their_namespaces(repo: Repo) -> None:
    class State(TypedDict):
        total: Annotated[int, operator.add]

    inner = StateGraph(State)
    inner.add_node("add", lambda state: {"total": 1})
    inner.add_edge(START, "add")
    inner.add_edge("add", END)
    outer = StateGraph(State)
    outer.add_node("inner", inner.compile(checkpointer=True))
    outer.add_edge(START, "inner")
    outer.add_edge("inner", END)
    graph = outer.compile(checkpointer=TraceSaver(repo))
    for _ in range(2):
        graph.invoke({"total": 1}, THREAD)
    folders = {name.split("/")[4] for name in names(repo)}
    assert "root" in folders
    assert len(folders) == 2
    assert not repo.maintenance.fsck()


def test_a_store_keeps_items_with_their_history(repo: Repo) -> None:
    store = TraceStore(repo)
    store.put(("users", "1"), "taste", {"color": "dark", "size": 3})
    store.put(("users", "12"), "taste", {"color": "light", "size": 5})
    store.put(("users", "1"), "taste", {"color": "blue", "size": 4})
    store.put(("notes",), f"key {SECRET}", {"text": f"the blue sky {SECRET}"})
    again = TraceStore(repo)
    item = again.get(("users", "1"), "taste")
    assert item is not None
    assert (item.value, item.created_at <= item.updated_at) == ({"color": "blue", "size": 4}, True)
    assert again.get(("notes",), f"key {SECRET}").value["text"].endswith(SECRET)
    assert [each.key for each in again.search(("users", "1"))] == ["taste"]
    assert [i.value["size"] for i in again.search(("users",), filter={"size": {"$gt": 4}})] == [5]
    ranked = again.search((), query="blue sky")
    assert [(i.namespace, i.score) for i in ranked] == [(("notes",), 1.0), (("users", "1"), 0.5)]
    assert again.list_namespaces(prefix=("users",)) == [("users", "1"), ("users", "12")]
    assert again.list_namespaces(max_depth=1) == [("notes",), ("users",)]
    again.delete(("users", "1"), "taste")
    assert again.get(("users", "1"), "taste") is None
    values = [value for _, value in again.history(("users", "1"), "taste")]
    assert values == [None, {"color": "blue", "size": 4}, {"color": "dark", "size": 3}]
    again.erase(("users",))
    assert not again.history(("users", "1"), "taste")
    assert not stored_bytes(repo, b"light")
    assert again.list_namespaces() == [("notes",)]
    with pytest.raises(errors.InvalidInputError, match="JSON"):
        again.put(("x",), "y", {"z": object()})
    assert asyncio.run(again.aget(("notes",), f"key {SECRET}")) is not None

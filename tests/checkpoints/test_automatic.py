"""Automatic checkpoints: triggers, limits, and no cost when they are off."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import trace_store
from trace_store import FixedClock, Message, Repo, Store, Text, ToolCall, ToolResult
from trace_store.context.compiler import ContextCompiler
from trace_store.context.tokens.tokenizer import TiktokenTokenizer
from trace_store.errors import InvalidInputError
from trace_store.history import commit
from trace_store.sessions import listing
from trace_store.testing.disks import RecordingDisk
from trace_store.writer import Writer

SAMPLE = Path(trace_store.__file__).parent / "samples" / "claude-code.jsonl"


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    repo = Repo.init(tmp_path, author="Ada", durability="fast")
    repo.store.config.set("automatic_checkpoints", "on")
    return repo


def use(repo: Repo, tool: str, said: str, *, is_error: bool = False, **arguments: object) -> None:
    """Commit a tool call, then its result."""
    id = f"c{len(repo.compile())}"
    repo.append("assistant", [ToolCall(id, tool, json.dumps(arguments))])
    repo.append("tool", [ToolResult(id, [Text(said)], is_error=is_error)])


def made(repo: Repo) -> list[tuple[str, str]]:
    return [(each.trigger, each.reason) for each in repo.checkpoints.list("auto/*")]


def test_tools_that_reach_a_milestone(repo: Repo) -> None:
    use(repo, "Read", "text", file_path="/a.py")
    use(repo, "Edit", "no such text", is_error=True, file_path="/a.py")
    assert made(repo) == []
    use(repo, "Edit", "ok", file_path="/a.py")
    use(repo, "Bash", "1 failed", is_error=True, command="pytest -q")
    use(repo, "Bash", "2 passed", command="pytest -q")
    use(repo, "TodoWrite", "ok", todos=[{"content": "x", "status": "pending"}])
    use(repo, "TodoWrite", "ok", todos=[{"content": "x", "status": "completed"}])
    assert made(repo) == [
        ("files", "wrote a.py"),
        ("tests-failed", "failed: pytest -q"),
        ("tests-passed", "passed: pytest -q"),
        ("todos", "all 1 to-dos are done"),
    ]


@pytest.mark.parametrize("failures", [0, 1, 2])
def test_tests_have_passed_only_if_all_of_a_message_have(repo: Repo, failures: int) -> None:
    commands = ("pytest -q tests/a", "pytest -q tests/b")
    calls = [ToolCall(each, "Bash", json.dumps({"command": each})) for each in commands]
    repo.append("assistant", calls)
    results = [
        ToolResult(each, [Text("done")], is_error=at < failures) for at, each in enumerate(commands)
    ]
    repo.append("tool", results)
    how = "failed" if failures else "passed"
    assert made(repo) == [(f"tests-{how}", f"{how}: pytest -q tests/b")]


def test_a_new_topic_is_saved_before_it_begins(repo: Repo) -> None:
    repo.append(
        "user", "The parser rejects nested brackets when whitespace precedes tokens quickly"
    )
    repo.append("assistant", "Fixed.")
    before = repo.resolve("HEAD")
    repo.append("user", "Parser nested brackets still rejects whitespace tokens inside comments")
    assert made(repo) == []
    before = repo.resolve("HEAD")
    repo.append(
        "user", "Draft marketing email announcing summer discount campaign across european stores"
    )
    (each,) = repo.checkpoints.list("auto/*")
    assert (each.trigger, each.commit) == ("topic", before)


def test_only_what_the_user_said_makes_a_topic_known(repo: Repo) -> None:
    email = "Draft marketing email announcing summer discount campaign across european stores"
    repo.append(
        "user", "The parser rejects nested brackets when whitespace precedes tokens quickly"
    )
    repo.append("assistant", email)
    repo.append("user", email)
    assert [trigger for trigger, _ in made(repo)] == ["topic"]
    repo.append("assistant", "Done.")
    repo.append("user", email)
    assert [trigger for trigger, _ in made(repo)] == ["topic"]


def test_an_import_finds_a_new_topic_after_its_first_prompt(repo: Repo, tmp_path: Path) -> None:
    said = (
        "The parser rejects nested brackets when whitespace precedes tokens quickly",
        "Draft marketing email announcing summer discount campaign across european stores",
    )
    turns = [[("user", each), ("assistant", "Done.")] for each in said]
    lines = [
        json.dumps({"role": role, "content": text}) + "\n" for turn in turns for role, text in turn
    ]
    file = tmp_path / "chat.jsonl"
    file.write_text("".join(lines))
    repo.transcripts.import_(file)
    assert [trigger for trigger, _ in made(repo)] == ["topic"]


def test_token_thresholds(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TiktokenTokenizer, "count", None)  # it takes longer than the commit
    repo.store.config.set("automatic_checkpoint_tokens", "1k")
    repo.append("user", "word " * 600)
    assert made(repo) == []
    repo.append("user", "word " * 600)
    repo.append("user", "short")
    assert made(repo) == [("tokens", "1,000 tokens")]


def test_milestones_of_an_import_are_those_of_usage_reports(
    repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = SAMPLE.read_text().splitlines(keepends=True)
    file = tmp_path / "session.jsonl"
    repo.store.config.set("automatic_checkpoints", "tokens")
    repo.store.config.set("automatic_checkpoint_tokens", "100")
    monkeypatch.setattr(ContextCompiler, "weigh", None)
    monkeypatch.setattr(
        listing.SessionLister, "list_imported", lambda *_: None
    )  # which counts the whole context
    monkeypatch.setattr(ContextCompiler, "compile", None)
    for count in (len(lines) - 3, len(lines)):  # the second import starts after a report
        file.write_text("".join(lines[:count]))
        repo.transcripts.import_(file)
    passed = [16_100, 16_700, 17_000, 17_400, 17_500, 17_600, 17_700]
    assert made(repo) == [("tokens", f"{count:,} tokens") for count in passed]


def test_an_import_in_pieces_passes_each_count_once(repo: Repo, tmp_path: Path) -> None:
    lines = SAMPLE.read_text().splitlines(keepends=True)
    file = tmp_path / "session.jsonl"
    repo.store.config.set("automatic_checkpoints", "tokens")
    repo.store.config.set("automatic_checkpoint_tokens", "700")
    for end in range(len(lines) - 8, len(lines) + 1):
        file.write_text("".join(lines[:end]))
        repo.transcripts.import_(file)
    reasons = [reason for _, reason in made(repo)]
    assert reasons == ["16,100 tokens", "16,800 tokens", "17,500 tokens"]


def test_those_of_one_moment_stay_in_their_order(tmp_path: Path) -> None:
    lines = SAMPLE.read_text().splitlines(keepends=True)
    file = tmp_path / "session.jsonl"
    with Repo(Store.memory(clock=FixedClock(step=0)), author="Ada") as repo:
        repo.store.config.set("automatic_checkpoints", "tokens")
        repo.store.config.set("automatic_checkpoint_tokens", "100")
        for count in (len(lines) - 3, len(lines)):
            file.write_text("".join(lines[:count]))
            repo.transcripts.import_(file)
        counts = [reason for _, reason in made(repo)]
    assert len(counts) == 7
    assert counts == sorted(counts)


def test_an_import_in_pieces_finds_the_same_milestones(tmp_path: Path) -> None:
    lines = SAMPLE.read_text().splitlines(keepends=True)
    found = []
    for name, step in (("whole", len(lines)), ("pieces", 1)):
        repo = Repo.init(tmp_path / name, durability="fast")
        repo.store.config.set("automatic_checkpoints", "files,tests,todos,topic")
        file = tmp_path / name / "session.jsonl"
        for end in range(step, len(lines) + 1, step):
            file.write_text("".join(lines[:end]))
            repo.transcripts.import_(file)
        found.append(sorted(made(repo)))
    assert found[0] == found[1]
    assert {trigger for trigger, _ in found[0]} == {"files", "tests-failed", "tests-passed"}


def test_the_checkpoints_of_an_import_are_one_transaction(tmp_path: Path) -> None:
    syncs = []
    for said in ("off", "on"):
        disk = RecordingDisk()
        repo = Repo(Store.init(str(tmp_path / said), disk=disk))
        repo.store.config.set("automatic_checkpoints", said)
        disk.reset()
        repo.transcripts.import_(SAMPLE)
        syncs.append(disk.counts()["synced"])
        assert len(made(repo)) == (5 if said == "on" else 0)
    assert syncs[0] == syncs[1]


def test_before_a_merge_and_a_rebase(repo: Repo) -> None:
    repo.append("user", "one")
    repo.branches.create("idea")
    repo.append("user", "two")
    tip = repo.resolve("HEAD")
    repo.branches.switch("idea")
    repo.append("user", "three")
    repo.rebase("main")
    repo.branches.switch("main")
    repo.merge("idea")
    assert made(repo) == [("rebase", "before a rebase"), ("merge", "before a merge")]
    repo.undo()
    assert repo.resolve("HEAD") == tip
    assert repo.checkpoints.restore(repo.checkpoints.list("auto/*merge*")[0].name).after == tip


def test_undo_takes_back_the_commit_and_not_its_checkpoint(repo: Repo) -> None:
    use(repo, "Write", "ok", file_path="/a.py")
    tip = repo.resolve("HEAD~1")
    repo.undo()
    assert repo.resolve("HEAD") == tip
    assert len(made(repo)) == 1


def test_the_number_is_bounded(repo: Repo) -> None:
    repo.store.config.set("automatic_checkpoint_limit", "3")
    for number in range(6):
        use(repo, "Write", "ok", file_path=f"/{number}.py")
    assert [reason for _, reason in made(repo)] == ["wrote 3.py", "wrote 4.py", "wrote 5.py"]


def test_old_ones_go_and_others_stay(tmp_path: Path) -> None:
    class Years:
        now_ms = 1_700_000_000_000

        def now(self) -> int:
            self.now_ms += 1_000
            return self.now_ms

    clock = Years()
    store = Store.init(str(tmp_path), clock=clock, durability="fast")  # type: ignore[arg-type]
    repo = Repo(store, author="Ada")
    store.config.set("automatic_checkpoints", "files")
    use(repo, "Write", "ok", file_path="/old.py")
    repo.checkpoints.save("mine")
    clock.now_ms += 40 * 86_400_000
    use(repo, "Write", "ok", file_path="/new.py")
    assert [reason for _, reason in made(repo)] == ["wrote new.py"]
    assert repo.checkpoints.show("mine").form == "hard"


@pytest.mark.parametrize("setting", ["limit", "days"])
def test_zero_is_the_default(repo: Repo, setting: str) -> None:
    repo.store.config.set(f"automatic_checkpoint_{setting}", "0")
    use(repo, "Edit", "ok", file_path="/a.py")
    use(repo, "Edit", "ok", file_path="/b.py")
    assert [reason for _, reason in made(repo)] == ["wrote a.py", "wrote b.py"]


@pytest.mark.parametrize(
    ("setting", "triggers"),
    [("files", ["files"]), ("tests", ["tests-passed"]), ("files,tests", ["files", "tests-passed"])],
)
def test_each_trigger_alone(repo: Repo, setting: str, triggers: list[str]) -> None:
    repo.store.config.set("automatic_checkpoints", setting)
    use(repo, "Edit", "ok", file_path="/a.py")
    use(repo, "Bash", "2 passed", command="pytest -q")
    assert [trigger for trigger, _ in made(repo)] == triggers


def test_only_the_triggers_that_are_named(repo: Repo) -> None:
    repo.store.config.set("automatic_checkpoints", "tests, merge")
    use(repo, "Write", "ok", file_path="/a.py")
    use(repo, "Bash", "ok", command="pytest")
    assert made(repo) == [("tests-passed", "passed: pytest")]
    for bad in ("sometimes", "tests,nonsense", ""):
        with pytest.raises(InvalidInputError):
            repo.store.config.set("automatic_checkpoints", bad)


@pytest.mark.parametrize("said", [None, "off"])
def test_off_costs_nothing(tmp_path: Path, said: str | None) -> None:
    def cost(folder: Path, hooked: bool) -> dict[str, int]:
        Repo.init(folder, durability="fast").store.config.set("automatic_checkpoints", said)
        disk = RecordingDisk()
        store = Store.open(str(folder / ".trace"), durability="fast", disk=disk)
        writer = Repo(store).writer if hooked else Writer(store)
        commit.commit(writer, [Message("user", "first")])
        disk.reset()
        commit.commit(writer, [Message("user", "one more")])
        return disk.counts()

    assert cost(tmp_path / "a", True) == cost(tmp_path / "b", False)


def test_a_merge_that_is_done_again_is_saved_again_once_its_checkpoint_is_too_old() -> None:
    clock = FixedClock()
    with Repo.memory(author="Ada", clock=clock) as repo:
        repo.store.config.set("automatic_checkpoints", "merge,files")
        use(repo, "Edit", "ok", file_path="/a.py")
        repo.branches.create("side")
        repo.append("user", "ours")
        before = repo.resolve("HEAD")
        Repo(repo.store.on("side"), author="Ada").append("user", "theirs")
        both = [("files", "wrote a.py"), ("merge", "before a merge")]
        for days, wanted in ((0, both), (1, both), (40, both[1:]), (1, both[1:])):
            clock._next += days * 86_400_000
            repo.merge("side")
            assert made(repo) == wanted
            assert repo.checkpoints.list("auto/*")[-1].commit == before
            repo.reset("HEAD~1", hard=True)

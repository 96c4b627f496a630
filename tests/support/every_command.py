"""What each porcelain command does, done from Python on a branch that is not checked out.

`python -m tests.support.every_command FOLDER BRANCH` does all of it on one branch, in a process of its own.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from trace_store import Environment, Message, Repo, Text, ToolCall, ToolResult
from trace_store.merge.todo import DROP, Step
from trace_store.objects.address import Address
from trace_store.repo.line import Line

LONG = "a long answer, which a summary can shorten, " * 60
(SAMPLE,) = (Path(__file__).parents[2] / "trace_store" / "samples").glob("*.jsonl")
REPORT = {"input_tokens": 5, "output_tokens": 1}


def begin(line: Line) -> None:
    """Let a branch begin with a question, two calls with their results, and a long answer."""
    line.append("user", "what is in a.txt?")
    for call in ("c1", "c2"):
        line.commit([Message("assistant", [ToolCall(call, "Read", '{"path": "a.txt"}')])])
        line.commit([Message("tool", [ToolResult(call, [Text("some text " * 200)])])])
    line.append("assistant", LONG)
    for number in range(4):
        line.append("user", f"and then? {number}")


def name_of(line: Line) -> str:
    assert line.head.ref is not None
    return line.head.ref.removeprefix("refs/heads/")


def at(line: Line, position: int) -> Address:
    """Return the address of the message at a position of the context."""
    return line.compile().messages[position].address


def beside(repo: Repo, line: Line, change: Callable[[Line], object]) -> str:
    """Let another branch part here with a change of its own, and this one go on; return its name."""
    name = f"{name_of(line)}-other"
    repo.branches.create(name, line.resolve("HEAD"), force=True)
    change(repo.line(name))
    line.append("assistant", "meanwhile")
    return name


def cherry_pick(repo: Repo, line: Line) -> None:
    name = beside(repo, line, lambda it: it.append("user", "picked"))
    assert line.cherry_pick(name).made


def merge(repo: Repo, line: Line) -> None:
    name = beside(repo, line, lambda it: it.append("user", "merged"))
    assert line.merge(name).outcome == "merged"


def rebase(repo: Repo, line: Line) -> None:
    name = beside(repo, line, lambda it: it.append("user", "the new base"))
    assert line.rebase(name, plan=lambda steps: [Step(DROP, each.oid) for each in steps]).made == ()


def resolve(repo: Repo, line: Line) -> None:
    target = line.append("user", "a wording").addresses[0]
    name = beside(repo, line, lambda it: it.edit(target, "theirs"))
    line.edit(target, "ours")
    assert line.merge(name, resolver=lambda _: "theirs").outcome == "merged"
    assert line.message(target).message.text == "theirs"


def commit_staged(_: Repo, line: Line) -> None:
    line.append("user", "one")
    line.append("user", "two")
    line.reset("HEAD~2")
    assert line.commit_staged("both").message_count == 2


def compress(repo: Repo, line: Line) -> None:
    first = line.append("user", LONG).addresses[0]
    line.append("user", "the end")
    done = repo.compression.compress(range=str(first), text="short", force=True, ref=name_of(line))
    assert done.texts == ("short",)


def expand(repo: Repo, line: Line) -> None:
    target = line.append("user", "as it was").addresses[0]
    line.edit(target, "shorter")
    repo.compression.expand(target, ref=name_of(line))
    assert line.message(target).message.text == "as it was"


def suggest(repo: Repo, line: Line) -> None:
    found = repo.compression.suggest(ref=name_of(line))
    if found.proposals:
        repo.compression.apply(found.proposals[:1], ref=name_of(line))


def trash(repo: Repo, line: Line) -> None:
    target = line.append("user", "to be removed").addresses[0]
    line.remove(target)
    assert target in [each.address for each in repo.trash.list(ref=name_of(line)).messages]
    repo.trash.restore(target, ref=name_of(line))
    assert line.message(target).is_shown


def checkpoint(repo: Repo, line: Line) -> None:
    name = name_of(line)
    repo.checkpoints.save(name, ref=name)
    line.append("user", "after the checkpoint")
    assert repo.checkpoints.diff(name, name).changes
    repo.checkpoints.restore(name, branch=f"{name}-again")


def fork(repo: Repo, line: Line) -> None:
    name = name_of(line)
    repo.forks.create(f"{name}-fork", ref=name)
    repo.line(f"{name}-fork").append("user", "another way")
    compared = repo.forks.compare(name, f"{name}-fork")
    assert compared.left != compared.right


def trajectory(repo: Repo, line: Line) -> None:
    state = repo.trajectories.start(f"on {name_of(line)}")
    made = repo.trajectories.decide("how?", "like this", trajectory=state.id)
    assert repo.trajectories.read(state.id).decisions == [made.event]


def import_(repo: Repo, line: Line) -> None:
    stdin = io.BytesIO(SAMPLE.read_bytes())
    report = repo.transcripts.import_("-", onto=f"{name_of(line)}-session", stdin=stdin)
    assert report.messages


def bundle(repo: Repo, line: Line) -> None:
    held = bytearray()
    repo.bundles.create(held.extend, name_of(line))
    assert repo.bundles.list(io.BytesIO(held).read).refs


def secrets(repo: Repo, line: Line) -> None:
    assert not repo.maintenance.scan_secrets(name_of(line)).found


ON_A_BRANCH: dict[str, Callable[[Repo, Line], Any]] = {
    "commit": lambda _, line: line.append("user", "said", meta={"ticket": "T-1"}),
    "edit": lambda _, line: line.edit(at(line, -1), "said better"),
    "pin": lambda _, line: line.annotate(at(line, -2), priority="pinned"),
    "important": lambda _, line: line.annotate(at(line, -3), priority="important"),
    "normal": lambda _, line: line.annotate(at(line, -3), priority="normal"),
    "skip": lambda _, line: line.annotate(at(line, -4), priority="skip"),
    "label": lambda _, line: line.annotate(at(line, -1), labels="decision"),
    "remove": lambda _, line: line.remove(at(line, 0), ghost=True),
    "restore": lambda _, line: line.restore(at(line, 0)),
    "move": lambda _, line: line.move(at(line, 0), last=True),
    "tools": lambda _, line: line.set_tools([{"name": "Read", "parameters": {}}]),
    "usage": lambda _, line: line.record_usage(REPORT, model="m"),
    "status": lambda _, line: line.status(),
    "log": lambda _, line: next(iter(line.log(meta="ticket"))),
    "diff": lambda _, line: line.diff("HEAD~3"),
    "blame": lambda _, line: list(line.blame()),
    "compile": lambda _, line: line.compile(),
    "show": lambda _, line: line.get("HEAD"),
    "view": lambda repo, line: repo.sessions.read(name_of(line)),
    "export": lambda repo, line: repo.sessions.export(name_of(line)),
    "repair": lambda repo, line: repo.sessions.repair(name_of(line)),
    "whohas": lambda repo, _: repo.branches.whohas("and then? 0"),
    "search": lambda repo, line: repo.search("then", session=name_of(line)),
    "sessions": lambda repo, _: repo.sessions.list(),
    "agents": lambda repo, _: repo.agents.list(),
    "runs": lambda repo, _: repo.runs.list(),
    "bisect": lambda repo, line: repo.branches.bisect(lambda it: len(it) < 3, name_of(line)),
    "branch": lambda repo, line: repo.branches.containing(line.resolve("HEAD")),
    "tag": lambda repo, line: repo.tags.create(f"{name_of(line)}-1", line.resolve("HEAD")),
    "reflog": lambda repo, line: repo.branches.reflog(name_of(line)),
    "reset": commit_staged,
    "revert": lambda _, line: line.revert("HEAD"),
    "dedupe": lambda repo, line: repo.compression.dedupe(ref=name_of(line)),
    "trim": lambda repo, line: repo.compression.trim(1_000, partial=True, ref=name_of(line)),
    "cherry-pick": cherry_pick,
    "merge": merge,
    "rebase": rebase,
    "resolve": resolve,
    "compress": compress,
    "expand": expand,
    "suggest": suggest,
    "trash": trash,
    "checkpoint": checkpoint,
    "trajectory": trajectory,
    "fork": fork,
    "import": import_,
    "bundle": bundle,
    "secrets": secrets,
}
"""Commands that work on a branch."""


def work(folder: Path | str, name: str) -> None:
    """Do all of it on a new branch."""
    with Repo.open(folder, environment=Environment(author=name), durability="fast") as repo:
        line = repo.line(name)
        begin(line)
        for command, run in ON_A_BRANCH.items():
            try:
                run(repo, line)
            except Exception as error:
                raise AssertionError(f"{command} on {name}: {error!r}") from error


if __name__ == "__main__":
    work(*sys.argv[1:])

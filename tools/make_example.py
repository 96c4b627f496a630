"""Write `.trace-example/`, the repository that docs/format/example.md walks through.

    python tools/make_example.py            write it anew; `git add -f .trace-example` takes all of it
    python tools/make_example.py FOLDER     write it to a folder that does not exist yet

It is made through the library, with a clock that moves when told and bytes that are not random, so the objects, refs,
journals, reflogs and indexes are the same each time. How zstd compresses differs between its versions, and with it
the bytes and names of packs; what is in them does not. tests/format/test_example.py compares.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from trace_store.base.ident import Clock, FixedRandomness  # noqa: E402
from trace_store.base.oid import ObjectId, hash_object  # noqa: E402
from trace_store.context.compiler import ContextCompiler  # noqa: E402 - the checkout
from trace_store.context.usage import Usage  # noqa: E402
from trace_store.contracts import RefEdit, Transaction  # noqa: E402
from trace_store.contracts.ref_names import BRANCHES, CHECKPOINTS, TAGS, TRASH  # noqa: E402
from trace_store.history import commit as writing  # noqa: E402
from trace_store.history.draft import Draft  # noqa: E402
from trace_store.history.records import Records, record_name  # noqa: E402
from trace_store.maintenance.seal import seal  # noqa: E402
from trace_store.merge.cherry_pick import cherry_pick  # noqa: E402
from trace_store.merge.merge import merge  # noqa: E402
from trace_store.merge.result import MergeOptions  # noqa: E402
from trace_store.objects import operations  # noqa: E402
from trace_store.objects.address import Address  # noqa: E402
from trace_store.objects.codec import encode_blob  # noqa: E402
from trace_store.objects.commit import Commit, Tag  # noqa: E402
from trace_store.objects.message import Message, store_message  # noqa: E402
from trace_store.objects.parts import Image, Opaque, Reasoning, Text, ToolCall, ToolResult  # noqa: E402
from trace_store.odb.pack_writer import PackWriter  # noqa: E402
from trace_store.odb.reachable import reachable  # noqa: E402
from trace_store.store.store import Store  # noqa: E402
from trace_store.trajectories.events import DECISION, STARTED, NewEvent, event_data  # noqa: E402
from trace_store.trajectories.recording import Recorder  # noqa: E402
from trace_store.writer import Writer  # noqa: E402

EXAMPLE = ROOT / ".trace-example"
KEPT = "README.md"
"""Written by hand, and no part of a repository."""

ADA = "Ada <ada@example.org>"
GRACE = "Grace <grace@example.org>"
MODEL = "claude-opus-4-6"
MAIN = BRANCHES + "main"
IDEA = BRANCHES + "idea"
SESSION = "sessions/demo/1"
TRAJECTORY = "traj_example00001"

RED_PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000f494441547801010400fb"
    "ff00ff0000030101008d1de5820000000049454e44ae426082"
)
MEAN = '''\
def mean(values):
    """Return the arithmetic mean of a list of numbers."""
    return sum(values) / len(values)
'''
TESTS = """\
from mean import mean


def test_of_one_number():
    assert mean([3]) == 3


def test_of_whole_numbers():
    assert mean([1, 2, 3]) == 2


def test_of_fractions():
    assert mean([0.5, 1.5]) == 1.0


def test_of_a_mixture():
    assert mean([1, 2.5, 4]) == 2.5


def test_of_negative_numbers():
    assert mean([-1, -2, -3]) == -2
"""
MORE_TESTS = """

def test_of_nothing():
    assert mean([]) == 0.0
"""
NOTES = """\
Release notes

mean() of an empty list gives 0.0. Before, it failed with ZeroDivisionError.

Why 0.0 and not an error: the reports that call mean() sum what it gives over many groups, and a group without
values adds nothing to such a sum. A caller that has to tell an empty group from a mean of zero asks for the length
of the list first, as it had to before, since the old code gave it no value at all.

What stays as it was: mean() takes a list, not an iterator. It returns a fraction even for whole numbers. It does not
round. Numbers that are too large for a float raise OverflowError, as they do everywhere in Python."""
SCHEMAS = [
    {
        "name": "read_file",
        "description": "Return a file's text.",
        "input_schema": {
            "type": "object",
            "properties": {"path": {"type": "string"}},
            "required": ["path"],
        },
    },
    {
        "name": "run_tests",
        "description": "Run the tests and return what they print.",
        "input_schema": {"type": "object", "properties": {}},
    },
]


class Watch(Clock):
    """A clock that advances only on request."""

    __slots__ = ("_now",)

    def __init__(self) -> None:
        self._now = 1_700_000_000_000

    def now(self) -> int:
        """Return milliseconds since the epoch, UTC."""
        return self._now

    def advance(self) -> None:
        """Go on by a minute."""
        self._now += 60_000


class Story:
    """What happens in the example. Each step takes a minute and is one commit or one move of refs."""

    def __init__(self, store: Store, clock: Watch) -> None:
        self.store = store
        self.clock = clock

    def draft(self) -> Draft:
        """Return an empty draft, a minute later."""
        self.clock.advance()
        return Draft(Writer(self.store, author=ADA))

    def write(self, draft: Draft, message: str = "") -> list[Address]:
        """Commit a draft by Ada on the branch that HEAD is on; return the addresses of its messages."""
        return writing.write(draft, message=message).addresses

    def say(self, *messages: Message, usage: Usage | None = None) -> list[Address]:
        """Append messages, with the provider's report about the last answer."""
        draft = self.draft()
        draft.extend(messages)
        if usage is not None:
            draft.record_usage(usage, model=MODEL)
        return self.write(draft)

    def move(self, message: str, *edits: RefEdit) -> None:
        """Move refs together."""
        self.clock.advance()
        self.store.transact(lambda _: Transaction((), edits, message), author=ADA)

    def go_to(self, ref: str) -> None:
        """Attach HEAD to a branch."""
        self.clock.advance()
        self.store.refs.set_head(ref, message=f"switch to {ref}", author=ADA)

    def tip(self, ref: str = MAIN) -> ObjectId:
        """Return where a branch stands."""
        tip = self.store.refs.read(ref)
        assert tip is not None
        return tip


def build(target: Path) -> None:
    """Make the example as the `.trace` directory `target`, which must not exist yet."""
    clock = Watch()
    with Store.init(
        str(target.parent),
        directory=str(target),
        clock=clock,
        durability="fast",
        randomness=FixedRandomness(),
    ) as store:
        story = Story(store, clock)
        asked, answered = converse(story)
        change(story, asked)
        try_an_idea(story, asked["red"])
        seal(store)
        carry_over(story, answered)
        bring_in(story)
        contexts = ContextCompiler(store)
        contexts.compile(MAIN).message_tokens()
        finish(story)
        store_state(story)
        decide(story)
        for ref in (MAIN, BRANCHES + SESSION):
            contexts.compile(ref).message_tokens()
            contexts.compile(ref).token_count  # noqa: B018 - fills the token column
    (target / "tmp").rmdir()  # git carries no empty directories
    (target / "index/commits.table").unlink()  # another one each time, and made when it is needed
    # Git has these packs, so they need no second place.
    shutil.rmtree(target / "local/packs")


def converse(story: Story) -> tuple[dict[str, Address], ObjectId]:
    """Write the conversation as it happened; return the addresses of its messages by name, and where it is answered."""
    asked: dict[str, Address] = {}
    draft = story.draft()
    draft.set_tools(SCHEMAS)
    draft.append("system", "You keep a small Python project in order. Read before you write.")
    (asked["system"],) = story.write(draft, "Begin")
    (asked["red"],) = story.say(
        Message("user", [Text("The build is red. What is wrong?"), Image("image/png", RED_PIXEL)])
    )
    (asked["call"],) = story.say(
        Message(
            "assistant",
            [
                Reasoning("A test fails. The file is short, so read it first.", "c2lnbmVk"),
                Text("I read the file first."),
                ToolCall("call_1", "read_file", {"path": "mean.py"}),
            ],
            model=MODEL,
            id="msg_1",
        ),
        usage=Usage(412, 0, 380, 61, 14, "anthropic"),
    )
    (asked["result"],) = story.say(Message("tool", [ToolResult("call_1", MEAN)]))
    asked["second call"], asked["failure"] = story.say(
        Message("assistant", [ToolCall("call_2", "run_tests", {})], model=MODEL, id="msg_2"),
        Message(
            "tool",
            [ToolResult("call_2", "ZeroDivisionError: division by zero", is_error=True)],
        ),
    )
    draft = story.draft()
    draft.append(
        "assistant",
        "mean([]) divides by zero. Shall it raise ValueError, or return 0.0?",
        model=MODEL,
        id="msg_3",
    )
    draft.configure(meta={"ticket": "T-7"}, settings={"temperature": 0.2})
    (asked["answer"],) = story.write(draft)
    answered = story.tip()
    (asked["decision"],) = story.say(Message("user", "Retrun 0.0."))
    asked["question"], asked["reply"] = story.say(
        Message("user", "Is there soup today?", name="ada"),
        Message("assistant", "I cannot know that.", model=MODEL, id="msg_4"),
    )
    return asked, answered


def change(story: Story, asked: dict[str, Address]) -> None:
    """Change the context with every operation on existing messages."""
    draft = story.draft()
    draft.edit(asked["decision"], [Text("Return 0.0.")])
    story.write(draft)

    draft = story.draft()
    draft.remove([asked["question"]], ghost=True)
    draft.annotate([asked["reply"]], priority="skip")
    draft.remove([asked["answer"]])
    story.write(draft, "Small talk goes")

    draft = story.draft()
    draft.restore([asked["answer"]])
    story.write(draft, "The answer was none of it")

    draft = story.draft()
    draft.annotate([asked["system"]], priority="pinned")
    draft.annotate(
        [asked["decision"]], priority="important", keep=["0.0"], labels=["decision", "mean"]
    )
    story.write(draft)

    story.move("checkpoint", RefEdit(CHECKPOINTS + "before-compaction", story.tip(), None))

    # A call and its result are one unit.
    found = [asked[name] for name in ("call", "second call")]
    draft = story.draft()
    (summary,) = draft.replace(
        found,
        [
            Message(
                "assistant",
                "mean.py divides by len(values). Of an empty list that is ZeroDivisionError.",
                model="claude-haiku-4-5",
            )
        ],
        reason="compaction",
        model="claude-haiku-4-5",
        prompt="Say in two sentences what was found.",
        sources=[*found, asked["answer"]],
    )
    draft.annotate([summary], labels=["summary"])
    draft.annotate([asked["decision"]], unlabels=["mean"])
    story.write(draft, "Compaction")

    draft = story.draft()
    draft.move([asked["question"]], after=asked["system"])
    story.write(draft)


def try_an_idea(story: Story, after: Address) -> None:
    """Begin a branch and give it up: its last commit stays under `refs/trash/`."""
    story.move("branch: idea", RefEdit(IDEA, story.tip(), None))
    story.go_to(IDEA)
    draft = story.draft()
    draft.extend([Message("user", "It is called with [] by reports.py.")], after=after)
    story.write(draft)
    story.go_to(MAIN)
    given_up = story.tip(IDEA)
    story.move(
        "branch: idea given up",
        RefEdit(IDEA, None, given_up),
        RefEdit(TRASH + "heads/idea", given_up, None),
    )


def carry_over(story: Story, start: ObjectId) -> None:
    """Bring Grace's branch from her store: her objects in a pack, and the ref by a move in the journal.

    Her first two commits were squashed, and stay where she is. The pack's frames are small, so that several share a
    dictionary.
    """
    mine, clock = story.store, story.clock
    grace = Store.memory(clock=clock)
    for _, data in mine.objects.read_many(mine.objects.iterate()):
        grace.objects.write(data)
    shared = set(grace.objects.iterate())
    for name in (SESSION, "tries"):
        begin = RefEdit(BRANCHES + name, start, None)
        grace.transact(lambda _, edit=begin: Transaction((), [edit], "branch"), author=GRACE)  # type: ignore[misc]
    clock.advance()
    draft = Draft(Writer(grace, author=GRACE).on("tries"))
    draft.append("user", [Text("These are the tests."), Text(TESTS)], kind="artifact")
    (tests,) = writing.write(draft).addresses
    clock.advance()
    draft = Draft(Writer(grace, author=GRACE).on("tries"))
    draft.edit(tests, [Text("These are the tests."), Text(TESTS + MORE_TESTS)])
    draft.annotate([tests], labels=["tests"])
    writing.write(draft)
    clock.advance()
    grace.refs.set_head(BRANCHES + SESSION, message="switch", author=GRACE)
    merge(Writer(grace, author=GRACE), "tries", MergeOptions(squash=True))
    clock.advance()
    draft = Draft(Writer(grace, author=GRACE))
    draft.append("user", "The last one fails.")
    writing.write(
        draft,
        meta={"agent": "demo", "session": "1"},
        links=[("code", "git:9d03b7e"), ("answers", start)],
    )
    tip = grace.refs.read(BRANCHES + SESSION)
    assert tip is not None
    writer = PackWriter(mine.disk, mine.layout, frame_bytes=512, shared_bytes=4096)
    for oid, data in reachable(grace.objects.read, [tip], hidden=shared):
        writer.add(oid, data)
    writer.finish()
    story.move("from Grace", RefEdit(BRANCHES + SESSION, tip, None))


def bring_in(story: Story) -> None:
    """Bring the idea's message and Grace's into main: by a pick and by a merge."""
    story.clock.advance()
    cherry_pick(Writer(story.store, author=ADA), ["trash/heads/idea"])
    story.clock.advance()
    merge(Writer(story.store, author=ADA), SESSION, MergeOptions(message="Take Grace's tests"))


def finish(story: Story) -> None:
    """Go on as plumbing does: contents and a tag as loose objects, and commits and refs that name them."""
    store, clock = story.store, story.clock
    clock.advance()
    sent = story.tip()
    message = Message(
        "assistant",
        [Opaque("anthropic", b'{"type":"redacted_thinking","data":"b3BhcXVl"}'), Text(NOTES)],
        kind="output",
        model=MODEL,
        id="msg_5",
    )
    stored = store_message(message, lambda content: store.objects.write(encode_blob(content)))
    commit = Commit([sent], ADA, clock.now(), [operations.add([stored])], "Release notes")
    data = commit.encode()
    oid = hash_object(data)
    edit = RefEdit(MAIN, oid, sent)
    store.transact(
        lambda _: Transaction([(oid, data)], [edit], "write-commit: Release notes"), author=ADA
    )

    draft = story.draft()
    usage = Usage(1204, 380, 0, 163, 20, "anthropic")
    draft.record_usage(usage, model=MODEL, about=sent, renderer="anthropic", renderer_version=1)
    story.write(draft)

    tag = Tag(story.tip(), "v1", ADA, clock.now(), "Told to the users")
    story.move("tag: v1", RefEdit(TAGS + "v1", store.objects.write(tag.encode()), None))


def store_state(story: Story) -> None:
    """Store what a program keeps beside messages: a record with a value, and one with a sequence."""
    records = Records(Writer(story.store, author=ADA))
    name = record_name("demo", "thread-1", "main")
    story.clock.advance()
    draft = records.draft(name, expect=None)
    draft.set("state", "json", b'{"step": 1}')
    draft.messages.append("user", "Which release is this?")
    before = draft.write({"demo.step": 1})
    story.clock.advance()
    draft = records.draft(name, expect=before.commit, values=before.values)
    draft.set_sequence("log", "text", [b"asked", b"looked", b"asked"])
    draft.write({"demo.step": 2}, "The log")


def decide(story: Story) -> None:
    """Record a decision, and another one that supersedes it until a time."""
    recorder = Recorder(Writer(story.store, author=ADA))
    story.clock.advance()
    told = NewEvent(event_data(STARTED, "", {"title": "An empty list"}), ADA)
    chosen = event_data(DECISION, "ValueError", {"question": "What does mean([]) do?"})
    _, old = recorder.record(TRAJECTORY, [told, NewEvent(chosen, ADA)], is_new=True)
    story.clock.advance()
    fields = {"question": "What does mean([]) do?", "until": 1_800_000_000_000}
    chosen = event_data(DECISION, "0.0", {**fields, "supersedes": [old.event.id.hex]})
    recorder.record_replacement(TRAJECTORY, NewEvent(chosen, ADA), [(TRAJECTORY, old.event)])


def replace_example(target: Path) -> None:
    """Rewrite the example, except for files from elsewhere."""
    with tempfile.TemporaryDirectory() as scratch:
        made = Path(scratch) / "example"
        build(made)
        kept = (target / KEPT).read_bytes() if (target / KEPT).exists() else None
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(made, target)
        if kept is not None:
            (target / KEPT).write_bytes(kept)


def main(words: Sequence[str] | None = None) -> int:
    """Write the example; return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, nargs="?", metavar="FOLDER")
    folder = parser.parse_args(words).folder
    if folder is None:
        replace_example(EXAMPLE)
    else:
        build(folder.resolve())
    return 0


if __name__ == "__main__":
    sys.exit(main())

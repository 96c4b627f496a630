"""Invented seeds of the corpus; `python -m tests.fuzzing --seeds` rewrites them."""

from __future__ import annotations

import json
import random
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.exporters.support.sessions import rich_session
from tests.fuzzing.support.containers import MENDED, RAW, UNFOLDED, held, small_pack
from tests.fuzzing.support.texts import local_files, local_template
from tests.importers import test_agent_trace as agent_trace
from tests.importers import (
    test_aider,
    test_atif,
    test_cline,
    test_codex_exec,
    test_continue_dev,
    test_copilot,
    test_crush,
    test_cursor,
    test_dagent,
    test_entire,
    test_goose,
    test_pi,
    test_qwen_code,
    test_saved_chats,
)
from tests.importers import test_chats as chats
from tests.importers import test_opencode as opencode
from tests.importers import test_swe_agent as swe
from tests.importers.support import rollouts, transcripts
from tests.importers.support.checks import lines_of
from trace_store import Repo
from trace_store.base.environment import Environment
from trace_store.base.oid import ObjectId, digest
from trace_store.context.compile_index import MESSAGE_BYTES, MESSAGES_MAGIC, Header, MessageRecord
from trace_store.exporters.registry import FORMS, writer_named
from trace_store.objects import operations as ops
from trace_store.objects.address import Address
from trace_store.objects.codec import encode, encode_blob
from trace_store.objects.commit import Commit, Tag
from trace_store.store.config import new_config

OID = ObjectId(digest(b"some object"))
ADDRESS = Address.of(OID, 3)
TEXT = {"blob": OID, "type": "text"}
CALL = {"blob": OID, "id": "call_1", "name": "look", "type": "tool_call"}
RESULT = {
    "call": list(ADDRESS),
    "error": True,
    "id": "call_1",
    "parts": [TEXT],
    "type": "tool_result",
}
SAID = {
    "kind": "dialogue",
    "model": "m-1",
    "name": "ada",
    "parts": [TEXT, CALL],
    "role": "assistant",
}
CARRIED = {
    **SAID,
    "born": list(ADDRESS),
    "edits": [[TEXT], [CALL]],
    "current": 1,
    "hidden": "removed",
    "priority": "pinned",
    "labels": ["decision"],
    "keep": [OID],
}
DROID = [
    {"type": "session_start", "id": "d-1", "sessionTitle": "Look"},
    {
        "type": "message",
        "id": "m-1",
        "timestamp": "2026-05-12T00:00:00.000Z",
        "message": {"role": "user", "content": [{"type": "text", "text": "Look."}]},
    },
    {
        "type": "message",
        "id": "m-2",
        "message": {"role": "assistant", "content": [transcripts.call("toolu_1", path="a")]},
    },
    {
        "type": "message",
        "id": "m-3",
        "message": {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "seen"}],
        },
    },
    {"type": "todo_state", "todos": []},
]


def write(corpus: Path) -> None:
    """Write the seeds of every target into its folder of the corpus."""
    for target, inputs in _all():
        folder = corpus / target
        folder.mkdir(parents=True, exist_ok=True)
        for number, data in enumerate(inputs):
            (folder / f"seed-{number}").write_bytes(data)


def _all() -> Iterator[tuple[str, list[bytes]]]:
    commits = list(_commits())
    yield "decoder", [*_objects(), *commits]
    packed, index = small_pack()
    yield "pack", [bytes((mode,)) + packed for mode in (RAW, MENDED)] + list(_unfolded())
    yield "pack-index", [b"\0" + index, b"\xff" + index]
    yield from _of_a_store()
    yield "revision", [text.encode() for text in _REVISIONS]
    yield "config", [text.encode() for text in _configs()]
    yield "compile-index", [mended + _records() for mended in (b"\0", b"\xff")]
    yield "documents", [json.dumps(value).encode() for value in _conversations()]
    yield from _transcripts()


def _objects() -> Iterator[bytes]:
    yield encode_blob(b"said")
    yield encode_blob(b"long " * 60)
    yield encode_blob(b"private", bytes(16))
    yield Tag(OID, "v1", "ada", 1_700_000_000_000, "done", {"signature": OID}).encode()
    yield encode(["list", [OID, OID], {"sizes": [1, 2**32, -1, -(2**40)]}])
    yield encode(["other", {"a": None, "b": True, "c": [[], {}], "d": b"x" * 300, "e": "é" * 200}])
    yield b"\x91" * 70 + b"\xa1x"
    yield b"\x92\xa1x\xc7\x04\x05abcd"
    yield b"\x92\xa1x\xcb" + bytes(8)
    yield b"\x92\xa1x\xdd\xff\xff\xff\xff"
    yield b"\x92\xa1x\x82\xa1a\x01\xa1a\x02"


def _commits() -> Iterator[bytes]:
    time = 1_700_000_000_000
    each = [
        [ops.add([SAID, {**SAID, "parts": [RESULT], "role": "tool"}])],
        [
            ops.add([{"parts": [TEXT], "role": "user"}]),
            ops.usage({"input_total": 9, "model": "m"}),
        ],
        [ops.edit(ADDRESS, [TEXT]), ops.remove([ADDRESS], ghost=True)],
        [ops.annotate([ADDRESS], priority="pinned", keep=[OID], labels=["decision"])],
        [ops.replace([ADDRESS], [SAID], reason="compaction", prompt=OID), ops.tools([OID])],
        [ops.move([ADDRESS], after=None), ops.restore([ADDRESS], version=1)],
        [ops.add([CARRIED], after=ADDRESS)],
    ]
    for operations in each:
        yield Commit([OID], "ada", time, operations, "why", {"n": 1}, [("from", OID)]).encode()
    yield Commit([], "", 0, []).encode()


def _unfolded() -> Iterator[bytes]:
    objects = [encode_blob(b"object %d" % number) for number in range(3)]
    first = held(objects, 0)
    yield bytes((UNFOLDED,)) + first
    yield bytes((UNFOLDED,)) + held([], 4, b"a dictionary of some bytes") + held(objects, 1)
    yield bytes((UNFOLDED,)) + first + held([b"\xd4\0\1\0\0x", b"\xc1\1\0\0"], 2)


def _of_a_store() -> Iterator[tuple[str, list[bytes]]]:
    with tempfile.TemporaryDirectory() as folder:
        repo = Repo.init(folder, environment=Environment(author="ada"))
        for number in range(3):
            repo.append("user", f"said {number}")
        (journal,) = Path(folder, ".trace", "journal").iterdir()
        frames = journal.read_bytes().rstrip(b"\0")
        pieces: list[bytes] = []
        repo.bundles.create(pieces.append, everything=True)
        repo.close()
    bundle = b"".join(pieces)
    yield "journal", [mended + frames for mended in (b"\0", b"\xff")]
    yield "bundle", [mended + bundle for mended in (b"\0", b"\xff")]
    root = local_template() / ".trace"
    yield (
        "local-file",
        [
            bytes((number,)) + (_HEAD if name == "HEAD" else (root / name).read_bytes())
            for number, name in enumerate(local_files())
            if name == "HEAD" or (root / name).is_file()
        ],
    )


_HEAD = b"ref: refs/heads/main\n"
_REVISIONS = (
    *(
        "HEAD",
        "@",
        "-",
        "main~2^1",
        "HEAD@{1}",
        "@{-1}",
        "@{u}",
        "main@{yesterday}",
        "HEAD^{commit}",
    ),
    *("HEAD~1..HEAD", "main...HEAD", "HEAD.0", "refs/heads/main", "0123abcd", "2 days ago"),
    *("2026-01-01T00:00:00Z", "main@{2026-01-01 10:00}", "sessions/codex/x", "a" * 64, "~", "^0"),
)


def _configs() -> Iterator[str]:
    plain = new_config("5f0c")
    yield plain
    yield plain + "budget = 200_000\n[table]\nkey = 'value'\n[[more]]\na = 1.5\n"
    yield plain.replace("[]", '["telepathy", "x"]')
    yield plain + '"quoted" = """a\nb"""\n# comment\ntime = 2026-01-01T00:00:00Z\n'


def _records() -> bytes:
    head = Header(MESSAGES_MAGIC, MESSAGE_BYTES, bytes(16)).pack()
    rows = [
        MessageRecord(
            *Address.of(OID, n),
            home_commit=OID,
            home_number=n,
            place_commit=OID,
            place_number=n,
            flags=2,
            role="user",
            kind="dialogue",
            tools=0,
            prefix=digest(b"%d" % n),
            seen=digest(b"seen %d" % n),
            ordinal=n + 1,
        ).pack()
        for n in range(3)
    ]
    return head + b"".join(rows)


def _conversations() -> Iterator[Any]:
    yield from (chats.CHAT, chats.ANTHROPIC, chats.RESPONSES, chats.GEMINI, chats.LANGCHAIN)


def _transcripts() -> Iterator[tuple[str, list[bytes]]]:
    session = rich_session()
    written = {
        name: writer_named(name).write(session).to_bytes()
        for name in FORMS
        if name not in ("html", "markdown")
    }
    chat = ("anthropic", "gemini-contents", "langchain", "openai", "openai-responses", "trace-json")
    values = [json.dumps(value).encode() for value in _conversations()]
    yield "import-chats", [*(written[name] for name in chat), *values, lines_of(chats.CHAT)]
    yield "import-claude-code", [transcripts.lively().data, written["claude-code"]]
    yield "import-codex", [rollouts.lively().data, written["codex"]]
    yield "import-gemini", [written["gemini"]]
    yield "import-atif", [json.dumps(test_atif.TRAJECTORY).encode(), written["atif"]]
    yield "import-codex-exec", [lines_of(test_codex_exec.EVENTS)]
    yield "import-copilot", [test_copilot.lively().data]
    yield "import-droid", [lines_of(DROID)]
    yield from _other_programs()
    yield "import-entire", [lines_of(test_entire.RECORDS)]
    yield "import-swe-agent", [json.dumps(swe.RUN).encode()]
    yield "import-mini-swe-agent", [json.dumps(swe.MINI).encode()]
    yield "import-agent-trace", [lines_of([agent_trace.RECORD] * 2)]
    talk = opencode.lively()
    yield "import-opencode", [json.dumps(talk.document).encode()]
    base = sqlite3.connect(":memory:")
    base.executescript("PRAGMA page_size = 512;" + opencode.SCHEMA)
    opencode.fill(base, talk)
    base.execute("VACUUM")
    yield "import-database", [base.serialize()]
    base.close()


def _other_programs() -> Iterator[tuple[str, list[bytes]]]:
    """Yield a seed for each program whose sessions have a generator in its tests."""
    for name, write in test_saved_chats.WRITERS.items():
        if name != "gemini-contents":  # one of the chats
            document = write(test_saved_chats.steps_of(5), random.Random(1))
            yield f"import-{name}", [json.dumps(document).encode()]
    yield "import-pi", [lines_of([test_pi.HEADER, *test_pi.tree(3)])]
    talk = [test_qwen_code.row("u", None, "user", {"text": "x"})]
    yield "import-qwen-code", [lines_of([*talk, test_qwen_code.compression("c", "u", "y")])]
    calls = [test_cline.TASK, test_cline.sent("assistant", test_cline.use("c1"))]
    answer = test_cline.sent("user", "[read_file for 'a'] Result:\n1")
    yield "import-cline", [json.dumps([*calls, answer]).encode()]
    shown = [test_cline.row("task", "x"), test_cline.request("y", 0), test_cline.row("tool", "{}")]
    yield "import-cline-ui", [json.dumps([*shown, test_cline.request("[a] Result:\n", 1)]).encode()]
    history = [test_continue_dev.item("user", "hi"), test_continue_dev.item("assistant", "y")]
    yield "import-continue", [json.dumps(test_continue_dev.session(*history)).encode()]
    yield "import-dagent", [json.dumps(test_dagent.CHAT).encode()]
    said = {"id": "m1", "role": "user", "parts": json.dumps([test_crush.text("x")])}
    yield "import-crush", [json.dumps({"crush": {"id": "s1"}, "messages": [said]}).encode()]
    talk = [test_goose.row(1, "user", [test_goose.text("x")])]
    yield "import-goose", [json.dumps({"goose": {"id": "s1"}, "messages": talk}).encode()]
    composer = json.dumps({"conversation": test_cursor.TALK})
    held_in = {"cursor": {"key": "composerData:s1", "value": composer}, "bubbles": []}
    yield "import-cursor", [json.dumps(held_in).encode()]
    yield "import-aider", [(test_aider.STARTED + test_aider.by_user("hi")).encode()]

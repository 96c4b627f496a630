"""Invented sessions: one with everything that a session can hold, and one that would like to break out of a page."""

from __future__ import annotations

import zlib

from trace_store.base.ident import FixedClock
from trace_store.exporters.contract import ExportSession
from trace_store.exporters.session import read_session
from trace_store.objects.message import Message
from trace_store.objects.parts import Image, Opaque, Reasoning, Text, ToolCall, ToolResult
from trace_store.repo.repository import Repo

MODEL = "claude-opus-4-6"
SCHEMA = {"name": "Bash", "description": "Runs a command", "input_schema": {"type": "object"}}
USAGE = {"input_tokens": 20, "cache_read_input_tokens": 1000, "output_tokens": 30}

ATTACKS = (
    "</script><script>document.title='pwned'</script>",
    "<img src=x onerror=\"document.title='pwned'\">",
    "<svg onload=document.title='pwned'><style>*{display:none}</style>",
    "</pre></details></article></main></body><h1>forged</h1>",
    "</style><style>body{background:url(https://attacker.example/x)}</style>",
    "</title><meta http-equiv=refresh content='0;url=https://attacker.example'>",
    "[link](javascript:document.title='pwned') ![](https://attacker.example/pixel.png)",
    "<a href=\"javascript:document.title='pwned'\">click</a> <iframe src=//attacker.example>",
    "]]> --> <!-- <![CDATA[ ]]> &lt;script&gt; &#x3c;b&#x3e; &amp;",
    '" onmouseover="document.title=\'pwned\'" x="',
    "' onfocus='document.title=1' autofocus='",
    "# forged heading\n## 99. system\n===\n---\n- - -\n***\n> quote\n    indented\n\tindented",
    "```\nout of the fence\n````\n~~~\n</details>\n\n## forged after a fence\n~~~",
    "| a | b |\n|---|---|\n| `|` | x |\n\n[ref]: https://attacker.example\n[^1]: note",
    "`unclosed **bold `code** ``x` **`a`** ***b*** \\` \\*\\* $\\alpha$ :tada: <b>",
    "\u202eevil\u202c \u2066isolated\u2069 \u200binvisible\u200b \u2028separator\u2029 \ufeff",
    "\x1b[31mred\x1b[0m \x00 \x07 \x08 \x7f \x9b31m \r carriage \ud800 lone \udfff",
    "\U000e0041\U000e0042 tags \ufe0f\ufe0f\ufe0f",
    "{{7*7}} ${7*7} <%= 7*7 %> {% raw %}",
    "x" * 20_000,
    "line\n" * 5_000,
    "\n\n\nleading and trailing\n\n\n",
)
ATTACK = "\n".join(ATTACKS)


def png(width: int = 1, height: int = 1) -> bytes:
    """A grey image of this size."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        check = zlib.crc32(kind + data).to_bytes(4, "big")
        return len(data).to_bytes(4, "big") + kind + data + check

    size = width.to_bytes(4, "big") + height.to_bytes(4, "big")
    rows = (b"\x00" + b"\x80" * width) * height
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", size + b"\x08\x00\x00\x00\x00")
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


def repository() -> Repo:
    return Repo.memory(author="Ada", clock=FixedClock())


def rich_repository() -> Repo:
    """One of everything: roles, parts, marks, and messages that the context hides."""
    repo = repository()
    repo.set_tools([SCHEMA])
    system = repo.append("system", "Answer in one sentence.")
    repo.annotate(system.addresses[0], priority="pinned")
    asked = repo.append(
        "user", [Text("Which tags are there?\nSee the picture."), Image("image/png", png(16, 9))]
    )
    repo.annotate(asked.addresses[0], labels=["question"])
    with repo.batch() as draft:
        draft.append(
            "assistant",
            [
                Reasoning("I look at the *tags* first.", signature="c2lnbmF0dXJl"),
                Text("I look:\n\n- with `git tag`\n- **only** once\n\n```sh\ngit tag\n```"),
                ToolCall("call_1", "Bash", {"command": "git tag", "timeout": 1.5}),
            ],
            model=MODEL,
            id="msg_1",
        )
        draft.record_usage(USAGE)
    repo.append("tool", [ToolResult("call_1", "v1\nv2\n", is_error=False)])
    repo.append("assistant", "There are v1 and v2.", model=MODEL)
    gone = repo.append("user", "A message that was removed.")
    repo.remove(gone.addresses[0], ghost=True)
    skipped = repo.append("user", "A message that was skipped.")
    repo.annotate(skipped.addresses[0], priority="skip")
    several = [repo.append("user", f"Long talk, part {n}.").addresses[0] for n in range(3)]
    repo.replace(several, [Message("user", "A summary of the talk.")], reason="compaction")
    repo.append(
        "assistant",
        [ToolCall("call_2", "Edit", "not JSON", format="text"), Opaque("other", b'{"type":"x"}')],
        model=MODEL,
    )
    failed = ToolResult(
        "call_2", [Text("no such file\n" * 100), Image("image/svg+xml", b"<svg/>")], is_error=True
    )
    repo.append("tool", [failed])
    return repo


def rich_session(*, hidden: bool = False) -> ExportSession:
    repo = rich_repository()
    return read_session(repo.store, hidden=hidden, contexts=repo.contexts)


def hostile_session() -> ExportSession:
    """Every attack in every place that holds text of others."""
    repo = repository()
    name = "<script>document.title='pwned'</script>|`#*[x](javascript:1)\u202e\x1b[0m"
    repo.set_tools([{"name": name, "description": ATTACK, "input_schema": {"enum": [ATTACK]}}])
    for attack in ATTACKS:
        repo.append("user", attack)
    repo.append(
        "assistant",
        [
            Reasoning(ATTACK, signature=ATTACK),
            Text(ATTACK),
            ToolCall("<i>call</i>", name, {ATTACK[:200]: ATTACK, "list": [ATTACK]}),
            ToolCall("call_2", name, ATTACK, format="text"),
            Opaque("<b>provider</b>", ATTACK.encode("utf-8", "surrogatepass")),
        ],
        model=name,
        name=name,
        id="\"><script>document.title='pwned'</script>",
    )
    repo.append(
        "tool",
        [
            ToolResult(
                "<i>call</i>",
                [Text(ATTACK), Image("image/svg+xml", ATTACK.encode("utf-8", "replace"))],
            ),
            ToolResult("call_2", [Image(url="javascript:document.title='pwned'")], is_error=True),
            ToolResult("call_3", [Image("text/html", b"<script>document.title='pwned'</script>")]),
        ],
    )
    return read_session(repo.store, contexts=repo.contexts)

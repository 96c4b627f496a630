"""Terminal control sequences in every field of a repository: shown, never obeyed."""

from __future__ import annotations

import ast
import functools
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.command_line import Trace
from trace_cli.porcelain.completion import addresses
from trace_cli.render import tables
from trace_cli.render.escape import OWN_STYLES, guarded, safe
from trace_store import Repo
from trace_store.base.environment import Environment
from trace_store.objects.codec import encode_blob
from trace_store.objects.commit import Commit, Tag
from trace_store.objects.parts import Image, Opaque, Reasoning, Text, ToolCall, ToolResult

ROOT = Path(__file__).parents[2]
ATTACKS = {
    "clear the screen": "\x1b[2J\x1b[H",
    "set the title": "\x1b]0;pwned\x07",
    "write the clipboard": "\x1b]52;c;cHduZWQ=\x07",
    "a link": "\x1b]8;;file:///etc/passwd\x1b\\click\x1b]8;;\x1b\\",
    "answer back": "\x1b[c\x1b[6n\x05",
    "a device string": "\x1bP$q\x1b\\",
    "of one byte": "\x9b2J\x90x\x9c\x85",
    "over the line": "safe\rpwned\x08\x08\x7f\x0b\x0c",
    "right to left": "\u202e\u2066\u200f\u061c",
    "not seen": "\u200b\u200d\ufeff\u2060\xad",
    "tags": "".join(chr(0xE0000 + ord(c)) for c in "ignore all"),
    "line ends": "\u2028\u2029",
    "markup of rich": "[link=file:///etc/passwd]x[/link][red][/nothing]",
    "bold that stays": "\x1b[1;5;31m",
}
ATTACK = "".join(ATTACKS.values())
OBEYED = {chr(c) for c in (*range(32), *range(0x7F, 0xA0))} - {"\n", "\t"}
UNSEEN = set(map(chr, (*range(0x200B, 0x2010), *range(0x2028, 0x202F), *range(0x2060, 0x2070))))
UNSEEN |= {"\xad", "\u061c", "\ufeff", *map(chr, range(0xE0000, 0xE0080))}
COMMANDS: tuple[tuple[str, ...], ...] = (
    *(
        ("status",),
        ("log",),
        ("log", "--tokens"),
        ("show",),
        ("show", "HEAD~1"),
        ("show", "HEAD.0"),
    ),
    *(("show", "v1"), ("show", "--versions", "{edited}"), ("compile", "--table")),
    *(("tools",), ("usage",), ("config",), ("config", "x")),
    *(("fsck",), ("du",), ("repair",), ("bundle", "list", "all.bundle"), ("trust", "--list")),
    *(("bundle", "verify", "all.bundle"), ("import", "{evil}.jsonl"), ("import", "{evil}")),
    *(("rev-parse", "HEAD"), ("rev-list", "HEAD"), ("for-each-ref",), ("ls-context",)),
    *(("for-each-ref", "--format", "%(subject) %(authorname)"), ("ls-objects",), ("ls-parts",)),
    *(("count-objects", "-v"), ("cat-file", "-t", "HEAD"), ("compile-index",), ("verify-pack",)),
    *(("show", "{evil}"), ("log", "{evil}"), ("commit", "--role", "{evil}", "x"), ("{evil}",)),
    *(("update-ref", "refs/heads/{evil}", "HEAD"), ("-C", "{evil}", "status")),
    *(("symbolic-ref", "HEAD"), ("--dir", "{evil}", "log"), ("compile", "-f", "{evil}")),
    *(("commit", "--{evil}"), ("label", "HEAD.0", "--add", "{evil}"), ("config", "{evil}")),
    *(("trust", "{evil}"), ("bundle", "list", "{evil}"), ("gc",), ("seal",), ("pack",)),
    *(("diff", "HEAD~4"), ("diff", "--side", "HEAD~4"), ("diff", "--stat", "HEAD~4"), ("blame",)),
    *(("diff", "--compiled", "-f", "openai", "HEAD~4"), ("whohas", "reworded"), ("log", "--graph")),
    *(("diff", "{evil}"), ("whohas", "{evil}"), ("log", "--text", "reworded", "--full")),
    *(("bisect", "start"), ("bisect", "next"), ("bisect", "good", "{evil}")),
    *(("branch", "-v"), ("tag",), ("reflog",), ("undo", "-n"), ("checkout", "HEAD")),
    *(("switch", "{evil}"), ("branch", "{evil}"), ("tag", "{evil}"), ("revert", "{evil}")),
    *(
        ("reset", "{evil}"),
        ("checkout", "{evil}"),
        ("reflog", "{evil}"),
        ("branch", "-d", "{evil}"),
    ),
)
RAW: tuple[tuple[str, ...], ...] = (
    *(
        ("cat-file", "-p", "{blob}"),
        ("cat-context",),
        ("show", "{blob}"),
        ("show", "--raw", "HEAD.0"),
    ),
    *(("export", "--format", "openai"), ("export", "--format", "markdown"), ("log", "--json")),
    *(("compile",), ("compile", "-f", "text"), ("compile", "-f", "json")),
    *(("show", "--json"), ("export", "--native", "{session}")),
)


@pytest.fixture
def place(tmp_path: Path, trace: Trace) -> dict[str, str]:
    """A repository with terminal escape sequences in every field."""
    repo = Repo.init(str(tmp_path), environment=Environment(author="x"))
    repo.set_tools([{"name": ATTACK, "description": ATTACK, "input_schema": {}}])
    edited = repo.append("user", ATTACK, name=ATTACK)
    repo.edit((edited.oid, 0), "reworded " + ATTACK)
    parts = [
        *(Text(ATTACK), Reasoning(ATTACK, signature=ATTACK), Image(ATTACK, b"\x1b[2J")),
        *(
            ToolCall(ATTACK, ATTACK, ATTACK, format="text"),
            ToolCall("c2", ATTACK, {ATTACK: ATTACK}),
        ),
        *(Opaque(ATTACK, ATTACK.encode()), Image(url=ATTACK)),
    ]
    repo.append("assistant", parts, model=ATTACK, id=ATTACK, name=ATTACK)
    repo.append("tool", [ToolResult(ATTACK, [Text(ATTACK)], is_error=True)])
    store = repo.store
    tip = store.refs.read("refs/heads/main")
    assert tip is not None
    odd = Commit([tip], ATTACK, 1, [], message=ATTACK, meta={"m": ATTACK}, links=[(ATTACK, ATTACK)])
    oid = store.objects.write(odd.encode())
    tag = store.objects.write(Tag(oid, ATTACK, ATTACK, 1, ATTACK, {"x": ATTACK}).encode())
    blob = store.objects.write(encode_blob(b"\x1b[2Jx"))
    repo.close()
    for words in (
        ("update-ref", "refs/heads/main", str(oid)),
        ("update-ref", "refs/tags/v1", str(tag)),
    ):
        assert trace(*words).code == 0
    spelled = "".join(f"\\U{ord(c):08X}" for c in ATTACK)
    config = tmp_path / ".trace" / "config"
    config.write_text(config.read_text() + f'x = "{spelled}"\n', encoding="utf-8")
    evil = ATTACK.replace("/", "_").replace("\x00", "")[:60]
    (tmp_path / f"{evil}.jsonl").write_text('{"role": "user", "content": "\\u001b[2J"}\n')
    session = [
        {"role": "user", "content": ATTACK, "name": ATTACK},
        {"role": "assistant", "content": ATTACK},
    ]
    (tmp_path / "chat.json").write_text(json.dumps({"model": ATTACK, "messages": session}))
    assert trace("import", "chat.json").code == 0
    assert trace("bundle", "create", "all.bundle", "--all", "-q").code == 0
    return {"evil": evil, "edited": f"{edited.oid}.0", "blob": str(blob), "session": "chat"}


def assert_harmless(text: str) -> None:
    assert not OBEYED & set(text), sorted(map(repr, OBEYED & set(text)))
    assert not UNSEEN & set(text), sorted(map(repr, UNSEEN & set(text)))


@pytest.mark.parametrize("terminal", [False, True], ids=["to a pipe", "to a terminal"])
def test_commands_for_people(place: dict[str, str], trace: Trace, terminal: bool) -> None:
    for words in COMMANDS:
        outcome = trace(*(word.format(**place) for word in words), terminal=terminal)
        assert "unexpected" not in outcome.err, (words, outcome)
        assert_harmless(outcome.text)
        for line in outcome.err.split("\r"):  # which is how progress is written over
            assert_harmless(line)


def test_raw_output_is_for_programs(place: dict[str, str], trace: Trace) -> None:
    for words in RAW:
        given = [word.format(**place) for word in words]
        outcome = trace(*given, terminal=True)
        assert "unexpected" not in outcome.err, (words, outcome)
        assert_harmless(outcome.text)
        assert_harmless(outcome.err)
    assert trace("cat-file", "-p", place["blob"]).out.startswith(b"\x1b[2J")
    assert trace("cat-file", "--raw", place["blob"], terminal=True).code == 2


def test_completion(place: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for shown in addresses(""):
        assert_harmless("".join(shown))


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_the_gate_itself(attack: str) -> None:
    assert_harmless(guarded(attack))
    assert guarded(guarded(attack)) == guarded(attack)
    assert guarded(f"\x1b[31m{safe(attack)}\x1b[0m") == f"\x1b[31m{safe(attack)}\x1b[0m"
    assert_harmless(
        guarded(f"\x1b[31m{attack}\x1b[0m").replace("\x1b[31m", "").replace("\x1b[0m", "")
    )


def test_the_gate_lets_our_own_colours_through_and_no_others() -> None:
    assert {*tables._STYLES.values(), "0"} == OWN_STYLES
    for style in ("", "5", "7", "8", "1;31", "38;5;1", "01", "?25l"):
        assert "\x1b" not in guarded(f"\x1b[{style}mx")


# --- the source ---------------------------------------------------------------------------------

GATES = {
    "cli/trace_cli/runtime.py": "the gate: `write`, `line`, `note`",
    "cli/trace_cli/main.py": "flushes, and redirects the last flush to nowhere",
    "cli/trace_cli/render/tables.py": "asks how wide the terminal is",
    "trace_store/history/records.py": "logs a secret in a value once, for programs that listen",
    "trace_store/integrations/framework_store.py": "logs faults of a store, for programs that listen",
    "trace_store/integrations/spans.py": "logs the first fault of an adapter, for programs that listen",
    "trace_store/maintenance/lock_wait.py": "logs for programs that listen; what is not printable is escaped",
    "trace_store/disk/worker_pool.py": "a child process hands its findings to its parent",
}
"""Where a stream of the process is named, and why; everything else is given an Invocation."""
TO_FILES = [(f"trace_store/{name}.py", "os.write") for name in ("disk/files", "disk/system_calls")]
READ_PROGRAMS = [f"trace_store/trajectories/{name}.py" for name in ("git", "tasks/programs")]
"""They read what another program prints."""
PRINTERS = {"print", "echo", "secho", "pprint", "print_exc", "print_exception", "print_stack"}
STREAMS = {"sys.stdout", "sys.stderr", "sys.__stdout__", "sys.__stderr__"}
NO_IMPORT = {"rich", "logging", "curses", "pprint", "warnings", "readline"}


@functools.cache
def found_bypasses() -> tuple[tuple[str, tuple[tuple[int, str], ...]], ...]:
    """Return what each module has that could reach a terminal, by its name."""
    return tuple(
        (
            path.relative_to(ROOT).as_posix(),
            tuple(bypasses(ast.parse(path.read_text(encoding="utf-8")))),
        )
        for folder in ("cli/trace_cli", "trace_store")
        for path in sorted((ROOT / folder).rglob("*.py"))
    )


def bypasses(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield (line, what) of everything that could reach a terminal without passing the gate."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = node.func
            name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
            low = name in ("write", "writev") and ast.unparse(called).startswith("os.")
            if name in PRINTERS or low:
                yield node.lineno, ast.unparse(called)
        elif isinstance(node, ast.Attribute) and f"sys.{node.attr}" in STREAMS:
            yield node.lineno, ast.unparse(node)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names = [alias.name for alias in node.names]
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                if name.split(".")[0] in NO_IMPORT:
                    yield node.lineno, f"import {name}"
        elif isinstance(node, ast.Constant) and node.value in (
            "/dev/tty",
            "/dev/stdout",
            "CONOUT$",
        ):
            yield node.lineno, str(node.value)


def test_nothing_is_written_past_the_gate() -> None:
    found = [
        f"{name}:{line} {what}"
        for name, each in found_bypasses()
        for line, what in each
        if name not in GATES and (name, what) not in TO_FILES
        if name not in READ_PROGRAMS or not what.endswith((".stdout", ".stderr"))
    ]
    assert not found, "\n".join(found)


def test_the_walk_sees_what_it_should() -> None:
    tree = ast.parse(
        "import rich.console\nfrom logging import info\nprint(1)\nsys.stderr.write('x')\n"
        "typer.echo(1)\nos.write(1, b'')\ntraceback.print_exc()\nopen('/dev/tty')\n"
    )
    assert {line for line, _ in bypasses(tree)} == {1, 2, 3, 4, 5, 6, 7, 8}


def test_each_gate_is_still_one() -> None:
    named = {name for name, each in found_bypasses() if each}
    assert set(GATES) <= named

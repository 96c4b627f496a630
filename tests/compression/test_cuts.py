"""What a cut keeps: the lines that say what failed, lines unlike all others, and the true number of missing lines."""

from __future__ import annotations

import json
import random
import re

import pytest

from tests.compression.support.agent_session import LONG, call, result
from tests.support.pictures import png
from trace_store import Image, Message, Repo, Text, ToolCall, ToolResult
from trace_store.compression.cuts import first_paragraph, shortened, shorter_call
from trace_store.context.activity import counts_checks, says_failure

FAILURES = [
    "src/app.ts(12,7): error TS2322: Type 'string' is not assignable to type 'number'.",
    "E       AssertionError: assert 3 == 4",
    "FAILED tests/test_fold.py::test_order - KeyError: 'a'",
    "ValueError: the budget is negative",
    "error[E0308]: mismatched types",
    "main.go:14:2: undefined: foldAll",
    "--- FAIL: TestFold (0.01s)",
    "npm ERR! code ELIFECYCLE: exit status 1",
    "ld: symbol(s) not found for architecture arm64",
    "thread 'main' panicked at src/fold.rs:3:5",
    "fatal: not a git repository",
    "  3:7  error  'x' is defined but never used  no-unused-vars",
    "bash: foldd: command not found",
    "make: *** [all] Error 2",
    "Segmentation fault (core dumped)",
    "test fold ... FAILED",
]
PROGRESS = (
    "compiling unit {}",
    "[{}/900] Building CXX object fold_{}.o",
    "cleaning unit {} … done",
)


@pytest.mark.parametrize("line", FAILURES)
def test_a_line_that_says_what_failed_is_kept_wherever_it_stands(line: str) -> None:
    for seed in range(7):
        chance = random.Random(seed)
        form = chance.choice(PROGRESS)
        lines = [form.format(number, number) for number in range(chance.randrange(150, 400))]
        lines.insert(chance.randrange(len(lines)), line)
        text = shortened("\n".join(lines), chance.choice((300, 80, 40)), "abc.0", failures=True)
        assert line.strip() in text, f"seed {seed}"
        assert len(text) < 300 * 4 + 200


@pytest.mark.parametrize(
    "line", ["0 errors, 0 warnings", "no failures", "ok", "terror is a word", "compiling unit 12"]
)
def test_lines_that_say_that_nothing_failed_are_no_failures(line: str) -> None:
    assert not says_failure(line)


def missing(text: str) -> int:
    return sum(int(n.replace(",", "")) for n in re.findall(r"\[([\d,]+) lines? removed", text))


def test_a_note_says_the_number_of_lines_of_the_original_also_the_second_time() -> None:
    for seed in range(100):
        chance = random.Random(seed)
        lines = [f"{chance.getrandbits(80):x} line {n}" for n in range(chance.randrange(80, 900))]
        lines[chance.randrange(80)] = FAILURES[seed % len(FAILURES)]
        once = shortened("\n".join(lines), 300, "abc.0", failures=True)
        twice = shortened(once, 60, "abc.0", "exit code 1", failures=True)
        for text in (once, twice):
            kept = [line for line in text.splitlines() if not line.startswith("[")]
            assert missing(text) + len(kept) == len(lines), f"seed {seed}"
            assert len(re.findall("removed", text)) == 1
        assert ", exit code 1: trace expand abc.0]" in twice


def build(repo: Repo, output: str) -> None:
    """Append a command with its output, and three more turns."""
    repo.append("user", "Build it.")
    repo.commit([Message("assistant", [call(1, "Bash", command="make")])])
    repo.commit([Message("tool", [result(1, output)])])
    for number in range(3):
        repo.append("user", f"Go on with part {number}.")
        repo.append("assistant", "It is done.")


def output_at(repo: Repo, at: int) -> str:
    """Return the text of the tool result at a position."""
    (part,) = repo.compile().messages[at].parts
    assert isinstance(part, ToolResult)
    return "".join(each.text for each in part.content if isinstance(each, Text))


def test_a_cut_goes_no_deeper_than_needed() -> None:
    """One large output is most of the context; a target of 90% takes a tenth of it."""
    for percent in (90, 70, 50, 30):
        with Repo.memory() as repo:
            build(repo, LONG * 20)
            target = repo.compression.target(f"{percent}%")
            done = repo.compression.trim(target)
            assert target * 0.9 < done.after <= target


def test_outputs_are_cut_in_turns_and_the_first_is_not_cut_to_nothing() -> None:
    with Repo.memory() as repo:
        for number in range(4):
            build(repo, f"{number}\n{LONG * 4}")
        sizes = [size for size, _ in repo.compile().message_tokens() if size > 1_000]
        assert min(sizes) > 5_000
        repo.compression.trim(repo.compile().token_count - sizes[0] * 9 // 10)
        cut = [size for size, _ in repo.compile().message_tokens() if size > 200]
        assert len(cut) == len(sizes)
        assert min(cut) > 3_000


def test_a_second_trim_counts_from_the_original() -> None:
    with Repo.memory() as repo:
        build(repo, LONG * 4)
        whole = len((LONG * 4).splitlines())
        for percent in (60, 40):
            repo.compression.trim(repo.compression.target(f"{percent}%"))
            text = output_at(repo, 2)
            kept = [line for line in text.splitlines() if not line.startswith("[")]
            assert missing(text) + len(kept) == whole


def test_the_note_of_an_episode_keeps_the_decision_the_conclusion_and_what_failed() -> None:
    with Repo.memory() as repo:
        repo.append("user", "Make the sessions durable.")
        repo.append("assistant", "Let me look at the store. We will use SQLite instead of Redis.")
        repo.commit([Message("assistant", [call(1, "Bash", command="make check")])])
        repo.commit(
            [Message("tool", [result(1, f"{LONG}\nValueError: no port\n{LONG}", failed=True)])]
        )
        repo.append("assistant", "The root cause is the missing port. Let me fix it:")
        for number in range(2, 30):
            repo.commit([Message("assistant", [call(number, "Bash", command=f"ls {number}")])])
            repo.commit([Message("tool", [result(number, "a b c " * 40)])])
        repo.append("assistant", "It works now.")
        for number in range(3):
            repo.append("user", f"Go on with part {number}.")
            repo.append("assistant", "It is done.")
        repo.compression.trim(repo.compression.trim(10, dry_run=True).after)
        (note,) = [m.text for m in repo.compile().messages if m.kind == "summary"]
        assert "Decided: We will use SQLite instead of Redis." in note
        assert "Concluded: The root cause is the missing port." in note
        assert "Failed: ValueError: no port" in note
        assert "Let me" not in note


def test_pictures_of_the_user_stay_and_those_of_tools_are_named() -> None:
    with Repo.memory() as repo:
        repo.append("user", "Look at the page.")
        repo.append("user", [Image("image/png", png(8, 8))])
        for number in range(1, 9):
            repo.commit([Message("assistant", [call(number, "Bash", command=f"shot {number}")])])
            shot = Message("tool", [result(number, LONG.replace("setting", f"shot_{number}"))])
            if number == 1:
                shown = [Text(f"{LONG}\n{LONG.upper()}"), Image("image/png", png(8, 8))]
                shot = Message("tool", [ToolResult("call_1", shown)])
            repo.commit([shot])
        for number in range(3):
            repo.append("user", f"Go on with part {number}.")
            repo.append("assistant", "It is done.")
        repo.compression.trim(repo.compression.target("50%"))
        messages = repo.compile().messages
        assert any(isinstance(part, Image) for part in messages[1].parts)
        assert "[1 image removed: trace expand " in output_at(repo, 3)
        repo.compression.trim(10, partial=True)
        assert any(isinstance(p, Image) for m in repo.compile().messages for p in m.parts)


def test_outputs_that_a_format_files_under_the_user_are_no_words_of_the_user() -> None:
    with Repo.memory() as repo:
        repo.append("user", "Fix the bug in the fold.")
        for number in range(9):
            repo.append("assistant", f"ls part_{number}")
            repo.append("user", f"OBSERVATION:\n{LONG}\npart {number}", kind="tool_io")
        repo.compression.trim(repo.compression.target("30%"))
        shown = [m.text for m in repo.compile().messages]
        assert "Fix the bug in the fold." in shown
        assert sum("lines removed: trace expand" in text for text in shown) > 5


def test_an_output_in_a_json_object_is_cut_by_its_lines() -> None:
    lines = [f"compiling unit {number}" for number in range(200)]
    lines[90] = 'src/app.ts(3,1): error TS2304: Cannot find name "fold".'
    wrapped = json.dumps({"output": "\n".join(lines), "metadata": {"exit_code": 2}})
    for text in (wrapped, f"Wall time: 3 s\nOutput:\n{wrapped}"):
        cut = shortened(text, 80, "abc.0", failures=True)
        assert lines[90] in cut
        assert "lines removed" in cut
        assert missing(cut) == 200 - sum(line in lines for line in cut.splitlines())


def test_a_long_argument_is_cut_to_a_few_lines() -> None:
    made = ToolCall("1", "Write", json.dumps({"file_path": "a.py", "content": LONG * 3}))
    cut = shorter_call(made, "abc.0", 24, 0.0)
    assert isinstance(cut, ToolCall)
    arguments = json.loads(cut.arguments)
    assert arguments["file_path"] == "a.py"
    assert "lines removed" in arguments["content"]
    assert len(arguments["content"]) < 500


def test_the_note_in_a_long_line_counts_the_characters_that_are_missing() -> None:
    text = "word " * 2_000
    head, note, tail = shortened(text.strip(), 60, "abc.0").splitlines()
    [gone] = re.findall(r"\[([\d,]+) characters removed", note)
    assert len(head) + int(gone.replace(",", "")) + len(tail) == len(text.strip())


def test_a_heading_goes_with_what_is_below_it() -> None:
    """Else it would be read as that of the next lines that stay."""
    filler = "  filler: 1234567890,\n" * 9
    records = [f'run {n} {{\n  "commands": {n},\n{filler}}}' for n in range(9)]
    for tokens in range(20, 120, 7):
        kept = shortened("\n".join(records), tokens, "abc.0").splitlines()
        for line, following in zip(kept, [*kept[1:], ""], strict=True):
            assert not line.endswith("{") or '"commands"' in following


@pytest.mark.parametrize("form", ["## Part {}", "   7\u2192# Part {}", "**Part {}:**"])
def test_a_heading_of_which_nothing_is_left_goes(form: str) -> None:
    sections = [
        "\n".join(
            (form.format(part), "", *(f"fact {part}.{n} is long enough" for n in range(9)), "")
        )
        for part in range(12)
    ]
    is_below = re.compile(r"\bPart (\d+)\b")
    for tokens in range(20, 200, 9):
        kept = shortened("\n".join(sections), tokens, "abc.0").splitlines()
        parts = [found[1] for line in kept if (found := is_below.search(line))]
        facts = [line.split()[1].split(".")[0] for line in kept if line.startswith("fact")]
        assert set(parts) <= set(facts)
        assert not tokens > 60 or parts


@pytest.mark.parametrize(
    "begin", ["diff --git a/x.py b/x.py\n--- a/x.py\n+++ b/x.py\n@@ -1,9 +1,9 @@"]
)
def test_of_a_diff_the_changed_lines_stay_before_the_lines_around_them(begin: str) -> None:
    hunks = [
        "\n".join(
            (
                f"@@ -{n},9 +{n},9 @@ def part_{n}():",
                *(f"     unchanged_{n}_{k} = {k}" for k in range(20)),
                f"-    old_{n} = 1",
                f"+    new_{n} = 2",
                *(f"     after_{n}_{k} = {k}" for k in range(20)),
            )
        )
        for n in range(6)
    ]
    cut = shortened("\n".join((begin, *hunks)), 100, "abc.0")
    assert "+++ b/x.py" in cut
    for n in range(6):
        assert f"-    old_{n} = 1" in cut
        assert f"+    new_{n} = 2" in cut
    assert "unchanged" not in shortened("\n".join((begin, *hunks)), 60, "abc.0")
    message = "commit 12345\n\n    fix the fold"
    assert "fix the fold" in shortened("\n".join((message, begin, *hunks)), 60, "abc.0")


def test_brackets_rules_and_numbers_are_not_kept() -> None:
    text = "\n".join(
        ["   1\u2192---"] + [f"  {n}\u2192  }}" for n in range(300)] + ["  301\u2192return fold"]
    )
    cut = shortened(text, 24, "abc.0")
    assert "return fold" in cut
    assert "}" not in cut


def test_the_one_line_unlike_all_others_is_kept() -> None:
    lines = [f"GET /health 200 in {number} ms" for number in range(300)]
    lines[170] = "switched to the standby database"
    cut = shortened("\n".join(lines), 40, "abc.0").splitlines()
    assert lines[170] in cut
    assert sum(line.startswith("GET") for line in cut) < 20


def test_how_checks_ended_is_kept() -> None:
    lines = [f"test_{n}.py ." for n in range(200)] + ["1273 pass", "1 fail"]
    lines += [f"coverage of {n}.py" for n in range(200)]
    cut = shortened("\n".join(lines), 40, "abc.0", failures=True)
    assert "1273 pass" in cut
    assert "1 fail" in cut


@pytest.mark.parametrize(
    ("tool", "arguments"), [("Task", {"prompt": "Look."}), ("Read", {"file_path": "/w/SKILL.md"})]
)
def test_reports_and_instructions_stay_longer(tool: str, arguments: dict[str, str]) -> None:
    text = "\n".join(f"- option {number}: {'text ' * 9}" for number in range(60))
    kept = {}
    for name, given in ((tool, arguments), ("Fetch", {"url": "x"})):
        with Repo.memory() as repo:
            repo.append("user", "Go on.")
            made = ToolCall("1", name, json.dumps(given))
            repo.commit(
                [Message("assistant", [made]), Message("tool", [ToolResult("1", [Text(text)])])]
            )
            for number in range(40):
                repo.append("assistant", f"{number} done. " * 40)
            repo.compression.trim(repo.compile().token_count - 300, keep_last=0, partial=True)
            [part] = repo.compile().messages[2].parts
            assert isinstance(part, ToolResult)
            [inner] = part.content
            assert isinstance(inner, Text)
            kept[name] = inner.text.count("option")
    assert kept[tool] >= kept["Fetch"]


def test_a_report_is_whole_while_an_output_of_its_size_is_cut() -> None:
    with Repo.memory() as repo:
        repo.append("user", "Go on.")
        for id, name, arguments in (
            ("1", "Task", {"prompt": "Look."}),
            ("2", "Fetch", {"url": "x"}),
        ):
            repo.commit([Message("assistant", [ToolCall(id, name, json.dumps(arguments))])])
            repo.commit([Message("tool", [ToolResult(id, f"{name}\n{LONG}\n{LONG.upper()}")])])
        repo.append("assistant", "Read both.")
        before = [size for size, _ in repo.compile().message_tokens()]
        assert before[2] > 2_000
        repo.compression.trim(repo.compile().token_count - 1_000, keep_last=0)
        after = [size for size, _ in repo.compile().message_tokens()]
        assert after[2] == before[2]
        assert after[4] < before[4]


def test_the_cause_of_a_failed_build_is_kept_and_its_stack_is_not() -> None:
    lines = [f"transforming module_{number}.ts" for number in range(200)]
    lines += ["x Build failed in 301ms", "error during build:"]
    lines += ['src/log.ts (3:9): "existsSync" is not exported by "external"']
    lines += [f"    at step{n} (file:///w/node_modules/rollup.js:{n}:7)" for n in range(40)]
    cut = shortened("\n".join(lines), 60, "abc.0", failures=True)
    assert lines[202] in cut
    assert "    at step" not in cut


def test_a_named_task_that_failed_is_not_the_count_of_a_check() -> None:
    assert not counts_checks("[Limiter] Task 2 failed")
    for line in (
        "1 fail",
        "=== 2 failed, 3 passed in 1.0s ===",
        "Tests: 31 passed",
        "Test Files  1 failed (3)",
    ):
        assert counts_checks(line), line


QUIET = [
    f"line {n:03} of the quiet output, which is about {n * 37 % 101} things" for n in range(40)
]
FAILED = [*QUIET]
FAILED[10:12] = "error during build:", "the cause is here"
FAILED[20] = "app.py:3:1: error: no such name"
FAILED[30] = "12 passed, 1 failed"
FAILED[33] = "error: exit code 2"
DIFF = [
    *("commit 12", "fix the fold", "diff --git a/x.py b/x.py", "@@ -1,9 +1,9 @@"),
    *(f"     unchanged_{n} = {n}" for n in range(30)),
    *("-    old = 1", "+    new = 2"),
    *(f"     after_{n} = {n}" for n in range(30)),
]
HEADINGS = [
    line
    for part in range(5)
    for line in (
        *(f"## Part {part}", f"### Sub {part}"),
        *(f"fact {part}.{n} is long enough to be cut" for n in range(8)),
        *(f"part_{part} {{", f"  inner {part}", "}"),
    )
]


def odd(count: int) -> list[str]:
    """Return 60 lines of which all but a few are alike."""
    lines = [f"GET /health 200 in {n} ms" for n in range(60)]
    for at in range(count):
        lines[9 * at + 3] = f"odd {'abcdefg'[at]} line"
    return lines


@pytest.mark.parametrize(
    ("lines", "tokens", "failures", "kept"),
    [
        (QUIET, 24, False, "0 [39]"),
        (QUIET, 50, False, "0 1 [37] 39"),
        (QUIET, 90, False, "0 1 2 [35] 38 39"),
        (QUIET, 150, False, "0 1 2 3 4 5 [30] 36 37 38 39"),
        (FAILED, 24, True, "[38] 20 … 30 …"),
        (FAILED, 50, True, "0 [34] 10 11 … 20 … 30 … 33 …"),
        (FAILED, 90, True, "0 1 [32] 10 11 … 20 … 30 … 33 … 39"),
        (FAILED, 90, False, "0 1 2 [35] 38 39"),
        (DIFF, 24, False, "0 1 2 [61] 34 35 …"),
        (DIFF, 50, False, "0 1 2 3 4 5 6 [55] 34 35 … 64 65"),
        (HEADINGS, 24, False, "0 1 2 [59] 62 63 12"),
        (HEADINGS, 90, False, "0 1 2 3 4 5 6 [52] 59 60 61 62 63 12"),
        (odd(6), 24, False, "0 [54] 3 … 12 … 21 … 30 … 39 …"),
        (odd(6), 40, False, "0 1 [51] 3 … 12 … 21 … 30 … 39 … 48 … 59"),
        (odd(7), 40, False, "0 1 2 3 [53] 57 58 59"),
    ],
)
def test_which_lines_are_kept(lines: list[str], tokens: int, failures: bool, kept: str) -> None:
    """By their numbers: what failed, then lines unlike all others, then three fifths head and two fifths tail."""
    said = []
    for line in shortened("\n".join(lines), tokens, "abc.0", failures=failures).splitlines():
        note = re.fullmatch(r"\[(\d+) lines removed: trace expand abc\.0\]", line)
        gap = "…" if line == "[…]" else str(lines.index(line)) if line in lines else line
        said.append(f"[{note[1]}]" if note else gap)
    assert " ".join(said) == kept


def test_the_arguments_of_a_call_that_are_cut() -> None:
    longest, longer = "x" * 400, "y\n" * 300
    given = {"a": longest, "b": [longer, {"c": longer}], "d": 1}
    cut = shorter_call(ToolCall("1", "Write", json.dumps(given)), "abc.0", 24, 0.0)
    assert isinstance(cut, ToolCall)
    note = "[200 lines removed: trace expand abc.0]"
    short = "\n".join(["y"] * 60 + [note] + ["y"] * 40)
    assert json.loads(cut.arguments) == {"a": longest, "b": [short, {"c": short}], "d": 1}
    assert (cut.id, cut.name) == ("1", "Write")
    for arguments in ("[1]", "no JSON", json.dumps({"a": longest})):
        made = ToolCall("1", "Write", arguments)
        assert shorter_call(made, "abc.0", 24, 0.0) is made


@pytest.mark.parametrize(
    ("text", "first", "kept"),
    [
        ("First.\nMore.\n\nSecond. {}", "First.\nMore.", ""),
        ("## Head\n\nSecond.\n\nThird. {}", "## Head\n\nSecond.", ""),
        ("## Head\nline\n\nSecond. {}", "## Head\nline", ""),
        ("First.\n\n{}. We will use A instead of B. No.", "First.", "We will use A instead of B."),
        ("We will use A instead of B.\n\n{}", "We will use A instead of B.", ""),
        ("x" * 401 + "{}", "x" * 400, ""),
    ],
)
def test_the_first_paragraph_of_an_answer_and_what_it_decides(
    text: str, first: str, kept: str
) -> None:
    whole = text.format("word " * 90)
    cut = first_paragraph(Text(whole), "abc.0")
    assert isinstance(cut, Text)
    removed = len(whole) - len(first) - len(kept)
    note = f"[{removed:,} characters removed: trace expand abc.0]"
    assert cut.text == "\n".join(filter(None, (first, note, kept)))
    short = Text("x" * 400)
    assert first_paragraph(short, "abc.0") is short


def note_of(steps: list[Message], *answers: str) -> list[str]:
    """Return the lines of the note in the place of some steps and answers."""
    with Repo.memory() as repo:
        repo.append("user", "Do it.")
        repo.commit([*steps, *(Message("assistant", each) for each in answers)])
        repo.append("assistant", "Done.")
        for _ in range(3):
            repo.append("user", "Go on.")
            repo.append("assistant", "Done.")
        repo.compression.trim(10, partial=True)
        [note] = [m for m in repo.compile().messages if m.kind == "summary"]
        return re.sub(r"[0-9a-f]{8}\.\d+", "ADDRESS", note.text).splitlines()


def test_what_a_note_says_of_the_work_that_it_replaces() -> None:
    steps = []
    for number in range(12):
        read = call(number, "Read", file_path=f"/w/f{number}.py")
        steps.append(Message("assistant", [read, call(50 + number, "Edit", file_path="/w/e.py")]))
        steps.append(Message("tool", [result(number, "x " * 200), result(50 + number, "ok")]))
    for number, (command, error) in enumerate(
        (
            *(("make a", "ValueError: a"), ("make b", "KeyError: b"), ("make a", "ValueError: c")),
            *((f"make {'x' * 60}", "OSError: d"), ("make e", "^C"), ("true", "")),
        ),
        100,
    ):
        steps.append(Message("assistant", [call(number, "Bash", command=command)]))
        steps.append(Message("tool", [result(number, error or "ok", failed=bool(error))]))
    names = ", ".join(f"f{number}.py" for number in range(2, 12)) + " and 2 more"
    ran = f"make a (failed), make b (failed), make {'x' * 55} (failed), make e (failed)"
    assert note_of(steps) == [
        f"[34 messages removed: read {names}; changed e.py; ran {ran}. trace expand ADDRESS]",
        "Failed: KeyError: b",
        "Failed: OSError: d",
    ]


@pytest.mark.parametrize(
    ("said", "noted"),
    [
        ("One two three four five six.", ["Concluded: One two three four five six."]),
        ("One two three four five.", []),
        (
            "It turns out that the port is in use. Now all the last words are six.",
            ["Concluded: It turns out that the port is in use."],
        ),
        (
            "We will use one. We will use two. We will use one thing or three for it.",
            [
                "Decided: We will use two.",
                "Decided: We will use one thing or three for it.",
            ],
        ),
        ("Let me look at the next of the files.", []),
    ],
)
def test_what_a_note_says_of_the_answers_that_it_replaces(said: str, noted: list[str]) -> None:
    assert note_of([], "word " * 400, said) == [
        "[2 messages removed. trace expand ADDRESS]",
        *noted,
    ]

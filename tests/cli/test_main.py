"""The entry point: global options, streams, exit codes and unexpected errors."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

import trace_store
from tests.support.command_line import Trace
from trace_cli import main as entry
from trace_cli.advice import EXIT_CODES, HINTS, OTHER_EXIT_CODES, exit_code, hint
from trace_cli.commands import COMMANDS, TOPICS
from trace_cli.main import main
from trace_cli.runtime import Invocation
from trace_store import errors
from trace_store.base.environment import Environment
from trace_store.base.oid import ObjectId

ROOT = Path(__file__).resolve().parents[2]


def run(*words: str, cwd: Path, **variables: str) -> subprocess.CompletedProcess[bytes]:
    """Run the command as a process of its own."""
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'cli'}",
        "USER": "ada",
        **variables,
    }
    return subprocess.run(
        [sys.executable, "-m", "trace_cli", *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        cwd=cwd,
        env=environment,
    )


def test_version_is_said_in_three_ways(trace: Trace) -> None:
    said = f"trace {trace_store.__version__}\n".encode()
    assert trace("--version").out == trace("version").out == said
    assert trace("--no-color", "--version").out == said


def test_no_command_lists_common_commands_and_fails(trace: Trace) -> None:
    outcome = trace()
    assert outcome.code == 2
    assert "Record messages:" in outcome.lines
    assert "  commit   Record messages as one commit" in outcome.lines
    assert "rev-parse" not in outcome.text
    assert "trace help -a" in outcome.text


def test_all_commands_and_topics_are_listed_by_category(trace: Trace) -> None:
    sections = trace("help", "-a").text.split(":\n\n")
    main, upkeep, plumbing, topics = sections[1:]
    assert "  merge " in main
    assert "  fsck " in upkeep
    assert "  cat-file " in plumbing
    assert "  json " in topics
    listed = trace("help", "-a").lines
    assert [c.name for c in COMMANDS if f"  {c.name:<16}{c.help}" not in listed] == []
    assert trace("help", "-a", "log").code == 2


@pytest.mark.parametrize("topic", TOPICS)
def test_topics_are_plain_text_that_fits_a_terminal(trace: Trace, topic: str) -> None:
    outcome = trace("help", topic)
    assert outcome.code == 0
    assert max(map(len, outcome.lines)) < 80
    assert not [mark for mark in ("|---", "```", "](") if mark in outcome.text]


def test_topics_say_what_help_texts_refer_to_them_for(trace: Trace) -> None:
    assert "  token_count " in trace("help", "json").text
    assert "  HEAD, @ " in trace("help", "revisions").text
    assert "  annotate " in trace("help", "operations").text


def test_a_misspelt_command_is_guessed(trace: Trace) -> None:
    outcome = trace("comit")
    assert outcome.code == 2
    assert (
        outcome.err.splitlines()[0]
        == "trace: error: no such command 'comit'. Did you mean 'commit', 'emit', 'compile'?"
    )
    assert outcome.err.splitlines()[1] == "hint: `trace help -a` lists all commands"


@pytest.mark.parametrize(
    "words", [["log", "--nope"], ["edit"], ["cat-file", "--nope"], ["log", "-n", "x"]]
)
def test_usage_errors_are_one_line_and_a_hint(trace: Trace, words: list[str]) -> None:
    outcome = trace(*words)
    assert outcome.code == 2
    assert [line.partition(":")[0] for line in outcome.err.splitlines()] == ["trace", "hint"]


def test_folders_are_entered_in_turn(trace: Trace, tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    assert trace("-C", "a", "-C", "b", "init").code == 0
    assert (tmp_path / "a" / "b" / ".trace").is_dir()
    assert trace("-C", "a/b", "symbolic-ref", "HEAD").code == 0
    assert trace("-C", "nowhere", "status").code == 2
    assert trace("-C", "nowhere", "symbolic-ref", "HEAD").code == 2


def test_a_named_directory_beats_the_environment(trace: Trace, tmp_path: Path) -> None:
    for name in ("one", "two", "three"):
        (tmp_path / name).mkdir()
        assert trace("-C", name, "init", "-q").code == 0
    surroundings = Environment(author="Ada", trace_dir=str(tmp_path / "two" / ".trace"))

    def where(*words: str) -> str:
        outcome = trace(*words, "rev-parse", "--trace-dir", environment=surroundings)
        return Path(outcome.text.strip()).parent.name

    assert where("-C", "one") == "two"
    assert where("-C", "one", "--dir", str(tmp_path / "three" / ".trace")) == "three"
    assert where(f"--dir={tmp_path / 'three'}") == "three"
    outcome = trace("--dir", "nowhere", "status", environment=surroundings)
    assert outcome.code == 10


def test_discovery_walks_up_unless_it_is_off(trace: Trace, tmp_path: Path) -> None:
    assert trace("init", "-q").code == 0
    (tmp_path / "below").mkdir()
    walking = Environment(author="Ada")
    assert trace("-C", "below", "status", environment=walking).code == 0
    assert trace("-C", "below", "symbolic-ref", "HEAD", environment=walking).code == 0
    still = Environment(author="Ada", discovery=False)
    assert trace("-C", "below", "status", environment=still).code == 10


def test_every_error_class_has_an_exit_code() -> None:
    classes = [each for each in vars(errors).values() if isinstance(each, type)]
    for error in classes:
        if issubclass(error, errors.TraceError) and error is not errors.TraceError:
            assert exit_code(error("x")) not in (0, 1), error
    codes = [code for _, code, _ in EXIT_CODES] + [code for code, _ in OTHER_EXIT_CODES]
    assert len(codes) == len(set(codes))


def test_hints_are_for_codes_that_exist() -> None:
    codes = {value for name, value in vars(errors.ErrorCode).items() if name.isupper()}
    assert set(HINTS) <= codes


def test_an_ambiguous_prefix_lists_the_candidates() -> None:
    error = errors.AmbiguousRevisionError(
        "several", candidates=[ObjectId.parse(f"{n:064x}") for n in range(7)]
    )
    assert (
        hint(error) == f"candidates: {', '.join([f'{n:064x}'[:16] for n in range(5)])} and 2 more"
    )


def test_messages_and_hints_are_escaped_and_flat(trace: Trace) -> None:
    outcome = trace("-C", "a\x1b[2J\nb\u202e", "status")
    assert len(outcome.err.splitlines()) <= 2
    assert "\x1b" not in outcome.err
    assert "\u202e" not in outcome.err


def test_an_unexpected_error_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> int:
        raise ZeroDivisionError("oh\x1b[1m")

    monkeypatch.setattr(entry, "_run", broken)
    for debug in (False, True):
        error = io.BytesIO()
        here = Invocation(environment=Environment(debug=debug), output=io.BytesIO(), error=error)
        assert main(["status"], here) == 1
        said = error.getvalue().decode()
        assert ("Traceback" in said) is debug
        assert "trace: error: unexpected ZeroDivisionError: oh\\x1b[1m" in said
        assert "report" in said.splitlines()[-1]


def test_an_interruption_ends_with_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(entry, "_run", interrupted)
    assert main(["status"], Invocation(output=io.BytesIO(), error=io.BytesIO())) == 130


def test_output_does_not_depend_on_the_locale(tmp_path: Path, repository: Trace) -> None:
    assert repository("commit", "--user", "größer 日本").code == 0
    for variables in ({"LC_ALL": "C", "PYTHONUTF8": "0"}, {"PYTHONIOENCODING": "latin-1"}):
        done = run("show", "HEAD.0", cwd=tmp_path, **variables)
        assert done.returncode == 0, done.stderr
        assert "größer 日本".encode() in done.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="there are no broken pipes on Windows")
@pytest.mark.parametrize("words", [["log"], ["rev-list", "HEAD"], ["cat-file", "--batch"]])
def test_a_reader_that_stops_is_no_error(
    tmp_path: Path, repository: Trace, words: list[str]
) -> None:
    big = repository("hash-object", "-w", "--stdin", stdin=b"x" * 1_000_000).text
    assert repository("commit", "--user", "hello").code == 0
    reading, writing = os.pipe()
    os.close(reading)
    environment = {"PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'cli'}", "PATH": os.environ["PATH"]}
    done = subprocess.run(
        [sys.executable, "-m", "trace_cli", *words],
        input=(big * 3).encode(),
        stdout=writing,
        stderr=subprocess.PIPE,
        check=False,
        cwd=tmp_path,
        env=environment,
    )
    os.close(writing)
    assert done.returncode == 141
    assert not done.stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full here")
@pytest.mark.parametrize("words", [["log"], ["rev-parse", "HEAD"]])
def test_output_that_cannot_be_written_is_told(
    tmp_path: Path, repository: Trace, words: list[str]
) -> None:
    assert repository("commit", "--user", "hello").code == 0
    command = f'"{sys.executable}" -m trace_cli {" ".join(words)}'
    environment = {"PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'cli'}", "PATH": os.environ["PATH"]}
    for place, reason in ((">/dev/full", "No space left on device"), (">&-", "it is closed")):
        done = subprocess.run(
            ["sh", "-c", f"{command} {place}"],
            stderr=subprocess.PIPE,
            check=False,
            cwd=tmp_path,
            env=environment,
        )
        assert done.returncode == 14
        said = f"trace: error: cannot write to standard output: {reason}\n"
        assert done.stderr.decode() == said


def test_the_environment_is_read(tmp_path: Path) -> None:
    assert run("init", cwd=tmp_path).returncode == 0
    done = run("commit", "--user", "hi", cwd=tmp_path, TRACE_AUTHOR="Grace <g@example.org>")
    assert done.returncode == 0, done.stderr
    shown = run("log", "--json", cwd=tmp_path).stdout
    assert b'"author": "Grace <g@example.org>"' in shown


def test_completion_works_from_the_table(tmp_path: Path) -> None:
    def complete(line: str) -> list[str]:
        words = line.split(" ")
        done = run(
            cwd=tmp_path,
            _TRACE_COMPLETE="complete_bash",
            COMP_WORDS=line,
            COMP_CWORD=str(len(words) - 1),
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.decode().split()

    assert complete("trace rev-") == ["rev-parse", "rev-list"]
    assert complete("trace cat-file --ba") == ["--batch", "--batch-check"]
    assert complete("trace log --fu") == ["--full"]
    assert "--branch" in complete("trace commit --")
    assert complete("trace compile --format an") == ["anthropic"]
    assert complete("trace import --format cla") == ["claude-code"]
    assert complete("trace log ") == []
    assert run("init", cwd=tmp_path).returncode == 0
    assert run("commit", "--user", "x", "--branch", "side", cwd=tmp_path).returncode == 0
    assert complete("trace log ") == ["HEAD", "side"]
    assert complete("trace show si") == ["side"]
    assert complete("trace commit --branch si") == ["side"]
    assert complete("trace rev-parse si") == ["side"]
    assert complete("trace update-ref refs/h") == ["refs/heads/side"]
    assert complete("trace pin ") == [], "HEAD's branch has no message"
    assert run("commit", "--user", "Pin\x1b[2J me", cwd=tmp_path).returncode == 0
    (address,) = complete("trace pin ")
    assert run("pin", address, cwd=tmp_path).returncode == 0
    made = sorted((tmp_path / ".trace" / "index").glob("*"))
    assert address in complete("trace show ")
    assert sorted((tmp_path / ".trace" / "index").glob("*")) == made, "completion writes nothing"


def test_every_command_has_help(capsys: pytest.CaptureFixture[str], trace: Trace) -> None:
    for command in COMMANDS:
        assert trace(command.name, "--help").code == 0
        text = capsys.readouterr().out
        assert text.startswith(f"Usage: trace {command.name}")
        assert command.help in text


@pytest.mark.parametrize(
    ("words", "command"),
    [
        (("move", "HEAD.0", "--after"), "trace move"),
        (("log", "--nope"), "trace log"),
        (("-C",), "trace"),
    ],
)
def test_a_usage_error_leads_to_the_help_of_its_command(
    trace: Trace, words: tuple[str, ...], command: str
) -> None:
    result = trace(*words)
    assert result.code == 2
    assert f"`{command} --help`" in result.err

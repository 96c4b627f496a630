"""The documentation works as written: all Python and shell blocks run.

A page is followed from top to bottom, in one folder, as a reader would. The folder holds nothing but
`session.jsonl`, the sample transcript that Trace comes with. A page's Python blocks share their names.
What a block needs is said in an HTML comment on the line above it:

    <!-- needs: jq, b3sum -->  skipped, with this as the reason, where a program is absent
    <!-- setup: name -->       sets up a machine: run by .ci/run from the text of the README, not here
    <!-- with: name -->        a folder of the project is put beside the transcript; from here on
                               ids and times are the ones that are written
    <!-- terminal: columns --> from here on commands are typed in a terminal, which shows some things otherwise
    <!-- file: name -->        the block is the content of a file
    <!-- transcripts: a as b --> a real transcript is in the folder under this name; where there are no real ones, the
                               page is skipped from here on

A `sh` block must succeed. A `console` block holds `$ command` lines with the output that follows each;
the output must be what is printed, except that `…` stands for any text, a line `...` for any lines, and
ids and times for any others of the same shape.
"""

from __future__ import annotations

import os
import re
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.examples import LONG_FORM
from tests.support.forked_commands import ForkedCommands, is_plain

ROOT = Path(__file__).resolve().parents[1]
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    ROOT / ".trace-example" / "README.md",
]
LOOKED_UP = ("cli", "json", "errors", "findings")
"""Tables in which a reader looks up one name."""
GUIDES = [
    page
    for page in [*(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "howto").glob("*.md")]
    if page.stem not in LOOKED_UP and not page.stem.startswith("benchmarks")
]
MAXIMUM_GUIDE_WORDS = 40_000
TRANSCRIPTS = os.environ.get("TRACE_TEST_TRANSCRIPTS")
SHELL = {"sh", "console"}
REFERENCE = {"{eval-rst}"}  # names that the site shows with their docstrings
PLAIN = {"text", "json", "jsonl", "toml", "hex"}

FENCE = re.compile(r"^```(\S*)\s*$")
MARKER = re.compile(r"^<!-- (needs|setup|with|terminal|file|transcripts): (.+?) -->$")
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
VARYING = re.compile(
    r"(?P<time>\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?Z?)"
    r"|(?P<id>\b(?=[0-9]*[a-f])(?=[a-f]*[0-9])[0-9a-f]{7,64}\b)"
    r"|(?P<any>…)"
)
ANYTHING = re.compile(r"(?P<any>…)")
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
END_OF_OUTPUT = "\x1e\n"
KEPT_BY_SHELL = re.compile(r"(?m)\bcd |^[a-z]+=|&$|^ ")
"""What one command of a block leaves to the next in the shell itself, or a command of several lines."""


class Block(NamedTuple):
    """One fenced block of a page."""

    page: Path
    line: int  # of its first line of text, counted from 1
    language: str
    text: str
    needs: tuple[str, ...]
    setup: str
    given: str  # initial files of the folder
    exact: bool  # whether ids and times are those that are printed
    columns: int  # of the terminal that commands are typed in; 0 is none
    file: str  # the name under which the reader saves it
    transcripts: dict[str, str]  # by the names that the reader knows them under

    @property
    def place(self) -> str:
        return f"{self.page.relative_to(ROOT).as_posix()}:{self.line}"

    def missing(self) -> list[str]:
        return [program for program in self.needs if shutil.which(program) is None]


def blocks(page: Path) -> list[Block]:
    """Return the fenced blocks of a page, in order."""
    found: list[Block] = []
    lines = page.read_text(encoding="utf-8").splitlines()
    start, language, markers = -1, "", dict[str, str]()
    for number, line in enumerate(lines):
        fence = FENCE.match(line)
        if start < 0 and fence:
            start, language = number + 1, fence[1]
        elif start >= 0 and fence:
            needs = tuple(name.strip() for name in markers.get("needs", "").split(",") if name)
            text = "\n".join(lines[start:number]) + "\n"
            setup, given = markers.get("setup", ""), markers.get("with", "")
            exact = bool(given or (found and found[-1].exact))
            columns = int(markers.get("terminal", found[-1].columns if found else 0))
            file = markers.get("file", "")
            listed = markers["transcripts"].split(", ") if "transcripts" in markers else []
            transcripts = {name: path for path, name in (each.split(" as ") for each in listed)}
            found.append(
                Block(
                    *(page, start + 1, language, text, needs, setup, given, exact, columns, file),
                    transcripts,
                )
            )
            start, markers = -1, {}
        elif start < 0 and (marker := MARKER.match(line)):
            markers[marker[1]] = marker[2]
        elif start < 0 and line.strip():
            markers = {}
    assert start < 0, f"{page}: a block is not closed"
    return found


ALL = [block for page in PAGES for block in blocks(page)]


@pytest.fixture(scope="module")
def forked() -> Iterator[ForkedCommands]:
    commands = ForkedCommands()
    yield commands
    commands.close()


@pytest.fixture
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put a reader in a folder with a transcript, with `trace` and its `python` on the path and a name of their own."""
    folder, programs = tmp_path / "project", tmp_path / "bin"
    folder.mkdir()
    programs.mkdir()
    (sample,) = (ROOT / "trace_store" / "samples").glob("*.jsonl")
    shutil.copy(sample, folder / "session.jsonl")
    call = "import sys; from trace_cli.main import main; sys.exit(main())"
    for name, words in {"trace": f' -c "{call}"', "python": ""}.items():
        script = programs / name
        script.write_text(f'#!/bin/sh\nexec "{sys.executable}"{words} "$@"\n', encoding="utf-8")
        script.chmod(0o755)
    for name in list(os.environ):
        if name.startswith(("TRACE_", "GIT_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}{os.pathsep}{ROOT / 'cli'}")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("TRACE_AUTHOR", "Ada <ada@example.org>")
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "Ada")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "ada@example.org")
    monkeypatch.chdir(folder)
    return folder


def shell(script: str, place: str) -> str:
    """Run a script; return its output and errors together."""
    run = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        check=False,
        timeout=120,
    )
    assert run.returncode == 0, f"{place}: exit {run.returncode}\n{run.stdout}"
    return run.stdout


def terminal(script: str, place: str, columns: int) -> str:
    """Run a script in a terminal; return the final screen."""
    import fcntl
    import pty
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    with subprocess.Popen(
        ["bash", "-euo", "pipefail", "-c", script],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        env={**os.environ, "TERM": "xterm", "PAGER": "cat"},
    ) as run:
        os.close(theirs)
        written = bytearray()
        try:
            while read := os.read(ours, 65536):
                written += read
        except OSError:  # the other side is closed
            pass
        finally:
            os.close(ours)
    plain = COLOUR.sub("", written.decode())
    shown = "\n".join(overwritten(line) for line in plain.split("\r\n"))
    assert run.returncode == 0, f"{place}: exit {run.returncode}\n{shown}"
    return shown


def overwritten(line: str) -> str:
    """Return the visible rest of a line that was overwritten, such as progress."""
    seen = ""
    for written in line.split("\r"):
        seen = written + seen[len(written) :]
    return seen.rstrip(" ")


def sessions(text: str) -> list[tuple[str, list[str]]]:
    """Split a console block into its commands and the lines that each prints."""
    found: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif found and not found[-1][1] and found[-1][0].endswith("\\"):
            found[-1] = (f"{found[-1][0]}\n{line}", [])
        else:
            assert found, f"output before the first command: {line!r}"
            found[-1][1].append(line)
    return found


def pattern(lines: list[str], *, exact: bool = False) -> re.Pattern[str]:
    """Make the expression that printed output must match."""
    varying = ANYTHING if exact else VARYING
    wanted = ""
    for line in lines:
        if line.strip() == "...":
            wanted += r"(?:.*\n)*?"
            continue
        end = 0
        for found in varying.finditer(line.rstrip()):
            wanted += re.escape(line[end : found.start()])
            shape = f"[0-9a-f]{{{len(found[0])}}}" if found.lastgroup == "id" else ".*?"
            wanted += r"[-0-9T:.Z ]+" if found.lastgroup == "time" else shape
            end = found.end()
        wanted += re.escape(line.rstrip()[end:]) + r"[ \t]*\n"
    return re.compile(wanted)


def is_split(block: Block, commands: list[str]) -> bool:
    """Return True if each command may have a shell of its own, or none."""
    alone = not block.columns and not any(KEPT_BY_SHELL.search(each) for each in commands)
    return alone and any(map(is_plain, commands))


def run_alone(command: str, block: Block, forked: ForkedCommands) -> str:
    """Run one command, with a shell only if it needs one; return its output and errors together."""
    if not is_plain(command):
        return shell(command, block.place)
    code, output = forked.run(command)
    assert code == 0, f"{block.place}: exit {code}\n{output}"
    return output


def converse(block: Block, forked: ForkedCommands) -> None:
    """Run each command of a console block and compare its output."""
    talks = sessions(block.text)
    script = "".join(f"{command}\nprintf '\\036\\n'\n" for command, _ in talks)
    if is_split(block, [command for command, _ in talks]):
        outputs = [run_alone(command, block, forked) for command, _ in talks]
    elif block.columns:
        outputs = terminal(script, block.place, block.columns).split(END_OF_OUTPUT)
    else:
        outputs = shell(script, block.place).split(END_OF_OUTPUT)
    for (command, expected), output in zip(talks, outputs, strict=False):
        printed = output if not output or output.endswith("\n") else output + "\n"
        assert pattern(expected, exact=block.exact).fullmatch(printed), (
            f"{block.place}: $ {command}\nwritten:\n{chr(10).join(expected)}\nprinted:\n{printed}"
        )


def follow(these: list[Block], forked: ForkedCommands) -> None:
    """Run blocks in order, as one reader in one folder."""
    names: dict[str, object] = {"__name__": "__main__"}
    for block in these:
        if block.given:
            shutil.copytree(ROOT / block.given, Path.cwd() / block.given)
        for name, path in block.transcripts.items():
            if TRANSCRIPTS is None:
                pytest.skip("needs real transcripts: TRACE_TEST_TRANSCRIPTS is not set")
            shutil.copy(Path(TRANSCRIPTS, path), name)
        if block.file:
            Path(block.file).write_text(block.text, encoding="utf-8")
        elif block.language == "python":
            source = "\n" * (block.line - 1) + block.text  # so that a traceback names the line
            exec(compile(source, str(block.page), "exec", dont_inherit=True), names)
        elif block.language == "console":
            converse(block, forked)
        elif block.language == "sh" and is_split(block, lines := block.text.splitlines()):
            for line in lines:
                run_alone(line, block, forked)
        elif block.language == "sh":
            shell(block.text, block.place)


def runnable(page: Path) -> list[Block]:
    return [block for block in blocks(page) if not block.setup]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_page_works_as_written(page: Path, reader: Path, forked: ForkedCommands) -> None:
    here = runnable(page)
    follow([block for block in here if not block.missing()], forked)
    if missing := sorted({name for block in here for name in block.missing()}):
        pytest.skip(f"all else works, but some blocks need {', '.join(missing)}")


@LONG_FORM
@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if any(block.needs for block in runnable(page))],
    ids=lambda page: page.relative_to(ROOT).as_posix(),
)
def test_page_works_without_other_programs(
    page: Path, reader: Path, forked: ForkedCommands
) -> None:
    follow([block for block in runnable(page) if not block.needs], forked)


def test_every_block_says_what_it_is() -> None:
    """A block without a language would never be run or checked."""
    known = SHELL | PLAIN | REFERENCE | {"python"}
    assert not [block.place for block in ALL if block.language not in known]


def test_only_the_readme_sets_a_machine_up() -> None:
    names = [block.setup for block in ALL if block.setup]
    assert sorted(names) == ["run", "run uv", "test", "test uv"]
    assert all(b.text.count("\n") == 1 and b.page.name == "README.md" for b in ALL if b.setup)


def test_no_command_hides_in_a_plain_block() -> None:
    shown = re.compile(r"(?m)^\$ |^(import|from) trace_store|^trace ")
    assert not [b.place for b in ALL if b.language in PLAIN and shown.search(b.text)]


@pytest.mark.parametrize(
    "page",
    [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"],
    ids=lambda page: page.relative_to(ROOT).as_posix(),
)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        if not re.match(r"[a-z]+:|#", target):
            assert (page.parent / target.split("#")[0]).exists(), f"{page.name}: {target}"


def test_every_page_can_be_reached() -> None:
    """From the README by links, so that no page is forgotten."""
    seen: set[Path] = set()
    waiting = [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in seen or page.suffix != ".md" or not page.exists():
            continue
        seen.add(page)
        targets = LINK.findall(page.read_text(encoding="utf-8"))
        waiting += [
            (page.parent / target.split("#")[0]).resolve()
            for target in targets
            if ":" not in target
        ]
    assert not [page.relative_to(ROOT).as_posix() for page in PAGES if page not in seen]


def test_the_guides_stay_short() -> None:
    """What is said once is found; a new paragraph is a reason to look for one that says the same."""
    words = {page.name: len(page.read_text(encoding="utf-8").split()) for page in GUIDES}
    longest = sorted(words.items(), key=lambda each: -each[1])[:5]
    assert sum(words.values()) <= MAXIMUM_GUIDE_WORDS, longest

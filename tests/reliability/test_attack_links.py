"""Links and special files at every place of a repository: nothing outside is written, removed or waited for."""

from __future__ import annotations

import io
import os
import shutil
import socket
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.command_line import Trace
from trace_cli.main import main
from trace_cli.runtime import Invocation
from trace_store import Repo
from trace_store.base.environment import Environment
from trace_store.objects.codec import encode_blob

OLD = 1_000_000_000
COMMANDS: tuple[tuple[str, ...], ...] = (
    ("status",),
    ("log",),
    ("rev-parse", "HEAD"),
    ("cat-file", "-p", "HEAD"),
    ("compile", "--table"),
    ("commit", "-q", "--user", "more"),
    ("hash-object", "-w", "../loose"),
    ("update-ref", "refs/heads/a/b", "HEAD"),
    ("update-ref", "-d", "refs/heads/x/y"),
    ("commit", "--user", "more still"),
    ("seal",),
    ("pack",),
    ("compile-index", "--rebuild"),
    ("fsck",),
    ("config", "budget", "9"),
)
FOLDERS = (
    *(
        "objects",
        "objects/pack",
        "objects/{loose}",
        "refs",
        "refs/heads",
        "refs/heads/x",
        "refs/tags",
    ),
    *("journal", "logs", "logs/refs", "logs/refs/heads", "logs/refs/heads/x", "index", "cache"),
    *("cache/tokens", "tmp", "locks", "local", "quarantine", "lost-found"),
)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository that has every folder, each with something old in it."""
    folder = tmp_path_factory.mktemp("template") / "project"

    def run(*words: str) -> None:
        surroundings = Invocation(
            environment=Environment(author="x", discovery=False),
            output=io.BytesIO(),
            error=io.BytesIO(),
            terminal=False,
        )
        assert main(["--dir", str(folder / ".trace"), *words], surroundings) == 0

    repo = Repo.init(str(folder), environment=Environment(author="x"))
    for text in ("one", "two"):
        repo.append("user", text)
    repo.store.objects.write(encode_blob(b"loose"))
    repo.close()
    run("update-ref", "refs/heads/x/y", "HEAD")
    run("update-ref", "refs/tags/v1", "HEAD")
    run("symbolic-ref", "HEAD", "refs/heads/main")
    run("status")
    run("seal")
    run("commit", "-q", "--user", "in the journal")
    for name in ("tmp", "locks", "quarantine", "lost-found"):
        path = folder / ".trace" / name
        path.mkdir(exist_ok=True)
        (path / "old").write_bytes(b"old")
        os.utime(path / "old", (OLD, OLD))
    return folder


@pytest.fixture
def place(template: Path, tmp_path: Path, trace: Trace) -> Path:
    """A copy of it, which is the current folder."""
    shutil.copytree(template, tmp_path / "project", symlinks=True)
    (tmp_path / "loose").write_bytes(b"another loose one" * 100)
    os.chdir(tmp_path / "project")
    return tmp_path / "project"


def state(folder: Path) -> dict[str, object]:
    """Everything there is below a folder, with content, mode and times."""
    found: dict[str, object] = {}
    for path in sorted(folder.rglob("*")):
        seen = path.lstat()
        content = path.read_bytes() if stat.S_ISREG(seen.st_mode) else b""
        found[path.relative_to(folder).as_posix()] = (seen.st_mode, seen.st_mtime_ns, content)
    return found


def loose_folder(root: Path) -> str:
    return next(p.name for p in sorted((root / "objects").iterdir()) if len(p.name) == 2)


@pytest.mark.parametrize("moved", [True, False], ids=["its own content", "a stranger's folder"])
@pytest.mark.parametrize("name", FOLDERS)
def test_a_folder_that_is_a_link(
    place: Path, tmp_path: Path, trace: Trace, name: str, moved: bool
) -> None:
    root = place / ".trace"
    path = root / name.format(loose=loose_folder(root))
    outside = tmp_path / "outside"
    if path.exists():
        shutil.move(path, outside) if moved else shutil.rmtree(path)
    elif moved:
        pytest.skip("there is none")
    if not moved:
        outside.mkdir()
        (outside / "precious").write_bytes(b"precious")
        (outside / ("ab" * 32)).write_bytes(b"")
        for file in outside.iterdir():
            os.utime(file, (OLD, OLD))
    path.symlink_to(outside)
    before = state(outside)
    for words in COMMANDS:
        outcome = trace(*words)
        assert outcome.code in (0, 2, 4, 6, 10, 12, 14), (words, outcome)
        assert "Traceback" not in outcome.err
        assert state(outside) == before, (words, outcome)
        assert path.is_symlink()


SHORT = (
    *(("status",), ("log",), ("commit", "-q", "--user", "more")),
    *(("commit", "--user", "more still"), ("pack",), ("fsck",)),
)
FILES = {
    "settings": "config",
    "HEAD": "HEAD",
    "rules for git": ".gitattributes",
    "a pack": "objects/pack/*.pack",
    "its index": "objects/pack/*.idx",
    "a loose object": "objects/??/*",
    "a tip": "refs/heads/main/*",
    "the live journal": "journal/[0-9]*",
    "HEAD's reflog": "logs/HEAD.log",
    "a reflog": "logs/refs/heads/main.log",
    "the compile index": "index/*.messages",
    "token counts": "cache/tokens/*",
    "what is published": "local/published",
    "a lock": "locks/*",
    "a scratch file": "tmp/old",
}


def as_link(path: Path, outside: Path) -> None:
    shutil.move(path, outside)
    path.symlink_to(outside)


def as_dangling_link(path: Path, outside: Path) -> None:
    path.unlink()
    path.symlink_to(outside.with_name("not-there"))


def as_pipe(path: Path, outside: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def as_socket(path: Path, outside: Path) -> None:
    path.unlink()
    here = os.getcwd()
    os.chdir(path.parent)  # the name of a socket is short
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(path.name[:90])
        os.rename(path.name[:90], path.name)
    os.chdir(here)


def as_directory(path: Path, outside: Path) -> None:
    path.unlink()
    path.mkdir()
    (path / "precious").write_bytes(b"precious")


def as_device(path: Path, outside: Path) -> None:
    path.unlink()
    os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 5))  # /dev/zero, which never ends


def as_another_name(path: Path, outside: Path) -> None:
    outside.write_bytes(b"precious\n" * 9)
    path.unlink()
    os.link(outside, path)


KINDS = (
    *(as_link, as_dangling_link, as_pipe, as_socket, as_directory, as_device),
    as_another_name,
)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("pattern", FILES.values(), ids=FILES)
@pytest.mark.timeout(30)
def test_a_file_that_is_none(
    place: Path, tmp_path: Path, trace: Trace, pattern: str, kind: Callable[[Path, Path], None]
) -> None:
    if kind is as_device and os.geteuid() != 0:
        pytest.skip("only root makes devices")
    root = place / ".trace"
    path = sorted(each for each in root.glob(pattern) if each.is_file())[-1]
    outside = tmp_path / "outside"
    outside.mkdir()
    kind(path, outside / "file")
    before = state(outside)
    for words in SHORT:
        outcome = trace(*words)
        assert outcome.code in (0, 4, 6, 10, 12, 14), (words, outcome)
        assert state(outside) == before, (words, outcome)
        assert not os.path.lexists(outside / "not-there")
        if kind is as_directory and path.is_dir():
            assert (path / "precious").read_bytes() == b"precious"

"""The example repository: rebuilt with the same bytes, readable by every version."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import tomllib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.format.support.independent_reader import loose_object, read_pack
from trace_store.base.environment import Environment
from trace_store.context.compiler import ContextCompiler
from trace_store.disk.files import Disk
from trace_store.errors import RepositoryNotFoundError
from trace_store.maintenance.fsck import fsck
from trace_store.odb import loose, pack_writer
from trace_store.odb.compression import Dictionary, compress
from trace_store.odb.pack import Pack
from trace_store.odb.pack_index import build_index
from trace_store.providers.rendering import FAULTS
from trace_store.repo.repository import Repo
from trace_store.store.discovery import find
from trace_store.store.store import Store

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / ".trace-example"
LISTED = (Path(__file__).parent / "example-files.txt").read_text(encoding="utf-8").splitlines()
BY_HAND = "README.md"

SHOWN = [
    ("system", "You keep a small Python project in order. Read before you write."),
    ("user", "[removed: Is there, 6 tokens, bc3b9295.0]"),
    ("user", "The build is red. What is wrong?"),
    ("user", "It is called with [] by reports.py."),
    ("assistant", "mean.py divides by len(values). Of an empty list that is ZeroDivisionError."),
    ("assistant", "mean([]) divides by zero. Shall it raise ValueError, or return 0.0?"),
    ("user", "Return 0.0."),
    ("user", "These are the tests.\nfrom mean import mean"),
    ("user", "The last one fails."),
    ("assistant", "Release notes\n\nmean() of an empty list gives 0.0."),
]


def names(folder: Path) -> list[str]:
    """Return the files below a folder, relative to it, sorted."""
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())


def contents(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in names(folder)}


def is_pack(name: str) -> bool:
    return name.startswith(("objects/pack/", "local/packs/"))


def is_loose(name: str) -> bool:
    return name.startswith("objects/") and not is_pack(name)


def git(*words: str) -> str:
    run = subprocess.run(
        ["git", *words],
        cwd=ROOT,
        env={k: v for k, v in os.environ.items() if not k.startswith("GIT_")},
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    return run.stdout


@pytest.fixture(scope="module", params=["this compressor", "another compressor"])
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the example again, also with a zstd that compresses to other bytes."""
    spec = importlib.util.spec_from_file_location("make_example", ROOT / "tools/make_example.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    folder = tmp_path_factory.mktemp("example") / "made"
    with pytest.MonkeyPatch.context() as patch:
        if request.param != "this compressor":
            for writer in (pack_writer, loose):
                patch.setattr(writer, "compress", partial(compress_otherwise, compress))
        module.build(folder)
    return folder


def compress_otherwise(
    real: Callable[..., bytes], data: bytes, *, level: int, dictionary: Dictionary | None = None
) -> bytes:
    return real(data, level=level + 5, dictionary=dictionary)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    shutil.copytree(EXAMPLE, tmp_path / ".trace")
    return tmp_path / ".trace"


@pytest.fixture
def tracked() -> list[str]:
    """Return the example's files in git."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    try:
        top = git("rev-parse", "--show-toplevel").strip()
    except subprocess.CalledProcessError:
        pytest.skip("this copy of the project is not in git")
    if not os.path.samefile(top, ROOT):
        pytest.skip("this copy of the project lies in another git repository")
    return git("ls-files", "-z", EXAMPLE.name).rstrip("\0").split("\0")


# --- made again -------------------------------------------------------------------------------------------------------


def test_it_is_the_same_byte_for_byte(made: Path) -> None:
    wanted, found = contents(EXAMPLE), contents(made)
    del wanted[BY_HAND]
    for files in (wanted, found):
        for name in [name for name in files if is_pack(name)]:
            del files[name]  # compared below: how zstd compresses differs between its versions
        for name in [name for name in files if is_loose(name)]:
            files[name] = loose_object(files[name])
    assert sorted(found) == sorted(wanted)
    assert [name for name in wanted if found[name] != wanted[name]] == []


def test_its_packs_hold_the_same_frames_in_the_same_order(made: Path) -> None:
    def packs(folder: Path) -> list[tuple[tuple[int, int, int], list[tuple[int, bytes]]]]:
        read = [read_pack(p.read_bytes(), p.stem) for p in folder.glob("objects/pack/*.pack")]
        return sorted(
            (pack.numbers, [(frame.sort, frame.raw) for frame in pack.frames]) for pack in read
        )

    assert packs(made) == packs(EXAMPLE)
    assert len(packs(EXAMPLE)) == 2


@pytest.mark.parametrize("which", ["committed", "made"])
def test_an_index_is_what_its_pack_gives(which: str, made: Path) -> None:
    disk = Disk()
    for path in (EXAMPLE if which == "committed" else made).glob("objects/pack/*.pack"):
        descriptor = disk.open(str(path))
        assert descriptor is not None
        pack = Pack(disk, str(path), path.stem, descriptor)
        assert build_index(pack) == (path.with_suffix(".idx").read_bytes(), True)
        pack.close()


# --- in git -----------------------------------------------------------------------------------------------------------


def test_its_files_are_those_listed() -> None:
    assert names(EXAMPLE) == LISTED


def test_git_has_all_of_it_also_what_its_gitignore_names(tracked: list[str]) -> None:
    assert tracked == [f"{EXAMPLE.name}/{name}" for name in LISTED]


def test_git_leaves_its_bytes_alone(tracked: list[str]) -> None:
    said = git("check-attr", "-z", "text", "diff", "ident", "filter", "--", *tracked).split("\0")
    assert said[2::3] == ["unset"] * 4 * len(tracked)


def test_the_source_distribution_has_it() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert f"/{EXAMPLE.name}" in project["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]


def test_it_is_not_taken_for_the_repository_of_the_project(tmp_path: Path) -> None:
    shutil.copytree(EXAMPLE, tmp_path / EXAMPLE.name)
    for folder in (tmp_path, tmp_path / EXAMPLE.name, tmp_path / EXAMPLE.name / "refs"):
        with pytest.raises(RepositoryNotFoundError):
            find(str(folder), Environment(discovery=False))
    assert find(str(tmp_path), Environment(), explicit=str(tmp_path / EXAMPLE.name))


# --- read -------------------------------------------------------------------------------------------------------------


def checked(store: Store) -> Iterator[object]:
    yield from fsck(store)
    contexts = ContextCompiler(store)
    for name, _ in store.refs.iterate("refs/heads/"):
        assert contexts.index_view(name) is not None
        if not contexts.verify(name).matches:
            yield name


def test_fsck_finds_nothing(copy: Path) -> None:
    with Store.open(str(copy)) as store:
        assert list(checked(store)) == []


def test_it_compiles_to_what_is_shown(copy: Path) -> None:
    with Store.open(str(copy)) as store:
        context = ContextCompiler(store).compile("HEAD")
        assert [message.role for message in context] == [role for role, _ in SHOWN]
        for message, (_, text) in zip(context, SHOWN, strict=True):
            assert message.text.startswith(text)
        assert [message.position for message in context if message.ghost] == [1]
        assert [tool["name"] for tool in context.tools] == ["read_file", "run_tests"]
        session = ContextCompiler(store).compile("sessions/demo/1")
        assert [message.kind for message in session].count("tool_io") == 4


def test_every_provider_takes_both_branches_as_they_are(copy: Path) -> None:
    with Store.open(str(copy)) as store:
        for branch in ("main", "sessions/demo/1"):
            context = ContextCompiler(store).compile(branch)
            for provider in ("openai", "anthropic"):
                rendered = context.render(provider, strict=True)
                assert [each.code for each in rendered.repairs if each.code in FAULTS] == []
                sent = json.dumps(rendered.request)
                lines = [line for message in context for line in message.text.splitlines()]
                assert len(lines) > 9
                assert [line for line in lines if json.dumps(line)[1:-1] not in sent] == []


def test_looking_changes_nothing(copy: Path) -> None:
    before = contents(copy)
    with Store.open(str(copy)) as store:
        for oid in store.objects.iterate():
            store.objects.read(oid)
        list(checked(store))
        assert ContextCompiler(store).compile("HEAD").token_count > 0
    assert contents(copy) == before


def test_it_can_be_gone_on_with(copy: Path) -> None:
    with Repo.open(copy.parent, create=False) as repo:
        before = len(repo.compile())
        repo.append("user", "Thank you.")
        assert len(repo.compile()) == before + 1
    with Store.open(str(copy)) as store:
        assert not store.unsealed().transactions
        assert list(checked(store)) == []


def test_it_is_whole_without_what_is_derived_or_local(copy: Path) -> None:
    """A clone with only the files in git reads the same, except for unsealed content."""
    with Repo.open(copy.parent, create=False) as repo:
        wanted = [(message.role, message.text) for message in repo.compile()]
    for name in ("HEAD", "journal", "logs", "index", "cache", "tmp", "locks", "local"):
        path = copy / name
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    for path in copy.glob("objects/pack/*.idx"):
        path.unlink()
    with Store.open(str(copy)) as store:
        context = ContextCompiler(store).compile("HEAD")
        assert [(message.role, message.text) for message in context] == wanted
        assert list(fsck(store)) == []

"""Modules that the everyday commands import, which determine their start-up time (trap C38)."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.support.command_line import Trace
from tests.support.everyday import LEAN_PLUMBING, PLUMBING, PORCELAIN, WITH_JSON
from trace_store.store.store import Store
from trace_store.testing.disks import RecordingDisk

ROOT = Path(__file__).resolve().parents[2]
HEAVY = {
    *("asyncio", "backports.zstd", "compression.zstd", "dataclasses", "enum", "filelock", "httpx"),
    *("hyperscan", "inspect", "json", "logging", "pathlib", "pydantic", "re", "re2", "rich"),
    *("subprocess", "tempfile"),
    *("threading", "tiktoken", "tomllib", "typer", "typing"),
    *("trace_store.llm.contract", "trace_store.llm.http_model", "trace_store.llm.settings"),
    "trace_store.records",
}
"""Modules as expensive as a whole plumbing command, the model client, and the JSON of results."""
ALSO_PLUMBING = {"collections", "contextlib", "datetime", "functools", "msgpack"}
"""What plumbing that reads an object does without, too."""
OF_FAILURES = {"trace_store.errors.tree", "trace_cli.advice"}
"""What only a command that fails loads: a class costs as much as half a module, and of errors there are many."""
LITTLE = {
    "rev-parse {packed}": ("journal", "odb", "objects", "refs", "store.revision", "store.store"),
    "hash-object file": ("journal", "odb", "refs", "store.revision", "store.store"),
    "rev-parse HEAD": ("objects.commit", "odb.packs", "odb.loose", "refs.reflog"),
    "symbolic-ref HEAD": ("objects.commit", "odb.packs", "odb.loose", "refs.reflog"),
    "cat-file --raw {packed}": ("odb.loose", "refs", "store.revision"),
    "cat-file -t {loose}": ("objects.commit", "refs", "store.revision", "store.transactions"),
    "cat-file -p HEAD": ("odb.packs", "odb.loose", "refs.reflog", "store.transactions"),
    "for-each-ref": ("refs.reflog", "store.revision", "store.transactions", "store.unsealed"),
}
"""Which modules of Trace a command does without, each with those in it."""
MOST_MODULES = {
    "version": 14,
    "config": 58,
    "commit -q --no-seal": 83,
    "commit -q": 95,
    "log": 83,
    "status": 95,
    "compile": 89,
    "show": 88,
}
"""How many modules of Trace a command may load: each costs about 60 µs, half a per cent of a bare interpreter."""


def loaded_by(words: list[str], folder: Path, stdin: bytes = b"said by a hook") -> set[str]:
    """Name the modules that a command loads in a bare interpreter, without `site`."""
    paths = [str(ROOT), str(ROOT / "cli"), *{sysconfig.get_path(k) for k in ("purelib", "platlib")}]
    script = (
        f"import sys; sys.path += {paths!r}; before = set(sys.modules)\n"
        f"from trace_cli.main import main\n"
        f"code = main({words!r})\n"
        f"sys.stderr.write(' '.join(sorted(set(sys.modules) - before)))\n"
        f"sys.exit(code)\n"
    )
    run = subprocess.run(
        [sys.executable, "-I", "-S", "-c", script],
        capture_output=True,
        check=False,
        cwd=folder,
        input=stdin,
    )
    assert run.returncode == 0, run.stderr
    names = set(run.stderr.decode().split())
    return names | {name.split(".")[0] for name in names} - {"backports", "compression"}


@pytest.fixture
def folder(repository: Trace, tmp_path: Path) -> Path:
    (tmp_path / "file").write_bytes(b"content")
    assert repository("commit", "--user", "hello").code == 0
    assert repository("status").code == 0  # which counts its tokens
    return tmp_path


@pytest.fixture
def places(repository: Trace, folder: Path) -> dict[str, str]:
    """An object in a pack, one in a file of its own, and one in the journal."""
    packed = repository("rev-parse", "HEAD").out.decode().strip()
    loose = repository("hash-object", "-w", "file").out.decode().strip()
    assert repository("commit", "--no-seal", "--user", "not sealed yet").code == 0
    found = repository("rev-parse", "HEAD").out.decode().strip()
    return {"packed": packed, "loose": loose, "journal": found}


def named(words: list[str]) -> str:
    return "-".join(words[:3]).replace("/", "-").replace("{", "").replace("}", "")


@pytest.mark.parametrize("words", LEAN_PLUMBING, ids=named)
def test_c38_plumbing_loads_nothing_dear(
    words: list[str], folder: Path, places: dict[str, str]
) -> None:
    loaded = loaded_by([word.format(**places) for word in words], folder)
    assert not loaded & (HEAVY | ALSO_PLUMBING | OF_FAILURES)


@pytest.mark.parametrize("command", LITTLE)
def test_c38_plumbing_loads_little_of_trace(
    command: str, folder: Path, places: dict[str, str]
) -> None:
    loaded = loaded_by(command.format(**places).split(), folder)
    for name in LITTLE[command]:
        whole = f"trace_store.{name}"
        assert not [each for each in loaded if f"{each}.".startswith(f"{whole}.") and each != whole]
        assert whole not in loaded or name in ("objects", "odb", "refs", "journal")


@pytest.mark.parametrize("words", PLUMBING, ids=named)
def test_c38_other_plumbing_loads_nothing_dear(words: list[str], folder: Path) -> None:
    assert not loaded_by(words, folder) & (HEAVY | OF_FAILURES)


@pytest.mark.parametrize("words", PORCELAIN, ids=named)
def test_c38_what_people_type_every_day_loads_nothing_dear(words: list[str], folder: Path) -> None:
    assert not loaded_by(words, folder) & (HEAVY | ALSO_PLUMBING)


@pytest.mark.parametrize("words", WITH_JSON, ids=named)
def test_c38_what_needs_json_loads_neither_typer_nor_dataclasses(
    words: list[str], folder: Path
) -> None:
    heavy = HEAVY - {"enum", "json", "re", "trace_store.records", "typing"}
    assert not loaded_by(words, folder) & heavy


def test_c38_no_command_of_a_table_is_parsed_by_typer(folder: Path) -> None:
    for words in (["bundle", "create", "b"], ["repair", "-n"], ["export", "-f", "markdown"]):
        assert "typer" not in loaded_by(words, folder)


@pytest.mark.parametrize("command", MOST_MODULES)
def test_c38_few_modules_are_loaded(command: str, folder: Path) -> None:
    loaded = loaded_by(command.split(), folder)
    assert sum(name.startswith("trace_") for name in loaded) <= MOST_MODULES[command]


@pytest.mark.parametrize(
    "words",
    [
        ["rev-parse", "HEAD"],
        ["cat-file", "-p", "HEAD"],
        ["config"],
        ["status"],
        ["show"],
        ["branch"],
        ["commit", "-q", "--no-seal"],
        ["commit", "-q"],
    ],
    ids=" ".join,
)
def test_c38_small_standard_modules_are_left_out(words: list[str], folder: Path) -> None:
    """Each costs as much as one or two modules of Trace."""
    assert not loaded_by(words, folder) & {"bisect", "heapq", "operator"}


def test_c38_a_seal_that_compresses_loads_half_of_zstd(folder: Path) -> None:
    loaded = loaded_by(["commit", "--user", "x" * 5000], folder)
    assert not loaded & HEAVY
    assert loaded & {"backports.zstd._zstd", "_zstd"}


def test_c38_only_a_count_that_is_not_known_loads_the_tokenizer(folder: Path) -> None:
    assert "tiktoken" not in loaded_by(["status"], folder)
    assert "tiktoken" not in loaded_by(["log", "--tokens"], folder)
    assert "tiktoken" not in loaded_by(["commit", "-q"], folder)
    assert "tiktoken" not in loaded_by(["log"], folder)
    assert "tiktoken" not in loaded_by(["show"], folder)
    assert "tiktoken" in loaded_by(["status"], folder)
    assert "tiktoken" not in loaded_by(["status"], folder)


def test_c38_help_loads_only_what_it_lists(folder: Path) -> None:
    heavy = {"rich", "pydantic", "httpx", "tiktoken", "filelock", "asyncio", "openai", "anthropic"}
    assert not loaded_by(["--help"], folder) & (heavy | {"trace_store.repo", "msgpack"})


def test_a_process_that_ends_at_once_has_written_everything(folder: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'cli'}"}

    def run(*words: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        call = "import sys; from trace_cli.main import run; sys.exit(run())"
        command = [sys.executable, "-c", call, *words]
        return subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, check=False, input=stdin
        )

    assert run("cat-file", "-p", "HEAD").stdout.endswith(b"}\n")
    assert run("log", "nothing").returncode == 4
    assert b"error" in run("log", "nothing").stderr
    many = "HEAD\n" * 3000
    assert run("cat-file", "--batch-check", stdin=many.encode()).stdout.count(b"\n") == 3000


def test_a_hook_appends_at_the_same_cost_at_any_length(
    trace: Trace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What `trace commit --no-seal` opens, reads and writes, with a reader that holds everything open."""

    def cost(history: int) -> dict[str, int]:
        folder = tmp_path / str(history)
        folder.mkdir()
        monkeypatch.chdir(folder)
        assert trace("init", "-q").code == 0
        lines = b'{"role": "user", "content": "said before"}\n' * history
        assert trace("commit", "--jsonl", stdin=lines).code == 0
        assert trace("commit", "--no-seal", "-q", stdin=b"the first of a new journal").code == 0
        disk = RecordingDisk()
        with monkeypatch.context() as patch:
            patch.setattr("trace_store.store.store.Disk", lambda: disk)
            with Store.open(str(folder / ".trace")) as reader:
                assert reader.refs.head().oid is not None
                assert trace("commit", "--no-seal", "-q", stdin=b"said by a hook").code == 0
        return {name: disk.counts()[name] for name in ("synced", "opened", "read_bytes")}

    few, many = cost(10), cost(2000)
    assert abs(few.pop("read_bytes") - many.pop("read_bytes")) < 64  # longer numbers
    assert few == many
    assert many["synced"] == 1

"""Run LangGraph's own tests of graphs over Trace's checkpoint saver: `nox -s langgraph`.

The tests are in the source distribution of langgraph, which pip downloads. Its fixtures for SQLite are replaced by ones
that open a repository; so what the tests call `sqlite`, `sqlite_aes` (encrypted) and `sqlite_aio` is Trace here. Tests
of other savers, and those that need a server, are left out.

    python -m tools.langgraph_tests FOLDER [VERSION] [-- PYTEST ARGUMENTS]
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tools.source_distribution import unpack

VERSION = "1.2.24"
CHOICE = "sqlite and not redis"
FIXTURES = """

import tempfile

from trace_store import Repo
from trace_store.integrations.langgraph import TraceSaver


@contextmanager
def _trace_saver(serde=None):
    with tempfile.TemporaryDirectory() as folder, Repo.init(folder, durability="fast") as repo:
        saver = TraceSaver(repo, serde=serde)
        _apply_strict_msgpack(saver)
        yield saver


@contextmanager
def _checkpointer_sqlite():
    with _trace_saver() as saver:
        yield saver


@contextmanager
def _checkpointer_sqlite_aes():
    serde = EncryptedSerializer.from_pycryptodome_aes(key=b"1234567890123456")
    with _trace_saver(serde) as saver:
        yield saver


@asynccontextmanager
async def _checkpointer_sqlite_aio():
    with _trace_saver() as saver:
        yield saver
"""


def main(arguments: list[str]) -> int:
    """Download and unpack the source distribution, replace the fixtures, and run the tests; return pytest's code."""
    own, _, rest = " ".join(arguments).partition(" -- ")
    folder, *versions = own.split()
    root = unpack(Path(folder), "langgraph", versions[0] if versions else VERSION)
    fixtures = root / "tests" / "conftest_checkpointer.py"
    text = fixtures.read_text(encoding="utf-8")
    if FIXTURES not in text:
        fixtures.write_text(text + FIXTURES, encoding="utf-8")
    files = [
        path.relative_to(root).as_posix()
        for path in sorted((root / "tests").glob("test_*.py"))
        if "sync_checkpointer" in path.read_text(encoding="utf-8")
    ]
    command = [sys.executable, "-m", "pytest", *files, "-k", CHOICE, "-o", "addopts=", "-q"]
    environment = {**os.environ, "NO_DOCKER": "true"}
    return subprocess.run([*command, *rest.split()], cwd=root, env=environment).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

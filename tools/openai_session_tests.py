"""Run the own tests of the OpenAI Agents SDK over Trace's session: `nox -s openai_session`.

The tests are in the source distribution of openai-agents, which pip downloads. A plugin of pytest puts Trace's session
in the place of `agents.SQLiteSession`, so each test that opens one gets Trace's. Left out are tests of how SQLite's
connections, locks and damaged rows are handled.

    python -m tools.openai_session_tests FOLDER [VERSION] [-- PYTEST ARGUMENTS]
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tools.source_distribution import unpack

VERSION = "0.24.0"
FOLDERS = ("tests/memory", "tests")
CHOICE = "(session or history or compaction) and not (sqlite_session and ({}))"
ABOUT_SQLITE = ("connection", "corrupt", "closed_rejects", "file_lock", "_failed_", "post_commit")
PLUGIN = '''
import os
import tempfile

import agents

from trace_store import Repo
from trace_store.integrations.openai_session import TraceSession

REPOSITORIES = {}


def repository(folder):
    if folder not in REPOSITORIES:
        os.makedirs(folder, exist_ok=True)
        REPOSITORIES[folder] = Repo.open_or_init(folder, durability="fast")
    return REPOSITORIES[folder]


class SQLiteSession(TraceSession):
    def __init__(self, session_id, db_path=":memory:", session_settings=None):
        in_memory = str(db_path) == ":memory:"
        folder = tempfile.mkdtemp() if in_memory else os.path.abspath(db_path) + ".trace-repository"
        super().__init__(session_id, repository(folder), session_settings=session_settings)

    def close(self):
        """The repository stays open for other sessions."""


agents.SQLiteSession = SQLiteSession
'''


def main(arguments: list[str]) -> int:
    """Download and unpack the source distribution, add the plugin, run the tests, and return pytest's code."""
    own, _, rest = " ".join(arguments).partition(" -- ")
    folder, *versions = own.split()
    root = unpack(Path(folder).resolve(), "openai-agents", versions[0] if versions else VERSION)
    (root / "trace_session_plugin.py").write_text(PLUGIN, encoding="utf-8")
    files = [
        path.relative_to(root).as_posix()
        for each in FOLDERS
        for path in sorted((root / each).glob("test_*.py"))
        if "SQLiteSession" in path.read_text(encoding="utf-8") or each != "tests"
    ]
    command = [sys.executable, "-m", "pytest", "-p", "trace_session_plugin", "-o", "addopts="]
    command += ["-q", "-k", CHOICE.format(" or ".join(ABOUT_SQLITE)), *files, *rest.split()]
    path = os.pathsep.join(filter(None, [str(root), os.environ.get("PYTHONPATH")]))
    return subprocess.run(command, cwd=root, env={**os.environ, "PYTHONPATH": path}).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Importing, exporting and bundles."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import trace_store
from tests.growth.conftest import Growth, messages
from tests.growth.support.stores import Place
from trace_store.capture.spool import WorkerLock
from trace_store.history import status

SAMPLE = Path(trace_store.__file__).parent / "samples" / "claude-code.jsonl"
FILE = "session.jsonl"


SESSION = "sessions/claude-code/89c670d1-13e6-5e56-a540-26baed822c05"


def has_session(place: Place, _: object) -> bool:
    """Return True if the session is imported to its end."""
    return place.repo.compile(SESSION).messages[-1].text.startswith("All three tests pass.")


def begun(place: Place) -> None:
    """Let the first half of a session be imported."""
    lines = SAMPLE.read_bytes().splitlines(keepends=True)
    (place.folder / FILE).write_bytes(b"".join(lines[: len(lines) // 2]))
    place.trace("import", "-q", FILE)


def imported(place: Place) -> None:
    """Let a session be imported."""
    (place.folder / FILE).write_bytes(SAMPLE.read_bytes())
    place.trace("import", "-q", FILE)


def test_import(growth: Growth) -> None:
    growth.check(imported, right=has_session)


def test_import_again(growth: Growth) -> None:
    growth.check(
        lambda place: place.trace("import", "-q", FILE), before=imported, right=has_session
    )


def test_import_grown(growth: Growth) -> None:
    growth.check(imported, before=begun, right=has_session)


def grown(place: Place) -> None:
    """Let a session grow after an import."""
    begun(place)
    (place.folder / FILE).write_bytes(SAMPLE.read_bytes())


def note(place: Place) -> None:
    """Let the hook of an agent note that, while a worker seems to run."""
    given = {"transcript_path": str(place.folder / FILE), "cwd": str(place.folder)}
    lock = WorkerLock(place.repo.store.disk, place.repo.store.layout)
    assert lock.take()
    place.trace("hook", "claude-code", stdin=json.dumps(given).encode())
    lock.release()


def noted(place: Place) -> None:
    grown(place)
    note(place)


def test_agent_hook(growth: Growth) -> None:
    growth.check(
        note, before=grown, right=lambda place, _: (place.folder / ".trace/local/spool").exists()
    )


def test_hooks_run(growth: Growth) -> None:
    growth.check(lambda place: place.trace("hooks", "run", "-q"), before=noted, right=has_session)


def test_export(growth: Growth) -> None:
    growth.check(
        lambda place: place.trace("export", "--format", "markdown"),
        right=lambda place, said: (
            said.count("\n## ") >= messages(place) and said.endswith("turn 11\n")
        ),
    )


def test_export_native(growth: Growth) -> None:
    growth.check(
        lambda place: place.trace("export", "--native", SESSION),
        before=imported,
        right=lambda _, said: said.encode() == SAMPLE.read_bytes(),
    )


def test_bundle_create(growth: Growth) -> None:
    growth.check(
        lambda place: place.trace("bundle", "create", "-q", "--level", "1", "a.bundle", "main")
    )


def bundled(place: Place) -> None:
    """Let there be a bundle of `main`."""
    place.trace("bundle", "create", "-q", "--level", "1", "a.bundle", "main")


def test_bundle_create_of_what_is_new(growth: Growth) -> None:
    growth.check(
        lambda place: place.trace("bundle", "create", "-q", "a.bundle", "--since", "HEAD~3", "main")
    )


def test_bundle_verify(growth: Growth) -> None:
    growth.check(
        lambda place: place.trace("bundle", "verify", "a.bundle"),
        before=bundled,
        right=r"^a\.bundle: sound, 1 ref, ",
    )


def test_bundle_list(growth: Growth) -> None:
    growth.check(
        lambda place: place.trace("bundle", "list", "a.bundle"),
        before=bundled,
        right=r"^[0-9a-f]{64} refs/heads/main\n$",
    )


def test_bundle_import(growth: Growth) -> None:
    growth.check(lambda place: place.trace("bundle", "import", "-q", "a.bundle"), before=bundled)


def test_repair(growth: Growth) -> None:
    growth.check(lambda place: place.trace("repair", "--dry-run"))


def cloned(place: Place) -> None:
    """Remove what git does not carry, as in a new clone, and run a first command."""
    place.close()
    for name in ("cache", "HEAD", "index", "journal", "local", "locks", "logs", "tmp"):
        path = place.folder / ".trace" / name
        if path.is_dir():
            shutil.rmtree(path)
    place.trace("log", "-n", "1")
    place.trace("status")


@pytest.mark.parametrize("words", [["status"], ["log", "-n", "5"], ["show"]])
def test_reading_a_clone(growth: Growth, words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status, "MOST_DATED_BRANCHES", 4)
    growth.check(lambda place: place.trace(*words), before=cloned)

"""A long session costs no more I/O than a short one."""

from __future__ import annotations

from pathlib import Path

from trace_store import Message, Repo
from trace_store.sessions.session import Session
from trace_store.store.store import Store
from trace_store.testing.disks import RecordingDisk

WORDS = "The harbour was built in stages, and each stage has a report of its own. " * 4


def long_session(folder: Path, turns: int) -> tuple[RecordingDisk, Repo, Session]:
    disk = RecordingDisk()
    store = Store.init(str(folder), durability="fast", disk=disk)
    repo = Repo(store, author="ada")
    session = repo.sessions.start("dev", name="one", limit=6_000, reply=500)
    for turn in range(turns):
        request = session.request(f"{turn}. {WORDS}")
        usage = {"input_tokens": request.estimated + 500, "output_tokens": 5}
        session.add(Message("assistant", WORDS), usage=usage, request=request)
    return disk, repo, session


def cost(disk: RecordingDisk, verb: object) -> dict[str, int]:
    assert callable(verb)
    verb()  # what is cached once
    disk.reset()
    verb()
    return disk.counts()


def test_a_compaction_records_what_is_new_in_it(tmp_path: Path) -> None:
    """Its summary is written from all originals, but the commit does not list them again."""
    sizes = []
    for turns in (60, 180):
        _, repo, session = long_session(tmp_path / str(turns), turns)
        newest = session.history()[0].commit
        sizes.append(len(repo.store.objects.read(newest)))
        repo.close()
    short, long = sizes
    assert long <= 1.5 * short


def test_each_verb_costs_the_same_in_a_longer_session(tmp_path: Path) -> None:
    found = []
    for turns in (60, 240):
        disk, repo, session = long_session(tmp_path / str(turns), turns)
        verbs = {
            "add": lambda s=session: s.add(
                Message("user", "And this?"), Message("assistant", "Yes.")
            ),
            "request": lambda s=session: s.request(),
            "preview": lambda s=session: s.preview("More."),
            "summary": lambda s=session: s.summary,
        }
        session.add(Message("user", "Go on."))
        found.append({name: cost(disk, verb) for name, verb in verbs.items()})
        assert len(session.messages()) < 100 < len(session.history()) * 100
        repo.close()
    short, long = found
    for name in short:
        assert long[name]["calls"] <= short[name]["calls"] + 40, name
        assert long[name]["read_bytes"] <= short[name]["read_bytes"] * 2 + 10_000, name
        assert long[name]["written_bytes"] <= short[name]["written_bytes"] * 2 + 10_000, name

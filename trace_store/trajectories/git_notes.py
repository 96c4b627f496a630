"""Git notes with the decisions behind a commit.

The notes are in `refs/notes/trajectories`. A note has a section for each trajectory, between two comment lines. Other
text in the note stays.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from trace_store import errors
from trace_store.base.frozen import value
from trace_store.objects.address import Address
from trace_store.trajectories import events as ev
from trace_store.trajectories.claims import claims, linked_changes
from trace_store.trajectories.events import Event
from trace_store.trajectories.git import Git
from trace_store.trajectories.reading import Trajectory

NOTES_REF = "refs/notes/trajectories"
_BEGIN, _END = "<!-- trajectory {id} -->", "<!-- end of trajectory {id} -->"


@value
class NotesReport:
    """The result of writing notes.

    Attributes:
        written: the commits whose notes changed.
        missing: the linked commits that are not in this repository.
    """

    written: tuple[str, ...]
    missing: tuple[str, ...]


def write_notes(git: Git, trajectory: Trajectory, *, remove: bool = False) -> NotesReport:
    """Write a trajectory's decisions to notes on its linked commits, or remove them; others' notes stay.

    Raises:
        StateError: the folder is not in a git repository, or git is not installed.
        InvalidInputError: git fails, for example because it does not know the user's name.
    """
    written: list[str] = []
    missing: list[str] = []
    changes = linked_changes(trajectory)
    claimed = claims(trajectory, changes)
    decisions: dict[str, dict[Address, Event]] = {
        link.commit: {} for link in trajectory.of_type(ev.LINKED) if link.commit
    }
    doubtful: set[Address] = set()
    for change in changes:
        if change.link is not None and change.link.commit:
            known = decisions[change.link.commit]
            known.update((event.id, event) for event in claimed.get(change.key, ()))
            doubtful.update(e.id for e in claimed.get(change.key, ()) if change.is_doubtful(e))
    for commit, found in decisions.items():
        if not git.resolve(commit):
            missing.append(commit)
            continue
        before = git.try_to_ask("notes", f"--ref={NOTES_REF}", "show", commit)
        section = "" if remove else _section(trajectory, found.values(), doubtful)
        after = _with_section(before, trajectory.id, section)
        if after.strip() == before.strip():
            continue
        if after.strip():
            words = ("add", "--force", "--file=-", commit)
            git.ask("notes", f"--ref={NOTES_REF}", *words, text=after)
        else:
            git.ask("notes", f"--ref={NOTES_REF}", "remove", commit)
        written.append(commit)
    return NotesReport(tuple(written), tuple(missing))


def _with_section(note: str, id: str, section: str) -> str:
    """Return a note with a trajectory's section added or replaced; "" removes the section."""
    begin, end = _BEGIN.format(id=id), _END.format(id=id)
    before, found, rest = note.partition(begin)
    if found:
        _, ended, after = rest.partition(end)
        if not ended:
            raise errors.InvalidInputError(f"a note on a commit has {begin!r} without its end")
    else:
        after = ""
    ours = f"{begin}\n{section}\n{end}" if section else ""
    pieces = (before.strip("\n"), ours, after.strip("\n"))
    return "\n\n".join(piece for piece in pieces if piece) + "\n"


def _section(
    trajectory: Trajectory, decisions: Collection[Event], doubtful: Collection[Address]
) -> str:
    lines = [f"**{_line(trajectory.state.title)}** (`{trajectory.id}`)", ""]
    for event in sorted(decisions, key=lambda event: (event.id in doubtful, event.time)):
        lines += _decision(event, " (perhaps about an earlier commit)" * (event.id in doubtful))
    return "\n".join(lines).rstrip("\n")


def _decision(event: Event, mark: str) -> Sequence[str]:
    asked = f"{_line(event.question)} " if event.question else ""
    lines = [f"- {asked}**{_line(event.content)}**{mark}"]
    lines += [f"  {_line(event.reasoning)}"] if event.reasoning else []
    for each in event.alternatives:
        reason = f": {_line(each.reason)}" if each.reason else ""
        lines.append(f"  - not {_line(each.option)}{reason}")
    return lines


def _line(text: str) -> str:
    """Return text on one line, without control characters and comment marks."""
    shown = "".join(c if c.isprintable() else " " for c in text)
    return " ".join(shown.replace("<!--", "< !--").split())

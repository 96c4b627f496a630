"""Trajectories for readers: `repo.trajectories.exports`.

Invariant: no export has secrets. They are redacted on export, even if the repository may store them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from trace_store import errors, trajectories
from trace_store.base import check
from trace_store.base.environment import Environment
from trace_store.base.frozen import replace, value
from trace_store.disk.files import Disk, read_file
from trace_store.exporters.contract import Exported, Loss
from trace_store.exporters.files import save_file
from trace_store.exporters.overview import pretty
from trace_store.secrets import REDACT
from trace_store.secrets.guard import Guard
from trace_store.store.store import Store
from trace_store.trajectories import events as ev
from trace_store.trajectories.events import Event
from trace_store.trajectories.git import Git
from trace_store.trajectories.reading import (
    SessionMessage,
    Trajectory,
    list_trajectories,
    read_trajectory,
    session_messages,
)
from trace_store.trajectories.state import State
from trace_store.trajectories.views import markdown
from trace_store.trajectories.views.page import page_html, timeline_html
from trace_store.trajectories.views.pull_request import pull_request
from trace_store.trajectories.views.timeline import timeline_lines, timeline_text
from trace_store.trajectories.views.view import View

Path = str | os.PathLike[str]

WRITTEN, UNCHANGED = "written", "unchanged"
PULL_REQUEST, TRAIL, AGENT_TRACE = "pr", "trail", "agent-trace"


@value
class ExportFormat:
    """A format that trajectories are exported to.

    Attributes:
        ending: the end of a suggested file name.
        write: returns the text of a trajectory.
    """

    ending: str
    write: Callable[[View], str]


FORMS = {
    "page": ExportFormat(".html", lambda view: page_html(view)),
    "markdown": ExportFormat(".md", lambda view: markdown.page_markdown(view)),
    "timeline": ExportFormat("-timeline.txt", lambda view: timeline_text(view)),
    "timeline-html": ExportFormat("-timeline.html", lambda view: timeline_html(view)),
    PULL_REQUEST: ExportFormat("-pr.md", lambda view: pull_request(view)),
}
"""Forms for readers."""
DATA_FORMS = {
    TRAIL: ExportFormat(".json", lambda view: _json(trajectories.trail.render(view.trajectory))),
    AGENT_TRACE: ExportFormat(".trace.json", lambda view: _json(_attribution(view))),
}
"""Forms for programs."""
SYNONYMS = {"html": "page", "json": TRAIL}


@value
class SavedFolder:
    """A trajectory that was written to a folder.

    Attributes:
        path: absolute path of the folder.
        files: the paths of the files, relative to it.
        size: total size of the files in bytes.
    """

    path: str
    files: tuple[str, ...]
    size: int


@value
class MirroredFile:
    """A Markdown file with the decisions of a trajectory.

    Attributes:
        trajectory: the id of the trajectory.
        path: absolute path of the file.
        action: `written`, or `unchanged` if the file had the same content.
    """

    trajectory: str
    path: str
    action: str


class Exports:
    """Pages, timelines and other texts of trajectories."""

    def __init__(
        self, store: Store, environment: Environment, find: Callable[[str], State]
    ) -> None:
        """Create it; `find` returns the state of the named or the current trajectory."""
        self._store = store
        self._find = find
        self._guard = Guard.of(store, environment, REDACT)

    def view(self, trajectory: str = "", *, thinking: bool = False, sessions: bool = False) -> View:
        """Return the view of a trajectory that is exported: no secrets; thinking and sessions only if asked for.

        Raises:
            As `Trajectories.read`.
        """
        whole = read_trajectory(self._store, self._find(trajectory).id)
        messages: tuple[tuple[SessionMessage, ...], ...] = ()
        if thinking or sessions:
            shown = {"lines": sessions, "thinking": thinking}
            chapters = whole.chapters
            messages = tuple(tuple(session_messages(self._store, c, **shown)) for c in chapters)
        view = View(whole, messages)
        return _redacted(view if thinking else view.without_thinking(), self._guard)

    def export(
        self,
        form: str = "markdown",
        trajectory: str = "",
        *,
        thinking: bool = False,
        sessions: bool = False,
        since: str = "",
        folder: str = ".",
    ) -> Exported:
        """Return a trajectory as a file for readers.

        Args:
            form: `page`, `markdown`, `timeline`, `timeline-html`, `pr` (the text of a pull request), `trail` (its JSON)
                or `agent-trace` (the record that was imported with it).
            trajectory: its id, or the beginning of it.
            thinking: whether to show the agents' thinking.
            sessions: whether to show the messages of the agents' sessions, each on a line.
            since: with `pr`: a revision of the code; commits that it has are left out, with their decisions.
            folder: a folder in the git repository of the code, for `since`.

        Raises:
            InvalidInputError: there is no such form, or `since` is given with a form other than `pr`.
            RevisionNotFoundError: git knows no such revision.
            StateError: the folder is not in a git repository, or git is not installed; or as in `Trajectories.find`.
            RefNotFoundError: there is no such trajectory.
        """
        if since and form != PULL_REQUEST:
            raise errors.InvalidInputError("since requires the form pr", argument="since")
        new = _commits_since(folder, since) if since else None
        return export(self.view(trajectory, thinking=thinking, sessions=sessions), form, new)

    def timeline(
        self,
        trajectory: str = "",
        *,
        thinking: bool = False,
        width: int = 0,
        paint: Callable[[str, str], str] = lambda text, _: text,
    ) -> Sequence[str]:
        """Return the lines of a timeline for a terminal.

        Args:
            trajectory: its id, or the beginning of it.
            thinking: whether to show the agents' thinking.
            width: the columns of a line; 0: 100.
            paint: returns a text in a style: `bold`, `dim` or a colour.

        Raises:
            As `Trajectories.read`.
        """
        check.integer(0, 100_000, width=width)
        check.function(paint=paint)
        view = self.view(trajectory, thinking=thinking)
        return list(timeline_lines(view, width=width, paint=paint))

    def bundle(
        self, names: Sequence[str], *, thinking: bool = False, sessions: bool = False
    ) -> Exported:
        """Return several trajectories as one Markdown file; raises as `Trajectories.read`."""
        check.texts(names=names)
        if not names:
            raise errors.InvalidInputError("a bundle needs a trajectory", argument="names")
        views = [self.view(each, thinking=thinking, sessions=sessions) for each in names]
        shown = {view.trajectory.id: view for view in views}
        text = markdown.bundle(list(shown.values()))
        return _file(text, "trajectories.md")

    def save_folder(
        self,
        path: Path,
        trajectory: str = "",
        *,
        thinking: bool = False,
        sessions: bool = False,
        overwrite: bool = False,
    ) -> SavedFolder:
        """Write a trajectory to a folder: a page, a file for each chapter, and raw data.

        Raises:
            AlreadyExistsError: one of the files exists, and `overwrite` is not given; nothing is written.
            StorageError: the disk failed; files that were already written stay.
            As `Trajectories.read`.
        """
        check.path(path=path)
        check.flag(overwrite=overwrite)
        view = self.view(trajectory, thinking=thinking, sessions=sessions)
        files = [
            (os.path.join(*name.split("/")), text.encode("utf-8", "backslashreplace"))
            for name, text in markdown.folder_files(view, trajectories.trail.render)
        ]
        disk, top = Disk(), os.path.abspath(path)
        taken = [name for name, _ in files if disk.exists(os.path.join(top, name))]
        if taken and not overwrite:
            found = os.path.join(top, taken[0])
            raise errors.AlreadyExistsError(f"{found} already exists", path=found)
        for folder in dict.fromkeys(os.path.dirname(os.path.join(top, name)) for name, _ in files):
            disk.make_directory(folder)
        for name, data in files:
            saved = Exported(data, (), name)
            save_file(disk, os.path.join(top, name), saved, overwrite=overwrite)
        names, size = tuple(name for name, _ in files), sum(len(data) for _, data in files)
        return SavedFolder(top, names, size)

    def mirror(self, folder: Path) -> list[MirroredFile]:
        """Write each trajectory with decisions to a Markdown file in a folder, for searches and reviews.

        A file with the same content is left as it is, and other files stay.

        Raises:
            StorageError: the disk failed; files that were already written stay.
        """
        check.path(folder=folder)
        disk, top = Disk(), os.path.abspath(folder)
        found: list[MirroredFile] = []
        for state in sorted(list_trajectories(self._store), key=lambda each: each.id):
            if not state.count(ev.DECISION):
                continue
            made = self.export("markdown", state.id)
            path = os.path.join(top, f"{state.id.replace('/', '-')}.md")
            data = made.to_bytes()
            is_same = disk.exists(path) and read_file(disk, path) == data
            if not is_same:
                disk.make_directory(top)
                save_file(disk, path, made, overwrite=True)
            found.append(MirroredFile(state.id, path, UNCHANGED if is_same else WRITTEN))
        return found


def export(view: View, form: str, new: Collection[str] | None = None) -> Exported:
    """Return a trajectory in a form.

    Args:
        view: the trajectory.
        form: one of FORMS or DATA_FORMS.
        new: with `pr`: the commits to be merged; None: all.

    Raises:
        InvalidInputError: there is no such form.
    """
    check.text(form=form)
    known = FORMS | DATA_FORMS
    found = known.get(SYNONYMS.get(form, form))
    if found is None:
        names = ", ".join(known)
        raise errors.InvalidInputError(
            f"a trajectory has no form {form[:40]!r}: its forms are {names}", argument="form"
        )
    text = found.write(view)
    if form == PULL_REQUEST and new is not None:
        text = pull_request(view, new)
    lost = _losses(view) if found is DATA_FORMS[TRAIL] else ()
    return _file(text, f"{view.trajectory.id}{found.ending}", lost)


def _file(text: str, name: str, losses: tuple[Loss, ...] = ()) -> Exported:
    """Return a text as a file with a suggested name."""
    return Exported(text.encode("utf-8", "backslashreplace"), losses, name)


def _losses(view: View) -> tuple[Loss, ...]:
    thoughts = (Loss("thought", view.hidden_thoughts),) if view.hidden_thoughts else ()
    return (*trajectories.trail.losses(view.trajectory), *thoughts)


def _json(given: Mapping[str, Any]) -> str:
    return pretty(given) + "\n"


def _attribution(view: View) -> Mapping[str, Any]:
    found = trajectories.trail.attribution(view.trajectory)
    if found is None:
        raise errors.NotFoundError(f"{view.trajectory.id} has no record of Agent Trace")
    return found


def _commits_since(folder: str, revision: str) -> frozenset[str]:
    """Return the commits of HEAD that a revision of the code lacks."""
    git = Git(folder)
    known = git.resolve(revision)
    if not known:
        raise errors.RevisionNotFoundError(
            f"git knows no commit {revision[:80]!r}",
            code=errors.ErrorCode.CODE_NOT_FOUND,
            name=revision,
        )
    return frozenset(git.history(f"^{known}", "HEAD"))


def _redacted(view: View, guard: Guard) -> View:
    """Return a view with placeholders for secrets."""
    whole = view.trajectory
    stored = {
        "state": whole.state.as_map(),
        "events": [[each.agent, dict(each.data), [*each.versions]] for each in whole.events],
        "messages": [
            [[each.agent, each.line, each.thinking] for each in chapter]
            for chapter in view.messages
        ],
    }
    data = json.dumps(stored, ensure_ascii=False).encode("utf-8", "surrogatepass")
    kept, found = guard.screened(data, "the trajectory")
    if not found:
        return view
    clean: dict[str, Any] = json.loads(kept.decode("utf-8", "surrogatepass"))
    events = [
        _with_texts(event, *each) for event, each in zip(whole.events, clean["events"], strict=True)
    ]
    messages = tuple(
        tuple(
            SessionMessage(each.address, each.time, *texts)
            for each, texts in zip(chapter, redacted, strict=True)
        )
        for chapter, redacted in zip(view.messages, clean["messages"], strict=True)
    )
    return View(
        Trajectory(State.read(clean["state"]), tuple(events)), messages, view.hidden_thoughts
    )


def _with_texts(
    event: Event, agent: str, data: dict[str, Any], versions: list[dict[str, Any]]
) -> Event:
    content = str(data.get("content", ""))
    return replace(event, agent=agent, content=content, data=data, versions=tuple(versions))

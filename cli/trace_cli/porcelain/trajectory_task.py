"""`trace trajectory task` and `trace trajectory sync`: the tasks of trajectories."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from trace_cli.arguments import OPTIONAL, Argument, Option, takes
from trace_cli.porcelain.common import JSON, QUIET, finish, opened
from trace_cli.porcelain.trajectory import AGENT, FETCH
from trace_cli.render.escape import one_line, safe
from trace_cli.render.tables import LEFT, counted, date, table
from trace_cli.runtime import Invocation
from trace_store import errors
from trace_store.base.ident import known_time
from trace_store.trajectories import Task
from trace_store.trajectories.state import State
from trace_store.trajectories.tasks.systems import TaskRecord
from trace_store.trajectories.tasks.tasks import Followed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_cli.runtime import Results

WIDTH = 100
UNFETCHED = "not asked; --fetch asks its system"


@takes(
    Argument("ID", "trajectory", "The trajectory (default: the current one)", OPTIONAL),
    FETCH,
    JSON,
    QUIET,
)
def task(invocation: Invocation, *, trajectory: str | None, fetch: bool) -> Results:
    """Show the task of a trajectory.

    --fetch asks the task system again. If the title or the state of the task changed, an amendment is recorded.
    """
    found: TaskRecord | None = None
    changed = False
    with opened(invocation) as repo:
        state = repo.trajectories.find(trajectory or "")
        if fetch:
            looked_up = repo.trajectories.tasks.refresh(state)
            found, state, changed = looked_up.record, looked_up.state, looked_up.changed
            if changed:
                finish(invocation, repo)
    for note in found.notes if found else ():
        invocation.note(f"note: {one_line(note, 200)}")
    yield _record(state, found, changed=changed), _lines(invocation, state, found)


def _record(state: State, found: TaskRecord | None, *, changed: bool) -> dict[str, Any]:
    """Return the JSON of a task, with the answer of its system if that was asked."""
    task = state.task or Task(state.title)
    return {
        "trajectory": state.id,
        "system": task.system,
        "id": task.id,
        "title": task.title,
        "state": task.state or None,
        "url": task.url or None,
        "description": found.description if found else task.description,
        "updated": known_time(found.updated) if found else None,
        "assignee": (found and found.assignee) or None,
        "labels": found.labels if found else (),
        "fetched": found is not None,
        "changed": changed,
    }


def _lines(invocation: Invocation, state: State, found: TaskRecord | None) -> Iterator[str]:
    rows = [(name, text) for name, text in _facts(state, found) if text]
    yield from table(invocation, (), rows, LEFT * 2, [("dim", "")] * len(rows))
    if found and found.description:
        yield ""
        yield safe(found.description)


def _facts(state: State, found: TaskRecord | None) -> Iterator[tuple[str, str]]:
    kept = state.task
    yield "trajectory", f"{state.id} {one_line(state.title, 60)}"
    if kept is None:
        yield "task", "the trajectory is its own task"
        return
    yield "task", one_line(" ".join((kept.id, kept.title)).strip(), WIDTH)
    yield "system", safe(kept.system)
    yield "state", kept.state.replace("_", " ") or UNFETCHED
    yield "address", one_line(kept.url, 300)
    if found:
        yield "updated", date(found.updated)[:16] if found.updated else ""
        yield "assignee", one_line(found.assignee, WIDTH)
        yield "labels", one_line(", ".join(found.labels), WIDTH)


@takes(
    FETCH,
    Option("--apply", "apply", "Record the changes, instead of listing them"),
    AGENT,
    JSON,
    QUIET,
)
def sync(invocation: Invocation, *, fetch: bool, apply: bool, agent: str) -> Results:
    """Complete, abandon or reopen trajectories as their tasks changed.

    Only changes since the task system was last asked count. A done task completes its trajectory, a canceled one
    abandons it, and a reopened one reopens it. A task of beads in progress without a trajectory gets one. Without
    --fetch, only systems on this machine (beads) are asked. Without --apply, nothing is recorded.
    """
    with opened(invocation) as repo:
        found = repo.trajectories.tasks.sync(network=fetch, apply=apply, agent=agent)
        if any(each.applied for each in found):
            finish(invocation, repo)
    for each in found:
        yield each, _line(each)
    failed = [each.problem for each in found if each.problem is not None]
    if failed:
        raise errors.TaskError(
            f"{len(failed)} of {counted(len(found), 'task')} could not be followed: {failed[0].message}"
        )


def _line(followed: Followed) -> str:
    state, before, now = followed.state, followed.before, followed.now
    subject = f"{state.id} {one_line(before.id, 40)}".strip()
    if followed.problem is not None:
        return f"{subject}: {one_line(followed.problem.message, 200)}"
    if now is None:
        return f"{subject}: {UNFETCHED}"
    if not followed.action:
        return f"{subject}: {now.state}, as before"
    done = followed.action if followed.applied else f"to be {followed.action}"
    return f"{subject}: {now.state}, {done}: {one_line(now.title, 60)}"

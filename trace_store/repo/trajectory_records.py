"""The JSON shapes of trajectories, their links to code, hooks and git notes.

The rules are those of `records`.
"""

from __future__ import annotations

from trace_store.ident import known_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from trace_store.trajectories.capture import Captured
    from trace_store.trajectories.code import Reason
    from trace_store.trajectories.compact import Compacted
    from trace_store.trajectories.event_search import FoundEvent
    from trace_store.trajectories.events import Event
    from trace_store.trajectories.git_hooks import HookChange
    from trace_store.trajectories.git_notes import NotesReport
    from trace_store.trajectories.proposals import Proposal
    from trace_store.trajectories.reading import Chapter, SessionMessage, Trajectory
    from trace_store.trajectories.recording import Recorded
    from trace_store.trajectories.score import Score
    from trace_store.trajectories.state import State
    from trace_store.trajectories.tasks.handle import Followed
    from trace_store.trajectories.tasks.systems import TaskRecord
    from trace_store.trajectories.trail_import import TrailImport


def trajectory_state(state: State) -> dict[str, Any]:
    """Return a trajectory as a list shows it."""
    return {
        "id": state.id,
        "title": state.title,
        "description": state.description,
        "task": None if state.task is None else state.task.as_map(),
        "project": state.project,
        "tags": list(state.tags),
        "status": state.status,
        "started": known_time(state.started),
        "updated": known_time(state.updated),
        "branch": state.branch or None,
        "agents": [
            {
                "name": each.name,
                "role": each.role,
                "joined": known_time(each.joined),
                "left": known_time(each.left),
            }
            for each in state.agents
        ],
        "chapter": state.chapter or None,
        "counts": dict(state.counts),
        "confidence": state.confidence,
    }


def trajectory_task(
    state: State, found: TaskRecord | None = None, *, changed: bool = False
) -> dict[str, Any]:
    """Return the task of a trajectory, with the answer of its system if that was asked."""
    task = state.task
    return {
        "trajectory": state.id,
        "system": task.system if task else "",
        "id": task.id if task else "",
        "title": task.title if task else state.title,
        "state": (task and task.state) or None,
        "url": (task and task.url) or None,
        "description": found.description if found else task.description if task else "",
        "updated": known_time(found.updated) if found else None,
        "assignee": (found and found.assignee) or None,
        "labels": list(found.labels) if found else [],
        "fetched": found is not None,
        "changed": changed,
    }


def trajectory_followed(followed: Followed) -> dict[str, Any]:
    """Return the action that a trajectory needs to follow its task."""
    now = followed.now
    return {
        "trajectory": followed.state.id,
        "task": followed.before.id,
        "title": now.title if now else followed.before.title,
        "before": followed.before.state or None,
        "state": now.state if now else None,
        "action": followed.action or None,
        "applied": followed.applied,
        "problem": followed.problem.message if followed.problem else None,
    }


def trajectory_status(state: State, events: Sequence[Event]) -> dict[str, Any]:
    """Return a trajectory with its last events."""
    return {**trajectory_state(state), "last": [trajectory_event(each) for each in events]}


def trajectory_event(event: Event) -> dict[str, Any]:
    """Return an event, in its latest version."""
    return {
        "id": event.id.hex,
        "time": known_time(event.time),
        "agent": event.agent,
        "type": event.type,
        "content": event.content,
        "data": dict(event.data),
        "session": None if event.session is None else str(event.session),
        "versions": [dict(each) for each in event.versions],
    }


def found_event(found: FoundEvent) -> dict[str, Any]:
    """Return an event that a search found, in its latest version."""
    return {
        "trajectory": found.state.id,
        "title": found.state.title,
        **trajectory_event(found.event),
        "snippet": found.snippet.text,
        "start": found.snippet.start,
        "end": found.snippet.end,
    }


def recorded_event(made: Recorded) -> dict[str, Any]:
    """Return an event that was recorded, and the status of its trajectory after it."""
    state = made.state
    return {"trajectory": state.id, "status": state.status, **trajectory_event(made.event)}


def trajectory_score(score: Score) -> dict[str, Any]:
    """Return the completeness score of a trajectory."""
    return {
        "trajectory": score.trajectory.id,
        "points": score.points,
        "lacks": [
            {
                "kind": each.kind,
                "points": each.points,
                "text": each.text,
                "events": [event.id.hex for event in each.events],
            }
            for each in score.lacks
        ],
    }


def compacted(each: Compacted, how: str, *, applied: bool) -> dict[str, Any]:
    """Return how a trajectory was compacted, or would be."""
    return {
        "trajectory": each.state.id,
        "title": each.state.title,
        "status": each.state.status,
        "updated": known_time(each.state.updated),
        "action": how,
        "applied": applied,
        "events": each.event_count,
        "kept": each.kept_count,
    }


def trajectory_proposal(proposal: Proposal) -> dict[str, Any]:
    """Return a decision found in a message."""
    return proposal.as_map()


def captured(found: Captured) -> dict[str, Any]:
    """Return what a scan recorded."""
    return {
        "recorded": list(map(recorded_event, found.recorded)),
        "known": found.known,
        "bad": [
            {
                "address": None if each.address is None else each.address.hex,
                "number": each.number,
                "type": each.type,
                "reason": each.reason,
            }
            for each in found.bad
        ],
    }


def trajectory(
    whole: Trajectory, chapters: Sequence[tuple[Chapter, Sequence[SessionMessage]]]
) -> dict[str, Any]:
    """Return a trajectory, with the chapters and session messages to show."""
    last = whole.retrospective
    return {
        **trajectory_state(whole.state),
        "ended": None if whole.ended is None else known_time(whole.ended),
        "reason": whole.reason or None,
        "chapters": [
            {**_chapter(chapter), "messages": [_session_message(each) for each in messages]}
            for chapter, messages in chapters
        ],
        "retrospective": None if last is None else trajectory_event(last),
        "links": [trajectory_event(each) for each in whole.links],
        "files": whole.files,
    }


def imported_trajectories(report: TrailImport) -> dict[str, Any]:
    """Return the result of an import of trail's files."""
    return {
        "events": report.events,
        "files": [
            {
                "path": each.path,
                "outcome": each.outcome,
                "trajectory": each.trajectory or None,
                "events": each.events,
                "problems": list(each.problems),
                "error": None if each.error is None else each.error.message,
            }
            for each in report.files
        ],
    }


def _chapter(chapter: Chapter) -> dict[str, Any]:
    return {
        "title": chapter.title,
        "agent": chapter.agent,
        "started": known_time(chapter.started),
        "ended": None if chapter.ended is None else known_time(chapter.ended),
        "events": [trajectory_event(each) for each in chapter.events],
    }


def _session_message(message: SessionMessage) -> dict[str, Any]:
    return {
        "address": message.address.hex,
        "time": known_time(message.time),
        "agent": message.agent,
        "line": message.line,
        "thinking": message.thinking,
    }


def exported_trajectories(
    trajectories: Sequence[str], form: str, path: str | None, size: int, files: Sequence[str]
) -> dict[str, Any]:
    """Return the result of an export; `path` is None if no file was written."""
    return {
        "trajectories": list(trajectories),
        "format": form,
        "path": path,
        "size": size,
        "files": list(files),
    }


def trajectory_link(event: Event) -> dict[str, Any]:
    """Return a link from a trajectory to a commit of the code."""
    data = event.data
    return {
        "event": event.id.hex,
        "commit": event.commit,
        "patch_id": data.get("patch_id") or None,
        "subject": data.get("subject", ""),
        "files": data.get("files", []),
        "branch": data.get("branch") or None,
        "made": known_time(data.get("made", 0)),
    }


def reason(each: Reason) -> dict[str, Any]:
    """Return a trajectory behind a commit of the code."""
    return {
        "commit": each.commit.id,
        "subject": each.commit.subject,
        "made": known_time(each.commit.made),
        "how": each.how,
        "trajectory": each.trajectory.id,
        "title": each.trajectory.title,
        "status": each.trajectory.status,
        "chapter": each.chapter or None,
        "decisions": [
            {
                "event": basis.event.id.hex,
                "number": basis.number,
                "time": known_time(basis.event.time),
                "agent": basis.event.agent,
                "question": basis.event.question,
                "chosen": basis.event.content,
                "alternatives": [option.as_map() for option in basis.event.alternatives],
                "reasoning": basis.event.reasoning,
                "confidence": basis.event.confidence,
                "messages": [address.hex for address in basis.messages],
            }
            for basis in each.decisions
        ],
        "guess": each.is_guess,
    }


def hook_change(each: HookChange) -> dict[str, Any]:
    """Return what was done to a hook of git."""
    return {"path": each.path, "action": each.action, "kept": each.kept or None}


def notes_report(report: NotesReport) -> dict[str, Any]:
    """Return what was written to git notes."""
    return {"written": list(report.written), "missing": list(report.missing)}

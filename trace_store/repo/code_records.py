"""The JSON shapes of links, reasons, hooks and git notes; the rules are those of `records`."""

from __future__ import annotations

from trace_store.ident import known_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from trace_store.trajectories.events import Event
    from trace_store.trajectories.git_hooks import HookChange
    from trace_store.trajectories.git_notes import NotesReport
    from trace_store.trajectories.why import Reason


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

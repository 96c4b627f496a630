"""Which decisions are in force: not replaced, not past their end, their work neither reverted nor given up."""

from __future__ import annotations

import re
from collections.abc import Mapping

from trace_store import errors
from trace_store.base.frozen import value
from trace_store.trajectories import events as ev
from trace_store.trajectories.claims import Key, claims, linked_changes
from trace_store.trajectories.events import Event
from trace_store.trajectories.git import Git
from trace_store.trajectories.reading import Trajectory
from trace_store.trajectories.state import ABANDONED

MAXIMUM_REVERTS = 1000
"""Number of the newest reverts in git's history that count."""
REPLACED, ENDED, REVERTED, GIVEN_UP = "replaced", "ended", "reverted", "given up"
_REVERTS = re.compile(r"\bThis reverts commit ([0-9a-f]{7,64})\b")


@value
class DecisionStanding:
    """How a decision stands.

    Attributes:
        decision: the decision.
        trajectory: its trajectory.
        lapsed: `replaced`, `ended`, `reverted`, or `given up` with its trajectory before any commit; "" if it is in
            force.
        by: the decision that replaced it, or the commit of the code that reverted it; else "".
    """

    decision: Event
    trajectory: Trajectory
    lapsed: str = ""
    by: str = ""


def standings(
    trajectory: Trajectory, reverted: Mapping[str, str], now: int
) -> list[DecisionStanding]:
    """Return how each decision of a trajectory stands, oldest first.

    Args:
        trajectory: the trajectory.
        reverted: as `reverted_commits` returns it.
        now: the time, in milliseconds since the epoch.
    """
    claimed = claims(trajectory, linked_changes(trajectory))
    by = _reverts_of(trajectory, claimed, reverted) if reverted else {}
    is_given_up = trajectory.state.status == ABANDONED
    has_code = {each.id for decisions in claimed.values() for each in decisions}
    found = []
    for decision in trajectory.decisions:
        lapsed, cause = "", ""
        if decision.replaced_by:
            lapsed, cause = REPLACED, decision.replaced_by
        elif decision.id.hex in by:
            lapsed, cause = REVERTED, by[decision.id.hex]
        elif decision.until is not None and decision.until <= now:
            lapsed = ENDED
        elif is_given_up and decision.id not in has_code:
            lapsed = GIVEN_UP
        found.append(DecisionStanding(decision, trajectory, lapsed, cause))
    return found


def _reverts_of(
    trajectory: Trajectory, claimed: Mapping[Key, list[Event]], reverted: Mapping[str, str]
) -> dict[str, str]:
    """Return the commit that reverted the code of a decision, by the decision's address.

    A commit is known under each id that it had before a rebase or an amendment.
    """
    ids: dict[str, list[str]] = {}
    for link in trajectory.of_type(ev.LINKED):
        ids[link.id.hex] = [str(data.get("commit", "")) for data in (*link.versions, link.data)]
    found = {}
    for (link_id, _), decisions in claimed.items():
        by = next((reverted[each] for each in ids.get(link_id, ()) if each in reverted), "")
        if by:
            found.update(dict.fromkeys([decision.id.hex for decision in decisions], by))
    return found


def reverted_commits(git: Git) -> dict[str, str]:
    """Return the commits that HEAD's history reverted, each with the commit that did; {} without a git repository.

    A revert that was reverted itself does not count.
    """
    latest = f"--max-count={MAXIMUM_REVERTS}"
    words = ("--no-show-signature", latest, "--grep=^This reverts commit", "--format=%H%x00%B%x01")
    try:
        output = git.try_to_ask("log", *words, "HEAD")
    except (errors.StateError, errors.StorageError):
        return {}
    found: dict[str, str] = {}
    for entry in reversed(output.split("\x01")):  # oldest first
        revert, _, message = entry.strip().partition("\0")
        for commit in _REVERTS.findall(message):
            found = {undone: by for undone, by in found.items() if by != commit}
            found[commit] = revert
    return found

"""Which decision belongs to which change, of those that were made within one second."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from trace_store.trajectories.claims import CodeChange, claims
from trace_store.trajectories.git import CodeCommit

SECOND = 1_760_000_000_000


def change(link: str, commit: str, last: str, until: int) -> CodeChange:
    """Return a version of a change, made so many milliseconds after SECOND."""
    data: dict[str, Any] = {"commit": commit, "made": SECOND, "subject": commit, "until": until}
    linked: Any = SimpleNamespace(id=link, commit=last)
    whole: Any = None
    return CodeChange(whole, (link, SECOND + until), commit, data, linked)


def test_a_commit_and_its_amendment_stand_after_the_commit_before_them() -> None:
    """Their messages name the trajectory, so git's order is known; but git no longer finds the amended commit."""
    times = {"first": 100, "second": 300, "third": 500}
    decisions = [
        SimpleNamespace(time=SECOND + time, data={}, name=name) for name, time in times.items()
    ]
    trajectory: Any = SimpleNamespace(decisions=decisions)
    changes = [
        change("link 1", "before", "before", 200),
        change("link 2", "amended", "amendment", 400),
        change("link 2", "amendment", "amendment", 600),
    ]
    named = [CodeCommit(each, SECOND, SECOND, each, ("a",)) for each in ("amendment", "before")]
    found: Any = claims(trajectory, changes, named)
    assert {until - SECOND: [each.name for each in ds] for (_, until), ds in found.items()} == {
        200: ["first"],
        400: ["second"],
        600: ["third"],
    }

"""The forms in which a trajectory is exported as one file."""

from __future__ import annotations

from trace_store import errors, trajectories
from trace_store.exporters.contract import Exported, Loss
from trace_store.exporters.overview import pretty
from trace_store.frozen import value
from trace_store.trajectories import views

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from typing import Any

    from trace_store.trajectories.views.view import View

PULL_REQUEST, TRAIL, AGENT_TRACE = "pr", "trail", "agent-trace"


@value
class Form:
    """A form.

    Attributes:
        ending: the end of a suggested file name.
        write: returns the text of a trajectory.
    """

    ending: str
    write: Callable[[View], str]


FORMS = {
    "page": Form(".html", lambda view: views.page.page_html(view)),
    "markdown": Form(".md", lambda view: views.markdown.page_markdown(view)),
    "timeline": Form("-timeline.txt", lambda view: views.timeline.timeline_text(view)),
    "timeline-html": Form("-timeline.html", lambda view: views.page.timeline_html(view)),
    PULL_REQUEST: Form("-pr.md", lambda view: views.pull_request.pull_request(view)),
}
"""Forms for readers."""
DATA_FORMS = {
    TRAIL: Form(".json", lambda view: _json(trajectories.trail.render(view.trajectory))),
    AGENT_TRACE: Form(".trace.json", lambda view: _json(_attribution(view))),
}
"""Forms for programs."""
SYNONYMS = {"html": "page", "json": TRAIL}


def export(view: View, form: str, new: Collection[str] | None = None) -> Exported:
    """Return a trajectory in a form.

    Args:
        view: the trajectory.
        form: one of FORMS or DATA_FORMS.
        new: with `pr`: the commits to be merged; None: all.

    Raises:
        InvalidInputError: there is no such form.
    """
    known = FORMS | DATA_FORMS
    found = known.get(SYNONYMS.get(form, form))
    if found is None:
        names = ", ".join(known)
        raise errors.InvalidInputError(
            f"a trajectory has no form {form[:40]!r}: its forms are {names}", argument="form"
        )
    text = found.write(view)
    if form == PULL_REQUEST and new is not None:
        text = views.pull_request.pull_request(view, new)
    lost = _losses(view) if found is DATA_FORMS[TRAIL] else ()
    return exported(text, f"{view.trajectory.id}{found.ending}", lost)


def exported(text: str, name: str, losses: tuple[Loss, ...] = ()) -> Exported:
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

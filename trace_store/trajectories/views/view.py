"""The content of all views of a trajectory, as plain text that is not yet escaped for any format."""

from __future__ import annotations

from trace_store.base.frozen import replace, value
from trace_store.exporters.overview import count_noun, format_moment
from trace_store.trajectories import events as ev
from trace_store.trajectories.events import Event
from trace_store.trajectories.reading import Chapter, SessionMessage, Trajectory

SHOWN_COMMIT = 12
"""How many hex digits of a code commit are shown."""
LISTS = ("challenges", "learnings", "suggestions")
"""The lists of a retrospective."""
SYMBOLS = {
    ev.STARTED: "○",
    ev.CHAPTER: "■",
    ev.DECISION: "◆",
    ev.ERROR: "✗",
    ev.COMPLETED: "✓",
    ev.ABANDONED: "✗",
}
OTHER_SYMBOL = "•"


@value
class View:
    """A trajectory to show.

    Attributes:
        trajectory: the trajectory, without hidden events.
        messages: the session messages of each chapter; empty to show none.
        hidden_thoughts: number of events with thinking that are hidden.
    """

    trajectory: Trajectory
    messages: tuple[tuple[SessionMessage, ...], ...] = ()
    hidden_thoughts: int = 0

    def without_thinking(self) -> View:
        """Return the view without thinking, in events and in session messages."""
        thoughts = {event.id.hex for event in self.trajectory.of_type(ev.THINKING)}
        trajectory = replace(
            self.trajectory,
            events=tuple(
                event
                for event in self.trajectory.events
                if not thoughts & {event.id.hex, event.data.get("event")}  # nor their amendments
            ),
        )
        messages = tuple(
            tuple(replace(each, thinking="") for each in chapter) for chapter in self.messages
        )
        # The chapter before the first title is gone if it held only thinking.
        gone = len(self.messages) - len(trajectory.chapters) if self.messages else 0
        return View(trajectory, messages[gone:], len(thoughts))

    @property
    def title(self) -> str:
        """Its title, else its id."""
        return self.trajectory.state.title or self.trajectory.id

    @property
    def events(self) -> list[Event]:
        """Its events without the amendments, which are already applied."""
        return [event for event in self.trajectory.events if event.type != ev.AMENDED]

    @property
    def chapters(self) -> list[tuple[Chapter, list[str]]]:
        """Its chapters, each with its session messages as lines."""
        chapters = self.trajectory.chapters
        messages = self.messages or ((),) * len(chapters)
        return [(chapter, _lines(each)) for chapter, each in zip(chapters, messages, strict=True)]

    def facts(self) -> list[tuple[str, str]]:
        """Return the facts of the trajectory as (name, value)."""
        state, ended = self.trajectory.state, self.trajectory.ended
        task, last = state.task, self.trajectory.retrospective
        agents = [f"{each.name} ({each.role})" if each.role else each.name for each in state.agents]
        spent = last.data.get("time_spent") if last else None
        kinds = (ev.DECISION, ev.FINDING, ev.ERROR)
        counts = [count_noun(n, kind) for kind in kinds if (n := state.count(kind))]
        rows = [
            ("status", state.status),
            ("reason", self.trajectory.reason),
            ("task", f"{task.system} {task.id or task.url}".strip() if task else ""),
            ("task state", task.state.replace("_", " ") if task else ""),
            ("project", state.project),
            ("agents", ", ".join(agents)),
            ("time", span(state.started, ended)),
            ("time spent", duration(spent) if isinstance(spent, int) else ""),
            ("confidence", percent(state.confidence)),
            ("recorded", ", ".join([*counts, count_noun(state.count(), "event")])),
            ("branch", state.branch.removeprefix("refs/heads/")),
            ("tags", ", ".join(state.tags)),
            ("trajectory", state.id),
        ]
        return [(name, text) for name, text in rows if text]


def _lines(messages: tuple[SessionMessage, ...]) -> list[str]:
    """Return messages as lines; thinking has its own lines."""
    found: list[str] = []
    for each in messages:
        found += [each.line] if each.line else []
        found += [f"thinking: {' '.join(each.thinking.split())}"] if each.thinking.strip() else []
    return found


def event_text(event: Event) -> str:
    """Return the text of an event; for a decision, the chosen option."""
    if event.type == ev.LINKED:
        return f"{event.commit[:SHOWN_COMMIT]} {text_of(event, 'subject')}".strip()
    return event.content or text_of(event, "title") or text_of(event, "summary")


def question_of(event: Event) -> str:
    """Return the question of a decision, or "" if it only repeats what was chosen."""
    return "" if event.question == event.content else event.question


def decision_line(event: Event) -> str:
    """Return a decision on one line: its question and what was chosen."""
    return f"{question_of(event)} → {event.content}" if question_of(event) else event.content


def type_label(event: Event) -> str:
    """Return the type of an event in words, such as `message to bo`."""
    for type_, where in ((ev.SENT, "to"), (ev.RECEIVED, "from")):
        if event.type == type_ and event.data.get(where):
            return f"message {where} {event.data[where]}"
    return event.type.replace("_", " ")


def notes_on(event: Event) -> list[str]:
    """Return the notes on an event: confidence, significance, tags, its end, and that it was amended."""
    found = [event.significance] if event.significance else []
    if event.type == ev.DECISION and event.confidence is not None:
        found.append(f"confidence {percent(event.confidence)}")
    found += [f"#{tag}" for tag in event.tags]
    return [
        *(*found, *event.standing),
        *(["amended"] if len(event.versions) > bool(event.replaced_by) else []),
    ]


def text_of(event: Event, name: str) -> str:
    """Return a text in the data of an event, or ""."""
    found = event.data.get(name)
    return found if isinstance(found, str) else ""


def texts_of(event: Event, name: str) -> list[str]:
    """Return a list of texts in the data of an event; a single text becomes a list."""
    found = event.data.get(name) or ()
    return [found] if isinstance(found, str) else [str(each) for each in found if each]


def web_address(url: str) -> str:
    """Return an address if it is a web page that may be linked, else ""."""
    is_web = url.startswith(("https://", "http://")) and url.isprintable() and " " not in url
    return url if is_web else ""


def percent(confidence: float | None) -> str:
    """Return a confidence as a percentage, or ""."""
    return "" if confidence is None else f"{confidence:.0%}"


def duration(milliseconds: int) -> str:
    """Return a length of time for people, such as `2 h 5 min`."""
    minutes = max(0, milliseconds) // 60_000
    days, hours = minutes // 1440, minutes // 60 % 24
    if days:
        return f"{days} d {hours} h" if hours else f"{days} d"
    if hours:
        return f"{hours} h {minutes % 60} min" if minutes % 60 else f"{hours} h"
    return f"{minutes} min"


def minute(milliseconds: int) -> str:
    """Return a time in UTC to the minute: `2026-11-21 07:10`."""
    return format_moment(milliseconds)[:16]


def span(start: int, end: int | None) -> str:
    """Return the time from a start to an end, in UTC; `end` is None if it is not over."""
    first = minute(start)
    if end is None:
        return f"since {first} UTC"
    last = minute(end)
    if first == last:
        return f"{first} UTC"
    return f"{first} – {last[11:] if last[:10] == first[:10] else last} UTC"

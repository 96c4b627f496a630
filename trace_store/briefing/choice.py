"""What bears on a task or on files: open trajectories, decisions in force, failed approaches, the last session.

Rule: certain before probable. A decision that the code of a file leads to, or that belongs to the task, comes before one
that shares words with it. Without a task and files, the current trajectory is the subject, and what is recent follows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from trace_store import errors
from trace_store.base.ident import format_time
from trace_store.briefing.brief import (
    DECISIONS,
    FINDINGS,
    GIVEN_UP,
    LAST,
    LESSONS,
    OPEN,
    BriefNote,
    Candidate,
    plain,
)
from trace_store.briefing.last_session import last_session_notes
from trace_store.checkpoints.checkpoints import Checkpoints
from trace_store.objects.address import Address
from trace_store.sessions.sessions import Sessions
from trace_store.trajectories import events as ev
from trace_store.trajectories import in_force
from trace_store.trajectories.events import Event
from trace_store.trajectories.in_force import ENDED, REPLACED, REVERTED, Standing
from trace_store.trajectories.reading import Trajectory
from trace_store.trajectories.state import ABANDONED, State
from trace_store.trajectories.trajectories import Trajectories
from trace_store.trajectories.why import SAME_FILES
from trace_store.writer import Writer

RECENT = 20
"""How many of the last trajectories are read, besides those of the task and the files."""
SIMILAR = 8
MAXIMUM_FILES = 50
REASONS = 20
CERTAIN, PROBABLE, REST = 0, 1, 2
_WEIGHTS = {"critical": 3, "high": 2, "medium": 1}
_WORD = re.compile(r"\w{4,}")
_SHARED_WORDS = 2
"""How many words a decision must share with the subject to be probably about it."""


class Choice:
    """Chooses entries for a brief.

    Attributes:
        candidates: the entries.
        unknown: the files about which nothing is recorded.
    """

    def __init__(self, writer: Writer, task: str, files: Sequence[str], folder: str) -> None:
        self._writer = writer
        self._tr = Trajectories(writer)
        self._now = writer.store.clock.now()
        self._folder = folder
        self._reverted: dict[str, str] = {}
        self._tiers: dict[str, int] = {}
        self._certain: set[Address] = set()
        self._words: set[str] = set()
        self._has_subject = bool(task or files)
        self.unknown: list[str] = []
        if task:
            self._about_task(task)
        for file in files[:MAXIMUM_FILES]:
            self._about_file(file)
        if not self._has_subject:
            self._about_current()
        self.candidates = [*self._notes(), *self._last_session()]

    def _about_task(self, task: str) -> None:
        """Make a task the subject: its trajectories, and decisions that share words with it."""
        states = [each for each in self._tr.list() if _is_of(each, task)]
        self._tiers.update({each.id: CERTAIN for each in states})
        titles = [f"{each.title} {each.description}" for each in states] or [task]
        self._add_words(" ".join(titles))

    def _about_current(self) -> None:
        try:
            state = self._tr.find()
        except (errors.StateError, errors.NotFoundError, errors.AmbiguousRevisionError):
            return
        self._tiers[state.id] = CERTAIN
        self._add_words(f"{state.title} {state.description}")

    def _add_words(self, text: str) -> None:
        self._words |= _words(text)
        try:
            similar = self._tr.similar(text, limit=SIMILAR)
        except (errors.StateError, errors.InvalidInputError):
            return  # no full-text search, or no word to search for
        for each in similar:
            if len(self._words & _words(_said(each.event))) >= _SHARED_WORDS:
                self._tiers.setdefault(each.state.id, PROBABLE)

    def _about_file(self, file: str) -> None:
        """Make a file the subject: the decisions that its commits lead to."""
        try:
            reasons = self._tr.why(file, folder=self._folder, limit=REASONS)
        except (errors.StateError, errors.NotFoundError, errors.InvalidInputError):
            reasons = ()
        for reason in reasons:
            is_guess = reason.is_guess or reason.how == SAME_FILES
            self._tiers.setdefault(reason.trajectory.id, PROBABLE)
            for basis in reason.decisions:
                if not (is_guess or basis.is_guess):
                    self._certain.add(basis.event.id)
        if not reasons:
            self.unknown.append(file)

    def _notes(self) -> Iterator[Candidate]:
        self._reverted = in_force.reverted_commits(self._git())
        recent = {each.id: REST for each in self._tr.list(limit=RECENT)}
        for id, tier in {**recent, **self._tiers}.items():
            try:
                whole = self._tr.read(id)
            except errors.NotFoundError:
                continue  # moved to the trash meanwhile
            yield from self._of_trajectory(whole, tier)

    def _git(self) -> in_force.Git:
        return in_force.Git(self._folder)

    def _of_trajectory(self, whole: Trajectory, tier: int) -> Iterator[Candidate]:
        state = whole.state
        is_near = tier < REST or not self._has_subject
        if state.is_active and is_near:
            yield _open(whole, tier)
        for each in in_force.standings(whole, self._reverted, self._now):
            if (found := self._decision(each, tier)) is not None:
                yield found
        for event in whole.of_type(ev.FINDING, ev.ERROR):
            weight = _WEIGHTS.get(event.significance, 0)
            if is_near and tier < REST or weight >= _WEIGHTS["high"]:
                section = GIVEN_UP if event.type == ev.ERROR else FINDINGS
                yield _event(section, event, event.content, whole, tier, weight)
        if is_near:
            yield from _given_up(whole, tier)
            yield from _lessons(whole, tier)

    def _decision(self, standing: Standing, tier: int) -> Candidate | None:
        """Return a decision as an entry; None if it does not bear on the subject, or is past."""
        event = standing.decision
        if standing.lapsed in (REPLACED, ENDED):
            return None
        weight = _WEIGHTS.get(event.significance, 0)
        if event.id in self._certain:
            tier = CERTAIN
        elif tier == PROBABLE and self._words and not self._shares_words(event):
            tier = REST
        if tier == REST and self._has_subject and weight < _WEIGHTS["high"]:
            return None
        if standing.lapsed == REVERTED:
            what = f"{_decided(event)} (reverted by commit {standing.by[:12]})"
            text = _join(what, _because(event))
            return _event(GIVEN_UP, event, text, standing.trajectory, tier, weight, what)
        short = _decided(event)
        rejected = [
            plain(each.option, 60) + (f" ({plain(each.reason, 100)})" if each.reason else "")
            for each in event.alternatives[:4]
        ]
        text = _join(short, _because(event), f"Not: {'; '.join(rejected)}" if rejected else "")
        until = f"In force until {_day(event.until)}" if event.until else ""
        text, short = _join(text, until), _join(short, until)
        return _event(DECISIONS, event, text, standing.trajectory, tier, weight, short)

    def _shares_words(self, event: Event) -> bool:
        return len(self._words & _words(_said(event))) >= _SHARED_WORDS

    def _last_session(self) -> Iterator[Candidate]:
        sessions = [each for each in Sessions(self._writer).list() if not each.damage]
        for session in sessions[:1]:
            notes = last_session_notes(self._writer, Checkpoints(self._writer), session)
            for number, (address, text) in enumerate(notes):
                item = BriefNote(LAST, address, text, session.ended)
                yield Candidate(item, plain(text, 160), PROBABLE, -number)


def _is_of(state: State, task: str) -> bool:
    """Return True if a trajectory is the task's, or has this id."""
    if state.id == task:
        return True
    if state.task is None:
        return False
    ids = {each.lower().removeprefix("gh-").removeprefix("#") for each in (state.task.id, task)}
    return (bool(state.task.id) and len(ids) == 1) or task == state.task.url


def _words(text: str) -> set[str]:
    return {word.casefold() for word in _WORD.findall(text)}


def _said(event: Event) -> str:
    return f"{event.question} {event.content} {event.reasoning}"


def _decided(event: Event) -> str:
    asked = plain(event.question, 140)
    return f"{asked} → {plain(event.content, 200)}" if asked else plain(event.content, 240)


def _because(event: Event) -> str:
    return f"Because: {plain(event.reasoning, 260)}" if event.reasoning else ""


def _join(*texts: str) -> str:
    """Return sentences on one line."""
    said = [text if text[-1:] in ".!?…" else f"{text}." for text in texts if text]
    return " ".join(said)


def _event(
    section: str,
    event: Event,
    text: str,
    whole: Trajectory,
    tier: int,
    weight: int = 0,
    short: str = "",
) -> Candidate:
    text = plain(text, 900)
    item = BriefNote(section, str(event.id), text, event.time, whole.id)
    return Candidate(item, short or plain(text, 160), tier, weight)


def _open(whole: Trajectory, tier: int) -> Candidate:
    state = whole.state
    task = f"task {plain(state.task.id, 40)}" if state.task is not None and state.task.id else ""
    chapter = f"chapter {plain(state.chapter, 60)}" if state.chapter else ""
    facts = ", ".join(filter(None, (task, f"since {_day(state.started)}", chapter)))
    short = f"{plain(state.title, 120)} ({facts})"
    about = plain(state.description, 200)
    item = BriefNote(OPEN, f"trajectories/{state.id}", _join(short, about), state.updated, state.id)
    return Candidate(item, short, tier)


def _given_up(whole: Trajectory, tier: int) -> Iterator[Candidate]:
    """Yield an abandoned trajectory, and what a retrospective found hard."""
    if whole.state.status == ABANDONED:
        event = whole.of_type(ev.ABANDONED)[-1]
        why = f": {plain(whole.reason, 240)}" if whole.reason else ""
        yield _event(GIVEN_UP, event, f"{plain(whole.state.title, 120)}{why}", whole, tier, 1)
    yield from _listed(whole, GIVEN_UP, ("challenges",), tier)


def _lessons(whole: Trajectory, tier: int) -> Iterator[Candidate]:
    yield from _listed(whole, LESSONS, ("learnings", "suggestions"), tier)


def _listed(
    whole: Trajectory, section: str, names: Iterable[str], tier: int
) -> Iterator[Candidate]:
    if (last := whole.retrospective) is not None:
        for name in names:
            for text in last.data.get(name, ()):
                yield _event(section, last, plain(str(text), 300), whole, tier)


def _day(milliseconds: int) -> str:
    return format_time(milliseconds)[:10]

"""What bears on a task or on files: open trajectories, decisions in force, failed approaches, the last session.

Rule: certain before probable. A decision of the task, or one that the code of a file leads to, comes before one that
shares words with the task. Without a task and files, the current trajectory is the subject, and what is recent follows.
"""

from __future__ import annotations

import os
import re
from collections import Counter
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
from trace_store.briefing.last_session import (
    last_session_notes,
    session_line,
    sessions_about,
    sessions_with_file,
)
from trace_store.checkpoints.checkpoints import Checkpoints
from trace_store.contracts.ref_names import BRANCHES
from trace_store.objects.address import Address
from trace_store.sessions.listing import SessionInfo
from trace_store.sessions.sessions import Sessions
from trace_store.trajectories import events as ev
from trace_store.trajectories import in_force
from trace_store.trajectories.event_search import FoundEvent
from trace_store.trajectories.events import Event
from trace_store.trajectories.git import git_in
from trace_store.trajectories.in_force import REVERTED, DecisionStanding
from trace_store.trajectories.reading import Trajectory
from trace_store.trajectories.state import ABANDONED, State
from trace_store.trajectories.trajectories import Trajectories
from trace_store.trajectories.why import SAME_FILES
from trace_store.writer import Writer

RECENT = 20
"""How many of the last trajectories are read, besides those of the task and the files."""
SIMILAR = 8
MAXIMUM_FILES = 50
SMALL_COMMIT = 10
"""In a commit of at most this many files, its decisions are about each of them."""
REASONS = 20
CERTAIN, PROBABLE, REST = 0, 1, 2
_WEIGHTS = {"critical": 3, "high": 2, "medium": 1}
_WORD, _LONG_WORD = re.compile(r"\w+"), re.compile(r"\w{4,}")
_ID = re.compile(r"#?\d+|traj_\w+|[A-Z][A-Z0-9]+-\d+|[a-z]+://\S+")
"""The id of a task or a trajectory; another word is a word to search for."""
_NAME = re.compile(r"[\w.-]*\w")
_VARIABLE = re.compile(r"\"[^\"]*\"|'[^']*'|`[^`]*`|\S*[-_/\d]\S*")
"""What differs between texts that a program wrote by one template: quoted words, numbers, names."""
_SHAPE_CHARACTERS, _SHAPE_WORDS, _REPEATS = 120, 3, 2
"""How many characters and words two notes are compared by, and how many notes of one template are kept."""
_SHARED_WORDS = 2
"""How many words a decision must share with the subject to be probably about it, if the subject has as many."""


class BriefChoice:
    """Chooses entries for a brief.

    Attributes:
        candidates: the entries.
        unknown: the files about which nothing is recorded.
        skipped: the files after the 50th, which were not looked at.
        repeat_count: the number of entries that were left out because others say nearly the same.
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
        self._task = ""
        self._refs: set[str] = set()
        self._sessions = _own_sessions(writer)
        self._file_names: set[str] = set()
        self._reasons: set[str] = set()
        self._has_subject = bool(task or files)
        self.unknown: list[str] = []
        self.skipped = tuple(files[MAXIMUM_FILES:])
        if task:
            self._about_task(task)
        for file in files[:MAXIMUM_FILES]:
            self._about_file(file)
        if not self._has_subject:
            self._about_current()
        notes = [*self._notes(), *self._last_session()]
        self.candidates = _without_repeats(notes)
        self.repeat_count = len(notes) - len(self.candidates)

    def _about_task(self, task: str) -> None:
        """Make a task the subject: its trajectories, and decisions that share words with it.

        Raises:
            NotFoundError: it has the form of an id, and nothing has it.
        """
        self._task = task
        states = self._tr.list()
        own = [each for each in states if _is_of(each, task)]
        self._refs |= {each.branch for each in own if each.branch}
        self._tiers.update({each.id: CERTAIN for each in own})
        titles = [f"{each.title} {each.description}" for each in own] or [task]
        self._add_words(" ".join(titles))
        for each in states:
            if self._shares(each.title):
                self._tiers.setdefault(each.id, PROBABLE)
        self._refs |= sessions_about(self._writer, [f'"{task}"', *self._words], self._is_about)
        if not self._tiers and _ID.fullmatch(task) and self._session_about() is None:
            raise errors.NotFoundError(
                f"no task or trajectory {task[:80]!r}",
                code=errors.ErrorCode.TRAJECTORY_NOT_FOUND,
                name=task,
            )

    def _about_current(self) -> None:
        try:
            state = self._tr.find()
        except (errors.StateError, errors.NotFoundError, errors.AmbiguousRevisionError):
            return
        self._tiers[state.id] = CERTAIN
        self._add_words(f"{state.title} {state.description}")

    def _add_words(self, text: str) -> None:
        self._words |= {each.casefold() for each in _LONG_WORD.findall(text) or _WORD.findall(text)}
        for each in self._similar(text):
            if self._shares(_said(each.event)):
                self._tiers.setdefault(each.state.id, PROBABLE)

    def _similar(self, text: str) -> Sequence[FoundEvent]:
        """Return decisions that share rare words with a text."""
        try:
            return self._tr.similar(text, limit=SIMILAR)
        except (errors.StateError, errors.InvalidInputError):
            return ()  # no full-text search, or no word to search for

    def _about_file(self, file: str) -> None:
        """Make a file the subject: the decisions that its commits lead to.

        A decision of a commit that changed many files is about this one only if it names it.
        """
        self._refs |= sessions_with_file(self._writer.store, file)
        name = os.path.basename(file.rstrip("/"))
        stem = os.path.splitext(name)[0]
        self._file_names |= {name, stem}
        for found in self._similar(stem.replace("_", " ")):
            if self._names_file(found.event):
                self._tiers.setdefault(found.state.id, PROBABLE)
        try:
            reasons = self._tr.why(file, folder=self._folder, limit=REASONS)
        except (errors.StateError, errors.NotFoundError, errors.InvalidInputError):
            reasons = ()
        for reason in reasons:
            is_guess = reason.is_guess or reason.how == SAME_FILES
            self._tiers.setdefault(reason.trajectory.id, PROBABLE)
            is_small = len(reason.commit.files) <= SMALL_COMMIT
            for basis in reason.decisions:
                is_named = self._names_file(basis.event)
                if not (is_guess or basis.is_guess) and (is_named or is_small):
                    self._certain.add(basis.event.id)
        if not (reasons or self._tiers):
            self.unknown.append(file)

    def _names_file(self, event: Event) -> bool:
        """Return True if a decision names one of the files, or its text does."""
        names = {os.path.basename(str(each)) for each in event.data.get("files", ())}
        said = set(_NAME.findall(_said(event)))
        return bool(self._file_names & (names | said))

    def _notes(self) -> Iterator[Candidate]:
        self._reverted = in_force.reverted_commits(git_in(self._folder))
        recent = {each.id: REST for each in self._tr.list(limit=RECENT)}
        for id, tier in {**recent, **self._tiers}.items():
            try:
                whole = self._tr.read(id)
            except errors.NotFoundError:
                continue  # moved to the trash meanwhile
            yield from self._of_trajectory(whole, tier)

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
            section = GIVEN_UP if event.type == ev.ERROR else FINDINGS
            is_grave = weight >= _WEIGHTS["high"]
            if tier < REST or (is_grave and (is_near or section == FINDINGS)):
                yield _event(section, event, event.content, whole, tier, weight)
        if is_near:
            yield from _given_up(whole, tier)
            yield from _lessons(whole, tier)

    def _decision(self, standing: DecisionStanding, tier: int) -> Candidate | None:
        """Return a decision as an entry; None if it does not bear on the subject, or is past."""
        event = standing.decision
        if standing.lapsed not in ("", REVERTED):
            return None
        weight = _WEIGHTS.get(event.significance, 0)
        if event.id in self._certain:
            tier = CERTAIN
        elif tier == PROBABLE and not (self._shares_words(standing) or self._names_file(event)):
            tier = REST
        if tier == REST and self._has_subject and weight < _WEIGHTS["high"]:
            return None
        if standing.lapsed == REVERTED:
            what = f"{_decided(event)} (reverted by commit {standing.by[:12]})"
            text = _join(what, self._because(event))
            return _event(GIVEN_UP, event, text, standing.trajectory, tier, weight, what)
        short = _decided(event)
        rejected = [
            plain(each.option, 60) + (f" ({plain(each.reason, 100)})" if each.reason else "")
            for each in event.alternatives[:4]
        ]
        text = _join(short, self._because(event), f"Not: {'; '.join(rejected)}" if rejected else "")
        until = f"In force until {_day(event.until)}" if event.until else ""
        text, short = _join(text, until), _join(short, until)
        return _event(DECISIONS, event, text, standing.trajectory, tier, weight, short)

    def _shares_words(self, standing: DecisionStanding) -> bool:
        return self._shares(f"{standing.trajectory.state.title} {_said(standing.decision)}")

    def _shares(self, text: str) -> bool:
        """Return True if a text shares enough words with the subject to be probably about it."""
        wanted = min(_SHARED_WORDS, len(self._words))
        shared = self._words & {each.casefold() for each in _WORD.findall(text)}
        return bool(self._words) and len(shared) >= wanted

    def _is_about(self, text: str) -> bool:
        """Return True if a text names the task, or shares enough words with the subject."""
        name = re.escape(self._task)
        return self._shares(text) or (
            bool(name) and re.search(rf"(?<!\w){name}(?!\w)", text, re.IGNORECASE) is not None
        )

    def _because(self, event: Event) -> str:
        """Return the reasoning of a decision, unless another decision has said the same."""
        if not event.reasoning or event.reasoning in self._reasons:
            return ""
        self._reasons.add(event.reasoning)
        return f"Because: {plain(event.reasoning, 260)}"

    def _last_session(self) -> Iterator[Candidate]:
        """Yield notes of the newest session about the subject; without one, a line that names the newest session."""
        session = self._session_about()
        if session is None:
            for other in self._sessions[:1]:
                text = f"About something else: {session_line(other)}"
                yield Candidate(BriefNote(LAST, other.tip.short(), text, other.ended), text, REST)
            return
        notes = last_session_notes(self._writer, Checkpoints(self._writer), session)
        for number, (address, text) in enumerate(notes):
            item = BriefNote(LAST, address, text, session.ended)
            yield Candidate(item, plain(text, 160), PROBABLE, -number)

    def _session_about(self) -> SessionInfo | None:
        """Return the last session, of those that bear on the subject if there is one."""
        return next((each for each in self._sessions if self._bears(each)), None)

    def _bears(self, session: SessionInfo) -> bool:
        """Return True if a session bears on the subject: by its task, its prompts, or the files that it used."""
        if not self._has_subject or session.ref in self._refs:
            return True
        own = session.facts.task if session.facts is not None else ""
        is_own = bool(self._task and own) and _same_id(own, self._task)
        return is_own or self._is_about(f"{session.title} {session.prompt}")


def _own_sessions(writer: Writer) -> list[SessionInfo]:
    """Return the sessions on branches, the last first."""
    listed = Sessions(writer).list()
    return [each for each in listed if each.ref.startswith(BRANCHES) and not each.damage]


def _without_repeats(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Return candidates with only the first few of those that a program wrote by one template."""
    found: list[Candidate] = []
    counts: Counter[tuple[str, str]] = Counter()
    for each in sorted(candidates, key=lambda each: each.rank):
        words = _VARIABLE.sub("#", each.item.text[:_SHAPE_CHARACTERS]).split()
        key = each.item.section, " ".join(words[:_SHAPE_WORDS])
        counts[key] += 1
        most = _REPEATS if "#" in key[1] else 2 * _REPEATS
        if each.item.section == LAST or counts[key] <= most:
            found.append(each)
    return found


def _is_of(state: State, task: str) -> bool:
    """Return True if a trajectory is the task's, or has this id."""
    if state.id == task:
        return True
    if state.task is None:
        return False
    return (bool(state.task.id) and _same_id(state.task.id, task)) or task == state.task.url


def _same_id(one: str, other: str) -> bool:
    return len({each.lower().removeprefix("gh-").removeprefix("#") for each in (one, other)}) == 1


def _said(event: Event) -> str:
    return f"{event.question} {event.content} {event.reasoning}"


def _decided(event: Event) -> str:
    asked = plain(event.question, 140)
    return f"{asked} → {plain(event.content, 200)}" if asked else plain(event.content, 240)


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
    """Yield the outcomes and lessons of finished work."""
    last = whole.retrospective
    if last is not None and tier < REST and not whole.state.is_active:
        title, summary = (
            plain(whole.state.title, 120),
            plain(str(last.data.get("summary", "")), 300),
        )
        yield _event(LESSONS, last, f"{title}: {summary}", whole, tier, 1)
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

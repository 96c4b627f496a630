"""Work state, extracted from messages: requests, tasks, decisions, checks, files, open ends.

Files, commands and to-dos come from the tool calls and are exact for known tools. Decisions and findings are sentences
quoted from the messages, so nothing is invented, but some are missed.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import takewhile

from trace_store.base.frozen import value
from trace_store.context.activity import (
    AGENT,
    DROPPED,
    READ,
    REJECTED,
    RUN,
    SEARCH,
    WRITE,
    ToDo,
    action_of,
    activity_of,
    answers_in,
    counts_checks,
    output_lines,
    shows_text,
    test_program,
    was_stopped,
)
from trace_store.context.contradictions import contradicted
from trace_store.context.wording import (
    INSTRUCTION,
    SENTENCE_CHARACTERS,
    SENTENCE_END,
    Decision,
    decisions_in,
    excerpt,
    head_and_tail,
    is_narration,
    is_prompt,
    own_words,
    sentences,
)
from trace_store.objects.parts import ToolCall, ToolResult
from trace_store.records import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any, TypeVar

    from trace_store.context.activity import Activity, ToolStep
    from trace_store.context.compiled import MessageLike

    Statement = TypeVar("Statement")

SCHEMA = "trace.checkpoint/1"
IN_PROGRESS = "in_progress"
MAXIMUM_FILES = 40
MAXIMUM_DECISIONS = 20
MAXIMUM_OPEN = 10
MAXIMUM_REQUESTS = 60
MAXIMUM_CONSTRAINTS = 20
MAXIMUM_LINKS = 6
MAXIMUM_EARLIER = 20
MAXIMUM_COMPARED = 300
_REQUEST_CHARACTERS = 1_000
_RECENT_REQUESTS, _RECENT_CHARACTERS = 4, 600
"""The last requests are quoted at greater length, because they decide what to do next."""
_OUTCOME_CHARACTERS = 800
_TASK_CHARACTERS = 200
_ANSWER_CHARACTERS = 600
_VERBS = {READ: "read", WRITE: "wrote", RUN: "ran", SEARCH: "searched", AGENT: "sent an agent"}
_REPEATED = 3
"""A prompt that comes up so often is written by a program."""
_WRAPPED = re.compile(r"(?<=[\w,;])\n(?=[a-z(])")
"""A line break within a sentence."""
_FILES = re.compile(r"[\w/-]\.(?!\d)\w{1,5}\b")
"""Names of files in a sentence."""
_COMMITTED = re.compile(r"^\[[^\]\n]* ([0-9a-f]{7,40})\] ", re.MULTILINE)
"""What `git commit` prints."""
_LINK = re.compile(r"https?://[^\s)\]>\"'`|]+")
_REQUEST_LINK = re.compile(
    r"https?://[^\s)\]>\"'`|]{1,200}?/(?:issues|merge_requests|pull|pull-requests)/\d+\b"
)
_FLAGS = re.compile(r" run\b| -\S+")
"""Parts of a command that do not change which checks it runs."""
_STOPS = re.compile(r"kill|stop", re.IGNORECASE)
_IN_BACKGROUND = re.compile(r"running in (?:the )?background with ID:? (\w+)", re.IGNORECASE)
_COMMAND = re.compile(
    r"<command-name>(/[^<\s]+)</command-name>(?:.*?<command-args>([^<]*)<)?", re.DOTALL
)
"""A slash command of the user in Claude Code."""
_OWN_COMMANDS = re.compile(
    r"/(?:clear|compact|model|log(?:in|out)|cost|exit|quit|resume|status|config|mcp|help|context|usage|doctor|fast"
    r"|plan|permissions|memory|hooks|agents|plugin|terminal-setup|ide|add-dir|effort)$"
)
"""Commands that set up the agent, and ask for no work."""
_WRAPPED_REQUEST = re.compile(r"^## My request for [^\n]*:\s*\n", re.MULTILINE)
_QUESTION = re.compile(
    r"\?$|^(?:(?:and|so|but|ok|okay) )*(?:why|what|how|who|will|do|does|is|are|can|could) ",
    re.IGNORECASE,
)
_FEW_WORDS = 3
"""A reply with at most this many words needs the question."""
_DIRECTIVE = re.compile(r"^::[\w-]+\{[^\n]*\}$", re.MULTILINE)
"""What Codex tells its desktop program at the end of an answer."""
_INTERRUPTED = "[Request interrupted by user"
_WORD = re.compile(r"[A-Za-z]{3,}")
_SHELL_AROUND = re.compile(
    r"^(?:cd [^&;|]+(?:&&|;)\s*)+|\s*(?:2>&1|\|\s*(?:tail|head|grep|tee)\b.*)+\s*$"
)
"""What stands around a command and does not change what it checks."""


@value
class FileNote:
    """A file that was used: numbers of reads and writes, a sentence about it or "", and whether it is deleted."""

    path: str
    reads: int
    writes: int
    finding: str
    is_deleted: bool = False


@value
class Check:
    """The last run of a check.

    Attributes:
        program: what ran, such as `pytest`.
        passed: whether it passed.
        said: the line that says how it ended, or "".
        writes_since: how many times files were written since then.
    """

    program: str
    passed: bool
    said: str
    writes_since: int


@value
class WorkState:
    """The topic of some messages, and the progress of the work.

    Attributes:
        request: the beginning of the first prompt.
        latest_request: the beginning of the last prompt, or "" if it is the first.
        requests: the beginnings of the prompts between them, in order.
        constraints: what the user forbade or demanded, one sentence each, in order.
        outcome: the last answer, if it ended the work; long ones without their middle.
        last_said: the last answer, if calls followed it.
        summary: a summary by a model, or "".
        files: files that were read or written, the latest last.
        tasks: all to-dos by their latest state; those that a later list left out are `dropped` if they were open.
        decisions: in order.
        earlier: constraints and decisions that a later one contradicts, each with that one; not among the others.
        checks: the last run of each check.
        running: background commands that were not stopped.
        links: the last URLs in answers, and pull requests and issues that commands printed alone.
        code_commit: the code's newest git commit that the work made or is at, or "".
        open_ends: unfinished work, one sentence each.
        command_count: number of commands that were run.
        error_count: number of calls that failed.
        message_count: number of messages.
        token_count: their tokens.
        calls_since: what the calls after the last answer did, the latest last.
        tasks_replaced: whether a to-do list replaced the tasks of earlier messages.
    """

    request: str
    latest_request: str
    requests: tuple[str, ...]
    constraints: tuple[str, ...]
    outcome: str
    last_said: str
    summary: str
    files: tuple[FileNote, ...]
    tasks: tuple[ToDo, ...]
    decisions: tuple[Decision, ...]
    checks: tuple[Check, ...]
    running: tuple[str, ...]
    links: tuple[str, ...]
    code_commit: str
    open_ends: tuple[str, ...]
    command_count: int
    error_count: int
    message_count: int
    token_count: int
    earlier: tuple[str, ...] = ()
    calls_since: tuple[str, ...] = ()
    tasks_replaced: bool = False

    @property
    def done(self) -> tuple[str, ...]:
        """Completed to-dos."""
        return tuple(each.text for each in self.tasks if each.is_done)

    @property
    def in_progress(self) -> tuple[str, ...]:
        """To-dos in progress."""
        return tuple(each.text for each in self.tasks if each.status == IN_PROGRESS)

    @property
    def pending(self) -> tuple[str, ...]:
        """To-dos that are not started."""
        not_open = (IN_PROGRESS, DROPPED)
        return tuple(
            each.text for each in self.tasks if not each.is_done and each.status not in not_open
        )

    @property
    def blockers(self) -> tuple[str, ...]:
        """Failing checks with their error line, and unfinished work."""
        failed = [f"{each.program}: {each.said}" for each in self.checks if not each.passed]
        return (*failed, *self.open_ends)

    def as_map(self) -> dict[str, Any]:
        """Return it as JSON values, as a soft checkpoint stores it."""
        return {"schema": SCHEMA, **record(self)}

    @classmethod
    def from_map(cls, data: Mapping[str, Any]) -> WorkState:
        """Return the state that `as_map` returned.

        Raises:
            KeyError, TypeError: the values have another form.
        """
        return cls(
            request=data["request"],
            latest_request=data["latest_request"],
            requests=tuple(data["requests"]),
            constraints=tuple(data["constraints"]),
            outcome=data["outcome"],
            last_said=data["last_said"],
            summary=data["summary"],
            files=tuple(
                FileNote(e["path"], e["reads"], e["writes"], e["finding"], e["deleted"])
                for e in data["files"]
            ),
            tasks=tuple(ToDo(e["text"], e["status"]) for e in data["tasks"]),
            decisions=tuple(Decision(e["text"], e["reason"], None) for e in data["decisions"]),
            checks=tuple(
                Check(e["program"], e["passed"], e["said"], e["writes_since"])
                for e in data["checks"]
            ),
            running=tuple(data["running"]),
            links=tuple(data["links"]),
            code_commit=data["code_commit"],
            open_ends=tuple(data["open_ends"]),
            command_count=data["command_count"],
            error_count=data["error_count"],
            message_count=data["message_count"],
            token_count=data["token_count"],
            earlier=tuple(data.get("earlier", ())),
            calls_since=tuple(data.get("calls_since", ())),
            tasks_replaced=data.get("tasks_replaced", False),
        )

    def as_text(self) -> str:
        """Return it as Markdown, for a model and for people."""
        lines = [self.summary] if self.summary else []
        if not self.summary:
            first = "First request" if self.latest_request else "Request"
            lines += [f"{first}: {self.request}"] * bool(self.request)
            lines += [f"Latest request: {self.latest_request}"] * bool(self.latest_request)
            lines += [f"Outcome: {self.outcome}"] * bool(self.outcome)
            lines += [f"Last said: {self.last_said}"] * bool(self.last_said)
        lines += _section("Since then", self.calls_since)
        lines += [f"Code commit: {self.code_commit}"] * bool(self.code_commit)
        lines += _section("Further requests", self.requests)
        lines += _section("Constraints", self.constraints)
        left = [each for each in self.tasks if each.status == DROPPED]
        listed = [_task_line(each) for each in self.tasks if each.status != DROPPED]
        lines += _section("Tasks", listed)
        lines += _section("Left the list unfinished", [each.text for each in left])
        lines += _section("Decisions", [_with_reason(each) for each in self.decisions])
        lines += _section("Contradicted since", self.earlier)
        lines += _section("Checks", [_check_line(each) for each in self.checks])
        lines += _section("Files", [_file_line(each) for each in self.files])
        lines += _section("Running", self.running)
        lines += _section("Links", self.links)
        lines += _section("Open", self.open_ends)
        return "\n".join(lines)


def work_state(
    messages: Sequence[MessageLike], token_count: int, code_commit: str = ""
) -> WorkState:
    """Return the state of the work in some messages.

    Args:
        messages: the messages.
        token_count: the number of their tokens.
        code_commit: the code's git commit, if the messages name none that they made.

    Raises:
        ObjectNotFoundError, CorruptObjectError: content is missing or damaged.
    """
    activity = activity_of(messages)
    asked = _prompts(messages)
    prompts = [text for _, text in asked]
    said, is_last = _last_answer(messages)
    findings = _findings(messages, activity)
    known = "\n".join(prompts)
    constraints, former = current_statements(list(_constraints(messages, asked)), str)
    decided = [each for each in _decisions(messages) if each.text not in known]
    decisions, revised = current_statements(decided, lambda each: each.text)
    return WorkState(
        request=excerpt(prompts[0], _REQUEST_CHARACTERS) if prompts else "",
        latest_request=excerpt(prompts[-1], _REQUEST_CHARACTERS) if prompts[1:] else "",
        requests=tuple(_middle_requests(prompts)),
        constraints=tuple(constraints[:MAXIMUM_CONSTRAINTS]),
        outcome=said if is_last else "",
        last_said="" if is_last else said,
        summary="",
        files=tuple(_file_notes(activity, findings))[-MAXIMUM_FILES:],
        tasks=activity.all_todos,
        decisions=tuple(decisions[-MAXIMUM_DECISIONS:]),
        checks=tuple(_checks(activity)),
        running=tuple(_running(messages, activity)),
        links=tuple(_links(messages)),
        code_commit=_last_commit(activity) or code_commit,
        open_ends=tuple(_open_ends(messages, activity)),
        command_count=len(activity.commands),
        error_count=len(activity.errors),
        message_count=len(messages),
        token_count=token_count,
        earlier=tuple((*former, *revised)[-MAXIMUM_EARLIER:]),
        calls_since=() if is_last else tuple(_calls_since_answer(messages)),
        tasks_replaced=activity.replaces_todos,
    )


def current_statements(
    statements: Sequence[Statement], text_of: Callable[[Statement], str]
) -> tuple[list[Statement], list[str]]:
    """Return the statements that no later one contradicts, and a line for each of the others.

    Only the newest `MAXIMUM_COMPARED` are compared, since each is compared with each.
    """
    old, new = statements[:-MAXIMUM_COMPARED], statements[-MAXIMUM_COMPARED:]
    texts = [text_of(each) for each in new]
    gone = contradicted(texts)
    kept = [each for place, each in enumerate(new) if place not in gone]
    lines = [f"{texts[before]} (later: {texts[after]})" for before, after in sorted(gone.items())]
    return [*old, *kept], lines


def _prompts(messages: Sequence[MessageLike]) -> list[tuple[int, str]]:
    """Return the texts of the user with their places, without inserted ones; short replies come with the question."""
    found: list[tuple[int, str, str]] = []
    answered = ""
    for at, message in enumerate(messages):
        if message.role == "assistant":
            answered = message.text.strip() or answered
        elif message.role == "user":
            text = _request_in(message)
            if text:
                found.append((at, text, answered))
                answered = ""
    count = Counter(text for _, text, _ in found)
    return [
        (at, _in_context(text, answered))
        for at, text, answered in found
        if count[text] < _REPEATED or len(text.split()) <= _FEW_WORDS
    ]


def _request_in(message: MessageLike) -> str:
    """Return the request in a message of the user, without text that a program added; "" if there is none."""
    text = message.text.strip()
    if command := _COMMAND.search(text):
        name, words = command[1], (command[2] or "").strip()
        return "" if _OWN_COMMANDS.match(name) else f"{name} {words}".strip()
    if not is_prompt(message):
        return ""
    return _WRAPPED_REQUEST.split(own_words(text))[-1].strip()


def _in_context(text: str, answered: str) -> str:
    """Return a text; a short reply comes with the question that it answers, else with the sentence before it."""
    if len(text.split()) > _FEW_WORDS or text.startswith("/") or not answered:
        return text
    said = [each for each in sentences(answered[-_OUTCOME_CHARACTERS:]) if not is_narration(each)]
    questions = [each for each in said if each.endswith("?")]
    about = (questions or said)[-1:]
    return f"{text} (to: {excerpt(about[0], _TASK_CHARACTERS)})" if about else text


def _last_answer(messages: Sequence[MessageLike]) -> tuple[str, bool]:
    """Return the last answer, and whether it is the end: no call follows it."""
    has_calls = False
    for message in reversed(messages):
        has_calls |= any(isinstance(part, ToolCall | ToolResult) for part in message.parts)
        if message.role == "assistant" and (text := message.text.strip()):
            return _ends(_DIRECTIVE.sub("", text), _OUTCOME_CHARACTERS), not has_calls
    return "", True


def _calls_since_answer(messages: Sequence[MessageLike]) -> Iterator[str]:
    """Yield what the calls after the last answer did, if they have a result."""
    answers = (at for at, m in enumerate(messages) if m.role == "assistant" and m.text.strip())
    done = [step for step in activity_of(messages[max(answers) :]).steps if step.outcome]
    if more := len(done[:-MAXIMUM_OPEN]):
        yield f"{more} earlier call{'s' * (more > 1)}"
    for step in done[-MAXIMUM_OPEN:]:
        assert step.outcome is not None
        told = [line for line in output_lines(step.said) if counts_checks(line)][-1:]
        said = step.outcome.error or (told[0] if told and step.action.kind == RUN else "")
        how = f"failed: {said}" if step.outcome.failed else said
        what = f"{_VERBS.get(step.action.kind, 'called')} {excerpt(step.action.subject, 100)}"
        yield excerpt(f"{what} ({how})" if how else what, SENTENCE_CHARACTERS)


def _checks(activity: Activity) -> Iterator[Check]:
    """Yield the last run of each test program, oldest first."""
    last: dict[str, tuple[ToolStep, int]] = {}
    writes = 0
    for step in activity.steps:
        failed = step.outcome is not None and step.outcome.failed
        writes += step.action.kind == WRITE and not failed
        if step.action.is_test and step.outcome is not None and not was_stopped(step.outcome):
            program = _FLAGS.sub("", test_program(step.action.text))
            last.pop(program, None)
            last[program] = step, writes
    for program, (step, before) in last.items():
        assert step.outcome is not None
        said = [line for line in output_lines(step.said) if counts_checks(line)]
        line = excerpt(said[-1], _TASK_CHARACTERS) if said else step.outcome.error
        yield Check(program, not step.outcome.failed, line, writes - before)


def _running(messages: Sequence[MessageLike], activity: Activity) -> Iterator[str]:
    """Yield the background commands that no call stopped."""
    calls = (part for m in messages for part in m.parts if isinstance(part, ToolCall))
    stopped = "\n".join(each.arguments for each in calls if _STOPS.search(each.name))
    for step in activity.steps:
        found = _IN_BACKGROUND.search(step.said[:_OUTCOME_CHARACTERS])
        if found and found[1] not in stopped:
            yield f"{found[1]}: {excerpt(step.action.text, _REQUEST_CHARACTERS)}"


def _links(messages: Sequence[MessageLike]) -> list[str]:
    """Return the last URLs in answers, and of the requests that commands printed alone, latest last."""
    found: dict[str, None] = {}
    commands: set[str] = set()
    for message in messages:
        seen = _LINK.findall(message.text) if message.role == "assistant" else []
        for part in message.parts:
            if isinstance(part, ToolCall) and action_of(part).kind == RUN:
                commands.add(part.id)
            elif isinstance(part, ToolResult) and part.call_id in commands:
                printed = set(_REQUEST_LINK.findall(part.text))
                seen += (
                    printed if len(printed) == 1 else ()
                )  # several are a list of others' requests
        for each in seen:
            found.pop(each.rstrip(".,;:*"), None)
            found[each.rstrip(".,;:*")] = None
    return list(found)[-MAXIMUM_LINKS:]


def _file_notes(activity: Activity, findings: dict[str, str]) -> Iterator[FileNote]:
    """Yield each file once. A relative path is joined with the only absolute path that ends with it."""
    absolute = [each.path for each in activity.files if each.path.startswith("/")]
    notes: dict[str, FileNote] = {}
    for each in activity.files:
        ends = [path for path in absolute if path.endswith(f"/{each.path}")]
        path = ends[0] if len(ends) == 1 else each.path
        known = notes.pop(path, FileNote(path, 0, 0, ""))
        finding = findings.get(each.path, "") or known.finding
        if len(_WORD.findall(finding.replace(_name(path), ""))) < _FEW_WORDS + 1:
            finding = ""
        counts = known.reads + each.reads, known.writes + each.writes
        notes[path] = FileNote(path, *counts, finding, each.is_deleted)
    yield from notes.values()


def _ends(text: str, width: int) -> str:
    """Return a text on one line, without its middle if it is long: the end says what is left to do."""
    line = " ".join(text.split())
    if len(line) <= width:
        return line
    return " ".join(head_and_tail(line, width))


def _middle_requests(prompts: Sequence[str]) -> Iterator[str]:
    middle = prompts[1:-1][-MAXIMUM_REQUESTS:]
    for number, text in enumerate(middle, _RECENT_REQUESTS - len(middle)):
        yield excerpt(text, _RECENT_CHARACTERS if number >= 0 else _TASK_CHARACTERS)


def _constraints(
    messages: Sequence[MessageLike], prompts: Sequence[tuple[int, str]]
) -> Iterator[str]:
    found: dict[str, int] = {}
    whole, end = "\n".join([text for _, text in prompts]), 0
    for at, text in prompts:
        end += len(text) + 1
        for each in sentences(_WRAPPED.sub(" ", text)):
            # What a later prompt quotes is taken up there, and often replaced.
            is_last = whole.find(each, end) < 0
            if INSTRUCTION.search(each) and not _QUESTION.search(each) and is_last:
                found.setdefault(each, at)
    pasted = _pasted(messages, found)
    return (each for each in found if each not in pasted)


def _pasted(messages: Sequence[MessageLike], said: Mapping[str, int]) -> set[str]:
    """Return the sentences of the user that an agent or a tool said before, except for common phrases.

    Args:
        messages: the messages.
        said: the sentences, each with the place of the first message in which the user says it.
    """
    by_word: dict[str, list[tuple[str, str]]] = {}
    for sentence in said:
        words = sentence.split()
        if len(words) > _FEW_WORDS:
            longest = max(words[1:-1], key=len)  # in another text, these words are whole
            by_word.setdefault(longest, []).append((" ".join(words), sentence))
    found: set[str] = set()
    for at, message in enumerate(messages):
        for text in (message.text, *_results(message)) if message.role != "user" else ():
            words = text.split()
            for word in by_word.keys() & words:
                plain = " ".join(words)
                found.update(s for spaced, s in by_word[word] if at < said[s] and spaced in plain)
    return found


def _results(message: MessageLike) -> Iterator[str]:
    return (part.text for part in message.parts if isinstance(part, ToolResult))


def _decisions(messages: Sequence[MessageLike]) -> Iterator[Decision]:
    """Yield the decisions without repetitions, and what the user answered to questions."""
    seen: set[str] = set()
    answers = answers_in(messages)
    for at, message in enumerate(messages):
        found = list(decisions_in([message]))
        if at in answers:
            said = excerpt(f"The user answered: {answers[at]}", _ANSWER_CHARACTERS)
            found.append(Decision(said, "", getattr(message, "address", None)))
        for each in found:
            if each.text.casefold() not in seen:
                seen.add(each.text.casefold())
                yield each


def _last_commit(activity: Activity) -> str:
    """Return the id that the last `git commit` printed, or ""."""
    found = ""
    for step in activity.steps:
        said = "\n".join(output_lines(step.said)) if "git commit" in step.action.text else ""
        if ids := _COMMITTED.findall(said):
            found = ids[-1]
    return found


def _task_line(todo: ToDo) -> str:
    return f"[{'x' if todo.is_done else ' '}] {todo.text}"


def _check_line(check: Check) -> str:
    said = f": {check.said}" if check.said else ""
    writes = check.writes_since
    since = f"; files were written {writes} time{'s' * (writes > 1)} since" if writes else ""
    return f"{check.program} {'passed' if check.passed else 'failed'}{said}{since}"


def _check_of(step: ToolStep) -> str:
    """Return what a command checks: the test program, or the command without what is around it."""
    return test_program(step.action.text) or _SHELL_AROUND.sub("", step.action.text).strip()


def _attempt_of(step: ToolStep) -> str:
    """Return what attempts of one command have in common: the words before the first option, if there are several."""
    check = _check_of(step)
    words = list(takewhile(lambda word: not word.startswith("-"), check.split()))
    return " ".join(words) if 1 < len(words) < len(check.split()) else check


def _findings(messages: Sequence[MessageLike], activity: Activity) -> dict[str, str]:
    """Return the first sentence of an answer about each file, after it was last read or written.

    A sentence that names several files is about none of them; a name that several files have needs its folder, too.
    """
    found: dict[str, str] = {}
    waiting: dict[str, str] = {}
    called: dict[Any, list[str]] = {}
    for step in activity.steps:
        if step.call is not None:
            called.setdefault(step.call, []).extend(step.action.paths)
    names = Counter(_name(each.path) for each in activity.files)
    for message in messages:
        if message.role == "assistant" and waiting:
            for sentence in sentences(message.text):
                named = [
                    key
                    for key in waiting
                    if key in sentence
                    and re.search(rf"(?<![\w.-]){re.escape(key)}(?![\w-])", sentence)
                ]
                if len(named) == 1 and len(_FILES.findall(sentence)) <= 1:
                    found[waiting.pop(named[0])] = sentence
        for path in called.get(getattr(message, "address", None), ()):
            name = _name(path)
            if name:
                found.pop(path, None)  # it was said before the last use
                key = name if names[name] == 1 else "/".join(path.rstrip("/").split("/")[-2:])
                waiting.pop(key, None)
                waiting[key] = path
                if len(waiting) > MAXIMUM_FILES:
                    del waiting[next(iter(waiting))]
    return found


def _name(path: str) -> str:
    return path.rstrip("/").rsplit("/", 1)[-1]


def _open_ends(messages: Sequence[MessageLike], activity: Activity) -> Iterator[str]:
    found: list[str] = []
    last: dict[str, tuple[ToolStep, int]] = {}
    writes = passed_after = 0
    recent = _last_turn(messages)
    told = next((m.text for m in reversed(messages) if m.role == "assistant" and m.text), "")
    for step in activity.steps:
        is_recent = step.call is None or step.call in recent
        writes += step.action.kind == WRITE
        if step.action.is_test and step.outcome is not None and not step.outcome.failed:
            passed_after = writes
        if step.outcome is None:
            folder = f" (in {step.action.folder})" if step.action.folder else ""
            found.append(f"No result yet: {excerpt(step.action.subject, 100)}{folder}")
        elif is_recent and step.outcome.failed and REJECTED.search(step.outcome.error):
            found.append(f"Rejected by the user: {excerpt(step.action.subject, 100)}")
        elif step.action.kind == RUN and not (was_stopped(step.outcome) or shows_text(step.action)):
            # A later run in another form, or with other options, tells whether it still fails.
            last[_attempt_of(step)] = step, writes
    for check, (step, written) in last.items():
        # Of an earlier turn only what is still spoken of: the rest was cleared in another way, or given up. Tests that
        # pass after a change say that the change mended what failed before it.
        is_open = step.call is None or step.call in recent or check in told
        is_open = is_open and (step.action.is_test or passed_after <= written)
        if step.outcome is not None and step.outcome.failed and is_open:
            said = f": {step.outcome.error}" if step.outcome.error else ""
            found.append(excerpt(f"Failed: {step.action.subject}{said}", SENTENCE_CHARACTERS))
    yield from found[-MAXIMUM_OPEN:]
    said_last = [m for m in messages if m.role in ("user", "assistant") and m.text.strip()][-1:]
    for message in said_last:
        parts = [each for each in SENTENCE_END.split(message.text.strip()) if each.strip()]
        if message.text.lstrip().startswith(_INTERRUPTED):
            yield "Interrupted by the user"
        elif message.role == "user" and _request_in(message):
            yield f"Unanswered: {excerpt(_request_in(message), SENTENCE_CHARACTERS)}"
        elif parts and parts[-1].endswith("?"):
            yield f"Asked: {excerpt(parts[-1], SENTENCE_CHARACTERS)}"


def _last_turn(messages: Sequence[MessageLike]) -> set[Any]:
    """Return the addresses of the messages since the user's last prompt."""
    start = max((at for at, each in enumerate(messages) if is_prompt(each)), default=0)
    return {getattr(each, "address", None) for each in messages[start:]}


def _section(title: str, items: Sequence[str]) -> list[str]:
    return ["", f"{title}:", *(f"- {item}" for item in items)] if items else []


def _with_reason(decision: Decision) -> str:
    has_reason = decision.reason and decision.reason not in decision.text
    return f"{decision.text} ({decision.reason})" if has_reason else decision.text


def _file_line(file: FileNote) -> str:
    uses = [("read", file.reads), ("written", file.writes)]
    said = ", ".join(word if count == 1 else f"{word} {count}x" for word, count in uses if count)
    said = f"{said}, deleted" if file.is_deleted else said
    return f"{file.path} ({said})" + (f": {file.finding}" if file.finding else "")

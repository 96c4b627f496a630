"""An agent's activity, from its tool calls: files, commands, errors and to-dos.

No model is asked, so the result is exact for known tools: those of Claude Code, Codex, Gemini CLI, opencode, Cursor and
SWE-agent. A call of another tool counts as OTHER, with the path that its arguments name.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache

from trace_store.base.frozen import value
from trace_store.context.file_paths import normal_path
from trace_store.objects.parts import ToolCall, ToolResult

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from trace_store.context.compiled import MessageLike
    from trace_store.objects.address import Address

READ = "read"
WRITE = "write"
RUN = "run"
SEARCH = "search"
PLAN = "plan"
AGENT = "agent"
"""Another agent's work."""
ASK = "ask"
"""A question to the user, which the result answers."""
OTHER = "other"
DROPPED = "dropped"
"""The status of an open to-do that a later list left out."""

_KINDS = {
    READ: "read readfile readmanyfiles readtextfile view viewfile openfile open cat",
    WRITE: "write writefile edit editfile multiedit create createfile strreplace replace insert applypatch patch "
    "notebookedit searchreplace",
    RUN: "bash shell localshell exec execcommand runshellcommand runterminalcmd runcommand bashcommand terminal "
    "executebash",
    SEARCH: "grep glob ls list listdirectory searchfilecontent find findfile codebasesearch websearch webfetch "
    "searchdir searchfile",
    PLAN: "todowrite todo updateplan writetodos taskcreate taskupdate",
    AGENT: "task agent dispatchagent spawnagent runsubagent delegate",
    ASK: "askuserquestion requestuserinput askuser askfollowupquestion question askquestion",
}
_KIND_OF = {name: kind for kind, names in _KINDS.items() for name in names.split()}
_EDITORS = frozenset(("strreplaceeditor", "strreplacebasededittool", "texteditor"))
_PATHS = ("file_path", "filePath", "path", "absolute_path", "filename", "notebook_path", "file")
_COMMANDS = ("command", "cmd", "keystrokes", "script", "code", "pattern", "query", "url", "prompt")
_CONTENTS = ("content", "file_text", "contents")
_SPANS = ("offset", "limit", "start_line", "end_line", "view_range", "line_start", "line_end")
_SCRIPTED = re.compile(r"exec_command\(\{\s*\"?cmd\"?:\s*([\"'`])(.*?)(?<!\\)\1", re.DOTALL)
"""The commands in a script of Codex, which calls its tools from JavaScript."""
_SCRIPT_LIST = re.compile(r"\bcmds?\s*=\s*\[(.*?)\n?\]\s*;", re.DOTALL)
_SCRIPT_TEXT = re.compile(r"([\"'`])((?:\\.|(?!\1)[^\\\n])*)\1")
_SCRIPT_TOOL = re.compile(r"\btools\.(\w+)\(")
_CHANGES_FOLDER = re.compile(r"\s*(?:cd [^&;|\n]+(?:&&|;|\n)\s*(?:\\\n\s*)?)+(?=\S)")
_PATCHED = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$", re.MULTILINE)
_DELETED = re.compile(r"^\*\*\* Delete File: (.+)$", re.MULTILINE)
_REMOVES = re.compile(r"(?:^|&& |; )(?:git )?rm (?:-\w+ )*([^\s|;&<>*?-][^\s|;&<>*?]*)")
_SHELL_READ = re.compile(
    r"(?:cat|nl(?: -ba)?|((?:head|tail)(?: -n? ?\+?\d+)?|sed -n ['\"]?[\d,$]+p['\"]?)) ([^\s|;&<>*?]+)"
)
_GUIDANCE = re.compile(r"(?:^|[/\\])(?:SKILL|AGENTS|CLAUDE|GEMINI|CONTRIBUTING)\.md$")
_FOLDERS = ("workdir", "cwd", "working_directory", "dir_path", "directory")
_EXIT = re.compile(
    r"(?:\"exit_code\": ?|[Ee]xit code:? |exited with code |exit status )(-?\d+)(?=[^\w\s]|\s*$)",
    re.MULTILINE,
)
_HEADER = re.compile(
    r"(?:Chunk ID|Wall time|Original token count|Output|Script \w+|Total output|Process exited with)\b"
)
"""Lines that Codex puts before the output of a command."""
_TEST = re.compile(
    r"(?<![\w-])(?:pytest|tox|nox|unittest|go test|cargo (?:test|nextest)"
    r"|(?:npm|pnpm|yarn|bun)(?: run| -(?:F|C|w|-filter|-dir|-cwd|-prefix|-workspace) \S+| -\S+)* test"
    r"|jest|vitest|mocha|mvn test|gradle\w* test|rspec|phpunit|ctest|make (?:test|check)"
    r"|mise run test\S*)(?![\w-]|\.\w)"
)
_FAILURE = re.compile(
    r"(?:[\w.]*(?:error|exception|failure)|fatal|failed)(?: [\w()]+){0,4}[:>]|traceback \(most recent"
    r"|failed to \w|could not \w|no such file|permission denied|command not found"
    r"|(?:the )?(?:string|text|old_string) (?:to replace )?(?:was )?not found",
    re.IGNORECASE,
)
"""How an output begins that reports a failure, in formats without a flag for it."""
_SAYS_FAILURE = re.compile(
    r"\(fail\)|^\W*(?:(?i:result|status|verdict): )?(?:FAIL(?:ED|URE)?|ERROR)\b|---? FAIL"
    r"|\.\.\. FAILED|^\s*not ok\b|^\s*[✗✘✕×]|^E\s{2,}\S"
    r"|(?i:\b(?:error|fatal|panic|exception|failure)(?:\[[\w-]+\]| [a-z]{1,5}-?\d+)?: )"
    r"|\w*(?:Error|Exception)(?:: | \[|$)|^\S+?:\d+:\d+: \w|\d+:\d+\s+error\b"
    r"|\bE(?:CONN[A-Z]+|NOENT|ACCES|ADDRINUSE|TIMEDOUT|PERM|PIPE|NOTFOUND)\b|^\s*ERROR\b"
    r"|(?i:\berror during \w+|\bno matches found)"
    r"|(?i:\b(?:unable|failed) to \w|\bcould not \w|connection refused|timed out|build failed)"
    r"|(?i:traceback \(most recent|segmentation fault|core dumped|command not found|no such file or directory)"
    r"|(?i:permission denied|symbol\(s\) not found|undefined reference|panicked at|npm err!|\*\*\* .*error \d)"
    r"|(?i:exit(?:ed)?(?: with)? (?:code|status):? ?[1-9]\d*|\b[1-9]\d* (?:failed|failing|failures?|errors?)\b)",
)
"""Lines in the forms in which compilers, tracebacks, tests and commands say what failed."""
_NONE_FAILED = re.compile(
    r"\b(?:0|no|without|zero) (?:\w+ )?(?:errors?|fail\w*|exceptions?|warnings?)\b", re.IGNORECASE
)
_COUNTS_CHECKS = re.compile(
    r"(?:^|[^\w\s]\s*|\b(?:tests?|files?|suites?|specs?|examples?)\s+)\d[\d,]* "
    r"(?:tests? )?(?:pass(?:ed|ing)?|fail(?:ed|ing|ures?)?|errors?)\b"
    r"|\b(?:built in|build succeeded|all checks passed)\b|^\W*(?:result|status|verdict): (?:pass|fail)(?:ed)?\b",
    re.IGNORECASE,
)
"""Lines that say how tests, a build or a linter ended."""
_FRAME = re.compile(r"\s*at .*:\d+:\d+\)?$")
_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_PLACES_FAILURE = re.compile(
    r"\(fail\)|^\W*FAIL(?:ED)?\b \S|---? FAIL|\.\.\. FAILED|^\s*not ok\b|^\s*[✗✘✕×]|^E\s{2,}\S"
    r"|[\w/\\-]\.\w{1,5}[:(]\d+.*\w|\d+:\d+\s+error\b|panicked at"
)
"""Those that name a test or a place."""
_NAMES_FAILURE = re.compile(
    r"(?i:\b(?:fatal|panic|error|exception)\b[^:]{0,40}: )|\w(?:Error|Exception): "
)
"""Those that name the failure, rather than say that there is one."""
_SHOWS_TEXT = re.compile(
    r"\s*(?:cd [^&;|]+(?:&&|;)\s*)*(?:\S*/)?(?:cat|nl|sed|head|tail|less|grep|egrep|rg|ag|ls|find|tree|awk|jq|diff|wc"
    r"|git(?: -\S+| -C \S+)* (?:diff|show|log|status|grep|blame))\b"
)
_LOG_FILE = re.compile(r"\.(?:log|out|output|err)\b")
_DIFFERS = re.compile(
    r"(?:^|&&|;|\|)\s*(?:git (?:diff|grep)|diff|cmp|e?grep|rg|ag|test|\[)\s[^&;|]*$"
)
"""Commands whose exit code 1 means a difference or no match, not a failure."""
"""Commands that print files or history, in which a word such as "error" says nothing about the command."""
_NO_FAILURE = re.compile(
    r"sibling tool call errored|request interrupted|interrupted by (?:the )?user|cancell?ed|^\^C$",
    re.IGNORECASE,
)
"""How the output of a call ends that was stopped, and did not fail by itself."""
REJECTED = re.compile(r"user (?:doesn't want to proceed|rejected|declined|denied)", re.IGNORECASE)
"""What an output says of a call that the user refused."""
_QUESTION_CHARACTERS = 200
_AROUND_ANSWER = re.compile(
    r"^user (?:has answered your questions?|responded|selected|answered): *"
    r"|\s*you can now continue with the user's answers in mind\.?$",
    re.IGNORECASE,
)
_WITHOUT_EXIT = frozenset((READ, WRITE, SEARCH, PLAN, AGENT, ASK))
_FIELD = re.compile(r"^\"\w+\": ?\"(.*?)(?:\\n)*\",?$")
"""A field in an output that is JSON."""
_LONGEST_LINE = 240
_HEAD_CHARACTERS = 2_000
_ERROR_CHARACTERS = 200


@value
class Action:
    """The action of one tool call.

    Attributes:
        kind: READ, WRITE, RUN, SEARCH, PLAN or OTHER.
        paths: the files that it names.
        text: the command, pattern or other main argument, or "".
        span: the part of the file that a read returns, as an opaque value to compare; "" for the whole file.
        folder: the folder that its relative paths start from, or "" if the call does not say.
        content: the whole text of the file that it writes, or "".
    """

    kind: str
    paths: tuple[str, ...]
    text: str
    span: str = ""
    folder: str = ""
    content: str = ""

    @property
    def subject(self) -> str:
        """A short name for it: the file names, or the first line of the command."""
        if self.paths:
            return ", ".join(path.rstrip("/").rsplit("/", 1)[-1] for path in self.paths)
        text = self.text.strip()
        if self.kind == RUN:
            text = _CHANGES_FOLDER.sub("", text, count=1) if text.startswith("cd ") else text
        return text.split("\n", 1)[0]

    @property
    def is_test(self) -> bool:
        """Whether it runs tests."""
        return self.kind == RUN and _TEST.search(self.text) is not None

    @property
    def is_guidance(self) -> bool:
        """Whether it reads instructions for agents."""
        return self.kind == READ and any(map(_GUIDANCE.search, self.paths))

    @property
    def deleted(self) -> tuple[str, ...]:
        """The files that it deletes."""
        if self.kind == RUN:
            return tuple(map(normal_path, _REMOVES.findall(self.text)))
        return tuple(map(normal_path, _DELETED.findall(self.text))) if self.kind == WRITE else ()


@value
class Outcome:
    """How a tool call ended.

    Attributes:
        failed: whether the tool or the command reported a failure.
        exit_code: of a command, or None if none was reported.
        error: the line of the output that names the failure, or "".
    """

    failed: bool
    exit_code: int | None
    error: str


@value
class ToolStep:
    """A tool call with its outcome.

    Attributes:
        action: what it does.
        outcome: how it ended; None without a result.
        call: the address of the message with the call; None outside a repository.
        result: the address of the message with the result, likewise.
        said: the text of the result.
    """

    action: Action
    outcome: Outcome | None
    call: Address | None
    result: Address | None
    said: str = ""


@value
class FileUse:
    """Use of a file: number of reads and writes, the message with the last call, and whether that deleted it."""

    path: str
    reads: int
    writes: int
    last: Address | None
    is_deleted: bool = False


@value
class ToDo:
    """An item of the agent's last to-do list; the status is the tool's own word, such as `completed`."""

    text: str
    status: str

    @property
    def is_done(self) -> bool:
        """Whether it is done."""
        return self.status in ("completed", "done", "cancelled", "deleted")


@value
class Activity:
    """The activity of an agent.

    Attributes:
        steps: all tool calls, in order.
        files: files that it read or wrote, by last use, the latest last.
        todos: its last to-do list.
        all_todos: the to-dos of all lists by their latest state, in the order in which they came up. Open ones that a
            later list left out have the status DROPPED.
        replaces_todos: whether a list among them replaced what came before.
    """

    steps: tuple[ToolStep, ...]
    files: tuple[FileUse, ...]
    todos: tuple[ToDo, ...]
    all_todos: tuple[ToDo, ...] = ()
    replaces_todos: bool = False

    @property
    def commands(self) -> tuple[ToolStep, ...]:
        """The steps that run commands."""
        return tuple(step for step in self.steps if step.action.kind == RUN)

    @property
    def errors(self) -> tuple[ToolStep, ...]:
        """The steps that failed."""
        return tuple(step for step in self.steps if step.outcome and step.outcome.failed)


def activity_of(messages: Iterable[MessageLike]) -> Activity:
    """Return the activity of the tool calls in some messages.

    Raises:
        ObjectNotFoundError, CorruptObjectError: content is missing or damaged.
    """
    calls: list[tuple[ToolCall, Address | None]] = []
    results: dict[str, tuple[ToolResult, Address | None]] = {}
    for message in messages:
        address = getattr(message, "address", None)
        for part in message.parts:
            if isinstance(part, ToolCall):
                calls.append((part, address))
            elif isinstance(part, ToolResult):
                results[part.call_id] = part, address
    steps = []
    todos: dict[str, ToDo] = {}
    all_todos: dict[str, ToDo] = {}
    replaces = False
    for call, address in calls:
        result, at = results.get(call.id, (None, None))
        action = action_of(call)
        outcome = None if result is None else outcome_of(result, action)
        said = "" if result is None else result.text
        steps.append(ToolStep(action, outcome, address, at, said))
        if action.kind == PLAN:
            replaces |= update_todos(todos, call, result)
            all_todos.update((each.text, each) for each in todos.values())
    listed = {each.text for each in todos.values()}
    latest = (
        each if each.is_done or each.text in listed else ToDo(each.text, DROPPED)
        for each in all_todos.values()
    )
    files, listed_last = tuple(_files(steps)), tuple(todos.values())
    return Activity(tuple(steps), files, listed_last, tuple(latest), replaces)


def answers_in(messages: Iterable[MessageLike]) -> dict[int, str]:
    """Return what the user answered to questions that a tool asked, with the question, by position of the message."""
    asked: dict[str, str] = {}
    found: dict[int, str] = {}
    for at, message in enumerate(messages):
        for part in message.parts:
            if isinstance(part, ToolCall) and kind_of_tool(part.name) == ASK:
                question = _first_text(_arguments(part.arguments), ("question",))
                asked[part.id] = " ".join(question.split())[:_QUESTION_CHARACTERS]
            elif isinstance(part, ToolResult) and part.call_id in asked and part.text.strip():
                answer = _AROUND_ANSWER.sub("", part.text.strip())
                question = asked[part.call_id]
                found[at] = f"{question} → {answer}" if question else answer
    return found


def kind_of_tool(name: str) -> str:
    """Return the kind of action that a tool's name suggests; its arguments may tell better."""
    name = _plain_name(name)
    return WRITE if name in _EDITORS else _KIND_OF.get(name, OTHER)


def action_of(call: ToolCall) -> Action:
    """Return a tool call's action, by the names of its tool and its arguments."""
    arguments = _arguments(call.arguments)
    is_editor = _plain_name(call.name) in _EDITORS
    kind = kind_of_tool(call.name)
    if is_editor and arguments.get("command") == "view":
        kind = READ
    text = "" if is_editor else _first_text(arguments, _COMMANDS)
    if not text and kind in (OTHER, AGENT):
        text = _first_text(arguments, ("description", "plan", "title")).lstrip("# ") or call.name
    if not arguments:
        text = _script_actions(call.arguments)
    path = _first_text(arguments, _PATHS)
    patch = text or _first_text(arguments, ("input", "patch", "patchText"))
    if patched := _PATCHED.findall(patch):
        return Action(WRITE, tuple(dict.fromkeys(map(normal_path, patched))), patch)
    folder = normal_path(_first_text(arguments, _FOLDERS))
    if kind == RUN and (read := _SHELL_READ.fullmatch(text.strip())):
        return Action(READ, (normal_path(read[2]),), text, read[1] or "", folder)
    span = {key: arguments[key] for key in _SPANS if arguments.get(key) is not None}
    content = _first_text(arguments, _CONTENTS) if kind == WRITE else ""
    said = json.dumps(span) if span else ""
    return Action(kind, (normal_path(path),) if path else (), text, said, folder, content)


def _script_actions(script: str) -> str:
    """Return the patch or the commands in a script of Codex, else the tools that it calls; other texts as they are."""
    if not (tools := _SCRIPT_TOOL.findall(script)):
        return script
    if "*** Begin Patch" in script:
        return script.replace("\\n", "\n")
    commands = [command for _, command in _SCRIPTED.findall(script)]
    if not commands and (listed := _SCRIPT_LIST.search(script)):
        texts = [text for _, text in _SCRIPT_TEXT.findall(listed[1])]
        commands = [text for text in texts if " " in text] or texts  # labels may stand beside them
    return "; ".join(commands or dict.fromkeys(tools))


def test_program(command: str) -> str:
    """Return the program that runs tests in a command, or ""."""
    found = _TEST.search(command)
    return found[0] if found else ""


def is_header(line: str) -> bool:
    """Return True for a line that Codex puts before the output of a command."""
    return _HEADER.match(line) is not None


def output_lines(text: str) -> list[str]:
    """Return the lines of an output without blanks around them, blank ones, and what Codex puts before an output.

    Some tools wrap an output in a JSON object.
    """
    lines = (line.strip() for line in unwrapped(text).splitlines())
    return [line for line in lines if line and not _HEADER.match(line)]


def unwrapped(text: str) -> str:
    """Return the text inside the JSON object in which some tools wrap an output, with or without a header."""
    start = text.find("{")
    if start < 0 or not all(is_header(line) for line in text[:start].splitlines() if line.strip()):
        return text
    found = _arguments(text[start:])
    inner = found.get("output", found.get("content"))
    return inner if isinstance(inner, str) else text


def says_failure(line: str) -> bool:
    """Return True if a line of an output says what failed: of a compiler, a traceback, a test or a command."""
    line = _ANSI.sub("", line[:_LONGEST_LINE])
    if is_stack_frame(line):
        return False
    return _SAYS_FAILURE.search(line) is not None and not _NONE_FAILED.search(line)


def is_stack_frame(line: str) -> bool:
    """Return True for a frame of a JavaScript stack, which names a place and no failure."""
    return _FRAME.match(line) is not None


def counts_checks(line: str) -> bool:
    """Return True if a line of an output says how tests, a build or a linter ended."""
    return _COUNTS_CHECKS.search(line[:_LONGEST_LINE]) is not None


def failure_rank(line: str) -> int:
    """Return 0 for a line that names a test or a place that failed, 1 for one that names the failure, else 2."""
    line = line[:_LONGEST_LINE]
    if _PLACES_FAILURE.search(line):
        return 0
    return 1 if _NAMES_FAILURE.search(line) else 2


def may_say_failure(action: Action, outcome: Outcome) -> bool:
    """Return True if lines of an output that look like failures are some: not in a file, a search or a difference."""
    is_log = any(map(_LOG_FILE.search, (action.text, *action.paths)))
    return outcome.failed or is_log or (action.kind in (RUN, OTHER) and not shows_text(action))


def shows_text(action: Action) -> bool:
    """Return True if a command only prints files or history, so that its failure leaves nothing undone."""
    return action.kind == RUN and _SHOWS_TEXT.match(action.text) is not None


def was_stopped(outcome: Outcome) -> bool:
    """Return True if a call was stopped, by its user or with others, and did not fail by itself."""
    return _NO_FAILURE.search(outcome.error) is not None


def reports_failure(text: str) -> bool:
    """Return True if an output begins as a report of a failure does, or is a JSON object with an error."""
    start = text.lstrip()
    if start[:1] == "{":
        found = _arguments(text)
        return bool(found.get("error")) or found.get("success") is False
    return _FAILURE.match(start.lstrip("<[(*")) is not None


def outcome_of(result: ToolResult, action: Action | None = None) -> Outcome:
    """Return how a call ended.

    The tool's own flag says it, or the exit code that the output of a command names first, or else how the output
    begins. A comparison or a search that ends with 1 has found a difference, or nothing.
    """
    text = result.text
    start, end = text[:_HEAD_CHARACTERS], text[_HEAD_CHARACTERS:][-_HEAD_CHARACTERS:]
    if (
        action is not None and action.kind in _WITHOUT_EXIT
    ):  # a file or a report may name exit codes
        lines = (start + end).splitlines()
        start, end = "\n".join(x for x in lines if is_header(x) or '"exit_code"' in x), ""
    found = _exit_in(start) or _exit_in(end)
    code = int(found[1]) if found else None
    failed = bool(result.is_error) or bool(code) or (code is None and reports_failure(text))
    error = ""
    if failed:
        # A line of brackets alone, as JSON begins, says nothing.
        plain = _ANSI.sub("", unwrapped(text))
        lines = [line.strip() for line in plain.splitlines() if any(map(str.isalnum, line))]
        lines = [line for line in lines if not _exit_in(line) and not _HEADER.match(line)]
        saying = [line for line in lines if says_failure(line)]
        error = next(iter((*sorted(saying, key=failure_rank), *lines)), "")
        differs = action is not None and action.kind == RUN and _DIFFERS.search(action.text)
        failed = not (differs and code == 1 and not saying)
        error = _FIELD.sub(r"\1", error) if failed else ""
    return Outcome(failed, code, error[:_ERROR_CHARACTERS])


def _exit_in(text: str) -> re.Match[str] | None:
    return _EXIT.search(text) if "xit" in text else None  # "xit" is quicker to find


def _files(steps: Iterable[ToolStep]) -> Iterable[FileUse]:
    found: dict[str, FileUse] = {}
    for step in steps:
        if step.outcome is not None and step.outcome.failed:
            continue
        wrote, deleted = step.action.kind == WRITE, step.action.deleted
        paths = step.action.paths if step.action.kind in (READ, WRITE) else ()
        for path in (*paths, *(each for each in deleted if each in found and each not in paths)):
            known = found.pop(path, FileUse(path, 0, 0, None))
            writes = known.writes + (wrote or path in deleted)
            reads = known.reads + (not wrote and path not in deleted)
            found[path] = FileUse(path, reads, writes, step.call, path in deleted)
    return found.values()


def update_todos(todos: dict[str, ToDo], call: ToolCall, result: ToolResult | None) -> bool:
    """Apply a PLAN call to a to-do list, and return whether it replaced the list; else a task is added or changed."""
    arguments = _arguments(call.arguments)
    items = next((arguments[key] for key in ("todos", "plan", "items") if key in arguments), None)
    if isinstance(items, list):
        todos.clear()
        for number, item in enumerate(each for each in items if isinstance(each, dict)):
            text = _first_text(item, ("content", "step", "text", "title", "description"))
            todos[str(number)] = ToDo(text, str(item.get("status", "")))
        return True
    if arguments.get("subject"):
        said = "" if result is None else result.text
        numbered = re.search(r"#(\d+)", said)
        name = numbered[1] if numbered else str(len(todos) + 1)
        todos[name] = ToDo(str(arguments["subject"]), "pending")
    elif (name := str(arguments.get("taskId", ""))) in todos and arguments.get("status"):
        todos[name] = ToDo(todos[name].text, str(arguments["status"]))
    return False


@lru_cache(512)
def _plain_name(name: str) -> str:
    return re.sub(r"[^a-z]", "", name.rsplit("__", 1)[-1].lower())


def _arguments(text: str) -> Mapping[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def texts_in(arguments: str) -> Iterator[str]:
    """Yield the texts in the arguments of a call, at any depth; of arguments that are no JSON object, all of them."""
    found = _arguments(arguments)
    waiting: list[Any] = [found] if found else [arguments]
    while waiting:
        each = waiting.pop()
        if isinstance(each, str):
            yield each
        elif isinstance(each, dict | list):
            waiting += each.values() if isinstance(each, dict) else each


def _first_text(arguments: Mapping[str, Any], keys: Sequence[str]) -> str:
    for key in keys:
        found = arguments.get(key)
        if not found:
            continue
        if isinstance(found, list):
            found = " ".join(map(str, found))
        if isinstance(found, str) and found:
            return found
    return ""

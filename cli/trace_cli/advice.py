"""The exit code and the hint of each error.

Rule: errors of the library say what is wrong. What to type is said here, or by the command itself.
"""

from __future__ import annotations

import shlex

from trace_cli.failures import (
    EXIT_BUG,
    EXIT_DAMAGED,
    EXIT_INTERRUPTED,
    EXIT_INVALID,
    EXIT_OK,
    EXIT_OUTPUT_CLOSED,
    EXIT_USAGE,
    OutputClosedError,
)
from trace_store.errors import (
    AlreadyExistsError,
    AmbiguousRevisionError,
    BudgetError,
    ConcurrencyError,
    ConflictError,
    ErrorCode,
    FormatError,
    InvalidInputError,
    ModelError,
    NotFoundError,
    RenderError,
    RepositoryNotFoundError,
    StateError,
    StorageError,
    TaskError,
    TraceError,
    UnbornBranchError,
    UnreadableInputError,
    UnsupportedFormatError,
    UntrustedRepositoryError,
)

# An error gets the code of the first class here that it belongs to: special cases stand before their group.
EXIT_CODES: tuple[tuple[type[TraceError], int, str], ...] = (
    (RepositoryNotFoundError, 10, "not a Trace repository"),
    (NotFoundError, 4, "an object, ref, revision or message was not found"),
    (AlreadyExistsError, 5, "the name is already taken"),
    (InvalidInputError, EXIT_USAGE, "the command or its input is invalid"),
    (StateError, 6, "not possible in the current state"),
    (ConflictError, 3, "a conflict has to be resolved"),
    (ConcurrencyError, 11, "another process got there first; try again"),
    (UnsupportedFormatError, 13, "written by another version of Trace"),
    (FormatError, EXIT_DAMAGED, "the repository or the input is corrupt"),
    (StorageError, 14, "the disk failed or refused access"),
    (BudgetError, 15, "the context is over its budget"),
    (ModelError, 16, "the model is unreachable, refuses, or gave an invalid answer"),
    (TaskError, 17, "the task system is unreachable, refuses, or gave an invalid answer"),
    (
        RenderError,
        EXIT_INVALID,
        "the context is not valid for the provider, or would lose content",
    ),
)

OTHER_EXIT_CODES: tuple[tuple[int, str], ...] = (
    (EXIT_OK, "success"),
    (
        EXIT_BUG,
        "an unexpected error, which is a bug in Trace; `merge-base`: no common ancestor, or not an ancestor",
    ),
    (EXIT_INTERRUPTED, "interrupted from the keyboard"),
    (EXIT_OUTPUT_CLOSED, "the reader of the output stopped reading"),
)

HINTS: dict[str, str] = {
    ErrorCode.REPOSITORY_NOT_FOUND: "`trace init` creates a repository here; --dir names one elsewhere",
    ErrorCode.OBJECT_NOT_FOUND: "`trace fsck` checks whether more is missing",
    ErrorCode.PURGED_OBJECT: "it was deleted permanently; `trace fsck` lists what was purged and why",
    ErrorCode.COMMON_CONTENT: "--force purges it anyway",
    ErrorCode.REF_NOT_FOUND: "`trace branch` lists branches, `trace for-each-ref` all refs",
    ErrorCode.REVISION_NOT_FOUND: "`trace branch` and `trace tag` list names, `trace log` commits",
    ErrorCode.SESSION_NOT_FOUND: "`trace sessions` lists sessions",
    ErrorCode.REQUEST_TOO_LARGE: "`trace sessions preview` shows the parts; start a session with a larger --limit",
    ErrorCode.SESSION_CLOSED: "`trace sessions reopen` opens it again",
    ErrorCode.REFLOG_TOO_SHORT: "`trace reflog {name}` lists its entries",
    ErrorCode.NO_UPSTREAM: "`trace branch -u UPSTREAM` sets one; or name a revision",
    ErrorCode.MESSAGE_NOT_FOUND: "`trace compile --table` lists messages and their addresses",
    ErrorCode.INVALID_REF_NAME: "use letters, digits and - _ . / as in `idea` or `feature/one`",
    ErrorCode.INVALID_ADDRESS: "an address is COMMIT.N, such as HEAD.0; `trace compile --table` lists them",
    ErrorCode.INVALID_MESSAGE: "roles are system, developer, user, assistant and tool",
    ErrorCode.INVALID_TODO: "a line is pick, reword, edit, squash, fixup or drop, and a commit id",
    ErrorCode.TAG_EXISTS: "-f replaces it; the old value goes to the trash",
    ErrorCode.BRANCH_EXISTS: "`branch -f`, `branch -M` and `switch -C` replace it; the old tip goes to the trash",
    ErrorCode.DETACHED_HEAD: "`trace switch NAME` goes to a branch, `trace switch -c NAME` creates one here",
    ErrorCode.NOTHING_STAGED: "`trace reset REVISION` stages the commits after it",
    ErrorCode.STAGED_ELSEWHERE: "`trace branch NAME {staged}` creates a branch from it",
    ErrorCode.NOTHING_TO_UNDO: "purge, prune and config move no ref and cannot be undone; --all undoes what others did",
    ErrorCode.CANNOT_UNDO: "`trace undo 1` undoes the one before it; `trace undo --list` lists them",
    ErrorCode.NOTHING_TO_REDO: "redo applies after `trace undo` only",
    ErrorCode.STORE_REWOUND: "`trace adopt` accepts the current state, `trace adopt --keep-mine` restores the old one",
    ErrorCode.REF_LOST: "`trace fsck --repair` restores what it can; `trace seal` accepts the loss",
    ErrorCode.BROKEN_HISTORY: "`trace fsck --repair` recovers what copies have, or goes back to a complete commit; "
    "`commit --branch NAME` starts a new branch",
    ErrorCode.BRANCH_GONE: "`trace undo` or `trace branch NAME ORIG_HEAD` restores it; --abort cancels the merge",
    ErrorCode.NO_COMMIT_LEFT: "`trace branch -d` deletes a branch",
    ErrorCode.TOO_LARGE: "split it into several commits",
    ErrorCode.UNBORN_BRANCH: "`trace commit --user TEXT` or `trace import FILE` creates the first commit",
    ErrorCode.SECRET_FOUND: "--secrets redact stores a placeholder; `trace secrets allow` marks a false positive",
    ErrorCode.LOCKED: "try again when the other process has finished",
    ErrorCode.REF_CHANGED: "check where the ref is now and try again",
    ErrorCode.FORMAT: "`trace fsck` reports what is corrupt",
    ErrorCode.CORRUPT_OBJECT: "`trace fsck` reports what is corrupt",
    ErrorCode.CORRUPT_PACK: "`trace fsck` reports what is corrupt",
    ErrorCode.CORRUPT_JOURNAL: "`trace fsck` reports what is corrupt",
    ErrorCode.CORRUPT_INDEX: "`trace compile-index --rebuild` rebuilds it",
    ErrorCode.CORRUPT_BUNDLE: "copy or send the file again; nothing was imported",
    ErrorCode.CORRUPT_CONFIG: "`trace fsck --repair` rewrites it with the settings that can be read",
    ErrorCode.CONFIG_CONFLICT: "`git checkout --ours .trace/config` or --theirs takes one side",
    ErrorCode.UNKNOWN_ROOTS: "`trace fsck` reports the problem; missing objects may be on another git branch",
    ErrorCode.UNSUPPORTED_FORMAT: "install the version of Trace that wrote it, or a newer one",
    ErrorCode.NO_FULL_TEXT_SEARCH: "`trace search --regex` works without it",
    ErrorCode.RENDER: "without --strict it is repaired on the fly; `trace repair` creates a repaired branch",
    ErrorCode.BUDGET: "omit --strict to print it anyway; `trace config budget` sets the limit",
    ErrorCode.TARGET_UNREACHABLE: "give a larger target, or trim with --partial; `trim --dry-run` shows what stays",
    ErrorCode.MODEL_UNREACHABLE: "`trace model` shows the settings, `trace model test` tries them; nothing was written",
    ErrorCode.MODEL_REFUSED: "`trace model` shows where the key comes from; nothing was written",
    ErrorCode.MODEL_NONSENSE: "try again, or another model: `trace config model.name NAME`; nothing was written",
    ErrorCode.NO_MODEL: "`trace config model.name NAME` sets one; `trace config model` lists the settings",
    ErrorCode.NO_KEY: "set {variable} or TRACE_MODEL_KEY, or run `trace config model.key -`",
    ErrorCode.OTHER_KEY: "set TRACE_MODEL_KEY to the key of this address",
    ErrorCode.READABLE_KEY: "run `chmod 600 {path}`",
    ErrorCode.UNENCRYPTED: "use https; in a trusted network `trace config model.allow_http true` allows http",
    ErrorCode.REDIRECTED: "set the final address: `trace config model.url URL`",
    ErrorCode.PROPOSAL_REJECTED: "try again, or merge without `-s semantic`",
    ErrorCode.MERGE_CONFLICT: "`trace resolve` lists and resolves conflicts; then --continue, or --abort to cancel",
    ErrorCode.IN_PROGRESS: "`trace resolve` lists open conflicts; --continue finishes, --abort cancels",
    ErrorCode.CHECKPOINT_NOT_FOUND: "`trace checkpoint list --all` lists them",
    ErrorCode.CHECKPOINT_EXISTS: "a checkpoint never moves; `trace checkpoint delete {name}` frees the name",
    ErrorCode.NOT_A_STATE: "`trace checkpoint inject {name}` puts it into a context",
    ErrorCode.NOT_A_SUMMARY: "`trace checkpoint restore {name}` goes back to it",
    ErrorCode.WOULD_ARCHIVE_HEAD: "`trace switch {name}` first",
    ErrorCode.UNDIVIDABLE: "fork from {commit}, or from the commit before it",
    ErrorCode.NAME_TAKEN_HERE: "`trace trash restore --as NAME` gives it another name",
    ErrorCode.NAMELESS: "`trace trash restore --as NAME` gives it a name",
    ErrorCode.NOT_IN_TRASH: "`trace trash` lists what can be restored",
    ErrorCode.BISECTION_FINISHED: "`trace bisect reset` ends the search",
    ErrorCode.INCONCLUSIVE: "--threshold K sets how many failures are bad; `trace bisect skip` skips it",
    ErrorCode.PREREQUISITES_MISSING: "first import a bundle that has them, or create one without --since",
    ErrorCode.NO_GAIN: "--force compresses anyway; another RANGE or a smaller --to may save more",
    ErrorCode.UNRELATED_HISTORIES: "--allow-unrelated-histories merges them: the other messages go after yours",
    ErrorCode.NOT_FAST_FORWARD: "without --ff-only a merge commit is created",
    ErrorCode.DROPS_PINNED: "--drop-pinned drops them anyway",
    ErrorCode.TRAJECTORY_NOT_FOUND: "`trace trajectory list` lists them",
    ErrorCode.TRAJECTORY_ENDED: "`trace trajectory reopen {name}` makes it active again",
    ErrorCode.RUN_NOT_FOUND: "`trace runs` lists them",
    ErrorCode.TRAJECTORY_ACTIVE: "`trace trajectory complete` or `trace trajectory abandon` ends it",
    ErrorCode.SEVERAL_TRAJECTORIES: "name one with --trajectory or TRACE_TRAJECTORY;"
    " `trace trajectory abandon --trajectory ID` ends one",
    ErrorCode.NO_TRAJECTORY: "`trace trajectory start TITLE` starts one; `trace trajectory list` lists all",
    ErrorCode.NO_GIT: "change to a folder of the code, or use -C",
    ErrorCode.CODE_NOT_FOUND: "`git log --oneline` lists commits; FILE and FILE:LINE are relative to this folder",
    ErrorCode.PORT_IN_USE: "--port 0 takes a free one; the page of an earlier `trace web` may still be open there",
    ErrorCode.PACKAGE_MISSING: "`pip install 'trace-store[{extra}]'` installs it",
    ErrorCode.HOOK_TRACKED: 'add this line to it: trace hook git {hook} "$@" || :',
    ErrorCode.SETTINGS_REFUSED: "mend it and try again; nothing in it was changed",
    ErrorCode.BRIEF_NOT_ALLOWED: "if you trust what is recorded here, `trace brief --allow` allows it",
    ErrorCode.HOOK_EXISTS: "move or delete {path}, which is not called any more, and try again",
    ErrorCode.TASK_UNREACHABLE: "without --fetch nothing is asked; nothing was written",
    ErrorCode.TASK_REFUSED: "check {needs}; nothing was written",
    ErrorCode.TASK_NONSENSE: "try again later, or without --fetch; nothing was written",
    ErrorCode.TASK_NOT_FOUND: "check the id, or name the system with --system; nothing was written",
    ErrorCode.NO_TASK_KEY: "set {variable}",
    ErrorCode.EVENT_NOT_FOUND: "`trace trajectory show {name}` numbers decisions: d1; --json has all addresses",
    ErrorCode.NO_TASK_SYSTEM: "set LINEAR_API_KEY or TRACE_JIRA_URL, or name another system with --system",
    ErrorCode.SEVERAL_RESULTS: "--call ID edits one of them, --all edits all",
    ErrorCode.INTERNAL: "please report this, with the output under `TRACE_DEBUG=1`",
}
"""What to type, by error code; `{name}` stands for an attribute of the error."""

BEGUN: dict[str, str] = {
    "merge": "REVISION",
    "rebase": "UPSTREAM",
    "cherry-pick": "COMMIT",
    "revert": "COMMIT",
}
"""The argument in the usage of each command that can stop at a conflict."""

_GIT_REMOTE = (
    "`git push` and `git pull` carry .trace/ with the project; `trace bundle` shares a file"
)
_HISTORY = "`trace log` lists commits, `trace sessions` agent sessions"
_SEARCH = "`trace search TEXT` finds messages, `trace whohas TEXT` the branches that contain them"
_HIDE = "`trace remove ADDRESS` hides a message, `trace skip ADDRESS` leaves it out of the context"
_SHORTEN = (
    "`trace rebase -i` squashes commits, `trace remove` hides messages; `trace du` shows disk usage"
)

INSTEAD: dict[str, str] = {
    "add": "`trace commit` records messages directly; there is no staging area",
    "am": "`trace bundle import FILE` imports branches and their history from a file",
    "apply": "`trace bundle import FILE` imports branches and their history from a file",
    "archive": "`trace export` writes a session to a file, `trace bundle create` whole branches",
    "cat": "`trace show ADDRESS` prints a message, `trace compile` the whole context",
    "clone": "`git clone` copies .trace/ with the project; `trace bundle import FILE` imports a file",
    "compact": _SHORTEN,
    "context": "`trace compile` prints the context, `trace compile --table` lists its messages",
    "conversations": "`trace sessions` lists agent sessions",
    "copy": "`trace cherry-pick COMMIT` copies commits or messages to this branch",
    "cp": "`trace cherry-pick COMMIT` copies commits or messages to this branch",
    "delete": _HIDE,
    "fetch": "`git pull` brings .trace/ with the project; `trace bundle import FILE` imports a file",
    "find": _SEARCH,
    "format-patch": "`trace bundle create FILE` writes branches and their history to a file",
    "grep": _SEARCH,
    "head": "`trace log -n 5` lists the newest commits, `trace status` shows the branch",
    "hide": _HIDE,
    "history": _HISTORY,
    "ignore": "`trace skip ADDRESS` leaves a message out of the context",
    "list": _HISTORY,
    "ls": "`trace compile --table` lists messages, `trace branch` branches, `trace sessions` sessions",
    "ls-files": "`trace compile --table` lists the messages of a context",
    "messages": "`trace compile --table` lists the messages of a context",
    "mv": "`trace move ADDRESS --after ADDRESS` moves a message; `trace branch -m` renames a branch",
    "new": "`trace init` creates a repository, `trace switch -c NAME` a branch",
    "notes": "`trace label ADDRESS --add LABEL` labels a message",
    "open": "`trace view` shows a session, `trace show` a commit or message",
    "print": "`trace compile` prints the context, `trace show ADDRESS` a message",
    "pull": "`git pull` brings .trace/ with the project; `trace merge` then joins diverged branches",
    "push": "`git push` sends .trace/ with the project; `trace bundle create FILE` writes a file",
    "read": "`trace view` shows a session, `trace show` a commit or message",
    "redact": "`trace secrets` finds secrets, `trace purge` deletes content permanently",
    "remote": _GIT_REMOTE,
    "rename": "`trace branch -m NAME` renames the current branch",
    "replay": "`trace export --native` writes a session that its agent can resume",
    "resume": "`trace export --native` writes a session that its agent can resume",
    "rm": _HIDE,
    "save": "`trace commit` records messages",
    "session": "`trace sessions` lists agent sessions",
    "show-ref": "`trace for-each-ref` lists refs",
    "size": "`trace du` shows disk usage, `trace status` the tokens of the context",
    "squash": "`trace merge --squash BRANCH` squashes a branch, `trace rebase -i` commits",
    "stash": "everything is committed already; `trace switch -c NAME` creates a branch",
    "summarize": _SHORTEN,
    "sync": _GIT_REMOTE,
    "tail": "`trace log -n 5` lists the newest commits, `trace view` shows the session",
    "tokens": "`trace status` shows the tokens of the context, `trace log --tokens` of each commit",
    "unpin": "`trace normal ADDRESS` resets the priority of a message",
    "worktree": "nothing is checked out: `trace commit --branch NAME` writes to any branch",
}
"""Hints for commands of git and other tools that Trace does not have."""


def exit_code(error: BaseException) -> int:
    """Return the exit code of a failure."""
    if isinstance(error, KeyboardInterrupt):
        return EXIT_INTERRUPTED
    if isinstance(error, OutputClosedError):
        return EXIT_OUTPUT_CLOSED
    for group, code, _ in EXIT_CODES:
        if isinstance(error, group):
            return code
    return EXIT_BUG


def hint(error: TraceError) -> str:
    """Return the one-line hint for an error; "" if there is none."""
    if isinstance(error, AmbiguousRevisionError):
        candidates = list(error.data.get("candidates") or ())  # type: ignore[call-overload]
        if candidates:
            # Ids are long; branch names are useless when cut.
            shown = ", ".join(
                str(each)[:16] if isinstance(each, bytes) else str(each) for each in candidates[:5]
            )
            more = f" and {len(candidates) - 5} more" if len(candidates) > 5 else ""
            return f"candidates: {shown}{more}"
    if isinstance(error, UnreadableInputError) and error.data.get("reason") == "trajectory":
        return "`trace trajectory import` reads trajectories of trail"
    if isinstance(error, UnreadableInputError) and error.data.get("detected"):
        return f"leave out --format, or give --format {error.data['detected']}"
    if isinstance(error, UnreadableInputError) and error.data.get("tried"):
        tried = ", ".join(list(error.data["tried"]))  # type: ignore[call-overload]
        return f"tried {tried}; `--format NAME` forces a format"
    if isinstance(error, UnbornBranchError) and error.data.get("branches"):
        first, *others = list(error.data["branches"])  # type: ignore[call-overload]
        more = "; `trace branch` lists all branches" if others else ""
        name = str(first).removeprefix("refs/heads/")
        return f"`trace switch {name}` goes to the branch worked on last{more}"
    if isinstance(error, UntrustedRepositoryError):
        path = shlex.quote(str(error.data.get("path", "")))
        return f"if you trust everyone who can write to it, run `trace trust {path}`"
    if error.code == ErrorCode.NOTHING_IN_PROGRESS:
        waiting, kind = error.data.get("waiting"), str(error.data.get("kind", ""))
        if waiting:
            return f"`trace {waiting} --continue` finishes it, `trace {waiting} --abort` cancels it"
        return f"`trace {kind} {BEGUN[kind]}` starts one" if kind in BEGUN else ""
    if error.code == ErrorCode.REVISION_NOT_FOUND and error.data.get("address"):
        named = error.data["address"]
        return f"`trace show {named}` shows it, `trace blame --address {named}` its commit"
    given = error.data.get("hint")
    return given if isinstance(given, str) else HINTS.get(error.code, "").format_map(error.data)

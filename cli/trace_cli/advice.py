"""What a failure means on the command line: its exit code and the hint that follows its message.

Rule: hints live here and nowhere else.
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
    TraceError,
    UnbornBranchError,
    UnreadableInputError,
    UnsupportedFormatError,
    UntrustedRepositoryError,
)

# The first class that an error belongs to decides, so a special case stands before its group.
EXIT_CODES: tuple[tuple[type[TraceError], int, str], ...] = (
    (RepositoryNotFoundError, 10, "not a Trace repository"),
    (NotFoundError, 4, "an object, ref, revision or message is not here"),
    (AlreadyExistsError, 5, "it exists already"),
    (InvalidInputError, EXIT_USAGE, "the call or its input is wrong"),
    (StateError, 6, "something has to be done first"),
    (ConflictError, 3, "a decision is needed"),
    (ConcurrencyError, 11, "somebody else was quicker; try again"),
    (UnsupportedFormatError, 13, "another version of Trace wrote this"),
    (FormatError, EXIT_DAMAGED, "the repository, or what was given, is damaged"),
    (StorageError, 14, "the disk failed or refused"),
    (BudgetError, 15, "the context is over its budget"),
    (ModelError, 16, "the model cannot be reached, refuses, or answers nonsense"),
    (
        RenderError,
        EXIT_INVALID,
        "the context is not valid for the provider, or would lose something",
    ),
)

OTHER_EXIT_CODES: tuple[tuple[int, str], ...] = (
    (EXIT_OK, "done"),
    (EXIT_BUG, "an unexpected error: a defect of Trace; of `merge-base`, without a word: no"),
    (EXIT_INTERRUPTED, "interrupted from the keyboard"),
    (EXIT_OUTPUT_CLOSED, "whoever read the output stopped reading"),
)

HINTS: dict[str, str] = {
    ErrorCode.REPOSITORY_NOT_FOUND: "`trace init` makes a repository here; --dir names one elsewhere",
    ErrorCode.OBJECT_NOT_FOUND: "`trace fsck` tells whether anything else is missing",
    ErrorCode.PURGED_OBJECT: "somebody removed it for good; `trace fsck` lists what was purged, and why",
    ErrorCode.COMMON_CONTENT: "--force purges it all the same",
    ErrorCode.REF_NOT_FOUND: "`trace branch` lists the branches, `trace for-each-ref` all refs",
    ErrorCode.REVISION_NOT_FOUND: "`trace branch` and `trace tag` list the names, `trace log` the commits",
    ErrorCode.NO_UPSTREAM: "`trace branch -u UPSTREAM` sets one; or name what is meant",
    ErrorCode.MESSAGE_NOT_FOUND: "`trace compile --table` shows the address of each message",
    ErrorCode.INVALID_REF_NAME: "letters, digits and - _ . / make a name, such as `idea` or `feature/one`",
    ErrorCode.INVALID_ADDRESS: "a commit and a number, such as HEAD.0; `trace compile --table` lists them",
    ErrorCode.INVALID_MESSAGE: "roles are system, developer, user, assistant and tool",
    ErrorCode.DETACHED_HEAD: "`trace switch NAME` goes to a branch, `trace switch -c NAME` begins one here",
    ErrorCode.STORE_REWOUND: "`trace adopt` goes on from what is there, `trace adopt --keep-mine` from what was",
    ErrorCode.REF_LOST: "`trace fsck --repair` brings back what is here; `trace seal` accepts that it is gone",
    ErrorCode.BROKEN_HISTORY: "`trace fsck --repair` goes back to what is whole; `commit --branch NAME` begins another",
    ErrorCode.TOO_LARGE: "several commits take what one does not",
    ErrorCode.UNBORN_BRANCH: "`trace commit --user TEXT` or `trace import FILE` makes the first commit",
    ErrorCode.SECRET_FOUND: "--secrets redact stores a placeholder instead; `trace secrets allow` takes it for none",
    ErrorCode.LOCKED: "try again when the other process is done",
    ErrorCode.REF_CHANGED: "look at the ref as it is now and try again",
    ErrorCode.FORMAT: "`trace fsck` tells what is damaged",
    ErrorCode.CORRUPT_OBJECT: "`trace fsck` tells what is damaged",
    ErrorCode.CORRUPT_PACK: "`trace fsck` tells what is damaged",
    ErrorCode.CORRUPT_JOURNAL: "`trace fsck` tells what is damaged",
    ErrorCode.CORRUPT_INDEX: "`trace compile-index --rebuild` writes it anew",
    ErrorCode.CORRUPT_BUNDLE: "have it sent or copied once more; nothing of it was taken",
    ErrorCode.UNKNOWN_ROOTS: "`trace fsck` tells what is wrong; what another branch of git has comes with it",
    ErrorCode.UNSUPPORTED_FORMAT: "install the version of Trace that wrote it, or a newer one",
    ErrorCode.RENDER: "without --strict it is repaired each time; `trace repair` does it once, on a branch beside",
    ErrorCode.BUDGET: "without --strict it is printed all the same; `trace config budget` sets what is allowed",
    ErrorCode.MODEL_UNREACHABLE: "`trace model` shows which is asked, `trace model test` tries it; nothing was written",
    ErrorCode.MODEL_REFUSED: "`trace model` shows where its key comes from; nothing was written",
    ErrorCode.MODEL_NONSENSE: "ask again, or another: `trace config model.name NAME`; nothing was written",
    ErrorCode.NO_MODEL: "`trace config model.name NAME` names one, and `trace config model` shows what else there is",
    ErrorCode.MERGE_CONFLICT: "`trace resolve` lists and settles conflicts; --continue goes on, --abort gives up",
    ErrorCode.IN_PROGRESS: "`trace resolve` lists what is open; --continue goes on, --abort gives up",
    ErrorCode.UNRELATED_HISTORIES: "--allow-unrelated-histories puts one after the other",
    ErrorCode.NOT_FAST_FORWARD: "without --ff-only a commit joins both",
    ErrorCode.DROPS_PINNED: "--drop-pinned drops it all the same",
    ErrorCode.INTERNAL: "please report this, with what `TRACE_DEBUG=1` adds",
}

BEGUN: dict[str, str] = {
    "merge": "REVISION",
    "rebase": "UPSTREAM",
    "cherry-pick": "COMMIT",
    "revert": "COMMIT",
}
"""What each command is given that may stop half-way."""

GIT_COMMANDS: dict[str, str] = {
    "add": "`trace commit` records messages at once; nothing is staged",
    "am": "`trace bundle import FILE` takes refs and all they lead to out of a file",
    "apply": "`trace bundle import FILE` takes refs and all they lead to out of a file",
    "archive": "`trace export` writes a session to a file, `trace bundle create` whole branches",
    "clone": "`git clone` brings .trace/ along with the project; `trace bundle import` takes a file",
    "fetch": "`git pull` brings .trace/ along with the project; `trace bundle import` takes a file",
    "format-patch": "`trace bundle create` writes refs and all they lead to into one file",
    "grep": "`trace log --text TEXT` finds commits, `trace whohas TEXT` branches and contexts",
    "ls-files": "`trace compile --table` lists the messages of a context",
    "mv": "`trace move ADDRESS --after ADDRESS` places a message elsewhere",
    "notes": "`trace label ADDRESS --add LABEL` marks a message",
    "pull": "`git pull` brings .trace/ along with the project; `trace merge` then joins what diverged",
    "push": "`git push` takes .trace/ along with the project; `trace bundle create` writes a file",
    "remote": "a remote is git's: .trace/ goes along with the project; `trace bundle` shares a file",
    "rm": "`trace remove ADDRESS` hides a message",
    "show-ref": "`trace for-each-ref` lists refs",
    "stash": "what is written is committed, so nothing waits; `trace switch -c NAME` begins a branch",
    "worktree": "nothing is checked out: `trace commit --branch NAME` writes to any branch from here",
}
"""What comes closest to a command that git has and Trace has not."""


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
    """Return what one may do about a failure, in one line; "" when there is nothing to say."""
    if isinstance(error, AmbiguousRevisionError):
        candidates = list(error.data.get("candidates") or ())  # type: ignore[call-overload]
        if candidates:
            # Ids are long; names of branches are of use only whole.
            shown = ", ".join(
                str(each)[:16] if isinstance(each, bytes) else str(each) for each in candidates[:5]
            )
            more = f" and {len(candidates) - 5} more" if len(candidates) > 5 else ""
            return f"it may be {shown}{more}"
    if isinstance(error, UnreadableInputError) and error.data.get("tried"):
        tried = ", ".join(list(error.data["tried"]))  # type: ignore[call-overload]
        return f"tried {tried}; `--format NAME` takes it for one of them"
    if isinstance(error, UnbornBranchError) and error.data.get("branches"):
        first, *others = list(error.data["branches"])  # type: ignore[call-overload]
        more = "; `trace branch` lists all branches" if others else ""
        name = str(first).removeprefix("refs/heads/")
        return f"`trace switch {name}` goes to a branch that has some{more}"
    if isinstance(error, UntrustedRepositoryError):
        path = shlex.quote(str(error.data.get("path", "")))
        return f"`trace trust {path}` opens it, should you trust whoever can write to it"
    if error.code == ErrorCode.NOTHING_IN_PROGRESS:
        waiting, kind = error.data.get("waiting"), str(error.data.get("kind", ""))
        if waiting:
            return f"`trace {waiting} --continue` goes on with that, `trace {waiting} --abort` gives it up"
        return f"`trace {kind} {BEGUN[kind]}` begins one" if kind in BEGUN else ""
    if error.code == ErrorCode.REVISION_NOT_FOUND and error.data.get("address"):
        named = error.data["address"]
        return f"`trace show {named}` shows it, `trace blame --address {named}` tells where it comes from"
    given = error.data.get("hint")
    return given if isinstance(given, str) else HINTS.get(error.code, "")

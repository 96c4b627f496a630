"""The error classes, loaded when the first one is used.

Creating them costs as much as half a module, and most commands never raise.
"""

from __future__ import annotations


class ErrorCode:
    """Stable, machine-readable error codes. Codes are added, never removed."""

    INTERNAL = "internal"
    NOT_FOUND = "not-found"
    OBJECT_NOT_FOUND = "object-not-found"
    REF_NOT_FOUND = "ref-not-found"
    REVISION_NOT_FOUND = "revision-not-found"
    MESSAGE_NOT_FOUND = "message-not-found"
    REPOSITORY_NOT_FOUND = "repository-not-found"
    ALREADY_EXISTS = "already-exists"
    INVALID_INPUT = "invalid-input"
    AMBIGUOUS_REVISION = "ambiguous-revision"
    INVALID_REF_NAME = "invalid-ref-name"
    INVALID_MESSAGE = "invalid-message"
    INVALID_OPERATION = "invalid-operation"
    UNREADABLE_INPUT = "unreadable-input"
    STATE = "state"
    DETACHED_HEAD = "detached-head"
    UNBORN_BRANCH = "unborn-branch"
    CLOSED = "closed"
    CONFLICT = "conflict"
    CONCURRENCY = "concurrency"
    LOCKED = "locked"
    REF_CHANGED = "ref-changed"
    FORMAT = "format"
    CORRUPT_OBJECT = "corrupt-object"
    CORRUPT_PACK = "corrupt-pack"
    CORRUPT_JOURNAL = "corrupt-journal"
    CORRUPT_INDEX = "corrupt-index"
    UNSUPPORTED_FORMAT = "unsupported-format"
    STORAGE = "storage"
    RENDER = "render"
    BUDGET = "budget"
    CORRUPT_BUNDLE = "corrupt-bundle"
    INVALID_ADDRESS = "invalid-address"
    TOO_LARGE = "too-large"
    PURGED_OBJECT = "purged-object"
    UNTRUSTED_REPOSITORY = "untrusted-repository"
    UNKNOWN_ROOTS = "unknown-roots"
    STORE_REWOUND = "store-rewound"
    SECRET_FOUND = "secret-found"
    MODEL = "model"
    MODEL_UNREACHABLE = "model-unreachable"
    MODEL_REFUSED = "model-refused"
    MODEL_NONSENSE = "model-nonsense"
    MODEL_CANCELLED = "model-cancelled"
    NO_MODEL = "no-model"
    MERGE_CONFLICT = "merge-conflict"
    IN_PROGRESS = "in-progress"
    NOTHING_IN_PROGRESS = "nothing-in-progress"
    UNRELATED_HISTORIES = "unrelated-histories"
    NOT_FAST_FORWARD = "not-fast-forward"
    DROPS_PINNED = "drops-pinned"
    NO_UPSTREAM = "no-upstream"
    COMMON_CONTENT = "common-content"
    REF_LOST = "ref-lost"
    BROKEN_HISTORY = "broken-history"
    STAGED_ELSEWHERE = "staged-elsewhere"
    NOTHING_STAGED = "nothing-staged"
    NOTHING_TO_UNDO = "nothing-to-undo"
    NOTHING_TO_REDO = "nothing-to-redo"
    TAG_EXISTS = "tag-exists"
    BRANCH_EXISTS = "branch-exists"
    CONFIG_CONFLICT = "config-conflict"
    CORRUPT_CONFIG = "corrupt-config"
    READABLE_KEY = "readable-key"
    NO_KEY = "no-key"
    OTHER_KEY = "other-key"
    UNENCRYPTED = "unencrypted"
    REDIRECTED = "redirected"
    SESSION_NOT_FOUND = "session-not-found"
    NO_FULL_TEXT_SEARCH = "no-full-text-search"
    REFLOG_TOO_SHORT = "reflog-too-short"
    BRANCH_GONE = "branch-gone"
    INVALID_TODO = "invalid-todo"
    PROPOSAL_REJECTED = "proposal-rejected"
    NO_COMMIT_LEFT = "no-commit-left"
    NO_GAIN = "no-gain"
    TARGET_UNREACHABLE = "target-unreachable"
    CHECKPOINT_NOT_FOUND = "checkpoint-not-found"
    CHECKPOINT_EXISTS = "checkpoint-exists"
    NOT_A_STATE = "not-a-state"
    NOT_A_SUMMARY = "not-a-summary"
    WOULD_ARCHIVE_HEAD = "would-archive-head"
    UNDIVIDABLE = "undividable"
    NAME_TAKEN_HERE = "name-taken-here"
    NAMELESS = "nameless"
    NOT_IN_TRASH = "not-in-trash"
    BISECTION_FINISHED = "bisection-finished"
    INCONCLUSIVE = "inconclusive"
    PREREQUISITES_MISSING = "prerequisites-missing"
    TRAJECTORY_NOT_FOUND = "trajectory-not-found"
    TRAJECTORY_ENDED = "trajectory-ended"
    TRAJECTORY_ACTIVE = "trajectory-active"
    SEVERAL_TRAJECTORIES = "several-trajectories"
    NO_TRAJECTORY = "no-trajectory"
    NO_GIT = "no-git"
    HOOK_EXISTS = "hook-exists"
    CODE_NOT_FOUND = "code-not-found"
    TASK = "task"
    TASK_UNREACHABLE = "task-unreachable"
    TASK_REFUSED = "task-refused"
    TASK_NONSENSE = "task-nonsense"
    TASK_NOT_FOUND = "task-not-found"
    NO_TASK_KEY = "no-task-key"
    NO_TASK_SYSTEM = "no-task-system"
    EVENT_NOT_FOUND = "event-not-found"
    SEVERAL_RESULTS = "several-results"
    CANNOT_UNDO = "cannot-undo"
    SESSION_CLOSED = "session-closed"
    REQUEST_TOO_LARGE = "request-too-large"
    HOOK_TRACKED = "hook-tracked"
    RUN_ENDED = "run-ended"
    STEP_ENDED = "step-ended"
    RUN_ELSEWHERE = "run-elsewhere"
    RUN_NOT_FOUND = "run-not-found"
    PORT_IN_USE = "port-in-use"
    PACKAGE_MISSING = "package-missing"
    SETTINGS_REFUSED = "settings-refused"
    BRIEF_NOT_ALLOWED = "brief-not-allowed"


class TraceError(Exception):
    """Base class of all Trace errors. Keyword arguments become attributes."""

    code: str = ErrorCode.INTERNAL

    def __init__(self, message: str, *, code: str | None = None, **data: object) -> None:
        super().__init__(message)
        self.message = message
        if code is not None:
            self.code = code
        self.data = data

    def __getattr__(self, name: str) -> object:
        # Only reached when normal look-up fails. `data` itself may be missing while unpickling.
        data = self.__dict__.get("data", {})
        try:
            return data[name]
        except KeyError:
            raise AttributeError(name) from None


class NotFoundError(TraceError, LookupError):
    code = ErrorCode.NOT_FOUND


class ObjectNotFoundError(NotFoundError):
    code = ErrorCode.OBJECT_NOT_FOUND


class PurgedError(ObjectNotFoundError):
    code = ErrorCode.PURGED_OBJECT


class RefNotFoundError(NotFoundError):
    code = ErrorCode.REF_NOT_FOUND


class RevisionNotFoundError(NotFoundError):
    code = ErrorCode.REVISION_NOT_FOUND


class MessageNotFoundError(NotFoundError):
    code = ErrorCode.MESSAGE_NOT_FOUND


class RepositoryNotFoundError(NotFoundError):
    code = ErrorCode.REPOSITORY_NOT_FOUND


class AlreadyExistsError(TraceError):
    code = ErrorCode.ALREADY_EXISTS


class InvalidInputError(TraceError, ValueError):
    code = ErrorCode.INVALID_INPUT


class AmbiguousRevisionError(InvalidInputError):
    code = ErrorCode.AMBIGUOUS_REVISION


class InvalidRefNameError(InvalidInputError):
    code = ErrorCode.INVALID_REF_NAME


class InvalidMessageError(InvalidInputError):
    code = ErrorCode.INVALID_MESSAGE


class InvalidOperationError(InvalidInputError):
    code = ErrorCode.INVALID_OPERATION


class UnreadableInputError(InvalidInputError):
    code = ErrorCode.UNREADABLE_INPUT


class StateError(TraceError):
    code = ErrorCode.STATE


class DetachedHeadError(StateError):
    code = ErrorCode.DETACHED_HEAD


class UnbornBranchError(StateError):
    code = ErrorCode.UNBORN_BRANCH


class UntrustedRepositoryError(StateError):
    code = ErrorCode.UNTRUSTED_REPOSITORY


class ClosedError(StateError):
    code = ErrorCode.CLOSED


class RewoundError(StateError):
    code = ErrorCode.STORE_REWOUND


class RefLostError(StateError):
    code = ErrorCode.REF_LOST


class ConflictError(TraceError):
    code = ErrorCode.CONFLICT


class SecretFoundError(ConflictError):
    code = ErrorCode.SECRET_FOUND


class ConcurrencyError(TraceError):
    code = ErrorCode.CONCURRENCY


class LockedError(ConcurrencyError):
    code = ErrorCode.LOCKED


class RefChangedError(ConcurrencyError):
    code = ErrorCode.REF_CHANGED


class FormatError(TraceError):
    code = ErrorCode.FORMAT


class CorruptObjectError(FormatError):
    code = ErrorCode.CORRUPT_OBJECT


class CorruptPackError(FormatError):
    code = ErrorCode.CORRUPT_PACK


class CorruptJournalError(FormatError):
    code = ErrorCode.CORRUPT_JOURNAL


class CorruptIndexError(FormatError):
    code = ErrorCode.CORRUPT_INDEX


class CorruptBundleError(FormatError):
    code = ErrorCode.CORRUPT_BUNDLE


class BrokenHistoryError(FormatError):
    code = ErrorCode.BROKEN_HISTORY


class UnsupportedFormatError(FormatError):
    code = ErrorCode.UNSUPPORTED_FORMAT


class StorageError(TraceError):
    code = ErrorCode.STORAGE


class RenderError(TraceError):
    code = ErrorCode.RENDER


class BudgetError(TraceError):
    code = ErrorCode.BUDGET


class ModelError(TraceError):
    code = ErrorCode.MODEL


class ModelUnreachableError(ModelError):
    code = ErrorCode.MODEL_UNREACHABLE


class ModelRefusedError(ModelError):
    code = ErrorCode.MODEL_REFUSED


class ModelNonsenseError(ModelError):
    code = ErrorCode.MODEL_NONSENSE


class ModelCancelledError(ModelError):
    code = ErrorCode.MODEL_CANCELLED


class TaskError(TraceError):
    code = ErrorCode.TASK


class TaskUnreachableError(TaskError):
    code = ErrorCode.TASK_UNREACHABLE


class TaskRefusedError(TaskError):
    code = ErrorCode.TASK_REFUSED


class TaskNonsenseError(TaskError):
    code = ErrorCode.TASK_NONSENSE


for each in list(globals().values()):
    if isinstance(each, type):
        each.__module__ = __name__.rpartition(".")[0]  # the public name

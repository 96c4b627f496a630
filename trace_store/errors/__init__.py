"""Errors that Trace raises, grouped by how a caller would handle them.

TraceError                                      .code .message
├── NotFoundError              (LookupError)    look elsewhere
│   ├── ObjectNotFoundError    RefNotFoundError
│   │   └── PurgedError            .oid .time .by .why .placeholder   removed by `purge`
│   ├── RevisionNotFoundError  MessageNotFoundError
│   └── RepositoryNotFoundError
├── AlreadyExistsError                          choose another name
├── InvalidInputError          (ValueError)     fix the call
│   ├── AmbiguousRevisionError .candidates
│   ├── InvalidRefNameError    InvalidMessageError
│   └── InvalidOperationError  UnreadableInputError .path .line .column
├── StateError                                  do something first
│   ├── DetachedHeadError      UnbornBranchError .branches   ClosedError
│   ├── UntrustedRepositoryError .path          RewoundError .ref .before .now
│   └── RefLostError .ref                       the branch's last value is missing
├── ConflictError                               resolve, then continue
│   └── SecretFoundError .rule .place .id       content to be stored has a secret
├── ConcurrencyError                            try again
│   └── LockedError .path      RefChangedError .ref .expected .actual
├── FormatError                                 stop, and check the repository
│   ├── CorruptObjectError     CorruptPackError    CorruptJournalError  CorruptIndexError
│   ├── CorruptBundleError     BrokenHistoryError .oid                   commits are missing
│   └── UnsupportedFormatError .required        written by another version of Trace; not damage
├── StorageError .path .operation               the disk failed
├── RenderError .address                        the context is not valid for the provider
├── BudgetError .needed .allowed                compress, or raise the budget
├── ModelError                 .attempts        check the model, or use another
│   ├── ModelUnreachableError .status           no connection, timeout, or server error
│   ├── ModelRefusedError .status .reason       key, rate limit, request or content rejected
│   ├── ModelNonsenseError                      unparsable answer
│   └── ModelCancelledError                     the caller cancelled
└── TaskError                                   check the task system
    ├── TaskUnreachableError                    no program, no connection, timeout, or server error
    ├── TaskRefusedError .needs                 not logged in, key or rate limit
    └── TaskNonsenseError                       unparsable answer

Rule: an error carries data in attributes and a message of one sentence without a full stop. It never names a
command; hints belong to the command line. Modules that every command loads refer to `errors.StorageError` by
attribute, because the classes are created on first use and most commands need none.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.errors.tree import (
        AlreadyExistsError,
        AmbiguousRevisionError,
        BrokenHistoryError,
        BudgetError,
        ClosedError,
        ConcurrencyError,
        ConflictError,
        CorruptBundleError,
        CorruptIndexError,
        CorruptJournalError,
        CorruptObjectError,
        CorruptPackError,
        DetachedHeadError,
        ErrorCode,
        FormatError,
        InvalidInputError,
        InvalidMessageError,
        InvalidOperationError,
        InvalidRefNameError,
        LockedError,
        MessageNotFoundError,
        ModelCancelledError,
        ModelError,
        ModelNonsenseError,
        ModelRefusedError,
        ModelUnreachableError,
        NotFoundError,
        ObjectNotFoundError,
        PurgedError,
        RefChangedError,
        RefLostError,
        RefNotFoundError,
        RenderError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
        RewoundError,
        SecretFoundError,
        StateError,
        StorageError,
        TaskError,
        TaskNonsenseError,
        TaskRefusedError,
        TaskUnreachableError,
        TraceError,
        UnbornBranchError,
        UnreadableInputError,
        UnsupportedFormatError,
        UntrustedRepositoryError,
    )

__all__ = [
    "AlreadyExistsError",
    "AmbiguousRevisionError",
    "BrokenHistoryError",
    "BudgetError",
    "ClosedError",
    "ConcurrencyError",
    "ConflictError",
    "CorruptBundleError",
    "CorruptIndexError",
    "CorruptJournalError",
    "CorruptObjectError",
    "CorruptPackError",
    "DetachedHeadError",
    "ErrorCode",
    "FormatError",
    "InvalidInputError",
    "InvalidMessageError",
    "InvalidOperationError",
    "InvalidRefNameError",
    "LockedError",
    "MessageNotFoundError",
    "ModelCancelledError",
    "ModelError",
    "ModelNonsenseError",
    "ModelRefusedError",
    "ModelUnreachableError",
    "NotFoundError",
    "ObjectNotFoundError",
    "PurgedError",
    "RefChangedError",
    "RefLostError",
    "RefNotFoundError",
    "RenderError",
    "RepositoryNotFoundError",
    "RevisionNotFoundError",
    "RewoundError",
    "SecretFoundError",
    "StateError",
    "StorageError",
    "TaskError",
    "TaskNonsenseError",
    "TaskRefusedError",
    "TaskUnreachableError",
    "TraceError",
    "UnbornBranchError",
    "UnreadableInputError",
    "UnsupportedFormatError",
    "UntrustedRepositoryError",
]


def __getattr__(name: str) -> object:
    """Define the classes when the first is used."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import trace_store.errors.tree as tree

    value: object = getattr(tree, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

"""Every error that Trace raises, grouped by what a handler would do about it.

TraceError                                      .code .message
├── NotFoundError              (LookupError)    look elsewhere
│   ├── ObjectNotFoundError    RefNotFoundError
│   │   └── PurgedError            .oid .time .by .why .placeholder   it was removed for good
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
│   └── RefLostError .ref                       what a branch was has been taken away
├── ConflictError                               decide, then go on
│   └── SecretFoundError .rule .place .id       a secret was to be stored
├── ConcurrencyError                            try again
│   └── LockedError .path      RefChangedError .ref .expected .actual
├── FormatError                                 stop, and check the repository
│   ├── CorruptObjectError     CorruptPackError    CorruptJournalError  CorruptIndexError
│   ├── CorruptBundleError     BrokenHistoryError .oid                   commits are missing
│   └── UnsupportedFormatError .required        another version of Trace wrote this; it is not damage
├── StorageError .path .operation               the disk failed
├── RenderError .address                        the context is not valid for the provider
├── BudgetError .needed .allowed                compress, or raise the budget
└── ModelError                 .attempts        look at the model, or ask another
    ├── ModelUnreachableError .status           no connection, no answer in time, or a failing server
    ├── ModelRefusedError .status .reason       it does not take the key, the rate, the request or the content
    ├── ModelNonsenseError                      what it answered is of no known form
    └── ModelCancelledError                     its answer was not waited for

Rule: an error carries data in attributes and says one sentence without a full stop. It never names a
command; hints belong to the command line. What every command loads says `errors.StorageError`, when it
raises or catches one: the classes are made when the first is asked for, and most commands come to none.
"""

from trace_store.lazy_import import names

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
    "TraceError",
    "UnbornBranchError",
    "UnreadableInputError",
    "UnsupportedFormatError",
    "UntrustedRepositoryError",
]

__getattr__ = names(__name__, dict.fromkeys(__all__, "tree"))


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

"""`Repo`: all subjects of the front door in one object, and the ways to open it.

Rule: each verb is one call down. A verb of its own belongs to the floor that knows its subject.
"""

from __future__ import annotations

import os

from trace_store.environment import Environment
from trace_store.errors import RepositoryNotFoundError
from trace_store.maintenance.second_copies import restore_missing
from trace_store.repo.joining import Joining
from trace_store.repo.moving import Moving
from trace_store.repo.reading import Reading
from trace_store.repo.writing import Writing
from trace_store.store.discovery import find
from trace_store.store.handle import Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from trace_store.context.tokens.tokenizer import Tokenizer
    from trace_store.ident import Clock


class Repo(Writing, Reading, Moving, Joining):
    """A repository that is open.

    Attributes:
        store: the stores below.
        contexts: compiles, and keeps open indexes between compiles.
        author: who the commits are by.
        guard: looks for secrets in what is to be stored.
    """

    @classmethod
    def init(
        cls,
        path: str | os.PathLike[str] = ".",
        *,
        author: str = "",
        environment: Environment | None = None,
        clock: Clock | None = None,
        durability: str = "durable",
        tokenizer: Tokenizer | Callable[[str], int] | None = None,
        secrets: str = "",
    ) -> Repo:
        """Make `.trace/` in a folder and open it; arguments as in `open`.

        Raises:
            AlreadyExistsError: the folder has one.
            StorageError: the disk refuses.
        """
        environment = environment or Environment.read()
        store = Store.init(os.fspath(path), clock=clock, durability=durability)
        return cls(
            store,
            author=author or environment.author,
            tokenizer=tokenizer,
            environment=environment,
            secrets=secrets,
        )

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str] = ".",
        *,
        author: str = "",
        directory: str | os.PathLike[str] | None = None,
        create: bool = True,
        durability: str = "durable",
        environment: Environment | None = None,
        clock: Clock | None = None,
        tokenizer: Tokenizer | Callable[[str], int] | None = None,
        secrets: str = "",
    ) -> Repo:
        """Open the repository of a folder or of one above it; make one there when there is none.

        Args:
            path: the folder.
            author: who the commits are by; empty is whom the surroundings name.
            directory: a `.trace` directory; it beats the variable TRACE_DIR, which beats looking around.
            create: whether to make one in `path` when none is found.
            durability: "durable" (survives power loss), "batch" (one sync for many) or "fast" (survives a
                killed process only).
            environment: what to take for the surroundings; None reads those of the process.
            clock: tells the time.
            tokenizer: counts tokens instead of the configured encoding: a `Tokenizer`, or a function from text
                to a number.
            secrets: what becomes of secrets in what is stored: "redact", "block", "warn" or "off"; empty is what the
                user settled, else "redact".

        Raises:
            RepositoryNotFoundError: none is found and `create` is false, or the one named is none.
            UnsupportedFormatError: a newer version wrote it.
        """
        environment = environment or Environment.read()
        named = None if directory is None else os.fspath(directory)
        try:
            found = find(os.fspath(path), environment, explicit=named)
        except RepositoryNotFoundError:
            if not create or named is not None or environment.trace_dir is not None:
                raise
            return cls.init(
                path,
                author=author,
                environment=environment,
                clock=clock,
                durability=durability,
                tokenizer=tokenizer,
                secrets=secrets,
            )
        store = Store.open(found, durability=durability, clock=clock)
        if store.lacks_files():
            restore_missing(store)
        return cls(
            store,
            author=author or environment.author,
            tokenizer=tokenizer,
            environment=environment,
            secrets=secrets,
        )

    @classmethod
    def memory(cls, *, author: str = "unknown", clock: Clock | None = None) -> Repo:
        """Return a repository that lives in memory only."""
        return cls(Store.memory(clock=clock), author=author)

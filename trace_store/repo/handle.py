"""The state that the lines and subjects of one open repository share, and checks of arguments.

Rule: state and no verbs.
"""

from __future__ import annotations

import trace_store
from trace_store import check, errors, history, revision
from trace_store.config import AUTOMATIC_SETTING, CAPTURE_SETTING
from trace_store.environment import Environment
from trace_store.ident import Randomness
from trace_store.oid import ObjectId
from trace_store.store.handle import Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Protocol, TypeAlias

    from trace_store.checkpoints.automatic import ImportMilestones
    from trace_store.context.compiler import ContextCompiler
    from trace_store.context.tokens.tokenizer import Tokenizer
    from trace_store.history.draft import CommitResult, Target
    from trace_store.importers.report import ImportReport
    from trace_store.maintenance.schedule import SealSchedule
    from trace_store.merge.conflicts import Conflict, Resolution, Resolver
    from trace_store.objects.address import Address
    from trace_store.objects.content import Salt
    from trace_store.secrets.guard import Guard
    from trace_store.trajectories.handle import Trajectories

    class Named(Protocol):
        """A value with the id of a commit: the result of a commit, an entry of the log, a branch, a tag."""

        @property
        def oid(self) -> ObjectId: ...

    Revision: TypeAlias = str | ObjectId | Named
    Answer: TypeAlias = Callable[[Conflict], Resolution | str | None]


class Handle:
    """What all objects of one open repository share.

    A command pays for every package and module that it loads, so what not every verb needs is reached through
    `trace_store`, which loads it on first use.

    Attributes:
        store: the stores below.
        author: the author of new commits.
        environment: the environment variables.
    """

    __slots__ = (
        *("_contexts", "_guard", "_mode", "_salt", "_schedule", "_tokenizer"),
        *("author", "environment", "store"),
    )

    def __init__(
        self,
        store: Store,
        author: str,
        tokenizer: Tokenizer | Callable[[str], int] | None,
        environment: Environment | None,
        secrets: str,
    ) -> None:
        self.store = store
        self.author = author
        self.environment = environment or Environment.read()
        self._mode = secrets
        if tokenizer is not None:
            tokenizer = trace_store.context.tokens.tokenizer.as_tokenizer(tokenizer)
        self._tokenizer = tokenizer
        self._contexts: ContextCompiler | None = None
        self._guard: Guard | None = None
        if secrets:
            self.guard  # noqa: B018 - an unknown mode is reported when the repository is opened
        self._salt: Salt | None = None
        self._schedule: SealSchedule | None = None

    @property
    def contexts(self) -> ContextCompiler:
        """Compiles contexts, and keeps their indexes open."""
        if self._contexts is None:
            compiler = trace_store.context.compiler.ContextCompiler
            self._contexts = compiler(self.store, tokenizer=self._tokenizer)
        return self._contexts

    @property
    def schedule(self) -> SealSchedule:
        """Seals now and then."""
        if self._schedule is None:
            self._schedule = trace_store.maintenance.schedule.SealSchedule(self.store)
        return self._schedule

    @property
    def guard(self) -> Guard:
        """Finds secrets in text that is stored."""
        if self._guard is None:
            self._guard = trace_store.secrets.guard.Guard.of(
                self.store, self.environment, self._mode
            )
        return self._guard

    def salt(self) -> Salt:
        """Return what private content is hashed with: the user's own key, outside the repository."""
        if self._salt is None:
            store, keys = self.store, trace_store.secrets.user_files
            if store.local:
                key = keys.store_key(
                    self.environment, store.config.store_id, store.layout.root, store.disk
                )
            else:
                key = Randomness().take(keys.KEY_BYTES)  # lasts as long as the repository
            self._salt = keys.content_salt(key)
        return self._salt

    @property
    def _saves_automatically(self) -> bool:
        return self.store.config.get(AUTOMATIC_SETTING) not in (None, "", "off")

    def after_commit(self, contexts: Callable[[], ContextCompiler], result: CommitResult) -> None:
        """Make the automatic checkpoints that a new commit calls for, and record its blocks in a trajectory."""
        if self._saves_automatically:
            trace_store.checkpoints.automatic.after(
                self.store, contexts, result.oid, result.ref, self.author
            )
        if result.message_count and self.store.config.get(CAPTURE_SETTING) == "on":
            self.trajectories.capture.after_commit(result.oid, result.ref or "")

    def after_import(self, report: ImportReport) -> None:
        """Record the blocks in imported messages in a trajectory."""
        if self.store.config.get(CAPTURE_SETTING) == "on":
            tips = {each.ref: each.oid for file in report.files for each in file.branches}
            self.trajectories.capture.after_import(tips)

    @property
    def trajectories(self) -> Trajectories:
        """The trajectories of the repository."""
        subject = trace_store.trajectories.handle.Trajectories
        return subject(
            self.store, author=self.author, guard=self.guard, environment=self.environment
        )

    def import_milestones(self) -> ImportMilestones | None:
        """Return what finds the automatic checkpoints that an import calls for; None if they are off."""
        if not self._saves_automatically:
            return None
        return trace_store.checkpoints.automatic.ImportMilestones(self.store, self.author)

    def checkpoint_before(self, store: Store, trigger: str) -> None:
        """Make the automatic checkpoint of a branch before a command."""
        if self._saves_automatically:
            trace_store.checkpoints.automatic.before(store, trigger, author=self.author)

    def redacted(self, message: str) -> str:
        """Return the message of a commit or tag without secrets.

        Raises:
            InvalidInputError: it is not text.
            SecretFoundError: it holds a secret, and `secrets` is "block".
        """
        check.text(message=message)
        return self.guard.gathering().text(message) if message else message

    def check_not_stopped(self, *refs: str) -> None:
        """Raise StateError while a merge, pick, revert or rebase is in progress; with refs, only if on one of them."""
        if self.is_stopped:
            trace_store.merge.in_progress.refuse_while_stopped(self.store, refs)

    @property
    def is_stopped(self) -> bool:
        """Whether a merge, pick, revert or rebase is in progress. This costs one file lookup."""
        store = self.store
        return store.disk.exists(store.layout.stopped_file)


def name_of(what: Revision | Address, argument: str = "revision") -> str:
    """Return the text that names a commit or a message; text names itself.

    Raises:
        InvalidInputError: it names neither; the error names the argument.
    """
    if isinstance(what, str):
        return what
    if isinstance(what, tuple):
        return revision.as_address(what).hex
    oid = getattr(what, "oid", what)
    if not isinstance(oid, ObjectId):
        raise errors.InvalidInputError(
            f"{argument}: a commit is named by text, its id, or a value with `oid`,"
            f" not by {type(what).__name__}",
            argument=argument,
        )
    return str(oid)


def targets_of(targets: Target | Sequence[Target], argument: str = "targets") -> Sequence[Target]:
    """Return the messages named by one address or several.

    Raises:
        InvalidInputError: there is none, or it is not an address; the error names the argument.
    """
    try:
        found = history.draft.as_targets(targets)
    except errors.InvalidInputError as error:
        raise errors.InvalidInputError(f"{argument}: {error}", argument=argument) from None
    if not found:
        raise errors.InvalidInputError(f"{argument}: no message is named", argument=argument)
    return found


def place_of(after: Target | None, before: Target | None, last: bool) -> tuple[str, Target]:
    """Return where to move messages, and beside which message; by default to the beginning.

    Raises:
        InvalidInputError: several places are given.
    """
    places = [("after", after), ("before", before), ("last", "" if last else None)]
    given = [(where, beside) for where, beside in places if beside is not None]
    if len(given) > 1:
        raise errors.InvalidInputError("give one of after, before and last")
    return given[0] if given else ("first", "")


def resolver_of(given: Answer | None) -> Resolver | None:
    """Return a resolver that answers with resolutions, given one that may also answer with a word.

    Raises:
        InvalidInputError: it is not callable.
    """
    check.function(resolver=given)
    if given is None:
        return None

    def ask(conflict: Conflict) -> Resolution | None:
        answer = given(conflict)
        return trace_store.merge.conflicts.Resolution(answer) if isinstance(answer, str) else answer

    return ask

"""The compiler of a store, which finds the cheapest way from a commit to its context.

It chooses between a matching index, an extended one, and the history; it never computes a context itself. `verify`
compares the cached result with the one from the history.

`compile` takes a revision or a point in time, and a strategy or a custom compiler. These only replace the messages of
the compiled context.
"""

from __future__ import annotations

from itertools import zip_longest

from trace_store import context, errors, objects
from trace_store.base.frozen import replace, value
from trace_store.base.oid import ObjectId
from trace_store.context import tokens
from trace_store.context.compile_index import (
    GHOST,
    CompileIndex,
    History,
    IndexView,
    MessageRecord,
    TokenRecord,
    cold_view,
)
from trace_store.context.compiled import CompiledContext, ghost_of, stored_message
from trace_store.context.content import one_line
from trace_store.context.tokens.models import MeasuredReport, TokenCounting
from trace_store.context.tokens.tokenizer import estimate_from_bytes, is_cached
from trace_store.disk.column_file import DiskColumn, MemoryColumn
from trace_store.disk.layout import ref_of_index
from trace_store.objects.commit import Commit, read_commit
from trace_store.objects.content import read_content
from trace_store.objects.message import Message
from trace_store.objects.operations import LEAVES_CONTEXT, stored_messages
from trace_store.store import revision as revisions
from trace_store.store.store import Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any, TypeAlias

    from trace_store.context.compile_index import Sums
    from trace_store.context.fold import Fold, ReadCommit
    from trace_store.context.token_column import TokenColumn
    from trace_store.context.tokens.overhead import MessageTokens, TokenMemo
    from trace_store.context.tokens.tokenizer import Tokenizer
    from trace_store.objects.address import Address
    from trace_store.providers.media_tokens import MediaRule

    Compiler: TypeAlias = Callable[[CompiledContext], Sequence[Message]]

CACHED_COMMITS = 2048
ONE_LOOK_COMMITS = 16384
"""Cache size for listings, which read the commits of one session several times."""
WITHOUT_MEMO = 64
"""Up to this many new messages are counted without reading the token cache."""
STRATEGIES = ("full", "messages")
ANSWER_WITHIN = 64
"""The newest answer is looked for in so many of the last messages, so that its cost is constant."""


@value
class Verification:
    """The result of comparing a cached context with the history.

    Attributes:
        matches: whether they are the same.
        message_count: messages of the context from the history.
        first_difference: position of the first message that differs, or None.
    """

    matches: bool
    message_count: int
    first_difference: int | None


class ContextCompiler:
    """Compiles contexts of one store, with caches of indexes and commits.

    Attributes:
        store: the store, whose HEAD is the branch.
        facts: cache of `history.facts`.
        keeps_files: whether caches of branches are kept in files.
    """

    def __init__(
        self,
        store: Store,
        *,
        tokenizer: Tokenizer | None = None,
        keeps_files: bool = True,
        reads_counts: bool = True,
    ) -> None:
        """Set the store.

        Args:
            store: the store.
            tokenizer: what counts tokens; None takes the repository's.
            keeps_files: False for one look at many branches. A branch without an index gets none, no branch's index is
                compared with another's, and the counts of earlier processes are read only for many messages.
            reads_counts: False for one of many looks: the counts of earlier processes are never read, since each look
                would read all of them.
        """
        self.store = store
        self._tokenizer = tokenizer
        self.keeps_files = keeps_files
        self._reads_counts = reads_counts
        self._commits: dict[bytes, Commit] = {}
        self._most_commits = CACHED_COMMITS if keeps_files else ONE_LOOK_COMMITS
        self._indexes: dict[str, CompileIndex] = {}
        self._passing: CompileIndex | None = (
            None  # for contexts that are a prefix of no branch's index
        )
        self._looked: IndexView | None = None
        self._token_columns: dict[tuple[str, str], TokenColumn] = {}
        self._memo: TokenMemo | None = None
        self.facts: dict[str, dict[bytes, dict[str, tuple[int, str]]]] = {}

    def compile(
        self,
        revision: str | ObjectId | None = "HEAD",
        *,
        model: str = "",
        reasoning: bool = True,
        cold: bool = False,
    ) -> CompiledContext:
        """Return the context of a revision.

        Args:
            revision: a revision or a commit's id; None is the state before any commit.
            model: the model to count and render for; "" counts for that of the last report, else of the newest answer.
            reasoning: whether reasoning is rendered.
            cold: use only the history, not an index.

        Raises:
            RevisionNotFoundError: there is no such commit.
            ObjectNotFoundError, CorruptObjectError, InvalidOperationError, UnsupportedFormatError: the history cannot
                be folded.
        """
        ref, tip = self._locate(revision)
        view, index = (
            self._view(ref, tip) if not cold else (cold_view(tip, self.store.objects.read), "")
        )
        return self._context(view, index, model, reasoning=reasoning, cold=cold)

    def on(self, store: Store, tokenizer: Tokenizer | None = None) -> ContextCompiler:
        """Return a compiler for a view of the same store, sharing its caches; it may count with another tokenizer."""
        view = ContextCompiler(store, tokenizer=tokenizer or self._tokenizer)
        view._commits, view._indexes = self._commits, self._indexes
        view._token_columns, view.facts = self._token_columns, self.facts
        return view

    def _context(
        self, view: IndexView, index: str, model: str = "", *, reasoning: bool = True, cold: bool
    ) -> CompiledContext:
        tokenizer, counting = self._counting(model)
        source = ContextSource(self, index, tokenizer, cold)
        source.count_for(view, counting, model)
        return CompiledContext(
            source,
            view,
            tokenizer,
            source.counting,
            lambda: self._tools(view),
            model=model,
            reasoning=reasoning,
        )

    def verify(
        self, revision: str | ObjectId = "HEAD", *, count_tokens: bool = True
    ) -> Verification:
        """Compare the cached context of a revision with the one from its history.

        `count_tokens` counts all tokens again, which takes longer than everything else. No message is loaded, because a
        record names the commit of its content.
        """
        ref, tip = self._locate(revision)
        ours, index = self._view(ref, tip)
        ours = replace(ours, rebuild=None)  # damage counts as a difference, so do not rebuild
        theirs = cold_view(tip, self.store.objects.read)
        try:
            pairs = zip_longest(ours.comparable_records(), theirs.comparable_records())
            difference = next((n for n, (one, other) in enumerate(pairs) if one != other), None)
            ours.tools_commit()
            ours.measured()
        except errors.CorruptIndexError:
            difference = 0
        cached = self._context(ours, index, cold=False)
        cold = self._context(theirs, "", cold=True)
        same = (
            difference is None
            and cached.prefix_hash == cold.prefix_hash
            and cached.tools == cold.tools
            and _measured_at(ours) == _measured_at(theirs)
            and (not count_tokens or cached.token_count == cold.token_count)
        )
        return Verification(same, len(cold), difference)

    def rebuild(self, ref: str) -> IndexView:
        """Rewrite the index of a branch from its history and return it."""
        tip = self.store.refs.read(ref)
        index = self._index(ref)
        return index.rebuild(tip) if tip else index.view(None)

    def index_view(self, ref: str) -> IndexView | None:
        """Return the index of a branch without catching up; None if there is none."""
        return self._index(ref).load()

    def read_commit(self, oid: bytes) -> Commit:
        """Return a commit; the latest ones are cached.

        Raises:
            ObjectNotFoundError: it is missing.
            CorruptObjectError: it is damaged or not a commit.
        """
        commit = self._commits.get(oid)
        if commit is None:
            commit = read_commit(oid, self.store.objects.read)
            self._commits[oid] = commit
            if len(self._commits) > self._most_commits:
                del self._commits[next(iter(self._commits))]
        return commit

    def messages(self, addresses: Iterable[Address]) -> list[Message]:
        """Return messages as they were born, read in one pass: no context is needed, whatever became of them later.

        Raises:
            MessageNotFoundError: there is no such message, or its commit of birth is gone.
            ObjectNotFoundError, CorruptObjectError: content is missing or damaged.
        """
        objects = self.store.objects
        found = list(addresses)
        return context.bulk_read.messages_at(found, objects.resolve_prefix, objects.read_data)

    def weigh_added(self, commit: Commit | bytes) -> int:
        """Return the tokens of the messages that a commit adds, in the repository's encoding."""
        if isinstance(commit, bytes):
            commit = self.read_commit(commit)
        return sum(self.weigh(stored_messages(commit)))

    def sums_added(self, commit: Commit, media: MediaRule) -> Sums:
        """Return the tokens of the messages that a commit adds, in the repository's encoding, not scaled."""
        counted = self._count_stored(stored_messages(commit), media)
        return (
            sum(each.total for each in counted),
            sum(each.text for each in counted),
            sum(each.media for each in counted),
        )

    def weigh(self, messages: Iterable[Mapping[str, Any]]) -> list[int]:
        """Return the tokens of each of some stored messages, in the repository's encoding."""
        return [each.total for each in self._count_stored(messages)]

    def _count_stored(
        self, messages: Iterable[Mapping[str, Any]], media: MediaRule | None = None
    ) -> list[MessageTokens]:
        tokenizer, _ = self._counting("")
        read, memo = self.store.objects.read, self._shared_memo(tokenizer, self.keeps_files)
        given = () if media is None else (media,)
        counts = [
            tokens.overhead.count_stored_message(
                *(tokenizer, message, read, memo, self.store.objects.purged), *given
            )
            for message in messages
        ]
        memo.flush()
        return counts

    def _shared_memo(self, tokenizer: Tokenizer, read_back: bool) -> TokenMemo:
        if self._memo is None or self._memo.encoding != tokenizer.encoding:
            self._memo = self.token_memo(tokenizer, read_back=read_back)
        return self._memo

    def token_memo(self, tokenizer: Tokenizer, *, read_back: bool = True) -> TokenMemo:
        """Return the token cache of an encoding; without `read_back` it is write-only."""
        read_back = read_back and self._reads_counts
        path = self.store.layout.token_memo_file(tokenizer.encoding)
        return tokens.overhead.TokenMemo(
            tokenizer.encoding, self.store.disk, path, read_back=read_back
        )

    def fold(self, tip: bytes) -> Fold:
        """Return the fold of a commit, which must not be changed."""
        return context.snapshots.fold_of(self.store, tip, keep=self.keeps_files)

    def tools_at(self, tip: ObjectId) -> Sequence[bytes]:
        """Return the ids of the tool schemas at a commit; cheap at the tip of HEAD's branch."""
        ref, head = self._locate("HEAD")
        view, _ = self._view(ref if head == tip else None, tip)
        return self.tool_schemas(view.tools_commit())

    def stored_parts(self, address: Address) -> Sequence[Mapping[str, Any]]:
        """Return the current parts of a visible or hidden message of HEAD's context, in stored form.

        Raises:
            MessageNotFoundError: the context does not hold it.
        """
        ref, tip = self._locate("HEAD")
        is_indexed = tip is not None and (ref is None or self.index_view(ref) is not None)
        record = self._view(ref, tip)[0].find(address) if is_indexed else None
        if record is None:
            state = context.fold.Fold() if tip is None else self.fold(tip)
            return state.entry(address).parts
        parts: Sequence[Mapping[str, Any]] = stored_message(record, self.read_commit)["parts"]
        return parts

    def _locate(self, revision: str | ObjectId | None) -> tuple[str | None, ObjectId | None]:
        """Return (name of the index, commit): a full ref, "HEAD" if detached there, or None for other commits."""
        refs = self.store.refs
        if revision is not None and not isinstance(revision, ObjectId):
            if revision in ("HEAD", "@"):
                head = refs.head()
                return head.ref or "HEAD", head.oid
            ref = revisions.branch_of(self.store, revision)
            tip = refs.read(ref) if ref else None
            if ref and tip and revisions.resolve_commit(self.store, revision) == tip:
                return ref, tip
        return None, None if revision is None else revisions.resolve_commit(self.store, revision)

    def _view(self, ref: str | None, tip: ObjectId | None) -> tuple[IndexView, str]:
        """Return a context, and the name of the index that it is a prefix of, or ""."""
        if ref is not None:
            index = self._index(ref)
            if not self.keeps_files and tip is not None and index.load() is None:
                return self._look(tip), ""
            own = index.view(tip, lambda: self._seeds(ref))
            return self._mended(own, index, tip), ref
        if tip is None:
            return cold_view(None, self.store.objects.read), ""
        for name, index in self._other_indexes(""):
            view = index.prefix_view(tip)
            if view is not None:
                return self._mended(view, index, tip), name
        index = self._passing = self._passing or self._made_index(MemoryColumn())
        return index.view(tip, lambda: self._seeds("")), ""

    def _look(self, tip: ObjectId) -> IndexView:
        """Return the context of a commit from its history; the last one stays in memory."""
        if self._looked is None or self._looked.tip != tip:
            self._looked = self._made_index(MemoryColumn()).view(tip)
        return self._looked

    def _mended(self, view: IndexView, index: CompileIndex, tip: bytes | None) -> IndexView:
        """Return a view that rebuilds the index, once, if a record is damaged."""
        made: list[IndexView] = []

        def rebuild() -> IndexView:
            if not made:
                made.append(index.rebuild(tip) if tip else view)
            return made[0]

        return IndexView(view.opened, view.records, view.last, view.generation, rebuild)

    def _seeds(self, ref: str) -> Iterable[IndexView]:
        return list(filter(None, (index.load() for _, index in self._other_indexes(ref))))

    def _other_indexes(self, ref: str) -> Iterator[tuple[str, CompileIndex]]:
        if not self.keeps_files:
            return
        head = self.store.refs.head()
        first = head.ref or "HEAD"
        layout = self.store.layout
        found = map(ref_of_index, self.store.disk.names(layout.index_dir))
        names = {*self._indexes, *filter(None, found)}
        for name in sorted(names, key=lambda n: (n != first, n)):
            if name != ref:
                yield name, self._index(name)

    def _index(self, ref: str) -> CompileIndex:
        index = self._indexes.get(ref)
        if index is None:
            index = self._indexes[ref] = self._made_index(self._column(ref, "messages"))
        return index

    def _made_index(self, column: DiskColumn | MemoryColumn) -> CompileIndex:
        return CompileIndex(column, History(self.read_commit, self.fold))

    def token_column(self, ref: str, tokenizer: Tokenizer, media: MediaRule) -> TokenColumn:
        """Return the tokens column of a branch, or of "" in memory; a purge starts a new one."""
        key = self.store.objects.purged_key()
        rule = "" if media.name == tokens.models.DEFAULT_MEDIA else media.name
        name = "-".join(filter(None, (tokenizer.encoding, rule, key)))
        column = self._token_columns.get((ref, name))
        if column is None and not is_cached(tokenizer):
            column = self._token_columns[(ref, name)] = context.token_column.TokenColumn(
                MemoryColumn()
            )
        elif column is None:
            suffix = f"{name}.tokens"
            others = lambda: [self._column(r, suffix) for r, _ in self._other_indexes(ref)]  # noqa: E731
            column = context.token_column.TokenColumn(self._column(ref, suffix), others)
            self._token_columns[(ref, name)] = column
        return column

    def _column(self, ref: str, suffix: str) -> DiskColumn | MemoryColumn:
        if not ref:
            return MemoryColumn()
        return DiskColumn(self.store.disk, self.store.layout.index_file(ref, suffix))

    def tokenizer(self, model: str = "") -> Tokenizer:
        """Return what counts the tokens of contexts for a model; "" is the repository's encoding."""
        return self._counting(model)[0]

    def counting(self, answered: str) -> TokenCounting:
        """Return how a context is counted in the repository's encoding, whose last answer is of this model."""
        tokenizer, counting = self._counting("")
        return tokens.models.describe(answered).under(tokenizer) if answered else counting

    def _counting(self, model: str) -> tuple[Tokenizer, TokenCounting]:
        configured = self.store.config.tokenizer
        if self._tokenizer is not None:
            return self._tokenizer, tokens.models.describe(model).under(self._tokenizer)
        if model:
            counting = tokens.models.describe(model)
            tokenizer = tokens.tokenizer.get_tokenizer(counting.encoding)
            return tokenizer, counting.under(tokenizer)
        tokenizer = tokens.tokenizer.get_tokenizer(configured)
        source = "exact" if tokenizer.exact else "estimate"
        return tokenizer, TokenCounting(tokenizer.encoding, 1.0, f"{source}:{tokenizer.encoding}")

    def _tools(self, view: IndexView) -> tuple[Any, ...]:
        schemas = self.tool_schemas(view.tools_commit())
        return _load_tools(schemas, ContextSource(self, "", None, False))

    def tool_schemas(self, setter: bytes | None) -> Sequence[bytes]:
        """Return the ids of the tool schemas that a commit set; raises as `read_commit`."""
        schemas: Sequence[bytes] = ()
        for operation in () if setter is None else self.read_commit(setter).operations:
            if operation.name == "tools":
                schemas = operation.fields["schemas"]
        return schemas

    def message_sums(
        self, tip: bytes, tokenizer: Tokenizer | None, counting: TokenCounting, *, cold: bool
    ) -> Sums:
        """Return the tokens of the messages at a commit, not scaled; raises as `compile`."""
        view, name = self._view_at(tip, cold=cold)
        source = ContextSource(self, name, tokenizer, cold)
        source.count_for(view, counting, "named")
        return source.token_total(view).sums

    def tools_commit_at(self, tip: bytes, *, cold: bool = False) -> bytes | None:
        """Return the commit that set the tools of a commit's context, or None; raises as `compile`."""
        return self._view_at(tip, cold=cold)[0].tools_commit()

    def _view_at(self, tip: bytes, *, cold: bool) -> tuple[IndexView, str]:
        if cold:
            return cold_view(tip, self.store.objects.read), ""
        return self._view(None, ObjectId(tip))


class ContextSource:
    """The source of one context, which selects the right tokens column."""

    __slots__ = (
        "_cold",
        "_compiler",
        "_find_counting",
        "_known_counting",
        "_memory",
        "_ref",
        "_tokenizer",
        "_tool_tokens",
    )

    def __init__(
        self, compiler: ContextCompiler, ref: str, tokenizer: Tokenizer | None, cold: bool
    ) -> None:
        self._compiler = compiler
        self._ref = ref
        self._tokenizer = tokenizer
        self._cold = cold
        self._memory: TokenColumn | None = None
        self._tool_tokens: dict[bytes, int] = {}
        self._known_counting: TokenCounting | None = None
        self._find_counting: Callable[[], TokenCounting] = lambda: tokens.models.describe("")

    def count_for(self, view: IndexView, counting: TokenCounting, model: str) -> None:
        """Count as for a named model; without one, as for the model that answered last."""
        self._known_counting = counting if model else None
        self._find_counting = lambda: self.counting_of(view) or counting

    def counting(self) -> TokenCounting:
        """Return how tokens are counted."""
        if self._known_counting is None:
            self._known_counting = self._find_counting()
        return self._known_counting

    def counting_of(self, view: IndexView) -> TokenCounting | None:
        """Return the counting of the model that the last report names, else the newest answer."""
        measured = view.measured()
        model = measured and reported_model(self._compiler, measured.commit)
        model = model or newest_answer(view, self.read_commit)[0]
        return self._compiler.counting(model) if model else None

    def read(self, oid: bytes) -> bytes:
        return self._compiler.store.objects.read(oid)

    def read_data(self, oids: Iterable[bytes]) -> Iterator[bytes]:
        return self._compiler.store.objects.read_data(oids)

    @property
    def purged(self) -> frozenset[bytes]:
        return self._compiler.store.objects.purged

    def read_commit(self, oid: bytes) -> Commit:
        return self._compiler.read_commit(oid)

    def labels(self, tip: bytes, address: Address) -> frozenset[str]:
        return self._compiler.fold(tip).entry(address).labels

    def token_records(
        self, view: IndexView, start: int = 0, stop: int | None = None
    ) -> list[TokenRecord]:
        return self._column().tokens(view, self.count, start, stop)

    def token_total(self, view: IndexView) -> TokenRecord:
        return self._column().total(view, self.count)

    def tool_tokens(self, setter: bytes | None) -> int:
        if setter is None:
            return 0
        if setter not in self._tool_tokens:
            total = 0
            for oid in self._compiler.tool_schemas(setter):
                try:
                    total += estimate_from_bytes(len(read_content(oid, self.read)))
                except errors.PurgedError:
                    continue  # a tool is not offered without its schema
            self._tool_tokens[setter] = total
        return self._tool_tokens[setter]

    def report(self, view: IndexView, model: str) -> MeasuredReport | None:
        measured = view.measured()
        if measured is None:
            return None
        report = objects.reports.report_of(self.read_commit(measured.commit))
        if report is None:
            return None
        if (
            model
            and report.model
            and not tokens.models.describe(model).counts_like(tokens.models.describe(report.model))
        ):
            return None  # that model counts differently
        if report.about is not None:
            sums = self._sums_at(report.about)
            at = report.about
        else:
            total, text, media = self._column().total_then(
                *(view, measured, self.count),
                lambda: self._compiler.message_sums(
                    measured.commit, self._tokenizer, self.counting(), cold=self._cold
                ),
            )
            sums = total + self.tool_tokens(measured.tools_commit), text, media
            at = measured.commit
        if sums is None:
            return None
        return MeasuredReport(measured.commit, at, report.token_count, report.name, sums)

    def _sums_at(self, commit: bytes) -> Sums | None:
        """Return the unscaled tokens of messages and tools at another commit; None if it is missing."""
        try:
            total, text, media = self._compiler.message_sums(
                commit, self._tokenizer, self.counting(), cold=self._cold
            )
            tools = self._compiler.tools_commit_at(commit, cold=self._cold)
        except errors.NotFoundError:
            return None
        return total + self.tool_tokens(tools), text, media

    def _column(self) -> TokenColumn:
        if self._tokenizer is None or self._cold:
            self._memory = self._memory or context.token_column.TokenColumn(MemoryColumn())
        elif self._ref or self._memory is None:
            self._memory = self._compiler.token_column(
                self._ref, self._tokenizer, self.counting().media
            )
        return self._memory

    def count(self, records: Iterator[MessageRecord], number: int) -> Iterator[MessageTokens]:
        """Yield the tokens of the messages of some records; `number` is how many there are."""
        tokenizer = self._tokenizer or tokens.tokenizer.get_tokenizer(
            tokens.tokenizer.DEFAULT_ENCODING
        )
        memo = self._memo(tokenizer, number)
        purged, media = self.purged, self.counting().media
        for record in records:
            if record.flags & GHOST:
                text = ghost_of(record, self)
                yield tokens.overhead.MessageTokens(
                    text=tokenizer.count(text), framing=tokens.overhead.MESSAGE_TOKENS
                )
            else:
                stored = stored_message(record, self.read_commit)
                yield tokens.overhead.count_stored_message(
                    tokenizer, stored, self.read, memo, purged, media
                )
        memo.flush()

    def _memo(self, tokenizer: Tokenizer, number: int) -> TokenMemo:
        if self._cold:
            return tokens.overhead.TokenMemo(tokenizer.encoding)
        compiler, read_back = self._compiler, number > WITHOUT_MEMO
        if compiler.keeps_files:
            return compiler.token_memo(tokenizer, read_back=read_back)
        return compiler._shared_memo(tokenizer, read_back)


def reported_model(contexts: ContextCompiler, commit: bytes) -> str:
    """Return the model that a measured commit's report names, or ""."""
    report = objects.reports.report_of(contexts.read_commit(commit))
    return "" if report is None else report.model


def newest_answer(view: IndexView, read_commit: ReadCommit) -> tuple[str, int]:
    """Return the model that the newest assistant message of a context names, or "", and how many messages follow it."""
    record, since = view.newest_answer(ANSWER_WITHIN)
    return "" if record is None else stored_message(record, read_commit).get("model", ""), since


def _measured_at(view: IndexView) -> bytes | None:
    measured = view.measured()
    return None if measured is None else measured.commit


def _load_tools(schemas: Sequence[bytes], source: ContextSource) -> tuple[Any, ...]:
    """Return tool schemas, decoded from their blobs."""
    if not schemas:
        return ()
    import json

    found = []
    for oid in schemas:
        try:
            found.append(json.loads(read_content(oid, source.read)))
        except errors.PurgedError:
            continue  # a tool is not offered without its schema
        except (ValueError, RecursionError) as error:
            raise errors.CorruptObjectError(
                f"the schema of a tool is not JSON: object {oid.hex()[:12]}", oid=oid
            ) from error
    return tuple(found)


def compile(
    contexts: ContextCompiler,
    revision: str | ObjectId = "HEAD",
    at: str = "",
    strategy: str = "full",
    *,
    reasoning: bool = True,
    model: str = "",
    compiler: Compiler | None = None,
) -> CompiledContext:
    """Return the context of a revision.

    Args:
        contexts: the compiler of a store.
        revision: the commit.
        at: another revision, or a time: the newest commit along first parents that is not later.
        strategy: "full" for all visible content; "messages" for one line per commit, its message.
        reasoning: whether reasoning is rendered.
        model: the model to count and render for.
        compiler: returns other messages for the context; their tokens are counted again.

    Raises:
        InvalidInputError: unknown strategy, or one that makes its own messages, and a compiler.
        RevisionNotFoundError: there is no such commit.
    """
    if strategy not in STRATEGIES:
        raise errors.InvalidInputError(
            f"unknown strategy {strategy!r}; expected one of {', '.join(STRATEGIES)}"
        )
    if compiler is not None and strategy != "full":
        raise errors.InvalidInputError(f"a compiler cannot change the strategy {strategy!r}")
    where: str | ObjectId = _commit_at(contexts, revision, at) if at else revision
    context = contexts.compile(where, model=model, reasoning=reasoning)
    if strategy == "messages":
        return context.plain(_commit_lines(contexts, context))
    if compiler is not None:
        messages = compiler(context)
        if not hasattr(messages, "__iter__"):
            raise errors.InvalidInputError(
                f"the compiler returns messages, not {type(messages).__name__}", argument="compiler"
            )
        return context.plain(messages)
    return context


def check_budget(contexts: ContextCompiler, context: CompiledContext, budget: int | None) -> None:
    """Check that a context is within a budget in tokens; None is the repository's, if it has one.

    Raises:
        BudgetError: it is over budget.
    """
    limit = contexts.store.config.budget if budget is None else budget
    if limit is not None and context.token_count > limit:
        raise errors.BudgetError(
            f"the context has {context.token_count:,} tokens, and its budget is {limit:,}",
            needed=context.token_count,
            allowed=limit,
        )


def _commit_at(contexts: ContextCompiler, revision: str | ObjectId, at: str) -> ObjectId:
    try:
        commit = revisions.resolve_commit(contexts.store, at)
    except (errors.NotFoundError, errors.InvalidInputError) as not_a_revision:
        moment = revisions.parse_moment(at, contexts.store)
        if moment is None:
            raise not_a_revision
        start = revisions.resolve_commit(contexts.store, revision)
    else:
        try:
            start = revisions.resolve_commit(contexts.store, revision)
        except errors.UnbornBranchError:
            return commit
        if revisions.commits_of(contexts.store).is_ancestor(commit, start):
            return commit
        moment = contexts.read_commit(commit).time  # on another branch: use its time
    found = revisions.newest_not_after(contexts.store, start, moment)
    if found is None:
        raise errors.NotFoundError(f"{revision} has no commit before {at}")
    return found


def _commit_lines(contexts: ContextCompiler, context: CompiledContext) -> list[Message]:
    lines: list[Message] = []
    oid: bytes | None = context.commit
    while oid is not None:
        commit = contexts.read_commit(oid)
        oid, read = (commit.parents[0] if commit.parents else None), contexts.store.objects.read
        if not commit.message and all(o.name in LEAVES_CONTEXT for o in commit.operations):
            continue  # usage or metadata only
        roles = [m["role"] for o in commit.operations for m in o.fields.get("messages", ())]
        role = "assistant" if roles[:1] == ["assistant"] else "user"
        lines.append(Message(role, one_line(commit, read), kind="dialogue"))
    lines.reverse()
    return lines

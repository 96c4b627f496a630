"""Compactions of one session, inline or in a thread, and their history.

Only messages that a model has seen are compacted (`compression`). Summaries are written from the original messages.
After three model failures, rules write them for ten minutes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

from trace_store import errors, history
from trace_store.base.frozen import value
from trace_store.base.oid import ObjectId
from trace_store.compression.budgets import Compression
from trace_store.compression.selection import COMPRESSION
from trace_store.compression.working import REASON as TRIM
from trace_store.context.compiler import ContextCompiler
from trace_store.llm.contract import Model, Prompt
from trace_store.objects import operations as ops
from trace_store.objects.message import load_parts
from trace_store.objects.parts import Opaque
from trace_store.providers.media import is_compaction
from trace_store.sessions.facts import BACKGROUND, COUNT, SECONDS, WHY, WORK
from trace_store.writer import Writer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.base.ident import Time

AT_LIMIT, ASKED = "at the limit", "asked"
"""Reasons of a compaction, beside BACKGROUND."""
MAXIMUM_FAILURES = 3
REST_MILLISECONDS = 10 * 60 * 1000
_ROOM = 1.05
"""Margin above the smallest possible target, for messages that arrive meanwhile."""
_ATTEMPTS = 3
_CHANGES = frozenset((ops.REPLACE, ops.EDIT))
_AGENT_REASONS = ("compaction", "truncation")
"""Reasons for which importers replace messages."""

Emit = Callable[..., None]


@value
class CompactionEntry:
    """One compaction of a session.

    Attributes:
        commit: its commit; `revert` undoes it.
        time: when it was written.
        why: "at the limit", "background" or "asked"; "" if another program made it.
        before, after: tokens of the context.
        summariser: "model", "extractive" or "manual"; "trim" if messages were shortened; else the agent or provider,
            such as "claude-code", that compacted by itself.
        model: the model that wrote the summary, or "".
        seconds: its duration in seconds, or "".
    """

    commit: ObjectId
    time: Time
    why: str
    before: int
    after: int
    summariser: str
    model: str
    seconds: str

    @property
    def saved(self) -> int:
        """Tokens that it saved."""
        return max(0, self.before - self.after)


class Compactor:
    """Compacts one branch.

    Attributes:
        model: writes the summaries; None quotes the most important sentences.
        done: one sentence for each step since the last `take`.
    """

    def __init__(
        self, writer: Writer, model: Model | None, emit: Emit, work: Callable[[], str]
    ) -> None:
        self.model = model
        self.done: list[str] = []
        self._writer = writer
        self._compression = Compression(writer)
        self._emit = emit
        self._work = work
        self._failures = 0
        self._resting_until = 0
        self._thread: threading.Thread | None = None
        self._cancelled = threading.Event()
        self._error: Exception | None = None

    def take(self) -> tuple[str, ...]:
        """Return `done` and clear it."""
        done, self.done = tuple(self.done), []
        return done

    @property
    def is_running(self) -> bool:
        """Whether a compaction runs in a thread."""
        return self._thread is not None and self._thread.is_alive()

    def wait(self) -> None:
        """Wait for the thread; raise the error that ended it."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        error, self._error = self._error, None
        if error is not None:
            raise error

    def cancel(self) -> None:
        """Cancel a running compaction, and wait until it ends; it writes nothing."""
        self._cancelled.set()
        self.wait()

    def start(self, to: int) -> None:
        """Compact in a thread, unless one runs."""
        if self.is_running:
            return
        self.wait()
        self._cancelled.clear()
        self._thread = threading.Thread(target=self._run_in_thread, args=(to,), daemon=True)
        self._thread.start()

    def _run_in_thread(self, to: int) -> None:
        try:
            self.compact(to, BACKGROUND)
        except errors.TraceError as error:
            self._error = error

    def compact(self, to: int, why: str, *, instructions: str = "") -> bool:
        """Summarise the messages that a model has seen; return True if something was written.

        If the target cannot be reached, the context becomes as small as possible. If the model fails, rules write the
        summary.

        Args:
            to: the target in tokens, in the unit of `token_count`.
            why: one of the reasons above.
            instructions: what the summary should focus on, or "".

        Raises:
            StorageError: the disk failed; nothing was written.
        """
        model, clock = self._usable_model(), self._writer.store.clock
        began = clock.now()
        self._emit("compaction-started", why=why)
        work = self._work()
        for _ in range(_ATTEMPTS):
            try:
                made = self._compression.compress(
                    to,
                    model=model,
                    instructions=instructions,
                    force=why != BACKGROUND,
                    progress=self._progress,
                    message=f"compaction: {why}",
                    meta={
                        WHY: why,
                        SECONDS: f"{(clock.now() - began) / 1000:.1f}",
                        COUNT: self.count() + 1,
                        WORK: work,
                    },
                )
            except errors.ModelCancelledError:
                self._emit("compaction-cancelled")
                return False
            except errors.ModelError as error:
                self._failed(str(error))
                model = None
            except errors.BudgetError as error:
                needed = error.data.get("needed")
                smallest = int(needed * _ROOM) if isinstance(needed, int) else 0
                if smallest <= to:
                    break
                to = smallest
            except errors.RefChangedError:
                self.done.append("not compacted: another compaction finished first")
                break
            except (errors.StateError, errors.InvalidInputError) as error:
                self.done.append(f"not compacted: {error}")
                break
            else:
                if made.changed:
                    if model is not None:
                        self._failures = 0
                    self.done.append(f"compacted by {made.summariser}")
                self._emit("compaction-done", before=made.plan.before, after=made.after)
                return made.changed
        self._emit("compaction-failed", why=self.done[-1] if self.done else "")
        return False

    def count(self) -> int:
        """Return the number of compactions so far."""
        known = history.facts.branch_facts(self._writer).get(COUNT, "0")
        return int(known) if known.isdecimal() else 0

    def trim(self, to: int) -> bool:
        """Trim messages that a model has seen, as far as possible; return True if something was written."""
        made = self._compression.trim(
            to, keep_last=0, partial=True, meta={WHY: AT_LIMIT}, message="trim: at the limit"
        )
        if made.changed:
            self.done.append(f"trimmed by {made.before - made.after:,} tokens")
        return made.changed

    def _usable_model(self) -> Model | None:
        """Return the model, wrapped so that it raises only ModelError; None while rules replace it."""
        model = self.model
        if model is None or self._writer.store.clock.now() < self._resting_until:
            return None

        def ask(prompt: Prompt) -> Any:
            try:
                return model(prompt)
            except errors.TraceError:
                raise
            except Exception as error:
                raise errors.ModelUnreachableError(
                    f"the model failed: {type(error).__name__}: {error}"[:300]
                ) from error

        return ask

    def _failed(self, why: str) -> None:
        self._failures += 1
        self.done.append(f"the model failed: {why}")
        if self._failures >= MAXIMUM_FAILURES:
            self._failures = 0
            self._resting_until = self._writer.store.clock.now() + REST_MILLISECONDS
            self.done.append("rules write summaries for ten minutes")

    def _progress(self, done: int, whole: int) -> None:
        if self._cancelled.is_set():
            raise errors.ModelCancelledError("the compaction was cancelled")
        self._emit("compaction-progress", done=done, of=whole)


def compactions(writer: Writer) -> Iterator[CompactionEntry]:
    """Yield the compactions and trims of a branch, newest first, by Trace, its agent or its provider.

    Raises:
        ObjectNotFoundError, CorruptObjectError: a commit is missing or damaged.
    """
    if writer.store.refs.head().oid is None:
        return
    providers = _provider_compactions(writer.contexts)
    for entry in history.log.log(writer.store, "HEAD"):
        provider = providers.get(entry.oid, "")
        if not provider and _CHANGES.isdisjoint(entry.operations):
            continue
        commit = entry.commit
        counts = commit.meta.get(COMPRESSION) or commit.meta.get(TRIM)
        replaced = [o.fields for o in commit.operations if o.name == ops.REPLACE]
        if not isinstance(counts, dict):
            by_agent = any(fields.get("reason") in _AGENT_REASONS for fields in replaced)
            summariser = commit.author if by_agent else provider
            if not summariser:
                continue
            before = commit.parents[0] if commit.parents else None
            sizes = [writer.contexts.compile(each).token_count for each in (before, entry.oid)]
            counts = {"before": sizes[0], "after": sizes[1], "summariser": summariser}
        facts = ops.facts_of(commit, ops.META)
        yield CompactionEntry(
            *(entry.oid, commit.time, facts.get(WHY, "")),
            *(int(counts.get("before", 0)), int(counts.get("after", 0))),
            str(counts.get("summariser", "trim")),
            next((str(each["model"]) for each in replaced if each.get("model")), ""),
            facts.get(SECONDS, ""),
        )


def _provider_compactions(contexts: ContextCompiler) -> dict[ObjectId, str]:
    """Return the commits of a provider's compaction blocks in the context, each with the provider's name."""
    found = {}
    answers = (each for each in contexts.compile().view.messages() if each.role == "assistant")
    for home in {ObjectId(each.home_commit) for each in answers}:
        for _, message in ops.added_messages(contexts.read_commit(home), home):
            stored = [part for part in message["parts"] if part["type"] == Opaque.type]
            for part in load_parts(stored, contexts.store.objects.read):
                if isinstance(part, Opaque) and is_compaction(part):
                    found[home] = part.provider
    return found

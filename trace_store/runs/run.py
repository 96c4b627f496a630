"""A run in the process that does it: `repo.runs.start(…)` returns one.

    with repo.runs.start("Fix the parser", agent="coder") as run:
        with run.step("thinking", "Reading the failing test") as step:
            step.progress("The test expects …")
            step.complete("The parser drops the last line.")

A program that should not depend on a repository takes an `Emitter`: a `Run`, or a `NullRun` in its tests.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from contextlib import suppress
from contextvars import ContextVar, Token
from types import TracebackType
from typing import Any, Protocol, Self

from trace_store import errors
from trace_store.base import check
from trace_store.base.frozen import replace
from trace_store.base.oid import ObjectId
from trace_store.objects.address import Address
from trace_store.runs import steps as values
from trace_store.runs.progress import ProgressSender
from trace_store.runs.recording import RunRecorder, address_of, run_ended
from trace_store.runs.steps import (
    RunState,
    StepRecord,
    StepSource,
    Substep,
    Tokens,
    short,
    storable,
)
from trace_store.store.process_lock import RUN_LOCK, ProcessLock
from trace_store.writer import Writer

HEARTBEAT_SECONDS = 15.0
_current: ContextVar[RunStep | Run | None] = ContextVar("trace_run", default=None)


class StepEmitter(Protocol):
    """What a program says of one of its steps; `RunStep` stores it."""

    def progress(self, text: str) -> None:
        """Show more of the text that the step produces."""

    def source(self, title: str, url: str = "", type: str = "") -> None:
        """Add something that the step read."""

    def complete(self, content: str = "", *, message: str = "", tokens: Tokens = None) -> None:
        """End the step."""

    def fail(self, error: object) -> None:
        """End the step, which failed."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: object) -> None: ...


class Emitter(Protocol):
    """What a program says of its run; `Run` stores it, `NullRun` does not."""

    def step(self, type: str, title: str = "") -> StepEmitter:
        """Begin a step."""

    def complete(self) -> None:
        """End the run."""

    def fail(self, error: object) -> None:
        """End the run, which failed."""


class _Scope(ABC):
    """Something that a `with` block, plain or `async`, ends; it has failed if an error leaves the block."""

    _token: Token[RunStep | Run | None] | None = None

    @abstractmethod
    def _leave(self, error: BaseException | None) -> None:
        """End it at the end of the block, unless it has ended."""

    def __enter__(self) -> Self:
        self._token = _current.set(self)  # type: ignore[arg-type]
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._reset()
        self._leave(error)

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        import asyncio  # slow to load, and loaded already by who comes here

        self._reset()
        await asyncio.to_thread(self._leave, error)

    def _reset(self) -> None:
        token, self._token = self._token, None
        if token is not None:
            with suppress(ValueError):  # another context than it was entered in, as of a generator
                _current.reset(token)


class SubstepScope(_Scope):
    """A part of a step that is being done; the end of the step stores it."""

    def __init__(self, step: RunStep, number: int) -> None:
        self._step = step
        self._number = number

    def __enter__(self) -> Self:
        return self

    def complete(self, content: str = "") -> None:
        """End it; once it has ended, nothing changes."""
        self._step._end_substep(self._number, content=storable(content))

    def fail(self, error: object) -> None:
        """End it, which failed; once it has ended, nothing changes."""
        self._step._end_substep(self._number, error=_words(error))

    def _leave(self, error: BaseException | None) -> None:
        self.complete() if error is None else self.fail(error)


class RunStep(_Scope):
    """A step that is being done.

    A `with` block completes it at its end, or fails it if an error leaves the block. Sources and substeps are shown at
    once and stored with the end of the step.

    Attributes:
        run: its run.
        value: what is known of it.
    """

    def __init__(self, run: Run, value: StepRecord) -> None:
        self.run = run
        self.value = value

    @property
    def number(self) -> int:
        """Its number in the run, from 1."""
        return self.value.number

    @property
    def address(self) -> Address | None:
        """The address of its message in the run."""
        return self.value.address

    def progress(self, text: str) -> None:
        """Show more of the text that the step produces. It is not stored, and the caller does not wait.

        Raises:
            StateError: the step has ended.
        """
        self._check()
        if text:
            self.run._progress.put(self.number, text)

    def source(self, title: str, url: str = "", type: str = "") -> None:
        """Add something that the step read.

        Args:
            title: what it is called.
            url: where it is, or "".
            type: what it is, such as `web` or `file`, or "".

        Raises:
            StateError: the step has ended.
        """
        check.text(title=title, url=url, type=type)
        self._check()
        source = StepSource(short(storable(title)), storable(url), short(storable(type)))
        with self.run._mutex:
            self.value = replace(self.value, sources=(*self.value.sources, source))
            number = len(self.value.sources)
        self.run._note(self.number, number, source=source)

    def substep(self, title: str) -> SubstepScope:
        """Begin a part of the step; a `with` block ends it.

        Raises:
            StateError: the step has ended.
        """
        check.text(title=title)
        self._check()
        part = Substep(short(storable(title)), self.run._now())
        with self.run._mutex:
            self.value = replace(self.value, substeps=(*self.value.substeps, part))
            number = len(self.value.substeps)
        self.run._note(self.number, number, substep=part)
        return SubstepScope(self, number)

    def complete(
        self,
        content: str = "",
        *,
        message: Address | str = "",
        tokens: Tokens = None,
        model: str = "",
        title: str = "",
    ) -> None:
        """End the step; it is stored when this returns.

        Args:
            content: what came of it.
            message: the address of the message that it led to.
            tokens: how many were used: a number, or counts by name such as `input` and `output`.
            model: the model that was called.
            title: a better title, now that more is known; "" keeps the one it has.

        Raises:
            StateError: the step or the run has ended.
            MessageNotFoundError: there is no such message.
        """
        check.text(content=content, model=model, title=title)
        changes = {
            "content": storable(content),
            "message": address_of(self.run._writer.store, message),
            "tokens": values.tokens_of(tokens),
            "model": short(storable(model)) or self.value.model,
            "title": short(storable(title)) or self.value.title,
        }
        self._end(values.COMPLETED, changes)

    def fail(self, error: object) -> None:
        """End the step, which failed with an error or a text; raises as `complete`."""
        self._end(values.FAILED, {"error": _words(error)})

    def retry(self, title: str = "") -> RunStep:
        """Begin a step that tries this one again; raises as `Run.step`."""
        return self.run._begin(
            StepRecord(
                0,
                self.value.type,
                short(storable(title)) or self.value.title,
                model=self.value.model,
                parent=self.value.parent,
                retries=self.number,
            )
        )

    def _check(self) -> None:
        if not self.value.is_running:
            raise errors.StateError(
                f"step {self.number} of {self.run.id} is {self.value.status} already",
                code=errors.ErrorCode.STEP_ENDED,
                name=self.run.id,
                step=self.number,
            )
        self.run._check_process()

    def _end(self, status: str, changes: dict[str, Any]) -> None:
        with self.run._mutex:
            self._check()
            now = self.run._now()
            parts = tuple(
                part if part.completed else replace(part, completed=max(now, part.started))
                for part in self.value.substeps
            )
            self.value = self.run._recorder.end(
                self.value, status=status, substeps=parts, **changes
            )
        self.run._progress.end(self.number)

    def _end_substep(self, number: int, *, content: str = "", error: str = "") -> None:
        with self.run._mutex:
            parts = list(self.value.substeps)
            part = parts[number - 1]
            if part.completed or not self.value.is_running:
                return
            part = replace(
                part,
                completed=max(self.run._now(), part.started),
                content=content,
                error=error,
            )
            parts[number - 1] = part
            self.value = replace(self.value, substeps=tuple(parts))
        self.run._note(self.number, number, substep=part)

    def _leave(self, error: BaseException | None) -> None:
        if self.value.is_running and self.run.state.is_running:
            self.complete() if error is None else self.fail(error)


class Run(_Scope):
    """A run that is being done in this process.

    A `with` block completes it at its end, or fails it if an error leaves the block. Any thread may use it. If this
    process ends, or is silent for a minute, readers see the run as interrupted.
    """

    def __init__(self, writer: Writer, state: RunState, session: ObjectId | None) -> None:
        self._writer = writer
        self._pid = os.getpid()
        self._recorder = RunRecorder(writer, state)
        self._mutex = self._recorder.mutex
        self._lock = ProcessLock(writer.store, RUN_LOCK, state.id)
        self._progress = ProgressSender(
            writer.store, writer.guard, state.id, self._lock.beat, HEARTBEAT_SECONDS
        )
        self._recorder.start(session)
        if not self._lock.take():
            raise errors.LockedError(f"another process has the lock of {state.id}", name=state.id)
        self._lock.beat()
        self._progress.start()

    @property
    def id(self) -> str:
        """Its id, such as `run_4f0c9a2k7d1x`."""
        return self.state.id

    @property
    def state(self) -> RunState:
        """Its state after the last thing that this process wrote."""
        return self._recorder.state

    def step(
        self,
        type: str,
        title: str = "",
        *,
        model: str = "",
        parent: RunStep | None = None,
    ) -> RunStep:
        """Begin a step; its start is stored when this returns.

        Args:
            type: one of `runs.steps.TYPES`, or another lower-case name.
            title: what is done, in a few words.
            model: the model that is called.
            parent: the step that this one is a part of; None is the step of the `with` block around the call.

        Raises:
            InvalidInputError: the type is not valid.
            StateError: the run has ended, or belongs to another process.
            StorageError: the disk failed.
        """
        check.text(type=type, title=title, model=model)
        values.check_type(type)
        around = _current.get()
        if parent is None and isinstance(around, RunStep) and around.run is self:
            parent = around
        number = 0 if parent is None else parent.number
        words = short(storable(title))
        named = short(storable(model))
        return self._begin(StepRecord(0, type, words, model=named, parent=number))

    def complete(self) -> None:
        """End the run; steps that are still running stay without an end.

        Raises:
            StateError: it has ended already.
        """
        self._close(values.COMPLETED)

    def fail(self, error: object) -> None:
        """End the run, which failed with an error or a text; raises as `complete`."""
        self._close(values.FAILED, error=_words(error))

    def _begin(self, step: StepRecord) -> RunStep:
        self._check_process()
        return RunStep(self, self._recorder.begin(step))

    def _close(self, status: str, error: str = "") -> None:
        self._check_process()
        try:
            self._recorder.close(status, error=error)
        finally:
            if not self.state.is_running:
                self._stop()

    def _stop(self) -> None:
        self._progress.close()
        self._lock.remove()

    def _leave(self, error: BaseException | None) -> None:
        if self.state.is_running:
            self._close(*((values.COMPLETED,) if error is None else (values.FAILED, _words(error))))

    def _check_process(self) -> None:
        if not self.state.is_running:
            raise run_ended(self.state)
        if os.getpid() != self._pid:
            raise errors.StateError(
                f"the run {self.id} belongs to process {self._pid}, which this one was forked from; "
                "start a run of its own",
                code=errors.ErrorCode.RUN_ELSEWHERE,
                name=self.id,
            )

    def _note(self, step: int, number: int, **what: StepSource | Substep) -> None:
        self._progress.note(step, number, **what)

    def _now(self) -> int:
        return self._writer.store.clock.now()


class NullRun(_Scope):
    """An `Emitter` for tests: it takes everything and stores nothing. Its steps are such objects, too."""

    def step(self, type: str, title: str = "", **more: object) -> NullRun:
        """Begin a step that stores nothing."""
        return NullRun()

    def progress(self, text: str) -> None:
        """Do nothing."""

    def source(self, title: str, url: str = "", type: str = "") -> None:
        """Do nothing."""

    def substep(self, title: str) -> NullRun:
        """Begin a part that stores nothing."""
        return NullRun()

    def complete(self, content: str = "", **more: object) -> None:
        """Do nothing."""

    def fail(self, error: object) -> None:
        """Do nothing."""

    def retry(self, title: str = "") -> NullRun:
        """Begin a step that stores nothing."""
        return NullRun()

    def _leave(self, error: BaseException | None) -> None:
        pass

    def __enter__(self) -> Self:
        return self


def current_run() -> Run | None:
    """Return the run of the `with` block around the call, or None."""
    around = _current.get()
    return around.run if isinstance(around, RunStep) else around


def _words(error: object) -> str:
    """Return an error in words: the text of an exception, or its name."""
    if isinstance(error, BaseException):
        said = str(error)
        name = type(error).__name__
        error = f"{name}: {said}" if said else name
    return short(storable(str(error)))

"""OpenSpans of a framework as steps of a run.

Frameworks report what happens as spans: with an id of their own, the id of the span around them, a start and an end.
An adapter translates; this keeps the steps. A fault here never reaches the agent: it is logged once.
"""

from __future__ import annotations

import functools
import json
import logging
import threading
from collections.abc import Callable
from typing import Any, NamedTuple, ParamSpec

from trace_store.runs.run import Run, RunStep
from trace_store.runs.runs import Runs
from trace_store.runs.steps import Tokens

P = ParamSpec("P")
CONTENT_CHARACTERS = 20_000
"""How much of an output is stored as the content of a step."""
_log = logging.getLogger(__name__)


class _Span(NamedTuple):
    """An open span: its step, if it has one, the span around it, and the run if it began one."""

    step: RunStep | None
    parent: str
    run: Run | None


class OpenSpans:
    """The open spans of one adapter.

    Steps belong to the run that was given, or else to a run of their own for each outermost span.
    """

    def __init__(self, target: Run | Runs) -> None:
        """Take a run, or `repo.runs`, which starts a run for each outermost span."""
        self._target = target
        self._open: dict[str, _Span] = {}
        self._lock = threading.Lock()

    def start(
        self, id: object, parent: object, type: str, title: str = "", *, model: str = ""
    ) -> None:
        """Begin a span. One without a type is no step, but links the steps inside it to those around it."""
        key, above = str(id), "" if parent is None else str(parent)
        run = own = None
        if isinstance(self._target, Run):
            run = self._target
        else:
            run = self._run_of(above)
            if run is None:
                run = own = self._target.start(title or type or "run")
        step = run.step(type, title, model=model, parent=self._step_of(above)) if type else None
        with self._lock:
            self._open[key] = _Span(step, above, own)

    def progress(self, id: object, text: str) -> None:
        """Show more text of an open span."""
        span = self._open.get(str(id))
        if span is not None and span.step is not None:
            span.step.progress(text)

    def source(self, id: object, title: str, url: str = "", type: str = "") -> None:
        """Add something that an open span read."""
        span = self._open.get(str(id))
        if span is not None and span.step is not None:
            span.step.source(title, url, type)

    def end(
        self,
        id: object,
        content: object = "",
        *,
        tokens: Tokens = None,
        model: str = "",
        title: str = "",
        error: object = None,
    ) -> None:
        """End a span, which failed if there is an error; a title replaces that of the start."""
        with self._lock:
            span = self._open.pop(str(id), None)
        if span is None:
            return
        if span.step is not None and span.step.value.is_running:
            if error is None:
                span.step.complete(shown(content), tokens=tokens, model=model, title=title)
            else:
                span.step.fail(error)
        if span.run is not None and span.run.state.is_running:
            span.run.complete() if error is None else span.run.fail(error)

    def _run_of(self, key: str) -> Run | None:
        """Return the run that the outermost span around another one began."""
        while key:
            span = self._open.get(key)
            if span is None:
                return None
            if span.run is not None:
                return span.run
            key = span.parent
        return None

    def _step_of(self, key: str) -> RunStep | None:
        """Return the nearest step around a span."""
        while key:
            span = self._open.get(key)
            if span is None:
                return None
            if span.step is not None:
                return span.step
            key = span.parent
        return None


def guarded(method: Callable[P, None]) -> Callable[P, None]:
    """Let no fault of a method reach the agent: the first is logged with its traceback, later ones not."""
    has_failed = False

    @functools.wraps(method)
    def call(*args: P.args, **more: P.kwargs) -> None:
        nonlocal has_failed
        try:
            method(*args, **more)
        except Exception:  # noqa: BLE001 - no fault may stop the agent
            if not has_failed:
                has_failed = True
                _log.exception("a step could not be recorded; further faults are not logged")

    return call


def counts(found: object, **names: str) -> dict[str, int]:
    """Return token counts from a map or an object, by our names: `counts(usage, input="input_tokens")`."""
    result: dict[str, int] = {}
    for ours, theirs in names.items():
        value = found.get(theirs) if isinstance(found, dict) else getattr(found, theirs, None)
        if isinstance(value, int) and value:
            result[ours] = value
    return result


def shown(content: object) -> str:
    """Return an output as text, with its end cut if it is long."""
    if content is None:
        return ""
    text = content if isinstance(content, str) else _as_json(content)
    return text if len(text) <= CONTENT_CHARACTERS else text[:CONTENT_CHARACTERS] + "…"


def _as_json(content: Any) -> str:
    try:
        return json.dumps(content, ensure_ascii=False, default=str)
    except (TypeError, ValueError):
        return str(content)

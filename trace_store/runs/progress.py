"""Progress: the text of running steps, sent to watchers in batches and never stored.

A thread of the run emits the text as passing frames of the journal, at most about twenty a second. The caller only adds
to a bounded queue. If the disk is slower than the agent, "…" replaces the oldest text.

Each frame says at which character of the step's text it begins, and at least every two seconds one holds the whole
text, or its end, for readers that join in the middle. Secrets are redacted. A word is held back until it is complete,
because a secret may be split over several calls.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from trace_store import errors, secrets
from trace_store.base.frozen import fields
from trace_store.objects.content import bytes_of
from trace_store.runs.steps import StepSource, Substep
from trace_store.secrets.engine import SecretFinding
from trace_store.secrets.guard import Guard
from trace_store.store.store import Store

EVENT = "run.progress"
"""The kind of the frames. Fields: `run`, `step`, `at` and `text`; a frame whose `whole` is true replaces all text."""
NOTE = "run.note"
"""The kind of a frame with a source or a substep: `run`, `step`, `number`, and `source` or `substep`."""
BATCH_SECONDS = 0.05
WHOLE_SECONDS = 2.0
WHOLE_BYTES = 48 * 1024
QUEUE_CHARACTERS = 256 * 1024
CUT = "…"
OVERLAP_BYTES = 4096
"""How much earlier text is searched again with new text, so that a secret that began there is found."""
HELD_BYTES = 16 * 1024
"""Longest word, or unfinished secret, that is held back."""
_SPACES = b" \t\r\n\f\v"
_KEY_BEGINS, _KEY_ENDS = b"-----BEGIN ", b"-----END "
"""A private key is held back until its end, since its first lines alone look like nothing."""


class Screen:
    """Redacts secrets in a text that arrives in several calls."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._raw = b""
        self._shown = 0
        self._is_within = False

    def add(self, text: str, *, last: bool = False) -> str:
        """Add text and return what can be shown now; `last` releases the text that was held back."""
        self._raw += text.encode("utf-8", "replace")
        raw = self._raw
        found = self._findings(raw)
        limit = len(raw) if last else self._limit(found)
        pieces: list[bytes] = []
        at = self._shown
        for each in found:
            if each.end > at and each.start < limit:
                pieces.append(raw[at : each.start])
                if each.start >= at or not self._is_within:
                    pieces.append(secrets.placeholders.placeholder(each.rule, each.id))
                at = each.end
        self._is_within = at > limit or (at == limit and bool(found) and found[-1].end == at)
        pieces.append(raw[at:limit])
        self._shown = max(limit, at)
        self._forget(found)
        return b"".join(pieces).decode("utf-8", "replace")

    def _findings(self, raw: bytes) -> list[SecretFinding]:
        guard = self._guard
        if guard.mode in (secrets.OFF, secrets.WARN) or not guard.meets(raw):
            return []
        return guard.scanner.find_bytes(raw)

    def _limit(self, found: Sequence[SecretFinding]) -> int:
        """Return the end of the text that is safe to show now; a very long word is not held back."""
        raw = self._raw
        limit = _last_boundary(raw, self._shown)
        key = raw.rfind(_KEY_BEGINS, self._shown)
        starts = [each.start for each in found if each.end >= len(raw)]
        if key >= 0 and raw.find(_KEY_ENDS, key) < 0:
            starts.append(key)
        limit = max(self._shown, min([limit, *starts]))
        return limit if len(raw) - limit <= HELD_BYTES else len(raw)

    def _forget(self, found: Sequence[SecretFinding]) -> None:
        """Drop text that is no longer needed. An unfinished secret is kept from its start, up to a length."""
        open_ = min((each.start for each in found if each.end >= self._shown), default=self._shown)
        start = min(open_, self._shown - OVERLAP_BYTES)
        start = max(start, self._shown - HELD_BYTES - OVERLAP_BYTES)
        if start >= OVERLAP_BYTES:
            while self._raw[start] & 0xC0 == 0x80:  # within a character
                start -= 1
            self._raw, self._shown = self._raw[start:], self._shown - start


def _last_boundary(raw: bytes, start: int) -> int:
    """Return where the last complete word ends: after a space, or a character that no secret holds."""
    for at in range(len(raw) - 1, start - 1, -1):
        if raw[at] in _SPACES or raw[at] >= 0x80:
            return at + 1
    return start


class _Stream:
    """The text of one step."""

    def __init__(self, guard: Guard) -> None:
        self.screen = Screen(guard)
        self.queue: list[str] = []
        self.queued = 0
        self.notes: list[tuple[int, dict[str, StepSource | Substep]]] = []
        self.tail = ""
        self.at = 0
        self.whole_at = 0.0

    def put(self, text: str) -> None:
        """Queue a text; drop the oldest if there is too much."""
        self.queue.append(text)
        self.queued += len(text)
        if self.queued > QUEUE_CHARACTERS:
            kept = "".join(self.queue)[-QUEUE_CHARACTERS // 2 :]
            self.queue = [f" {CUT} {kept}"]
            self.queued = len(self.queue[0])

    def take(self) -> tuple[str, list[tuple[int, dict[str, StepSource | Substep]]]]:
        """Return what is queued, and empty the queue."""
        text, notes = "".join(self.queue), self.notes
        self.queue, self.queued, self.notes = [], 0, []
        return text, notes

    def frame(self, shown: str) -> dict[str, object]:
        """Return the fields of a frame with new text, or with the whole text if it is time."""
        begin = self.at
        self.at += len(shown)
        self.tail = _end_of(self.tail + shown)
        now = time.monotonic()
        is_long = len(bytes_of(shown)) > WHOLE_BYTES
        if begin and now - self.whole_at < WHOLE_SECONDS and not is_long:
            return {"at": begin, "text": shown}
        self.whole_at = now
        return {"at": self.at - len(self.tail), "text": self.tail, "whole": True}


class ProgressSender:
    """Emits the progress of a run's steps, from a thread that also calls `beat` from time to time."""

    def __init__(
        self, store: Store, guard: Guard, run: str, beat: Callable[[], None], seconds: float
    ) -> None:
        self._store = store
        self._guard = guard
        self._run = run
        self._beat = beat
        self._seconds = seconds
        self._streams: dict[int, _Stream] = {}
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._work, name=f"trace-{run}", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def put(self, step: int, text: str) -> None:
        """Queue a text of a step; never waits for the disk."""
        with self._lock:
            self._stream(step).put(text)
        self._wake.set()

    def note(self, step: int, number: int, **what: StepSource | Substep) -> None:
        """Queue a source or a substep of a step, which the end of the step stores; never waits for the disk."""
        with self._lock:
            self._stream(step).notes.append((number, what))
        self._wake.set()

    def _screened(self, given: StepSource | Substep) -> dict[str, object]:
        """Return the fields of a source or a substep without secrets, each text cut to what a frame can hold."""
        found: dict[str, object] = {}
        for name in fields(given):
            each = getattr(given, name)
            if isinstance(each, str):
                each = _end_of(Screen(self._guard).add(each, last=True))
            found[name] = each
        return found

    def _stream(self, step: int) -> _Stream:
        stream = self._streams.get(step)
        if stream is None:
            stream = self._streams[step] = _Stream(self._guard)
        return stream

    def end(self, step: int) -> None:
        """Forget a step that has ended; its content is stored."""
        with self._lock:
            self._streams.pop(step, None)

    def close(self) -> None:
        """End the thread."""
        self._closed.set()
        self._wake.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(timeout=1)

    def _work(self) -> None:
        beat_at = time.monotonic() + self._seconds
        while True:
            self._wake.wait(max(0.0, beat_at - time.monotonic()))
            if self._closed.is_set():
                return
            if time.monotonic() >= beat_at:
                beat_at = time.monotonic() + self._seconds
                try:
                    self._beat()
                except errors.ClosedError:
                    return
                except errors.TraceError:  # the disk is full: the next heartbeat may pass
                    continue
            if self._wake.is_set():
                self._closed.wait(
                    BATCH_SECONDS
                )  # a step that ends meanwhile needs no frame: its end stores all
                self._wake.clear()
                self._send_all()

    def _send_all(self) -> None:
        """Emit the queued text with one write."""
        with self._lock:
            taken = [(step, stream, *stream.take()) for step, stream in self._streams.items()]
        events: list[tuple[str, dict[str, object]]] = []
        for step, stream, text, notes in taken:
            about = {"run": self._run, "step": step}
            shown = stream.screen.add(text) if text else ""
            if shown:
                events.append((EVENT, {**about, **stream.frame(shown)}))
            for number, what in notes:
                fields = {name: self._screened(each) for name, each in what.items()}
                events.append((NOTE, {**about, "number": number, **fields}))
        try:
            self._store.emit_all(events)
        except errors.TraceError:  # watching is not worth an error in the agent
            return


def _end_of(text: str) -> str:
    """Return the end of a text, at most `WHOLE_BYTES` of it."""
    if len(text) * 4 <= WHOLE_BYTES:
        return text
    data = bytes_of(text)[-WHOLE_BYTES:]
    return data.decode("utf-8", "ignore")

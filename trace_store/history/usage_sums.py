"""Sums of reported usage, by model, by tool or by file.

A report counts a whole request. By tool or file, the input of each request is divided among the messages of its
context, in proportion to their tokens: a tool has its calls and their results, in every request that carried them. What
a provider counted beyond the messages are the agent's instructions and the tools' schemas. So the rows add up to what
was reported.

Contexts are not compiled one by one: along first parents, a commit that only appends adds its messages to the sums.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from trace_store.base.frozen import value
from trace_store.base.oid import ObjectId
from trace_store.context.activity import action_of
from trace_store.context.compiler import ContextCompiler
from trace_store.errors import InvalidInputError, TraceError
from trace_store.history.log import LogEntry, log
from trace_store.history.lookup import UsageTotal, reports_of
from trace_store.objects.message import load_parts
from trace_store.objects.operations import only_appends, stored_messages
from trace_store.objects.parts import ToolCall, ToolResult
from trace_store.store.prices import Price, price_of

MODEL, TOOL, FILE = "model", "tool", "file"
WAYS = (TOOL, FILE, MODEL)
MESSAGES, OVERHEAD, OUTPUT, TOTAL = "messages", "overhead", "output", "total"


@value
class UsageSum:
    """The usage of a model, tool or file, or what belongs to none.

    Attributes:
        part: MODEL, TOOL or FILE; MESSAGES (all others), OVERHEAD (the agent's instructions and tools), OUTPUT (what
            the models wrote), or TOTAL.
        name: of the model, tool or file; "" for the other parts.
        count: number of requests; of a tool or file, of calls.
        tokens: of a tool's or file's calls and results, each counted once, as Trace counts.
        input_total, cache_read, cache_write, output_total, reasoning: as in a report; of a tool or file only the input.
        cost: None without the price of a model.
    """

    JSON = "cost?"

    part: str
    name: str
    count: int
    tokens: int
    input_total: int
    cache_read: int
    cache_write: int
    output_total: int
    reasoning: int
    cost: float | None


@value
class UsageSums:
    """Sums of usage.

    Attributes:
        rows: the largest first; then what belongs to none.
        total: the sum of all reports.
        unpriced: models without a price, if prices were given; no cost includes them.
    """

    rows: tuple[UsageSum, ...]
    total: UsageSum
    unpriced: tuple[str, ...]


def usage_sums(
    contexts: ContextCompiler,
    revision: str,
    by: str,
    prices: Mapping[str, Price] | None = None,
) -> UsageSums:
    """Return the sums of all reports of a revision or range.

    Args:
        contexts: the compiler of the store.
        revision: the revision or range.
        by: MODEL, TOOL or FILE.
        prices: by name of a model; without them nothing has a cost.

    Raises:
        InvalidInputError: there is no such way.
    """
    if by not in WAYS:
        raise InvalidInputError(f"usage by {by[:40]!r}; expected {', '.join(WAYS)}", value=by)
    entries = list(log(contexts.store, revision))
    if by == MODEL:
        reports = [report for entry in entries for report in reports_of(entry)]
        return _by_model(reports, prices)
    return _Shares(contexts, by, prices).all(entries)


class _Sum:
    """A row that is being added up."""

    def __init__(self) -> None:
        self.count = self.tokens = 0
        self.counts: Counter[str] = Counter()
        self.input = 0.0
        self.cost: float | None = None

    def add_cost(self, cost: float | None) -> None:
        if cost is not None:
            self.cost = cost + (self.cost or 0)

    def row(self, part: str, name: str = "") -> UsageSum:
        counts = self.counts
        return UsageSum(
            part=part,
            name=name,
            count=self.count,
            tokens=self.tokens,
            input_total=counts["input_total"] or round(self.input),
            cache_read=counts["cache_read"],
            cache_write=counts["cache_write"],
            output_total=counts["output_total"],
            reasoning=counts["reasoning"],
            cost=self.cost,
        )

    def take(self, report: UsageTotal, price: Price | None) -> None:
        """Add a whole report."""
        self.count += 1
        self.counts.update({k: v for k, v in report.fields.items() if isinstance(v, int)})
        if price is not None:
            self.add_cost(price.input_cost(report.fields) + price.output_cost(report.fields))


def _by_model(reports: Iterable[UsageTotal], prices: Mapping[str, Price] | None) -> UsageSums:
    sums: dict[str, _Sum] = {}
    total, unpriced = _Sum(), dict[str, None]()
    for report in reports:
        name = report.model or str(report.fields.get("source") or "")
        price = price_of(prices or {}, report.model)
        for each in (sums.setdefault(name, _Sum()), total):
            each.take(report, price)
        if price is None:
            unpriced[name] = None
    rows = [each.row(MODEL, name) for name, each in sums.items()]
    rows.sort(key=lambda row: (-row.input_total - row.output_total, row.name))
    return UsageSums(tuple(rows), total.row(TOTAL), () if prices is None else tuple(unpriced))


class _Shares:
    """Divides the input of each request among the messages of its context."""

    def __init__(
        self, contexts: ContextCompiler, by: str, prices: Mapping[str, Price] | None
    ) -> None:
        self._contexts = contexts
        self._by = by
        self._prices = prices
        self._calls: dict[str, tuple[str, ...]] = {}
        """The tools or files of each call, by its id."""
        self._sums: dict[str, _Sum] = {}
        self._overhead, self._output, self._total = _Sum(), _Sum(), _Sum()
        self._unpriced: dict[str, None] = {}

    def all(self, entries: list[LogEntry]) -> UsageSums:
        """Return the sums; the entries are the newest first."""
        inside = {bytes(entry.oid): entry for entry in entries}
        seen: set[bytes] = set()
        for entry in entries:
            chain: list[LogEntry] = []
            at: LogEntry | None = entry
            while at is not None and bytes(at.oid) not in seen:
                seen.add(bytes(at.oid))
                chain.append(at)
                at = inside.get(bytes(at.parents[0])) if at.parents else None
            if chain:
                self._follow(chain[::-1])
        rows = [each.row(self._by, name) for name, each in self._sums.items() if name]
        rows.sort(key=lambda row: (-row.input_total, -row.tokens, row.name))
        rows.append(self._sums.get("", _Sum()).row(MESSAGES))
        rows += [self._overhead.row(OVERHEAD), self._output.row(OUTPUT)]
        unpriced = () if self._prices is None else tuple(self._unpriced)
        return UsageSums(tuple(rows), self._total.row(TOTAL), unpriced)

    def _follow(self, chain: list[LogEntry]) -> None:
        """Add the reports of commits that follow each other by first parents, oldest first."""
        first = chain[0].parents[0] if chain[0].parents else None
        weights = self._weights_at(first) if first is not None else Counter[str]()
        before: ObjectId | None = first
        for entry in chain:
            for report in reports_of(entry):
                # Nearly always it is about the context to which this commit adds the answer.
                is_here = report.about is None or report.about == before
                at = weights if is_here or report.about is None else self._weights_at(report.about)
                self._take(report, at)
            if only_appends(entry.commit):
                weights.update(self._weigh(stored_messages(entry.commit), once=True))
            else:
                self._weigh(stored_messages(entry.commit), once=True)
                weights = self._weights_at(entry.oid)
            before = entry.oid

    def _take(self, report: UsageTotal, weights: Counter[str]) -> None:
        price = price_of(self._prices or {}, report.model)
        if price is None:
            self._unpriced[report.model] = None
        self._total.take(report, price)
        self._output.counts["output_total"] += int(report.fields.get("output_total") or 0)
        self._output.counts["reasoning"] += int(report.fields.get("reasoning") or 0)
        read, known = int(report.fields.get("input_total") or 0), sum(weights.values())
        cost = None if price is None else price.input_cost(report.fields)
        if price is not None:
            self._output.add_cost(price.output_cost(report.fields))
        factor = min(1.0, read / known) if known else 0.0  # fewer were reported than we count
        for name, weight in weights.items():
            self._share(self._sums.setdefault(name, _Sum()), weight * factor, read, cost)
        self._share(self._overhead, read - known * factor, read, cost)

    @staticmethod
    def _share(to: _Sum, tokens: float, whole: int, cost: float | None) -> None:
        to.input += tokens
        if cost is not None and whole:
            to.add_cost(cost * tokens / whole)

    def _weights_at(self, oid: ObjectId) -> Counter[str]:
        """Return the tokens of the shown messages of a commit's context, by tool or file; "" has the others."""
        shown = self._contexts.fold(oid).visible()
        messages = [
            {**entry.message, "parts": entry.parts} for entry in shown if not entry.is_ghost
        ]
        return self._weigh(messages)

    def _weigh(self, messages: Iterable[Mapping[str, Any]], *, once: bool = False) -> Counter[str]:
        """Return the tokens of stored messages by tool or file; `once` adds them to the sums of calls and tokens."""
        weights: Counter[str] = Counter()
        pieces: list[tuple[tuple[str, ...], bool, Mapping[str, Any]]] = []
        for message in messages:
            for part in message["parts"]:
                names, is_call = self._names_of(part)
                pieces.append((names, is_call, {"role": message["role"], "parts": [part]}))
        sizes = self._contexts.weigh([piece for _, _, piece in pieces])
        for (names, is_call, _), size in zip(pieces, sizes, strict=True):
            for number, name in enumerate(names):
                tokens = size // len(names) + (number < size % len(names))
                weights[name] += tokens
                if once:
                    own = self._sums.setdefault(name, _Sum())
                    own.tokens += tokens
                    own.count += is_call
        return weights

    def _names_of(self, part: Mapping[str, Any]) -> tuple[tuple[str, ...], bool]:
        """Return the tools or files that a part belongs to, ("",) for none, and whether it is a call."""
        if part["type"] == ToolResult.type:
            return self._calls.get(str(part.get("id", "")), ("",)), False
        if part["type"] != ToolCall.type:
            return ("",), False
        names = self._call_names(part) or ("",)
        self._calls[str(part.get("id", ""))] = names
        return names, True

    def _call_names(self, part: Mapping[str, Any]) -> tuple[str, ...]:
        if self._by == TOOL:
            return (str(part.get("name", "")),)
        try:
            [call] = load_parts([part], self._contexts.store.objects.read)
        except TraceError:
            return ()
        return action_of(call).paths if isinstance(call, ToolCall) else ()

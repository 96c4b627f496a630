"""A model's answer about a merge, parsed and fully checked.

    {"conflicts": [{"number": 1, "take": "text", "text": "…", "why": "…"}],
     "summaries": [{"messages": ["ab12….0", "ab12….1"], "role": "assistant", "text": "…", "why": "…"}],
     "conclusion": {"role": "assistant", "text": "…", "sources": ["ab12….0"]}}

All faults are collected, so that the model learns about them at once. Only messages that are newer than the base
and were shown in full may be replaced, but not pinned ones, instructions, or a call without its result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import re2

from trace_store import errors
from trace_store.base.frozen import value
from trace_store.llm.contract import object_in
from trace_store.merge.conflicts import TEXT, Resolution
from trace_store.merge.llm_assist.request import ModelRequest
from trace_store.objects.address import Address
from trace_store.providers.wire import has_surrogates

ROLES = ("assistant", "user")
MAXIMUM_TEXT = 200_000
MAXIMUM_WHY = 500
MAXIMUM_ITEMS = 1000
MAXIMUM_FAULTS = 20
MAXIMUM_MATCHES = 1000


@value
class WrittenMessage:
    """A message that a model wrote.

    Attributes:
        role: `assistant` or `user`.
        text: the content.
        targets: messages that it replaces.
        sources: messages that it was made from.
        why: the model's reason.
    """

    role: str
    text: str
    targets: tuple[Address, ...] = ()
    sources: tuple[Address, ...] = ()
    why: str = ""


@value
class ModelAnswer:
    """A model's proposal for a merge.

    Attributes:
        resolutions: resolutions by conflict key.
        reasons: reasons by conflict key.
        summaries: messages that replace others.
        conclusion: a message to add at the end, or None.
    """

    resolutions: Mapping[str, Resolution]
    reasons: Mapping[str, str]
    summaries: tuple[WrittenMessage, ...] = ()
    conclusion: WrittenMessage | None = None


def parse_answer(answer: str, question: ModelRequest) -> ModelAnswer:
    """Return the advice in an answer.

    Raises:
        ModelNonsenseError: it is malformed, names messages that were not shown, leaves a conflict open, or loses text
            that must be kept; `faults` lists the problems.
    """
    reading = _AnswerParser(question)
    fields = object_in(answer)
    if fields is None:
        raise unusable_error(["it contains no JSON object"])
    resolutions, reasons = reading.conflicts(fields)
    summaries = reading.summaries(fields)
    conclusion = reading.conclusion(fields.get("conclusion"))
    if reading.faults:
        raise unusable_error(reading.faults)
    return ModelAnswer(resolutions, reasons, summaries, conclusion)


class _AnswerParser:
    """Parses the fields of an answer, and collects faults."""

    def __init__(self, question: ModelRequest) -> None:
        self._question = question
        self.faults: list[str] = []

    def fault(self, what: str) -> None:
        self.faults.append(what)

    def items(self, answer: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
        found = answer.get(name) or []
        if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
            self.fault(f"{name} is not a list of objects")
            return []
        if len(found) > MAXIMUM_ITEMS:
            self.fault(f"{name} lists more than {MAXIMUM_ITEMS:,}")
        return found[:MAXIMUM_ITEMS]

    def text(self, fields: Mapping[str, Any], name: str, where: str, *, empty: bool = False) -> str:
        found = fields.get(name, "" if empty else None)
        if found is None and empty:
            return ""
        if not isinstance(found, str) or not (empty or found.strip()):
            self.fault(f"{where} has no {name}")
            return ""
        if len(found) > MAXIMUM_TEXT or has_surrogates(found):
            self.fault(f"the {name} of {where} is too long, or is not Unicode")
            return ""
        return found

    def conflicts(self, answer: Mapping[str, Any]) -> tuple[dict[str, Resolution], dict[str, str]]:
        resolutions: dict[str, Resolution] = {}
        reasons: dict[str, str] = {}
        open_ = self._question.conflicts
        for fields in self.items(answer, "conflicts"):
            number = fields.get("number")
            if type(number) is not int or not 1 <= number <= len(open_):
                self.fault(f"there is no conflict {str(number)[:20]}")
                continue
            conflict, where = open_[number - 1], f"conflict {number}"
            take = fields.get("take")
            if take not in conflict.choices:
                self.fault(f"{where} is resolved by {', '.join(conflict.choices)}")
                continue
            if conflict.key in resolutions:
                self.fault(f"{where} is settled twice")
            text = self.text(fields, "text", where) if take == TEXT else ""
            if take == TEXT and text:
                self._check_kept([each.address for each in _all_entries(conflict)], text, where)
            resolutions[conflict.key] = Resolution(take, text)
            reasons[conflict.key] = self.text(fields, "why", where, empty=True)[:MAXIMUM_WHY]
        is_valid = not self.faults  # a conflict with a fault is not also reported as open
        for number, conflict in enumerate(open_, 1):
            if conflict.key not in resolutions and is_valid:
                self.fault(f"conflict {number} is left open")
        return resolutions, reasons

    def summaries(self, answer: Mapping[str, Any]) -> tuple[WrittenMessage, ...]:
        found: list[WrittenMessage] = []
        taken: set[Address] = set()
        for number, fields in enumerate(self.items(answer, "summaries"), 1):
            where = f"summary {number}"
            targets = self._addresses(fields.get("messages"), where)
            if not targets:
                self.fault(f"{where} replaces no message")
            for address in targets:
                why_not = self._question.fixed.get(address)
                if why_not or address in taken:
                    name = self._question.names[address]
                    self.fault(f"{where}: {name} {why_not or 'is in another summary'}")
            taken.update(targets)
            self._check_groups(targets, where)
            text = self.text(fields, "text", where)
            if text:
                self._check_kept(targets, text, where)
            why = self.text(fields, "why", where, empty=True)[:MAXIMUM_WHY]
            found.append(WrittenMessage(self._role(fields, where), text, targets, targets, why))
        return tuple(found)

    def conclusion(self, fields: Any) -> WrittenMessage | None:
        if fields is None:
            return None
        if not isinstance(fields, dict):
            self.fault("the conclusion is not an object")
            return None
        sources = self._addresses(fields.get("sources"), "the conclusion")
        if not sources:
            self.fault("the conclusion names no sources")
        text = self.text(fields, "text", "the conclusion")
        why = self.text(fields, "why", "the conclusion", empty=True)[:MAXIMUM_WHY]
        return WrittenMessage(self._role(fields, "the conclusion"), text, (), sources, why)

    def _role(self, fields: Mapping[str, Any], where: str) -> str:
        role = fields.get("role", ROLES[0])
        if role not in ROLES:
            self.fault(f"the role of {where} is not {' or '.join(ROLES)}")
            return ROLES[0]
        return str(role)

    def _addresses(self, names: Any, where: str) -> tuple[Address, ...]:
        if not isinstance(names, list) or len(names) > MAXIMUM_ITEMS:
            self.fault(f"{where} lists no messages")
            return ()
        found: dict[Address, None] = {}
        for name in names:
            address = self._question.addresses.get(name) if isinstance(name, str) else None
            if address is None:
                self.fault(f"{where} names {str(name)[:40]!r}, which was not shown")
            else:
                found[address] = None
        return tuple(found)

    def _check_groups(self, targets: Sequence[Address], where: str) -> None:
        chosen = set(targets)
        for group in self._question.groups:
            if chosen & group and not group <= chosen:
                names = sorted(self._question.names[each] for each in group - chosen)
                self.fault(f"{where} separates a tool call from its result: {names[0]} is missing")

    def _check_kept(self, addresses: Sequence[Address], text: str, where: str) -> None:
        for address in addresses:
            for pattern, said in self._question.kept.get(address, ()):
                gone = lost(pattern, said, text)
                if gone:
                    name = self._question.names.get(address, "a message")
                    self.fault(f"{where} loses {gone[0][:80]!r}, which {name} must keep")


def _all_entries(conflict: Any) -> list[Any]:
    return [*([conflict.base] if conflict.base else []), *conflict.ours, *conflict.theirs]


def unusable_error(faults: Sequence[str]) -> errors.ModelNonsenseError:
    """Return the error for an answer with faults."""
    more = f", and {len(faults) - 1} more" if len(faults) > 1 else ""
    return errors.ModelNonsenseError(
        f"the model's answer cannot be used: {faults[0]}{more}",
        faults=tuple(faults[:MAXIMUM_FAULTS]),
    )


def lost(pattern: str, said: str, text: str) -> list[str]:
    """Return the matches of a must-keep pattern in a text that the new text lacks, without duplicates.

    A pattern is an RE2 expression; if it is not valid, it is plain text.
    """
    return [found for found in matches(pattern, said) if found not in text]


def matches(pattern: str, said: str) -> list[str]:
    """Return the matches of a must-keep pattern in a text, without duplicates; see `lost`."""
    try:
        found = re2.compile(pattern, _OPTIONS).finditer(said)
    except re2.error:
        return [pattern] if pattern in said else []
    matches: dict[str, None] = {}
    for match in found:
        if match.group():
            matches[match.group()] = None
        if len(matches) >= MAXIMUM_MATCHES:
            break
    return list(matches)


_OPTIONS = re2.Options()
_OPTIONS.log_errors = False

"""The JSON shapes of results: once, for the command line and for every other program that prints JSON.

Rule: keys are snake_case and only ever added; ids are 64 hex characters, addresses 32, a dot and a number, times are
ISO 8601 in UTC with milliseconds, sizes are bytes. `docs/json.md` says what each key means.
"""

from __future__ import annotations

import trace_store
from trace_store import errors, history
from trace_store.ident import format_time, known_time
from trace_store.objects.address import plain as plain
from trace_store.objects.address import record
from trace_store.objects.codec import kind_of
from trace_store.objects.commit import read_commit
from trace_store.objects.message import Message
from trace_store.objects.operations import META, SETTINGS, facts_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any, Protocol

    from trace_store.checkpoints.forks import Choice, Fork
    from trace_store.checkpoints.hard import Checkpoint, Restored
    from trace_store.checkpoints.soft import Injected
    from trace_store.compression.compress import CompressionPlan, CompressionResult
    from trace_store.compression.expand import Expansion
    from trace_store.compression.suggest import Suggestions
    from trace_store.compression.summaries import SummaryReport
    from trace_store.compression.trim import TrimResult
    from trace_store.context.compiled import CompiledContext, CompiledMessage
    from trace_store.history.bisect import Bisection, BisectStep, Verdict
    from trace_store.history.blame import Blame, MessageOperation
    from trace_store.history.branches import Branch
    from trace_store.history.diff import ContextDiff, MessageChange
    from trace_store.history.draft import CommitResult
    from trace_store.history.log import LogEntry
    from trace_store.history.lookup import MessageState, UsageTotal, WordingVersion
    from trace_store.history.reset import StagedCommit
    from trace_store.history.status import Status
    from trace_store.history.tags import TagEntry
    from trace_store.history.trash_entries import (
        EmptyReport,
        HiddenMessage,
        TrashedRef,
        TrashRestored,
    )
    from trace_store.history.undo import UndoResult
    from trace_store.history.whohas import VersionHolders
    from trace_store.merge.conflicts import Conflict, ConflictMessage
    from trace_store.merge.meaning_warnings import MeaningWarning
    from trace_store.merge.result import Merge, Rewrite
    from trace_store.merge.revert import Revert, RevertedCommit
    from trace_store.merge.todo import Step
    from trace_store.oid import ObjectId
    from trace_store.providers.rendering import Rendered
    from trace_store.store.handle import Store

    class Waiting(Protocol):
        """An operation in progress."""

        kind: str
        ref: str


VERSION = 1
"""Incremented when a key changes its meaning or is removed; new keys leave it as it is."""


def _hex(oid: ObjectId | None) -> str | None:
    return None if oid is None else str(oid)


def commit_result(result: CommitResult) -> dict[str, object]:
    """Return a commit that was written."""
    return {**staged_commit(result), "also": [address.hex for address in result.also]}


def waiting(found: Waiting | None) -> dict[str, str] | None:
    """Return the stopped operation; None without one, or if its file is damaged."""
    return {"kind": found.kind, "ref": found.ref} if found and found.kind else None


def staged_commit(result: StagedCommit | CommitResult) -> dict[str, object]:
    """Return the commit that `commit_staged` wrote."""
    return {
        "commit": str(result.oid),
        "ref": result.ref,
        "message_count": result.message_count,
        "addresses": [address.hex for address in result.addresses],
        "secrets": dict(result.secrets),
    }


def status(found: Status, fork: Fork | None, stopped: Waiting | None) -> dict[str, Any]:
    """Return the status, with the branch's fork and the stopped operation, if there are any."""
    compared = found.tracking
    return {
        "branch": found.branch,
        "ref": found.ref,
        "detached": found.ref is None,
        "commit": str(found.oid) if found.oid else None,
        "message_count": found.message_count,
        "token_count": found.token_count,
        "token_source": found.token_source,
        "reported_token_count": found.reported_token_count,
        "estimated_token_count": found.estimated_token_count,
        "text_token_count": found.text_token_count,
        "text_token_source": found.text_token_source,
        "budget": found.budget,
        "share": found.share,
        "diverged": {name: [str(tip) for tip in tips] for name, tips in found.diverged.items()},
        "incomplete": list(found.incomplete),
        "unsealed_transactions": found.unsealed_transactions,
        "unsealed_bytes": found.unsealed_bytes,
        "branch_count": found.branch_count,
        "returned": list(map(str, found.returned)),
        "upstream": None if compared is None else compared.upstream,
        "ahead": None if compared is None else compared.ahead,
        "behind": None if compared is None else compared.behind,
        "staged": _hex(found.staged),
        "bisecting": found.is_bisecting,
        "fork_of": None if fork is None else fork.parent or None,
        "fork_point": None if fork is None else str(fork.point),
        "waiting": waiting(stopped),
    }


def log_entry(entry: LogEntry, names: dict[bytes, list[str]]) -> dict[str, Any]:
    """Return a commit as the JSON of `trace log`, with the names of the refs at it."""
    growth = entry.growth
    record: dict[str, Any] = {
        "commit": str(entry.oid),
        "parents": [str(parent) for parent in entry.parents],
        "author": entry.author,
        "time": known_time(entry.time),
        "message": entry.message,
        "summary": entry.summary(),
        "operations": list(entry.operations),
        "message_count": entry.message_count,
        "addresses": [address.hex for address in entry.addresses],
        "facts": facts_of(entry.commit, META),
        "settings": facts_of(entry.commit, SETTINGS),
        "refs": names.get(entry.oid, []),
    }
    if growth is not None:
        record["tokens_added"] = growth.added
        record["token_count"] = growth.total
        record["token_source"] = growth.source
    return record


def commit(entry: LogEntry, names: dict[bytes, list[str]]) -> dict[str, Any]:
    """Return a commit with its messages as the JSON of `trace show`."""
    return {
        **log_entry(entry, names),
        "meta": plain(entry.commit.meta),
        "links": plain(entry.commit.links),
        "messages": _lossless([message for _, message in entry.messages]),
    }


def stored_object(store: Store, oid: ObjectId, found: object) -> dict[str, Any]:
    """Return what `Line.get` returned for an id as the JSON of `trace show`: its kind, and the text of content."""
    record: dict[str, Any] = {"object": str(oid), "kind": kind_of(store.objects.read(oid))}
    if isinstance(found, bytes):
        record["size"] = len(found)
        record["text"] = found.decode("utf-8", "backslashreplace")
    return record


def message(
    state: MessageState, versions: Sequence[WordingVersion] | None = None
) -> dict[str, Any]:
    """Return a message and its state as the JSON of `trace show`, and all its versions if they are given."""
    record: dict[str, Any] = {
        "address": state.address.hex,
        **_lossless([state.message])[0],
        "priority": state.priority,
        "labels": sorted(state.labels),
        "hidden": state.hidden or None,
        "ghost": state.is_ghost,
        "version": state.version,
        "version_count": state.version_count,
    }
    if versions is not None:
        worded = [Message(state.message.role, each.parts) for each in versions]
        record["wordings"] = [each["parts"] for each in _lossless(worded)]
    return record


def _lossless(messages: Sequence[Message]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = trace_store.providers.rendering.render("json", messages).request[
        "messages"
    ]
    return found


def diff(found: ContextDiff) -> dict[str, Any]:
    """Return a diff as the JSON of `trace diff`."""
    return {
        "before": str(found.before.commit) if found.before.commit else None,
        "after": str(found.after.commit) if found.after.commit else None,
        "message_count_before": len(found.before),
        "message_count_after": len(found.after),
        "token_count_before": found.tokens_before,
        "token_count_after": found.tokens_after,
        "token_source": found.token_source,
        "common_count": found.common_count,
        "tokens_kept": found.tokens_before - found.tokens_lost,
        "tokens_lost": found.tokens_lost,
        "tokens_new": found.tokens_new,
        "tools_before": list(found.tools_before),
        "tools_after": list(found.tools_after),
        "changes": [_change(change) for change in found.changes],
    }


def _change(change: MessageChange) -> dict[str, Any]:
    record: dict[str, Any] = {
        "address": change.address.hex,
        "role": change.message.role,
        "kind": change.message.kind,
        "changes": list(change.kinds),
        "before": _change_side(change.before, change.tokens_before, change.labels_before),
        "after": _change_side(change.after, change.tokens_after, change.labels_after),
        "operations": [
            {"operation": by.operation, "commit": str(by.commit), "side": side}
            for side, by in (("before", change.before_by), ("after", change.after_by))
            if by is not None
        ],
    }
    if history.diff.EDITED in change.kinds:
        texts = [
            "\n".join(history.diff.lines_of_parts(m.parts))
            for m in (change.before, change.after)
            if m
        ]
        record["words"] = [
            [piece.sign, piece.text] for piece in history.text_diff.word_diff(*texts)
        ]
    return record


def _change_side(
    message: CompiledMessage | None, tokens: int, labels: frozenset[str]
) -> dict[str, Any] | None:
    if message is None:
        return None
    return {
        "address": message.address.hex,
        "position": message.position,
        "priority": message.priority,
        "labels": sorted(labels),
        "ghost": message.ghost,
        "token_count": tokens,
    }


def blame(each: Blame) -> dict[str, Any]:
    """Return where a message is from."""
    return {
        "address": each.message.address.hex,
        "position": each.message.position,
        "role": each.message.role,
        "kind": each.message.kind,
        "branch": each.branch,
        "model": each.model,
        "tools": list(each.tools),
        "made": _message_operation(each.made),
        "since": [_message_operation(change) for change in each.changes],
    }


def _message_operation(change: MessageOperation) -> dict[str, Any]:
    return record(change) | {"time": known_time(change.time)}


def found(found: VersionHolders) -> dict[str, Any]:
    """Return a version of a message, with the refs that have it."""
    return {
        "address": found.wording.address.hex,
        "wording": f"{found.wording.place[0].hex()}.{found.wording.place[1]}",
        "role": found.wording.role,
        "refs": plain(found.holders),
    }


def bisection(search: Bisection, step: BisectStep) -> dict[str, Any]:
    """Return a bisection, with its next step or its result."""
    return {
        "kind": search.kind,
        "commit": str(search.commit),
        "next": step.point or None,
        "left": step.left,
        "found": list(step.found),
        "told": [bisect_answer(each) for each in search.verdicts],
    }


def bisect_answer(verdict: Verdict) -> dict[str, object]:
    """Return one answer of a bisection."""
    return record(verdict)


def compiled(context: CompiledContext, rendered: Rendered, *, as_table: bool) -> dict[str, Any]:
    """Return a compiled context and its rendering."""
    summary: dict[str, Any] = {
        "commit": str(context.commit) if context.commit else None,
        "message_count": len(context.messages),
        "token_count": context.token_count,
        "token_source": context.token_source,
        "reported_token_count": context.reported_token_count,
        "estimated_token_count": context.estimated_token_count,
        "text_token_count": context.text_token_count,
        "text_token_source": context.text_token_source,
        "prefix_hash": context.prefix_hash.hex() if context.has_addresses else None,
        "tool_count": len(context.tools),
        "format": rendered.renderer,
        "format_version": rendered.version,
        "repairs": [
            {"code": each.code, "where": each.where, "detail": each.detail}
            for each in rendered.repairs
        ],
    }
    if as_table:
        summary["messages"] = _compiled_messages(context)
    return summary


def _compiled_messages(context: CompiledContext) -> list[dict[str, Any]]:
    if not context.has_addresses:
        return [{"role": message.role, "kind": message.kind} for message in context.messages]
    return [
        {
            "address": message.address.hex,
            "role": message.role,
            "kind": message.kind,
            "priority": message.priority,
            "labels": sorted(message.labels),
            "ghost": message.ghost,
            "token_count": tokens,
            "text_token_count": text,
        }
        for message, (tokens, text) in zip(context.messages, context.message_tokens(), strict=True)
    ]


def usage(each: UsageTotal) -> dict[str, Any]:
    """Return a reported usage."""
    return {"commit": str(each.commit), "about": _hex(each.about), **each.fields}


def branch(store: Store, each: Branch) -> dict[str, Any]:
    """Return a branch."""
    compared = each.tracking
    try:
        commit = read_commit(each.oid, store.objects.read)
    except errors.TraceError:
        commit = None  # it is not here
    return {
        "name": each.name,
        "ref": each.ref,
        "commit": str(each.oid),
        "tips": [str(tip) for tip in each.tips],
        "current": each.is_current,
        "upstream": None if compared is None else compared.upstream,
        "ahead": None if compared is None else compared.ahead,
        "behind": None if compared is None else compared.behind,
        "time": None if commit is None else known_time(commit.time),
        "summary": None if commit is None else history.summary.summary(store, commit),
    }


def tag(each: TagEntry) -> dict[str, Any]:
    """Return a tag."""
    annotation = each.tag
    return {
        "name": each.name,
        "ref": each.ref,
        "object": str(each.oid),
        "target": str(each.target),
        "annotated": annotation is not None,
        "author": None if annotation is None else annotation.author,
        "time": None if annotation is None else format_time(annotation.time),
        "message": None if annotation is None else annotation.message,
    }


def undone(done: UndoResult) -> dict[str, Any]:
    """Return what `undo` or `redo` moved."""
    return {
        "message": done.message,
        "author": done.author,
        "time": format_time(done.time),
        "moves": [
            {"ref": name, "before": _hex(before), "now": _hex(now)}
            for name, before, now in done.moves
        ],
        "ref": done.head.ref,
        "commit": _hex(done.head.oid),
    }


def conflicts(found: Sequence[Conflict]) -> list[dict[str, Any]]:
    """Return open conflicts."""
    return [_conflict(each) for each in found]


def settled(found: Sequence[Conflict]) -> list[dict[str, Any]]:
    """Return resolved conflicts."""
    return [
        {
            "number": each.number,
            "kind": each.kind,
            "addresses": [address.hex for address in each.addresses],
            "choice": each.resolution.choice if each.resolution else None,
            "text": each.resolution.text if each.resolution else "",
        }
        for each in found
    ]


def _conflict(conflict: Conflict) -> dict[str, Any]:
    return {
        "number": conflict.number,
        "kind": conflict.kind,
        "meaning": conflict.meaning,
        "addresses": [address.hex for address in conflict.addresses],
        "choices": list(conflict.choices),
        "ours": [_conflict_message(entry) for entry in conflict.ours],
        "theirs": [_conflict_message(entry) for entry in conflict.theirs],
    }


def _conflict_message(entry: ConflictMessage) -> dict[str, Any]:
    return {
        "address": entry.address.hex,
        "role": entry.role,
        "text": entry.text,
        "hidden": entry.hidden,
        "priority": entry.priority,
    }


def warnings(warnings: Iterable[MeaningWarning]) -> list[dict[str, Any]]:
    """Return warnings."""
    return [
        {
            "kind": warning.kind,
            "meaning": warning.meaning,
            "address": warning.address.hex,
            "others": [address.hex for address in warning.others],
        }
        for warning in warnings
    ]


def merge(found: Merge) -> dict[str, Any]:
    """Return a merge."""
    return {
        "outcome": found.outcome,
        "ref": found.ref,
        "before": str(found.before) if found.before else None,
        "commit": str(found.after) if found.after else None,
        "merged": [str(oid) for oid in found.theirs],
        "included": found.included,
        "hidden": found.hidden,
        "changed": found.changed,
        "conflicts": conflicts(found.conflicts),
        "settled": settled(found.settled),
    }


def rewrite(found: Rewrite) -> dict[str, Any]:
    """Return a cherry-pick or a rebase."""
    return {
        "outcome": found.outcome,
        "ref": found.ref,
        "before": str(found.before) if found.before else None,
        "commit": str(found.after) if found.after else None,
        "made": [{"from": str(old), "commit": str(new)} for old, new in found.made],
        "dropped": [str(oid) for oid in found.dropped],
        "there": [str(oid) for oid in found.there],
        "stopped_at": str(found.step.oid) if found.step else None,
        "conflicts": conflicts(found.conflicts),
        "settled": settled(found.settled),
        "warnings": warnings(found.warnings),
    }


def step(step: Step, summary: str) -> dict[str, str]:
    """Return a step of a rebase, with the summary of its commit."""
    return {"action": step.action, "commit": str(step.oid), "summary": summary}


def revert(found: Revert) -> list[dict[str, Any]]:
    """Return a record for each new commit; if it stopped, one with the conflicts."""
    if found.step is None:
        return [_reverted(done) for done in found.made]
    return [
        {
            "outcome": found.outcome,
            "ref": found.ref,
            "stopped_at": str(found.step),
            "conflicts": conflicts(found.conflicts),
        }
    ]


def _reverted(done: RevertedCommit) -> dict[str, Any]:
    return {
        "commit": str(done.oid),
        "reverts": str(done.reverts),
        "ref": done.ref,
        "operations": list(done.operations),
        "conflicts": [
            {
                "kind": each.kind,
                "address": each.addresses[0].hex if each.addresses else None,
            }
            for each in done.conflicts
        ],
    }


def checkpoint(each: Checkpoint) -> dict[str, Any]:
    """Return a checkpoint."""
    return {
        "name": each.name,
        "ref": each.ref,
        "form": each.form,
        "commit": str(each.commit),
        "branch": each.branch or None,
        "reason": each.reason,
        "trigger": each.trigger,
        "automatic": each.is_automatic,
        "archived": each.is_archived,
        "author": each.author or None,
        "time": known_time(each.time),
    }


def restored_checkpoint(done: Restored) -> dict[str, Any]:
    """Return the move of a branch to a checkpoint."""
    return record(done, after="commit") | {"checkpoint": done.checkpoint.ref}


def injected(done: Injected) -> dict[str, Any]:
    """Return the soft checkpoint that was put into a context."""
    return record(done, is_hidden="hidden") | {"checkpoint": done.checkpoint.ref}


def fork(made: Fork) -> dict[str, Any]:
    """Return a fork."""
    return record(made, point="fork_point") | {"parent": made.parent or None}


def fork_choice(done: Choice) -> dict[str, Any]:
    """Return the choice between two forks."""
    return record(done, archived_tip="archived_commit", is_moved="moved")


def trim(result: TrimResult) -> dict[str, Any]:
    """Return a trim, or what one would do."""
    return {
        "target": result.target,
        "before": result.before,
        "after": result.after,
        "met": result.met,
        "steps": plain(result.steps),
        "stays": dict(result.stays),
        "changes": [
            {"address": address.hex, "reason": reason} for address, reason in result.changes
        ],
        "replaced": [address.hex for address in result.replaced],
        "commit": None if result.commit is None else str(result.commit.oid),
    }


def suggestions(found: Suggestions) -> dict[str, Any]:
    """Return proposals to make room, and the heat of the context."""
    return {
        "token_count": found.tokens,
        "proposals": [
            {
                "number": number,
                "action": each.action,
                "reason": each.reason,
                "addresses": [address.hex for address in each.addresses],
                "tokens": each.tokens,
                "heat": round(each.heat, 4),
                "explanation": each.explanation,
            }
            for number, each in enumerate(found.proposals, 1)
        ],
        "heat": [round(each, 4) for each in found.heat],
    }


def compression_plan(found: CompressionPlan) -> dict[str, Any]:
    """Return what a compression would replace."""
    return {
        "target": found.target,
        "before": found.before,
        "after": found.after,
        "smallest": found.smallest,
        "runs": [
            {
                "messages": [each.hex for each in run.targets],
                "sources": [each.hex for each in run.sources],
                "token_count": run.token_count,
                "budget": run.budget,
            }
            for run in found.runs
        ],
        "kept": dict(found.kept),
    }


def compression(done: CompressionResult) -> dict[str, Any]:
    """Return a compression."""
    result = done.result
    addresses = () if result is None else result.addresses
    return {
        "commit": None if result is None else str(result.oid),
        "ref": None if result is None else result.ref,
        **compression_plan(done.plan),
        "after": done.after,
        "summariser": done.summariser or None,
        "model": done.model or None,
        "summaries": [
            {"address": each.hex, "text": text}
            for each, text in zip(addresses, done.texts, strict=True)
        ],
        "secrets": {} if result is None else dict(result.secrets),
    }


def summary_report(each: SummaryReport) -> dict[str, Any]:
    """Return what a summary no longer mentions."""
    return record(each)


def expansion(done: Expansion) -> dict[str, Any]:
    """Return a message that is shown in full again."""
    return {
        "commit": str(done.result.oid),
        "ref": done.result.ref,
        "what": done.what,
        "messages": [each.hex for each in done.messages],
    }


def trash_message(each: HiddenMessage) -> dict[str, Any]:
    """Return a removed message."""
    return {"entry": "message", **record(each), "time": known_time(each.time)}


def trash_ref(each: TrashedRef) -> dict[str, Any]:
    """Return a ref in the trash."""
    return {
        "entry": each.kind,
        "ref": each.ref,
        "original": each.original or None,
        "object": str(each.oid),
        "exists": each.exists,
        "time": known_time(each.time),
        "text": each.text,
    }


def trash_restored(done: TrashRestored) -> dict[str, Any]:
    """Return what was restored from the trash."""
    shown = done.messages
    return {
        "commit": None if shown is None else str(shown.commit.oid),
        "messages": [
            {
                "address": each.address.hex,
                "after": each.after.hex if each.after else None,
                "exact": each.is_exact,
            }
            for each in (shown.messages if shown else ())
        ],
        "refs": [
            {"entry": each.entry.ref, "ref": each.ref or None, "object": str(each.entry.oid)}
            for each in done.refs
        ],
    }


def trash_emptied(report: EmptyReport, *, dry_run: bool) -> dict[str, Any]:
    """Return how the trash was emptied, or would be."""
    return {
        "dry_run": dry_run,
        "messages": report.messages,
        "refs": report.refs,
        "shared": report.shared,
        "objects": report.freed.objects,
        "bytes": report.freed.disk,
        "commit": str(report.commit.oid) if report.commit else None,
    }

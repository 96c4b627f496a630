"""`trace compile`: the context to send to a model."""

from __future__ import annotations

import trace_store
from trace_cli.arguments import OPTIONAL, Argument, Option, takes
from trace_cli.failures import EXIT_DAMAGED, EXIT_OK, usage_error
from trace_cli.porcelain.common import JSON, opened, tell_unknown_model
from trace_cli.render.escape import one_line
from trace_cli.render.records import json_bytes, short_address, write_data
from trace_cli.render.tables import (
    LEFT,
    RIGHT,
    ROLE_STYLES,
    counted,
    heat_bar,
    number,
    share,
    table,
    token_summary,
)
from trace_cli.runtime import Invocation
from trace_store import Opaque, Reasoning, Text, ToolCall, ToolResult, errors
from trace_store.context import call_line, result_line
from trace_store.providers import FORMATS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from trace_store.context.compiled import CompiledContext
    from trace_store.objects.parts import Part
    from trace_store.providers.rendering import Rendered
    from trace_store.repo.repository import Repo

    Row = tuple[Any, int, int, float]
    """A message, its tokens, its text tokens, and its heat, which is 0 if not asked for."""


# How many adaptations of each kind are printed; a session of another provider needs one per message.
SHOWN_ADAPTATIONS = 3
# How many times its width a line reads: spaces collapse, and the main argument of a call may come late.
_SPARE = 8


@takes(
    Argument(
        "REVISION",
        "revision",
        "The commit to compile",
        OPTIONAL,
        default="HEAD",
        completes="COMMIT",
    ),
    Option(
        "-f --format",
        "form",
        f"One of {', '.join(FORMATS)}; default: text",
        "FORMAT",
        completes="RENDERER",
    ),
    Option("--table", "as_table", "List messages with tokens and addresses"),
    Option("--plain", "plain", "Like --table, with plain numbers and tabs"),
    Option(
        "--largest",
        "largest",
        "List the N largest messages",
        "N",
        number=True,
        least=1,
    ),
    Option(
        "--heat", "heat", "--table with a column that shows how often later messages refer to each"
    ),
    Option("--at", "at", "Compile the context as of a time or revision", "WHEN", default=""),
    Option(
        "--strategy",
        "strategy",
        "full, or messages: one line per commit",
        "NAME",
        default="full",
    ),
    Option("--reasoning", "reasoning", "Include reasoning", off="--no-reasoning"),
    Option(
        "--strict",
        "strict",
        "Fail if the request needs repairs or the context is over budget",
    ),
    Option("--cache", "cache", "Set cache breakpoints if the format has them"),
    Option(
        "--expand",
        "expand",
        "Show this summary, or removed or edited message, in full",
        "ADDRESS",
        many=True,
    ),
    Option(
        *("--model", "model", "The target model, for token counts and what a request can carry"),
        *("MODEL",),
        default="",
    ),
    Option("--verify", "verify", "Check the cached context against a fresh one"),
    Option("-o --output", "output", "Write to FILE", "FILE"),
    JSON,
)
def compile_(
    invocation: Invocation,
    *,
    revision: str,
    form: str | None,
    as_table: bool,
    plain: bool,
    largest: int | None,
    heat: bool,
    at: str,
    strategy: str,
    reasoning: bool,
    strict: bool,
    cache: bool,
    expand: list[str],
    model: str,
    verify: bool,
    output: str | None,
) -> int:
    """Print the context to send to a model.

    The formats `openai` (Chat Completions), `openai-responses`, `anthropic` and `gemini` print the messages,
    instructions and tools of a request; a client adds the model and its settings. `text` is for reading. `json` is
    Trace's own lossless format, which `trace commit --json` reads.

    Repairs and adaptations are reported on standard error: every repair, and the first few adaptations of each kind.
    --strict fails instead of repairing. It still adapts the context to the provider.

    --json prints a summary instead: commit, tokens, repairs. --table lists the messages for people, --plain for `sort`
    and `cut`. If the context is over its budget (`trace config budget`), a note says so; with --strict nothing is
    printed, and the exit code is 15.

        trace compile 89c6 --largest 5
        trace compile --format anthropic -o request.json

    --at TIME: the state at that time. --at REVISION: that revision. If it is on another branch: the state at its time.
    """
    if form is not None and form not in FORMATS:
        raise usage_error(f"unknown format {form!r}", f"formats: {', '.join(FORMATS)}")
    as_table = as_table or plain or heat or largest is not None
    if form is not None and as_table and not invocation.as_json:
        raise usage_error("give --table or --format, not both")
    to_file = output if output != "-" else None
    # A file gets a table as wide as it is, without colour.
    shown_on = (
        Invocation(environment=invocation.environment, terminal=False) if to_file else invocation
    )
    if expand and strategy != "full":
        raise usage_error("--expand requires the strategy full")
    with opened(invocation) as here:
        if to_file is None:
            invocation.page()
        tell_unknown_model(invocation, model)
        if verify and not _verified(invocation, here, revision, at):
            return EXIT_DAMAGED
        context = here.compile(
            revision,
            at=at,
            strategy=strategy,
            reasoning=reasoning,
            model=model,
            compiler=here.compression.in_full(*expand) if expand else None,
            strict=strict,
        )
        budget = here.store.config.budget
        if budget and context.token_count > budget:
            said = f"{share(context.token_count, budget)} of {counted(budget, 'token')}"
            invocation.note(f"note: the context is over its budget: {said}")
        options: dict[str, Any] = {"strict": strict, "cache": "stable" if cache else "none"}
        rows = _rows(here, context, largest=largest, heat=heat) if as_table else []
        if as_table and not invocation.as_json:
            lines = _table(shown_on, here, context, rows, plain=plain, heat=heat)
            data = "".join(f"{each}\n" for each in lines).encode()
            _write(invocation, data, to_file, is_escaped=True)
            return EXIT_OK
        rendered = context.render(form or "text", **options)
        if invocation.as_json:
            summary = _summary(context, rendered)
            if as_table:
                summary["messages"] = [_message_record(row, heat=heat) for row in rows]
            data = json_bytes(summary, ascii_only=shown_on.terminal)
        else:
            _tell_repairs(invocation, rendered)
            data = rendered.to_bytes()
        data = data if data.endswith(b"\n") or not data else data + b"\n"
        _write(invocation, data, to_file, is_escaped=invocation.as_json)
    return EXIT_OK


def _rows(here: Repo, context: CompiledContext, *, largest: int | None, heat: bool) -> list[Row]:
    """Return the messages of a table, in order, or the largest ones."""
    if heat and not context.has_addresses:
        raise usage_error("--heat requires the strategy full, without --expand")
    sizes = context.message_tokens()
    heats = here.compression.heat(context) if heat else [0.0] * len(sizes)
    rows = [
        (message, *size, each)
        for message, size, each in zip(context.messages, sizes, heats, strict=True)
    ]
    return rows if largest is None else sorted(rows, key=lambda row: -row[1])[:largest]


def _summary(context: CompiledContext, rendered: Rendered) -> dict[str, Any]:
    """Return the JSON of a context."""
    form = {"format": rendered.renderer, "format_version": rendered.version}
    found = trace_store.record(context, **form, repairs=rendered.repairs)
    if not context.has_addresses:
        found["prefix_hash"] = None  # no commit has this context
    return found


def _message_record(row: Row, *, heat: bool) -> dict[str, Any]:
    """Return the JSON of a message; those of a strategy have no address."""
    message, tokens, text_tokens, hot = row
    if not hasattr(message, "address"):
        return {"role": message.role, "kind": message.kind}
    sizes = {"token_count": tokens, "text_token_count": text_tokens}
    return trace_store.record(message, **sizes, **({"heat": round(hot, 2)} if heat else {}))


def _verified(invocation: Invocation, here: Repo, revision: str, at: str) -> bool:
    """Compare the cached context with one from its history, and report the result."""
    commit = here.compile(revision, at=at).commit if at else None
    found = here.contexts.verify(commit or revision)
    if found.matches:
        invocation.note(
            f"verified: {counted(found.message_count, 'message')}, same as a fresh context"
        )
        return True
    position = "the end" if found.first_difference is None else f"message {found.first_difference}"
    invocation.note(f"trace: error: the cached context differs from a fresh one at {position}")
    invocation.note("hint: `trace compile-index --rebuild` rebuilds the index; please report this")
    return False


def _write(invocation: Invocation, data: bytes, output: str | None, *, is_escaped: bool) -> None:
    """Write data to a file, or to standard output, where it is escaped if it is not yet."""
    if output is None:
        if is_escaped:
            invocation.write(data)
        else:
            write_data(invocation, data)
        return
    try:
        with open(output, "wb") as file:
            file.write(data)
    except OSError as error:
        raise errors.StorageError(
            f"cannot write {output!r}: {error.strerror}", path=output
        ) from error


def _tell_repairs(invocation: Invocation, rendered: Rendered) -> None:
    """Report repairs: all faults, and the first few adaptations of each kind."""
    counts: dict[str, int] = {}
    for repair in rendered.repairs:
        if not repair.is_fault:
            counts[repair.code] = counts.get(repair.code, 0) + 1
        if repair.is_fault or counts[repair.code] <= SHOWN_ADAPTATIONS:
            invocation.note(f"note: {one_line(repair.where)}: {one_line(repair.detail)}")
    for code, count in sorted(counts.items()):
        if count > SHOWN_ADAPTATIONS:
            more = f"{count - SHOWN_ADAPTATIONS:,} more {code}"
            invocation.note(f"note: {more} (with --json, all of them)")


def _table(
    invocation: Invocation,
    here: Repo,
    context: CompiledContext,
    shown: Sequence[Row],
    *,
    plain: bool,
    heat: bool,
) -> list[str]:
    if not context.has_addresses:
        raise usage_error("--table requires the strategy full, without --expand")
    budget = here.store.config.budget
    whole = budget or context.estimated_token_count
    rows, styles = [], []
    for message, tokens, _, hot in shown:
        marks = [message.priority] if message.priority != "normal" else []
        marks += ["ghost"] if message.ghost else []
        marks += [f"#{one_line(label, 40)}" for label in sorted(message.labels)]
        rows.append(
            (
                short_address(message.address),
                message.role,
                message.kind,
                str(tokens) if plain else number(tokens),
                share(tokens, whole),
                *([_heat(hot, plain=plain)] if heat else []),
                " ".join(marks),
                _beginning(message.parts),
            )
        )
        styles.append(
            (
                *("yellow", ROLE_STYLES.get(message.role, ""), "dim", "", "dim"),
                *(["red"] if heat else []),
                *("cyan", ""),
            )
        )
    if plain:
        return ["\t".join(row) for row in rows]
    named = ["address", "role", "kind", "tokens", "budget" if budget else "share"]
    header = [*named, *(["heat"] if heat else []), "marks", "text"]
    lines = table(invocation, header, rows, LEFT * 3 + RIGHT * 2 + LEFT * (2 + heat), styles)
    of = "" if len(rows) == len(context) else f"{len(rows)} of "
    total = f"{of}{counted(len(context), 'message')}, {token_summary(context)}"
    lines.append(total + _of_budget(context, budget))
    return lines


def _heat(heat: float, *, plain: bool) -> str:
    return f"{heat:.2f}" if plain else heat_bar(heat)


def _of_budget(context: CompiledContext, budget: int | None) -> str:
    if not budget:
        return ""
    return f", {share(context.token_count, budget)} of the budget of {number(budget)}"


def _beginning(parts: Sequence[Part], width: int = 120) -> str:
    """Return the beginning of a message on one line."""
    # Provider-specific parts are shown only if there is nothing else.
    said = [part for part in parts if not isinstance(part, Opaque)] or parts
    return one_line(" ".join(_said(part, _SPARE * width) for part in said), width)


def _said(part: Part, limit: int) -> str:
    """Return about the first `limit` characters of a part, unescaped."""
    if isinstance(part, Text | Reasoning):
        return part.text[:limit]
    if isinstance(part, ToolCall):
        return call_line(part.name, part.arguments[: _SPARE * limit])
    if isinstance(part, ToolResult):
        return result_line("\n".join(_said(inner, limit) for inner in part.content))
    return f"[{part.type}]"

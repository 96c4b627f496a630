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


# How many adaptations of each kind are printed; a session of another provider needs one per message.
SHOWN_ADAPTATIONS = 3


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
        "Fail if the context needs repairs or is over budget",
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
        "--model", "model", "The target model, for token counts and format", "MODEL", default=""
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

    Repairs and omissions are reported on standard error: every repair, and the first few omissions. --strict fails
    instead of repairing. It still omits what the provider does not support.

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
    to_file = output not in (None, "-")
    # A file gets a table as wide as it is, without colour.
    reader = (
        Invocation(environment=invocation.environment, terminal=False) if to_file else invocation
    )
    if expand and strategy != "full":
        raise usage_error("--expand requires the strategy full")
    with opened(invocation) as here:
        if output in (None, "-"):
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
        if as_table and not invocation.as_json:
            lines = _table(reader, here, context, plain=plain, largest=largest, heat=heat)
            _write(invocation, "".join(f"{each}\n" for each in lines).encode(), output, safe=True)
            return EXIT_OK
        options: dict[str, Any] = {"strict": strict, "cache": "stable" if cache else "none"}
        rendered = context.render(form or "text", **options)
        if invocation.as_json:
            data = json_bytes(_summary(context, rendered, as_table), ascii_only=reader.terminal)
        else:
            _tell_repairs(invocation, rendered)
            data = rendered.to_bytes()
        data = data if data.endswith(b"\n") or not data else data + b"\n"
        _write(invocation, data, output, safe=invocation.as_json)
    return EXIT_OK


def _summary(context: CompiledContext, rendered: Rendered, as_table: bool) -> dict[str, Any]:
    """Return the JSON of a context, and of its messages if `as_table`."""
    record = trace_store.record
    form = {"format": rendered.renderer, "format_version": rendered.version}
    found = record(context, **form, repairs=rendered.repairs)
    if not context.has_addresses:
        found["prefix_hash"] = None
    if as_table and context.has_addresses:
        counted = zip(context.messages, context.message_tokens(), strict=True)
        found["messages"] = [
            record(message, token_count=tokens, text_token_count=text)
            for message, (tokens, text) in counted
        ]
    elif as_table:
        found["messages"] = [{"role": each.role, "kind": each.kind} for each in context.messages]
    return found


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


def _write(invocation: Invocation, data: bytes, output: str | None, *, safe: bool) -> None:
    """Write data to a file or standard output; `safe` data is not escaped."""
    if output is None or output == "-":
        if safe:
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
    *,
    plain: bool,
    largest: int | None,
    heat: bool,
) -> list[str]:
    if not context.has_addresses:
        raise usage_error("--table requires the strategy full, without --expand")
    weighed = list(zip(context.messages, context.message_tokens(), strict=True))
    if largest is not None:
        weighed = sorted(weighed, key=lambda each: -each[1][0])[:largest]
    heats = here.compression.heat(context) if heat else []
    budget = here.store.config.budget
    whole = budget or context.estimated_token_count
    rows, styles = [], []
    for message, (tokens, _) in weighed:
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
                *([_heat(heats[message.position], plain=plain)] if heat else []),
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
    of = "" if largest is None else f"{len(rows)} of "
    total = f"{of}{counted(len(context), 'message')}, {token_summary(context)}"
    lines.append(total + _of_budget(context, budget))
    return lines


def _heat(value: float, *, plain: bool) -> str:
    return f"{value:.2f}" if plain else heat_bar(value)


def _of_budget(context: CompiledContext, budget: int | None) -> str:
    if not budget:
        return ""
    return f", {share(context.token_count, budget)} of the budget of {number(budget)}"


def _beginning(parts: Sequence[Part], width: int = 120) -> str:
    """Return the beginning of a message on one line."""
    # Provider-specific parts are shown only if there is nothing else.
    said = [part for part in parts if not isinstance(part, Opaque)] or parts
    return one_line(" ".join(_said(part, 8 * width) for part in said), width)


def _said(part: Part, limit: int) -> str:
    """Return about the first `limit` characters of a part, unescaped."""
    if isinstance(part, Text | Reasoning):
        return part.text[:limit]
    if isinstance(part, ToolCall):
        return call_line(part.name, part.arguments[: 8 * limit])
    if isinstance(part, ToolResult):
        return result_line("\n".join(_said(inner, limit) for inner in part.content))
    return f"[{part.type}]"

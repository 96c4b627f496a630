"""`trace diff`: changes between two contexts."""

from __future__ import annotations

from trace_cli.arguments import ANY, Argument, Option, takes
from trace_cli.failures import usage_error
from trace_cli.porcelain.common import JSON, opened, tell_unknown_model
from trace_cli.render.changes import diff_lines, name_line
from trace_cli.render.escape import safe
from trace_cli.render.tables import paint
from trace_store import errors
from trace_store.providers import FORMATS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from trace_cli.runtime import Invocation, Results
    from trace_store.history.diff import ContextDiff
    from trace_store.history.request_diff import RenderedDiff
    from trace_store.repo.repository import Repo


@takes(
    Argument(
        "REVISION",
        "revisions",
        "A B, A..B, or A...B: from the merge base of A and B to B",
        ANY,
        completes="COMMIT",
    ),
    Option("--stat", "stat", "Show the change in tokens of each message"),
    Option("--name-only", "name_only", "Show only the addresses of changed messages"),
    Option("--side", "side", "Show both sides in two columns"),
    Option(
        "-U --unified",
        "around",
        "Lines of context around changes",
        "N",
        number=True,
        default=3,
    ),
    Option("--compiled", "compiled", "Compare the compiled requests"),
    Option(
        "-f --format",
        "form",
        f"With --compiled: {', '.join(FORMATS)}",
        "FORMAT",
        completes="RENDERER",
    ),
    Option("--model", "model", "The model for token counts", "MODEL", default=""),
    JSON,
)
def diff(
    invocation: Invocation,
    *,
    revisions: list[str],
    stat: bool,
    name_only: bool,
    side: bool,
    around: int,
    compiled: bool,
    form: str | None,
    model: str,
) -> Results:
    """Show changes between the contexts of two revisions.

    With one revision, compare it with HEAD; with none, HEAD with its parent. `A...B` compares B with the merge base of
    both. Messages are matched by address, and shown if they were added, removed, edited or moved, or got another
    priority or other labels. For edited messages the changed words are shown. The last line says how much of the
    beginning is unchanged, so that a provider's cache can reuse it.

        trace diff main try-b
        trace diff --stat HEAD~5
        trace diff --compiled --format anthropic main try-b
    """
    if form is not None and form not in FORMATS:
        raise usage_error(f"unknown format {form!r}", f"formats: {', '.join(FORMATS)}")
    if form is not None and not compiled:
        raise usage_error("--format requires --compiled")
    if compiled and (stat or name_only or side):
        raise usage_error("--compiled cannot be combined with --stat, --name-only or --side")
    if sum((stat, name_only, side, invocation.as_json)) > 1:
        raise usage_error("give only one of --stat, --name-only, --side and --json")
    if len(revisions) > 2:
        raise usage_error("give two revisions", "`trace diff A B`")
    with opened(invocation) as here:
        invocation.page()
        tell_unknown_model(invocation, model)
        found = _compared(here, revisions or ["HEAD~1"], model)
        if compiled:
            rendered = found.rendered(form or "text", around=around)
            yield rendered, _rendered_lines(invocation, rendered)
            return
        lines = diff_lines(invocation, found, stat=stat, side=side, around=around)
        yield found, map(name_line, found.changes) if name_only else lines


def _compared(here: Repo, revisions: list[str], model: str) -> ContextDiff:
    try:
        return here.diff(*revisions, model=model)
    except errors.InvalidInputError as error:
        if error.data.get("argument") == "before":
            error.data.setdefault("hint", "`trace diff A B`")
        raise


def _rendered_lines(invocation: Invocation, found: RenderedDiff) -> Iterator[str]:
    if found.is_equal:
        return
    styles = {"-": "red", "+": "green", "@": "cyan"}
    for sign, text in found.lines:
        mark = "" if sign == "@" else sign
        yield paint(invocation, mark + safe(text), styles.get(sign, ""))
    yield (
        f"{found.form}: {found.size_before:,} bytes, then {found.size_after:,}; "
        f"the first {found.same_bytes:,} are the same"
    )

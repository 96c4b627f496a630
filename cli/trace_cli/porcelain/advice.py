"""A model's proposal for a merge, and its review by the user."""

from __future__ import annotations

from trace_cli.failures import usage_error
from trace_cli.render.escape import one_line, safe
from trace_cli.render.records import short_address
from trace_cli.render.tables import counted, paint
from trace_store import errors, llm
from trace_store.merge.conflicts import TEXT
from trace_store.merge.inputs import SEMANTIC

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trace_cli.runtime import Invocation
    from trace_store.llm.http_model import HttpModel
    from trace_store.merge.llm_assist.answer import WrittenMessage
    from trace_store.merge.llm_assist.semantic import MergeProposal
    from trace_store.objects.address import Address
    from trace_store.repo.repository import Repo

YES = ("y", "yes")


def reviewed(
    invocation: Invocation, strategy: str, *, review: bool, no_review: bool
) -> Callable[[MergeProposal], bool] | None:
    """Return what asks the user whether to accept a proposal; None accepts each that is valid.

    On a terminal the user reviews the proposal by default.

    Raises:
        InvalidInputError: a review option without a proposal to review, or both review options.
    """
    if strategy != SEMANTIC:
        if review or no_review:
            raise usage_error(f"--review and --no-review require -s {SEMANTIC}")
        return None
    if review and no_review:
        raise usage_error("--review and --no-review contradict each other")
    if no_review or not (review or invocation.terminal):
        return None

    def accept(proposal: MergeProposal) -> bool:
        for line in proposal_lines(invocation, proposal):
            invocation.note(line)
        invocation.note("accept it? [y/N] ", end="")
        said = invocation.stdin.readline().decode("utf-8", "replace")
        return said.strip().lower() in YES

    return accept


def asked_model(invocation: Invocation, repo: Repo) -> HttpModel:
    """Return the configured model.

    Raises:
        StateError: there is no model in the settings.
    """
    return llm.HttpModel(llm.read_settings(invocation.environment))


def configured_model(invocation: Invocation, repo: Repo) -> HttpModel | None:
    """Return the configured model, or None if there is none."""
    try:
        return asked_model(invocation, repo)
    except errors.StateError as error:
        if error.code != errors.ErrorCode.NO_MODEL:
            raise
        return None


def proposal_lines(invocation: Invocation, proposal: MergeProposal) -> list[str]:
    """Return the lines that describe a proposal."""
    advice = proposal.advice
    lines = [f"{one_line(proposal.model or 'the model', 100)} proposes:"]
    for number, conflict in enumerate(proposal.conflicts, 1):
        settled = advice.resolutions[conflict.key]
        name = " ".join(short_address(address) for address in conflict.addresses[:1])
        kind = paint(invocation, conflict.kind, "red")
        lines.append(f"{number}  {kind}  {name}  takes {settled.choice}")
        lines += _why(advice.reasons.get(conflict.key, ""))
        if settled.choice == TEXT:
            lines += _quoted(settled.text)
    for each in advice.summaries:
        lines.append(f"replacing {_named(each.targets)}")
        lines += _written(each)
    if advice.conclusion is not None:
        lines.append(f"at the end, from {_named(advice.conclusion.sources)}")
        lines += _written(advice.conclusion)
    if not (advice.resolutions or advice.summaries or advice.conclusion):
        lines.append("nothing beyond the merge itself")
    change = proposal.tokens - proposal.tokens_without
    lines.append(
        f"the context would have {proposal.tokens:,} tokens, {change:+,} with the proposal"
    )
    return lines


def _named(addresses: Sequence[Address]) -> str:
    names = " ".join(short_address(address) for address in addresses[:5])
    more = f" and {counted(len(addresses) - 5, 'more message')}" if len(addresses) > 5 else ""
    return f"{names}{more}"


def _written(each: WrittenMessage) -> list[str]:
    return [f"     {each.role}:", *_quoted(each.text), *_why(each.why)]


def _quoted(text: str) -> list[str]:
    return [f"     | {safe(line)}" for line in text.splitlines()]


def _why(why: str) -> list[str]:
    return [f"     because: {one_line(why, 500)}"] if why else []

"""Semantic merges: a model resolves conflicts and summarises redundant messages.

The answer is checked against the request and the merged context. A faulty answer is retried once, with its faults. The
result is resolutions, and operations for the merge commit that record the request, the model, its usage and its
sources.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from trace_store import errors
from trace_store.base.frozen import replace, value
from trace_store.base.oid import ObjectId
from trace_store.context.compiler import ContextCompiler
from trace_store.context.fold import Fold
from trace_store.context.tokens.overhead import count_message
from trace_store.llm.contract import Dialogue, Model
from trace_store.merge.conflicts import Conflict
from trace_store.merge.llm_assist.answer import ModelAnswer, parse_answer
from trace_store.merge.llm_assist.request import SYSTEM, ModelRequest, build_request
from trace_store.merge.result import MergeAdvice, MergeRequest
from trace_store.objects import address
from trace_store.objects import operations as ops
from trace_store.objects.commit import Commit, Operation
from trace_store.objects.content import ObjectCollector, bytes_of
from trace_store.objects.message import Message, load_message, store_message

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.merge.changes import Put

Review: TypeAlias = Callable[["MergeProposal"], bool]

REASON = "merge"
ANSWER_TOKENS = 8192


@value
class MergeProposal:
    """A model's proposal, for review.

    Attributes:
        advice: the proposal.
        conflicts: the conflicts that it resolves, in the order of the request.
        model: the model that answered.
        tokens: tokens of the merged context with the proposal.
        tokens_without: tokens of the merged context with only the resolutions.
    """

    advice: ModelAnswer
    conflicts: tuple[Conflict, ...]
    model: str
    tokens: int
    tokens_without: int


class Advisor:
    """Asks a model to resolve one merge."""

    def __init__(
        self, contexts: ContextCompiler, model: Model, *, review: Review | None = None
    ) -> None:
        """Create an advisor.

        Args:
            contexts: counts the tokens of merged contexts.
            model: the model.
            review: returns whether to accept a proposal; None accepts every valid one.
        """
        self._contexts = contexts
        self._store = contexts.store
        self._model = model
        self._review = review

    def __call__(self, request: MergeRequest) -> MergeAdvice:
        """Return the resolution of a merge that the model proposes.

        Raises:
            ModelError: the request failed, or two answers could not be used.
            BudgetError: the two sides are too long for one request.
            ConflictError: the proposal was not accepted.
        """
        asked = build_request(
            request.base,
            request.ours,
            request.theirs,
            request.plan.conflicts,
            self._store.objects.read,
        )
        dialogue = Dialogue(self._model, SYSTEM, ANSWER_TOKENS)

        def read(text: str) -> MergeProposal:
            model = dialogue.answers[-1].model
            return self._check(request, asked, parse_answer(text, asked), model)

        proposal = dialogue.ask(asked.text, read)
        if self._review is not None and not self._review(proposal):
            raise errors.ConflictError(
                "the model's proposal was not accepted; nothing was written",
                code=errors.ErrorCode.PROPOSAL_REJECTED,
            )
        return self._to_advice(request, asked, proposal, dialogue)

    def _check(
        self, request: MergeRequest, asked: ModelRequest, advice: ModelAnswer, model: str
    ) -> MergeProposal:
        """Return a proposal whose merged context is valid and within the budget."""
        trial = ObjectCollector()  # its content is not stored
        plan = request.replan(advice.resolutions, trial.put)
        if plan.conflicts:
            raise _unusable_error(
                "it leaves a conflict open",
                f"a conflict of the kind {plan.conflicts[0].kind} is left open",
            )
        merged = _apply(request, plan.operations)
        advice = _extend_to_results(advice, merged, asked)
        without = self._tokens(merged, trial)
        tokens = without
        if advice.summaries or advice.conclusion:
            extra = _operations(advice, trial.put, None, "")
            tokens = self._tokens(_apply(request, [*plan.operations, *extra]), trial)
        budget = self._store.config.budget
        if budget is not None and tokens > budget:
            raise errors.ModelNonsenseError(
                f"the merged context has {tokens:,} tokens, and the budget is {budget:,}",
                faults=(f"the merged context has {tokens:,} tokens of {budget:,}: summarise more",),
            )
        return MergeProposal(advice, asked.conflicts, model, tokens, without)

    def _to_advice(
        self,
        request: MergeRequest,
        asked: ModelRequest,
        proposal: MergeProposal,
        dialogue: Dialogue,
    ) -> MergeAdvice:
        advice, content = proposal.advice, request.content
        prompt = content.put(bytes_of(f"{SYSTEM}\n\n{asked.text}"))
        model = content.text(proposal.model)
        operations = _operations(advice, content.put, prompt, model)
        if not operations:
            # Record the request and the model even if nothing is replaced.
            sources = list(dict.fromkeys(a for each in asked.conflicts for a in each.addresses))
            operations = [
                ops.replace([], [], reason=REASON, model=model, prompt=prompt, sources=sources)
            ]
        operations += dialogue.usage_operations(content.text)
        why = {key: content.text(said) for key, said in advice.reasons.items() if said}
        meta: dict[str, Any] = {"model": model, "questions": len(dialogue.answers)}
        if why:
            meta["why"] = why
        return MergeAdvice(advice.resolutions, tuple(operations), meta)

    def _tokens(self, merged: Fold, trial: ObjectCollector) -> int:
        """Return the tokens of a merged context."""
        fresh: dict[bytes, bytes] = dict(trial.objects)

        def read(oid: bytes) -> bytes:
            found = fresh.get(oid)
            return self._store.objects.read(oid) if found is None else found

        tokenizer = self._contexts.tokenizer()
        return sum(
            count_message(tokenizer, load_message({**e.message, "parts": e.parts}, read)).total
            for e in merged.entries
            if e.visible and not e.is_ghost
        )


def _apply(request: MergeRequest, operations: Sequence[Operation]) -> Fold:
    """Return the result of applying operations to ours."""
    state = request.ours.copy()
    state.apply(address.HERE, Commit((), "", 0, list(operations)))
    return state


def _extend_to_results(advice: ModelAnswer, merged: Fold, asked: ModelRequest) -> ModelAnswer:
    """Return advice whose summaries replace only visible messages, plus added results.

    Hidden messages remain sources of a summary.

    Raises:
        ModelNonsenseError: resolutions hide all targets of a summary, or a summary separates a call from its result.
    """
    shown = {each.address for each in merged.entries if each.visible and not each.is_ghost}
    summaries = []
    for number, each in enumerate(advice.summaries, 1):
        chosen = [address for address in each.targets if address in shown]
        if not chosen:
            raise _unusable_error(
                "a summary replaces hidden messages",
                f"summary {number} replaces messages that your resolutions hide: resolve differently, or leave it out",
            )
        met = {a for a in merged.units(chosen) if a in shown}
        missing = sorted(asked.names[a] for a in met.difference(chosen) if a.birth)
        if missing:
            raise _unusable_error(
                "a summary separates a tool call from its result",
                f"summary {number} separates a tool call from its result: {missing[0]} is missing",
            )
        answers = sorted(met.difference(chosen))
        summaries.append(replace(each, targets=(*chosen, *answers)))
    return replace(advice, summaries=tuple(summaries))


def _unusable_error(why: str, fault: str) -> errors.ModelNonsenseError:
    return errors.ModelNonsenseError(f"the model's answer cannot be used: {why}", faults=(fault,))


def _operations(
    advice: ModelAnswer, put: Put, prompt: ObjectId | None, model: str
) -> list[Operation]:
    """Return the operations that add the messages that a model wrote."""
    written = [*advice.summaries, *([advice.conclusion] if advice.conclusion else [])]
    return [
        ops.replace(
            each.targets,
            [store_message(Message(each.role, each.text, model=model), put)],
            reason=REASON,
            model=model,
            prompt=prompt,
            sources=each.sources,
        )
        for each in written
    ]

"""Semantic merge: a model reads both sides, settles their conflicts, and says what stands for what.

Rule: nothing is written here. The answer is checked against the question and against the context that it makes; one
that fails is told so and asked for once more. What comes out are settlements and operations of the merge commit, which
hold what was asked, who answered, what it used and from what it was made.
"""

from __future__ import annotations

from trace_store import errors, llm
from trace_store.context import tokens
from trace_store.context.tokens.overhead import count_message
from trace_store.frozen import replace, value
from trace_store.merge.llm_assist.answer import read_advice
from trace_store.merge.llm_assist.request import SYSTEM, question
from trace_store.merge.result import Advised
from trace_store.objects import address
from trace_store.objects import operations as ops
from trace_store.objects.commit import Commit
from trace_store.objects.content import Gathering, bytes_of
from trace_store.objects.message import Message, load_message, store_message

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, TypeAlias

    from trace_store.context.fold import Fold
    from trace_store.llm.contract import Completion, Model
    from trace_store.merge.changes import Put
    from trace_store.merge.conflicts import Conflict
    from trace_store.merge.llm_assist.answer import Advice
    from trace_store.merge.llm_assist.request import Question
    from trace_store.merge.result import Matter
    from trace_store.objects.commit import Operation
    from trace_store.oid import ObjectId
    from trace_store.store.handle import Store

    Review: TypeAlias = Callable[["Proposal"], bool]

REASON = "merge"
ANSWER_TOKENS = 8192


@value
class Proposal:
    """What a model proposes, as it is shown for review.

    Attributes:
        advice: what it would do.
        conflicts: those that it settles, in the order of the question.
        model: who answered.
        tokens: of the merged context with the advice.
        tokens_without: of the merged context when only the conflicts are settled.
    """

    advice: Advice
    conflicts: tuple[Conflict, ...]
    model: str
    tokens: int
    tokens_without: int


class Advisor:
    """Asks a model about one merge."""

    def __init__(
        self, store: Store, model: Model, *, name: str = "", review: Review | None = None
    ) -> None:
        """Make one.

        Args:
            store: the repository.
            model: is asked.
            name: what it is called when its answers do not say.
            review: looks at what the model proposes, and returns whether it is taken; None takes all that is valid.
        """
        self._store = store
        self._model = model
        self._name = name
        self._review = review
        self._answers: list[Completion] = []

    def __call__(self, matter: Matter) -> Advised:
        """Return what a merge does by the advice of the model.

        Raises:
            ModelError: the model cannot be asked, or answers twice what cannot be used.
            BudgetError: the two sides are too long to be asked about.
            ConflictError: the proposal was not accepted.
        """
        self._answers = []
        asked = question(
            matter.base,
            matter.ours,
            matter.theirs,
            matter.plan.conflicts,
            self._store.objects.read,
        )
        proposal = self._proposal(matter, asked)
        if self._review is not None and not self._review(proposal):
            raise errors.ConflictError(
                "what the model proposes was not accepted, and nothing is written",
                code=errors.ErrorCode.PROPOSAL_REJECTED,
            )
        return self._advised(matter, asked, proposal)

    def _proposal(self, matter: Matter, asked: Question) -> Proposal:
        messages = [("user", asked.text)]
        try:
            return self._asked(matter, asked, messages)
        except errors.ModelNonsenseError as error:
            faults = list(error.data.get("faults", ()))  # type: ignore[call-overload]
            if not faults:
                raise  # it is no answer that could be mended
        told = "\n".join(f"- {each}" for each in faults)
        messages += [
            ("assistant", self._answers[-1].text or "(nothing)"),
            ("user", f"That cannot be used:\n{told}\nAnswer again, with the whole object."),
        ]
        return self._asked(matter, asked, messages)

    def _asked(
        self, matter: Matter, asked: Question, messages: Sequence[tuple[str, str]]
    ) -> Proposal:
        answer = llm.contract.ask(
            self._model, llm.contract.Prompt(tuple(messages), SYSTEM, ANSWER_TOKENS)
        )
        self._answers.append(answer)
        if answer.stop != "done":
            raise errors.ModelNonsenseError(
                "the model's answer was cut off", faults=("it was cut off: be brief",)
            )
        return self._checked(matter, asked, read_advice(answer.text, asked))

    def _checked(self, matter: Matter, asked: Question, advice: Advice) -> Proposal:
        """Return a proposal whose context was made once, and fits the budget."""
        trial = Gathering()  # of which nothing is stored
        plan = matter.replan(advice.settlements, trial.put)
        if plan.conflicts:
            raise _unusable(
                "it leaves a conflict open",
                f"a conflict of the kind {plan.conflicts[0].kind} is left open",
            )
        merged = _merged(matter, plan.operations)
        advice = _with_answers(advice, merged, asked)
        without = self._tokens(merged, trial)
        tokens = without
        if advice.summaries or advice.conclusion:
            extra = _operations(advice, trial.put, None, "")
            tokens = self._tokens(_merged(matter, [*plan.operations, *extra]), trial)
        budget = self._store.config.budget
        if budget is not None and tokens > budget:
            raise errors.ModelNonsenseError(
                f"the merged context has {tokens:,} tokens, and the budget is {budget:,}",
                faults=(f"the merged context has {tokens:,} tokens of {budget:,}: summarise more",),
            )
        model = self._answers[-1].model or self._name
        return Proposal(advice, asked.conflicts, model, tokens, without)

    def _advised(self, matter: Matter, asked: Question, proposal: Proposal) -> Advised:
        advice, gathering = proposal.advice, matter.gathering
        prompt = gathering.put(bytes_of(f"{SYSTEM}\n\n{asked.text}"))
        model = gathering.text(proposal.model)
        operations = _operations(advice, gathering.put, prompt, model)
        if not operations:
            # Nothing is replaced: what was asked, and by whom it was answered, is said all the same.
            sources = list(dict.fromkeys(a for each in asked.conflicts for a in each.addresses))
            operations = [
                ops.replace([], [], reason=REASON, model=model, prompt=prompt, sources=sources)
            ]
        for answer in self._answers:
            if answer.usage is not None:
                counts: dict[str, int | str] = answer.usage.as_map()
                operations.append(ops.usage({**counts, "model": model} if model else counts))
        why = {key: gathering.text(said) for key, said in advice.reasons.items() if said}
        meta: dict[str, Any] = {"model": model, "questions": len(self._answers)}
        if why:
            meta["why"] = why
        return Advised(advice.settlements, tuple(operations), meta)

    def _tokens(self, merged: Fold, trial: Gathering) -> int:
        """Return the tokens of a merged context."""
        fresh: dict[bytes, bytes] = dict(trial.objects)

        def read(oid: bytes) -> bytes:
            found = fresh.get(oid)
            return self._store.objects.read(oid) if found is None else found

        tokenizer = tokens.tokenizer.get_tokenizer(self._store.config.tokenizer)
        return sum(
            count_message(tokenizer, load_message({**e.message, "parts": e.parts}, read)).total
            for e in merged.entries
            if e.visible and not e.is_ghost
        )


def _merged(matter: Matter, operations: Sequence[Operation]) -> Fold:
    """Return the context that operations make of ours."""
    state = matter.ours.copy()
    state.apply(address.HERE, Commit((), "", 0, list(operations)))
    return state


def _with_answers(advice: Advice, merged: Fold, asked: Question) -> Advice:
    """Return advice whose summaries stand for what is shown, and for the results that settlements give their calls.

    What a settlement hides has no place any more that a summary could take; it is a source of it still.

    Raises:
        ModelNonsenseError: settlements hide all that a summary stands for, or give a call that it stands for a result
            that it leaves out.
    """
    shown = {each.address for each in merged.entries if each.visible and not each.is_ghost}
    summaries = []
    for number, each in enumerate(advice.summaries, 1):
        chosen = [address for address in each.targets if address in shown]
        if not chosen:
            raise _unusable(
                "a summary stands for what is not shown",
                f"summary {number} stands for messages that your settlements hide: settle otherwise, or leave it out",
            )
        met = {a for a in merged.units(chosen) if a in shown}
        missing = sorted(asked.names[a] for a in met.difference(chosen) if a.birth)
        if missing:
            raise _unusable(
                "a summary parts a tool call from its result",
                f"summary {number} parts a tool call from its result: {missing[0]} is missing",
            )
        answers = sorted(met.difference(chosen))
        summaries.append(replace(each, targets=(*chosen, *answers)))
    return replace(advice, summaries=tuple(summaries))


def _unusable(why: str, fault: str) -> errors.ModelNonsenseError:
    return errors.ModelNonsenseError(f"the model's answer cannot be used: {why}", faults=(fault,))


def _operations(advice: Advice, put: Put, prompt: ObjectId | None, model: str) -> list[Operation]:
    """Return what puts the messages that a model wrote in their places."""
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

"""Random histories: nothing is lost, compacted unread, or over the limit."""

from __future__ import annotations

import random
from contextlib import suppress

import pytest

from tests.sessions.support.provider import Provider
from tests.support.examples import examples
from trace_store import Message, Repo, ToolCall, ToolResult, errors
from trace_store.llm.contract import Completion, Prompt
from trace_store.objects.address import Address
from trace_store.sessions.session import Session

WORDS = tuple("harbour tower stage wall report stone crane quay light rope never 42 a.py".split())  # noqa: SIM905
HISTORIES = examples(500)
SHARDS = 20


class Player:
    """Plays random verbs on one session, and checks the laws after each."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.repo = Repo.memory()
        self.provider = Provider(self.chance.uniform(1.0, 1.7), self.chance.choice([0, 800, 3_000]))
        self.limit = self.chance.choice([8_000, 20_000])
        self.session: Session = self.repo.sessions.start(
            "dev",
            name="one",
            description="You write code.",
            limit=self.limit,
            reply=500,
            model=self.chance.choice([None, self.model]),
        )
        self.first: dict[Address, Message] = {}
        self.unread: list[Address] = []
        self.reported = False
        self.calls = 0

    def model(self, prompt: Prompt) -> Completion:
        kind = self.chance.random()
        if kind < 0.2:
            raise TimeoutError("no answer")
        if kind < 0.3:
            return Completion("I cannot help with that.", "m")
        if kind < 0.4:
            return Completion("", "m")
        return Completion(f"They spoke about {' '.join(self.chance.sample(WORDS, 4))}.", "m")

    def text(self, most: int = 400) -> str:
        return " ".join(self.chance.choices(WORDS, k=self.chance.randrange(1, most)))

    def add(self, *messages: Message) -> None:
        made = self.session.add(*messages)
        for address, message in zip(made.addresses, messages, strict=True):
            self.first[address] = message
            self.unread.append(address)

    def ask(self) -> None:
        try:
            request = self.session.request()
        except (errors.BudgetError, errors.RenderError):
            return  # the news alone, or nothing, is there
        shown = {each.address for each in self.session.messages()}
        assert not [each for each in self.unread if each not in shown]
        counted = self.provider.count(request)
        if counted + 500 > self.limit:
            assert not self.reported
            self.session.refused(f"prompt is too long: {counted} tokens > {self.limit}", request)
            self.reported = True
            return
        assert not [each for each in request.repairs if each.is_fault]
        reply: list[Message] = [Message("assistant", self.text())]
        if self.chance.random() < 0.5:
            self.calls += 1
            name = f"call-{self.calls}"
            reply = [Message("assistant", [ToolCall(name, "Bash", '{"command":"ls"}')])]
        made = self.session.add(
            *reply, usage=self.provider.usage(request), request=request, model="m"
        )
        self.first[made.addresses[0]] = reply[0]
        self.reported = True
        self.unread = []
        if reply[0].parts and isinstance(reply[0].parts[0], ToolCall):
            big = 6_000 if self.chance.random() < 0.1 else 900
            self.add(Message("tool", [ToolResult(reply[0].parts[0].id, self.text(big))]))

    def step(self) -> None:
        verb = self.chance.random()
        if verb < 0.3:
            self.add(Message("user", self.text()))
        elif verb < 0.75:
            self.ask()
        elif verb < 0.82:
            with suppress(errors.StateError):
                before = self.repo.compile(ref=self.session.ref).prefix_hash
                self.session.compact()
                if self.chance.random() < 0.5:
                    self.repo.undo(ref=self.session.ref)
                    assert self.repo.compile(ref=self.session.ref).prefix_hash == before
        elif verb < 0.86:
            before = self.repo.compile(ref=self.session.ref).prefix_hash
            done = self.session.clear(all=self.chance.random() < 0.5)
            if done is not None and self.chance.random() < 0.7:
                self.repo.revert(done.oid, ref=self.session.ref)
                assert self.repo.compile(ref=self.session.ref).prefix_hash == before
            else:
                self.unread = []
        elif verb < 0.9:
            self.session.state = self.chance.choice(["open", "in_qa", "done"])
        elif verb < 0.94:
            with self.session.iteration() as attempt:
                self.ask()
                attempt.result(checks={"tests": self.chance.random() < 0.5})
            self.unread = []
        else:
            self.session = self.repo.sessions.open("one", model=self.session.model)

    def check(self) -> None:
        for address, message in self.first.items():
            first = self.repo.versions(address, ref=self.session.ref)[0]
            assert [type(each) for each in first.parts] == [type(each) for each in message.parts]
            said = [getattr(each, "text", None) for each in first.parts]
            assert said == [getattr(each, "text", None) for each in message.parts]


@pytest.mark.parametrize("shard", range(SHARDS))
def test_random_histories(shard: int) -> None:
    for seed in range(shard, HISTORIES, SHARDS):
        player = Player(seed)
        for _ in range(player.chance.randrange(10, 40)):
            player.step()
        player.check()

"""A draft: the operations of one commit that is being made.

Rule: a draft writes nothing. It gathers operations and the objects they name, so that a commit is one transaction, and
a savepoint is a place in a list.
"""

from __future__ import annotations

from _collections_abc import Mapping  # that of collections.abc, without the rest of collections

from trace_store import context, errors, providers
from trace_store.objects import operations as ops
from trace_store.objects.address import HERE, Address
from trace_store.objects.commit import Operation
from trace_store.objects.content import Gathering, bytes_of
from trace_store.objects.message import Message, message_parts, store_message, store_parts
from trace_store.objects.parts import Part
from trace_store.objects.schema import check_operation
from trace_store.oid import OID_BYTES, ObjectId

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, TypeAlias

    from trace_store.context.usage import Usage
    from trace_store.objects.content import Salt
    from trace_store.providers.documents import Given

    Fact: TypeAlias = str | int | float | bool
    Target: TypeAlias = str | tuple[bytes, int]
    Content: TypeAlias = str | Sequence[Part]
    Reword: TypeAlias = Callable[[Address, str, str], Sequence[Part]]
    """Gives the parts of a message with a text in the place of its own, or of its result for one call."""


NO_SECRETS: Mapping[str, int] = {}


class CommitResult:
    """A commit that was written.

    Attributes:
        oid: its id.
        ref: the branch that now ends in it; None when HEAD is detached.
        message_count: messages it adds.
        parents: ids of its parents.
        secrets: how many secrets of each kind were found in what it says, and replaced, unless that was not wanted.
        also: messages that nobody named, and that were hidden, shown, ranked or moved with the call or the results
            that they belong to.
    """

    __slots__ = ("also", "message_count", "oid", "parents", "ref", "secrets")

    def __init__(
        self,
        oid: ObjectId,
        ref: str | None,
        message_count: int,
        parents: tuple[ObjectId, ...] = (),
        secrets: Mapping[str, int] = NO_SECRETS,
        also: tuple[Address, ...] = (),
    ) -> None:
        self.secrets = secrets
        self.also = also
        self.oid = oid
        self.ref = ref
        self.message_count = message_count
        self.parents = parents

    def __repr__(self) -> str:
        return f"CommitResult({self.oid.short()}, {self.ref}, {self.message_count} messages)"

    @property
    def addresses(self) -> list[Address]:
        """Addresses of the messages it adds, all of which are new."""
        return [Address.of(self.oid, n) for n in range(self.message_count)]


class Savepoint:
    """What `Draft.savepoint` returns, for a `with`."""

    __slots__ = ("_draft", "_mark")

    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        self._mark = draft.mark()

    def __enter__(self) -> Draft:
        return self._draft

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self._draft.take_back(self._mark)


class Draft:
    """Operations of one commit. Each method adds one; addresses it returns may be used by later ones.

    A target is an address, its text (`ab12cd.0`), or the id of a commit and the number of a message that it adds.

    Attributes:
        operations: what was added so far.
        guarded: the messages whose edits are refused when they take away a result, or a call that has one.
        result: the commit, once the draft of a batch was written.
    """

    def __init__(
        self,
        resolve: Callable[[str], Address],
        reword: Reword | None = None,
        salt: Salt | None = None,
        gathering: Gathering | None = None,
    ) -> None:
        """Begin with nothing.

        Args:
            resolve: returns the address that a text means.
            reword: says what a text is to change.
            salt: makes all content of the draft private, as in `content.write_content`.
            gathering: takes the objects; None is one that takes them as they are.
        """
        self._resolve = resolve
        self._reword = reword
        self._gathering = Gathering() if gathering is None else gathering
        self._put = self._gathering.putting(salt)
        self._created = 0
        self.operations: list[Operation] = []
        self.guarded: set[Address] = set()
        self.result: CommitResult | None = None

    @property
    def objects(self) -> list[tuple[ObjectId, bytes]]:
        """The objects that the operations name, each once."""
        return self._gathering.objects

    @property
    def gathering(self) -> Gathering:
        """What gathers them, and tells what it found."""
        return self._gathering

    @property
    def message_count(self) -> int:
        """How many messages the operations create."""
        return self._created

    def append(self, role: str | Given, content: Content | None = None, **fields: Any) -> Address:
        """Add a message at the end and return its address; `fields` are those of `Message`.

        A message or a provider's form of one may stand for `role`, without a content.

        Raises:
            InvalidMessageError: the message is not valid.
        """
        return self.extend([given_message(role, content, **fields)])[0]

    def extend(self, messages: Sequence[Given], *, after: Target | None = None) -> list[Address]:
        """Add messages at the end, or behind a neighbour, and return their addresses.

        Args:
            messages: `Message` values, or what providers have: dictionaries, and objects of their packages, in the
                form of OpenAI (chat completions or Responses), Anthropic, Gemini or LangChain.
            after: the neighbour.

        Raises:
            InvalidMessageError: there is none, or one is not valid.
        """
        if not messages:
            raise errors.InvalidMessageError("there is no message to append")
        stored = self._store(messages)
        self._add(ops.add(stored, after=None if after is None else self._address(after)))
        return self._number(len(stored))

    def edit(
        self, target: Target, content: Content, *, call: str = "", force: bool = False
    ) -> None:
        """Reword a message; earlier wordings stay readable.

        Args:
            target: the message.
            content: text, which in the draft of a `Repo` takes the place of the message's text or of what its tool
                results say, while calls, images and reasoning stay; or all of its parts.
            call: the id of the call, for the text of its result alone.
            force: let it take away results, and calls that have some; else the draft is refused when it is written.

        Raises:
            MessageNotFoundError: the context does not hold the message.
            InvalidOperationError: the message has no result of that call.
        """
        address = self._address(target)
        if isinstance(content, str) and self._reword is not None and address.birth:
            content = self._reword(address, content, call)
        parts = store_parts(message_parts(content), self._put)
        self._add(ops.edit(address, parts))
        (self.guarded.discard if force else self.guarded.add)(address)

    def annotate(
        self,
        targets: Target | Sequence[Target],
        *,
        priority: str | None = None,
        keep: str | Sequence[str] | None = None,
        labels: str | Sequence[str] = (),
        unlabels: str | Sequence[str] = (),
    ) -> None:
        """Set a priority, must-keep patterns and labels of messages.

        Raises:
            InvalidOperationError: unknown priority, a bad label, or nothing to set.
        """
        patterns = None if keep is None else [self._put(bytes_of(k)) for k in _words(keep)]
        self._add(
            ops.annotate(
                self._addresses(targets),
                priority=priority,
                keep=patterns,
                labels=[self._gathering.text(label) for label in _words(labels)],
                unlabels=[self._gathering.text(label) for label in _words(unlabels)],
            )
        )

    def remove(self, targets: Target | Sequence[Target], *, ghost: bool = False) -> None:
        """Hide messages, leaving a short placeholder or nothing."""
        self._add(ops.remove(self._addresses(targets), ghost=ghost))

    def restore(self, targets: Target | Sequence[Target], *, version: int | None = None) -> None:
        """Show hidden messages again; with a version (0 is the first wording) also go back to that."""
        self._add(ops.restore(self._addresses(targets), version=version))

    def replace(
        self,
        targets: Target | Sequence[Target],
        messages: Sequence[Given],
        *,
        reason: str = "",
        model: str = "",
        prompt: str | None = None,
        sources: Sequence[Target] = (),
    ) -> list[Address]:
        """Let messages become others, which stand where the first of them stood; return their addresses."""
        stored = self._store(messages)
        self._add(
            ops.replace(
                self._addresses(targets),
                stored,
                reason=reason,
                model=model,
                prompt=None if prompt is None else self._put(bytes_of(prompt)),
                sources=self._addresses(sources),
            )
        )
        return self._number(len(stored))

    def move(self, targets: Target | Sequence[Target], *, after: Target | None) -> None:
        """Place messages, in the given order, after a neighbour; None puts them first."""
        neighbour = None if after is None else self._address(after)
        self._add(ops.move(self._addresses(targets), after=neighbour))

    def set_tools(self, schemas: Sequence[Mapping[str, Any]]) -> None:
        """Set the tools that the model is offered; each schema is stored once.

        Raises:
            InvalidOperationError: a schema is no JSON object.
        """
        if not hasattr(schemas, "__iter__"):
            raise errors.InvalidOperationError("tool schemas come in a list")
        self._add(ops.tools([self._gathering.put(_schema(schema)) for schema in schemas]))

    def record_usage(
        self,
        usage: Mapping[str, Any] | Usage | object,
        *,
        model: str = "",
        about: ObjectId | None = None,
        renderer: str = "",
        renderer_version: int = 0,
        sent: bytes = b"",
    ) -> None:
        """Record what a provider reported.

        Args:
            usage: the provider's dictionary or object (OpenAI, Anthropic, Gemini), or the normal form.
            model: the model that answered; of a whole response it is the one that this names.
            about: the commit whose context was sent; None is the commit before this one.
            renderer: what wrote the request.
            renderer_version: its version.
            sent: the 32-byte hash of the exact bytes sent.

        Raises:
            InvalidInputError: the dictionary is of no known shape.
        """
        normal = (
            usage
            if isinstance(usage, context.usage.Usage)
            else context.usage.normalise_usage(usage)
        )
        counts: dict[str, int | str] = normal.as_map()
        if model := model or context.usage.model_of(usage):
            counts["model"] = model
        if renderer:
            counts["renderer"] = renderer
            counts["renderer_version"] = renderer_version
        if sent:
            counts["sent"] = sent.hex()
        self._add(ops.usage(counts, about=about))

    def configure(
        self,
        *,
        meta: Mapping[str, Fact] | None = None,
        settings: Mapping[str, Fact] | None = None,
    ) -> None:
        """Record facts about the commit, and settings that its messages were generated with; `log(meta=)` finds them.

        Values are kept as text: true and false as JSON has them.

        Raises:
            InvalidOperationError: there is neither, a name is no text or too long, or a value is of another type.
        """
        self._add(ops.config(self._facts(meta), self._facts(settings)))

    def _facts(self, given: Mapping[str, Fact] | None) -> dict[str, str]:
        facts: Any = {} if given is None else given
        if not isinstance(facts, Mapping):
            raise errors.InvalidOperationError(
                "facts and settings come as a mapping of names to values"
            )
        found: dict[str, str] = {}
        for name, value in facts.items():
            if not isinstance(name, str) or not isinstance(value, str | int | float):
                raise errors.InvalidOperationError(
                    f"{str(name)[:40]}: a fact is text, a number, true or false, not {type(value).__name__}"
                )
            text = str(value).lower() if isinstance(value, bool) else str(value)
            found[self._gathering.text(name)] = self._gathering.text(text)
        return dict(sorted(found.items()))

    def savepoint(self) -> Savepoint:
        """Return a context in which what was added is taken back, and only that, when the block raises."""
        return Savepoint(self)

    def mark(self) -> tuple[int, int]:
        """Return how much there is, for `take_back`."""
        return len(self.operations), self._created

    def take_back(self, mark: tuple[int, int]) -> None:
        """Drop what was added since a mark."""
        # Objects that only the dropped operations named may stay: they are content, and cost bytes.
        operations, self._created = mark
        del self.operations[operations:]

    def _add(self, operation: Operation) -> None:
        if self.result is not None:
            raise errors.StateError("the draft was written; what comes now needs another")
        if operation.name != ops.ADD:  # whose messages were checked one by one
            try:
                check_operation(operation.name, operation.fields)
            except errors.CorruptObjectError as error:
                raise errors.InvalidOperationError(str(error)) from None
        self.operations.append(operation)

    def _store(self, messages: Sequence[Given]) -> list[dict[str, Any]]:
        put = self._put
        return [store_message(message, put) for message in as_messages(messages)]

    def _number(self, count: int) -> list[Address]:
        first = self._created
        self._created += count
        return [Address(HERE, first + i) for i in range(count)]

    def _address(self, target: Target) -> Address:
        if isinstance(target, str):
            return self._resolve(target)
        named = several(target)
        if len(named) != 1 or not isinstance(named[0], tuple):
            raise errors.InvalidInputError(f"one message is needed, not {str(target)[:80]}")
        birth, number = named[0]
        if len(birth) == OID_BYTES:  # the message that this commit adds, be it carried
            try:
                return self._resolve(f"{birth.hex()}.{number}")
            except errors.RevisionNotFoundError:
                return Address.of(birth, number)
        return Address(birth, number)

    def _addresses(self, targets: Target | Sequence[Target]) -> list[Address]:
        return [self._address(target) for target in several(targets)]


def several(targets: Any) -> Sequence[Target]:
    """Return a list of targets, given one or several.

    Raises:
        InvalidInputError: it is neither.
    """
    if isinstance(targets, str):
        return [targets]
    if isinstance(targets, tuple) and len(targets) == 2 and isinstance(targets[1], int):
        if not isinstance(targets[0], bytes):
            raise errors.InvalidInputError(f"not the address of a message: {str(targets)[:80]}")
        return [Address(bytes(targets[0]), targets[1])]
    if isinstance(targets, bytes) or not hasattr(targets, "__iter__"):
        raise errors.InvalidInputError(
            f"messages are named by their addresses, not by {type(targets).__name__}"
        )
    return list(targets)


def _words(given: str | Sequence[str]) -> Sequence[str]:
    """Return a list of texts, given one or several: one is not meant letter by letter."""
    return [given] if isinstance(given, str) else given


def given_message(role: str | Given, content: Content | None, **fields: Any) -> Given:
    """Return the message that a call of `append` names.

    Raises:
        InvalidMessageError: it names none, or several.
    """
    if not isinstance(role, str):
        if isinstance(role, list | tuple):
            raise errors.InvalidMessageError("append takes one message; commit takes a list")
        if content is not None or any(fields.values()):
            raise errors.InvalidMessageError(
                f"append takes a role and a content, or a message alone; not {type(role).__name__} "
                "with more"
            )
        return role
    if content is None:
        raise errors.InvalidMessageError(
            "a message needs a role and a content, as in append('user', 'Hello')"
        )
    if isinstance(content, list | tuple) and any(isinstance(part, dict) for part in content):
        named = {key: value for key, value in fields.items() if value}
        return {"role": role, "content": list(content), **named}
    return Message(role, content, **fields)


def as_messages(given: Sequence[Given]) -> Sequence[Message]:
    """Return messages for what was given; providers' forms are known to those who read them, and take longer to load.

    Raises:
        InvalidMessageError: one is no message of a known shape.
    """
    if isinstance(given, Message) or not hasattr(given, "__iter__"):
        raise errors.InvalidMessageError(f"messages come in a list, not as {type(given).__name__}")
    for message in given:
        if not isinstance(message, Message):
            return providers.documents.read_messages(given)
    return given  # type: ignore[return-value]


def _schema(schema: Mapping[str, Any]) -> bytes:
    """Return a tool schema as compact JSON, its keys in the order given: a model reads them in that order."""
    if not isinstance(schema, Mapping):
        raise errors.InvalidOperationError("a tool schema is a JSON object")
    import json

    try:
        return bytes_of(
            json.dumps(schema, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        )
    except (TypeError, ValueError) as error:
        raise errors.InvalidOperationError(f"a tool schema is not JSON: {error}") from error

"""Drafts: the operations of one commit before it is written.

A draft writes nothing. It collects operations and their objects, so a commit is one transaction and a savepoint is a
position in a list.
"""

from __future__ import annotations

from _collections_abc import Mapping  # the same class as in collections.abc, but cheap to import

from trace_store import context, errors, history, providers
from trace_store.base import check
from trace_store.base.oid import OID_BYTES, ObjectId
from trace_store.objects import operations as ops
from trace_store.objects.address import HERE, RESULT, Address
from trace_store.objects.commit import Operation, check_operation, read_commit
from trace_store.objects.content import bytes_of
from trace_store.objects.message import Message, message_parts, store_message, store_parts
from trace_store.objects.parts import Part
from trace_store.store import revision

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, TypeAlias

    from trace_store.context.usage import Usage
    from trace_store.providers.documents import Given
    from trace_store.writer import Change, Writer

    Fact: TypeAlias = str | int | float | bool
    Target: TypeAlias = str | tuple[bytes, int]
    Content: TypeAlias = str | Sequence[Part]


NO_SECRETS: Mapping[str, int] = {}


class CommitResult:
    """A commit that was written, or the one at which the branch stays because there was nothing to do.

    Attributes:
        oid: its id.
        changed: whether it was written; False if it would have changed nothing.
        ref: the branch that points to it; None if HEAD is detached.
        message_count: number of messages that it adds.
        parents: ids of its parents.
        secrets: how many secrets of each kind were found.
        redacted: how many of each kind were replaced by placeholders. Secrets in bytes, such as images, never are.
        also: other members of the targets' units, which were changed with them.
        writer: what wrote it, through which tokens and summary are read.
    """

    JSON = "commit=oid changed ref message_count addresses secrets also"

    __slots__ = (
        *("also", "changed", "message_count", "oid", "parents", "redacted", "ref", "secrets"),
        "writer",
    )

    def __init__(
        self,
        writer: Writer,
        oid: ObjectId,
        ref: str | None,
        message_count: int,
        parents: tuple[ObjectId, ...] = (),
        secrets: Mapping[str, int] = NO_SECRETS,
        also: tuple[Address, ...] = (),
        *,
        redacted: Mapping[str, int] = NO_SECRETS,
        changed: bool = True,
    ) -> None:
        self.changed = changed
        self.secrets = secrets
        self.redacted = redacted
        self.also = also
        self.oid = oid
        self.ref = ref
        self.message_count = message_count
        self.parents = parents
        self.writer = writer

    def __repr__(self) -> str:
        return f"CommitResult({self.oid.short()}, {self.ref}, {self.message_count} messages)"

    @property
    def addresses(self) -> list[Address]:
        """Addresses of the messages that it adds, all of them new."""
        return [Address.of(self.oid, n) for n in range(self.message_count)]

    @property
    def token_count(self) -> int:
        """Tokens of the messages that it adds, counted on first access."""
        return self.writer.contexts.weigh_added(self.oid) if self.message_count else 0

    @property
    def orphan_results(self) -> list[str]:
        """The ids of the calls that its tool results name and the context does not hold; read on each access."""
        stored = ops.stored_messages(read_commit(self.oid, self.writer.store.objects.read))
        results = [part for each in stored for part in each["parts"] if part["type"] == RESULT]
        return [part["id"] for part in results if "call" not in part] if self.changed else []

    def summary(self, width: int = 72) -> str:
        """Return a one-line summary that quotes at most `width` characters of a message."""
        store = self.writer.store
        commit = read_commit(self.oid, store.objects.read)
        return history.summary.summary(store, commit, width)


class Savepoint:
    """A savepoint of a draft, used with `with`."""

    __slots__ = ("_draft", "_mark")

    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        self._mark = draft.mark()

    def __enter__(self) -> Draft:
        return self._draft

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self._draft.roll_back(self._mark)


class Draft:
    """The operations of one commit. Each method adds one; later ones may use the addresses that it returns.

    A target is an address, its text (`ab12cd.0`), or a commit's id and the number of a message that it adds.

    Attributes:
        operations: the operations so far.
        change: what it stores.
        guarded: messages whose edits must not remove a result or a call with a result.
        backward: the operations that restore each message by one step; writing the draft decides which.
        result: the commit, once a batch was written.
    """

    def __init__(
        self, writer: Writer, name: str = "", *, private: bool = False, author: str = ""
    ) -> None:
        """Start an empty draft.

        Args:
            writer: writes it.
            name: the change, as in `Writer.begin`.
            private: whether content is hashed with the user's key, so that its id cannot be used to guess it.
            author: as in `Writer.begin`.
        """
        self.change: Change = writer.begin(name, author=author)
        self._writer = writer
        gathering = self.change.gathering
        self._put = gathering.content_writer(writer.salt()) if private else gathering.put
        self._created = 0
        self.operations: list[Operation] = []
        self.guarded: set[Address] = set()
        self.backward: list[Operation] = []
        self.result: CommitResult | None = None

    @property
    def message_count(self) -> int:
        """Number of messages that the operations create."""
        return self._created

    def append(self, role: str | Given, content: Content | None = None, **fields: Any) -> Address:
        """Add a message at the end and return its address; `fields` are as in `Message`.

        `role` may be a whole message, also a provider's; then there is no `content`.

        Raises:
            InvalidMessageError: the message is not valid.
        """
        return self.extend([given_message(role, content, **fields)])[0]

    def extend(self, messages: Sequence[Given], *, after: Target | None = None) -> list[Address]:
        """Add messages at the end, or after another message, and return their addresses.

        Args:
            messages: `Message` values, or dictionaries and objects as used by OpenAI (chat completions or Responses),
                Anthropic, Gemini or LangChain.
            after: the message to insert them after.

        Raises:
            InvalidMessageError: the list is empty, or a message is not valid.
        """
        if not messages:
            raise errors.InvalidMessageError("no message to append")
        stored = self._store(messages)
        self._add(ops.add(stored, after=None if after is None else self._address(after)))
        return self._new_addresses(len(stored))

    def edit(
        self,
        target: Target,
        content: Content,
        *,
        call: str = "",
        all_results: bool = False,
        force: bool = False,
    ) -> None:
        """Change the content of a message; earlier versions stay readable.

        Args:
            target: the message.
            content: all parts, or a text, which replaces the message's text or the content of
                its tool result, and keeps calls, images and reasoning.
            call: the id of the call whose result is to change; needed if there are several.
            all_results: change all results instead.
            force: allow removing results, and calls that have a result. Else writing the draft fails.

        Raises:
            MessageNotFoundError: the context does not hold the message.
            InvalidOperationError: the message has no result of that call, or several results; `.calls` holds their ids.
        """
        address = self._address(target)
        if isinstance(content, str) and address.birth:
            edit = history.edit_text
            current = edit.current_parts(self._writer.contexts, address)
            content = edit.reworded(current, content, call, all_results=all_results)
        given = self.change.screened(Message("user", message_parts(content)))
        parts = store_parts(given.parts, self._put)
        self._add(ops.edit(address, parts))
        if force:
            self.guarded.discard(address)
        else:
            self.guarded.add(address)

    def annotate(
        self,
        targets: Target | Sequence[Target],
        *,
        priority: str | None = None,
        keep: str | Sequence[str] | None = None,
        labels: str | Sequence[str] = (),
        unlabels: str | Sequence[str] = (),
    ) -> None:
        """Set the priority, must-keep patterns and labels of messages.

        Raises:
            InvalidOperationError: the priority or a label is not valid, or there is nothing to set.
        """
        if priority is not None:
            check.text(priority=priority)
        patterns = (
            None if keep is None else [self._put(bytes_of(k)) for k in _as_list("keep", keep)]
        )
        self._add(
            ops.annotate(
                self._addresses(targets),
                priority=priority,
                keep=patterns,
                labels=[self.change.text(label) for label in _as_list("labels", labels)],
                unlabels=[self.change.text(label) for label in _as_list("unlabels", unlabels)],
            )
        )

    def remove(self, targets: Target | Sequence[Target], *, ghost: bool = False) -> None:
        """Hide messages; `ghost` leaves a short placeholder."""
        self._add(ops.remove(self._addresses(targets), ghost=ghost))

    def restore(self, targets: Target | Sequence[Target], *, version: int | None = None) -> None:
        """Show hidden messages again, and take others back by one wording.

        With `version` (0 is the first), show all of them in that wording.
        """
        self._add(ops.restore(self._addresses(targets), version=version))
        if version is None:
            self.backward.append(self.operations[-1])

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
        """Replace messages at the position of the first one; return the new addresses."""
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
        return self._new_addresses(len(stored))

    def move(self, targets: Target | Sequence[Target], *, after: Target | None) -> None:
        """Move messages, in the given order, after another one; None moves them to the start."""
        neighbour = None if after is None else self._address(after)
        self._add(ops.move(self._addresses(targets), after=neighbour))

    def set_tools(self, schemas: Sequence[Mapping[str, Any]]) -> None:
        """Set the tools that the model is offered; equal schemas are stored once.

        Raises:
            InvalidOperationError: a schema is not a JSON object.
        """
        if not hasattr(schemas, "__iter__"):
            raise errors.InvalidOperationError("tool schemas must be a list")
        self._add(ops.tools([self.change.put(_schema(schema)) for schema in schemas]))

    def record_usage(
        self,
        usage: Mapping[str, Any] | Usage | object,
        *,
        model: str = "",
        about: ObjectId | None = None,
        renderer: str = "",
        renderer_version: int = 0,
        sent: bytes = b"",
        estimated: int = 0,
    ) -> None:
        """Record the usage that a provider reported.

        Args:
            usage: the provider's dictionary or object (OpenAI, Anthropic, Gemini), or a `Usage`.
            model: the model that answered; "" takes it from the response.
            about: the commit whose context was sent; None is the parent.
            renderer: what rendered the request.
            renderer_version: its version.
            sent: the 32-byte hash of the exact bytes sent.
            estimated: the request's tokens as estimated before it was sent, or 0.

        Raises:
            InvalidInputError: the shape of the dictionary is unknown.
        """
        check.count(estimated=estimated)
        check.text(model=model, renderer=renderer)
        check.instance(bytes, sent=sent)
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
        if estimated:
            counts["estimated"] = estimated
        self._add(ops.usage(counts, about=about))

    def configure(
        self,
        *,
        meta: Mapping[str, Fact] | None = None,
        settings: Mapping[str, Fact] | None = None,
    ) -> None:
        """Record metadata of the commit, and generation settings of its messages; `log(meta=)` finds both.

        Values are stored as text; booleans as `true` and `false`.

        Raises:
            InvalidOperationError: both are empty, or a name or value is not valid.
        """
        self._add(ops.config(self._facts(meta), self._facts(settings)))

    def _facts(self, given: Mapping[str, Fact] | None) -> dict[str, str]:
        facts: Any = {} if given is None else given
        if not isinstance(facts, Mapping):
            raise errors.InvalidOperationError(
                "metadata and settings must be a mapping of names to values"
            )
        found: dict[str, str] = {}
        for name, value in facts.items():
            if not isinstance(name, str) or not isinstance(value, str | int | float):
                raise errors.InvalidOperationError(
                    f"{str(name)[:40]}: the value must be text, a number or a boolean, not {type(value).__name__}"
                )
            text = str(value).lower() if isinstance(value, bool) else str(value)
            found[self.change.text(name)] = self.change.text(text)
        return dict(sorted(found.items()))

    def savepoint(self) -> Savepoint:
        """Return a context manager that undoes the operations of its block if it raises."""
        return Savepoint(self)

    def mark(self) -> tuple[int, int]:
        """Return the current position, for `roll_back`."""
        return len(self.operations), self._created

    def roll_back(self, mark: tuple[int, int]) -> None:
        """Drop all operations since a mark."""
        # Objects of dropped operations stay; they cost only bytes.
        operations, self._created = mark
        del self.operations[operations:]

    def _add(self, operation: Operation) -> None:
        if self.result is not None:
            raise errors.StateError("the draft is already written; start another one")
        if operation.name != ops.ADD:  # its messages were already checked
            operation.fields = self._screened_fields(operation.fields)
            try:
                check_operation(operation.name, operation.fields)
            except errors.CorruptObjectError as error:
                raise errors.InvalidOperationError(str(error)) from None
        self.operations.append(operation)

    def _screened_fields(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields of an operation with all text redacted, except for that of messages."""
        text = self.change.text
        return {
            name: text(value)
            if isinstance(value, str)
            else self._screened_fields(value)
            if isinstance(value, dict)
            else value
            for name, value in fields.items()
        }

    def _store(self, messages: Sequence[Given]) -> list[dict[str, Any]]:
        put, screened = self._put, self.change.screened
        return [store_message(screened(message), put) for message in as_messages(messages)]

    def _new_addresses(self, count: int) -> list[Address]:
        first = self._created
        self._created += count
        return [Address(HERE, first + i) for i in range(count)]

    def _resolved(self, text: str) -> Address:
        return revision.resolve_address(self._writer.store, text)

    def _address(self, target: Target) -> Address:
        if isinstance(target, str):
            return self._resolved(target)
        named = as_targets(target)
        if len(named) != 1 or not isinstance(named[0], tuple):
            raise errors.InvalidInputError(f"expected one message, not {str(target)[:80]}")
        birth, number = named[0]
        if len(birth) == OID_BYTES:  # a commit's id: a message that it adds, new or carried
            try:
                return self._resolved(f"{birth.hex()}.{number}")
            except errors.RevisionNotFoundError:
                return Address.of(birth, number)
        return Address(birth, number)

    def _addresses(self, targets: Target | Sequence[Target]) -> list[Address]:
        return [self._address(target) for target in as_targets(targets)]


def as_targets(targets: Any) -> Sequence[Target]:
    """Return one target, or several, as a list.

    Raises:
        InvalidInputError: the value is not a target.
    """
    if isinstance(targets, str):
        return [targets]
    if isinstance(targets, tuple) and len(targets) == 2 and isinstance(targets[1], int):
        if not isinstance(targets[0], bytes):
            raise errors.InvalidInputError(f"not a message address: {str(targets)[:80]}")
        return [Address(bytes(targets[0]), targets[1])]
    if isinstance(targets, bytes) or not hasattr(targets, "__iter__"):
        raise errors.InvalidInputError(f"expected message addresses, not {type(targets).__name__}")
    return list(targets)


def _as_list(argument: str, given: str | Sequence[str]) -> Sequence[str]:
    """Return one or several texts, which are an argument, as a list.

    Raises:
        InvalidInputError: it is neither.
    """
    if isinstance(given, str):
        return [given]
    check.texts(**{argument: given})
    return given


def given_message(role: str | Given, content: Content | None, **fields: Any) -> Given:
    """Return the message for the arguments of `append`.

    Raises:
        InvalidMessageError: there is none, or more than one.
    """
    if not isinstance(role, str):
        if isinstance(role, list | tuple):
            raise errors.InvalidMessageError("append takes one message; use commit for a list")
        if content is not None or any(fields.values()):
            raise errors.InvalidMessageError(
                f"append takes a role and a content, or one message; not {type(role).__name__} "
                "with other arguments"
            )
        return role
    if content is None:
        raise errors.InvalidMessageError(
            "a message needs a role and a content, as in append('user', 'Hello')"
        )
    for part in content if isinstance(content, list | tuple) else ():
        if isinstance(part, dict):
            named = {key: value for key, value in fields.items() if value}
            return {"role": role, "content": list(content), **named}
    return Message(role, content, **fields)


def as_messages(given: Sequence[Given]) -> Sequence[Message]:
    """Return given messages as `Message` values; the readers of providers' forms are loaded only if needed.

    Raises:
        InvalidMessageError: the shape of a message is unknown.
    """
    if isinstance(given, Message) or not hasattr(given, "__iter__"):
        raise errors.InvalidMessageError(f"messages must be a list, not {type(given).__name__}")
    for message in given:
        if not isinstance(message, Message):
            return providers.documents.read_messages(given)
    return given  # type: ignore[return-value]


def _schema(schema: Mapping[str, Any]) -> bytes:
    """Return a tool schema as compact JSON in the given key order, which a model sees."""
    if not isinstance(schema, Mapping):
        raise errors.InvalidOperationError("a tool schema must be a JSON object")
    import json

    try:
        return bytes_of(
            json.dumps(schema, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        )
    except (TypeError, ValueError) as error:
        raise errors.InvalidOperationError(f"a tool schema is not JSON: {error}") from error


def targets_of(targets: Target | Sequence[Target], argument: str = "targets") -> Sequence[Target]:
    """Return the messages named by one address or several.

    Raises:
        InvalidInputError: there is none, or it is not an address; the error names the argument.
    """
    try:
        found = as_targets(targets)
    except errors.InvalidInputError as error:
        raise errors.InvalidInputError(f"{argument}: {error}", argument=argument) from None
    if not found:
        raise errors.InvalidInputError(f"{argument}: no message is named", argument=argument)
    return found

"""The messages of a context while they are mended, with what became of each.

Rule: what came in is never changed; an item that says something else than its message remembers that it does.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

from trace_store.context.repair.faults import PROVIDERS, Fault
from trace_store.frozen import field, mutable
from trace_store.objects.address import Address
from trace_store.objects.message import default_kind
from trace_store.objects.parts import Part, Text
from trace_store.providers.media_facts import ANTHROPIC_IMAGES, ImageLimits
from trace_store.providers.values import Renderable


@mutable
class Item:
    """A message on the bench. Renderers take it for one.

    Attributes:
        role, parts, kind, name, model, id: as in `Message`.
        at: its position in the context that came in; None for a new one.
        address: its address there; None for a new one, and where messages have none.
        ghost: whether it is the placeholder of a removed message, which is never touched.
        reworded: whether its parts are others than they were.
        moved: whether it stands elsewhere than it did.
        replaces: the item that a new one stands in for, at the same place.
    """

    role: str
    parts: tuple[Part, ...]
    kind: str = ""
    name: str = ""
    model: str = ""
    id: str = ""
    at: int | None = None
    address: Address | None = None
    ghost: bool = False
    reworded: bool = False
    moved: bool = False
    replaces: Item | None = None

    @classmethod
    def of(cls, message: Renderable, at: int) -> Item:
        """Return the item of a message that came in."""
        return cls(
            role=message.role,
            parts=tuple(message.parts),
            kind=message.kind,
            name=message.name,
            model=message.model,
            id=message.id,
            at=at,
            address=getattr(message, "address", None),
            ghost=bool(getattr(message, "ghost", False)),
        )

    @classmethod
    def new(cls, role: str, parts: Sequence[Part], *, replaces: Item | None = None) -> Item:
        """Return a message that nobody recorded."""
        name = "" if replaces is None else replaces.name
        kind = default_kind(role, parts)
        return cls(role, tuple(parts), kind=kind, name=name, replaces=replaces)

    @property
    def is_new(self) -> bool:
        """Whether it did not come in."""
        return self.at is None

    @property
    def says_nothing(self) -> bool:
        """Whether there is nothing in it; what is blank is something."""
        return all(isinstance(part, Text) and not part.text for part in self.parts)

    def reword(self, parts: Iterable[Part]) -> None:
        """Let it say something else; nothing happens when it is the same."""
        changed = tuple(parts)
        if changed != self.parts:
            self.parts = changed
            self.reworded = True


@mutable
class Bench:
    """All messages, in order, and what was found.

    Attributes:
        items: the context as it is by now.
        chosen: the providers that it has to suit.
        removed: messages that are no longer in it.
        faults: what was wrong, in the order in which it was found.
        count: how often something was to be mended.
        images: what Anthropic takes of an image in a request with so many of them.
    """

    items: list[Item]
    chosen: frozenset[str]
    removed: list[Item] = field(default_factory=list)
    faults: dict[Fault, None] = field(default_factory=dict)
    count: int = 0
    images: ImageLimits = ANTHROPIC_IMAGES

    def find(
        self,
        code: str,
        item: Item | None,
        detail: str,
        done: str,
        providers: Sequence[str] = PROVIDERS,
    ) -> bool:
        """Note what is wrong, and tell whether it is to be mended: when a chosen provider refuses it.

        The same thing of one message is noted once. What is wrong with a message that mending itself made is no
        fault about the context.
        """
        if not self.chosen.intersection(providers):
            return False
        self.count += 1
        refusing = tuple(name for name in PROVIDERS if name in providers)
        source = item
        while source is not None and source.is_new and source.replaces is not None:
            source = source.replaces
        if source is not None and source.is_new:
            return True
        at, address = (None, None) if source is None else (source.at, source.address)
        self.faults[Fault(code, detail, done, at, address, refusing)] = None
        return True

    def remove(self, items: Iterable[Item]) -> None:
        """Take messages out."""
        gone = list(items)
        if gone:
            ids = {id(item) for item in gone}
            self.items = [item for item in self.items if id(item) not in ids]
            self.removed += [item for item in gone if not item.is_new]
            self.removed += [item.replaces for item in gone if item.replaces is not None]

    def insert(self, behind: dict[int, list[Item]], leaving: Container[int] = ()) -> None:
        """Put items behind others, named by their positions; those whose `id()` is in `leaving` leave theirs."""
        items: list[Item] = []
        for at, item in enumerate(self.items):
            if id(item) not in leaving:
                items.append(item)
            items += behind.get(at, ())
        self.items = items

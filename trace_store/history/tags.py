"""Tags: names for commits, or for any object, that stay where they are.

Rule: a tag moves only when that is forced, and what it named goes to the trash then, as when it is deleted. An
annotated tag is an object with an author, a time and a message; a light one is the ref alone.
"""

from __future__ import annotations

from trace_store import errors
from trace_store import revision as revisions
from trace_store.contracts import RefEdit, Transaction
from trace_store.frozen import value
from trace_store.history.branches import Deleted, delete_refs, is_like, short
from trace_store.history.trash import keeping
from trace_store.ident import check_author
from trace_store.objects.codec import TAG, kind_of
from trace_store.objects.commit import Tag
from trace_store.oid import hash_object
from trace_store.refs.names import ORIGINAL, TAGS, check_ref_name, check_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from trace_store.contracts import RefReader
    from trace_store.oid import ObjectId
    from trace_store.store.handle import Store


@value
class TagEntry:
    """One tag.

    Attributes:
        ref: its full name.
        oid: what the ref stands for: the tag object of an annotated one.
        target: what it names in the end.
        tag: the tag object; None of a light one, and where it is not here.
    """

    ref: str
    oid: ObjectId
    target: ObjectId
    tag: Tag | None

    @property
    def name(self) -> str:
        """Its short name."""
        return self.ref.removeprefix(TAGS)


def list_tags(store: Store, patterns: Sequence[str] = ()) -> list[TagEntry]:
    """Return the tags, sorted by name; with patterns such as `v1.*` those whose name is like one."""
    found: list[TagEntry] = []
    for ref, oid in store.refs.iterate(TAGS):
        name = ref.removeprefix(TAGS)
        if not patterns or is_like(name, patterns):
            found.append(_entry(store, ref, oid))
    return found


def create_tag(
    store: Store,
    name: str,
    revision: str = "HEAD",
    *,
    author: str,
    message: str = "",
    force: bool = False,
) -> TagEntry:
    """Name an object, and return the tag.

    Args:
        store: where.
        name: the tag's short name.
        revision: what it names.
        author: for the reflogs, and of an annotated tag.
        message: makes it an annotated tag that says this.
        force: let a tag that is there name this; what it named goes to the trash.

    Raises:
        AlreadyExistsError: there is a tag of this name, and `force` is not given.
        InvalidRefNameError: the name breaks the rules for names.
        As `resolve`.
    """
    ref = _tag_ref(name)
    target = oid = revisions.resolve(store, revision)
    tag: Tag | None = None
    made: list[tuple[ObjectId, bytes]] = []
    if message:
        tag = Tag(target, short(ref), check_author(author), store.clock.now(), message)
        data = tag.encode()
        oid = hash_object(data)
        made.append((oid, data))

    def build(refs: RefReader) -> Transaction:
        before = refs.read(ref)
        if before is not None and not force:
            raise errors.AlreadyExistsError(
                f"there is a tag {short(ref)} already",
                code=errors.ErrorCode.TAG_EXISTS,
                ref=ref,
            )
        edits = [RefEdit(ref, oid, before)]
        if before is not None and before != oid:
            edits.append(keeping(ref, before))
        return Transaction(made, edits, f"tag: {short(ref)}")

    store.transact(build, author=author)
    return TagEntry(ref, oid, target, tag)


def delete_tags(store: Store, names: Sequence[str], *, author: str) -> list[Deleted]:
    """Delete tags into the trash, all or none, and return what each stood for.

    Raises:
        RefNotFoundError: there is no such tag.
        InvalidRefNameError: a name breaks the rules for names.
    """
    wanted = list(dict.fromkeys(_tag_ref(name) for name in names))
    return delete_refs(store, wanted, author=author, what="tag")


def _tag_ref(name: str) -> str:
    check_text(name)
    full = name if name.startswith(TAGS) else TAGS + name
    if name in ("HEAD", "@", "-", ORIGINAL):
        raise errors.InvalidRefNameError(f"{name} is no name for a tag", ref=full)
    return check_ref_name(full)


def _entry(store: Store, ref: str, oid: ObjectId) -> TagEntry:
    target, first = oid, None
    try:
        while kind_of(data := store.objects.read(target)) == TAG:
            tag = Tag.decode(data)
            first = first or tag
            target = tag.target
    except errors.ObjectNotFoundError:
        pass  # the ref is incomplete, and the others are not
    return TagEntry(ref, oid, target, first)

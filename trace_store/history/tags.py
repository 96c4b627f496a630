"""Tags: fixed names for commits or other objects.

A tag moves only with `force`, and its old target then goes to the trash, as for a deleted tag. An annotated tag is an
object with an author, a time and a message; a lightweight one is only a ref.
"""

from __future__ import annotations

from trace_store import errors
from trace_store import revision as revisions
from trace_store.contracts import RefEdit, Transaction
from trace_store.frozen import field, value
from trace_store.history.branches import DeletedRef, delete_refs, matches_any, short
from trace_store.history.trash import keep_in_trash
from trace_store.ident import check_author
from trace_store.objects.codec import TAG, kind_of
from trace_store.objects.commit import Tag
from trace_store.oid import hash_object
from trace_store.ref_names import ORIGINAL, TAGS, check_ref_name, check_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trace_store.contracts import RefReader
    from trace_store.oid import ObjectId
    from trace_store.store.handle import Store


@value
class TagEntry:
    """One tag.

    Attributes:
        ref: its full name.
        oid: what the ref points to: the tag object of an annotated tag.
        target: the tagged object.
        tag: the tag object; None for a lightweight tag, and if it is missing.
        secrets: after it was created: how many secrets of each kind were found in its message.
    """

    ref: str
    oid: ObjectId
    target: ObjectId
    tag: Tag | None
    secrets: Mapping[str, int] = field(default_factory=dict, hidden=True)

    @property
    def name(self) -> str:
        """Its short name."""
        return self.ref.removeprefix(TAGS)


def list_tags(store: Store, patterns: Sequence[str] = ()) -> list[TagEntry]:
    """Return the tags, sorted by name; patterns such as `v1.*` select some."""
    found: list[TagEntry] = []
    for ref, oid in store.refs.iterate(TAGS):
        name = ref.removeprefix(TAGS)
        if not patterns or matches_any(name, patterns):
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
    """Tag an object.

    Args:
        store: the repository's store.
        name: the tag's short name.
        revision: the object.
        author: for the reflogs, and the author of an annotated tag.
        message: the message of an annotated tag; "" makes a lightweight one.
        force: move an existing tag; its old target goes to the trash.

    Raises:
        AlreadyExistsError: the tag exists, and `force` is not given.
        InvalidRefNameError: the name is not valid.
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
                f"tag {short(ref)} already exists",
                code=errors.ErrorCode.TAG_EXISTS,
                ref=ref,
            )
        edits = [RefEdit(ref, oid, before)]
        if before is not None and before != oid:
            edits.append(keep_in_trash(ref, before))
        return Transaction(made, edits, f"tag: {short(ref)}")

    store.transact(build, author=author)
    return TagEntry(ref, oid, target, tag)


def delete_tags(store: Store, names: Sequence[str], *, author: str) -> list[DeletedRef]:
    """Move tags to the trash, all or none; return what was deleted.

    Raises:
        RefNotFoundError: there is no such tag.
        InvalidRefNameError: a name is not valid.
    """
    wanted = list(dict.fromkeys(_tag_ref(name) for name in names))
    return delete_refs(store, wanted, author=author, what="tag")


def _tag_ref(name: str) -> str:
    check_text(name)
    full = name if name.startswith(TAGS) else TAGS + name
    if name in ("HEAD", "@", "-", ORIGINAL):
        raise errors.InvalidRefNameError(f"{name} is not a valid tag name", ref=full)
    return check_ref_name(full)


def _entry(store: Store, ref: str, oid: ObjectId) -> TagEntry:
    target, first = oid, None
    try:
        while kind_of(data := store.objects.read(target)) == TAG:
            tag = Tag.decode(data)
            first = first or tag
            target = tag.target
    except errors.ObjectNotFoundError:
        pass  # an incomplete tag must not hide the others
    return TagEntry(ref, oid, target, first)

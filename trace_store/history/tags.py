"""Tags: fixed names for commits or other objects.

A tag moves only with `force`, and its old target then goes to the trash, as for a deleted tag. An annotated tag is an
object with an author, a time and a message; a lightweight one is only a ref.
"""

from __future__ import annotations

from trace_store import errors
from trace_store.base import check
from trace_store.base.frozen import field, value
from trace_store.base.ident import check_author
from trace_store.contracts import RefEdit
from trace_store.contracts.ref_names import ORIGINAL, TAGS, check_ref_name, check_text, short_name
from trace_store.history.branches import matches_any
from trace_store.history.trash_refs import DeletedRef, delete_refs, keep_in_trash
from trace_store.objects.codec import TAG, kind_of
from trace_store.objects.commit import Tag
from trace_store.store.revision import name_of, resolve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from builtins import list as List  # the method `list` hides it  # noqa: N812
    from collections.abc import Mapping

    from trace_store.base.oid import ObjectId
    from trace_store.contracts.protocols import RefReader
    from trace_store.store.revision import Revision
    from trace_store.store.store import Store
    from trace_store.writer import Writer


@value
class TagEntry:
    """One tag.

    Attributes:
        ref: its full name.
        oid: what the ref points to: the tag object of an annotated tag.
        target: the tagged object.
        tag: the tag object; None for a lightweight tag, and if it is missing.
        secrets: after it was created: how many secrets of each kind were found in its message.
        changed: whether the verb that returned it changed something.
    """

    JSON = "name object=oid is_annotated author=tag.author time=tag.time message=tag.message"

    ref: str
    oid: ObjectId
    target: ObjectId
    tag: Tag | None
    secrets: Mapping[str, int] = field(default_factory=dict, hidden=True)
    changed: bool = False

    @property
    def is_annotated(self) -> bool:
        """Whether it has an author, a time and a message."""
        return self.tag is not None

    @property
    def name(self) -> str:
        """Its short name."""
        return self.ref.removeprefix(TAGS)


class Tags:
    """The tags of a repository, as `repo.tags`. A tag names a commit or any other object, and does not move."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    def list(self, *patterns: str) -> List[TagEntry]:
        """Return the tags, sorted by name; patterns such as `v1.*` select some."""
        check.texts(patterns=patterns)
        store = self._writer.store
        return [
            _entry(store, ref, oid)
            for ref, oid in store.refs.iterate(TAGS)
            if not patterns or matches_any(ref.removeprefix(TAGS), patterns)
        ]

    def create(
        self, name: str, revision: Revision = "HEAD", *, message: str = "", force: bool = False
    ) -> TagEntry:
        """Tag an object, and return the tag.

        Args:
            name: the tag's short name.
            revision: the object.
            message: the message of an annotated tag, which has an author and a time; "" makes a lightweight one.
            force: move an existing tag; the old target goes to the trash.

        Raises:
            AlreadyExistsError: the tag exists, and `force` is not given.
            InvalidRefNameError: the name is not valid.
            RevisionNotFoundError: there is no such object.
            SecretFoundError: the message holds a secret, and the repository refuses secrets.
        """
        check.flag(force=force)
        check.text(message=message)
        ref, store, change = _tag_ref(name), self._writer.store, self._writer.begin()
        target = oid = resolve(store, name_of(revision))
        tag: Tag | None = None
        if message:
            tag = Tag(
                target, short_name(ref), check_author(change.author), store.clock.now(), message
            )
            oid = change.add(tag)

        def edits(refs: RefReader) -> List[RefEdit]:
            before = refs.read(ref)
            if before is not None and not force:
                raise errors.AlreadyExistsError(
                    f"tag {short_name(ref)} already exists",
                    code=errors.ErrorCode.TAG_EXISTS,
                    ref=ref,
                )
            moves = [RefEdit(ref, oid, before)]
            if before is not None and before != oid:
                moves.append(keep_in_trash(ref, before))
            return moves

        changed = store.refs.read(ref) != oid
        change.write(edits, f"tag: {short_name(ref)}")
        return TagEntry(ref, oid, target, tag, secrets=change.secrets, changed=changed)

    def delete(self, *names: str) -> List[DeletedRef]:
        """Move tags to the trash, all or none, and return the target of each.

        Raises:
            RefNotFoundError: there is no such tag.
            InvalidRefNameError: a name is not valid.
        """
        wanted = dict.fromkeys(_tag_ref(name) for name in names)
        return delete_refs(self._writer, list(wanted), what="tag")


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

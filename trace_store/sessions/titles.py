"""Session titles that users set: tag objects under `refs/titles/<format>/<session>` whose message is the title.

A title belongs to the session, so renaming a branch keeps it, and git shares it like any ref.
"""

from __future__ import annotations

from trace_store.contracts import RefEdit, Transaction
from trace_store.errors import InvalidInputError, ObjectNotFoundError
from trace_store.ident import check_author
from trace_store.objects.commit import Tag
from trace_store.oid import ObjectId, hash_object
from trace_store.store.handle import Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.contracts import RefReader

TITLES = "refs/titles/"
MAXIMUM_TITLE = 500


def read_title(store: Store, format_name: str, session: str) -> str:
    """Return the title that a user set for a session, or ""."""
    oid = store.refs.read(_ref(format_name, session))
    if oid is None:
        return ""
    try:
        return Tag.decode(store.objects.read(oid)).message
    except ObjectNotFoundError:
        return ""


def rename_session(
    store: Store, format_name: str, session: str, target: ObjectId, title: str, *, author: str
) -> None:
    """Set the title of a session; an empty one removes it.

    Args:
        store: the repository's store.
        format_name: the agent, such as `claude-code`.
        session: its id.
        target: a commit of it.
        title: one line.
        author: for the tag and the reflog.

    Raises:
        InvalidInputError: the title has several lines, or more than 500 characters.
    """
    title = title.strip()
    if "\n" in title or len(title) > MAXIMUM_TITLE:
        raise InvalidInputError(
            "a title must be one line of at most 500 characters", value=title[:80]
        )
    ref = _ref(format_name, session)
    tag = Tag(target, session, check_author(author), store.clock.now(), title)
    data = tag.encode()
    oid = hash_object(data)

    def build(refs: RefReader) -> Transaction | None:
        before = refs.read(ref)
        if title:
            return Transaction([(oid, data)], [RefEdit(ref, oid, before)], f"title: {session}")
        return None if before is None else Transaction([], [RefEdit(ref, None, before)], "title")

    store.transact(build, author=author)


def _ref(format_name: str, session: str) -> str:
    return f"{TITLES}{format_name}/{session}"

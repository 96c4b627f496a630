"""Tags: list, create, delete."""

from __future__ import annotations

from trace_store import check, history
from trace_store.frozen import replace
from trace_store.repo.handle import Handle, name_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from builtins import list as List  # the method `list` hides it  # noqa: N812

    from trace_store.history.branches import DeletedRef
    from trace_store.history.tags import TagEntry
    from trace_store.repo.handle import Revision


class Tags:
    """The tags of a repository, as `repo.tags`."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    def list(self, *patterns: str) -> List[TagEntry]:
        """Return the tags, sorted by name; with patterns such as `v1.*` the matching ones."""
        check.texts(patterns=patterns)
        return history.tags.list_tags(self._handle.store, patterns)

    def create(
        self, name: str, revision: Revision = "HEAD", *, message: str = "", force: bool = False
    ) -> TagEntry:
        """Tag a commit, and return the tag; with a message it is annotated, with author and time.

        With `force` an existing tag is moved, and its former target goes to the trash.

        Raises:
            AlreadyExistsError: the tag exists, and `force` is not given.
            InvalidRefNameError: the name is not valid.
            RevisionNotFoundError: there is no such commit.
            SecretFoundError: the message holds a secret, and `secrets` is "block".
        """
        check.flag(force=force)
        check.text(message=message)
        handle = self._handle
        gathering = handle.guard.gathering() if message else None
        entry = history.tags.create_tag(
            handle.store,
            name,
            name_of(revision),
            author=handle.author,
            message=gathering.text(message) if gathering else "",
            force=force,
        )
        return replace(entry, secrets=gathering.secrets) if gathering else entry

    def delete(self, *names: str) -> List[DeletedRef]:
        """Move tags to the trash, all or none, and return the target of each.

        Raises:
            RefNotFoundError: there is no such tag.
        """
        return history.tags.delete_tags(self._handle.store, names, author=self._handle.author)

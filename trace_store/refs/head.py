"""HEAD: the branch or commit that this working copy has checked out.

Rule: the file is local and replaced atomically. Without it, HEAD is the default branch.
"""

from __future__ import annotations

from trace_store import errors
from trace_store.files import read_file
from trace_store.oid import ObjectId
from trace_store.refs.names import check_ref_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.files import Disk

NAME = "HEAD"
MAXIMUM_BYTES = 4096
_SYMBOLIC = "ref: "


class Head:
    """The state of HEAD.

    Attributes:
        ref: the full name of the branch; None if detached.
        oid: the commit; None if the branch is unborn.
    """

    __slots__ = ("oid", "ref")

    def __init__(self, ref: str | None, oid: ObjectId | None) -> None:
        self.ref = ref
        self.oid = oid

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Head):
            return NotImplemented
        return (self.ref, self.oid) == (other.ref, other.oid)

    def __hash__(self) -> int:
        return hash((self.ref, self.oid))

    def __repr__(self) -> str:
        return f"Head(ref={self.ref!r}, oid={self.oid!r})"

    @property
    def detached(self) -> bool:
        """Whether HEAD is a commit instead of a branch."""
        return self.ref is None

    @property
    def unborn(self) -> bool:
        """Whether HEAD's branch has no commit yet."""
        return self.oid is None


def encode_head(target: str | ObjectId) -> bytes:
    """Return the file content for a full ref name or a commit."""
    if isinstance(target, str):
        return f"{_SYMBOLIC}{check_ref_name(target)}\n".encode("ascii")
    return f"{ObjectId(target)}\n".encode("ascii")


def decode_head(data: bytes, path: str) -> str | ObjectId:
    """Return the full ref name or the commit in the file.

    Raises:
        FormatError: it has neither.
    """
    try:
        text = data.decode("ascii").rstrip("\r\n")
        if text.startswith(_SYMBOLIC):
            return check_ref_name(text[len(_SYMBOLIC) :].strip())
        return ObjectId.parse(text)
    except (UnicodeDecodeError, errors.InvalidRefNameError, errors.InvalidInputError) as error:
        raise errors.FormatError(f"HEAD is unreadable: {error}", path=path) from error


def read_original(disk: Disk, path: str) -> ObjectId | None:
    """Return the commit in the ORIG_HEAD file, or None if absent or invalid."""
    try:
        return ObjectId.parse((read_file(disk, path) or b"").decode("ascii").strip())
    except (UnicodeDecodeError, errors.InvalidInputError):
        return None

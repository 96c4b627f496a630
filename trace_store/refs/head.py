"""HEAD, and the upstreams of branches.

    refs/heads/idea refs/heads/main        one line of `local/upstreams`

Rule: HEAD is the branch or commit that this working copy has checked out. The files are local. HEAD's is replaced
atomically; without it, HEAD is the default branch. Upstreams are only read here, and unreadable lines are skipped.
"""

from __future__ import annotations

from trace_store import errors
from trace_store.base.oid import ObjectId
from trace_store.contracts.ref_names import BRANCHES, check_ref_name, is_ref_name
from trace_store.disk.files import Disk, read_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

NAME = "HEAD"
MAXIMUM_BYTES = 4096
_SYMBOLIC = "ref: "


class Head:
    """The state of HEAD.

    Attributes:
        ref: the full name of the branch; None if detached.
        oid: the commit; None if the branch is unborn.
    """

    JSON = "ref commit=oid"

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


def read_upstreams(disk: Disk, path: str) -> dict[str, str]:
    """Return each branch's upstream, both as full names."""
    data = read_file(disk, path) or b""
    pairs = (line.split(" ") for line in data.decode("ascii", "replace").splitlines())
    return {pair[0]: pair[1] for pair in pairs if len(pair) == 2 and all(map(is_ref_name, pair))}


def upstream_in(known: Mapping[str, str], ref: str | None) -> str:
    """Return the upstream of a branch (full name), or of a detached HEAD if None.

    Raises:
        DetachedHeadError: HEAD is detached.
        RevisionNotFoundError: the branch has no upstream.
    """
    if ref is None:
        raise errors.DetachedHeadError("HEAD is detached, so it has no upstream")
    if ref not in known:
        short = ref.removeprefix(BRANCHES)
        raise errors.RevisionNotFoundError(
            f"{short} has no upstream", code=errors.ErrorCode.NO_UPSTREAM, ref=ref
        )
    return known[ref]

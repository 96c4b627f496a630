"""The ids of trajectories, and the refs that have them as names."""

from __future__ import annotations

from trace_store import errors
from trace_store.ident import Randomness
from trace_store.ref_names import is_ref_name
from trace_store.refs.names import TRAJECTORIES, check_text

PREFIX = "traj_"
_ID_CHARACTERS = "0123456789abcdefghjkmnpqrstvwxyz"
_ID_LENGTH = 12


def new_id() -> str:
    """Return a random id, without the prefix."""
    digits = int.from_bytes(Randomness().take(8), "big")
    return "".join(_ID_CHARACTERS[digits >> 5 * n & 31] for n in range(_ID_LENGTH))


def trajectory_ref(id: str) -> str:
    """Return the full name of a trajectory's ref.

    Raises:
        InvalidInputError: the id is not valid.
    """
    check_text(id)
    name = id.removeprefix(TRAJECTORIES)
    if "/" in name or not is_ref_name(TRAJECTORIES + name):
        raise errors.InvalidInputError(f"not an id of a trajectory: {id[:80]!r}", value=id)
    return TRAJECTORIES + name


def name_of(ref: str) -> str:
    """Return the id of the trajectory with a ref."""
    return ref.removeprefix(TRAJECTORIES)


def not_found(id: str) -> errors.RefNotFoundError:
    """Return the error for a trajectory that does not exist."""
    return errors.RefNotFoundError(
        f"no trajectory {id[:80]!r}", code=errors.ErrorCode.TRAJECTORY_NOT_FOUND, name=id
    )

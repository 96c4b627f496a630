"""Settings of agents on the disk: read or refused, and replaced only if no other program changed them meanwhile.

Links are followed, since people keep settings in a folder of their own; mode and byte order mark stay. The bytes from
before our first change are kept in the user's data folder, so that they can be restored.
"""

from __future__ import annotations

import base64
import json
import os
import stat

from trace_store import errors
from trace_store.base.environment import Environment
from trace_store.base.frozen import value
from trace_store.base.oid import sha256_hex
from trace_store.disk.files import Disk, read_file, replace_file

MAXIMUM_BYTES = 4 << 20
BOM = "\ufeff"
HOOKS, SERVER, TRUST = "hooks", "mcp", "trust"
"""What our entries are for: an original is kept for each, since two of them may be in one file."""


@value
class SettingsFile:
    """A file as it was read.

    Attributes:
        path: where the agent looks for it.
        real: where it is, with links followed.
        data: its bytes; None if there is none.
    """

    path: str
    real: str
    data: bytes | None

    @property
    def is_link(self) -> bool:
        """Whether it, or its folder, is kept elsewhere."""
        return os.path.islink(self.path) or os.path.islink(os.path.dirname(self.path))

    @classmethod
    def read(cls, path: str) -> SettingsFile:
        """Read a file.

        Raises:
            StateError: it is a folder, is too large, or cannot be read.
        """
        real = os.path.realpath(path)
        try:
            if os.path.isdir(real):
                raise refused(path, "it is a folder")
            return cls(path, real, read_file(Disk(), real, limit=MAXIMUM_BYTES))
        except errors.StorageError as error:
            raise refused(path, error.message) from error

    def text(self) -> str:
        """Return its text without a byte order mark; "" if it is absent.

        Raises:
            StateError: it is not UTF-8.
        """
        try:
            return (self.data or b"").decode("utf-8").removeprefix(BOM)
        except UnicodeDecodeError as error:
            raise refused(self.path, "it is not UTF-8") from error

    def encode(self, text: str) -> bytes:
        """Return the bytes of another text, with the byte order mark of this one."""
        mark = BOM if (self.data or b"").startswith(BOM.encode()) else ""
        return (mark + text).encode()

    def write(self, data: bytes | None) -> bool:
        """Replace the file, or remove it for None; return False if it changed since it was read.

        Raises:
            StateError: it is read-only.
            StorageError: the disk failed.
        """
        self.check_writable()
        if SettingsFile.read(self.path) != self:
            return False
        disk = Disk()
        if data is None:
            disk.remove(self.real)
            return True
        status = disk.stat(self.real)
        mode = None if status is None else stat.S_IMODE(status.st_mode)
        replace_file(disk, self.real, data, mode=mode)
        return True

    def check_writable(self) -> None:
        """Raise StateError if the file, or the folder of a new one, is read-only."""
        place = self.real
        while not os.path.lexists(place) and os.path.dirname(place) != place:
            place = os.path.dirname(place)
        status = os.stat(place)
        if not status.st_mode & stat.S_IWUSR or not os.access(place, os.W_OK):
            raise refused(self.path, f"{place} is read-only")
        # An existing file is replaced by a rename in its folder; a new one only needs the nearest existing folder.
        if place == self.real and not os.access(os.path.dirname(place), os.W_OK):
            raise refused(self.path, f"{os.path.dirname(place)} is read-only")


@value
class Original:
    """The content of a settings file before we added an entry, and the hash of the file right after."""

    before: bytes | None
    after: str

    @classmethod
    def load(cls, environment: Environment, kind: str, path: str) -> Original | None:
        """Return the original of a file that was saved before a kind of change, or None."""
        try:
            kept = json.loads(read_file(Disk(), _place(environment, kind, path)) or b"")
            before = kept["before"]
            data = None if before is None else base64.b64decode(before)
            return cls(data, str(kept["after"]))
        except (errors.TraceError, ValueError, TypeError, LookupError):
            return None

    def save(self, environment: Environment, kind: str, path: str) -> None:
        """Keep it for `load`.

        Raises:
            StorageError: the disk failed.
        """
        before = None if self.before is None else base64.b64encode(self.before).decode()
        data = json.dumps({"path": path, "before": before, "after": self.after}).encode()
        replace_file(Disk(), _place(environment, kind, path), data, private=True)

    def is_unchanged(self, data: bytes | None) -> bool:
        """Return True if a file has not changed since we edited it."""
        return data is not None and sha256_hex(data) == self.after


def forget_original(environment: Environment, kind: str, path: str) -> None:
    """Delete the saved original of a file, as `Original.load` returns it."""
    Disk().remove(_place(environment, kind, path))


def _place(environment: Environment, kind: str, path: str) -> str:
    return environment.data_file(kind, f"{sha256_hex(os.fsencode(path))[:32]}.json")


def refused(path: str, why: str) -> errors.StateError:
    """Return the error for a file that is left as it is."""
    return errors.StateError(
        f"cannot change {path}: {why}", code=errors.ErrorCode.SETTINGS_REFUSED, path=path
    )

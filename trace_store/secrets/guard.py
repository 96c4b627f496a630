"""The guard that redacts or refuses secrets in everything that enters a repository.

Only rule, position and id of a finding are reported; no attribute, error or `repr` has the value. Modules are loaded
and user files created only after something looks like a secret.
"""

from __future__ import annotations

import os

from trace_store import errors, secrets
from trace_store.files import Disk, read_file
from trace_store.layout import DIRECTORY_NAME
from trace_store.objects.content import ObjectCollector, bytes_of, text_of
from trace_store.secrets import modes
from trace_store.secrets.known import ENV_FILES, MAXIMUM_ENV_BYTES, env_values, probe, secret_values
from trace_store.secrets.prefilter import COLD_BYTES, CONTENT_BYTES, may_hold
from trace_store.user_files import settings_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from trace_store.environment import Environment
    from trace_store.objects.content import Put, Salt
    from trace_store.oid import ObjectId
    from trace_store.secrets.engine import Scanner, SecretFinding
    from trace_store.secrets.settings import Settings
    from trace_store.store.handle import Store

SETTINGS = "secrets.toml"
MAXIMUM_SETTINGS_BYTES = 1 << 20
FACT = "secrets"
"""Metadata field of a commit with redacted secrets: the version of the rules."""


class Guard:
    """Checks everything that is stored in one repository.

    There is one for an open repository. It reads the user's settings and the environment when it gets the first text.
    """

    def __init__(
        self,
        store_id: str,
        environment: Environment,
        *,
        disk: Disk | None = None,
        folder: str = "",
        place: str = "",
        mode: str = "",
    ) -> None:
        """Create a guard.

        Args:
            store_id: the id of the repository.
            environment: has known secrets and the location of the user's files.
            disk: reads those.
            folder: the project's folder, which may have a `.env`; "" without one.
            place: the path of its `.trace`; "" in memory.
            mode: one of `modes.MODES`; "" uses the user's setting, or else `redact`.

        Raises:
            InvalidInputError: unknown mode.
        """
        if mode and mode not in modes.MODES:
            raise errors.InvalidInputError(f"unknown mode {mode!r}", value=mode)
        self._store_id = store_id
        self._environment = environment
        self._disk = disk or Disk()
        self._folder = folder
        self._place = place
        self._mode = mode
        self._settings: Settings | None = None
        self._known: tuple[str, ...] = ()
        self._probes: tuple[bytes, ...] | None = None
        self._scanner: Scanner | None = None
        self._bytes_before_load = COLD_BYTES

    @classmethod
    def of(cls, store: Store, environment: Environment, mode: str = "") -> Guard:
        """Return the guard of an open repository; arguments and errors as in the constructor."""
        folder = ""
        if store.local:
            above, name = os.path.split(store.layout.root)
            folder = above if name == DIRECTORY_NAME else ""
        disk, place = (store.disk, store.layout.root) if store.local else (None, "")
        store_id = store.config.store_id
        return cls(store_id, environment, disk=disk, folder=folder, place=place, mode=mode)

    @property
    def mode(self) -> str:
        """What happens to secrets; raises as `screened`."""
        if self._probes is None:
            self._read_settings()
        return self._mode

    @property
    def redacts(self) -> bool:
        """Whether secrets are replaced by placeholders; raises as `screened`."""
        return self.mode == modes.REDACT

    @property
    def scanner(self) -> Scanner:
        """The scanner; raises as `screened`."""
        if self._probes is None:
            self._read_settings()
        return self._scanner or self._load()

    def gathering(self) -> ObjectCollector:
        """Return a collector for the objects of a commit that checks all content; raises as `screened`."""
        return ObjectCollector() if self.mode == modes.OFF else _GuardedCollector(self)

    def meets(self, data: bytes) -> object:
        """Return a true value if data needs a closer look."""
        scanner = self._scanner
        if scanner is None:
            if self._probes is None:
                self._read_settings()
            self._bytes_before_load -= len(data) + CONTENT_BYTES
            if self._bytes_before_load > 0:
                return may_hold(data, self._probes or ())
            scanner = self._load()
        return scanner.meets(data)

    def screened(
        self, data: bytes, where: str = "", number: int = 1, hits: object = None
    ) -> tuple[bytes, list[SecretFinding]]:
        """Return data as it may be stored, the same object if unchanged, and the findings.

        Args:
            data: the bytes.
            where: what they are, for an error.
            number: the number of their first line.
            hits: the result of `meets`, or None if it was not called.

        Raises:
            SecretFoundError: there is a secret, and the mode is `block`; `place` is its position.
            InvalidInputError: the user's settings are not valid.
            StorageError: the user's files cannot be read.
        """
        mode = self.mode
        if mode == modes.OFF:
            return data, []
        hits = hits or self.meets(data)
        if not hits:
            return data, []
        found = self.scanner.find_bytes(data, hits if isinstance(hits, list) else None)
        if not found or mode == modes.WARN:
            return data, found
        if mode == modes.BLOCK:
            first = found[0]
            place = f"{where}{', ' if where else ''}{position(data, first.start, number)}"
            raise errors.SecretFoundError(
                f"secret ({first.rule}) found in {place}; nothing was stored",
                rule=first.rule,
                place=place,
                id=first.id,
                count=len(found),
            )
        return secrets.engine.replaced(data, found), found

    def _read_settings(self) -> None:
        """Read the user's settings and the known secrets."""
        disk, environment = self._disk, self._environment
        path = settings_file(environment, SETTINGS) if environment.config_dir else ""
        if path and disk.exists(path):
            self._settings = secrets.settings.read_settings(
                read_file(disk, path, limit=MAXIMUM_SETTINGS_BYTES) or b"", path
            )
            self._mode = self._mode or self._settings.mode
            self._bytes_before_load = 0  # the prefilter does not know the user's own rules
        self._mode = self._mode or modes.REDACT
        pairs = list(environment.secrets)
        for name in ENV_FILES if self._folder else ():
            path = os.path.join(self._folder, name)
            if disk.exists(path):
                pairs += env_values(_read_env(disk, os.path.realpath(path)))
        self._known = secret_values(pairs)
        self._probes = tuple(map(probe, self._known))

    def _load(self) -> Scanner:
        disk, environment, store_id = self._disk, self._environment, self._store_id
        own = () if self._settings is None else self._settings.rules
        self._scanner = secrets.engine.Scanner(
            (*own, *secrets.rules.RULES),
            self._known,
            secrets.user_files.allowed(disk, environment, store_id),
            lambda: secrets.user_files.placeholder_key(disk, environment, store_id, self._place),
        )
        return self._scanner


class _GuardedCollector(ObjectCollector):
    """Collects objects whose content was checked."""

    __slots__ = ("_guard", "_number", "found")

    def __init__(self, guard: Guard) -> None:
        super().__init__()
        self._guard = guard
        self._number = 0
        self.found: list[SecretFinding] = []

    def put(self, content: bytes) -> ObjectId:
        self._number += 1
        hits = self._guard.meets(content)
        if hits:
            content = self._redact(content, f"content {self._number}", hits)
        return super().put(content)

    def content_writer(self, salt: Salt | None) -> Put:
        if salt is None:
            return self.put
        put = super().content_writer(salt)

        def screened(content: bytes) -> ObjectId:
            self._number += 1
            return put(self._redact(content, f"content {self._number}"))

        return screened

    def text(self, text: str) -> str:
        if not text:
            return text
        data = bytes_of(text)
        kept = self._redact(data, "the commit message")
        return text if kept is data else text_of(kept)

    @property
    def secrets(self) -> Mapping[str, int]:
        return counts(self.found) if self.found else {}

    @property
    def facts(self) -> Mapping[str, Any]:
        return (
            {FACT: secrets.rules.VERSION} if self.found and self._guard.mode == modes.REDACT else {}
        )

    def _redact(self, data: bytes, where: str, hits: object = None) -> bytes:
        kept, found = self._guard.screened(data, where, hits=hits)
        self.found += found
        return kept


def counts(found: list[SecretFinding]) -> dict[str, int]:
    """Return the number of secrets of each kind, most frequent first."""
    told: dict[str, int] = {}
    for each in found:
        told[each.rule] = told.get(each.rule, 0) + 1
    return dict(sorted(told.items(), key=lambda pair: (-pair[1], pair[0])))


def position(data: bytes, at: int, number: int = 1) -> str:
    """Return a position as text, such as `line 3, column 7`; `number` is the number of the first line."""
    line = data.count(b"\n", 0, at) + number
    column = at - (data.rfind(b"\n", 0, at) + 1) + 1
    return f"line {line}, column {column}"


def _read_env(disk: Disk, path: str) -> bytes:
    try:
        return read_file(disk, path, limit=MAXIMUM_ENV_BYTES) or b""
    except errors.StorageError:
        return b""  # not readable for us

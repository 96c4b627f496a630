"""The first pass over a text: which rules may match somewhere in it, usually none.

Hyperscan searches for the patterns of all rules at once. It compiles them for about a second, so the result is a file
in the user's cache folder. Without Hyperscan or that folder, an RE2 set searches for the triggers of the rules, and
builds its automaton again in each process. Both only name rules, which the scanner then tries, so the findings are the
same.
"""

from __future__ import annotations

import os
import sysconfig
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any

from trace_store import errors
from trace_store.base.environment import OWN_ID
from trace_store.base.oid import digest, keyed_digest
from trace_store.disk.files import Disk, read_file, replace_file
from trace_store.secrets.rules import RULES
from trace_store.secrets.rules.rule import Rule

MAXIMUM_MEMORY = 64 << 20
"""Memory limit of an RE2 set, in bytes."""
MAXIMUM_FILE_BYTES = 64 << 20
DIGEST_BYTES = 32
_WRITABLE_BY_OTHERS = 0o022
TESTED = ("x86_64", "amd64")
"""The processors on which Hyperscan was compared with RE2."""

ESCAPED = (
    r"\\(?:u00[2-7][0-9a-fA-F]|x[2-7][0-9a-fA-F]|/)|%(?:2[267fF]|3[aAdD]|40|[57][bBdD])"
    r"|&(?:#x[2-7][0-9a-fA-F]|#[0-9][0-9]|quot|amp|apos|lt|gt)"
)
"""The escapes that make unescaping necessary."""
ESCAPES = len(RULES)
"""The number of `ESCAPED` in a first pass; the rules have the smaller ones."""

FirstPass = Callable[[bytes], list[int] | None]
"""Returns the numbers of the patterns that may match in a text, in any order; None or an empty list for none."""


@cache
def standard_pass(folder: str = "") -> FirstPass:
    """Return the first pass for Trace's own rules and `ESCAPED`.

    Args:
        folder: where the database of Hyperscan is kept; "" uses RE2.
    """
    found = hyperscan_pass(folder) if folder else None
    return found or _standard_triggers()


@cache
def _standard_triggers() -> FirstPass:
    return triggers_pass((*(trigger_of(rule).encode() for rule in RULES), ESCAPED.encode()))


def triggers_pass(patterns: Iterable[bytes]) -> FirstPass:
    """Return the first pass of an RE2 set.

    RE2 builds its automaton while it matches, so texts like earlier ones are searched faster.
    """
    import re2  # slow to load, and Hyperscan needs none of it

    triggers = re2.Set.SearchSet(re2_options())
    for pattern in patterns:
        triggers.Add(pattern)
    triggers.Compile()
    match: FirstPass = triggers.Match
    return match


def hyperscan_pass(folder: str) -> FirstPass | None:
    """Return the first pass of Hyperscan; None if it is not installed or tested here, or the folder cannot be used."""
    platform = sysconfig.get_platform()
    if not platform.endswith(TESTED):
        return None
    try:
        import hyperscan
    except ImportError:  # it has no wheel for this system
        return None
    patterns = [rule.pattern.encode() for rule in RULES] + [ESCAPED.encode()]
    try:
        database = _database(hyperscan, platform, patterns, folder)
        idle = [hyperscan.Scratch(database)]
    except (hyperscan.error, errors.StorageError):
        return None
    scan, new_scratch = database.scan, hyperscan.Scratch

    def meets(data: bytes) -> list[int]:
        hits: list[int] = []
        try:
            scratch = idle.pop()  # two threads never use the same
        except IndexError:
            scratch = new_scratch(database)
        # A vertical tab is a blank for Hyperscan, and any other character for RE2.
        scan(data.replace(b"\v", b"\1"), _note, 0, hits, scratch)
        idle.append(scratch)
        return hits

    return meets


def _note(number: int, _start: int, _end: int, _flags: int, hits: Any) -> None:
    hits.append(number)


def _database(hyperscan: Any, platform: str, patterns: Sequence[bytes], folder: str) -> Any:
    """Return the compiled patterns, from their file if it is valid.

    Raises:
        hyperscan.error: Hyperscan does not support this processor.
        StorageError: the file cannot be written.
    """
    kind = f"{hyperscan.__version__} {platform}".encode()
    key = digest(b"\0".join((kind, *patterns)))
    path = os.path.join(folder, f"secrets-{key.hex()[:16]}.hsdb")
    disk = Disk()
    body = _read(disk, path, key)
    if body:
        try:
            return hyperscan.loadb(body, hyperscan.HS_MODE_BLOCK)
        except hyperscan.error:
            pass  # of another processor, which shares the folder
    # Where the file cannot be written, this fails before the work.
    replace_file(disk, path, b"", durable=False, private=True)
    database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
    database.compile(patterns, list(range(len(patterns))), flags=hyperscan.HS_FLAG_SINGLEMATCH)
    body = hyperscan.dumpb(database)
    replace_file(disk, path, keyed_digest(key, body) + body, durable=False, private=True)
    return database


def _read(disk: Disk, path: str, key: bytes) -> bytes:
    """Return the content of a file that we wrote completely; otherwise b""."""
    try:
        status = disk.stat(path)
        if status is None or (OWN_ID and status.st_uid not in OWN_ID):
            return b""
        if OWN_ID and status.st_mode & _WRITABLE_BY_OTHERS:
            return b""
        data = read_file(disk, path, limit=MAXIMUM_FILE_BYTES) or b""
    except errors.StorageError:
        return b""
    body = data[DIGEST_BYTES:]
    return body if data[:DIGEST_BYTES] == keyed_digest(key, body) else b""


def trigger_of(rule: Rule) -> str:
    """Return the pattern that must match before RE2 tries a rule."""
    if rule.trigger:
        return rule.trigger
    import re2

    words = "|".join(map(re2.escape, rule.words))
    return f"(?i:{words})" if rule.loose else f"(?:{words})"


def re2_options() -> Any:
    """Return the options of every RE2 pattern: it matches bytes."""
    import re2

    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.max_mem = MAXIMUM_MEMORY
    options.log_errors = False  # a pattern may contain a secret
    return options

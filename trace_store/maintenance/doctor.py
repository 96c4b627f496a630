"""What a repository stands on: file system, rights, clock, versions, git's settings, room. Looked at, never changed.

Rule: nothing of the repository is run, and no program is: git's settings are read from its files. Each piece of advice
says what is so and what to do about it, in plain words.
"""

from __future__ import annotations

import os
import stat
import sys

from trace_store import errors
from trace_store.file_systems import kind_of
from trace_store.files import read_file
from trace_store.frozen import value
from trace_store.layout import ATTRIBUTES, IGNORED
from trace_store.maintenance.git_settings import GitSettings, find_git
from trace_store.maintenance.lost_found import files_in
from trace_store.maintenance.tmp_files import AGE_MILLISECONDS
from trace_store.objects.commit import read_commit
from trace_store.refs.names import BRANCHES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from trace_store.environment import Environment
    from trace_store.store.handle import Store

LITTLE_ROOM_BYTES = 256 * 1024 * 1024
FEW_DESCRIPTORS = 256
MUCH_UNSEALED_BYTES = 64 * 1024 * 1024
AHEAD_MILLISECONDS = 5 * 60 * 1000
"""Clocks of two machines may differ so much without a word."""


@value
class Advice:
    """One thing worth doing something about.

    Attributes:
        code: a stable name.
        what: the file, ref or setting that it is about.
        detail: what is so, in one sentence.
        advice: what to do, in one sentence.
    """

    code: str
    what: str
    detail: str
    advice: str


def examine(store: Store, environment: Environment) -> list[Advice]:
    """Return what is worth doing something about, in the order in which it was looked at; nothing when all is well.

    Args:
        store: a repository on disk.
        environment: where the user's git settings are.

    Raises:
        InvalidInputError: the repository is in memory.
    """
    found: list[Advice] = []
    for look in (_file_system, _rights, _clock, _git, _room, _leftovers):
        try:
            found += look(store)
        except (errors.TraceError, OSError) as error:
            name = look.__name__.strip("_").replace("_", "-")
            found.append(Advice("not-examined", name, str(error), "`trace fsck` may say more"))
    found += _git_settings(store, environment)
    found += _versions()
    return found


def facts(store: Store) -> dict[str, str]:
    """Return the versions and the surroundings that a report of a defect should name."""
    import msgpack

    packer = getattr(msgpack, "Packer", None)
    kind = kind_of(store.layout.root)
    return {
        "python": ".".join(map(str, sys.version_info[:3])),
        "platform": sys.platform,
        "file_system": kind.name,
        "msgpack": f"{'.'.join(map(str, msgpack.version))} ({'C' if _is_compiled(packer) else 'Python'})",
        "blake3": str(getattr(sys.modules.get("blake3"), "__version__", "unknown")),
        "zstd": "built in" if sys.version_info >= (3, 14) else "backports",
    }


def _file_system(store: Store) -> Iterator[Advice]:
    kind = kind_of(store.layout.root)
    if not kind.locks:
        advice = "let one machine write at a time, or move the repository to a disk of this one"
        yield Advice("file-system-locks", kind.name, kind.note, advice)
    if not kind.durable:
        advice = "move it to a disk, or push and bundle often"
        yield Advice("file-system-not-durable", kind.name, kind.note, advice)


def _rights(store: Store) -> Iterator[Advice]:
    if not hasattr(os, "geteuid"):
        return
    own, layout = os.geteuid(), store.layout
    others: list[str] = []
    locked: list[str] = []
    for path in [layout.root, *files_in(store, layout.root)]:
        found = store.disk.stat(path)
        if found is None:
            continue
        name = os.path.relpath(path, layout.root)
        if found.st_uid != own:
            others.append(name)
        elif not found.st_mode & stat.S_IRUSR:
            locked.append(name)
        if found.st_mode & stat.S_IWOTH and not stat.S_ISLNK(found.st_mode):
            yield Advice("writable-by-all", name, "any user may change it", f"`chmod o-w {name}`")
    if others:
        advice = f"`chown -R` the folder to whoever writes to it; {len(others)} files are others'"
        yield Advice("owned-by-others", others[0], "it belongs to another user", advice)
    if locked:
        advice = "`chmod -R u+rwX` the folder"
        yield Advice("not-readable", locked[0], f"{len(locked)} files cannot be read", advice)
    for folder in (layout.root, layout.objects_dir, layout.refs_dir):
        if store.disk.stat(folder) is not None and not os.access(folder, os.W_OK | os.X_OK):
            name = os.path.relpath(folder, os.path.dirname(layout.root))
            yield Advice("not-writable", name, "nothing can be written there", "`chmod u+wx` it")


def _clock(store: Store) -> Iterator[Advice]:
    now = store.clock.now()
    for name, tip in store.refs.iterate(BRANCHES):
        try:
            time = read_commit(tip, store.objects.read).time
        except errors.TraceError:
            continue  # that is for fsck to tell
        if time > now + AHEAD_MILLISECONDS:
            minutes = (time - now) // 60_000
            detail = f"its newest commit is {minutes} minutes in the future"
            advice = "set this machine's clock, or the one of whoever made the commit"
            yield Advice("clock", name, detail, advice)


def _git(store: Store) -> Iterator[Advice]:
    layout = store.layout
    for path, wanted in ((layout.ignore_file, IGNORED), (layout.attributes_file, ATTRIBUTES)):
        name = os.path.basename(path)
        data = read_file(store.disk, path, limit=1 << 20)
        if data is None or data.replace(b"\r\n", b"\n") != wanted.encode():
            detail = "it is missing" if data is None else "it is not what `trace init` writes"
            advice = "`trace fsck --repair` writes it anew"
            yield Advice("git-file", name, detail, advice)


def _git_settings(store: Store, environment: Environment) -> Iterator[Advice]:
    folder = os.path.dirname(store.layout.root)
    git = find_git(store.disk, folder)
    if git is None:
        return
    settings = GitSettings(store.disk, git, environment)
    name = os.path.basename(store.layout.root)
    attributes = read_file(store.disk, store.layout.attributes_file, limit=1 << 20)
    if settings.converts_line_ends() and attributes is None:
        advice = f"`trace fsck --repair` writes {name}/.gitattributes, which switches it off there"
        yield Advice("git-line-ends", "core.autocrlf", "git converts line ends", advice)
    for path, line in settings.filters(store.layout.root):
        detail = f"`{line}` lets git convert files of {name}, or keep them elsewhere"
        advice = f"take the line out, or write behind it: `{name}/**{ATTRIBUTES[1:-1]}`"
        yield Advice("git-filter", path, detail, advice)
    for path, line in settings.ignoring(store.layout.root):
        advice = "take the line out if git is to carry the repository; else nothing"
        yield Advice("git-ignored", path, f"`{line}` lets git pass over {name}", advice)


def _room(store: Store) -> Iterator[Advice]:
    room = os.statvfs(store.layout.root) if hasattr(os, "statvfs") else None
    free = LITTLE_ROOM_BYTES if room is None else room.f_bavail * room.f_frsize
    if free < LITTLE_ROOM_BYTES:
        detail = f"{free // (1 << 20)} MiB are free on its disk"
        yield Advice(
            "little-room", ".trace", detail, "make room: a pack is written beside the old one"
        )
    try:
        import resource
    except ImportError:
        return
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if 0 <= limit < FEW_DESCRIPTORS:
        detail = f"a process may have {limit} files open"
        yield Advice(
            "few-descriptors", "RLIMIT_NOFILE", detail, "`ulimit -n 1024` before long work"
        )


def _leftovers(store: Store) -> Iterator[Advice]:
    layout, now = store.layout, store.clock.now()
    old = [
        path
        for path in files_in(store, layout.tmp_dir)
        if (found := store.disk.stat(path))
        and found.st_mtime_ns // 1_000_000 < now - AGE_MILLISECONDS
    ]
    if old:
        detail = f"{len(old)} files were left by operations that were interrupted"
        yield Advice("leftovers", "tmp", detail, "the next `trace seal` removes them")
    unsealed = store.unsealed()
    if unsealed.bytes > MUCH_UNSEALED_BYTES:
        detail = f"{unsealed.bytes >> 20} MiB stand in the journal alone"
        yield Advice(
            "unsealed", "journal", detail, "`trace seal`: `git clean -fdx` would remove it"
        )
    aside = files_in(store, layout.lost_found_dir)
    if aside:
        detail = f"{len(aside)} files were set aside by a repair"
        yield Advice(
            "lost-found", "lost-found", detail, "read the report there, and keep the folder"
        )


def _versions() -> Iterator[Advice]:
    import msgpack

    if not _is_compiled(getattr(msgpack, "Packer", None)):
        detail = "it runs without its compiled part, and takes some ten times as long"
        yield Advice("msgpack-slow", "msgpack", detail, "`pip install --force-reinstall msgpack`")
    if not _is_there("re2"):
        detail = "it is not installed, and with it secrets are looked for"
        yield Advice("module-missing", "re2", detail, "install Trace again with what it needs")


def _is_compiled(kind: object) -> bool:
    return not str(getattr(kind, "__module__", "")).endswith("fallback")


def _is_there(name: str) -> bool:
    return any(finder.find_spec(name, None) is not None for finder in sys.meta_path)

"""Checks of a repository's environment.

Invariant: read-only, and runs no program; git settings are read from files. Every diagnosis says what is wrong and
what to do.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator

from trace_store import errors
from trace_store.base.environment import Environment
from trace_store.base.frozen import value
from trace_store.contracts.ref_names import BRANCHES, RECORDS
from trace_store.disk.file_systems import kind_of
from trace_store.disk.files import Disk, files_below, read_file
from trace_store.disk.git import common_dir, find_git, git_dir_of, settings_in_force
from trace_store.disk.layout import ATTRIBUTES, IGNORED
from trace_store.maintenance.lost_found import AGE_MILLISECONDS
from trace_store.objects.commit import read_commit
from trace_store.store.fact_index import SECRETS_FACT, FactIndex
from trace_store.store.store import Store

_MAXIMUM_READ_BYTES = 1 << 20
_CONVERTING = ("filter", "ident", "text", "eol", "working-tree-encoding", "export-subst")
_SYNONYMS = {"binary": "-text", "crlf": "text", "-crlf": "-text"}
"""Attributes that are synonyms of others."""
_TRACKED_SAMPLES = ("config", "objects/ab/cdef", "objects/pack/ab.pack", "refs/heads/main/ab")
"""Sample paths of each kind that git tracks, to match patterns against."""


def core_pager(environment: Environment) -> str:
    """Return the pager from the user's own git settings, or "".

    Work tree settings are ignored: a foreign repository must not start programs.
    """
    return GitSettings(Disk(), "", environment).core("pager")


class GitSettings:
    """Settings of the work tree with this `.git`; without one, the user's own."""

    __slots__ = ("_core", "_disk", "_environment", "_shared", "_top")

    def __init__(self, disk: Disk, git: str, environment: Environment) -> None:
        self._disk = disk
        self._top = os.path.dirname(git)
        self._environment = environment
        self._shared, self._core = git, dict[str, str]()
        try:
            own = git_dir_of(disk, git) if git else ""
            self._shared = common_dir(disk, own) if git else ""
            for section, key, given in settings_in_force(environment, own, disk):
                if section == "core":
                    self._core[key] = given
        except errors.StorageError:
            return  # the rest can still be checked

    def converts_line_ends(self) -> bool:
        """Return True if `core.autocrlf` converts line ends; later files take precedence."""
        return self.core("autocrlf").lower() in ("true", "input", "yes", "on", "1")

    def core(self, wanted: str) -> str:
        """Return the value of a `core.` setting, or ""."""
        return self._core.get(wanted, "")

    def filters(self, root: str) -> list[tuple[str, str]]:
        """Return (file, line) of attributes that let git convert the repository's files.

        As in git, the last matching line wins: the repository's `.gitattributes` over those of parent folders,
        `.git/info/attributes` over all.

        Args:
            root: the repository's directory.
        """
        top, own = self._top, os.path.join(root, ".gitattributes")
        inner = [
            os.path.join(root, n, ".gitattributes") for n in ("refs", "objects", "objects/pack")
        ]
        above = self._between(os.path.dirname(root), ".gitattributes")
        places = [(self._own("attributes"), top)]
        places += [(path, os.path.dirname(path)) for path in (*above, own, *inner)]
        places.append((self._info("attributes"), top))
        lines = [
            (path, folder, line, line.split())
            for path, folder in places
            for line in self._lines(path)
        ]
        converting: dict[tuple[str, str], None] = {}
        for file in (os.path.join(root, name) for name in _TRACKED_SAMPLES):
            values: dict[str, tuple[str, str, str]] = {}
            for path, folder, line, (pattern, *attributes) in lines:
                if not _matches(pattern, file, folder):
                    continue
                for each in (_SYNONYMS.get(each, each) for each in attributes):
                    name, _, value = each.lstrip("-!").partition("=")
                    values[name] = ("-" if each[0] in "-!" else value or "set", path, line)
            if values.get("text", ("", "", ""))[0] == "-":
                values.pop("eol", None)  # eol requires text
            for name in _CONVERTING:
                value, path, line = values.get(name, ("-", "", ""))
                if value != "-":
                    converting[path, line] = None
        return list(converting)

    def ignoring(self, root: str) -> list[tuple[str, str]]:
        """Return (file, line) of patterns that make git ignore a directory.

        Patterns for its content do not matter: its own `.gitignore` takes precedence.
        """
        places = [(self._own("ignore"), self._top)]
        places.append((self._info("exclude"), self._top))
        above = self._between(os.path.dirname(root), ".gitignore")
        places += [(path, os.path.dirname(path)) for path in above]
        patterns: list[tuple[str, str]] = []
        for path, folder in places:
            for line in self._lines(path):
                if _matches(line.removeprefix("!").rstrip("/"), root, folder):
                    patterns = [] if line.startswith("!") else [*patterns, (path, line)]
        return patterns

    def _own(self, name: str) -> str:
        """Return a file of the user's own settings of git."""
        return os.path.join(self._environment.config_dir, "git", name)

    def _info(self, name: str) -> str:
        """Return a file in git's `info` folder, which linked work trees share."""
        return os.path.join(self._shared, "info", name)

    def _between(self, folder: str, name: str) -> list[str]:
        """Return the files of this name from the top of the work tree down to a folder."""
        paths = [os.path.join(folder, name)]
        while folder != self._top and len(folder) > len(self._top):
            folder = os.path.dirname(folder)
            paths.append(os.path.join(folder, name))
        return paths[::-1]

    def _lines(self, path: str) -> Iterator[str]:
        try:
            data = read_file(self._disk, path, limit=_MAXIMUM_READ_BYTES) or b""
        except errors.StorageError:
            return
        for line in data.decode("utf-8", "replace").splitlines():
            text = line.strip()
            if text and text[0] not in "#;":
                yield text


def _matches(pattern: str, file: str, folder: str) -> bool:
    """Return True if a pattern in a folder may match a file."""
    from fnmatch import fnmatchcase  # slow to import, and a pager needs no patterns

    if not file.startswith(os.path.join(folder, "")):
        return False
    if "/" not in pattern:
        return fnmatchcase(os.path.basename(file), pattern)
    name = os.path.relpath(file, folder).replace(os.sep, "/")
    plain = pattern.removeprefix("/")
    return fnmatchcase(name, plain) or fnmatchcase(name, plain.removeprefix("**/"))


LITTLE_ROOM_BYTES = 256 * 1024 * 1024
FEW_DESCRIPTORS = 256
MUCH_UNSEALED_BYTES = 64 * 1024 * 1024
AHEAD_MILLISECONDS = 5 * 60 * 1000
"""Clock differences below this are not reported."""


@value
class Diagnosis:
    """A problem with the environment.

    Attributes:
        code: a stable code.
        what: the affected file, ref or setting.
        detail: what is wrong, in one sentence.
        advice: what to do, in one sentence.
    """

    code: str
    what: str
    detail: str
    advice: str


def diagnose(store: Store, environment: Environment) -> list[Diagnosis]:
    """Return the problems of a repository's environment, as `Maintenance.doctor` describes it."""
    store.check_local()
    problems: list[Diagnosis] = []
    for check in (
        _file_system,
        _permissions,
        _clock,
        _git,
        _missing,
        _free_space,
        _leftovers,
        _unlinked,
        _stored_secrets,
    ):
        try:
            problems += check(store)
        except (errors.TraceError, OSError) as error:
            name = check.__name__.strip("_").replace("_", "-")
            problems.append(
                Diagnosis("not-examined", name, str(error), "`trace fsck` may say more")
            )
    problems += _git_settings(store, environment)
    problems += _versions()
    return problems


def _file_system(store: Store) -> Iterator[Diagnosis]:
    kind = kind_of(store.layout.root)
    if not kind.locks:
        advice = "let one machine write at a time, or move the repository to a local disk"
        yield Diagnosis("file-system-locks", kind.name, kind.note, advice)
    if not kind.durable:
        advice = "move it to a disk, or push and bundle often"
        yield Diagnosis("file-system-not-durable", kind.name, kind.note, advice)


def _permissions(store: Store) -> Iterator[Diagnosis]:
    if not hasattr(os, "geteuid"):
        return
    own, layout = os.geteuid(), store.layout
    others: list[str] = []
    locked: list[str] = []
    for path in [layout.root, *sorted(files_below(store.disk, layout.root))]:
        status = store.disk.stat(path)
        if status is None:
            continue
        name = os.path.relpath(path, layout.root)
        if status.st_uid != own:
            others.append(name)
        elif not status.st_mode & stat.S_IRUSR:
            locked.append(name)
        if status.st_mode & stat.S_IWOTH and not stat.S_ISLNK(status.st_mode):
            yield Diagnosis(
                "writable-by-all", name, "any user may change it", f"`chmod o-w {name}`"
            )
    if others:
        advice = f"`chown -R` the folder to the user who writes to it; {len(others)} files belong to others"
        yield Diagnosis("owned-by-others", others[0], "it belongs to another user", advice)
    if locked:
        advice = "`chmod -R u+rwX` the folder"
        yield Diagnosis("not-readable", locked[0], f"{len(locked)} files cannot be read", advice)
    for folder in (layout.root, layout.objects_dir, layout.refs_dir):
        if store.disk.stat(folder) is not None and not os.access(folder, os.W_OK | os.X_OK):
            name = os.path.relpath(folder, os.path.dirname(layout.root))
            yield Diagnosis("not-writable", name, "the folder is not writable", "`chmod u+wx` it")


def _clock(store: Store) -> Iterator[Diagnosis]:
    now = store.clock.now()
    for name, tip in store.refs.iterate(BRANCHES):
        try:
            time = read_commit(tip, store.objects.read).time
        except errors.TraceError:
            continue  # fsck reports it
        if time > now + AHEAD_MILLISECONDS:
            minutes = (time - now) // 60_000
            detail = f"its newest commit is {minutes} minutes in the future"
            advice = "set the clock of this machine, or of the one that made the commit"
            yield Diagnosis("clock", name, detail, advice)


def _git(store: Store) -> Iterator[Diagnosis]:
    layout = store.layout
    for path, wanted in ((layout.ignore_file, IGNORED), (layout.attributes_file, ATTRIBUTES)):
        name = os.path.basename(path)
        data = read_file(store.disk, path, limit=1 << 20)
        if data is None or data.replace(b"\r\n", b"\n") != wanted.encode():
            detail = "it is missing" if data is None else "it differs from what `trace init` writes"
            advice = "`trace fsck --repair` restores it"
            yield Diagnosis("git-file", name, detail, advice)


def _missing(store: Store) -> Iterator[Diagnosis]:
    absent = [name for name, tip in store.refs.iterate() if not store.objects.contains(tip)]
    if absent:
        detail = f"the newest commits of {len(absent)} refs are missing"
    elif store.disk.exists(store.layout.missing_file):
        detail = "objects that refs need are missing here and in git's objects"
    else:
        return
    advice = (
        "`trace fsck` names them; `git fetch --unshallow`, or `trace fsck --repair --from CLONE`"
    )
    yield Diagnosis("objects-missing", absent[0] if absent else "objects", detail, advice)


def _git_settings(store: Store, environment: Environment) -> Iterator[Diagnosis]:
    git = find_git(store.disk, store.layout.root)
    if git is None:
        return
    settings = GitSettings(store.disk, git, environment)
    name = os.path.basename(store.layout.root)
    attributes = read_file(store.disk, store.layout.attributes_file, limit=1 << 20)
    if settings.converts_line_ends() and attributes is None:
        advice = f"`trace fsck --repair` writes {name}/.gitattributes, which turns it off there"
        yield Diagnosis("git-line-ends", "core.autocrlf", "git converts line ends", advice)
    for path, line in settings.filters(store.layout.root):
        detail = f"`{line}` lets git convert files of {name} or store them elsewhere"
        advice = f"remove the line, or add after it: `{name}/**{ATTRIBUTES[1:-1]}`"
        yield Diagnosis("git-filter", path, detail, advice)
    for path, line in settings.ignoring(store.layout.root):
        advice = "remove the line if git should track the repository"
        yield Diagnosis("git-ignored", path, f"`{line}` makes git ignore {name}", advice)


def _free_space(store: Store) -> Iterator[Diagnosis]:
    room = os.statvfs(store.layout.root) if hasattr(os, "statvfs") else None
    free = LITTLE_ROOM_BYTES if room is None else room.f_bavail * room.f_frsize
    if free < LITTLE_ROOM_BYTES:
        detail = f"{free // (1 << 20)} MiB are free on the disk"
        yield Diagnosis(
            "little-room",
            ".trace",
            detail,
            "free some space: a new pack is written before the old one is removed",
        )
    try:
        import resource
    except ImportError:
        return
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if 0 <= limit < FEW_DESCRIPTORS:
        detail = f"a process may open only {limit} files"
        yield Diagnosis("few-descriptors", "RLIMIT_NOFILE", detail, "run `ulimit -n 1024` first")


def _leftovers(store: Store) -> Iterator[Diagnosis]:
    layout, now = store.layout, store.clock.now()
    old = [
        path
        for path in files_below(store.disk, layout.tmp_dir)
        if (status := store.disk.stat(path))
        and status.st_mtime_ns // 1_000_000 < now - AGE_MILLISECONDS
    ]
    if old:
        detail = f"{len(old)} temporary files of interrupted operations"
        yield Diagnosis("leftovers", "tmp", detail, "the next `trace seal` removes them")
    unsealed = store.unsealed()
    if unsealed.bytes > MUCH_UNSEALED_BYTES:
        detail = f"{unsealed.bytes >> 20} MiB are only in the journal"
        yield Diagnosis(
            "unsealed", "journal", detail, "run `trace seal`: `git clean -fdx` would delete them"
        )
    set_aside = list(files_below(store.disk, layout.lost_found_dir))
    if set_aside:
        detail = f"{len(set_aside)} files were set aside by a repair"
        yield Diagnosis(
            "lost-found", "lost-found", detail, "read the report there, and keep the folder"
        )


def _unlinked(store: Store) -> Iterator[Diagnosis]:
    data = read_file(store.disk, store.layout.unlinked_file, limit=_MAXIMUM_READ_BYTES)
    if data:
        import json  # only here

        try:
            rows = json.loads(data)
            commit = str(rows[-1][0])[:12]
        except (ValueError, LookupError, TypeError):
            return  # the next commit writes it again
        detail = (
            f"{len(rows)} commits of the code belong to no trajectory, since several were active"
        )
        advice = "`trace trajectory link COMMIT --trajectory ID` links one; set TRACE_AGENT or TRACE_TRAJECTORY"
        yield Diagnosis("unlinked-commits", commit, detail, advice)


def _stored_secrets(store: Store) -> Iterator[Diagnosis]:
    """Report the records whose values were stored with what looked like a secret, since values are never changed."""
    if not any(True for _ in store.refs.iterate(RECORDS)):
        return
    index = FactIndex(store)
    try:
        index.catch_up(RECORDS)
        found = [oid for _, oid in index.newest(SECRETS_FACT, "") if store.objects.contains(oid)]
    finally:
        index.close()
    if found:
        detail = "values of records have what looks like secrets; they are stored as they came"
        advice = "`trace secrets scan` shows where, and `trace purge` removes them"
        yield Diagnosis("secrets-stored", found[-1].short(), detail, advice)


def _versions() -> Iterator[Diagnosis]:
    import msgpack

    if not is_compiled(getattr(msgpack, "Packer", None)):
        detail = "its compiled extension is missing, which makes it about ten times slower"
        yield Diagnosis(
            "msgpack-slow", "msgpack", detail, "`pip install --force-reinstall msgpack`"
        )
    if not _is_installed("re2"):
        detail = "it is not installed, and the secret scan needs it"
        yield Diagnosis("module-missing", "re2", detail, "reinstall Trace with its dependencies")


def is_compiled(kind: object) -> bool:
    """Return True if a class of msgpack is not the slow one in Python."""
    return not str(getattr(kind, "__module__", "")).endswith("fallback")


def _is_installed(name: str) -> bool:
    return any(finder.find_spec(name, None) is not None for finder in sys.meta_path)

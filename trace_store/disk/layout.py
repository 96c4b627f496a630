"""Paths under `.trace/`, and the format version.

Rule: every file name below `.trace/` is defined here and nowhere else.
"""

from __future__ import annotations

import os

from trace_store.base.oid import digest

DIRECTORY_NAME = ".trace"
TEMPORARY_PREFIX = ".trace.tmp-"
FORMAT_VERSION = 2
KNOWN_REQUIREMENTS: frozenset[str] = frozenset()
"""Features in a repository's `requires` that this version supports."""

MAXIMUM_OBJECT_BYTES = 17 * 1024 * 1024
"""Room for the largest structured object or blob, with its header."""

IGNORED = (
    "/HEAD\n/journal/\n/logs/\n/index/\n/cache/\n/tmp/\n/locks/\n/local/\n"
    "!/.gitignore\n!/.gitattributes\n!/config\n"
    "!/objects/\n!/objects/**\n!/refs/\n!/refs/**\n"
    "!/tombstones/\n!/tombstones/**\n!/lost-found/\n!/lost-found/**\n/objects/pack/*.idx\n"
)
"""Takes precedence over patterns of folders above, unless one of these excludes the `.trace` directory itself."""
ATTRIBUTES = "* -text -diff -ident -filter -working-tree-encoding -eol -export-subst !merge\n"
"""Takes precedence over attributes of folders above, but not over `.git/info/attributes`."""

CONFIG_NAME = "config"
DIRECTORIES = frozenset(
    (
        *("objects", "refs", "journal", "logs", "index", "cache", "tmp", "locks", "local"),
        *("lost-found", "quarantine", "tombstones"),
    )
)
"""Names directly below `.trace` that must be directories if they exist."""

PACK_SUFFIX = ".pack"
INDEX_SUFFIX = ".idx"
LOG_SUFFIX = ".log"
_STOPPED = "stopped-"
_LONGEST_INDEX_NAME = 200
"""File systems allow 255 bytes; columns have suffixes."""


class Layout:
    """The paths of one repository; `root` is the `.trace` directory."""

    def __init__(self, root: str) -> None:
        self.root = root
        # Joined once here, because every command opens a store and `os.path.join` is slow.
        here, sep = os.path.join(root, ""), os.sep
        self.config_file = here + CONFIG_NAME
        self.head_file = here + "HEAD"
        self.ignore_file = here + ".gitignore"
        self.attributes_file = here + ".gitattributes"
        self.objects_dir = here + "objects"
        self.pack_dir = self.objects_dir + sep + "pack"
        self.info_dir = self.objects_dir + sep + "info"
        self.refs_dir = here + "refs"
        self.branches_dir = self.refs_dir + sep + "heads"
        self.journal_dir = here + "journal"
        self.logs_dir = here + "logs"
        self.index_dir = here + "index"
        self.commit_table_file = self.index_dir + sep + "commits.table"
        self.commit_lines_file = self.index_dir + sep + "commits.lines"
        self.commit_text_file = self.index_dir + sep + "commits.text"
        self.cache_dir = here + "cache"
        self.folds_dir = self.cache_dir + sep + "folds"
        self.refs_file = self.cache_dir + sep + "refs"
        self.session_list_file = self.cache_dir + sep + "sessions"
        self.missing_file = self.cache_dir + sep + "missing"
        self.captured_file = self.cache_dir + sep + "captured"
        self.proposed_file = self.cache_dir + sep + "proposed.json"
        self.tmp_dir = here + "tmp"
        self.locks_dir = here + "locks"
        self.local_dir = here + "local"
        self.tombstones_dir = here + "tombstones"
        self.lost_found_dir = here + "lost-found"
        self.published_file = self.local_dir + sep + "published"
        self.kept_packs_dir = self.local_dir + sep + "packs"
        self.waiting_dir = self.local_dir + sep + "waiting"
        self.seen_file = self.local_dir + sep + "commits"
        self.unlinked_file = self.local_dir + sep + "unlinked"
        self.spool_file = self.local_dir + sep + "spool"
        self.capture_file = self.local_dir + sep + "capture"
        self.kept_config_file = self.kept_packs_dir + sep + "config"
        self.quarantine_dir = here + "quarantine"
        self.adopted_file = self.local_dir + sep + "adopted"
        self.told_file = self.local_dir + sep + "told"
        self.bisect_file = self.local_dir + sep + "bisect"

    def __repr__(self) -> str:
        return f"Layout({self.root!r})"

    def journal_file(self, number: int) -> str:
        """Return the path of journal `number`."""
        return os.path.join(self.journal_dir, str(number))

    def loose_file(self, hexadecimal: str) -> str:
        """Return the path of a loose object."""
        return os.path.join(self.objects_dir, hexadecimal[:2], hexadecimal[2:])

    def pack_base(self, name: str) -> str:
        """Return the path of a pack and its index without their suffixes."""
        return os.path.join(self.pack_dir, name)

    def pack_file(self, name: str) -> str:
        """Return the path of a pack, given its 64-character name."""
        return self.pack_base(name) + PACK_SUFFIX

    def pack_index_file(self, name: str) -> str:
        """Return the path of a pack's index."""
        return self.pack_base(name) + INDEX_SUFFIX

    def kept_pack_file(self, name: str) -> str:
        """Return the path of the extra copy that a pack has until git has it."""
        return os.path.join(self.kept_packs_dir, name + PACK_SUFFIX)

    def ref_dir(self, name: str) -> str:
        """Return the directory that holds a ref's tips, given its checked full name."""
        return os.path.join(self.root, name.replace("/", os.sep))

    def log_file(self, name: str) -> str:
        """Return the reflog of a ref, given its checked full name, or of HEAD."""
        return os.path.join(self.logs_dir, name.replace("/", os.sep)) + LOG_SUFFIX

    def index_file(self, ref: str, column: str) -> str:
        """Return the path of a column of a branch's compile index."""
        return os.path.join(self.index_dir, f"{_file_name(ref)}.{column}")

    @property
    def reachable_file(self) -> str:
        """The file that records what the last gc or prune found reachable."""
        return os.path.join(self.local_dir, "reachable")

    @property
    def followers_dir(self) -> str:
        """The folder where each follower of the journals locks a file, so that a seal keeps them for a while."""
        return os.path.join(self.local_dir, "followers")

    @property
    def original_file(self) -> str:
        """ORIG_HEAD: the value of HEAD before the last command that moved it."""
        return os.path.join(self.local_dir, "ORIG_HEAD")

    def stopped_file(self, ref: str) -> str:
        """Return the path of the state of a stopped merge, pick, revert or rebase on a branch or a detached HEAD."""
        return os.path.join(self.local_dir, f"{_STOPPED}{_file_name(ref)}")

    @property
    def upstreams_file(self) -> str:
        """The file that records each branch's upstream."""
        return os.path.join(self.local_dir, "upstreams")

    def tip_table_file(self, name: str) -> str:
        """Return the path of a table of published tips."""
        return f"{self.published_file}-{name}"

    def name_of_tip_table(self, file_name: str) -> str | None:
        """Return the name of the published-tips table in this file of `local/`, or None."""
        before, _, name = file_name.partition("published-")
        return None if before else name or None

    def token_memo_file(self, encoding: str) -> str:
        """Return the path of the token count cache of an encoding."""
        return os.path.join(self.cache_dir, "tokens", encoding)

    def search_files(self, of: str = "") -> list[str]:
        """Return the paths of the full-text index, or that of "trajectories", and SQLite's files beside it."""
        base = os.path.join(self.cache_dir, f"search-{of}.sqlite3" if of else "search.sqlite3")
        return [base + ending for ending in ("", "-journal", "-wal", "-shm")]

    def lock_file(self, operation: str) -> str:
        """Return the lock file of a long operation."""
        return os.path.join(self.locks_dir, operation)


def is_stopped_file(file_name: str) -> bool:
    """Return True if this is the name, in `local/`, of a file about a stopped merge, rebase, pick or revert."""
    return file_name.startswith(_STOPPED)


def ref_of_stopped_file(file_name: str) -> str | None:
    """Return the ref whose stopped operation has this file name; None if the name has only its hash."""
    return ref_of_file_name(file_name.removeprefix(_STOPPED))


def ref_of_index(file_name: str) -> str | None:
    """Return the ref whose messages column has this file name, or None."""
    name, _, column = file_name.rpartition(".")
    return ref_of_file_name(name) if column == "messages" and name else None


def ref_of_file_name(name: str) -> str | None:
    """Return the ref that a file is named after; None if the name is a hash."""
    if name.startswith("%") and name[1:3] != "25":
        return None
    return name.replace("%2F", "/").replace("%25", "%")


def _file_name(ref: str) -> str:
    """Return a file name for a ref; a hash if the name would be too long."""
    name = ref.replace("%", "%25").replace("/", "%2F")
    return "%" + digest(ref.encode()).hex() if len(name) > _LONGEST_INDEX_NAME else name

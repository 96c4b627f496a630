"""Discovery of the `.trace` directory, and the decision whether it may be opened.

Rule: a directory given by the caller takes precedence over `TRACE_DIR`, which takes precedence over a search in the
folder and its parents. A directory of another user, or one found above the home folder, is opened only if it is
trusted. A link is followed only if it is named explicitly. No content is read before these checks.
"""

from __future__ import annotations

import os
import stat

from trace_store import disk as disks
from trace_store import errors, store
from trace_store.disk.files import Disk
from trace_store.disk.layout import CONFIG_NAME, DIRECTORY_NAME, Layout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.base.environment import Environment

_BESIDE = (("objects", "pack"), (".gitignore",), (".gitattributes",))


def find(
    start: str,
    environment: Environment,
    *,
    explicit: str | None = None,
    disk: Disk | None = None,
    trusting: bool = False,
    damaged: bool = False,
) -> str:
    """Return the path of the `.trace` directory to use.

    Args:
        start: the folder to start the search in.
        environment: has `TRACE_DIR`, whether to search parents, and the user's ids.
        explicit: a `.trace` directory, or a folder that holds one, named by the caller.
        disk: the disk.
        trusting: skip the trust check, for callers that only need the path.
        damaged: accept a repository without its configuration, for repairs.

    Raises:
        FormatError: its configuration is missing.
        RepositoryNotFoundError: there is none.
        NotFoundError: the start folder does not exist.
        UntrustedRepositoryError: it belongs to another user, or was found above the home folder, and is not trusted.
        StateError: the search found a link.
    """
    disk = disk or Disk()
    named = explicit or environment.trace_dir
    if named:
        for look in (_config, _remains):
            for path in (named, os.path.join(named, DIRECTORY_NAME)):
                witness = look(disk, path)
                if witness is not None:
                    path = os.path.abspath(path)
                    # Check the owner of the link's target.
                    folder = disk.stat(os.path.join(path, os.curdir))
                    if not trusting and _is_foreign(environment, folder, witness):
                        store.trust.check_trusted(
                            disk, environment, path, "belongs to another user"
                        )
                    return _whole(path, damaged or look is _config)
        raise errors.RepositoryNotFoundError(f"there is no repository at {named}", path=named)
    folder_path = os.path.abspath(start)
    if disk.stat(folder_path) is None:
        raise errors.NotFoundError(f"there is no folder {start}", path=start)
    while True:
        usable = _usable(disk, folder_path, environment, trusting=trusting, damaged=damaged)
        if usable is not None:
            return usable
        parent = os.path.dirname(folder_path)
        if parent == folder_path or not environment.discovery:
            break
        folder_path = parent
    # A work tree that git linked has no `.trace` of its own if git ignores it.
    main = disks.git.main_work_tree(disk, os.path.abspath(start))
    if main is not None and environment.discovery:
        usable = _usable(disk, main, environment, trusting=trusting, damaged=damaged)
        if usable is not None:
            return usable
    if environment.discovery:
        store.creation.refuse_what_git_has(
            disk, os.path.abspath(start), errors.RepositoryNotFoundError
        )
    where = "" if not environment.discovery else " or in any folder above"
    raise errors.RepositoryNotFoundError(f"there is no repository in {start}{where}", path=start)


def _usable(
    disk: Disk, folder: str, environment: Environment, *, trusting: bool, damaged: bool
) -> str | None:
    """Return the `.trace` directory of a folder, None if it has none; raises as `find`."""
    path = os.path.join(folder, DIRECTORY_NAME)
    found = disk.stat(path)
    config = None if found is None else _config(disk, path)
    witness = config if found is None or config is not None else _remains(disk, path)
    if found is None or witness is None:
        return None
    if not stat.S_ISDIR(found.st_mode):
        raise errors.StateError(f"{path} is a link; name the directory it leads to", path=path)
    if not trusting:
        if _is_foreign(environment, found, witness):
            store.trust.check_trusted(disk, environment, path, "belongs to another user")
        elif _is_above(folder, environment.home):
            store.trust.check_trusted(disk, environment, path, "is above your home folder")
    return _whole(path, damaged or config is not None)


def _config(disk: Disk, path: str) -> os.stat_result | None:
    found = disk.stat(os.path.join(path, CONFIG_NAME))
    # If git removed it before it was committed, use the second copy.
    return found or disk.stat(Layout(path).kept_config_file)


def _remains(disk: Disk, path: str) -> os.stat_result | None:
    """Return the other files that git keeps of a repository; None unless all exist."""
    there = [disk.stat(os.path.join(path, *name)) for name in _BESIDE]
    return None if None in there else there[0]


def _whole(path: str, fits: bool) -> str:
    if not fits:
        raise errors.FormatError(
            f"the configuration is missing: {os.path.join(path, CONFIG_NAME)}",
            path=path,
            code=errors.ErrorCode.CORRUPT_CONFIG,
        )
    return path


def _is_foreign(environment: Environment, *found: os.stat_result | None) -> bool:
    """Return True if a directory or its configuration belongs to another user."""
    own = environment.user_ids
    return own is not None and any(each is None or each.st_uid not in own for each in found)


def _is_above(folder: str, home: str) -> bool:
    """Return True if a folder contains the home folder, with links resolved."""
    within = os.path.join(folder, "")
    if not home or folder.startswith(os.path.join(home, "")):
        return False  # the usual case
    real = os.path.realpath(home)
    return folder not in (home, real) and (home.startswith(within) or real.startswith(within))

"""Repair of the configuration, without which a repository does not open.

Invariant: a sound copy takes precedence over readable lines. An unreadable store id is replaced; only derived data
and the user's keys depend on it.
"""

from __future__ import annotations

from trace_store import errors
from trace_store.config import Config, recovered_config
from trace_store.contracts import DURABLE
from trace_store.files import Disk, read_file, replace_file
from trace_store.frozen import value
from trace_store.ident import Randomness, SystemClock
from trace_store.layout import CONFIG_NAME, Layout
from trace_store.maintenance.lost_found import keep_file
from trace_store.maintenance.repair_report import RepairStep
from trace_store.store.handle import STORE_ID_BYTES, Store


@value
class OpenedStore:
    """An opened repository, with the repairs that needed.

    Attributes:
        store: the repository.
        mended: repairs done or, in a dry run, planned.
        kept: files in `lost-found/`, relative to `.trace`.
    """

    store: Store
    mended: tuple[RepairStep, ...] = ()
    kept: tuple[str, ...] = ()


def open_damaged(
    path: str, *, source: Store | None = None, dry_run: bool = False, disk: Disk | None = None
) -> OpenedStore:
    """Open a `.trace` directory, repairing its configuration if necessary.

    Args:
        path: the directory.
        source: another copy, whose configuration is used.
        dry_run: write nothing; the returned store has the repaired configuration.
        disk: the file access to use.

    Raises:
        UnsupportedFormatError: a newer version wrote it.
        StorageError: the disk refuses, or the configuration is not a file.
    """
    disk = disk or Disk()
    layout = Layout(path)
    try:
        return OpenedStore(Store.open(path, disk=disk))
    except errors.UnsupportedFormatError:
        raise
    except (errors.FormatError, errors.RepositoryNotFoundError):
        data = read_file(disk, layout.config_file)
    if source is not None:
        text = read_file(disk, source.layout.config_file) or b""
        detail = "taken from the other copy"
    else:
        made, read = recovered_config(data or b"", Randomness().take(STORE_ID_BYTES).hex())
        text, detail = made.encode(), _describe(read)
    mended = (RepairStep("file", CONFIG_NAME, detail),)
    config = Config(disk, layout.config_file, text.decode())
    store = Store(config, SystemClock(), DURABLE, disk, layout)
    if dry_run:
        return OpenedStore(store, mended)
    kept = keep_file(store, layout.config_file, remove=False)
    replace_file(disk, layout.config_file, text, scratch=layout.tmp_dir)
    return OpenedStore(store, mended, (kept,) if kept else ())


def _describe(read: list[str]) -> str:
    text = "rewritten"
    if read:
        text += f"; kept: {', '.join(read)}"
    if "store_id" not in read:
        text += "; it has a new store id, so placeholders of secrets change"
    return text

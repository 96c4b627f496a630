"""Repair of the configuration, without which a repository does not open.

Invariant: a sound copy takes precedence over readable lines. An unreadable store id is replaced; only derived data
and the user's keys depend on it.
"""

from __future__ import annotations

from trace_store import errors
from trace_store.config import Config, recovered_config
from trace_store.contracts import DURABLE
from trace_store.files import Disk, read_file, replace_file
from trace_store.ident import Randomness, SystemClock
from trace_store.layout import CONFIG_NAME, Layout
from trace_store.maintenance.lost_found import keep_file
from trace_store.maintenance.repair_report import RepairStep
from trace_store.store.handle import STORE_ID_BYTES, Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.ident import Clock


def open_damaged(
    path: str,
    *,
    durability: str = DURABLE,
    clock: Clock | None = None,
    disk: Disk | None = None,
) -> Store:
    """Open a `.trace` directory, with what is readable of its configuration; nothing is written.

    Raises:
        UnsupportedFormatError: a newer version wrote it.
        StorageError: the disk refuses, or the configuration is not a file.
    """
    disk = disk or Disk()
    layout = Layout(path)
    try:
        return Store.open(path, durability=durability, clock=clock, disk=disk)
    except errors.UnsupportedFormatError:
        raise
    except (errors.FormatError, errors.RepositoryNotFoundError):
        data = read_file(disk, layout.config_file)
    text, _ = recovered_config(data or b"", Randomness().take(STORE_ID_BYTES).hex())
    config = Config(disk, layout.config_file, text)
    return Store(config, clock or SystemClock(), durability, disk, layout)


def repair_config(
    store: Store, *, source: Store | None = None, dry_run: bool = False
) -> tuple[tuple[RepairStep, ...], tuple[str, ...]]:
    """Rewrite the configuration of an open repository if its file is corrupt or missing.

    Args:
        store: the repository; it uses the repaired configuration from now on.
        source: another copy, whose configuration is used.
        dry_run: write nothing.

    Returns:
        The repairs, and the files set aside in `lost-found/`.

    Raises:
        StorageError: the disk refuses.
    """
    disk, path = store.disk, store.layout.config_file
    try:
        Config.load(disk, path)
        return (), ()
    except errors.UnsupportedFormatError:
        raise
    except (errors.FormatError, errors.RepositoryNotFoundError):
        data = read_file(disk, path) or b""
    if source is not None:
        made = (read_file(disk, source.layout.config_file) or b"").decode()
        detail = "taken from the other copy"
    else:
        made, read = recovered_config(data, store.config.store_id)
        detail = _describe(read)
    store.config = Config(disk, path, made)
    kept = None
    if not dry_run:
        kept = keep_file(store, path, remove=False)
        replace_file(disk, path, made.encode(), scratch=store.layout.tmp_dir)
    return (RepairStep("file", CONFIG_NAME, detail),), (kept,) if kept else ()


def _describe(read: list[str]) -> str:
    text = "rewritten"
    if read:
        text += f"; kept: {', '.join(read)}"
    if "store_id" not in read:
        text += "; it has a new store id, so placeholders of secrets change"
    return text

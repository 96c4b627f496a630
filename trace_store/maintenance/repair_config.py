"""Repair of the configuration, without which a repository is not opened.

Rule: what a sound copy says counts, then each line that can be read. A repository whose id cannot be read gets another
one; nothing in it depends on that but what is derived, and the user's own keys for it.
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
from trace_store.maintenance.repair_report import Mended
from trace_store.store.handle import STORE_ID_BYTES, Store


@value
class Opened:
    """A repository that is open, whatever its configuration was.

    Attributes:
        store: the repository.
        mended: what was done for that, or would be.
        kept: the files in `lost-found/`, relative to `.trace`.
    """

    store: Store
    mended: tuple[Mended, ...] = ()
    kept: tuple[str, ...] = ()


def open_damaged(
    path: str, *, source: Store | None = None, dry_run: bool = False, disk: Disk | None = None
) -> Opened:
    """Open the repository whose `.trace` directory this is, and write its configuration anew where that takes it.

    Args:
        path: the directory.
        source: another copy of it, whose configuration is taken.
        dry_run: write nothing; what is open then has the configuration that would be written.
        disk: the access to files.

    Raises:
        UnsupportedFormatError: a newer version wrote it.
        StorageError: the disk refuses, or the configuration is no file.
    """
    disk = disk or Disk()
    layout = Layout(path)
    try:
        return Opened(Store.open(path, disk=disk))
    except errors.UnsupportedFormatError:
        raise
    except (errors.FormatError, errors.RepositoryNotFoundError):
        data = read_file(disk, layout.config_file)
    if source is not None:
        text = read_file(disk, source.layout.config_file) or b""
        detail = "it was taken from the other copy"
    else:
        made, read = recovered_config(data or b"", Randomness().take(STORE_ID_BYTES).hex())
        text, detail = made.encode(), _told(read)
    mended = (Mended("file", CONFIG_NAME, detail),)
    config = Config(disk, layout.config_file, text.decode())
    store = Store(config, SystemClock(), DURABLE, disk, layout)
    if dry_run:
        return Opened(store, mended)
    kept = keep_file(store, layout.config_file, remove=False)
    replace_file(disk, layout.config_file, text, scratch=layout.tmp_dir)
    return Opened(store, mended, (kept,) if kept else ())


def _told(read: list[str]) -> str:
    told = "it was written anew"
    if read:
        told += f", with what could be read of it: {', '.join(read)}"
    if "store_id" not in read:
        told += "; its id is another one, so placeholders of secrets get other ids from now on"
    return told

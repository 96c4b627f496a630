"""Settings that all tests share."""

import atexit
import gc
import os
import shutil
import sys
import tempfile
from collections.abc import Generator
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from tests.support.examples import FULL, examples
from trace_store.disk import system_calls

if TYPE_CHECKING:
    from _typeshed import HasFileno

# How long one example takes says nothing on a machine with other work; the whole test has a time limit.
# The daily form tries the same examples each time, so that a change is not blamed for an old, rare case.
# The long form searches at random.
settings.register_profile(
    "trace",
    deadline=None,
    print_blob=True,
    max_examples=examples(100),
    derandomize=not FULL,
)
settings.load_profile("trace")

# What Trace keeps for the user goes to a folder of this run's own, never to the home of who runs the tests.
_OWN = tempfile.mkdtemp(prefix="trace-user-")
atexit.register(shutil.rmtree, _OWN, ignore_errors=True)
os.environ["XDG_CONFIG_HOME"] = os.path.join(_OWN, "config")
os.environ["XDG_DATA_HOME"] = os.path.join(_OWN, "data")
os.environ["XDG_CACHE_HOME"] = os.path.join(_OWN, "cache")

# Without compiled modules, each of the many processes that tests start would compile all that it loads.
# Where the environment forbids Python to write them beside the source, they go to the same folder.
if sys.dont_write_bytecode:
    sys.dont_write_bytecode = False
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.pycache_prefix = os.environ.setdefault(
        "PYTHONPYCACHEPREFIX", os.path.join(_OWN, "bytecode")
    )

# A process that is killed loses nothing that it wrote, so only tests of the disk itself wait for stable storage.
_DURABLE = {
    "benchmarks",
    "reliability",
    "test_contracts.py",
    "test_files.py",
    "test_group_commit.py",
    "test_handle.py",
    "test_journal.py",
}
_SYNC, _SYNC_DIRECTORY = system_calls.sync, system_calls.sync_directory


def _sync_at_once(fd: "int | HasFileno") -> None:
    """Fail as a sync would where the file is not open."""
    os.fstat(fd if isinstance(fd, int) else fd.fileno())


def _sync_directory_at_once(path: str) -> None:
    """Fail as a sync would where the directory cannot be opened."""
    os.close(os.open(path, os.O_RDONLY))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Wait for stable storage in the tests of `_DURABLE` alone."""
    waits = not _DURABLE.isdisjoint(item.path.parts[-2:])
    system_calls.sync = _SYNC if waits else _sync_at_once
    system_calls.sync_directory = _SYNC_DIRECTORY if waits else _sync_directory_at_once


_WORKER = os.environ.get("PYTEST_XDIST_WORKER", "")


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Let every second worker load tests from the other end, so that two do not compile the same modules."""
    report = yield
    if isinstance(collector, pytest.Dir) and _WORKER and int(_WORKER.removeprefix("gw")) % 2:
        report.result.reverse()
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give all workers the same order."""
    if _WORKER:
        items.sort(key=lambda item: item.path.parts)


def pytest_collection_finish() -> None:
    """Keep what all tests share out of each collection: modules, and the tests themselves."""
    gc.collect()
    gc.freeze()

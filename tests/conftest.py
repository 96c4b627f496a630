"""Settings that all tests share."""

import atexit
import gc
import os
import shutil
import tempfile

from hypothesis import settings

from tests.support.examples import FULL, examples

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


def pytest_collection_finish() -> None:
    """Keep what all tests share out of each collection: modules, and the tests themselves."""
    gc.collect()
    gc.freeze()

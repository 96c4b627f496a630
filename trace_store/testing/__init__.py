"""For those who write tests: suites for the contracts, disks that count or fail, and one whose power is cut."""

from trace_store.testing.disks import FailingDisk, RecordingDisk
from trace_store.testing.enumerating import Kernel
from trace_store.testing.images import Image
from trace_store.testing.power_cuts import PowerCutDisk
from trace_store.testing.suites import ObjectStoreSuite, RefStoreSuite

__all__ = [
    "FailingDisk",
    "Image",
    "Kernel",
    "ObjectStoreSuite",
    "PowerCutDisk",
    "RecordingDisk",
    "RefStoreSuite",
]

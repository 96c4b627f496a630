"""For those who write tests: suites for the contracts, and disks that count or fail."""

from trace_store.testing.disks import FailingDisk, RecordingDisk
from trace_store.testing.suites import ObjectStoreSuite, RefStoreSuite

__all__ = ["FailingDisk", "ObjectStoreSuite", "RecordingDisk", "RefStoreSuite"]

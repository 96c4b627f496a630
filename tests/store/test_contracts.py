"""All object and ref stores pass the suites that the library ships."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from trace_store.base.oid import ObjectId
from trace_store.maintenance.repack import pack
from trace_store.maintenance.seal import seal
from trace_store.store.store import Store
from trace_store.testing.suites import ObjectStoreSuite, RefStoreSuite


class TestMemoryObjects(ObjectStoreSuite):
    def make_objects(self) -> Any:
        return Store.memory().objects


class TestDiskObjects(ObjectStoreSuite):
    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        self.folder = tmp_path

    def make_objects(self) -> Any:
        return Store.init(str(self.folder), durability="fast").objects


class TestPackedObjects(ObjectStoreSuite):
    """Puts every object into a pack at once."""

    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        self.folder = tmp_path

    def make_objects(self) -> Any:
        store = Store.init(str(self.folder), durability="fast")

        class Packed:
            def __getattr__(self, name: str) -> Any:
                if name != "write":
                    pack(store)
                return getattr(store.objects, name)

            def write(self, data: bytes) -> ObjectId:
                return store.objects.write(data)

        return Packed()


class TestMemoryRefs(RefStoreSuite):
    def make_store(self) -> Any:
        return Store.memory()


class TestDiskRefs(RefStoreSuite):
    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        self.folder = tmp_path

    def make_store(self) -> Any:
        return Store.init(str(self.folder), durability="fast")


class TestSealedRefs(RefStoreSuite):
    """Seals every transaction at once, so that refs are read from files."""

    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        self.folder = tmp_path

    def make_store(self) -> Any:
        class Sealing(Store):
            def transact(self, *arguments: Any, **options: Any) -> Any:
                done = super().transact(*arguments, **options)
                seal(self)
                return done

        Store.init(str(self.folder)).close()
        return Sealing.open(str(self.folder / ".trace"), durability="fast")

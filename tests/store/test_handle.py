"""Making, opening, finding and configuring a repository."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path
from time import sleep

import pytest

from tests.store.support.histories import MAIN, append, main_line, new_store, reopen
from trace_store.base.environment import Environment
from trace_store.base.oid import hash_object
from trace_store.disk.files import READ, SETTLED_MS, Disk
from trace_store.disk.layout import ATTRIBUTES, IGNORED
from trace_store.errors import (
    AlreadyExistsError,
    ClosedError,
    FormatError,
    InvalidInputError,
    RepositoryNotFoundError,
    StateError,
    StorageError,
    UnsupportedFormatError,
)
from trace_store.maintenance.seal import seal
from trace_store.store.discovery import find
from trace_store.store.store import Store
from trace_store.testing.disks import FailingDisk, RecordingDisk

NO_ENVIRONMENT = Environment()


class ReadOnlyDisk(Disk):
    """Read-only files, like those of another user."""

    def open(self, path: str, mode: str = READ) -> int | None:
        if mode != READ:
            reason = os.strerror(errno.EACCES)
            raise StorageError(f"{reason}: {path}", path=path, errno=errno.EACCES)
        return super().open(path, mode)


def test_what_may_only_be_read_says_so_when_it_is_written(tmp_path: Path) -> None:
    with new_store(tmp_path) as store:
        append(store, "one")
        journal = store.layout.journal_file(1)
    with Store.open(str(tmp_path / ".trace"), disk=ReadOnlyDisk()) as store:
        assert main_line(store) == ["one"]
        for _ in range(2):
            with pytest.raises(StorageError, match="Permission denied") as caught:
                append(store, "two")
            assert caught.value.path == journal
        assert main_line(store) == ["one"]


class TestInit:
    def test_what_a_new_repository_holds(self, tmp_path: Path) -> None:
        store = Store.init(str(tmp_path / "deep" / "project"))
        root = tmp_path / "deep" / "project" / ".trace"
        assert sorted(os.listdir(root)) == [
            ".gitattributes",
            ".gitignore",
            "config",
            "objects",
            "refs",
        ]
        assert (root / ".gitignore").read_text() == IGNORED
        assert (root / ".gitattributes").read_text() == ATTRIBUTES
        assert len(store.config.store_id) == 32
        assert Store.init(str(tmp_path)).config.store_id != store.config.store_id

    def test_a_directory_of_another_name(self, tmp_path: Path) -> None:
        root = tmp_path / "deep" / "store"
        with Store.init(str(tmp_path), directory=str(root)) as store:
            assert store.layout.root == str(root)
            append(store, "one")
        assert find(str(tmp_path), NO_ENVIRONMENT, explicit=str(root)) == str(root)
        assert os.listdir(tmp_path) == ["deep"]
        assert os.listdir(tmp_path / "deep") == ["store"]
        with pytest.raises(AlreadyExistsError):
            Store.init(str(tmp_path), directory=str(root))

    def test_twice_is_an_error_and_changes_nothing(self, tmp_path: Path) -> None:
        store = new_store(tmp_path)
        append(store, "one")
        with pytest.raises(AlreadyExistsError):
            new_store(tmp_path)
        assert main_line(reopen(tmp_path)) == ["one"]
        assert os.listdir(tmp_path) == [".trace"]

    def test_an_interrupted_init_leaves_a_whole_repository_or_none(self, tmp_path: Path) -> None:
        for at in range(1, 40):
            folder = tmp_path / str(at)
            folder.mkdir()
            disk = FailingDisk(at, partly=True)
            try:
                Store.init(str(folder), disk=disk)
            except StorageError:
                if (folder / ".trace").exists():
                    append(reopen(folder), "works")
                else:
                    append(new_store(folder), "works")
            if disk.count < at:
                return
        raise AssertionError("the init never came to its end")

    def test_of_many_at_once_one_wins(self, tmp_path: Path) -> None:
        results: list[object] = []

        def make() -> None:
            try:
                results.append(Store.init(str(tmp_path)).config.store_id)
            except AlreadyExistsError as error:
                results.append(error)

        threads = [threading.Thread(target=make) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        made = [result for result in results if isinstance(result, str)]
        assert made == [reopen(tmp_path).config.store_id]
        assert os.listdir(tmp_path) == [".trace"]


class TestOpen:
    def test_what_is_no_repository(self, tmp_path: Path) -> None:
        (tmp_path / ".trace").mkdir()
        for path in (tmp_path / "absent", tmp_path / ".trace"):
            with pytest.raises(RepositoryNotFoundError):
                Store.open(str(path))

    @pytest.mark.parametrize(
        ("text", "error", "named"),
        [
            ("format = 3\n", UnsupportedFormatError, "format 3"),
            ("format = 1\nrequires = []\n", UnsupportedFormatError, "format 1"),
            (
                'format = 2\nrequires = ["purged", "warp-drive"]\n',
                UnsupportedFormatError,
                "warp-drive",
            ),
            (
                'format = 7\nrequires = ["x"]\n[future]\ndeep = {a = 1}\n',
                UnsupportedFormatError,
                "format 7",
            ),
            ("", FormatError, ""),
            ('format = "1"\n', FormatError, ""),
            ("format = 2\nrequires = 5\n", FormatError, ""),
            ("not toml", FormatError, ""),
            ("<<<<<<< ours\nformat = 2\n", FormatError, ""),
        ],
    )
    def test_another_format_is_not_corrupt(
        self, tmp_path: Path, text: str, error: type[FormatError], named: str
    ) -> None:
        """An unknown `requires` entry is refused by name."""
        new_store(tmp_path).close()
        (tmp_path / ".trace" / "config").write_text(text)
        with pytest.raises(error) as caught:
            reopen(tmp_path)
        assert isinstance(caught.value, UnsupportedFormatError) == bool(named)
        if named:
            assert named in caught.value.required  # type: ignore[operator]

    def test_linked_directories_are_refused(self, tmp_path: Path) -> None:
        outside = tmp_path / "outside"
        outside.mkdir()
        folder = tmp_path / "project"
        folder.mkdir()
        new_store(folder).close()
        for name in ("journal", "tmp", "local", "logs", "locks"):
            (folder / ".trace" / name).symlink_to(outside)
            with pytest.raises(StorageError):
                reopen(folder)
            (folder / ".trace" / name).unlink()
        assert os.listdir(outside) == []

    def test_a_linked_journal_is_refused(self, tmp_path: Path) -> None:
        store = new_store(tmp_path)
        append(store, "one")
        path = tmp_path / ".trace" / "journal" / "1"
        path.rename(tmp_path / "elsewhere")
        path.symlink_to(tmp_path / "elsewhere")
        with pytest.raises(StorageError):
            append(reopen(tmp_path), "two")

    def test_empty_directories_may_be_missing(self, tmp_path: Path) -> None:
        new_store(tmp_path).close()
        for name in ("objects/pack", "objects", "refs"):
            (tmp_path / ".trace" / name).rmdir()
        store = reopen(tmp_path)
        append(store, "one")
        seal(store)
        assert main_line(reopen(tmp_path)) == ["one"]

    def test_a_closed_handle_refuses(self, tmp_path: Path) -> None:
        store = new_store(tmp_path)
        append(store, "one")
        store.close()
        store.close()
        with pytest.raises(ClosedError):
            append(store, "two")
        with pytest.raises(InvalidInputError):
            Store.open(str(tmp_path / ".trace"), durability="eventually")


class TestFind:
    def test_the_folder_and_those_above(self, tmp_path: Path) -> None:
        root = new_store(tmp_path).layout.root
        deep = tmp_path / "a" / "b"
        deep.mkdir(parents=True)
        assert find(str(deep), NO_ENVIRONMENT) == root
        (deep / ".trace").mkdir()  # no repository: looked past
        assert find(str(deep), NO_ENVIRONMENT) == root

    def test_the_order_of_precedence(self, tmp_path: Path) -> None:
        roots = {}
        for name in ("here", "variable", "explicit"):
            (tmp_path / name).mkdir()
            roots[name] = new_store(tmp_path / name).layout.root
        here = str(tmp_path / "here")
        variable = Environment(trace_dir=roots["variable"])
        assert find(here, NO_ENVIRONMENT) == roots["here"]
        assert find(here, variable) == roots["variable"]
        assert find(here, variable, explicit=roots["explicit"]) == roots["explicit"]
        assert find(here, variable, explicit=str(tmp_path / "explicit")) == roots["explicit"]
        with pytest.raises(RepositoryNotFoundError):
            find(here, Environment(trace_dir=str(tmp_path / "absent")))

    def test_looking_above_can_be_switched_off(self, tmp_path: Path) -> None:
        root = new_store(tmp_path).layout.root
        below = tmp_path / "below"
        below.mkdir()
        off = Environment.read({"TRACE_DISCOVERY": "off"})
        assert find(str(tmp_path), off) == root
        with pytest.raises(RepositoryNotFoundError):
            find(str(below), off)

    def test_links_are_not_followed_by_accident(self, tmp_path: Path) -> None:
        real = tmp_path / "real"
        real.mkdir()
        root = new_store(real).layout.root
        linked = tmp_path / "linked"
        linked.mkdir()
        (linked / ".trace").symlink_to(root)
        with pytest.raises(StateError):
            find(str(linked), NO_ENVIRONMENT)


class TestEnvironment:
    def test_it_is_read_from_variables(self) -> None:
        made = Environment.read(
            {
                "TRACE_AUTHOR": " Ada <ada@example.org> ",
                "HOME": "/h",
                "TRACE_DIR": "/t",
                "NO_COLOR": "1",
            }
        )
        assert (made.author, made.home, made.trace_dir, made.color) == (
            "Ada <ada@example.org>",
            "/h",
            "/t",
            False,
        )
        assert made.claude_dir == os.path.join("/h", ".claude")
        other = Environment.read({"USER": "ada", "CLAUDE_CONFIG_DIR": "/c", "TRACE_DIR": ""})
        assert (other.author, other.claude_dir, other.trace_dir, other.discovery) == (
            "ada",
            "/c",
            None,
            True,
        )


class TestConfig:
    def test_settings_are_kept(self, tmp_path: Path) -> None:
        config = new_store(tmp_path).config
        assert (config.default_branch, config.tokenizer, config.budget) == (
            "main",
            "o200k_base",
            None,
        )
        for given_value, tokens in (
            ("200k", 200_000),
            (5, 5),
            ("1_000", 1000),
            ("1.5m", 1_500_000),
        ):
            config.set("budget", given_value)
            assert reopen(tmp_path).config.budget == tokens
        config.set("tokenizer", "cl100k_base")
        config.set("budget", None)
        again = reopen(tmp_path).config
        assert (again.tokenizer, again.budget, again.get("tokenizer")) == (
            "cl100k_base",
            None,
            "cl100k_base",
        )

    @pytest.mark.parametrize(
        ("key", "value"),
        [
            ("budget", "many"),
            ("budget", 0),
            ("budget", -5),
            ("budget", True),
            ("budget", "1.5"),
            ("tokenizer", ""),
            ("tokenizer", "a\nb"),
            ("default_branch", "../x"),
            ("default_branch", "a b"),
            ("store_id", "x"),
            ("format", 2),
            ("requires", []),
            ("editor", "rm -rf"),
            ("", "x"),
        ],
    )
    def test_bad_settings_are_refused(self, tmp_path: Path, key: str, value: object) -> None:
        config = new_store(tmp_path).config
        before = (tmp_path / ".trace" / "config").read_bytes()
        with pytest.raises(InvalidInputError):
            config.set(key, value)
        assert (tmp_path / ".trace" / "config").read_bytes() == before

    def test_what_is_unknown_is_kept(self, tmp_path: Path) -> None:
        new_store(tmp_path).close()
        path = tmp_path / ".trace" / "config"
        path.write_text(
            "# mine\n"
            + path.read_text()
            + 'colour = "blue"\n\n[tool.x]\nn = 1.5\nlist = ["a", "b"]\n'
        )
        config = reopen(tmp_path).config
        config.set("budget", 1000)
        config.set("tokenizer", 'quo"te\\d')
        text = path.read_text()
        assert text.startswith("# mine\n")
        assert '[tool.x]\nn = 1.5\nlist = ["a", "b"]\n' in text
        again = reopen(tmp_path).config
        assert (again.get("colour"), again.get("tool.x.list"), again.budget) == (
            "blue",
            ["a", "b"],
            1000,
        )
        assert again.tokenizer == 'quo"te\\d'

    def test_line_ends_do_not_matter(self, tmp_path: Path) -> None:
        new_store(tmp_path).close()
        path = tmp_path / ".trace" / "config"
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
        reopen(tmp_path).config.set("budget", 7)
        assert reopen(tmp_path).config.budget == 7


class TestCost:
    def append_cost(self, folder: Path, history: int, *, is_sealed: bool) -> dict[str, int]:
        folder.mkdir()
        store = new_store(folder)
        for number in range(history):
            append(store, str(number))
        if is_sealed:
            seal(store)
        store.close()
        sleep(2 * SETTLED_MS / 1000)  # recent changes are checked again
        disk = RecordingDisk()
        with reopen(folder, disk=disk) as handle:
            append(handle, "warm up: AAAAAAAAAA", durability="durable")
            append(handle, "room for the next ones", durability="durable")
            disk.reset()
            append(handle, "measured: BBBBBBBBB", durability="durable")
            return disk.counts()

    @pytest.mark.parametrize("is_sealed", [False, True])
    def test_an_append_touches_the_same_at_any_size(self, tmp_path: Path, is_sealed: bool) -> None:
        small = self.append_cost(tmp_path / "small", 20, is_sealed=is_sealed)
        large = self.append_cost(tmp_path / "large", 3000, is_sealed=is_sealed)
        assert abs(small.pop("written_bytes") - large.pop("written_bytes")) < 16  # longer numbers
        assert small == large
        assert large["synced"] == 1
        assert large["opened"] <= 1
        assert large["read_bytes"] <= 12  # the head of the next frame, were there one

    def test_a_writer_reads_only_what_others_added(self, tmp_path: Path) -> None:
        new_store(tmp_path).close()
        disk = RecordingDisk()
        one, two = reopen(tmp_path, disk=disk), reopen(tmp_path)
        for number in range(200):
            append(one, str(number))
        append(two, "from the other")
        disk.reset()
        append(one, "next")
        assert 0 < disk.read_bytes < 1000


def test_unsealed_tells_what_a_seal_would_write(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    assert (store.unsealed().transactions, store.unsealed().since) == (0, None)
    append(store, "one")
    append(store, "two")
    unsealed = store.unsealed()
    assert (unsealed.transactions, unsealed.objects, unsealed.refs) == (2, 4, (MAIN,))
    assert unsealed.bytes > 100
    assert unsealed.since is not None
    seal(store)
    assert store.unsealed().transactions == 0
    assert Store.memory().unsealed().objects == 0


def test_large_objects_are_not_written_twice(tmp_path: Path) -> None:
    from trace_store.contracts import Transaction
    from trace_store.objects.codec import encode_blob

    store = new_store(tmp_path)
    data = encode_blob(os.urandom(100_000))
    pair = (hash_object(data), data)
    for _ in range(3):
        store.transact(lambda refs: Transaction([pair, pair]))
        seal(store)
    journals = (tmp_path / ".trace" / "journal").iterdir()
    assert sum(path.stat().st_size for path in journals) < 101_000

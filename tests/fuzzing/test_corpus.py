"""All inputs of the stored corpus, run without a fuzzer: fixed bugs stay fixed."""

from __future__ import annotations

import pytest

from tests.fuzzing.support.running import CORPUS
from tests.fuzzing.support.targets import FORMATS, TARGETS
from trace_store.importers.registry import BUILT_IN

MAXIMUM_FILES = 40
MAXIMUM_BYTES = 200_000


@pytest.mark.parametrize("name", TARGETS)
def test_nothing_is_found_again(name: str) -> None:
    paths = sorted((CORPUS / name).iterdir())
    assert 0 < len(paths) <= MAXIMUM_FILES
    assert sum(path.stat().st_size for path in paths) <= MAXIMUM_BYTES
    check = TARGETS[name].check()
    check(b"")
    for path in paths:
        try:
            check(path.read_bytes())
        except Exception as error:
            raise AssertionError(f"{path.name}: {error!r}") from error


def test_each_format_has_a_target() -> None:
    chats = {
        "anthropic",
        "gemini-contents",
        "langchain",
        "openai",
        "openai-responses",
        "trace-json",
    }
    assert {format.NAME for format in BUILT_IN} == {*FORMATS} - {"chats"} | chats


def test_each_folder_has_a_target() -> None:
    assert {path.name for path in CORPUS.iterdir()} == set(TARGETS)

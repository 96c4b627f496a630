"""Names between Chinese, Japanese and Korean characters, and runs of these, are found."""

from __future__ import annotations

import random

import pytest

from tests.cli.conftest import ok, repository, trace
from tests.support.command_line import Run, Trace
from trace_store import Repo
from trace_store.search.query import search

__all__ = ["ok", "repository", "trace"]
RUNS = [
    *("重跑", "后", "条悬空引用清零", "修复已验证", "关数", "通过", "配置文件在", "里面", "調整"),
    *("を直して", "の関数", "ファイル", "カーソル", "テストは", "ｶﾅ", "々", "ゼロから"),
    *("함수를", "파일에서", "검색했다", "오류가", "확인", "𠮷野家"),
]
NAMES = [
    "itgc",
    "gen-itgc",
    "verify",
    "app.py",
    "src/app.py",
    "foo_bar",
    "--no-cache",
    "HTTPServer",
    "v2",
    "50",
    "naïve",
]


def glued(seed: int) -> tuple[str, list[str], list[str]]:
    """Return a text without spaces, the names in it and the runs in it."""
    chosen = random.Random(seed)
    runs = chosen.sample(RUNS, 4)
    names = chosen.sample(NAMES, 3)
    pieces = [
        runs[0],
        names[0],
        runs[1],
        names[1],
        runs[2],
        chosen.choice(["，", "。", "", "、"]),
        runs[3],
        names[2],
    ]
    return "".join(pieces), names, runs


def hits(repo: Repo, query: str) -> list[str]:
    return [
        hit.snippet.text[hit.snippet.start : hit.snippet.end] for hit in search(repo.store, query)
    ]


@pytest.mark.parametrize("seed", range(100))
def test_every_name_and_every_run_is_found(seed: int) -> None:
    text, names, runs = glued(seed)
    repo = Repo.memory()
    repo.append("user", text)
    repo.append("user", "something else: 日本 and words")
    for name in names:
        # A minus before a word excludes it; quotes say what is meant.
        (found,) = hits(repo, f'"{name}"')
        assert found.strip("-") == name.strip("-"), name
    for run in runs:
        for part in {run, run[:2], run[-2:], run[len(run) // 2 :]}:
            assert hits(repo, part) == [part], part
        assert hits(repo, f"{run[:1]}*") == [run[:1]] or run[:1] in text.replace(run, "", 1)


def test_part_of_a_latin_word_is_not_found() -> None:
    repo = Repo.memory()
    repo.append("user", "重跑xitgc后")
    assert hits(repo, "itgc") == []
    assert hits(repo, "xitg") == []
    assert hits(repo, "xitg*") == ["xitg"]
    assert hits(repo, "跑重") == []
    assert hits(repo, "重跑 -后") == []


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ('"v2通过"', ["v2通过"]),
        ('"v2 通过"', ["v2通过"]),
        ('"重跑v2"', ["重跑v2"]),
        ('"one two"', ["one, two"]),
        ('"onetwo"', []),
        ('"通过 one"', ["通过：one"]),
        ('"重 跑"', ["重跑"]),
        ("tw*", ["tw"]),
        ("通*", ["通"]),
    ],
)
def test_a_phrase_across_scripts_is_marked_as_it_stands(query: str, found: list[str]) -> None:
    repo = Repo.memory()
    repo.append("user", "重跑v2通过：one, two")
    assert hits(repo, query) == found


@pytest.mark.parametrize(
    ("query", "text", "at"),
    [
        ('"重v"', "重v2 重v", 4),
        ('"v重"', "xv重 v重", 4),
        ('"v重"', "v重跑", 0),
        ("one", "ones one", 5),
    ],
)
def test_no_longer_word_is_marked(query: str, text: str, at: int) -> None:
    repo = Repo.memory()
    repo.append("user", text)
    (hit,) = search(repo.store, query)
    assert hit.snippet.start == at


def test_the_advice_for_what_was_not_found(ok: Run, trace: Trace) -> None:
    ok("commit", "-q", "--user", "重跑gen-itgc后")
    assert "`verif*` matches prefixes" in trace("search", "verif").err
    assert "prefixes" not in trace("search", "不存在").err

"""What reads history: the log, revisions, refs and objects."""

from __future__ import annotations

import json
import os
import shutil

import pytest

from tests.growth.conftest import Growth, branches, commits, lines, looked, messages
from tests.growth.support.stores import Place, branch
from trace_cli.porcelain.completion import MAXIMUM_ADDRESSES, addresses
from trace_cli.porcelain.completion import branches as branch_names
from trace_store import Repo

ids: list[str] = []
is_id = "^[0-9a-f]{64}\n$"


def note_tip(place: Place) -> None:
    """Write down the id that a branch ends in, which is another in each repository."""
    ids.append(str(place.repo.resolve("HEAD")))
    place.close()


def test_log_limited(growth: Growth) -> None:
    growth.check(
        lambda place: place.trace("log", "-n", "10"), before=looked, right=lines(lambda _: 10)
    )


def test_log(growth: Growth) -> None:
    growth.check(lambda place: place.trace("log"), before=looked, right=lines(commits))


def test_diff(growth: Growth) -> None:
    growth.check(
        lambda place: place.trace("diff", "--stat", "HEAD~1", "HEAD"),
        before=looked,
        right=r"1 message differs \(1 added\)",
    )


def test_diff_with_an_edit(growth: Growth) -> None:
    def edited(place: Place) -> None:
        place.trace("edit", "HEAD~3.0", "other words", "-q")
        place.repo.compile()
        looked(place)

    growth.check(
        lambda place: place.trace("diff", "--stat", "HEAD~1", "HEAD"),
        before=edited,
        right=r"1 message differs \(1 edited\)",
    )


def test_blame(growth: Growth) -> None:
    growth.check(lambda place: place.trace("blame"), before=looked, right=lines(messages, 1))


def test_whohas(growth: Growth) -> None:
    growth.check(
        lambda place: place.trace("whohas", "--text", "e"),
        before=looked,
        right=r"\n {4}refs/heads/main +shown",
    )


def test_view(growth: Growth) -> None:
    growth.check(
        lambda place: place.trace("view"),
        right=lambda place, said: (
            f"messages: {messages(place):,} (" in said and said.endswith("turn 11\n")
        ),
    )


def test_sessions(growth: Growth) -> None:
    growth.check(
        lambda place: place.trace("sessions"),
        before=lambda place: place.trace("sessions"),
        right=lines(branches, 1),
    )


def test_sessions_of_which_one_grew(growth: Growth) -> None:
    def listed_twice(place: Place) -> None:
        for number in (1, 2):
            place.trace("sessions")
            place.trace("commit", "-q", "--user", f"one more, {number}")

    growth.check(
        lambda place: place.trace("sessions"), before=listed_twice, right=lines(branches, 1)
    )


def test_sessions_of_which_one_was_merged(growth: Growth) -> None:
    def merged(place: Place) -> None:
        place.trace("branch", "side")
        place.trace("commit", "-q", "--user", "theirs", "--branch", "side")
        place.trace("commit", "-q", "--user", "ours")
        place.trace("sessions")
        place.trace("merge", "-q", "side")

    growth.check(
        lambda place: place.trace("sessions"),
        before=merged,
        right=lines(branches, 1),
    )


def test_agents(growth: Growth) -> None:
    growth.check(lambda place: place.trace("agents"), right=lines(lambda _: 0))


def test_runs(growth: Growth) -> None:
    growth.check(lambda place: place.trace("runs"), right=lines(lambda _: 0))


def test_search(growth: Growth) -> None:
    growth.check(
        lambda place: place.trace("search", "turn"), before=looked, right=lines(lambda _: 12)
    )


def test_bisect(growth: Growth) -> None:
    growth.check(
        lambda place: place.trace("bisect", "start", "HEAD", "HEAD~4"),
        before=looked,
        right="^4 commits left, about 2 steps",
    )


def test_show(growth: Growth) -> None:
    growth.check(
        lambda place: place.trace("show", "HEAD~2"), before=looked, right=r"(?s)^commit .*turn 9"
    )


@pytest.mark.parametrize(
    "revision", ["HEAD", "HEAD~4", "main", branch(0), f"refs/heads/{branch(1)}"]
)
def test_rev_parse(growth: Growth, revision: str) -> None:
    growth.check(lambda place: place.trace("rev-parse", revision), right=is_id)


@pytest.mark.parametrize("revision", ["@{1}", "main@{2}", "main@{now}"])
def test_rev_parse_moves(growth: Growth, revision: str) -> None:
    growth.check(lambda place: place.trace("rev-parse", revision), right=is_id)


def test_rev_parse_session(growth: Growth) -> None:
    growth.check(lambda place: place.trace("rev-parse", branch(1).rpartition("/")[2]), right=is_id)


def test_rev_parse_id(growth: Growth) -> None:
    growth.check(
        lambda place: place.trace("rev-parse", ids[-1]),
        before=note_tip,
        right=lambda _, said: said == f"{ids[-1]}\n",
    )


def test_rev_parse_prefix(growth: Growth) -> None:
    growth.check(
        lambda place: place.trace("rev-parse", ids[-1][:12]),
        before=note_tip,
        right=lambda _, said: said == f"{ids[-1]}\n",
    )


def test_rev_parse_first_commit(growth: Growth) -> None:
    lengths: list[int] = []

    def count(place: Place) -> None:
        lengths.append(len(list(place.repo.log())))
        place.close()

    growth.check(
        lambda place: place.trace("rev-parse", f"HEAD~{lengths[-1] - 1}"),
        before=count,
        right=lambda place, said: said == f"{[each.oid for each in place.repo.log()][-1]}\n",
    )


def test_for_each_ref(growth: Growth) -> None:
    growth.check(lambda place: place.trace("for-each-ref"), right=lines(branches))


def test_for_each_ref_under_a_prefix(growth: Growth) -> None:
    growth.check(
        lambda place: place.trace("for-each-ref", f"refs/heads/{branch(2)}"),
        right=rf" commit\trefs/heads/{branch(2)}\n$",
    )


def test_update_ref(growth: Growth) -> None:
    growth.check(
        lambda place: place.trace("update-ref", "refs/heads/new", "HEAD"),
        right=lambda place, _: place.repo.resolve("new") == place.repo.resolve("HEAD"),
    )


def test_symbolic_ref(growth: Growth) -> None:
    growth.check(
        lambda place: place.trace("symbolic-ref", "HEAD", f"refs/heads/{branch(2)}"),
        right=lambda place, _: place.repo.resolve("HEAD") == place.repo.resolve(branch(2)),
    )


def test_reflog(growth: Growth) -> None:
    growth.check(
        lambda place: place.repo.store.refs.reflog("refs/heads/main"),
        right=lambda _, entries: len(entries) > 12,
    )


def test_diverged_refs(growth: Growth) -> None:
    growth.check(
        lambda place: place.repo.store.refs.diverged(),
        before=looked,
        right=lambda _, found: not found,
    )


def test_moved_refs(growth: Growth) -> None:
    growth.check(
        lambda place: place.repo.store.refs.moved_by_git(),
        before=looked,
        right=lambda _, found: not found,
    )


def test_cat_file(growth: Growth) -> None:
    growth.check(lambda place: place.trace("cat-file", "-p", "HEAD~6"), right=r'"author": "ada"')


def test_rev_list(growth: Growth) -> None:
    growth.check(lambda place: place.trace("rev-list", "HEAD"), right=lines(commits))


def test_rev_list_limited(growth: Growth) -> None:
    growth.check(
        lambda place: place.trace("rev-list", "-n", "10", "HEAD"), right=lines(lambda _: 10)
    )


def test_merge_base(growth: Growth) -> None:
    growth.check(
        lambda place: place.trace("merge-base", "HEAD", "HEAD~6"),
        right=lambda place, said: said == f"{place.repo.resolve('HEAD~6')}\n",
    )


def test_completion(growth: Growth) -> None:
    before = os.getcwd()

    def complete(place: Place) -> None:
        os.chdir(place.folder)
        assert branch_names("mai") == ["main"]

    try:
        growth.check(complete)
    finally:
        os.chdir(before)


def test_completion_of_addresses(growth: Growth) -> None:
    before = os.getcwd()

    def complete(place: Place) -> None:
        os.chdir(place.folder)
        assert len(addresses("")) == MAXIMUM_ADDRESSES

    try:
        growth.check(complete)
    finally:
        os.chdir(before)


def test_ls_context(growth: Growth) -> None:
    growth.check(lambda place: place.trace("ls-context"), right=lines(messages))


def test_cat_context(growth: Growth) -> None:
    growth.check(lambda place: place.trace("cat-context"), right="turn 11")


def test_ls_parts(growth: Growth) -> None:
    growth.check(lambda place: place.trace("ls-parts"), right=lines(messages))


def test_compile_command(growth: Growth) -> None:
    growth.check(
        lambda place: place.trace("compile", "--format", "openai"),
        before=looked,
        right=lambda place, said: len(json.loads(said)["messages"]) == messages(place),
    )


def test_compile_without_index(growth: Growth) -> None:
    def drop(place: Place) -> None:
        shutil.rmtree(place.folder / ".trace" / "index")

    growth.check(
        lambda place: place.repo.compile().messages[-1].text, before=drop, right="^turn 11$"
    )


def test_compile_in_full(growth: Growth) -> None:
    growth.check(
        lambda place: [m.text for m in place.repo.compile().messages],
        right=lambda place, said: len(said) == messages(place) and said[-1] == "turn 11",
    )


def test_hash_object(growth: Growth) -> None:
    growth.check(
        lambda place: place.trace("hash-object", "-w", "--stdin", stdin=b"words"), right=is_id
    )


def test_write_commit(growth: Growth) -> None:
    made = b'{"ops": []}'
    growth.check(lambda place: place.trace("write-commit", stdin=made), right=is_id)


def test_usage_by(growth: Growth) -> None:
    growth.check(lambda place: place.trace("usage", "--by", "tool"), before=looked)


def test_usage(growth: Growth) -> None:
    growth.check(
        lambda place: place.trace("usage", "-n", "5"), before=looked, right=lines(lambda _: 6)
    )


def test_tools(growth: Growth) -> None:
    growth.check(lambda place: place.trace("tools"), before=looked, right="^$")


def test_config(growth: Growth) -> None:
    growth.check(lambda place: place.trace("config"), before=looked, right="(?m)^tokenizer = ")


def test_secrets(growth: Growth) -> None:
    growth.check(lambda place: place.trace("secrets", "rules"), before=looked)
    growth.check(lambda place: place.trace("secrets", "test", "-", stdin=b"no"), before=looked)
    growth.check(lambda place: place.trace("secrets", "allow", "--list"), before=looked)


def test_without_a_repository(growth: Growth) -> None:
    def run(place: Place) -> None:
        place.trace("--version")
        place.trace("version")
        place.trace("completion", "bash")
        place.trace("help", "merge")
        place.trace("init", "-q", "another")
        place.trace("trust", "--list")
        place.trace("demo")
        Repo.memory().append("user", "words")

    growth.check(run)

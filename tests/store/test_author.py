"""The author of new commits: environment, own setting, git, account, in this order."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.git import git
from trace_store import Repo, errors
from trace_store.base.environment import Environment
from trace_store.disk.git import settings_in
from trace_store.store import author_of, set_user_name, user_name


@pytest.fixture
def variables(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "home").mkdir()
    return {
        "HOME": str(tmp_path / "home"),
        "USER": "account",
        "GIT_CONFIG_NOSYSTEM": "1",
        "XDG_CONFIG_HOME": str(tmp_path / "home" / ".config"),
    }


def test_the_first_that_is_set_counts(tmp_path: Path, variables: dict[str, str]) -> None:
    folder, environment = tmp_path / "project", Environment.read(variables)
    git(tmp_path, "init", "-q", "project")
    root = str(folder / ".trace")

    def author(**more: str) -> str:
        with Repo.open_or_init(folder, environment=Environment.read(variables | more)) as repo:
            oid = repo.append("user", "hello").oid
            assert repo.get(oid).author == author_of(Environment.read(variables | more), root)
            return str(repo.get(oid).author)

    assert author() == "account"
    (tmp_path / "home" / ".gitconfig").write_text("[user]\n\tname = Global\n")
    assert author() == "Global"
    git(folder, "config", "user.name", "Ada Project")
    assert author() == "Ada Project"
    set_user_name(environment, "Own")
    assert author() == "Own"
    assert author(TRACE_AUTHOR="Variable") == "Variable"
    set_user_name(environment, None)
    assert user_name(environment) == ""
    assert author() == "Ada Project"
    assert author_of(Environment.read(variables)) == "Global"  # without a repository


def test_git_is_asked_if_its_settings_include_others(
    tmp_path: Path, variables: dict[str, str]
) -> None:
    home, folder = tmp_path / "home", tmp_path / "project"
    git(tmp_path, "init", "-q", "project")
    (home / "work").write_text("[user]\n\tname = At Work\n")
    said = f'[user]\n\tname = Ada\n[includeIf "gitdir:{folder}/"]\n\tpath = {home}/work\n'
    (home / ".gitconfig").write_text(said)
    environment = Environment.read(variables)
    environ = dict(os.environ)
    os.environ.update(variables)  # git reads the process's own
    try:
        assert author_of(environment, str(folder / ".trace")) == "At Work"
    finally:
        os.environ.clear()
        os.environ.update(environ)


def test_a_linked_worktree_has_the_name_of_its_repository(
    tmp_path: Path, variables: dict[str, str]
) -> None:
    main = tmp_path / "main"
    git(tmp_path, "init", "-q", "main")
    git(main, "commit", "-q", "--allow-empty", "-m", "first")
    git(main, "config", "user.name", "Shared")
    git(main, "worktree", "add", "-q", "../linked")
    environment = Environment.read(variables)
    assert author_of(environment, str(tmp_path / "linked" / ".trace")) == "Shared"


@pytest.mark.parametrize("name", ["", "   ", "x" * 2_000, '"tab\\there"'])
def test_a_name_that_no_commit_can_have_is_passed_over(
    name: str, tmp_path: Path, variables: dict[str, str]
) -> None:
    (tmp_path / "home" / ".gitconfig").write_text(f"[user]\n\tname = {name}\n")
    assert author_of(Environment.read(variables), str(tmp_path / ".trace")) == "account"


def test_what_cannot_be_read_is_passed_over(tmp_path: Path, variables: dict[str, str]) -> None:
    (tmp_path / "home" / ".gitconfig").mkdir()
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "config").write_bytes(b"\xff\xfe[user\0")
    settings = tmp_path / "home" / ".config" / "trace" / "user.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text("name = [")
    assert author_of(Environment.read(variables), str(tmp_path / ".trace")) == "account"


def test_the_own_name_is_checked(tmp_path: Path, variables: dict[str, str]) -> None:
    environment = Environment.read(variables)
    for wrong in ("", "a\nb", "x" * 2_000):
        with pytest.raises(errors.InvalidInputError):
            set_user_name(environment, wrong)
    set_user_name(environment, 'Ada "the first" \\ Lovelace')
    assert user_name(environment) == 'Ada "the first" \\ Lovelace'


@pytest.mark.parametrize(
    "text",
    [
        "[user]\nname=Ada L",
        "[user]\n\tname = Ada L # a comment",
        '[USER]\n  Name = "Ada L"  ; a comment',
        '[user] name = Ada" "L',
        "[user]\r\n\tname = Ada L\r\n",
        "[user]\nname = Ada \\\nL",
        "[core]\nname = no\n[user]\nemail = x\nname = first\nname = Ada L\n[alias]\nname = no",
    ],
)
def test_settings_of_git_are_read_as_git_reads_them(text: str, tmp_path: Path) -> None:
    found = [
        value for section, key, value in settings_in(text) if (section, key) == ("user", "name")
    ]
    path = tmp_path / "config"
    path.write_bytes(text.encode())
    said = git(tmp_path, "config", "-f", str(path), "--get", "user.name")
    assert found[-1] == said.strip("\n") == "Ada L"

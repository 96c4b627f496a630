"""One recipe a check: `nox` runs them all, `nox -s types` one, `.ci/run` all on a fresh clone."""

from __future__ import annotations

import os

import nox

nox.needs_version = ">=2025.5.1"
nox.options.download_python = "never"  # sessions for a Python that is not here are skipped
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.reuse_existing_virtualenvs = True
nox.options.sessions = ["lint", "types", "layers", "docs", "site", "tests"]

PYTHONS = ["3.11", "3.12", "3.13", "3.14"]
LOCKS = {"requirements.lock": [], "requirements-dev.lock": ["--extra", "dev"]}


def install(session: nox.Session) -> None:
    """Install the locked development set, then the project itself as it stands on disk."""
    if session.venv_backend == "none":  # .ci/run has done so already
        return
    session.install("--require-hashes", "-r", "requirements-dev.lock")
    session.install("--no-deps", "-e", ".")


@nox.session(python="3.11")
def lint(session: nox.Session) -> None:
    """Style and likely bugs; `nox -s lint -- --fix` repairs what can be repaired."""
    install(session)
    if session.posargs:
        session.run("ruff", "check", *session.posargs)
        session.run("ruff", "format")
    else:
        session.run("ruff", "check")
        session.run("ruff", "format", "--check")


@nox.session(python="3.11")
def types(session: nox.Session) -> None:
    """mypy in strict mode over the library, the command line, the tests and the tools."""
    install(session)
    session.run("mypy")


@nox.session(python="3.11")
def layers(session: nox.Session) -> None:
    """The floors: which module may import which."""
    install(session)
    session.run("lint-imports", "--no-cache")


@nox.session(python="3.11")
def docs(session: nox.Session) -> None:
    """The reference pages that are generated from the code are current.

    The examples in the documentation are tests (tests/test_docs.py) and run with the others.
    """
    install(session)
    session.run("python", "tools/write_reference.py", "--check")


@nox.session(python="3.11")
def site(session: nox.Session) -> None:
    """Build the documentation into site/, strictly, and check every link of it."""
    install(session)
    session.run("python", "-m", "tools.website")


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    """The whole suite; `nox -s tests-3.12 -- -k journal` for a part on one Python."""
    session.install("-e", ".[test]")
    session.run("pytest", "-n", os.environ.get("PYTEST_WORKERS", "auto"), *session.posargs)


@nox.session(python="3.11")
def fuzz(session: nox.Session) -> None:
    """Fuzz what reads bytes of strangers; `nox -s fuzz -- --seconds 900 journal` one reader, for longer."""
    install(session)
    session.run("python", "-m", "tests.fuzzing", *session.posargs)


@nox.session(python="3.11")
def damage(session: nox.Session) -> None:
    """Every bit, length, block and file of a small repository damaged; half an hour and more. The suite samples it."""
    install(session)
    every = [] if session.posargs else ["--all"]
    session.run("python", "-m", "tests.reliability.support.damage", *every, *session.posargs)


@nox.session(python="3.11")
def collecting(session: nox.Session) -> None:
    """Writers that meet gc and prune at every call, and both killed at each; half an hour. The suite samples it."""
    install(session)
    session.run(
        # One test is all meetings of one writer: on a busy machine longer than a test of the suite may take.
        *("pytest", "-q", "-n", "0", "--timeout", "3600", "tests/reliability", "-k", "collecting"),
        *session.posargs,
        env={"TRACE_TEST_COLLECTING": "every"},
    )


@nox.session(python="3.11")
def crash(session: nox.Session) -> None:
    """The power cut at every point of every workload, with what was found; the suite makes fewer of the choices."""
    install(session)
    session.run(
        # One test is all states of one workload: on a busy machine longer than a test of the suite may take.
        *("pytest", "-q", "-s", "-n", "0", "--timeout", "3600", "tests/reliability/test_crash.py"),
        *session.posargs,
        env={"TRACE_TEST_FULL": "1"},
    )


@nox.session(python="3.11")
def agents(session: nox.Session) -> None:
    """Real agents with our hooks: `-- codex gemini` for some. Needs npm, and 1.5 GB in a temporary folder."""
    install(session)
    packages = (
        *("@anthropic-ai/claude-code", "@openai/codex", "@google/gemini-cli", "opencode-ai"),
        "@github/copilot",
    )
    folder = session.create_tmp()
    words = ("--no-audit", "--no-fund", "--foreground-scripts", "--prefix", folder)
    session.run("npm", "install", *words, *packages, external=True)
    programs = os.path.join(folder, "node_modules", ".bin")
    session.run("python", "-m", "tests.capture.support.agents", programs, *session.posargs)


@nox.session(python="3.11")
def powercut(session: nox.Session) -> None:
    """Real power cuts on ext4, XFS and Btrfs, in mounted images: root and Linux only; `-- xfs --cuts 10` for less."""
    install(session)
    session.run("python", "-m", "tests.reliability.support.power", *session.posargs)


@nox.session(python="3.11")
def storm(session: nox.Session) -> None:
    """Many processes on one repository, killed at any moment, for ten minutes; `-- --seconds 60` for less."""
    install(session)
    session.run(
        "python",
        "-m",
        "tests.reliability.support.storm",
        *(session.posargs or ["--seconds", "600"]),
    )


@nox.session(python="3.11")
def lines(session: nox.Session) -> None:
    """Random histories of merges, picks, rebases, reverts and undo: other ones each time, and more and longer ones."""
    install(session)
    session.run(
        *("pytest", "-q", "-n", "0", "--timeout", "36000", "tests/stateful/test_lines.py"),
        *session.posargs,
        env={"TRACE_TEST_LINES": os.environ.get("TRACE_TEST_LINES", "2000")},
    )


@nox.session(python="3.11")
def model_server(session: nox.Session) -> None:
    """The model client against an independent server with a tiny random model; installs 1.5 GB, downloads no model."""
    session.install("-e", ".[test]", "torch", "transformers[serving]")
    python = os.path.join(session.bin, "python")
    session.run(
        *["pytest", "tests/llm/test_real_server.py", *session.posargs],
        env={"TRACE_TEST_MODEL_PYTHON": python},
    )


@nox.session(python="3.11")
def langgraph(session: nox.Session) -> None:
    """LangGraph's own tests of graphs over Trace's checkpoint saver, from its source distribution; half an hour."""
    session.install("-e", ".[langgraph]", "langgraph==1.2.24")
    session.install("langgraph-checkpoint-sqlite", "langgraph-checkpoint-postgres", "redis")
    session.install("psycopg[binary,pool]", "pycryptodome", "httpx")
    session.install("pytest<9", "pytest-mock", "pytest-xdist", "syrupy")
    arguments = ["--", *session.posargs] if session.posargs else []
    session.run("python", "-m", "tools.langgraph_tests", session.create_tmp(), *arguments)


@nox.session(python="3.11")
def claude_agent(session: nox.Session) -> None:
    """The contracts of the Claude Agent SDK, and a session of its bundled program; installs 400 MB."""
    session.install("-e", ".[test,claude-agent]")
    session.run("pytest", "tests/integrations/test_claude_agent.py", *session.posargs)
    session.run("python", "-m", "tools.claude_agent_live")


@nox.session(python="3.11")
def openai_session(session: nox.Session) -> None:
    """The own tests of the OpenAI Agents SDK over Trace's session, from its source distribution; ten minutes."""
    session.install("-e", ".[openai-agents]", "openai-agents==0.24.0")
    session.install("pytest", "pytest-asyncio", "pytest-mock", "inline-snapshot")
    arguments = ["--", *session.posargs] if session.posargs else []
    session.run("python", "-m", "tools.openai_session_tests", session.create_tmp(), *arguments)


@nox.session(python="3.11")
def attacks(session: nox.Session) -> None:
    """Everything that a stranger's repository was made to try, and a table of it."""
    install(session)
    session.run("python", "-m", "tests.reliability.support.attacks")


@nox.session(python="3.11")
def length(session: nox.Session) -> None:
    """Hostile texts of 10 MB, each beside one of 1 MB; half an hour. `-- secrets terminal` some of the readers."""
    install(session)
    session.run("python", "-m", "tests.reliability.support.long_texts", *session.posargs)


@nox.session(python="3.11")
def mutation(session: nox.Session) -> None:
    """Small faults in chosen modules, and whether tests notice; hours. `-- search --sample 15 --seed 1` a part."""
    install(session)
    session.install("cosmic-ray>=8.7,<9", "coverage>=7.17,<8")
    session.run("python", "-m", "tools.mutation", *session.posargs)


@nox.session(python="3.11")
def reference(session: nox.Session) -> None:
    """Write docs/errors.md and docs/cli.md anew from the code."""
    install(session)
    session.run("python", "tools/write_reference.py")


@nox.session(venv_backend="none")
def lock(session: nox.Session) -> None:
    """Write the lock files anew; needs uv. They name no index, so any mirror serves."""
    for path, options in LOCKS.items():
        session.run(
            *["uv", "pip", "compile", "--quiet", "--universal", "--python-version", "3.11"],
            # With extras, since pip looks for other versions of what is pinned without the extra that somebody needs.
            *["--generate-hashes", "--no-strip-extras"],
            *["--no-emit-index-url", "--no-emit-find-links"],
            *["--no-annotate", "--custom-compile-command", "nox -s lock"],
            *[*options, "--output-file", path, *session.posargs, "pyproject.toml"],
            external=True,
        )


@nox.session(python="3.11")
def build(session: nox.Session) -> None:
    """Build the source distribution and the wheel into dist/."""
    session.install("build")
    session.run("python", "-m", "build")

"""Real agents, each in a home of its own, against a model server on this machine, with our hooks installed.

    python -m tests.capture.support.agents BIN [AGENT...]

BIN is a folder with the programs `claude`, `codex`, `gemini`, `opencode` and `copilot`. Each agent gets a session, a
second one that is killed, two at once, and a resumed one; then the branches are compared with those of a plain import,
and a table is printed. `nox -s agents` installs the programs and runs this.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from tests.capture.support.fake_model import serving

ROOT = Path(__file__).resolve().parents[3]
LIMIT_SECONDS = 120.0
BEHIND_SECONDS = 2.0
SETTLE_SECONDS = 30.0


class Place(NamedTuple):
    """The folders of one agent."""

    bin: Path
    home: Path
    project: Path
    url: str

    def variables(self) -> dict[str, str]:
        home = str(self.home)
        kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        return {
            **kept,
            "HOME": home,
            "XDG_CONFIG_HOME": f"{home}/.config",
            "XDG_DATA_HOME": f"{home}/.local/share",
            "TRACE_AUTHOR": "Ada",
            "TERM": "dumb",
            "PYTHONPATH": f"{ROOT}:{ROOT / 'cli'}",
        }


class Agent(NamedTuple):
    """How to run an agent.

    `run` and `resume` return the words of a command for a prompt, after those of the program.
    """

    name: str
    program: str
    run: Callable[[str], list[str]]
    resume: Callable[[str], list[str]]
    prepare: Callable[[Place], Mapping[str, str]]


def _claude(place: Place) -> Mapping[str, str]:
    return {
        "ANTHROPIC_BASE_URL": place.url,
        "ANTHROPIC_API_KEY": "sk-fake",
        "DISABLE_TELEMETRY": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
    }


def _codex(place: Place) -> Mapping[str, str]:
    lines = [
        *('model = "gpt-5.1-codex"', 'model_provider = "local"', "[model_providers.local]"),
        *('name = "local"', f'base_url = "{place.url}/v1"', 'wire_api = "responses"'),
        'env_key = "LOCAL_KEY"',
    ]
    folder = place.home / ".codex"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.toml").write_text("\n".join(lines) + "\n")
    return {"LOCAL_KEY": "sk-fake"}


def _gemini(place: Place) -> Mapping[str, str]:
    folder = place.home / ".gemini"
    folder.mkdir(parents=True, exist_ok=True)
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "privacy": {"usageStatisticsEnabled": False},
        "general": {"enableAutoUpdate": False},
    }
    (folder / "settings.json").write_text(json.dumps(settings, indent=2))
    return {
        "GEMINI_API_KEY": "fake",
        "GOOGLE_GEMINI_BASE_URL": place.url,
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
    }


def _opencode(place: Place) -> Mapping[str, str]:
    folder = place.home / ".config" / "opencode"
    folder.mkdir(parents=True, exist_ok=True)
    model = {"name": "Local", "limit": {"context": 100_000, "output": 4_000}}
    options = {"baseURL": f"{place.url}/v1", "apiKey": "sk-fake"}
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "Local",
        "options": options,
        "models": {"fake-model": model},
    }
    settings = {
        "autoupdate": False,
        "share": "disabled",
        "permission": {"bash": "allow"},
        "model": "local/fake-model",
        "small_model": "local/fake-model",
        "provider": {"local": provider},
    }
    (folder / "opencode.json").write_text(json.dumps(settings))
    return {
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
    }


def _copilot(place: Place) -> Mapping[str, str]:
    return {
        "COPILOT_PROVIDER_BASE_URL": f"{place.url}/v1",
        "COPILOT_PROVIDER_API_KEY": "sk-fake",
        "COPILOT_MODEL": "gpt-5",
        "COPILOT_OFFLINE": "true",
        "COPILOT_AUTO_UPDATE": "false",
    }


_CODEX = ["exec", "--skip-git-repo-check"]
AGENTS = {
    agent.name: agent
    for agent in (
        Agent(
            "claude-code",
            "claude",
            lambda prompt: ["-p", prompt, "--allowedTools", "Bash"],
            lambda prompt: ["-c", "-p", prompt, "--allowedTools", "Bash"],
            _claude,
        ),
        Agent(
            "codex",
            "codex",
            lambda prompt: [*_CODEX, prompt],
            lambda prompt: [*_CODEX, "resume", "--last", prompt],
            _codex,
        ),
        Agent(
            "gemini",
            "gemini",
            lambda prompt: ["-p", prompt, "--yolo"],
            lambda prompt: ["--resume", "latest", "-p", prompt, "--yolo"],
            _gemini,
        ),
        Agent(
            "opencode",
            "opencode",
            lambda prompt: ["run", prompt],
            lambda prompt: ["run", "--continue", prompt],
            _opencode,
        ),
        Agent(
            "copilot",
            "copilot",
            lambda prompt: ["-p", prompt, "--allow-all-tools"],
            lambda prompt: ["--continue", "-p", prompt, "--allow-all-tools"],
            _copilot,
        ),
    )
}


class Trial:
    """The sessions of one agent."""

    def __init__(self, agent: Agent, place: Place) -> None:
        self._agent = agent
        self._place = place
        place.home.mkdir(parents=True)
        place.project.mkdir(parents=True)
        self._variables = {**place.variables(), **agent.prepare(place)}
        self.trace("init", "-q")
        trust = ["--trust"] if agent.name == "codex" else []
        self.trace("hooks", "install", agent.name, *trust, "-q")

    def trace(self, *words: str, folder: Path | None = None) -> str:
        command = [sys.executable, "-P", "-m", "trace_cli", *words]
        done = subprocess.run(
            command,
            cwd=folder or self._place.project,
            env=self._variables,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise SystemExit(f"trace {' '.join(words)}: {done.stderr}")
        return done.stdout

    def version(self) -> str:
        done = subprocess.run(
            [self._program, "--version"],
            env=self._variables,
            capture_output=True,
            text=True,
            check=False,
            timeout=LIMIT_SECONDS,
        )
        return done.stdout.strip().splitlines()[0]

    @property
    def _program(self) -> str:
        return str(self._place.bin / self._agent.program)

    def start(self, prompt: str, *, resumes: bool = False) -> subprocess.Popen[bytes]:
        words = (self._agent.resume if resumes else self._agent.run)(prompt)
        log = (self._place.home / "agent.log").open("ab")
        return subprocess.Popen(
            [self._program, *words],
            cwd=self._place.project,
            env=self._variables,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )

    def run(self, prompt: str, *, resumes: bool = False) -> int:
        return self.start(prompt, resumes=resumes).wait(LIMIT_SECONDS)

    def kill(self, prompt: str) -> None:
        """Start a session whose answer takes long, and kill the agent with all that it started."""
        before = self.tips()
        process = self.start(f"{prompt} wait")
        end = time.monotonic() + SETTLE_SECONDS
        while self.tips() == before and time.monotonic() < end:
            time.sleep(0.2)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def tips(self) -> dict[str, str]:
        """Return the tips of the captured branches."""
        return self._listed()

    def _listed(self) -> dict[str, str]:
        rows = (
            line.split() for line in self.trace("for-each-ref", "refs/heads/sessions/").splitlines()
        )
        return {name: oid for oid, _, name in rows}

    def settle(self) -> None:
        """Wait until the worker has ended."""
        end = time.monotonic() + SETTLE_SECONDS
        while time.monotonic() < end:
            found = json.loads(self.trace("hooks", "status", "--json"))
            if not found["busy"] and not found["waiting"]:
                return
            time.sleep(0.5)
        raise SystemExit("the worker does not end")

    def deleted(self) -> set[str]:
        """Return the branches whose transcript the agent deleted; Gemini CLI removes some that it wrote itself."""
        found = json.loads(self.trace("hooks", "status", "--json"))
        return {
            each["ref"]
            for each in found["sessions"]
            if each["ref"] and not os.path.exists(each["transcript"].partition("#")[0])
        }

    def plain(self) -> dict[str, str]:
        """Return the tips of a plain import of all sessions of the project."""
        other = self._place.home / "plain.trace"
        shutil.rmtree(other, ignore_errors=True)
        beside = self._place.project / ".trace"
        kept = self._place.home / "captured.trace"
        beside.rename(kept)
        try:
            self.trace("import", "--all", "-q")
            return self._listed()
        finally:
            shutil.rmtree(beside, ignore_errors=True)
            kept.rename(beside)


def try_agent(agent: Agent, bin: Path, folder: Path, url: str) -> list[str]:
    """Run the sessions of an agent; return a row of the table."""
    trial = Trial(
        agent, Place(bin, folder / agent.name / "home", folder / agent.name / "project", url)
    )
    code = trial.run("print a word")
    began = time.monotonic()
    while not trial.tips() and time.monotonic() < began + SETTLE_SECONDS:
        time.sleep(0.1)
    behind = time.monotonic() - began
    first = trial.tips()
    trial.kill("print another word")
    pair = [trial.start(f"print word {number}") for number in (1, 2)]
    for process in pair:
        process.wait(LIMIT_SECONDS)
    trial.run("print it again", resumes=True)
    trial.settle()
    captured, plain = trial.tips(), trial.plain()
    lost = trial.deleted()
    captured = {name: tip for name, tip in captured.items() if name in plain or name not in lost}
    sessions = map(json.loads, trial.trace("sessions", "--json").splitlines())
    same = "same" if captured == plain else f"differs: {captured} {plain}"
    titles = {each.get("title") or each.get("prompt") or "" for each in sessions}
    counts = f"{len(first)} then {len(captured)} branches"
    counts += f" and {len(lost)} whose file the agent deleted" if lost else ""
    words = [agent.name, trial.version(), f"exit {code}", counts]
    return [*words, f"{behind:.1f} s behind", same, "; ".join(sorted(titles))]


def main() -> None:
    bin, *names = sys.argv[1:]
    folder = Path(tempfile.mkdtemp(prefix="trace-agents-"))
    failed = False
    with serving() as url:
        for name in names or AGENTS:
            row = try_agent(AGENTS[name], Path(bin), folder, url)
            failed |= row[5] != "same"
            print(" | ".join(row), flush=True)
    raise SystemExit(failed)


if __name__ == "__main__":
    main()

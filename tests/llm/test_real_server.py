"""An independent server with a tiny random model, to test against real responses.

It needs torch and `transformers[serving]`, 1.5 GB that nothing else needs, in an interpreter that the variable
TRACE_TEST_MODEL_PYTHON names: `nox -s model_server` makes one. Nothing is downloaded, and what the model says is
nonsense.
"""

from __future__ import annotations

import os
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from trace_store import errors, llm

PYTHON = os.environ.get("TRACE_TEST_MODEL_PYTHON", "")
PROMPT = llm.contract.Prompt((("user", "Are you ready?"),), "Be brief.", maximum_tokens=12)
STARTED = "Application startup complete"

pytestmark = pytest.mark.skipif(
    not PYTHON, reason="TRACE_TEST_MODEL_PYTHON names no interpreter with transformers[serving]"
)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[llm.http_model.HttpModel]:
    folder = tmp_path_factory.mktemp("tiny")
    script = Path(__file__).parent / "support" / "tiny_model.py"
    offline = {**os.environ, "HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": ""}
    offline |= {"HF_HOME": str(folder / "home"), "PYTHONWARNINGS": "ignore"}
    subprocess.run([PYTHON, str(script), str(folder / "model")], check=True, env=offline)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    program = Path(PYTHON).parent / "transformers"
    words = ["serve", str(folder / "model"), "--host", "127.0.0.1", "--port", str(port)]
    with subprocess.Popen(
        [str(program), *words],
        env=offline,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
    ) as server:
        try:
            assert server.stdout is not None
            said = []
            for line in server.stdout:
                said.append(line)
                if STARTED in line:
                    break
            assert server.poll() is None, "".join(said)
            rest = threading.Thread(target=server.stdout.read, daemon=True)
            rest.start()  # so that the server never waits for a reader
            url = f"http://127.0.0.1:{port}/v1"
            yield llm.http_model.HttpModel(
                llm.settings.ModelSettings(str(folder / "model"), url=url, attempts=1)
            )
        finally:
            server.terminate()
            server.wait()
            rest.join()


def test_an_answer(model: llm.http_model.HttpModel) -> None:
    found = model(PROMPT)
    assert found.text
    assert found.stop == "length"
    assert found.usage is not None
    assert found.usage.input_total > 5
    assert found.usage.output_total == 12


def test_a_stream_and_its_usage(model: llm.http_model.HttpModel) -> None:
    heard: list[str] = []
    found = model(PROMPT, heard=heard.append)
    assert "".join(heard) == found.text
    assert len(heard) > 1
    assert found.usage is not None
    assert found.usage.output_total == 12


def test_cancelling(model: llm.http_model.HttpModel) -> None:
    cancellation = llm.contract.Cancellation()
    with pytest.raises(errors.ModelCancelledError):
        model(PROMPT, heard=lambda _: cancellation.cancel(), cancellation=cancellation)
    assert model(PROMPT).text


def test_a_model_that_the_server_has_not(model: llm.http_model.HttpModel) -> None:
    other = llm.http_model.HttpModel(
        llm.settings.ModelSettings("nobody/nothing", url=model.settings.url, attempts=1)
    )
    with pytest.raises(errors.ModelError):
        other(PROMPT)

"""Which model is asked and with which key: the user says so, and a key goes where it was put beside."""

from __future__ import annotations

import copy
import logging
import os
import pickle
import traceback
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from tests.llm.conftest import KEY
from tests.llm.support.fault_server import FaultServer, answer, said
from trace_store import errors, llm
from trace_store.base.environment import Environment

Settings = Callable[..., llm.settings.ModelSettings]
VENDOR = "https://api.openai.com/v1"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Write a settings file and return the settings from it and these variables."""

    def read(kept: str = "", /, **variables: str) -> llm.settings.ModelSettings:
        path = tmp_path / "trace" / "model.toml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(kept, encoding="utf-8")
        path.chmod(0o600)
        environment = Environment(config_dir=str(tmp_path), secrets=variables.items())
        return llm.settings.read_settings(environment)

    return read


def test_nothing_is_asked_unless_it_is_named(settings: Settings, tmp_path: Path) -> None:
    for kept in ("", 'key = "abc"', 'url = "http://127.0.0.1:1/v1"'):
        with pytest.raises(errors.StateError, match="no model is configured") as raised:
            settings(kept, OPENAI_API_KEY=KEY)
        assert raised.value.code == "no-model"
    without_settings = Environment(config_dir="", secrets=())
    with pytest.raises(errors.StateError):
        llm.settings.read_settings(without_settings)


def test_the_environment_goes_before_the_file(settings: Settings) -> None:
    kept = 'name = "kept"\napi = "anthropic"\nurl = "https://kept.example.org"\ntimeout = 5\n'
    found = settings(kept)
    assert (found.name, found.api, found.url, found.timeout) == (
        *("kept", "anthropic", "https://kept.example.org"),
        5,
    )
    found = settings(
        kept,
        TRACE_MODEL="mine",
        TRACE_MODEL_API="chat",
        TRACE_MODEL_URL="https://other.example.org/",
    )
    assert (found.name, found.api, found.url) == ("mine", "chat", "https://other.example.org")


def test_defaults(settings: Settings) -> None:
    found = settings("", TRACE_MODEL="m", OPENAI_API_KEY=KEY)
    assert (found.api, found.url, found.key_from) == ("chat", VENDOR, "OPENAI_API_KEY")
    found = settings("", TRACE_MODEL="m", TRACE_MODEL_API="anthropic", ANTHROPIC_API_KEY=KEY)
    assert (found.url, found.key_from) == ("https://api.anthropic.com", "ANTHROPIC_API_KEY")


def test_the_key_of_a_vendor_goes_to_that_vendor(settings: Settings) -> None:
    variables = {"TRACE_MODEL": "m", "OPENAI_API_KEY": KEY, "ANTHROPIC_API_KEY": KEY}
    for url in ("https://example.org/v1", "https://api.openai.com.example.org/v1"):
        assert not settings("", TRACE_MODEL_URL=url, **variables).key
    crossed = settings("", TRACE_MODEL_API="chat", TRACE_MODEL="m", OPENAI_API_KEY=KEY)
    assert crossed.key.reveal() == KEY
    with pytest.raises(errors.StateError, match="needs a key"):
        settings("", TRACE_MODEL="m", ANTHROPIC_API_KEY=KEY)


def test_the_key_of_the_file_goes_to_the_address_of_the_file(settings: Settings) -> None:
    kept = f'name = "m"\nurl = "https://mine.example.org/v1"\nkey = "{KEY}"\n'
    assert settings(kept).key.reveal() == KEY
    with pytest.raises(errors.StateError, match=r"for https://mine.* not sent to https://evil"):
        settings(kept, TRACE_MODEL_URL="https://evil.example.org/v1")
    with pytest.raises(errors.StateError, match="needs a key"):
        settings(kept, TRACE_MODEL_URL=VENDOR)
    with pytest.raises(errors.StateError):
        settings(f'name = "m"\nkey = "{KEY}"', TRACE_MODEL_API="anthropic")
    other = settings(kept, TRACE_MODEL_URL="https://other.example.org", TRACE_MODEL_KEY="other-key")
    assert other.key.reveal() == "other-key"


def test_a_key_does_not_leave_the_machine_unencrypted(settings: Settings) -> None:
    key = {"TRACE_MODEL": "m", "TRACE_MODEL_KEY": KEY}
    for url in ("http://example.org/v1", "http://192.168.1.5/v1", "http://localhost.example.org"):
        with pytest.raises(errors.StateError, match="without encryption"):
            settings("", TRACE_MODEL_URL=url, **key)
        assert settings("allow_http = true", TRACE_MODEL_URL=url, **key).key
        assert not settings("", TRACE_MODEL_URL=url, TRACE_MODEL="m").key
    for url in ("http://127.0.0.1:1/v1", "http://localhost/v1", "http://[::1]:8/v1"):
        assert settings("", TRACE_MODEL_URL=url, **key).key


@pytest.mark.parametrize(
    "url",
    [
        *("", "example.org", "ftp://example.org", "https://", "https:///v1", "file:///etc/passwd"),
        *("https://ada:secret@example.org", "https://example.org/v1?key=1", "https://e.org/#x"),
        *("https://example.org:99999", "https://example.org/a b", "https://exämple.org"),
        *("https://example.org/\r\nx: y", "http://[::", "https://example.org:0/"),
    ],
)
def test_addresses_that_are_none(settings: Settings, url: str) -> None:
    with pytest.raises(errors.TraceError) as raised:
        settings("", TRACE_MODEL="m", TRACE_MODEL_URL=url)
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize("key", ["a b", "a\nb", "schlüssel", "a\x00b", "x" * 3000])
def test_keys_that_are_none_are_not_repeated(settings: Settings, key: str) -> None:
    with pytest.raises(errors.InvalidInputError) as raised:
        settings("", TRACE_MODEL="m", TRACE_MODEL_KEY=key)
    assert key not in str(raised.value)


@pytest.mark.parametrize(
    "kept",
    [
        *(f'key = "{KEY}', f"key = {KEY}", 'api = "gopher"', "timeout = 0", 'timeout = "x"'),
        *("attempts = 21", "models = 1", "[model]\nname = 1", "name = 1.5", 'name = "\\u0007"'),
        *("allow_http = 1", "name = []", 'deadline = "1e9"', "key = 2026-11-22"),
    ],
)
def test_a_file_that_is_wrong(settings: Settings, kept: str) -> None:
    with pytest.raises(errors.InvalidInputError) as raised:
        settings(kept)
    assert KEY not in str(raised.value)
    assert raised.value.__context__ is None or KEY not in str(raised.value.__context__)


def test_a_file_of_others(settings: Settings, tmp_path: Path) -> None:
    settings(f'name = "m"\nkey = "{KEY}"')
    path = tmp_path / "trace" / "model.toml"
    environment = Environment(config_dir=str(tmp_path))
    for mode, message in ((0o644, "others can read the model key"), (0o620, "others can write")):
        path.chmod(mode)
        with pytest.raises(errors.StateError, match=message):
            llm.settings.read_settings(environment)
    path.write_text('name = "m"\nurl = "http://127.0.0.1/v1"', encoding="utf-8")
    path.chmod(0o644)
    assert llm.settings.read_settings(environment).name == "m"


def test_changing_one_setting_keeps_the_rest(tmp_path: Path) -> None:
    environment = Environment(config_dir=str(tmp_path))
    path = tmp_path / "trace" / "model.toml"
    llm.settings.set_setting(environment, "name", 'm "1" \\')
    assert path.stat().st_mode & 0o777 == 0o600
    path.write_text("# mine\n" + path.read_text(encoding="utf-8"), encoding="utf-8")
    llm.settings.set_setting(environment, "key", KEY)
    llm.settings.set_setting(environment, "name", "m-2")
    assert path.read_text(encoding="utf-8") == f'# mine\nkey = "{KEY}"\nname = "m-2"\n'
    llm.settings.set_setting(environment, "key", None)
    assert path.read_text(encoding="utf-8") == '# mine\nname = "m-2"\n'
    for key, value in (("nothing", "1"), ("api", "x"), ("timeout", "-1"), ("key", "a b")):
        with pytest.raises(errors.InvalidInputError):
            llm.settings.set_setting(environment, key, value)
    assert sorted(os.listdir(path.parent)) == ["model.toml"]
    path.write_text('name = """\nx"""\n', encoding="utf-8")
    with pytest.raises(errors.InvalidInputError):
        llm.settings.set_setting(environment, "name", "y")


def test_proxies_of_the_environment(settings: Settings) -> None:
    proxy = {"HTTPS_PROXY": "http://ada:secret@proxy:3128", "NO_PROXY": "inside.example.org,.corp"}
    named = {"TRACE_MODEL": "m", **proxy}
    found = settings("", TRACE_MODEL_URL="https://example.org", **named)
    assert found.proxy.reveal() == proxy["HTTPS_PROXY"]
    assert "secret" not in repr(found)
    for url in ("https://inside.example.org", "https://a.corp", "http://127.0.0.1:8080"):
        assert not settings("", TRACE_MODEL_URL=url, **named).proxy
    broken = settings(
        "", TRACE_MODEL="m", TRACE_MODEL_URL="https://e.org", https_proxy="x://secret"
    )
    with pytest.raises(errors.InvalidInputError, match="proxy") as raised:
        llm.http_model.HttpModel(broken)(llm.contract.Prompt((("user", "x"),)))
    assert "secret" not in "".join(traceback.format_exception(raised.value))


# --- the key is nowhere to be seen ---------------------------------------------------------------


def shown(error: BaseException) -> str:
    """Return everything that a tool which reports errors with all variables would show of one."""
    pieces: list[str] = []
    waiting: list[BaseException | None] = [error]
    while waiting:
        each = waiting.pop()
        if each is None:
            continue
        pieces += [repr(each), str(each), repr(vars(each)), *traceback.format_exception(each)]
        for frame, _ in traceback.walk_tb(each.__traceback__):
            if not frame.f_code.co_filename.startswith(os.path.dirname(__file__)):
                pieces += [repr(value) for value in frame.f_locals.values()]
        waiting += [each.__cause__, each.__context__]
    return "\n".join(pieces)


@pytest.mark.parametrize("api", ["chat", "anthropic"])
@pytest.mark.parametrize("fault", ["refused", "connection", "redirect", "nonsense", "unforeseen"])
def test_no_error_shows_the_key(api: str, fault: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    told = f"Incorrect API key provided: {KEY}, {KEY[:8]}****{KEY[-4:]} and '{KEY[-6:]}'"

    def handler(request: httpx.Request) -> httpx.Response:
        if fault == "connection":
            raise httpx.ConnectError(f"refused with {request.headers}", request=request)
        if fault == "unforeseen":
            raise RuntimeError(dict(request.headers))
        if fault == "redirect":
            return httpx.Response(302, headers={"location": "https://evil.example.org/"})
        if fault == "nonsense":
            return httpx.Response(200, content=KEY.encode())
        return httpx.Response(401, json={"error": {"message": told}})

    settings = llm.settings.ModelSettings(
        "m", api, "https://example.org", llm.settings.Secret(KEY), attempts=1
    )
    model = llm.http_model.HttpModel(settings, transport=httpx.MockTransport(handler))
    with pytest.raises(errors.ModelError) as raised:
        model(llm.contract.Prompt((("user", "x"),)))
    seen = shown(raised.value) + caplog.text + repr(model) + repr(settings)
    assert KEY not in seen
    assert KEY[:8] not in seen
    assert KEY[-6:] not in seen
    again = pickle.loads(pickle.dumps(raised.value))
    assert (type(again), str(again)) == (type(raised.value), str(raised.value))


def test_no_log_shows_the_key_over_a_socket(
    serving: Callable[..., FaultServer],
    asking: Callable[..., llm.http_model.HttpModel],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    server = serving(answer(said()))
    asking(server)(llm.contract.Prompt((("user", "x"),)))
    assert "POST" in caplog.text
    assert KEY not in caplog.text


def test_a_secret_shows_nothing() -> None:
    secret = llm.settings.Secret(KEY)
    assert KEY not in f"{secret} {secret!r} {[secret]} {copy.copy(secret)}"
    assert bool(secret)
    assert not llm.settings.Secret()

"""Settings of the model: its name, address and key.

The environment overrides the user's file; a repository has no say. A key belongs to the address beside it: one in the
file to the address in the file, a vendor's variable to that vendor. It is sent only encrypted, unless the user allows
otherwise.
"""

from __future__ import annotations

from trace_store import errors
from trace_store.environment import Environment
from trace_store.frozen import field, value
from trace_store.llm.keys import Secret
from trace_store.llm.settings_file import (
    ANTHROPIC,
    APIS,
    CHAT,
    KEYS,
    RESPONSES,
    checked_key,
    checked_name,
    checked_url,
    read_settings_file,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from trace_store.files import Disk

OPENAI_URL = "https://api.openai.com/v1"
ANTHROPIC_URL = "https://api.anthropic.com"
VENDORS = {CHAT: OPENAI_URL, RESPONSES: OPENAI_URL, ANTHROPIC: ANTHROPIC_URL}
VENDOR_KEYS = {OPENAI_URL: "OPENAI_API_KEY", ANTHROPIC_URL: "ANTHROPIC_API_KEY"}
NAME, API, URL, KEY = "TRACE_MODEL", "TRACE_MODEL_API", "TRACE_MODEL_URL", "TRACE_MODEL_KEY"
TIMEOUT_SECONDS, DEADLINE_SECONDS, ATTEMPTS = 120, 900, 4
_OWN_HOSTS = ("localhost", "127.0.0.1", "::1")


@value
class ModelSettings:
    """Where a model is and how to call it.

    Attributes:
        name: its name there.
        api: `chat` (OpenAI chat completions, which most servers support), `responses` (OpenAI) or `anthropic`.
        url: the base address, without a slash at the end.
        key: its key; empty if none is needed.
        key_from: where the key comes from, for display, or "".
        timeout: maximum seconds without data.
        deadline: maximum seconds in total, with waits and retries.
        attempts: maximum number of requests.
        proxy: the address of a proxy, or empty.
        certificates: the path of a file of certificates to trust, or "".
    """

    name: str
    api: str = CHAT
    url: str = OPENAI_URL
    key: Secret = field(default_factory=Secret)
    key_from: str = ""
    timeout: float = TIMEOUT_SECONDS
    deadline: float = DEADLINE_SECONDS
    attempts: int = ATTEMPTS
    proxy: Secret = field(default_factory=Secret)
    certificates: str = ""


def read_settings(
    environment: Environment | None = None, *, disk: Disk | None = None
) -> ModelSettings:
    """Return the settings of the user's model; without an environment, that of the process counts.

    Raises:
        StateError: no model is configured (`no-model`), a key is missing, a key would be sent to an address that it
            does not belong to or without encryption, or others can access the user's file.
        InvalidInputError: a setting is not valid.
        StorageError: the user's file cannot be read.
    """
    environment = environment or Environment.read()
    kept: dict[str, Any] = read_settings_file(environment, disk=disk)
    told = environment.variables(NAME, API, URL, KEY, *VENDOR_KEYS.values())
    name = checked_name(told[NAME]) if NAME in told else kept.get("name", "")
    if not name:
        raise errors.StateError(
            "no model is configured in TRACE_MODEL or your settings", code=errors.ErrorCode.NO_MODEL
        )
    api = str(KEYS["api"](told[API])) if API in told else kept.get("api", CHAT)
    kept_url = kept.get("url", VENDORS[kept.get("api", CHAT)])
    # An api from the environment implies its vendor's address.
    url = checked_url(told[URL]) if URL in told else kept.get("url", VENDORS[api])
    key, key_from = _key(kept, kept_url, told, url)
    if url in VENDOR_KEYS and not key:
        raise errors.StateError(
            f"{url} needs a key",
            code=errors.ErrorCode.NO_KEY,
            variable=VENDOR_KEYS[url],
        )
    if key and not kept.get("allow_http") and not is_private(url):
        raise errors.StateError(
            f"a key would be sent to {url} without encryption",
            code=errors.ErrorCode.UNENCRYPTED,
        )
    return ModelSettings(
        name=name,
        api=api,
        url=url,
        key=key,
        key_from=key_from,
        timeout=kept.get("timeout", TIMEOUT_SECONDS),
        deadline=kept.get("deadline", DEADLINE_SECONDS),
        attempts=kept.get("attempts", ATTEMPTS),
        proxy=proxy_for(environment, url),
        certificates=environment.variables("SSL_CERT_FILE").get("SSL_CERT_FILE", ""),
    )


def _key(kept: dict[str, Any], kept_url: str, told: dict[str, str], url: str) -> tuple[Secret, str]:
    """Return the key for an address, and where it comes from."""
    if KEY in told:
        return checked_key(told[KEY]), KEY
    if kept.get("key"):
        if url == kept_url:
            return kept["key"], "your settings"
        if url not in VENDOR_KEYS:
            raise errors.StateError(
                f"the key in your settings is for {kept_url}; it is not sent to {url}",
                code=errors.ErrorCode.OTHER_KEY,
            )
    variable = VENDOR_KEYS.get(url, "")
    return (checked_key(told[variable]), variable) if variable in told else (Secret(), "")


def is_private(url: str) -> bool:
    """Return True if a key may be sent to an address: encrypted, or on this machine."""
    return url.startswith("https://") or _host(url) in _OWN_HOSTS


def _host(url: str) -> str:
    from urllib.parse import urlsplit

    return urlsplit(url).hostname or ""


def proxy_for(environment: Environment, url: str) -> Secret:
    """Return the proxy for an address from the environment; it may contain a password."""
    host = _host(url)
    names = ("HTTPS_PROXY", "https_proxy") if url.startswith("https") else ("http_proxy",)
    told = environment.variables(*names, "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy")
    excepted = ",".join((told.get("NO_PROXY", ""), told.get("no_proxy", ""))).split(",")
    ends = [each.strip().lstrip("*.").lower() for each in excepted if each.strip()]
    if host in _OWN_HOSTS or any(
        not end or host == end or host.endswith(f".{end}") for end in ends
    ):
        return Secret()
    found = next((told[name] for name in (*names, "ALL_PROXY", "all_proxy") if name in told), "")
    return Secret(found)


__all__ = ["APIS", "ModelSettings", "read_settings"]

"""Known secrets: values in the environment and `.env` files whose names mark them as secrets.

Pure functions; they read nothing.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

KNOWN_RULE = "known-value"
ENV_FILES = (".env", ".env.local", ".env.development", ".env.production", ".env.test")
MINIMUM_CHARACTERS = 8
MAXIMUM_ENV_BYTES = 1 << 20
MAXIMUM_VALUES = 1000

_TELLING = ("KEY", "TOKEN", "SECRET", "PASS", "CRED", "PWD", "AUTH", "PRIVATE", "SALT", "PIN")
_NOT_TELLING = (
    *("KEYBOARD", "KEYMAP", "MONKEY", "AUTHOR", "KEYWORD", "GPG_KEY", "KEY_ID", "PUBLIC", "_PATH"),
    *("_FILE", "_DIR", "_SOCK", "_URL", "_HOST", "_NAME", "_USER", "_TYPE", "PASSIVE", "BYPASS"),
    *("SHOPPING", "SPINNER", "PINNED", "MAX_TOKENS", "TOKEN_LIMIT", "TOKENIZERS"),
)


def secret_values(variables: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Return the values that are secrets by their name and value, without duplicates."""
    found = dict.fromkeys(value for name, value in variables if _is_secret(name.upper(), value))
    return tuple(found)[:MAXIMUM_VALUES]


def _is_secret(name: str, value: str) -> bool:
    if len(value) < MINIMUM_CHARACTERS or not any(map(name.__contains__, _TELLING)):
        return False
    if any(map(name.__contains__, _NOT_TELLING)) or not value.isprintable():
        return False
    if value[0] in "/~." or "://" in value or value.startswith(("${", "$(", "<", "[redacted:")):
        return False
    if value[1:3] == ":\\" or value.lower().startswith(("your", "change", "xxxx", "example")):
        return False
    # Prose and numbers such as sizes are not secrets; they occur in texts for other reasons.
    letters = value.replace("-", "").replace("_", "").replace(" ", "")
    if letters.isalpha() and (letters.islower() or letters.istitle() or letters.isupper()):
        return len(letters) >= 20 and " " not in value and "-" not in value and "_" not in value
    return not (value.isdigit() and len(value) < 12)


def env_values(data: bytes) -> Iterator[tuple[str, str]]:
    """Yield names and values of a `.env` file; other lines are ignored."""
    for line in data.decode("utf-8", "replace").splitlines():
        name, is_, value = line.strip().removeprefix("export ").partition("=")
        name, value = name.strip(), value.strip()
        if not is_ or not name.replace("_", "").replace(".", "").isalnum():
            continue
        quote = value[:1]
        if quote in ("'", '"', "`") and value.find(quote, 1) > 0:
            value = value[1 : value.find(quote, 1)]
        else:
            value = value.partition(" #")[0].strip()
        yield name, value


def probe(secret: str) -> bytes:
    """Return the longest part of a value that escaping never changes; empty if it is too short."""
    pieces = [""]
    for each in secret:
        if each.isascii() and (each.isalnum() or each in "_-.+=@:"):
            pieces[-1] += each
        elif pieces[-1]:
            pieces.append("")
    longest = max(pieces, key=len)
    return longest.encode() if len(longest) > 3 else b""


def spellings(secret: str) -> list[bytes]:
    """Return the value as it is, and escaped in JSON once and twice."""
    found = [secret.encode("utf-8", "surrogatepass")]
    if not (secret.isascii() and secret.isalnum()):
        import json  # which few values need

        for ascii_only in (False, True):
            once = json.dumps(secret, ensure_ascii=ascii_only)[1:-1]
            twice = json.dumps(once, ensure_ascii=ascii_only)[1:-1]
            found += [spelled.encode("utf-8", "surrogatepass") for spelled in (once, twice)]
    return list(dict.fromkeys(found))

"""Prices of models, which the user sets: `trace/prices.toml` in the settings folder.

    "claude-sonnet-4-5" = "input=3 output=15 cache_read=0.3 cache_write=3.75"

Prices are per million tokens, in any currency. The longest name that a model's name begins with counts, so that one
price serves all dated versions of a model. Trace ships no prices, because prices change.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite

from trace_store import errors
from trace_store.base.environment import Environment
from trace_store.base.frozen import value
from trace_store.disk.files import Disk, read_file, replace_file
from trace_store.store import config

FILE_NAME = "prices.toml"
MAXIMUM_BYTES = 1 << 18
MILLION = 1_000_000
_KEYS = ("input", "output", "cache_read", "cache_write")


@value
class Price:
    """Prices of one model per million tokens.

    Attributes:
        input, output: of tokens that it reads and writes.
        cache_read, cache_write: of input from a cache, or written to one.
    """

    input: float
    output: float
    cache_read: float
    cache_write: float

    @classmethod
    def parse(cls, text: str) -> Price:
        """Return the prices in a text such as `input=3 output=15`; a cache without a price costs as input.

        Raises:
            InvalidInputError: it is malformed, or has no price for input or output.
        """
        given: dict[str, float] = {}
        for word in text.replace(",", " ").split():
            key, _, number = word.partition("=")
            try:
                price = float(number)
            except ValueError:
                price = -1.0
            if key not in _KEYS or key in given or not (isfinite(price) and price >= 0):
                raise errors.InvalidInputError(
                    f"not a price: {word[:80]!r} (expected input=3 output=15 cache_read=0.3 cache_write=3.75)",
                    value=text,
                )
            given[key] = price
        if "input" not in given or "output" not in given:
            raise errors.InvalidInputError(f"no price for input and output: {text[:80]!r}")
        read, write = (given.get(key, given["input"]) for key in _KEYS[2:])
        return cls(given["input"], given["output"], read, write)

    def __str__(self) -> str:
        return " ".join(f"{key}={getattr(self, key):g}" for key in _KEYS)

    def input_cost(self, usage: Mapping[str, object]) -> float:
        """Return the cost of the input that a usage report in normal form counts."""
        total, read, write = (
            _count(usage, key) for key in ("input_total", "cache_read", "cache_write")
        )
        plain = max(0, total - read - write)
        return (plain * self.input + read * self.cache_read + write * self.cache_write) / MILLION

    def output_cost(self, usage: Mapping[str, object]) -> float:
        """Return the cost of the output that a usage report counts."""
        return _count(usage, "output_total") * self.output / MILLION


def price_of(prices: Mapping[str, Price], model: str) -> Price | None:
    """Return the prices of a model: those of the longest name that its own begins with; None without any."""
    names = [name for name in prices if model.startswith(name)]
    return prices[max(names, key=len)] if names else None


def read_prices(environment: Environment) -> dict[str, Price]:
    """Return the prices that the user set, by name of a model.

    Raises:
        FormatError, InvalidInputError: the file is malformed.
        StorageError: it cannot be read.
    """
    if not environment.config_dir:
        return {}
    path = environment.settings_file(FILE_NAME)
    return {name: Price.parse(text) for name, text in _read(path).items()}


def set_price(environment: Environment, model: str, text: str | None) -> None:
    """Set the prices of a model, as `Price.parse` reads them; None removes them.

    Raises:
        InvalidInputError: the name or the prices are malformed.
        FormatError: the file is malformed.
        StateError: the user has no settings folder.
        StorageError: the file cannot be written.
    """
    if not model or len(model) > 200 or not model.isprintable():
        raise errors.InvalidInputError(f"not the name of a model: {model[:80]!r}", value=model)
    path = environment.settings_file(FILE_NAME)
    known = _read(path)
    if text is None:
        known.pop(model, None)
    else:
        known[model] = str(Price.parse(text))
    lines = (f"{config.format_value(k)} = {config.format_value(v)}\n" for k, v in known.items())
    replace_file(Disk(), path, "".join(lines).encode(), durable=False, private=True)


def _read(path: str) -> dict[str, str]:
    data = read_file(Disk(), path, limit=MAXIMUM_BYTES) or b""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise errors.FormatError(f"{path} is not UTF-8", path=path) from error
    return {key: str(value) for key, value in config.parse(text, path).items()}


def _count(usage: Mapping[str, object], key: str) -> int:
    found = usage.get(key)
    return found if isinstance(found, int) else 0

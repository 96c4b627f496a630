"""Usage reports of providers in one normal form.

Providers count differently: Anthropic's three input numbers are disjoint, OpenAI's cached tokens are part of its input,
Gemini's thoughts are not part of its candidates. Only the normal form can be added up or compared.

Pure functions. A report is recognised by its keys alone; missing numbers count as 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from trace_store import errors
from trace_store.base.frozen import fields, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Raw = Mapping[Any, Any]


# Keys under which responses, transcript records and messages keep their usage.
_WRAPPERS = (
    *("usage", "usageMetadata", "usage_metadata", "token_usage", "tokenUsage", "last_token_usage"),
    *("metrics", "tokens", "info", "payload", "message", "response_metadata"),
    *("data", "kwargs", "response"),
)
_WRAPPER_DEPTH = 4
_FEW = 32

_MAXIMUM = (1 << 53) - 1  # larger integers lose precision in JSON readers


@value
class Usage:
    """A usage report in normal form, in tokens.

    Attributes:
        input_total: everything the model read, cached or not.
        cache_read: the part of input_total that came from a cache.
        cache_write: the part of input_total that was written to a cache.
        output_total: everything the model wrote, including reasoning.
        reasoning: the part of output_total that is reasoning.
        source: the format of the report, such as `anthropic` or `openai-chat`.
    """

    input_total: int
    cache_read: int
    cache_write: int
    output_total: int
    reasoning: int
    source: str

    def as_map(self) -> dict[str, int | str]:
        """Return the fields by name; `normalise_usage` accepts them."""
        return {name: getattr(self, name) for name in fields(self)}


def normalise_usage(raw: object) -> Usage:
    """Return a provider's usage report in normal form.

    Args:
        raw: a mapping, or an object of a provider's library; the report itself or a response that contains it. Known:
            OpenAI chat completions and responses, Anthropic, Gemini (both spellings), Codex, Gemini CLI, opencode,
            LangChain, OpenTelemetry, ATIF, and the normal form.

    Raises:
        InvalidInputError: the form is unknown, or a number is negative or not an integer.
    """
    shape = as_mapping(raw)
    for _ in range(_WRAPPER_DEPTH):
        if shape is None:
            break
        known = _known_by_keys(tuple(shape)) if len(shape) <= _FEW else None
        if known is not None:
            return known(shape)
        for recognises, convert in _SHAPES:
            if recognises(shape):
                return convert(shape)
        shape = next((inner for key in _WRAPPERS if (inner := as_mapping(shape.get(key)))), None)
    keys = sorted(map(str, as_mapping(raw) or ()))
    raise errors.InvalidInputError(
        f"not a usage report: {', '.join(keys)[:200] or type(raw).__name__}", keys=keys
    )


@lru_cache(maxsize=256)
def _known_by_keys(keys: tuple[Any, ...]) -> Callable[[Raw], Usage] | None:
    """Return the converter for reports with these keys; None if more than the keys is needed to tell."""
    shape = dict.fromkeys(keys)
    for recognises, convert in _SHAPES:
        if recognises is _is_openai_responses and "output_tokens_details" in shape:
            return None  # depends on the details
        if recognises(shape):
            return convert
    return None


def model_of(raw: object) -> str:
    """Return the model that a response names; "" if there is none, or only usage is given."""
    shape = as_mapping(raw) or {}
    named = (shape.get(key) for key in ("model", "modelVersion", "model_version"))
    return next((name for name in named if isinstance(name, str)), "")


def as_mapping(report: object) -> Raw | None:
    """Return a mapping, or an object's fields as one; None for anything else."""
    if isinstance(report, (dict, Mapping)):
        return report
    if report is None or isinstance(report, type):
        return None
    for method in ("model_dump", "to_dict", "_asdict"):
        dump = getattr(report, method, None)
        if callable(dump):
            dumped = dump()
            return dumped if isinstance(dumped, Mapping) else None
    if isinstance(report, Usage):
        return report.as_map()
    if hasattr(report, "__dataclass_fields__"):
        import dataclasses  # slow to import, and only needed for dataclasses of other libraries

        return {each.name: getattr(report, each.name) for each in dataclasses.fields(report)}  # type: ignore[arg-type]
    attributes = getattr(report, "__dict__", None)
    return attributes if isinstance(attributes, dict) else None


def _number(shape: Raw, *paths: str) -> int:
    """Return the first number that is present and not null, or 0; `a/b` is the key b in the mapping a."""
    for path in paths:
        holder, _, key = path.rpartition("/")
        number = (_inner(shape, holder) if holder else shape).get(key)
        if number is None:
            continue
        if type(number) is not int or not 0 <= number <= _MAXIMUM:
            raise errors.InvalidInputError(
                f"the usage field {key} is {number!r:.80}, not a number of tokens", field=key
            )
        return number
    return 0


def _inner(shape: Raw, key: str) -> Raw:
    """Return the mapping under a key, or an empty one."""
    return as_mapping(shape.get(key)) or {}


def _format(
    source: str,
    input_total: str,
    cache_read: str,
    cache_write: str,
    output: str,
    reasoning: str,
    *,
    tool_input: str = "",
) -> Callable[[Raw], Usage]:
    """Return the converter of a format, from the paths of its numbers.

    Alternatives are separated by spaces. With `tool_input`, the input of tools and the reasoning are not part of the
    other numbers, and are added to them.
    """
    given = (input_total, cache_read, cache_write, output, reasoning, tool_input)
    paths = [each.split() for each in given]

    def convert(shape: Raw) -> Usage:
        prompt, read, write, said, thoughts, tool = (_number(shape, *each) for each in paths)
        said += thoughts if tool_input else 0
        return Usage(prompt + tool, read, write, said, thoughts, source)

    return convert


def _output_total(output: int, reasoning: int, input_total: int, total: int) -> int:
    """Return the output including reasoning, for formats in which output may or may not include it.

    It does not if the reported total says so, or if reasoning is larger than output.
    """
    beside = reasoning > output or (reasoning and total == input_total + output + reasoning)
    return output + reasoning if beside else output


def _normal(shape: Raw) -> Usage:
    source = shape.get("source")
    name = source if isinstance(source, str) and source else "normal"
    return _format(name, *fields(Usage)[:-1])(shape)


def _opencode(shape: Raw) -> Usage:
    read, write = _number(shape, "cache/read"), _number(shape, "cache/write")
    prompt = _number(shape, "input") + read + write
    reasoning = _number(shape, "reasoning")
    output = _output_total(_number(shape, "output"), reasoning, prompt, _number(shape, "total"))
    return Usage(prompt, read, write, output, reasoning, "opencode")


def _openai_chat(shape: Raw) -> Usage:
    details = "prompt_tokens_details/"
    read = _number(shape, details + "cached_tokens") or _number(
        shape, "cached_tokens", "prompt_cache_hit_tokens", "cache_read_input_tokens"
    )
    write = _number(shape, details + "cache_write_tokens")
    write = write or _number(shape, "cache_creation_input_tokens")
    prompt, output = _number(shape, "prompt_tokens"), _number(shape, "completion_tokens")
    reasoning = _number(shape, "completion_tokens_details/reasoning_tokens", "reasoning_tokens")
    output = _output_total(output, reasoning, prompt, _number(shape, "total_tokens"))
    source = "atif" if "cached_tokens" in shape or "cost_usd" in shape else "openai-chat"
    return Usage(prompt, read, write, output, reasoning, source)


def _anthropic(shape: Raw) -> Usage:
    read = _number(shape, "cache_read_input_tokens")
    # Older records have only the sum, and some have only the two lifetimes.
    write = _number(shape, "cache_creation_input_tokens") or sum(
        _number(shape, f"cache_creation/ephemeral_{each}_input_tokens") for each in ("5m", "1h")
    )
    prompt, output = _number(shape, "input_tokens"), _number(shape, "output_tokens")
    reasoning = _number(shape, "output_tokens_details/thinking_tokens")
    return Usage(prompt + read + write, read, write, output, reasoning, "anthropic")


def _is_openai_responses(shape: Raw) -> bool:
    """Return True for this format, as opposed to Anthropic's, which has the same two main keys and no total."""
    reasoning = "reasoning_tokens" in _inner(shape, "output_tokens_details")
    return _has("input_tokens", "output_tokens")(shape) and (
        reasoning or _has("total_tokens", "input_tokens_details")(shape)
    )


def _has(*keys: str) -> Callable[[Raw], bool]:
    """Return a test for any of the keys; null values count."""
    wanted = frozenset(keys)
    return lambda shape: not wanted.isdisjoint(shape)


def _is_otel(shape: Raw) -> bool:
    return any(isinstance(key, str) and key.startswith("gen_ai.usage.") for key in shape)


_GEN_AI = "gen_ai.usage."

_SHAPES: tuple[tuple[Callable[[Raw], bool], Callable[[Raw], Usage]], ...] = (
    (_has("input_total", "output_total"), _normal),
    (
        _is_otel,
        _format(
            "otel",
            f"{_GEN_AI}input_tokens {_GEN_AI}prompt_tokens",
            f"{_GEN_AI}cache_read.input_tokens",
            f"{_GEN_AI}cache_creation.input_tokens",
            f"{_GEN_AI}output_tokens {_GEN_AI}completion_tokens",
            f"{_GEN_AI}reasoning.output_tokens",
        ),
    ),
    (
        _has(
            *("promptTokenCount", "candidatesTokenCount", "totalTokenCount", "responseTokenCount"),
            *("prompt_token_count", "candidates_token_count", "total_token_count"),
            *("thoughtsTokenCount", "thoughts_token_count", "response_token_count"),
        ),
        _format(
            "gemini",
            "promptTokenCount prompt_token_count",
            "cachedContentTokenCount cached_content_token_count",
            "",
            "candidatesTokenCount candidates_token_count responseTokenCount response_token_count",
            "thoughtsTokenCount thoughts_token_count",
            tool_input="toolUsePromptTokenCount tool_use_prompt_token_count",
        ),
    ),
    (_has("prompt_tokens", "completion_tokens"), _openai_chat),
    (
        _has("cached_input_tokens", "reasoning_output_tokens"),
        _format(
            *("codex", "input_tokens", "cached_input_tokens", "cache_write_input_tokens"),
            *("output_tokens", "reasoning_output_tokens"),
        ),
    ),
    (
        _has("input_token_details", "output_token_details"),
        _format(
            *("langchain", "input_tokens", "input_token_details/cache_read"),
            *("input_token_details/cache_creation", "output_tokens"),
            "output_token_details/reasoning",
        ),
    ),
    (_has("cache_read_input_tokens", "cache_creation_input_tokens"), _anthropic),
    (
        _is_openai_responses,
        _format(
            *("openai-responses", "input_tokens", "input_tokens_details/cached_tokens"),
            *("input_tokens_details/cache_write_tokens", "output_tokens"),
            "output_tokens_details/reasoning_tokens",
        ),
    ),
    (_has("input_tokens", "output_tokens"), _anthropic),
    # Generic keys, so all of them are required.
    (lambda shape: _has("input", "output")(shape) and _has("cache")(shape), _opencode),
    (
        lambda shape: _has("input", "output")(shape) and _has("cached", "thoughts", "tool")(shape),
        _format("gemini-cli", "input", "cached", "", "output", "thoughts", tool_input="tool"),
    ),
)

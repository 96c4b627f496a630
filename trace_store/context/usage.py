"""Usage reports of providers in one normal form.

Providers count differently: Anthropic's three input numbers are disjoint, OpenAI's cached tokens are part of its input,
Gemini's thoughts are not part of its candidates. Only the normal form can be added up or compared.

Pure functions. A report is recognised by its keys alone; missing numbers count as 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from trace_store import errors
from trace_store.frozen import fields, value

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


def as_mapping(told: object) -> Raw | None:
    """Return a mapping, or an object's fields as one; None for anything else."""
    if isinstance(told, (dict, Mapping)):
        return told
    if told is None or isinstance(told, type):
        return None
    for method in ("model_dump", "to_dict", "_asdict"):
        dump = getattr(told, method, None)
        if callable(dump):
            dumped = dump()
            return dumped if isinstance(dumped, Mapping) else None
    if isinstance(told, Usage):
        return told.as_map()
    if hasattr(told, "__dataclass_fields__"):
        import dataclasses  # slow to import, and only needed for dataclasses of other libraries

        return {each.name: getattr(told, each.name) for each in dataclasses.fields(told)}  # type: ignore[arg-type]
    attributes = getattr(told, "__dict__", None)
    return attributes if isinstance(attributes, dict) else None


def _number(shape: Raw, *keys: str) -> int:
    """Return the value of the first key that is present and not null, or 0."""
    for key in keys:
        number = shape.get(key)
        if number is None:
            continue
        if type(number) is not int or not 0 <= number <= _MAXIMUM:
            raise errors.InvalidInputError(
                f"the usage field {key} is {number!r:.80}, not a number of tokens", field=key
            )
        return number
    return 0


def _inner(shape: Raw, *keys: str) -> Raw:
    """Return the mapping under the first key that has one, or an empty one."""
    for key in keys:
        inner = as_mapping(shape.get(key))
        if inner is not None:
            return inner
    return {}


def _output_total(output: int, reasoning: int, input_total: int, total: int) -> int:
    """Return the output including reasoning, for formats in which output may or may not include it.

    It does not if the reported total says so, or if reasoning is larger than output.
    """
    beside = reasoning > output or (reasoning and total == input_total + output + reasoning)
    return output + reasoning if beside else output


def _normal(shape: Raw) -> Usage:
    source = shape.get("source")
    return Usage(
        input_total=_number(shape, "input_total"),
        cache_read=_number(shape, "cache_read"),
        cache_write=_number(shape, "cache_write"),
        output_total=_number(shape, "output_total"),
        reasoning=_number(shape, "reasoning"),
        source=source if isinstance(source, str) and source else "normal",
    )


def _otel(shape: Raw) -> Usage:
    start = "gen_ai.usage."
    return Usage(
        input_total=_number(shape, start + "input_tokens", start + "prompt_tokens"),
        cache_read=_number(shape, start + "cache_read.input_tokens"),
        cache_write=_number(shape, start + "cache_creation.input_tokens"),
        output_total=_number(shape, start + "output_tokens", start + "completion_tokens"),
        reasoning=_number(shape, start + "reasoning.output_tokens"),
        source="otel",
    )


def _gemini(shape: Raw) -> Usage:
    thoughts = _number(shape, "thoughtsTokenCount", "thoughts_token_count")
    prompt = _number(shape, "promptTokenCount", "prompt_token_count")
    tool = _number(shape, "toolUsePromptTokenCount", "tool_use_prompt_token_count")
    candidates = _number(
        shape,
        *("candidatesTokenCount", "candidates_token_count"),
        *("responseTokenCount", "response_token_count"),
    )
    return Usage(
        input_total=prompt + tool,
        cache_read=_number(shape, "cachedContentTokenCount", "cached_content_token_count"),
        cache_write=0,
        output_total=candidates + thoughts,
        reasoning=thoughts,
        source="gemini",
    )


def _gemini_cli(shape: Raw) -> Usage:
    thoughts = _number(shape, "thoughts")
    return Usage(
        input_total=_number(shape, "input") + _number(shape, "tool"),
        cache_read=_number(shape, "cached"),
        cache_write=0,
        output_total=_number(shape, "output") + thoughts,
        reasoning=thoughts,
        source="gemini-cli",
    )


def _opencode(shape: Raw) -> Usage:
    cache = _inner(shape, "cache")
    read, write = _number(cache, "read"), _number(cache, "write")
    input_total = _number(shape, "input") + read + write
    reasoning = _number(shape, "reasoning")
    output = _number(shape, "output")
    return Usage(
        input_total=input_total,
        cache_read=read,
        cache_write=write,
        output_total=_output_total(output, reasoning, input_total, _number(shape, "total")),
        reasoning=reasoning,
        source="opencode",
    )


def _openai_chat(shape: Raw) -> Usage:
    details = _inner(shape, "prompt_tokens_details")
    input_total = _number(shape, "prompt_tokens")
    reasoning = _number({**shape, **_inner(shape, "completion_tokens_details")}, "reasoning_tokens")
    output = _number(shape, "completion_tokens")
    return Usage(
        input_total=input_total,
        cache_read=_number(details, "cached_tokens")
        or _number(shape, "cached_tokens", "prompt_cache_hit_tokens", "cache_read_input_tokens"),
        cache_write=_number(details, "cache_write_tokens")
        or _number(shape, "cache_creation_input_tokens"),
        output_total=_output_total(output, reasoning, input_total, _number(shape, "total_tokens")),
        reasoning=reasoning,
        source="atif" if "cached_tokens" in shape or "cost_usd" in shape else "openai-chat",
    )


def _codex(shape: Raw) -> Usage:
    return Usage(
        input_total=_number(shape, "input_tokens"),
        cache_read=_number(shape, "cached_input_tokens"),
        cache_write=_number(shape, "cache_write_input_tokens"),
        output_total=_number(shape, "output_tokens"),
        reasoning=_number(shape, "reasoning_output_tokens"),
        source="codex",
    )


def _langchain(shape: Raw) -> Usage:
    details = _inner(shape, "input_token_details")
    return Usage(
        input_total=_number(shape, "input_tokens"),
        cache_read=_number(details, "cache_read"),
        cache_write=_number(details, "cache_creation"),
        output_total=_number(shape, "output_tokens"),
        reasoning=_number(_inner(shape, "output_token_details"), "reasoning"),
        source="langchain",
    )


def _openai_responses(shape: Raw) -> Usage:
    details = _inner(shape, "input_tokens_details")
    return Usage(
        input_total=_number(shape, "input_tokens"),
        cache_read=_number(details, "cached_tokens"),
        cache_write=_number(details, "cache_write_tokens"),
        output_total=_number(shape, "output_tokens"),
        reasoning=_number(_inner(shape, "output_tokens_details"), "reasoning_tokens"),
        source="openai-responses",
    )


def _anthropic(shape: Raw) -> Usage:
    lifetimes = _inner(shape, "cache_creation")
    read = _number(shape, "cache_read_input_tokens")
    # Older records have only the sum, and some have only the two lifetimes.
    write = _number(shape, "cache_creation_input_tokens") or (
        _number(lifetimes, "ephemeral_5m_input_tokens")
        + _number(lifetimes, "ephemeral_1h_input_tokens")
    )
    return Usage(
        input_total=_number(shape, "input_tokens") + read + write,
        cache_read=read,
        cache_write=write,
        output_total=_number(shape, "output_tokens"),
        reasoning=_number(_inner(shape, "output_tokens_details"), "thinking_tokens"),
        source="anthropic",
    )


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


_SHAPES: tuple[tuple[Callable[[Raw], bool], Callable[[Raw], Usage]], ...] = (
    (_has("input_total", "output_total"), _normal),
    (_is_otel, _otel),
    (
        _has(
            *("promptTokenCount", "candidatesTokenCount", "totalTokenCount", "responseTokenCount"),
            *("prompt_token_count", "candidates_token_count", "total_token_count"),
            *("thoughtsTokenCount", "thoughts_token_count", "response_token_count"),
        ),
        _gemini,
    ),
    (_has("prompt_tokens", "completion_tokens"), _openai_chat),
    (_has("cached_input_tokens", "reasoning_output_tokens"), _codex),
    (_has("input_token_details", "output_token_details"), _langchain),
    (_has("cache_read_input_tokens", "cache_creation_input_tokens"), _anthropic),
    (_is_openai_responses, _openai_responses),
    (_has("input_tokens", "output_tokens"), _anthropic),
    # Generic keys, so all of them are required.
    (lambda shape: _has("input", "output")(shape) and _has("cache")(shape), _opencode),
    (
        lambda shape: _has("input", "output")(shape) and _has("cached", "thoughts", "tool")(shape),
        _gemini_cli,
    ),
)

"""Token counting of models: an encoding, a factor, and how reliable the result is, also beside a provider's report.

A model's tokens are `count in the encoding × factor`. Sources of the table:

- OpenAI: the encodings that tiktoken names. Text is exact; gpt-5 models were checked on recorded usage of
  1,546 calls (3 to 33 tokens of framing per item beyond the text). Names that tiktoken does not know are
  estimates.
- Anthropic publishes no tokenizer. The factors are actual input and output tokens over o200k_base tokens,
  in recorded code-heavy agent turns, framing included; prose is lower.
      claude-opus-4-5    1.22   n = 782        claude-opus-4-7    1.66   n = 19
      claude-opus-4-6    1.24   n = 2,749      claude-opus-4-8    1.72   n = 99
      claude-sonnet-4-5  1.29   n = 25         claude-fable-5     1.76   n = 236
  Version 4.7 has another tokenizer. So: 1.25 up to 4.6, 1.7 from 4.7 on and without a version.
- Gemini: gemini-2.5-flash, 1.07 (n = 10, too few for a factor): o200k_base unchanged, within about 10 %.
- Others: o200k_base unchanged, with unknown error.

The source of a count is one of these strings:

    exact:ENCODING             the model's own tokenizer, on text
    estimate:ENCODING          another tokenizer's count, unchanged
    estimate:ENCODING*FACTOR   another tokenizer's count, times a measured factor
    custom:NAME                a caller's tokenizer
    provider                   reported by the provider for a request that was sent

Contexts with cached counts need only this module; tokenizers are loaded late.
"""

from __future__ import annotations

from trace_store import errors
from trace_store.base.frozen import value
from trace_store.context.tokens.tokenizer import DEFAULT_ENCODING, ENCODINGS, HEURISTIC_ENCODING
from trace_store.providers.media_tokens import (
    CLAUDE,
    CLAUDE_LARGE,
    GEMINI,
    GEMINI_3,
    MediaRule,
    openai_rule,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from trace_store.context.compile_index import Sums
    from trace_store.context.tokens.tokenizer import Tokenizer


CLAUDE_FACTOR = 1.25
CLAUDE_NEW_FACTOR = 1.7
CLAUDE_NEW_SINCE = (4, 7)

# Model → encoding, and prefixes of model names → encoding: the entries of tiktoken.model with an encoding
# that Trace ships. o200k_harmony differs from o200k_base only in control tokens.
_EXACT_NAMES = {
    **dict.fromkeys(("o1", "o3", "o4-mini", "gpt-5", "gpt-4.1", "gpt-4o"), "o200k_base"),
    **dict.fromkeys(("gpt-4", "gpt-3.5-turbo", "gpt-3.5", "gpt-35-turbo"), "cl100k_base"),
    **dict.fromkeys(("davinci-002", "babbage-002", "text-embedding-ada-002"), "cl100k_base"),
    **dict.fromkeys(("text-embedding-3-small", "text-embedding-3-large"), "cl100k_base"),
}
# Longer prefixes first.
_EXACT_BEGINNINGS = (
    *((start, "o200k_base") for start in ("o1-", "o3-", "o4-mini-", "gpt-5", "gpt-4.5-")),
    *((start, "o200k_base") for start in ("gpt-4.1-", "chatgpt-4o-", "gpt-4o-", "gpt-oss-")),
    *((start, "cl100k_base") for start in ("gpt-4-", "gpt-3.5-turbo-", "gpt-35-turbo-")),
    *((start, "o200k_base") for start in ("ft:gpt-4o", "ft:gpt-4.1")),
    *((start, "cl100k_base") for start in ("ft:gpt-4", "ft:gpt-3.5-turbo")),
    *((start, "cl100k_base") for start in ("ft:davinci-002", "ft:babbage-002")),
)
# claude-opus-4-5-20251101, claude-3-7-sonnet, claude-2.1, claude-3-5-sonnet@20240620; a date is not a version.
_CLAUDE = r"claude-(?:[a-z]+-)*(\d{1,2})(?!\d)(?:[-.](\d{1,2})(?!\d))?"


def describe(model: str = "") -> TokenCounting:
    """Return how the tokens of a model are counted; an unknown or empty name gives an estimate.

    The name may have a gateway's prefix or suffix: `openai/gpt-4o`, `us.anthropic.claude-sonnet-4-5-v1:0`,
    `models/gemini-2.5-pro`.

    Raises:
        InvalidInputError: it is not a string.
    """
    if not isinstance(model, str):
        raise errors.InvalidInputError(f"a model must be a string, not {type(model).__name__}")
    name = model.strip().lower().rpartition("/")[2]
    if "claude" in name:
        factor = _claude_factor(name)
        media = CLAUDE if factor == CLAUDE_FACTOR else CLAUDE_LARGE
        return estimate(DEFAULT_ENCODING, factor, media)
    encoding = _EXACT_NAMES.get(name)
    for start, candidate in _EXACT_BEGINNINGS:
        if encoding is None and name.startswith(start):
            encoding = candidate
    if encoding is not None:
        return TokenCounting(encoding, 1.0, f"exact:{encoding}", openai_rule(name))
    if name.startswith("gemini-"):
        media = GEMINI_3 if name >= "gemini-3" else GEMINI
        return estimate(DEFAULT_ENCODING, 1.0, media)
    return estimate(DEFAULT_ENCODING, 1.0, openai_rule(name) if name.startswith("gpt-") else CLAUDE)


def _claude_factor(name: str) -> float:
    import re  # as slow as a whole command to import; rarely needed

    version = re.search(_CLAUDE, name)
    if version is None:
        return CLAUDE_NEW_FACTOR
    number = (int(version[1]), int(version[2] or 0))
    return CLAUDE_NEW_FACTOR if number >= CLAUDE_NEW_SINCE else CLAUDE_FACTOR


def nearest_model(model: str) -> str | None:
    """Return the known model with the most similar name, "" if there is none; None if the model is known."""
    from difflib import get_close_matches  # slow to load; only needed for an unknown name

    name = model.strip().lower().rpartition("/")[2]
    if not name or "claude" in name or name.startswith("gemini-"):
        return None
    if describe(name).source.startswith("exact:"):
        return None
    known = ["claude-opus-4-5", "claude-sonnet-4-5", "gemini-2.5-pro"]
    known += [*_EXACT_NAMES, *(start.rstrip("-") for start, _ in _EXACT_BEGINNINGS)]
    return next(iter(get_close_matches(name, dict.fromkeys(known), 1, 0.5)), "")


DEFAULT_MEDIA = CLAUDE.name
"""The rule for media of models without one."""
REPLY_TOKENS = 3
"""The start of the reply, once a request; other framing is in `overhead`."""


@value
class TokenCounting:
    """How the tokens of a model are counted.

    Attributes:
        encoding: the encoding.
        factor: the factor for counts; 1.0 if the encoding is the model's own.
        source: the label of the result, as listed in this module's docstring.
        media: how media are counted.
    """

    encoding: str
    factor: float
    source: str
    media: MediaRule = CLAUDE

    @property
    def exact(self) -> bool:
        """Whether counts of text are the model's own."""
        return self.source.startswith("exact:")

    def scale(self, count: int, media: int = 0) -> int:
        """Return the model's tokens for a count in the encoding, `media` of it in the model's own tokens.

        Scale sums, not the parts of a sum.
        """
        return round((count - media) * self.factor) + media

    def scale_each(self, sizes: Iterable[Sums]) -> list[tuple[int, int]]:
        """Return the model's (tokens, text tokens) of each of some messages."""
        scale = self.scale
        return [(scale(total, media), scale(text)) for total, text, media in sizes]

    def counts_like(self, other: TokenCounting) -> bool:
        """Return True if text has the same tokens."""
        return (self.encoding, self.factor) == (other.encoding, other.factor)

    def under(self, tokenizer: Tokenizer) -> TokenCounting:
        """Return the counting of the same model with another tokenizer.

        A built-in tokenizer of another encoding makes the result an estimate; a custom one is not scaled.
        """
        if tokenizer.encoding == self.encoding:
            return self
        if tokenizer.encoding in ENCODINGS or tokenizer.encoding == HEURISTIC_ENCODING:
            return estimate(tokenizer.encoding, self.factor, self.media)
        return TokenCounting(tokenizer.encoding, 1.0, f"custom:{tokenizer.encoding}", self.media)


def estimate(encoding: str, factor: float, media: MediaRule = CLAUDE) -> TokenCounting:
    """Return the counting of a model with another model's encoding."""
    suffix = "" if factor == 1 else f"*{factor:g}"
    return TokenCounting(encoding, factor, f"estimate:{encoding}{suffix}", media)


@value
class MeasuredReport:
    """A provider's report, and the estimate for the same context.

    Attributes:
        commit: the commit that recorded it.
        at: the commit whose context it counts.
        token_count: reported tokens: input, and output if the context is the recording commit's.
        name: the model that answered, or else the provider.
        sums: the tokens of the messages and tools there, not scaled: all, of text, and of media.
    """

    commit: bytes
    at: bytes
    token_count: int
    name: str
    sums: Sums

    def is_credible(self, counting: TokenCounting) -> bool:
        """Return True if it can be about that context.

        It is not if it has fewer tokens than the text, where these are exact, or than half of an estimate: some servers
        report only what was not cached, or nothing.
        """
        if counting.exact:
            return self.token_count >= self.sums[1]
        return 2 * self.token_count >= request_tokens(counting, self.sums)

    def adjusted(self, counting: TokenCounting, sums: Sums) -> int:
        """Return the tokens of a context that followed, by its sums.

        The change of the estimate is added, in the provider's proportion.
        """
        then, now = request_tokens(counting, self.sums), request_tokens(counting, sums)
        return max(0, self.token_count + round((now - then) * self.proportion(counting)))

    def proportion(self, counting: TokenCounting) -> float:
        """Return the provider's count for a token of the estimate, at most 1: the rest is not in messages."""
        then = request_tokens(counting, self.sums)
        return min(1.0, self.token_count / then) if then else 1.0


def request_tokens(counting: TokenCounting, sums: Sums) -> int:
    """Return the tokens of a request with these messages and tools."""
    total, _, media = sums
    return counting.scale(total + REPLY_TOKENS, media) if total else 0

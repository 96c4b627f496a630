"""How tokens of a model follow from a count under an encoding.

Rule: this is all that a context needs whose tokens were counted before. What counts is imported when something is.
"""

from __future__ import annotations

from trace_store.context.tokens.ranks import ENCODINGS
from trace_store.context.tokens.tokenizer import HEURISTIC_ENCODING
from trace_store.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.context.tokens.tokenizer import Tokenizer

REPLY_TOKENS = 3
"""What opens the reply, once for a whole request; what else holds messages together is in `overhead`."""


@value
class TokenCounting:
    """How tokens of a model are counted.

    Attributes:
        encoding: the encoding to count under.
        factor: what to multiply a count by; 1.0 when the encoding is the model's own.
        source: the label of the product, see the head of `models`.
    """

    encoding: str
    factor: float
    source: str

    @property
    def exact(self) -> bool:
        """Whether counts of text are the model's own."""
        return self.source.startswith("exact:")

    def scale(self, count: int) -> int:
        """Return the model's tokens for a count under the encoding. Scale sums, not the parts of a sum."""
        return round(count * self.factor)

    def under(self, tokenizer: Tokenizer) -> TokenCounting:
        """Return the counting of the same model by whatever tokenizer is at hand.

        It is the same when the tokenizer has the same encoding. A built-in one of another encoding makes an
        estimate of it; the count of a caller's own stands as it is, unscaled.
        """
        if tokenizer.encoding == self.encoding:
            return self
        if tokenizer.encoding in ENCODINGS or tokenizer.encoding == HEURISTIC_ENCODING:
            return estimate(tokenizer.encoding, self.factor)
        return TokenCounting(tokenizer.encoding, 1.0, f"custom:{tokenizer.encoding}")


def estimate(encoding: str, factor: float) -> TokenCounting:
    """Return the counting of a model by another's encoding."""
    suffix = "" if factor == 1 else f"*{factor:g}"
    return TokenCounting(encoding, factor, f"estimate:{encoding}{suffix}")

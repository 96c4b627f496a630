"""The encoding of each model, and the precision of its counts."""

from __future__ import annotations

import pytest
from tiktoken.model import MODEL_PREFIX_TO_ENCODING, MODEL_TO_ENCODING

from trace_store.context.tokens.models import TokenCounting, describe
from trace_store.context.tokens.tokenizer import CallableTokenizer, get_tokenizer

SHIPPED = {"o200k_base": "o200k_base", "cl100k_base": "cl100k_base", "o200k_harmony": "o200k_base"}
KNOWN_TO_TIKTOKEN = sorted(
    (model, SHIPPED[encoding])
    for model, encoding in {
        **MODEL_TO_ENCODING,
        **{f"{start}2030-01-01": encoding for start, encoding in MODEL_PREFIX_TO_ENCODING.items()},
    }.items()
    if encoding in SHIPPED
)


def without_media(counting: TokenCounting) -> TokenCounting:
    """Return how text is counted."""
    return TokenCounting(counting.encoding, counting.factor, counting.source)


@pytest.mark.parametrize(("model", "encoding"), KNOWN_TO_TIKTOKEN)
def test_models_that_tiktoken_knows_are_exact(model: str, encoding: str) -> None:
    assert without_media(describe(model)) == TokenCounting(encoding, 1.0, f"exact:{encoding}")
    assert describe(model).exact


@pytest.mark.parametrize("model", ["gpt-5.6-sol", "openai/gpt-4o", "GPT-4o", "azure/gpt-5-mini"])
def test_names_in_other_dress_are_exact(model: str) -> None:
    assert describe(model).source == "exact:o200k_base"


def test_fine_tuned_gpt_4_1_uses_the_encoding_of_its_base() -> None:
    assert describe("ft:gpt-4.1-mini:org::id").encoding == describe("gpt-4.1-mini").encoding


@pytest.mark.parametrize(
    "model",
    [
        *("claude-opus-4-5-20251101", "claude-opus-4-6", "claude-sonnet-4-20250514"),
        *("claude-haiku-4-5", "claude-3-5-sonnet-20241022", "claude-3.7-sonnet", "claude-2.1"),
        *("claude-instant-1.2", "us.anthropic.claude-3-5-sonnet-20241022-v2:0"),
        *("claude-3-5-sonnet@20240620", "anthropic/claude-sonnet-4.5", "claude-opus-4-1-20250805"),
    ],
)
def test_claude_up_to_4_6(model: str) -> None:
    assert without_media(describe(model)) == TokenCounting(
        "o200k_base", 1.25, "estimate:o200k_base*1.25"
    )


@pytest.mark.parametrize(
    "model",
    [
        *("claude-opus-4-7", "claude-opus-4-8-20260401", "claude-sonnet-5", "claude-fable-5"),
        *("claude-opus-5-20260801", "anthropic/claude-mythos-5", "claude-opus-4-10"),
        *("global.anthropic.claude-opus-4-7-v1:0", "claude"),
    ],
)
def test_claude_from_4_7_on_or_without_a_version(model: str) -> None:
    assert without_media(describe(model)) == TokenCounting(
        "o200k_base", 1.7, "estimate:o200k_base*1.7"
    )


@pytest.mark.parametrize(
    "model",
    [
        *("gemini-2.5-flash", "models/gemini-3-pro-preview", "llama-4", "grok-4", "gpt-6", ""),
        *("o1000", "gpt-4turbo", "text-davinci-003"),
    ],
)
def test_everything_else_is_an_estimate(model: str) -> None:
    assert without_media(describe(model)) == TokenCounting("o200k_base", 1.0, "estimate:o200k_base")
    assert not describe(model).exact


def test_scale_rounds_a_sum_once() -> None:
    assert describe("gpt-5").scale(12_345) == 12_345
    assert describe("claude-opus-4-6").scale(1_001) == 1_251
    assert describe("claude-opus-5").scale(0) == 0


def test_counting_by_another_tokenizer_says_so() -> None:
    words = CallableTokenizer("words", lambda text: len(text.split()))
    claude, gpt = describe("claude-opus-5"), describe("gpt-5")
    assert gpt.under(get_tokenizer()) is gpt
    assert claude.under(get_tokenizer()) is claude
    assert gpt.under(get_tokenizer("cl100k_base")).source == "estimate:cl100k_base"
    assert claude.under(get_tokenizer("cl100k_base")).source == "estimate:cl100k_base*1.7"
    assert gpt.under(get_tokenizer("bytes-3.6")).source == "estimate:bytes-3.6"
    assert without_media(claude.under(words)) == TokenCounting("words", 1.0, "custom:words")

"""Images and documents that a provider would reject, and token costs of media."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cases.support.inputs import INPUTS
from tests.support.command_line import Run, Trace
from tests.support.pictures import GIF, JPEG, PNG, png
from trace_store import Image, Message, Repo, Text
from trace_store.context.repair_steps import repair_context
from trace_store.providers.media_facts import (
    ANTHROPIC_IMAGES,
    OPENAI_IMAGES,
    image_facts,
    image_fault,
    page_count,
)
from trace_store.providers.media_tokens import CLAUDE, RULES

FILES = sorted(
    path for number in ("11", "12", "14", "16") for path in INPUTS.glob(f"{number}-*/*.jsonl")
)
MENDED = {"img-jpeg-as-png-user", "img-jpeg-as-png-result", "img-dataurl-in-data-user"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_case_11_12_14_16_an_invalid_image_is_a_fault(repository: Trace, path: Path) -> None:
    assert repository("import", str(path)).code == 0
    sound = path.stem == "img-dataurl-in-data-user"  # mended when it is read
    assert repository("compile", "--format", "anthropic", "--strict").code == (0 if sound else 7)
    assert repository("repair", "--dry-run").code == (0 if sound else 7)
    body = json.loads(repository("compile", "--format", "anthropic").text)
    text = json.dumps(body)
    assert ('"type": "image"' in text) is (path.stem in MENDED)
    if path.stem.startswith("img-jpeg-as-png"):
        assert '"media_type": "image/jpeg"' in text


LOCKS = {
    "trailer": b"trailer\n<< /Size 9 /Root 1 0 R /Encrypt 8 0 R >>\n",
    "trailer with the dictionary": b"trailer<</Root 1 0 R/Encrypt<</Filter/Standard>>>>",
    "cross-reference stream": b"9 0 obj <</Type/XRef/Encrypt 8 0 R/Length 0>> stream\nendstream",
}
DOCUMENTS: dict[str, Callable[[dict[str, str]], dict[str, Any]]] = {
    "anthropic": lambda pdf: {"type": "document", "source": {"type": "base64", **pdf}},
    "openai": lambda pdf: {
        "type": "file",
        "file": {"file_data": f"data:{pdf['media_type']};base64,{pdf['data']}"},
    },
    "openai-responses": lambda pdf: {
        "type": "input_file",
        "file_data": f"data:{pdf['media_type']};base64,{pdf['data']}",
    },
    "gemini": lambda pdf: {"inlineData": {"mimeType": pdf["media_type"], "data": pdf["data"]}},
}


@pytest.mark.parametrize("lock", LOCKS.values(), ids=LOCKS)
@pytest.mark.parametrize("form", DOCUMENTS)
def test_an_encrypted_pdf_is_named(
    repository: Trace, tmp_path: Path, form: str, lock: bytes
) -> None:
    def said(pdf: bytes) -> None:
        fields = {"media_type": "application/pdf", "data": base64.b64encode(pdf).decode()}
        message = {
            "role": "user",
            "parts" if form == "gemini" else "content": [
                {"text": "Read."} if form == "gemini" else {"type": "text", "text": "Read."},
                DOCUMENTS[form](fields),
            ],
        }
        file = tmp_path / "messages.json"
        file.write_text(json.dumps([message]), encoding="utf-8")
        assert repository("commit", "--json", "-F", str(file)).code == 0

    said(b"%PDF-1.7\n1 0 obj << /Type /Page >> endobj\ntrailer << /Note (/Encryption) >>")
    assert repository("compile", "--format", form, "--strict").code == 0
    assert repository("repair", "--provider", form, "--dry-run").code == 0
    said(b"%PDF-1.7\n1 0 obj << /Type /Page >> endobj\n" + lock)
    strict = repository("compile", "--format", form, "--strict")
    assert strict.code == 7
    assert "a PDF is encrypted" in strict.err
    sent = repository("compile", "--format", form)
    assert "a PDF is encrypted" in sent.err
    assert "not shown" in sent.text
    found = repository("repair", "--provider", form, "--dry-run")
    assert found.code == 7
    assert "invalid-image: a PDF is encrypted" in found.text
    assert repository("repair", "--provider", form).code == 0
    assert repository("compile", "repaired/main", "--format", form, "--strict").code == 0


def test_case_15_image_jpg_is_a_jpeg(ok: Run) -> None:
    (path,) = INPUTS.glob("15-*/*.jsonl")
    ok("import", str(path))
    assert b'"media_type":"image/jpeg"' in ok("compile", "--format", "anthropic", "--strict").out


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (png(16, 9), ("image/png", 16, 9, True)),
        (PNG[:40], ("image/png", 1, 1, False)),
        (GIF, ("image/gif", 1, 1, True)),
        (JPEG, ("image/jpeg", 3, 2, True)),
        (b"<html>", None),
        (b"", None),
    ],
)
def test_case_11_12_headers_are_read(
    data: bytes, expected: tuple[str, int, int, bool] | None
) -> None:
    facts = image_facts(data)
    found = facts and (facts.media_type, facts.width, facts.height, facts.whole)
    assert found == expected


def test_case_16_limits() -> None:
    assert not image_fault("image/png", png(8_000, 2), ANTHROPIC_IMAGES)
    assert "8,001 by 2 pixels" in image_fault("image/png", png(8_001, 2), ANTHROPIC_IMAGES)
    heavy = PNG[:-12] + b"\0" * 4_000_000 + PNG[-12:]
    assert "bytes" in image_fault("image/png", heavy, ANTHROPIC_IMAGES)
    assert not image_fault("image/png", heavy, OPENAI_IMAGES)


@pytest.mark.parametrize(("count", "wrong"), [(20, False), (21, True)])
def test_case_16_many_images_have_to_be_smaller(count: int, wrong: bool) -> None:
    """Anthropic refuses sides of more than 2,000 pixels in a request with more than 20 images."""
    images = [Image("image/png", png(2_001, 2)), *[Image("image/png", png(100, 2))] * (count - 1)]
    with Repo.memory() as repo:
        repo.commit([Message("user", [Text("look"), *images])])
        context = repo.compile()
        messages = list(context.messages)
        assert bool(repair_context(messages, providers=("anthropic",)).faults) is wrong
        assert not repair_context(messages, providers=("openai", "gemini")).faults
        sent = str(context.to_anthropic())
        assert ("not shown" in sent) is wrong
        assert "not shown" not in str(context.to_openai())


def test_case_40_media_count_by_size_and_pages() -> None:
    pages = b"".join(b"%d 0 obj << /Type /Page >> endobj\n" % n for n in range(3))
    pdf = b"%PDF-1.7\n" + pages + b"x" * 300_000
    assert page_count(pdf) == 3
    assert CLAUDE.media_tokens(pdf) == 3 * 2_250
    data = base64.b64encode(pdf).decode()
    source = {"type": "base64", "media_type": "application/pdf", "data": data}
    document = {"type": "document", "source": source}
    forms = [
        {"role": "user", "content": [document]},
        {
            "role": "user",
            "content": [
                {"type": "file", "file": {"file_data": f"data:application/pdf;base64,{data}"}}
            ],
        },
        {"role": "user", "parts": [{"inlineData": {"mimeType": "application/pdf", "data": data}}]},
    ]
    for form in forms:
        with Repo.memory() as repo:
            repo.commit([form])
            assert 6_700 < repo.compile().token_count < 6_900
            assert repo.compile().token_source.startswith("estimate:")


def test_case_40_an_image_counts_by_its_pixels() -> None:
    def tokens(data: bytes) -> int:
        with Repo.memory() as repo:
            repo.commit([Message("user", [Text("x"), Image("image/png", data)])])
            return repo.compile().token_count

    small, large = tokens(png(75, 10)), tokens(png(1_500, 500))
    assert large - small == 1_000 - 1


MODELS = {
    "claude-sonnet-4-5": {(1_000, 1_000): 1_334, (1_920, 1_080): 1_590, (8_000, 100): 42},
    "claude-opus-4-7": {(1_000, 1_000): 1_334, (1_920, 1_080): 2_765, (3_000, 2_000): 4_784},
    "gpt-4o": {(1_000, 1_000): 765, (200, 200): 255, (2_048, 4_096): 1_105},
    "gpt-5": {(1_000, 1_000): 630},
    "gpt-4o-mini": {(1_000, 1_000): 25_501},
    "gpt-4.1-mini": {(1_024, 1_024): 1_659},
    "o3": {(1_000, 1_000): 675},
    "gemini-2.5-pro": {(300, 300): 258, (1_000, 1_000): 1_032, (960, 540): 1_548},
    "gemini-3-pro": {(1_000, 1_000): 1_120},
}


@pytest.mark.parametrize("model", MODELS)
def test_an_image_counts_by_the_rule_of_the_provider(model: str) -> None:
    """And the factor for text does not apply to it."""
    with Repo.memory() as repo:
        repo.commit([Message("user", [Text("look")])])
        bare = repo.compile(model=model).token_count
        for (width, height), tokens in MODELS[model].items():
            repo.commit([Message("user", [Image("image/png", png(width, height))])])
            now, before = (repo.compile(at, model=model).token_count for at in ("HEAD", "HEAD~1"))
            framing = repo.compile("HEAD~1", model=model).estimated_token_count
            assert abs(now - before - tokens) <= 9, (width, height, now - before)
            assert framing >= bare


def test_an_image_of_unknown_size_counts_as_one_of_a_megapixel() -> None:
    with Repo.memory() as repo:
        repo.commit([Message("user", [Image(url="https://example.org/a.png")])])
        found = {model: repo.compile(model=model).token_count for model in MODELS}
    for model, expected in MODELS.items():
        if (1_000, 1_000) in expected:
            assert abs(found[model] - expected[1_000, 1_000]) <= 16


def test_rules_have_names_for_files() -> None:
    assert len({rule.name for rule in RULES.values()}) == len(RULES)
    assert all(name.replace("-", "").isalnum() and name.islower() for name in RULES)

"""Images and documents that a provider would reject, and token costs of media."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from tests.cases.support.inputs import INPUTS
from tests.support.command_line import Run, Trace
from tests.support.pictures import GIF, JPEG, PNG, png
from trace_store import Image, Message, Repo, Text
from trace_store.context.repair import repair_context
from trace_store.providers.media_facts import (
    ANTHROPIC_IMAGES,
    OPENAI_IMAGES,
    image_facts,
    image_fault,
    media_tokens,
    page_count,
)

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
    assert media_tokens(pdf) == 3 * 2_250
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

"""Simulated provider: counts the estimate times a factor, with noise for each message, plus its own prompt."""

from __future__ import annotations

from trace_store.base.oid import digest
from trace_store.sessions.requests import SessionRequest


class Provider:
    def __init__(self, factor: float = 1.35, prompt: int = 3_000, noise: float = 0.15) -> None:
        self.factor = factor
        self.prompt = prompt
        self.noise = noise

    def count(self, request: SessionRequest) -> int:
        total = float(self.prompt)
        for key, size in request.sizes.items():
            share = digest(f"{key}{size}".encode())[0] / 255  # the same for the same message
            total += size * self.factor * (1 + self.noise * (2 * share - 1))
        return int(total)

    def usage(self, request: SessionRequest) -> dict[str, int]:
        return {"input_tokens": self.count(request), "output_tokens": 1}

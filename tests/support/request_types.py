"""The official packages' own types, made strict: unknown keys are refused, lists are looked into."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from types import ModuleType
from typing import Any

import anthropic.types
import openai.types.chat
import openai.types.shared_params
import typing_extensions
from pydantic import BaseModel, ConfigDict, TypeAdapter


@functools.cache
def anthropic_request() -> TypeAdapter[Any]:
    """The parameters of `client.messages.create`."""
    forbid_extras(anthropic.types)
    return TypeAdapter(anthropic.types.message_create_params.MessageCreateParamsNonStreaming)


@functools.cache
def openai_request() -> TypeAdapter[Any]:
    """The parameters of `client.chat.completions.create`."""
    forbid_extras(openai.types.chat)
    forbid_extras(openai.types.shared_params)
    return TypeAdapter(
        openai.types.chat.completion_create_params.CompletionCreateParamsNonStreaming
    )


def validate_anthropic(request: dict[str, Any]) -> None:
    """Raise ValueError when the official types refuse the request."""
    full = {"model": "claude-opus-4-6", "max_tokens": 1024, **request}
    exhaust(anthropic_request().validate_python(full, strict=True))


def validate_openai(request: dict[str, Any]) -> None:
    """Raise ValueError when the official types refuse the request."""
    exhaust(openai_request().validate_python({"model": "gpt-5", **request}, strict=True))


def forbid_extras(package: ModuleType) -> None:
    """Make the typed dictionaries of a package refuse keys they do not name.

    pydantic ignores such keys otherwise, and a misspelt one would pass.
    """
    for module in vars(package).values():
        if not isinstance(module, ModuleType) or not module.__name__.startswith(package.__name__):
            continue
        for value in vars(module).values():
            if typing_extensions.is_typeddict(value) and not hasattr(value, "__pydantic_config__"):
                value.__pydantic_config__ = ConfigDict(extra="forbid")


def exhaust(value: object) -> None:
    """Walk a validated value: pydantic checks the items of an Iterable only when they are asked for."""
    if isinstance(value, BaseModel):
        # Blocks of a response are accepted as well, and those take any key.
        if value.model_extra:
            raise ValueError(f"unknown keys {sorted(value.model_extra)} in {value!r}")
        exhaust(vars(value))
    elif isinstance(value, dict):
        for item in value.values():
            exhaust(item)
    elif isinstance(value, Iterable) and not isinstance(value, str | bytes):
        for item in value:
            exhaust(item)

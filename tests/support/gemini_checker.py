"""What Gemini demands of a request, said a second time and without Trace.

Rule: as in `request_checker.py`: nothing of Trace is imported, and an empty list means the provider would take it.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from typing import Any

from tests.support.request_checker import check_json

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,127}")
DATA = (
    *("text", "inlineData", "fileData", "functionCall", "functionResponse"),
    *("executableCode", "codeExecutionResult", "toolCall", "toolResponse"),
)
BESIDE = ("thought", "thoughtSignature", "videoMetadata", "mediaResolution")
MODEL_ONLY = (
    *("functionCall", "executableCode", "codeExecutionResult", "toolCall", "toolResponse"),
)
IMAGES = ("image/png", "image/jpeg", "image/webp", "image/heic", "image/heif")


def check_gemini(request: Any, *, signed: bool = True) -> list[str]:
    """Name each rule of Gemini's that the request breaks, and where.

    Args:
        request: the body of `generateContent`.
        signed: whether it goes to Gemini 3 or later, which refuses calls without a signature.
    """
    found = list(check_json(request))
    for index, part in enumerate(request.get("systemInstruction", {}).get("parts", [])):
        if list(part) != ["text"] or not part["text"]:
            found.append(f"systemInstruction.parts[{index}]: takes text only")
    contents = request.get("contents")
    if not isinstance(contents, list) or not contents:
        return [*found, "contents: must be a list with at least one content"]
    if contents[0].get("role") != "user":
        found.append("contents[0]: the first content must be the user's")
    used: set[str] = set()
    waiting: list[dict[str, Any]] = []
    for index, content in enumerate(contents):
        where, role, parts = f"contents[{index}]", content.get("role"), content.get("parts")
        if role not in ("user", "model"):
            found.append(f"{where}: unknown role {role!r}")
            continue
        if not isinstance(parts, list) or not parts:
            found.append(f"{where}: must have at least one part")
            continue
        if role == "model" and index and contents[index - 1].get("role") == role:
            found.append(f"{where}: the model speaks twice in a row")
        for number, part in enumerate(parts):
            found += check_part(part, role, f"{where}.parts[{number}]")
        found += responses(parts, waiting, where)
        waiting = [part["functionCall"] for part in parts if "functionCall" in part]
        found += calls(waiting, used, where)
        first = next((part for part in parts if "functionCall" in part), {"thoughtSignature": ""})
        if signed and "thoughtSignature" not in first:
            found.append(f"{where}: the first call has no signature")
    if waiting:
        found.append(f"contents: {len(waiting)} calls are not answered at the end")
    return found + list(tools(request))


def check_part(part: dict[str, Any], role: str, place: str) -> Iterator[str]:
    kinds = [key for key in part if key in DATA]
    unknown = [key for key in part if key not in (*DATA, *BESIDE)]
    if len(kinds) != 1 or unknown:
        yield f"{place}: holds {sorted(part)}, not one kind of data"
        return
    if role != "model" and (kinds[0] in MODEL_ONLY or {"thought", "thoughtSignature"} & set(part)):
        yield f"{place}: only the model's content holds {sorted(part)}"
    if "thoughtSignature" in part and not is_base64(part["thoughtSignature"]):
        yield f"{place}: the signature is not base64"
    if "text" in part:
        if not isinstance(part["text"], str):
            yield f"{place}: text is not text"
        elif not part["text"] and "thoughtSignature" not in part:
            yield f"{place}: text is empty"
    if "inlineData" in part or "fileData" in part:
        yield from medium(part, place)


def medium(part: dict[str, Any], place: str) -> Iterator[str]:
    inline, file = part.get("inlineData"), part.get("fileData")
    if inline is not None:
        kind = str(inline.get("mimeType"))
        if kind.startswith("image/") and kind not in IMAGES:
            yield f"{place}: not an image that models take"
        if not inline.get("data") or not is_base64(inline["data"]):
            yield f"{place}: the data is not base64"
    elif not re.match(r"https?://|gs://", str(file and file.get("fileUri"))):
        yield f"{place}: a file has an address"


def calls(made: list[dict[str, Any]], used: set[str], where: str) -> Iterator[str]:
    for call in made:
        id_ = call.get("id")
        if not isinstance(id_, str) or not id_ or id_ in used:
            yield f"{where}: id {id_!r} is empty or used twice"
        used.add(str(id_))
        if not NAME.fullmatch(str(call.get("name"))):
            yield f"{where}: {call.get('name')!r} is no name of a function"
        if not isinstance(call.get("args"), dict):
            yield f"{where}: args must be an object"


def responses(parts: list[Any], waiting: list[dict[str, Any]], where: str) -> Iterator[str]:
    """Responses are in their own content, right after the calls, one for each."""
    made = [part["functionResponse"] for part in parts if "functionResponse" in part]
    if made and len(made) != len(parts):
        yield f"{where}: responses and other parts in one content"
    if len(made) != len(waiting):
        yield f"{where}: {len(waiting)} calls before it, {len(made)} responses"
    names = sorted((str(call.get("id")), str(call.get("name"))) for call in waiting)
    if made and sorted((str(r.get("id")), str(r.get("name"))) for r in made) != names:
        yield f"{where}: the responses are not those of the calls before it"
    for response in made:
        yield from output(response, where)


def output(response: dict[str, Any], where: str) -> Iterator[str]:
    said = response.get("response")
    if not isinstance(said, dict) or list(said) not in (["output"], ["error"]):
        yield f"{where}: a response is an output or an error"
        return
    (value,) = said.values()
    pieces = value if isinstance(value, list) else [value]
    named: list[str] = []
    for part in response.get("parts", []):
        ((_, fields),) = part.items()
        named.append(fields.get("displayName"))
        yield from medium(part, where)
    if sorted(p["$ref"] for p in pieces if isinstance(p, dict)) != sorted(set(named)):
        yield f"{where}: a response refers to each of its parts"


def tools(request: dict[str, Any]) -> Iterator[str]:
    if request.get("tools") == []:
        yield "tools: an empty list"
    for tool in request.get("tools", []):
        for function in tool.get("functionDeclarations", []):
            if not NAME.fullmatch(str(function.get("name"))):
                yield f"tools: {function.get('name')!r} is no name of a function"
            if {"parameters", "parametersJsonSchema"} <= set(function):
                yield f"tools: {function['name']!r} has two schemas"
            schema = function.get("parametersJsonSchema", {})
            if not isinstance(schema, dict):
                yield f"tools: the schema of {function['name']!r} is none"


def is_base64(text: Any) -> bool:
    """Either alphabet will do, but not both; with its padding or without, but not with half of it."""
    if not isinstance(text, str) or not text.isascii():
        return False
    if set(text) & set("-_") and set(text) & set("+/"):
        return False
    plain = text.replace("-", "+").replace("_", "/")
    if "=" not in plain:
        plain += "=" * (-len(plain) % 4)
    try:
        return base64.b64encode(base64.b64decode(plain, validate=True)) == plain.encode()
    except ValueError:
        return False

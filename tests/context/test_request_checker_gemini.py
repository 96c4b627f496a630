"""The separate checker of Gemini's requests rejects a broken example of each rule, and takes sound ones."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.context.test_request_checker import Change, Request, assert_rejected
from tests.support.gemini_checker import check_gemini
from tests.support.request_types import validate_gemini


def call(id: str, name: str = "Bash") -> Request:
    return {"functionCall": {"id": id, "name": name, "args": {}}}


def response(id: str, said: Any = "two", **more: Any) -> Request:
    fields = {"id": id, "name": "Bash", "response": {"output": said}}
    return {"functionResponse": {**fields, **more}}


def request() -> Request:
    png = {"mimeType": "image/png", "data": "AAAA"}
    signed = {**call("a"), "thoughtSignature": "CiQB"}
    parts = [{"inlineData": {**png, "displayName": "part-1"}}]
    return {
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "contents": [
            {"role": "user", "parts": [{"text": "List them."}, {"inlineData": png}]},
            {"role": "model", "parts": [{"text": "Hm.", "thought": True}, signed, call("b")]},
            {
                "role": "user",
                "parts": [
                    response("a", ["two", {"$ref": "part-1"}], parts=parts),
                    response("b"),
                ],
            },
            {"role": "user", "parts": [{"text": "Go on."}]},
            {"role": "model", "parts": [{"text": "Two."}]},
        ],
        "tools": [
            {
                "functionDeclarations": [
                    {"name": "Bash", "parametersJsonSchema": {"type": "object"}}
                ]
            },
            {"googleSearch": {}},
        ],
    }


FAULTS: dict[str, tuple[str, Change]] = {
    "no contents": ("at least one content", lambda c, r: c.clear()),
    "unknown role": ("unknown role", lambda c, r: c[3].update(role="system")),
    "model first": ("must be the user's", lambda c, r: c.pop(0)),
    "model twice": ("twice in a row", lambda c, r: c.append(copy.deepcopy(c[4]))),
    "no parts": ("at least one part", lambda c, r: c[3].update(parts=[])),
    "parts as text": ("at least one part", lambda c, r: c[3].update(parts="Go on.")),
    "two data in a part": ("not one kind", lambda c, r: c[0]["parts"][1].update(text="x")),
    "no data in a part": ("not one kind", lambda c, r: c[4]["parts"].append({"thought": True})),
    "snake case": ("not one kind", lambda c, r: c[4]["parts"].append({"inline_data": {}})),
    "empty text": ("text is empty", lambda c, r: c[4]["parts"].append({"text": ""})),
    "text is no text": ("is not text", lambda c, r: c[4]["parts"].append({"text": 1})),
    "user thinks": ("only the model", lambda c, r: c[0]["parts"][0].update(thought=True)),
    "user signs": ("only the model", lambda c, r: c[0]["parts"][0].update(thoughtSignature="AA")),
    "user calls": ("only the model", lambda c, r: c[0]["parts"].append(call("z"))),
    "signature": ("not base64", lambda c, r: c[1]["parts"][1].update(thoughtSignature="?")),
    "unsigned call": ("no signature", lambda c, r: c[1]["parts"][1].pop("thoughtSignature")),
    "orphan call": ("2 calls before it, 1 responses", lambda c, r: c[2]["parts"].pop()),
    "orphan response": ("1 calls before it, 2 responses", lambda c, r: c[1]["parts"].pop()),
    "response of another": (
        "not those of the calls",
        lambda c, r: c[2]["parts"][1]["functionResponse"].update(id="c"),
    ),
    "response of another name": (
        "not those of the calls",
        lambda c, r: c[2]["parts"][1]["functionResponse"].update(name="read"),
    ),
    "open call at the end": ("at the end", lambda c, r: c.__delitem__(slice(2, 5))),
    "something between": (
        "2 calls before it, 0 responses",
        lambda c, r: c.insert(2, {"role": "user", "parts": [{"text": "hurry"}]}),
    ),
    "text beside responses": (
        "in one content",
        lambda c, r: c[2]["parts"].append({"text": "Go on."}),
    ),
    "an id twice": (
        "used twice",
        lambda c, r: c.extend([c[3], c[1], c[2]]),
    ),
    "empty id": (
        "empty or used twice",
        lambda c, r: c[1]["parts"][1]["functionCall"].update(id=""),
    ),
    "args": ("must be an object", lambda c, r: c[1]["parts"][1]["functionCall"].update(args="{}")),
    "name of call": (
        "no name of a function",
        lambda c, r: c[1]["parts"][1]["functionCall"].update(name="1st"),
    ),
    "response is no output": (
        "an output or an error",
        lambda c, r: c[2]["parts"][1]["functionResponse"].update(response={"result": 1}),
    ),
    "reference to nothing": (
        "refers to each of its parts",
        lambda c, r: c[2]["parts"][0]["functionResponse"].pop("parts"),
    ),
    "part without reference": (
        "refers to each of its parts",
        lambda c, r: c[2]["parts"][0]["functionResponse"]["response"].update(output="two"),
    ),
    "image of unknown type": (
        "not an image",
        lambda c, r: c[0]["parts"][1]["inlineData"].update(mimeType="image/gif"),
    ),
    "image without data": (
        "the data is not base64",
        lambda c, r: c[0]["parts"][1]["inlineData"].update(data=""),
    ),
    "file without address": (
        "has an address",
        lambda c, r: c[0]["parts"].append(
            {"fileData": {"mimeType": "a/b", "fileUri": "file:///a"}}
        ),
    ),
    "image of the system": (
        "takes text only",
        lambda c, r: r["systemInstruction"]["parts"].append(c[0]["parts"][1]),
    ),
    "name of tool": (
        "no name of a function",
        lambda c, r: r["tools"][0]["functionDeclarations"][0].update(name="read file"),
    ),
    "two schemas": (
        "has two schemas",
        lambda c, r: r["tools"][0]["functionDeclarations"][0].update(parameters={}),
    ),
    "schema is none": (
        "is none",
        lambda c, r: r["tools"][0]["functionDeclarations"][0].update(parametersJsonSchema="{}"),
    ),
    "empty tools": ("an empty list", lambda c, r: r.update(tools=[])),
    "surrogate": ("lone surrogates", lambda c, r: c[4].update(parts=[{"text": "\ud83d"}])),
}


def test_a_sound_request_passes() -> None:
    assert check_gemini(request()) == []
    validate_gemini(request())
    unsigned = request()
    del unsigned["contents"][1]["parts"][1]["thoughtSignature"]
    assert check_gemini(unsigned, signed=False) == []


@pytest.mark.parametrize("fault", FAULTS)
def test_a_broken_request_is_rejected(fault: str) -> None:
    assert_rejected(FAULTS[fault], request(), "contents", check_gemini)


@pytest.mark.parametrize(
    "change",
    [
        lambda c, r: c[0].update(speaker="ada"),
        lambda c, r: c[0]["parts"][0].update(colour="red"),
        lambda c, r: c[0]["parts"][0].update(text=1),
        lambda c, r: c[0]["parts"][1]["inlineData"].update(data="?"),
        lambda c, r: c[1]["parts"][1]["functionCall"].update(args=[]),
        lambda c, r: r.update(system={}),
        lambda c, r: r["tools"][0].update(functions=[]),
    ],
)
def test_the_official_types_look_into_everything(change: Change) -> None:
    broken = request()
    change(broken["contents"], broken)
    with pytest.raises(ValueError, match=r"."):
        validate_gemini(broken)

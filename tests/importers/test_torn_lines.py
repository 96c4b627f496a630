"""Lines with zeros and torn records, as power cuts and killed writers leave them: whole records are all read."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from trace_store.importers.contract import Skip
from trace_store.importers.input_files import InputLine
from trace_store.importers.json_records import records_of


def record_with(number: int, chosen: random.Random) -> dict[str, Any]:
    blocks = [{"type": "text", "text": f'say "{number}" {{'} for _ in range(chosen.randint(1, 3))]
    message = {
        "role": "user",
        "content": blocks,
        "usage": {"n": number, "list": [1, {"deep": [2]}]},
    }
    return {
        "parentUuid": None,
        "uuid": f"u{number}",
        "message": message,
        "last": chosen.choice([1, None, "x"]),
    }


@pytest.mark.parametrize("seed", range(100))
def test_whole_records_of_a_torn_line(seed: int) -> None:
    chosen = random.Random(seed)
    line, whole = b"", []
    for number in range(chosen.randint(2, 6)):
        record = record_with(number, chosen)
        data = json.dumps(record, separators=chosen.choice([(",", ":"), (", ", ": ")])).encode()
        is_last = number == 5
        if chosen.random() < 0.4 and not is_last:
            line += data[: chosen.randint(1, len(data) - 1)]
        else:
            line += data
            whole.append(record)
        line += b"\0" * chosen.choice([0, 0, 1, 8])
    line += json.dumps(record_with(9, random.Random(9))).encode()
    whole.append(record_with(9, random.Random(9)))
    found = list(records_of(InputLine(1, 0, line, len(line), True)))
    read = [each.data for each in found if not isinstance(each, Skip)]
    # A record torn in its last bytes may be whole in what it says, never less.
    assert [each["uuid"] for each in read if "uuid" in each] == [each["uuid"] for each in whole]
    assert read == whole
    assert len(read) == len(found) or any(isinstance(each, Skip) for each in found)
    for each in found:
        if not isinstance(each, Skip):
            assert json.loads(line[each.offset : each.offset + each.length]) == each.data

"""Records with random values in random places."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import strategies as st

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(min_value=-(2**70), max_value=2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(), max_size=12)
    | st.sampled_from(
        ["", "\ud83d", "\x00", "x" * 5000, "user", "tool", "data:image/png;base64,AA=="]
    )
)
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=6,
)


@st.composite
def anything_in(draw: st.DrawFn, template: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the records with some of the values in them, at whatever depth, exchanged, lost, doubled or moved."""
    records = copy.deepcopy(template)
    for _ in range(draw(st.integers(1, 4))):
        holder: Any = records
        while True:
            places = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
            if not places:
                break
            place = draw(st.sampled_from(places))
            inner = holder[place]
            deeper = isinstance(inner, dict | list) and inner
            if deeper and (holder is records or draw(st.integers(0, 3))):
                holder = inner
                continue
            what = draw(st.sampled_from(["exchange", "exchange", "lose", "double", "move"]))
            if what == "exchange" or holder is records:
                holder[place] = draw(ANYTHING) if holder is not records else holder[place]
            elif what == "lose":
                del holder[place]
            elif what == "double" and isinstance(holder, list):
                holder.insert(place, copy.deepcopy(inner))
            elif what == "move":
                other = draw(st.sampled_from(places))
                holder[place], holder[other] = holder[other], holder[place]
            break
    if draw(st.booleans()):
        records.append(copy.deepcopy(draw(st.sampled_from(records))))
    return records

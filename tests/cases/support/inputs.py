"""Inputs of the cases: situations from public bug reports of other tools, each with its right result.

`pytest tests/cases -v` runs them all. A test is called `test_case_NN_…` after its folder `inputs/NN-name/`.
"""

from __future__ import annotations

from pathlib import Path

INPUTS = Path(__file__).parents[1] / "inputs"


def case(number: str) -> Path:
    """Return the folder of a case's inputs, given its number as in `49`."""
    (folder,) = INPUTS.glob(f"{number}-*")
    return folder

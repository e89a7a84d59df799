"""Compute all cases and write `golden.json`: `python -m tests.golden.record`, or only those that are named.

Only to be run at a state of the package whose numbers are known to be right; the file is what later states are
compared with.
"""

from __future__ import annotations

import hashlib
import json
import math
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from tests.golden.cases import CASES, SKIPPED

GOLDEN = Path(__file__).with_name("golden.json")
KEPT, KEPT_TEXTS = 40, 10  # values of a long list that are kept as they are


def computed(name: str, changed: Callable[[Any], Any] = lambda value: value) -> Any:
    """What a case gives, as it is written: long lists in short, numbers that JSON has no word for as text.

    Parameters
    ----------
    name : str
        The case.
    changed : callable
        Changes the plain data before lists are shortened, such as by old names of keys.
    """
    with warnings.catch_warnings(), threadpool_limits(1):  # sums of several threads may be rounded in another order
        warnings.simplefilter("ignore")
        return written(changed(CASES[name]()))


def written(value: Any) -> Any:
    """Plain data in which long lists are shortened, and NaN and infinity are text."""
    if isinstance(value, dict):
        return {key: written(each) for key, each in value.items()}
    if isinstance(value, list):
        if len(value) > KEPT and not any(isinstance(each, dict | list) for each in value):
            return shortened(value)
        return [written(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def shortened(values: list[Any]) -> dict[str, Any]:
    """The first values of a long list, its length and a digest; of numbers also the exact sum, and that of sizes."""
    are_numbers = all(isinstance(value, int | float) for value in values)
    first = values[: KEPT if are_numbers else KEPT_TEXTS]
    short: dict[str, Any] = {"first": [written(value) for value in first], "length": len(values)}
    if are_numbers:
        numbers = np.array(values, dtype="<f8")
        numbers[np.isnan(numbers)] = np.nan  # one NaN for all
        finite = numbers[np.isfinite(numbers)].tolist()
        short |= {"sum": math.fsum(finite), "sum_of_sizes": math.fsum(map(abs, finite))}
        digest = hashlib.sha256(numbers.tobytes())
    else:
        digest = hashlib.sha256(json.dumps([written(value) for value in values]).encode())
    return {**short, "sha256": digest.hexdigest()}


def as_text(cases: dict[str, Any]) -> str:
    """All cases as JSON with a line for each key of a case, so that differences of two files can be read."""
    parts = []
    for name, values in cases.items():
        lines = ",\n".join(f"  {json.dumps(key)}: {json.dumps(each)}" for key, each in values.items())
        parts.append(f" {json.dumps(name)}: {{\n{lines}\n }}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def main() -> None:
    """Write the file, or replace the cases that are named as arguments, with the keys that were recorded first."""
    if sys.argv[1:]:
        from tests.golden.test_golden import with_recorded_names

        recorded = json.loads(GOLDEN.read_text(encoding="utf-8"))
        cases = recorded | {name: computed(name, with_recorded_names) for name in sys.argv[1:]}
        GOLDEN.write_text(as_text(cases), encoding="utf-8")
        return
    cases = {name: computed(name) for name in sorted(CASES)}
    GOLDEN.write_text(as_text({**cases, "(skipped)": SKIPPED}), encoding="utf-8")
    skipped = "".join(f"; skipped {name}: {why}" for name, why in SKIPPED.items())
    sys.stdout.write(f"{len(cases)} cases, {GOLDEN.stat().st_size / 1e6:.2f} MB{skipped}\n")


if __name__ == "__main__":
    main()

"""Numbers of the public functions are those that were recorded, whatever things are called.

`GOLDEN=exact` compares bit for bit, as on the machine that recorded them; otherwise floats may differ by rounding.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any

import pytest

from tests.golden import renamed
from tests.golden.cases import CASES, SKIPPED
from tests.golden.record import GOLDEN, computed, written

pytestmark = pytest.mark.compiled

RECORDED: dict[str, Any] = json.loads(GOLDEN.read_text(encoding="utf-8"))
NOT_RECORDED: dict[str, str] = RECORDED.pop("(skipped)")
EXACT = os.environ.get("GOLDEN") == "exact"
RTOL, ATOL = 2e-6, 1e-9  # processors differ in the order of sums, which optimisation magnifies
LAST_DIGITS = 1e-14
SUM_RTOL = 1e-7
SINGLE = 1e-4  # of what is computed in float32, whose sums depend on the processor
SHORT = {"first", "length", "sha256"}  # keys of a list that was shortened


def with_recorded_names(value: Any, parent: str = "") -> Any:
    """Plain data by the keys and names that were used when numbers were recorded."""
    if isinstance(value, dict):
        found: dict[str, Any] = {}
        key: str
        for key, each in value.items():
            name = renamed.COLUMNS.get(f"{parent}.{key}") or renamed.COLUMNS.get(key) or key
            if name in found:
                raise AssertionError(f"two keys of {parent or 'the case'!r} stand for the recorded key {name!r}")
            found[name] = with_recorded_names(each, name)
        return found
    if isinstance(value, list):
        return [with_recorded_names(each, parent) for each in value]
    return renamed.VALUES.get(value, value) if isinstance(value, str) else value


def differences(path: str, old: Any, new: Any, *, exact: bool) -> Iterator[str]:
    """Where and how new values differ from recorded ones."""
    if isinstance(old, dict) and isinstance(new, dict):
        if old.keys() >= SHORT and new.keys() >= SHORT:
            yield from _short_differences(path, old, new, exact=exact)
            return
        for key in sorted(new.keys() - old.keys()):
            yield f"{path}: unexpected key {key!r}; if it was renamed, COLUMNS in renamed.py needs it"
        for key in sorted(old.keys() - new.keys()):
            yield f"{path}: recorded key {key!r} is missing"
        for key in old:
            if key in new:
                yield from differences(f"{path}.{key}", old[key], new[key], exact=exact)
    elif isinstance(old, list) and isinstance(new, list):
        if len(old) != len(new) and not _is_prose(f"{path}.0"):
            yield f"{path}: {len(new)} values, recorded were {len(old)}"
        for at, (one, two) in enumerate(zip(old, new, strict=False)):
            yield from differences(f"{path}.{at}", one, two, exact=exact)
    elif not _same(path, old, new, exact=exact):
        yield f"{path}: {new!r}, recorded was {old!r}"


def _short_differences(path: str, old: dict[str, Any], new: dict[str, Any], *, exact: bool) -> Iterator[str]:
    yield from differences(path, old["first"], new["first"], exact=exact)
    if old["length"] != new["length"]:
        yield f"{path}: {new['length']} values, recorded were {old['length']}"
    if old.keys() != new.keys():
        yield f"{path}: numbers on one side only"
    elif "sum" in old and (off := abs(old["sum"] - new["sum"])) > (
        0 if exact else ATOL + SUM_RTOL * old["sum_of_sizes"]
    ):
        yield f"{path}: the sum {new['sum']!r} is off by {off:.3g}, recorded was {old['sum']!r}"
    elif old["sha256"] != new["sha256"] and not _is_prose(f"{path}.0") and (exact or "sum" not in old):
        yield f"{path}: values after the first {len(old['first'])} differ"


def _same(path: str, old: Any, new: Any, *, exact: bool) -> bool:
    if isinstance(old, str) and isinstance(new, str):
        return old == new or _is_prose(path)
    if isinstance(old, bool | str | None) or isinstance(new, bool | str | None):
        return type(old) is type(new) and bool(old == new)
    if isinstance(old, int) and isinstance(new, int):
        return old == new
    if exact and any(fnmatchcase(path, pattern) for pattern in renamed.SUMMED_OTHERWISE):
        return math.isclose(old, new, rel_tol=LAST_DIGITS, abs_tol=LAST_DIGITS)
    if exact:
        return float(old).hex() == float(new).hex()
    single = any(fnmatchcase(path, pattern) for pattern in renamed.SINGLE_PRECISION)
    return math.isclose(old, new, rel_tol=SINGLE if single else RTOL, abs_tol=ATOL)


def _is_prose(path: str) -> bool:
    return any(fnmatchcase(path, pattern) for pattern in renamed.TEXTS_CHANGED)


@pytest.mark.parametrize("name", sorted(CASES))
def test_numbers_are_those_recorded(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUBGROVE_TREE_STEPS", "0")  # recorded from predictions; tests/models compares the two
    if name in NOT_RECORDED:
        pytest.skip(f"not recorded: {NOT_RECORDED[name]}")
    assert name in RECORDED, f"case {name!r} is not recorded; run python -m tests.golden.record at a trusted state"
    new = json.loads(json.dumps(computed(name, with_recorded_names)))
    found = list(differences(name, RECORDED[name], new, exact=EXACT))
    shown = "\n  ".join(found[:8])
    assert not found, f"case {name!r} differs from what was recorded in {len(found)} places:\n  {shown}"


def test_no_recorded_case_is_left_out() -> None:
    assert not RECORDED.keys() - CASES.keys() - SKIPPED.keys()


TABLE: dict[str, dict[str, list[Any]]] = {
    "overall": {"feature": ["a", "b"], "estimate": [1.0, 2.0], "rows": [0.5 * at for at in range(50)]}
}


def _found(new: Any, *, exact: bool = False) -> list[str]:
    return list(differences("case", written(TABLE), written(with_recorded_names(new)), exact=exact))


def test_a_renamed_key_is_an_unexpected_one_until_it_is_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    new = {"overall": {("importance" if key == "estimate" else key): each for key, each in TABLE["overall"].items()}}
    first, second = _found(new)
    assert first.startswith("case.overall: unexpected key 'importance'")
    assert second == "case.overall: recorded key 'estimate' is missing"
    for key in ("importance", "overall.importance"):
        monkeypatch.setattr(renamed, "COLUMNS", {key: "estimate"})
        assert not _found(new, exact=True)


def test_two_keys_for_one_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(renamed, "COLUMNS", {"feature": "estimate"})
    with pytest.raises(AssertionError, match="two keys of 'overall' stand for the recorded key 'estimate'"):
        with_recorded_names(TABLE)


def test_names_among_values_may_be_renamed(monkeypatch: pytest.MonkeyPatch) -> None:
    new = {"overall": {**TABLE["overall"], "feature": ["a", "c"]}}
    assert _found(new) == ["case.overall.feature.1: 'c', recorded was 'b'"]
    monkeypatch.setattr(renamed, "VALUES", {"c": "b"})
    assert not _found(new)
    monkeypatch.setattr(renamed, "VALUES", {})
    monkeypatch.setattr(renamed, "TEXTS_CHANGED", {"case.*.feature.*"})
    assert not _found(new)


def test_a_changed_number_is_found_and_rounding_only_if_exact() -> None:
    for column, at in (("estimate", 0), ("rows", 3), ("rows", 49)):
        for change, found in ((1e-3, (1, 1)), (1e-13, (0, 1))):
            values = list(TABLE["overall"][column])
            values[at] = float(values[at]) + change
            new = {"overall": {**TABLE["overall"], column: values}}
            assert tuple(min(1, len(_found(new, exact=exact))) for exact in (False, True)) == found, (column, change)
    assert _found({"overall": {**TABLE["overall"], "estimate": [1.0]}})
    assert _found({"overall": {**TABLE["overall"], "estimate": [1.0, None]}})

"""Results as JSON files: arrays in base64, everything else in plain values."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove._core.moments import Moments
from subgrove._core.text import write_text
from subgrove._data.columns import NamedGroup
from subgrove._importance.tables import ImportanceData
from subgrove._scoring.feature_result import Calibration, FeatureResult
from subgrove._scoring.fidelity_check import FidelityCheck
from subgrove.exceptions import FormatError

FORMAT = 1
IMPORTANCE, REFITS = "subgrove importance", "subgrove importance over refits"


def write_result(result: ImportanceData, path: str | Path) -> None:
    """Write an importance result."""
    names = [one.name for one in fields(ImportanceData) if one.name not in ("scores", "index", "_source")]
    values = {name: getattr(result, name) for name in names}
    values |= {"index": _labels(result.index), "scores": [_score_values(score) for score in result.scores]}
    write_values(IMPORTANCE, values, path)


def read_result(path: str | Path) -> dict[str, Any]:
    """Return the arguments of the result that a file holds."""
    with readable(path):
        values = read_values(IMPORTANCE, path)
        return {
            **values,
            "scores": tuple(_score_from(score) for score in values["scores"]),
            "index": _index(values["index"]),
        }


def write_values(kind: str, values: Mapping[str, Any], path: str | Path) -> None:
    """Write the fields of a result; a file that exists is replaced once the new one is complete."""
    packed = {name: _packed(value) for name, value in values.items()}
    write_text(Path(path), json.dumps({"kind": kind, "format": FORMAT, **packed}, allow_nan=True))


def read_values(kind: str, path: str | Path) -> dict[str, Any]:
    """Return the fields of a result that `write_values` wrote."""
    with readable(path):
        values = json.loads(Path(path).read_text(encoding="utf-8"))
        if not isinstance(values, dict) or values.pop("kind", None) != kind:
            what = kind.removeprefix("subgrove ")
            raise FormatError(f"{path} does not hold a result of {what}. Pass a file that `save` wrote.")
        if (version := values.pop("format", None)) != FORMAT:
            raise FormatError(f"{path} has format {version!r}; this version reads format {FORMAT}.")
        return {name: _unpacked(value) for name, value in values.items()}


@contextmanager
def readable(path: str | Path) -> Iterator[None]:
    """Raise a FormatError for a file that does not hold the fields of a result."""
    try:
        yield
    except FormatError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise FormatError(f"{path} is not a file that `save` wrote: {error!r}.") from error


def _labels(index: Any) -> Any:
    """Return the labels of the rows, where they are text or integers; others are not stored."""
    labels = None if index is None or getattr(index, "nlevels", 1) > 1 else index.tolist()
    if labels is None or not all(isinstance(label, str | int) for label in labels):
        return None
    return {"labels": labels, "name": index.name if isinstance(index.name, str) else None}


def _index(values: Any) -> Any:
    if values is None:
        return None
    import pandas as pd

    return pd.Index(values["labels"], name=values["name"])


def _score_values(score: FeatureResult) -> dict[str, Any]:
    values = {one.name: _packed(getattr(score, one.name)) for one in fields(score)}
    if score.fidelity_check is not None:
        values["fidelity_check"] = asdict(score.fidelity_check)
    if score.moments is not None:
        values["moments"] = _packed(score.moments.array)
    if score.calibration is not None:
        arrays = {one.name: _packed(getattr(score.calibration, one.name)) for one in fields(score.calibration)}
        values["calibration"] = {**arrays, "plain": _score_values(score.calibration.plain)}
    return values


def _score_from(values: dict[str, Any]) -> FeatureResult:
    stored = {name: _unpacked(value) for name, value in values.items()}
    if (check := stored["fidelity_check"]) is not None:
        stored["fidelity_check"] = FidelityCheck(**check)
    if (moments := stored["moments"]) is not None:
        stored["moments"] = Moments.from_array(moments)
    if (calibration := stored["calibration"]) is not None:
        arrays = {name: _unpacked(value) for name, value in calibration.items()}
        stored["calibration"] = Calibration(**{**arrays, "plain": _score_from(arrays["plain"])})
    return FeatureResult(**stored)


def _packed(value: Any) -> Any:
    """Return a value as JSON can hold it."""
    if isinstance(value, np.ndarray):
        plain = np.ascontiguousarray(value)
        little = plain.astype(plain.dtype.newbyteorder("<"), copy=False)
        text = base64.b64encode(little.tobytes()).decode("ascii")
        return {"dtype": little.dtype.str, "shape": list(plain.shape), "base64": text}
    if isinstance(value, NamedGroup):
        return {"name": value.name, "members": list(value)}
    return list(value) if isinstance(value, tuple) else value


def _unpacked(value: Any) -> Any:
    """Return what was packed; lists become tuples."""
    if isinstance(value, dict) and "base64" in value:
        raw = base64.b64decode(value["base64"], validate=True)
        array: npt.NDArray[Any] = np.frombuffer(raw, dtype=np.dtype(value["dtype"])).reshape(value["shape"])
        return array.astype(array.dtype.newbyteorder("="))
    if isinstance(value, dict) and "members" in value:
        return NamedGroup(value["name"], value["members"])
    return tuple(value) if isinstance(value, list) else value

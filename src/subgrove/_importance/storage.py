"""Results as JSON: arrays in base64, everything else in plain values."""

from __future__ import annotations

import base64
import json
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from subgrove._core.files import write_text
from subgrove._core.moments import Moments
from subgrove._data.features import NamedGroup
from subgrove._scoring.feature_result import Calibration, FeatureResult
from subgrove._scoring.fidelity_check.check import FidelityCheck
from subgrove.exceptions import FormatError

if TYPE_CHECKING:
    from subgrove._importance.result import ImportanceResult

FORMAT = 1
KIND = "subgrove importance"


def write_result(result: ImportanceResult, path: str | Path) -> None:
    """Write a result under a temporary name, then give it its own."""
    values = {
        "kind": KIND,
        "format": FORMAT,
        "losses": list(result.losses),
        "baseline": list(result.baseline),
        "per_row_losses": list(result.per_row_losses),
        "settings": dict(result.settings),
        "backend": result.backend,
        "level": result.level,
        "weights": packed(result.weights),
        "row_mask": packed(result.row_mask),
        "sources": None if result.sources is None else list(result.sources),
        "predictions": packed(result.predictions),
        "residuals": packed(result.residuals),
        "index": _labels(result.index),
        "scores": [_score_dict(score) for score in result.scores],
    }
    write_text(Path(path), json.dumps(values, allow_nan=True))


def read_result(path: str | Path) -> dict[str, Any]:
    """Arguments of the result that a file holds."""
    try:
        values = json.loads(Path(path).read_text(encoding="utf-8"))
        if not isinstance(values, dict) or values.get("kind") != KIND:
            raise FormatError(f"{path} does not hold a result of importance. Pass a file that `save` wrote.")
        if values.get("format") != FORMAT:
            raise FormatError(f"{path} has format {values.get('format')!r}; this version reads format {FORMAT}.")
        return {
            "scores": tuple(_score_from(score) for score in values["scores"]),
            "losses": tuple(values["losses"]),
            "baseline": tuple(values["baseline"]),
            "per_row_losses": tuple(values["per_row_losses"]),
            "settings": values["settings"],
            "backend": values["backend"],
            "level": values["level"],
            "weights": unpacked(values["weights"]),
            "row_mask": unpacked(values["row_mask"]),
            "sources": unpacked(values["sources"]),
            "predictions": unpacked(values["predictions"]),
            "residuals": unpacked(values["residuals"]),
            "index": _index(values["index"]),
        }
    except FormatError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise FormatError(f"{path} is not a file that `save` wrote: {error!r}.") from error


def _labels(index: Any) -> Any:
    """Labels of the rows, where they are text or whole numbers; others are not kept."""
    labels = None if index is None or getattr(index, "nlevels", 1) > 1 else index.tolist()
    kept = labels is not None and all(isinstance(label, str | int) for label in labels)
    return {"labels": labels, "name": index.name if isinstance(index.name, str) else None} if kept else None


def _index(values: Any) -> Any:
    if values is None:
        return None
    import pandas as pd

    return pd.Index(values["labels"], name=values["name"])


def _score_dict(score: FeatureResult) -> dict[str, Any]:
    fidelity_check = None if score.fidelity_check is None else asdict(score.fidelity_check)
    kept = {entry.name: getattr(score, entry.name) for entry in fields(score) if entry.name != "calibration"}
    if score.moments is not None:
        kept["moments"] = score.moments.array
    values = {**{name: packed(value) for name, value in kept.items()}, "fidelity_check": fidelity_check}
    calibration = getattr(score, "calibration", None)
    if calibration is not None:
        arrays = {
            one.name: packed(getattr(calibration, one.name)) for one in fields(calibration) if one.name != "plain"
        }
        values["calibration"] = {**arrays, "plain": _score_dict(calibration.plain)}
    return values


def _score_from(values: dict[str, Any]) -> FeatureResult:
    stated = values["fidelity_check"]
    kept = {name: unpacked(value) for name, value in values.items() if name not in ("fidelity_check", "calibration")}
    kept["fidelity_check"] = None if stated is None else FidelityCheck(**stated)
    if values.get("calibration") is not None:
        arrays = {name: unpacked(one) for name, one in values["calibration"].items() if name != "plain"}
        plain = _score_from(values["calibration"]["plain"])
        kept["calibration"] = Calibration(**arrays, plain=plain)
    if kept["moments"] is not None:
        kept["moments"] = Moments.from_array(kept["moments"])
    return FeatureResult(**kept)


def packed(value: Any) -> Any:
    """A value as JSON can hold it."""
    if isinstance(value, np.ndarray):
        plain = np.ascontiguousarray(value)
        little = plain.astype(plain.dtype.newbyteorder("<"), copy=False)
        text = base64.b64encode(little.tobytes()).decode("ascii")
        return {"dtype": little.dtype.str, "shape": list(plain.shape), "base64": text}
    if isinstance(value, NamedGroup):
        return {"name": value.name, "members": list(value)}
    return list(value) if isinstance(value, tuple) else value


def unpacked(value: Any) -> Any:
    """What was packed; lists are tuples."""
    if isinstance(value, dict) and "base64" in value:
        raw = base64.b64decode(value["base64"], validate=True)
        array: npt.NDArray[Any] = np.frombuffer(raw, dtype=np.dtype(value["dtype"])).reshape(value["shape"])
        return array.astype(array.dtype.newbyteorder("="))
    if isinstance(value, dict) and "members" in value:
        return NamedGroup(value["name"], value["members"])
    return tuple(value) if isinstance(value, list) else value

"""Results as JSON files: arrays in base64, dataclasses by their fields, everything else in plain values."""

from __future__ import annotations

import base64
import json
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from subgrove._core.files import write_text
from subgrove._core.html_views import ResultView
from subgrove._core.moments import Moments
from subgrove._core.weights import RelativeWeights
from subgrove._data.columns import NamedGroup
from subgrove._scoring.feature_result import Calibration, FeatureResult
from subgrove._scoring.fidelity_check import FidelityCheck
from subgrove.exceptions import FormatError, SubgroveError

FORMAT = 1
_DATACLASSES: dict[str, type[Any]] = {one.__name__: one for one in (Calibration, FeatureResult, FidelityCheck, Moments)}


class StoredResult(ResultView):
    """A result that `save` writes to a JSON file with all of its numbers, and that `load` reads."""

    _kind: ClassVar[str]

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a JSON file that `save` wrote. Labels of rows are in it if they are text or integers.

        Parameters
        ----------
        path : str or path
            The file.
        """
        try:
            values = json.loads(Path(path).read_text(encoding="utf-8"))
            if not isinstance(values, dict) or values.pop("kind", None) != f"subgrove {cls._kind}":
                raise FormatError(f"{path} does not hold a result of {cls._kind}. Pass a file that `save` wrote.")
            if (version := values.pop("format", None)) != FORMAT:
                raise FormatError(f"{path} has format {version!r}; this version reads format {FORMAT}.")
            values = {name: _unpacked(value) for name, value in values.items()}
            if not all(isinstance(score, FeatureResult) for score in values.get("scores", ())):
                raise TypeError("scores of features are missing")
            result = cls(**values)
            for table in ("overall", "by_subgroup", "per_row"):  # whose errors are then those of the file
                with suppress(SubgroveError):  # a score of all rows together has no value for each subgroup
                    getattr(result, table) if hasattr(cls, table) else None
            repr(result)
            return result
        except (FormatError, OSError, MemoryError):
            raise
        except Exception as error:  # what a damaged file leads to has no common class
            raise FormatError(f"{path} is not a file that `save` wrote: {error!r}.") from error

    def _write_json(self, path: Path) -> None:
        names = [one.name for one in fields(self) if one.name != "_source"]  # type: ignore[arg-type]  # a dataclass
        values = {name: _packed(getattr(self, name)) for name in names}
        write_text(path, json.dumps({"kind": f"subgrove {self._kind}", "format": FORMAT, **values}, allow_nan=True))


def _packed(value: Any) -> Any:
    """Return a value as JSON can hold it."""
    if type(value).__name__ in _DATACLASSES:
        own = {one.name: _packed(getattr(value, one.name)) for one in fields(value)}
        return {"dataclass": type(value).__name__, **own}
    if isinstance(value, np.ndarray):
        plain = np.ascontiguousarray(value)
        little = plain.astype(plain.dtype.newbyteorder("<"), copy=False)
        text = base64.b64encode(little.tobytes()).decode("ascii")
        relative = isinstance(value, RelativeWeights)
        return {"dtype": little.dtype.str, "shape": list(plain.shape), "base64": text, "relative": relative}
    if isinstance(value, NamedGroup):
        return {"name": value.name, "members": list(value)}
    if hasattr(value, "nlevels"):
        return _packed_index(value)
    return [_packed(one) for one in value] if isinstance(value, tuple) else value


def _packed_index(index: Any) -> dict[str, Any] | None:
    """Return the labels of the rows, where they are text or integers; others are not stored."""
    labels = index.tolist()
    if index.nlevels > 1 or not all(isinstance(label, str | int) for label in labels):
        return None
    return {"labels": labels, "name": index.name if isinstance(index.name, str) else None}


def _unpacked(value: Any) -> Any:
    """Return what was packed; lists become tuples."""
    if isinstance(value, list):
        return tuple(_unpacked(one) for one in value)
    if not isinstance(value, dict):
        return value
    if "dataclass" in value:
        own = {name: _unpacked(one) for name, one in value.items() if name != "dataclass"}
        return _DATACLASSES[value["dataclass"]](**own)
    if "base64" in value:
        raw = base64.b64decode(value["base64"], validate=True)
        array: npt.NDArray[Any] = np.frombuffer(raw, dtype=np.dtype(value["dtype"])).reshape(value["shape"])
        array = array.astype(array.dtype.newbyteorder("="))
        return array.view(RelativeWeights) if value.get("relative") else array
    if "members" in value:
        return NamedGroup(value["name"], value["members"])
    if "labels" in value:
        import pandas as pd

        return pd.Index(value["labels"], name=value["name"])
    return value

"""The reference effects: outputs of R (iml 0.11.1, and the paper's own functions) for models in closed form."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from .cases import FOLDER, frame

REFERENCE = FOLDER.parent
IML = REFERENCE / "iml"
END_TO_END = REFERENCE / "end_to_end"
ABSENT = "the reference outputs of R are not beside the repository"


def bike_model(X: pd.DataFrame) -> npt.NDArray[np.float64]:
    """The formula of iml/bike_effects.json."""
    temp, hum, wind = (X[name].to_numpy() for name in ("temp", "hum", "wind"))
    season = X["season"].astype(str).map({"WINTER": -400.0, "SUMMER": 250.0}).fillna(0.0).to_numpy()
    year = np.where(X["yr"].astype(str) == "2012", 1800.0, 0.0)
    value = 1500 + 90 * temp - 1.2 * temp**2 + 0.4 * temp * (100 - hum) - 12 * wind + 0.02 * hum * wind
    return np.asarray(value + season + year * (1 + 0.01 * temp), dtype=np.float64)


def wine_model(X: pd.DataFrame) -> npt.NDArray[np.float64]:
    """The formula of iml/wine_effects.json."""
    value = 3 + 0.8 * np.log(X["alcohol"]) - 2 * (X["density"] - 0.995) * 100 + 0.05 * X["residualsugar"] * X["pH"]
    return np.asarray(value + 0.3 * np.sin(X["fixedacidity"]) * X["volatileacidity"], dtype=np.float64)


MODELS = {"bike": (bike_model, "bike_full"), "wine": (wine_model, "openml_wine")}


@cache
def iml(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((IML / f"{name}_effects.json").read_text())
    return loaded


def effects(method: str) -> list[tuple[str, int]]:
    """(data set, position) of the effects of a method; none where the folder is absent."""
    if not IML.exists():
        return []
    return [(name, at) for name in MODELS for at, one in enumerate(iml(name)["effects"]) if one["method"] == method]


@cache
def bike_rows(part: str) -> pd.DataFrame:
    """Training (511) or test rows (220) of the bike data, without the target."""
    schema = json.loads((FOLDER / "data" / "bike_full.schema.json").read_text())
    whole = frame("bike_full").drop(columns="cnt")
    train = np.array(schema["train_index_1based"]) - 1
    rows = train if part == "train" else np.setdiff1d(np.arange(len(whole)), train)
    return whole.iloc[rows].reset_index(drop=True)

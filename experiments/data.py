"""The data sets of the experiments, as Parquet files in a folder; downloaded only on request.

The folder is, in this order: `--data`, the environment variable SUBGROVE_DATA, `shared/data` beside the repository.
It holds `MANIFEST.csv`, `cc18/ID.parquet` and `regression/ID.parquet`, the target as the last column.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import pandas as pd

FOLDER_VARIABLE = "SUBGROVE_DATA"
FETCH_VARIABLE = "SUBGROVE_FETCH"  # variables, because worker processes inherit them
_BESIDE = Path(__file__).parents[2] / "shared" / "data"
_REGRESSION = {"wine": 287, "satellite": 294, "wind": 503, "space": 507, "pollen": 529, "quake": 550}


def folder() -> Path | None:
    """The folder with data sets, or None if there is none."""
    given = os.environ.get(FOLDER_VARIABLE)
    found = Path(given) if given else _BESIDE
    return found if found.is_dir() else None


def manifest() -> pd.DataFrame:
    """What the folder holds: id, name, file, rows, columns, numeric_columns, target, where each file is from."""
    found = folder()
    if found is None:
        raise FileNotFoundError(_without_folder("the list of data sets"))
    return pd.read_csv(found / "MANIFEST.csv", dtype={"id": str})


def cc18(id: int, *, fetch: bool | None = None) -> pd.DataFrame:  # noqa: A002 - the name that OpenML gives it
    """A data set of OpenML-CC18 by its number, the target as the last column."""
    return _read("cc18", int(id), fetch).copy()


def regression(name: str, *, fetch: bool | None = None) -> pd.DataFrame:
    """A data set of the model-fidelity experiment by its name in the paper, the target as the last column."""
    if name not in _REGRESSION:
        raise ValueError(f"unknown data set {name!r}; there are {', '.join(_REGRESSION)}.")
    return _read("regression", _REGRESSION[name], fetch).copy()


@cache
def _read(kind: str, number: int, fetch: bool | None) -> pd.DataFrame:
    found = folder()
    path = None if found is None else found / kind / f"{number}.parquet"
    if path is not None and path.is_file():
        return pd.read_parquet(path)
    if fetch if fetch is not None else os.environ.get(FETCH_VARIABLE) == "1":
        return _fetched(number)
    raise FileNotFoundError(_without_folder(f"{kind}/{number}.parquet"))


def _fetched(number: int) -> pd.DataFrame:
    from sklearn.datasets import fetch_openml

    bunch = fetch_openml(data_id=number, as_frame=True, parser="auto")
    target = list(bunch.target_names)
    frame: pd.DataFrame = bunch.frame
    return frame[[name for name in frame.columns if name not in target] + target]


def _without_folder(what: str) -> str:
    return (
        f"{what} is not there. Name the folder that has it with --data or {FOLDER_VARIABLE}, "
        f"or allow downloading from OpenML with --fetch."
    )

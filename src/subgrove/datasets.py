"""Example data sets that are shipped with the package."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from subgrove._core.execution import RandomStateLike, read_seed
from subgrove.exceptions import ParameterError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Dataset", "bike"]

_BIKE_DESCRIPTION = "Rented bikes a day in Washington, D.C., 2011 and 2012, with weather and calendar."
_BIKE_SOURCE = (
    "Bike Sharing, UCI Machine Learning Repository: Hadi Fanaee-T and Joao Gama (2013), doi:10.24432/C5W894, CC BY 4.0."
)
# Level names in the order of the numbers in the file, with the smallest of these numbers.
_BIKE_LEVELS: dict[str, tuple[str, int, tuple[str, ...]]] = {
    "season": ("season", 1, ("WINTER", "SPRING", "SUMMER", "FALL")),
    "yr": ("yr", 0, ("2011", "2012")),
    "holiday": ("holiday", 0, ("NO HOLIDAY", "HOLIDAY")),
    "weekday": ("weekday", 0, ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")),
    "work": ("workingday", 0, ("NO WORKING DAY", "WORKING DAY")),
    "weather": ("weathersit", 1, ("GOOD", "BAD")),
}
_BIKE_COLUMNS = ["season", "yr", "holiday", "weekday", "temp", "hum", "work", "weather", "wind"]


@dataclass(frozen=True, eq=False)
class Dataset:
    """Features and target of the same rows.

    Attributes
    ----------
    X : pandas.DataFrame
        Features, one row per observation.
    y : pandas.Series
        Target, with the index of `X`.
    description : str
        Description of the rows.
    source : str
        Authors, publication and licence.

    Examples
    --------
    >>> import subgrove as sg
    >>> days = sg.datasets.bike()
    >>> days.X.shape, days.y.name
    ((731, 9), 'cnt')
    >>> days
    <Dataset: 731 rows, 9 features, target 'cnt'>
    """

    X: pd.DataFrame
    y: pd.Series[float]
    description: str
    source: str

    def __repr__(self) -> str:
        return f"<Dataset: {len(self.X)} rows, {self.X.shape[1]} features, target {self.y.name!r}>"


@overload
def bike(*, split: None = None, random_state: None = None) -> Dataset: ...
@overload
def bike(*, split: float, random_state: RandomStateLike = None) -> tuple[Dataset, Dataset]: ...
def bike(*, split: float | None = None, random_state: RandomStateLike = None) -> Dataset | tuple[Dataset, Dataset]:
    """Return the number of rented bikes per day, with weather and calendar: 731 rows, 9 features, target `cnt`.

    Parameters
    ----------
    split : float, optional
        Share of the rows, between 0 and 1, in the first of two parts.
    random_state : int, RandomState instance or Generator, optional
        Seed of the split; without it, each call draws another one.

    Returns
    -------
    Dataset, or a pair of them if `split` is given
        `X` has the nominal columns season, yr, holiday, weekday, work and weather (GOOD, or BAD from mist on)
        and the numeric columns temp (degrees Celsius), hum (per cent) and wind (km/h).
        Both parts of a split keep the order of the days and their row numbers as index.

    Notes
    -----
    The data are those of Hadi Fanaee-T and Joao Gama (2013), Bike Sharing, UCI Machine Learning Repository,
    https://doi.org/10.24432/C5W894, licence CC BY 4.0. They are prepared as in the paper on conditional subgroups:
    temperature, humidity and wind are in their original units, codes are replaced by level names, and month,
    felt temperature, date and the two parts of the count are omitted.

    Examples
    --------
    >>> from subgrove.datasets import bike
    >>> bike()
    <Dataset: 731 rows, 9 features, target 'cnt'>
    >>> train, test = bike(split=0.7, random_state=1)
    >>> len(train.X), len(test.X)
    (512, 219)
    """
    if split is None:
        if random_state is not None:
            raise ParameterError(
                f"random_state={random_state!r} has no effect without split. Pass split too, or omit random_state."
            )
        return _read_bike()
    share, start = _checked_split(split), read_seed(random_state)
    return _split(_read_bike(), share, start)


def _read_bike() -> Dataset:
    import csv
    from importlib.resources import files

    import pandas as pd

    # Not by pandas, whose parser of floats differs in the last bit between versions.
    with files("subgrove").joinpath("_data", "files", "bike-sharing-daily.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    columns: dict[str, Any] = {
        name: pd.Categorical([levels[min(int(row[column]) - first, len(levels) - 1)] for row in rows], list(levels))
        for name, (column, first, levels) in _BIKE_LEVELS.items()
    }
    # Python rounds the exact value of a float, numpy a multiple of it: they differ in 6 of these numbers.
    columns["temp"] = [round(47 * float(row["temp"]) - 8, 1) for row in rows]
    columns["hum"] = [round(100 * float(row["hum"]), 3) for row in rows]
    columns["wind"] = [67 * float(row["windspeed"]) for row in rows]
    y = pd.Series([float(row["cnt"]) for row in rows], name="cnt")
    return Dataset(pd.DataFrame(columns)[_BIKE_COLUMNS], y, _BIKE_DESCRIPTION, _BIKE_SOURCE)


def _split(data: Dataset, share: float, seed: int | None) -> tuple[Dataset, Dataset]:
    n = len(data.X)
    size = round(share * n)
    if not 0 < size < n:
        raise ParameterError(f"split={share!r} leaves one part of the {n} rows empty. Choose it nearer to 0.5.")
    first = np.zeros(n, dtype=np.bool_)
    first[np.random.default_rng(seed).permutation(n)[:size]] = True
    train, test = (
        Dataset(data.X.loc[rows], data.y.loc[rows], data.description, data.source) for rows in (first, ~first)
    )
    return train, test


def _checked_split(split: Any) -> float:
    is_number = isinstance(split, int | float | np.integer | np.floating) and not isinstance(split, bool)
    if not is_number or not 0 < split < 1:
        raise ParameterError(
            f"split must be a number between 0 and 1, the share of the rows in the first part; got {split!r}."
        )
    return float(split)

"""How the user's table becomes the numeric inputs of the trees."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove._models.tree_ensemble.ensemble import Floats, NotReadable, require


@dataclass(frozen=True, eq=False)
class TreeInputs:
    """Numeric inputs of the trees, computed from the columns of the user's table.

    Attributes
    ----------
    columns : tuple of tuples of int
        For each column of the user's table, the inputs that are computed from it. An input depends on one column only.
    to_matrix : function
        Returns the inputs of a table as a matrix; may raise any error.
    """

    columns: tuple[tuple[int, ...], ...]
    to_matrix: Callable[[Any], npt.NDArray[Any]]

    @property
    def n_inputs(self) -> int:
        """Number of inputs."""
        return sum(len(inputs) for inputs in self.columns)

    def encode(self, frame: Any) -> Floats:
        """Return the inputs of the rows of a table, float64 (n, n_inputs), NaN where missing.

        Parameters
        ----------
        frame : table
            As the model itself would get it.

        Raises
        ------
        NotReadable
            If the table has values that are not supported here, or that the model itself rejects.
        """
        try:
            with warnings.catch_warnings(), np.errstate(over="ignore", invalid="ignore"):
                warnings.simplefilter("ignore")  # the model itself warns when it predicts
                matrix = np.ascontiguousarray(self.to_matrix(frame), dtype=np.float64)
        except NotReadable:
            raise
        except Exception as error:
            raise NotReadable(f"the table could not be encoded: {type(error).__name__}") from error
        require(matrix.ndim == 2 and matrix.shape[1] == self.n_inputs, "the table has another number of columns")
        return matrix


def one_to_one(n_columns: int) -> tuple[tuple[int, ...], ...]:
    """Return the columns of inputs that are the columns of the table."""
    return tuple((column,) for column in range(n_columns))


def check_names(frame: Any, fitted: Any) -> None:
    """Check that a table has the columns of `fitted.feature_names_in_`, if any, in this order."""
    known = getattr(fitted, "feature_names_in_", None)
    given = getattr(frame, "column_names", getattr(frame, "columns", None))  # of pyarrow, or pandas and polars
    same = known is None or given is None or list(known) == list(given)
    require(same, "the table has other columns, or another order of them, than the model")


def table_matrix(frame: Any, levels: Sequence[Any] = ()) -> npt.NDArray[Any]:
    """Return the numbers of a table as a matrix; missing values are NaN.

    Parameters
    ----------
    frame : pandas, polars or NumPy table
        Numeric columns; in pandas also categories.
    levels : sequence
        For each column of categories, in order, the levels of the model: codes are positions in it, others are NaN.
    """
    if not _is_pandas(frame):
        matrix = np.asarray(frame)
        matrix = matrix.astype(np.float64) if matrix.dtype == object else matrix
        require(matrix.ndim == 2 and matrix.dtype.kind in "biuf", "the table is not numeric")
        return matrix
    categorical = [column for column, dtype in enumerate(frame.dtypes) if dtype.name == "category"]
    require(len(categorical) == len(levels), "the table has other categorical columns than the model")
    if not categorical:
        return np.asarray(frame.to_numpy(dtype=np.float64, na_value=np.nan))
    matrix = np.empty(frame.shape, order="F")
    others = [column for column in range(frame.shape[1]) if column not in set(categorical)]
    if others:
        matrix[:, others] = frame.iloc[:, others].to_numpy(dtype=np.float64, na_value=np.nan)
    for column, known in zip(categorical, levels, strict=True):
        matrix[:, column] = category_codes(frame.iloc[:, column], known)
    return matrix


def category_codes(column: Any, levels: Sequence[Any]) -> Floats:
    """Return the codes of a pandas column of categories as positions in `levels`; NaN for missing and other levels."""
    codes = column.cat.codes.to_numpy()
    place = {level: code for code, level in enumerate(levels)}
    target = np.array([place.get(level, np.nan) for level in column.cat.categories] + [np.nan], dtype=np.float64)
    return np.asarray(target[codes])  # code -1, missing, takes the last


def single_precision(matrix: npt.NDArray[Any]) -> Floats:
    """Return numbers rounded to float32, as float64."""
    return matrix.astype(np.float32).astype(np.float64)


def _is_pandas(frame: Any) -> bool:
    return type(frame).__module__.partition(".")[0] == "pandas" and hasattr(frame, "iloc")

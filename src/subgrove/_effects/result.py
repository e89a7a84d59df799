"""What `effect` returns: curves, where they are supported, and what they cost. It is frozen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np

from subgrove._core.html_views import html_of
from subgrove._core.kinds import ColumnInfo, Floats
from subgrove._data.result_tables import Backend
from subgrove._effects.curves import Curve, centre_ice
from subgrove._effects.heterogeneity import Heterogeneity
from subgrove._effects.interpolate import is_table, read_column, read_columns, values_at
from subgrove._effects.tables import EffectGroup, curves_table, ice_table, outliers_table, support_table
from subgrove._subgroups import Partition
from subgrove.exceptions import ParameterError


@dataclass(frozen=True, eq=False)
class Effect:
    """How the prediction changes with a feature: what `subgrove.effect` returns.

    Reading it asks the model for nothing. Tables are in the container of X, pandas for arrays.

    Attributes
    ----------
    feature : str, or pair of str
        The feature, or the two features of a surface.
    kind : {"pdp", "ice", "ale", "mplot"}
        What the curves are.
    outputs : tuple
        Classes or numbers of the model's outputs that have curves.
    n_rows_predicted, n_calls : int
        Rows that the model was asked for, and in how many calls.
    subgroups : Partition or None
        The subgroups, if there are any.
    infos, groups, lines, backend
        What the tables are made of, for pictures: the features, the subgroups with their supports, and the curves as
        arrays.
    heterogeneity : Heterogeneity or None
        How far single curves disagree, and what splits explain of that, if `interactions` were looked for: `sentence`,
        `explained("dependence")`, `explained("interaction")`, `left` and `splits`.
    sampled : (int, int), or None
        Of data in partitions, how many rows were drawn for grids, box statistics, outliers and single curves, and of
        how many. Counts, and curves that are means, are of all rows.
    splits : table
        The same: a row for each split, with its `reason`, `share` and `p_value`; the last row is what is left.
    curves : table
        A row for each output (if there are several), subgroup and point: `feature`, `output`, `subgroup`, `rule`,
        `reason` (why the group was made, if interactions were looked for), `n`, `x` (two features: `x1`, `x2`),
        `estimate`, `std_error`, `conf_low`, `conf_high`, `noise` (what the interval covers: "test rows"), `in_box`,
        `in_whiskers`.
        Features with levels also have box statistics of the predictions at each level: `whisker_low`, `q1`, `median`,
        `q3`, `whisker_high`.
    support : table
        A row for each subgroup, also for those without a curve: `n`, `missing` (rows without a value of the feature)
        and Tukey's box statistics of the feature; or a row for each level and how many rows have it.
    outliers : table
        Values of the feature beyond the whiskers, and how many rows have them.
    ice : table
        A row for each output, subgroup, row of X and point; with subgroups also `opacity`. Of kind "ice" only.

    Notes
    -----
    How to read it: `std_error` and the interval cover which rows the mean was taken over, as if these were drawn at
    random. They do not cover how the model would change with other training data, nor that of subgroups. Those of "ale"
    include that the rows decide where 0 is.
    The curve is well supported where `in_box` is true (between the quartiles of the feature, or a level that rows
    of the subgroup have) and thinly supported where `in_whiskers` is false.

    Examples
    --------
    >>> import subgrove as sg
    >>> X = sg.datasets.bike().X
    >>> def model(X):
    ...     return 100 * X["temp"] - 2 * X["hum"]
    >>> found = sg.effect(model, X, "temp", grid_resolution=3)
    >>> found
    <Effect of 'temp': pdp, 1 curve, 3 points>
    >>> found.curves[["x", "estimate", "std_error", "n"]].round(2)
           x  estimate  std_error    n
    0  -5.20   -645.58       1.05  731
    1  13.65   1239.42       1.05  731
    2  32.50   3124.42       1.05  731
    >>> found.predict([0.0, 1.0]).round(2)
    array([-125.58,  -25.58])
    """

    feature: str | tuple[str, str]
    kind: str
    outputs: tuple[Any, ...]
    n_rows_predicted: int
    n_calls: int
    subgroups: Partition | None
    infos: tuple[ColumnInfo, ...]
    groups: tuple[EffectGroup, ...]
    lines: tuple[Curve, ...]
    backend: Backend
    heterogeneity: Heterogeneity | None = None
    sampled: tuple[int, int] | None = None

    @property
    def curves(self) -> Any:
        """Estimates with 95 % intervals."""
        return self.table()

    def table(self, level: float = 0.95) -> Any:
        """Estimates with intervals of another level.

        Parameters
        ----------
        level : float, default 0.95
            Probability that an interval covers the mean over all rows that might have been drawn.
        """
        if isinstance(level, bool) or not isinstance(level, int | float | np.floating) or not 0 < level < 1:
            raise ParameterError(f"level must be a number between 0 and 1; got {level!r}.")
        return curves_table(self.backend, self.outputs, self.groups, self.lines, float(level))

    @property
    def support(self) -> Any:
        """Where the feature lies in each subgroup."""
        return support_table(self.backend, self.groups)

    @property
    def outliers(self) -> Any:
        """Values of the feature beyond the whiskers."""
        return outliers_table(self.backend, self.groups)

    @property
    def ice(self) -> Any:
        """A curve for each row."""
        self._reject_without_ice("ice")
        return ice_table(self.backend, self.outputs, self.groups, self.lines)

    @property
    def splits(self) -> Any:
        """What each split explains of how far single curves disagree."""
        if self.heterogeneity is None:
            raise ParameterError("splits needs interactions, which were not looked for. Use effect(interactions=True).")
        return self.heterogeneity.table(self.backend)

    def centred(self) -> Effect:
        """The same with every ICE curve as differences from its first point, and means and errors of these.

        Examples
        --------
        >>> import subgrove as sg
        >>> X = sg.datasets.bike().X
        >>> found = sg.effect(lambda X: 100 * X["temp"] - 2 * X["hum"], X, "temp", kind="ice", grid_resolution=3)
        >>> found.centred().curves[["x", "estimate", "std_error"]].round(6)
               x  estimate  std_error
        0  -5.20       0.0        0.0
        1  13.65    1885.0        0.0
        2  32.50    3770.0        0.0
        """
        self._reject_without_ice("centred")
        return replace(self, lines=tuple(centre_ice(curve) for curve in self.lines))

    def _reject_without_ice(self, what: str) -> None:
        if self.kind != "ice":
            raise ParameterError(f"{what} needs a curve for each row, but kind is {self.kind!r}. Use kind='ice'.")

    def predict(self, x: Any) -> Floats:
        """Values of the curves at values of the feature.

        Parameters
        ----------
        x : column, list, 1-d array, or table
            Values of the feature; or a table that holds it, which subgroups and two features need. A row has the
            value of its subgroup's curve.

        Returns
        -------
        float array
            (rows,), or (rows, outputs) if there are several outputs. Linear between the points of a curve, and level
            beyond its ends; the value of its level for a feature that has levels. NaN where the feature is missing or
            has a level without a value, and in a subgroup without a curve.
        """
        table = is_table(x)
        if not table and (self.subgroups is not None or len(self.infos) > 1):
            why = "a row's subgroup depends on its other columns" if self.subgroups is not None else "there are two"
            raise ParameterError(f"predict needs a table here, since {why}; got {type(x).__name__}. Pass rows of X.")
        values = read_columns(x, self.infos) if table else [read_column(x, self.infos[0])]
        group = np.zeros(len(values[0]), dtype=np.intp) if self.subgroups is None else self.subgroups.assign(x)
        found = np.full((len(group), max(len(self.outputs), 1)), np.nan)
        for curve in self.lines:
            mine = group == curve.subgroup
            found[mine] = values_at(curve, [column[mine] for column in values])
        return found[:, 0] if found.shape[1] == 1 else found

    def __repr__(self) -> str:
        n = len(self.lines)
        points = {len(curve.n) for curve in self.lines} or {0}
        shown = str(points.pop()) if len(points) == 1 else f"{min(points)} to {max(points)}"
        more = f", {len(self.outputs)} outputs" if len(self.outputs) > 1 else ""
        return f"<Effect of {self.feature!r}: {self.kind}, {n} curve{'s' * (n != 1)}, {shown} points{more}>"

    def _repr_html_(self) -> str:
        return html_of(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Effect) and _same(self, other)

    def __hash__(self) -> int:
        return hash((self.feature, self.kind, self.outputs, self.n_rows_predicted, len(self.lines)))


def _same(one: Any, two: Any) -> bool:
    """Whether two values are equal; arrays by value, NaN equal to NaN."""
    if isinstance(one, np.ndarray) and isinstance(two, np.ndarray):
        return one.shape == two.shape and np.array_equal(one, two, equal_nan=one.dtype.kind == "f")
    if type(one) is not type(two):
        return False
    if isinstance(one, Sequence) and not isinstance(one, str):
        return len(one) == len(two) and all(_same(*pair) for pair in zip(one, two, strict=True))
    if is_dataclass(one) and type(one).__module__.startswith("subgrove._effects"):
        return all(_same(getattr(one, each.name), getattr(two, each.name)) for each in fields(one))
    return bool(one == two)

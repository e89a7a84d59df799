"""Shifted subgroups: the linear prediction of a feature plus a residual that is resampled within subgroups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np

from subgrove._core.execution import Streams, one_blas_thread, parallel_map
from subgrove._core.kinds import MISSING, Floats
from subgrove._data.encode import is_extreme
from subgrove._data.table import Table
from subgrove._regress.linear import fit_sparse_linear
from subgrove._regress.multinomial import fit_sparse_multinomial
from subgrove._subgroups import Partition
from subgrove._subgroups.partition import grow_partition
from subgrove.exceptions import ColumnError, ParameterError
from subgrove.samplers.base import Feature, FittedSampler, Sampler, lookup_feature
from subgrove.samplers.location_shift import ResidualSampler, intercept_only, residual_column
from subgrove.samplers.predicted_probabilities import LevelSampler
from subgrove.samplers.resampled_feature import ResampledFeature
from subgrove.samplers.training_donors import SharedTraining, TrainingSettings, has_few_levels, read_shared_training
from subgrove.trees.training import select_columns


@dataclass(eq=False, repr=False)
class ShiftedSubgroups(TrainingSettings, Sampler):
    """Predicts each value by a linear model of the other columns, and resamples the residual within subgroups.

    A numeric feature is the sum of a sparse linear prediction (few terms, including products of two columns if these
    matter) and a residual, whose subgroups are found by a transformation tree. A row receives the residual of a
    training row of its subgroup, added to its own prediction. A nominal feature (also an ordered one, or a number with
    few distinct values) has a sparse multinomial model, and levels are drawn with its probabilities.

    Parameters
    ----------
    max_depth : int, default 30
        Maximum depth of the tree of the residuals; usually its tests stop it before.
    min_samples_leaf : int, default 30
        Minimum number of training rows in a subgroup.
    alpha : float, default 0.05
        Significance level of the tests that stop a tree.
    given : list of str, optional
        Columns that the linear model and the subgroups may use.
    report_depth : int, default 2
        Depth of the subgroups by which results are reported. Resampling uses the full tree.
    max_rows : int, default 20000
        Maximum number of training rows; a random subset is used if there are more.
    random_state : int, default 0
        Seed of the cross-validation folds and of the random subset of rows.
    n_jobs : int, optional
        Number of features fitted in parallel.
    residual_retention : float or "auto", default "auto"
        Share of its own residual that a row retains, from 0 to 1. "auto" takes the share of the residual variance that
        a better estimate of the linear model would explain; 0 ignores the row's own value.

    Notes
    -----
    Values stay within the range of training and of the row's own value, except for a small margin if the extreme value
    of training is unique, and are not negative if no training value is. Integers, and columns with many repeated
    values, are rounded to the nearest training value. Features with missing values raise an error, because a missing
    value has no residual.

    Examples
    --------
    >>> import subgrove as sg
    >>> train, test = sg.datasets.bike(split=0.7, random_state=1)
    >>> sampler = sg.samplers.ShiftedSubgroups().fit(train.X, ["temp"])
    >>> sampler.shifts["temp"].columns[:2]
    ('season', 'hum')
    >>> for column in sampler.sample(test.X, "temp", 1):
    ...     print(len(column))
    219
    """

    name = "shifted_subgroups"
    accepts_missing = False

    residual_retention: float | Literal["auto"] = "auto"

    def fit(self, X: Any, features: Any = None) -> FittedShiftedSubgroups:
        """Fit the linear model of each feature on training rows, and find the subgroups of its residuals.

        Parameters
        ----------
        X : table
            Training rows.
        features : list, optional
            Names of the features that will be resampled, or groups of names; all columns by default.
        """
        share = self.residual_retention
        if share != "auto" and not (isinstance(share, int | float | np.number) and 0 <= share <= 1):
            raise ParameterError(f"residual_retention must be 'auto' or a number from 0 to 1; got {share!r}.")
        with one_blas_thread():
            columns, parsed, training = read_shared_training(self, X, features)
            samplers = parallel_map(partial(self._fit_feature, training), parsed, self.n_jobs)
            learned = dict(zip((name for (name,) in parsed), samplers, strict=True))
        needs_rows = any(one.values is not None for one in learned.values())
        return FittedShiftedSubgroups(columns, X if needs_rows else None, learned=learned)

    def _fit_feature(self, training: SharedTraining, feature: Feature) -> ResidualSampler | LevelSampler:
        (name,) = feature
        predictors = tuple(each for each in training.allowed if each != name)
        series = training.table.series(name)
        if has_few_levels(series):
            levels = fit_sparse_multinomial(training.grams, series, predictors)
            return LevelSampler.of(levels, series, training.rows, training.table.columns)
        if is_extreme(series.values):
            raise ColumnError(
                f"Column {name!r} of train has numbers above 1e70, or differences below 1e-70, for which no linear "
                f"model can be fitted. Rescale it, or use sampler 'auto'."
            )
        fit = fit_sparse_linear(training.grams, name, series.values, predictors)
        fit = fit or intercept_only(training.grams, series)
        columns = select_columns(training.table, predictors)
        tree = grow_partition(columns, feature, (residual_column(fit),), None, training.settings)
        return ResidualSampler.of(fit, tree, training, series, training.report_depth, self.residual_retention)


@dataclass(frozen=True, eq=False)
class FittedShiftedSubgroups(FittedSampler):
    """Adds resampled residuals to linear predictions; `learned` maps features to their samplers."""

    row_wise: ClassVar[bool] = True
    learned: Mapping[str, ResidualSampler | LevelSampler] = field(kw_only=True)

    def resample(
        self, table: Table, feature: Feature, rngs: Streams, *, weights: Floats | None = None, exact: bool = True
    ) -> ResampledFeature:
        """Resample one feature."""
        learned = lookup_feature(self.learned, feature, ShiftedSubgroups.name)
        series = table.series(feature[0])
        if (series.values == MISSING if series.info.is_nominal else series.missing).any():
            raise ParameterError(
                f"sampler {ShiftedSubgroups.name!r} takes no missing values, but column {feature[0]!r} of X has some. "
                f"Impute them, leave the column out of features, or use 'auto'."
            )
        return learned.resample(table, feature, rngs, exact=exact)

    def reporting_subgroups(self, feature: Feature) -> Partition | None:
        """Return the subgroups by which results of the feature are reported; None for levels."""
        return lookup_feature(self.learned, feature, ShiftedSubgroups.name).reporting_subgroups(feature)

    @property
    def shifts(self) -> dict[str, Any]:
        """Linear or multinomial predictor of each feature: `.terms`, `.columns`, `.text()`."""
        return {name: one.predictor for name, one in self.learned.items()}

    @property
    def subgroups(self) -> dict[str, Partition]:
        """Subgroups of the residuals of each numeric feature."""
        return {name: one.partition for name, one in self.learned.items() if one.partition is not None}

    @property
    def residual_retention(self) -> dict[str, float]:
        """Share of its own residual that a row retains, for each numeric feature."""
        return {name: one.retention for name, one in self.learned.items() if one.retention is not None}

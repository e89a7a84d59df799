"""Imputation: the prediction of a random forest from the other columns, plus a random residual."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from subgrove._core.execution import Streams, effective_jobs, read_seed, stream
from subgrove._core.kinds import Floats
from subgrove._core.validate import whole_number
from subgrove._data.columns import allowed_columns
from subgrove._data.encode import one_hot
from subgrove._data.replace_columns import Changes, Rows
from subgrove._data.table import Table
from subgrove._regress.forest import grow_forest
from subgrove.exceptions import ParameterError
from subgrove.samplers.base import Feature, FittedSampler, Sampler, lookup_feature, read_training_table
from subgrove.samplers.donors import cyclic_shifts, training_donors, weighted_donors
from subgrove.samplers.predicted_probabilities import sample_levels
from subgrove.samplers.resampled_feature import ResampledFeature, RowGroups

ResidualSource = Literal["oob", "train", "test"]
_FEW_LEVELS = 100
_FEWEST_TREES = 50
_FULL_SIZE = 50_000_000  # trees x rows x levels of a feature with more levels; larger forests have fewer trees
_MAX_SIZE = 150_000_000  # of the fewest trees: about 2.5 GB of memory


@dataclass(eq=False, repr=False)
class Imputation(Sampler):
    """Draws each value around the prediction of a random forest from the other columns.

    A numeric value is the forest's prediction plus the residual of a random row (Fisher, Rudin and Dominici 2019); a
    nominal or ordered value is a level drawn with the probabilities predicted by the forest. Residuals
    are assumed to have the same distribution everywhere.

    Parameters
    ----------
    n_trees : int, default 500
        Number of trees of each forest.
    min_node_size : int, default 5
        A node of at most this many rows is not split.
    max_features : "sqrt", "log2", float, int or None, default "sqrt"
        Number of columns tried at each split, as in scikit-learn; None tries all.
    residuals : {"oob", "train", "test"}, default "oob"
        Residuals that are added to predictions. "oob": out-of-bag residuals of training rows, as large as those of new
        rows. "train": residuals of in-sample predictions, which overfit: they are too small, and new values too close
        to the prediction. "test": residuals of the rows of X, no row keeping its own; as honest as "oob", but there are
        only as many as rows.
    n_jobs : int, optional
        Number of threads that grow trees. Results do not depend on it.
    random_state : int, default 0
        Seed of the forests. A feature's forest depends only on the seed and its name. None draws a new seed.
    given : str or list of str, optional
        Predictors of the forest; all other columns by default.

    Notes
    -----
    One forest for each feature: bootstrap samples, exact splits, no pruning. Numbers and level numbers are predictors
    as such, nominal columns as indicators; missing values go to the side of each split with the lower loss. Training
    rows in which the feature is missing are dropped; a row of X whose value is missing receives a drawn value like all
    others. Integers become floats. Values may be outside the range of training.

    Forests are large: 500 trees on 10,000 rows take about 140 MB for each feature. The forest of a feature with more
    than 100 levels has fewer trees, at least 50, if trees times rows times levels exceed 50 million. Without a C
    compiler, scikit-learn grows the forests: other trees of the same kind, several times slower.

    Examples
    --------
    >>> import subgrove as sg
    >>> train, test = sg.datasets.bike(split=0.7, random_state=1)
    >>> sampler = sg.samplers.Imputation(n_trees=20).fit(train.X, ["temp", "season"])
    >>> for column in sampler.sample(test.X.head(3), "season", 1):
    ...     print(set(column) <= {"WINTER", "SPRING", "SUMMER", "FALL"})
    True
    """

    name = "imputation"

    n_trees: int = 500
    min_node_size: int = 5
    max_features: Any = "sqrt"
    residuals: ResidualSource = "oob"
    n_jobs: int | None = None
    random_state: int | None = 0
    given: Any = None

    def for_chunks(self) -> Imputation:
        """Return the sampler itself, unless it needs residuals of X."""
        if self.residuals == "test":
            raise _needs_other_residuals()
        return self

    def fit(self, X: Any, features: Any = None) -> FittedImputation:
        """Grow a forest for each feature on training rows.

        Parameters
        ----------
        X : table
            Training rows.
        features : list, optional
            Names of the features that will be resampled, or groups of names; all columns by default.
        """
        if self.residuals not in ("oob", "train", "test"):
            raise ParameterError(f"residuals must be 'oob', 'train' or 'test'; got {self.residuals!r}.")
        whole_number("n_trees", self.n_trees, least=1)
        whole_number("min_node_size", self.min_node_size, least=1)
        effective_jobs(self.n_jobs)  # raises if n_jobs is invalid
        columns_tried(self.max_features, 1)  # likewise
        seed = read_seed(self.random_state)
        table, parsed = read_training_table(X, features, self)
        given = None if self.given is None else allowed_columns(self.given, table.names)
        forests = {name: self._fit_feature(table, name, given, stream(seed, name)) for (name,) in parsed}
        keeps_rows = any(forest.representatives is not None for forest in forests.values())
        return FittedImputation(table.columns, X if keeps_rows else None, forests=forests, given=given)

    def _fit_feature(
        self, table: Table, name: str, given: tuple[str, ...] | None, rng: np.random.Generator
    ) -> _FeatureForest:
        values = table.values(name)
        numeric = table.columns[table.names.index(name)].kind == "numeric"
        rows = np.flatnonzero(~np.isnan(values) if values.dtype.kind == "f" else values >= 0)
        predictors, values = one_hot(table, name, given)[rows], values[rows]
        levels, first, code = np.unique(values, return_index=True, return_inverse=True)
        n_trees, many = self.n_trees, not numeric and len(levels) > _FEW_LEVELS
        if many:
            n_trees = min(n_trees, max(_FEWEST_TREES, _FULL_SIZE // (len(rows) * len(levels))))
            if n_trees * len(rows) * len(levels) > _MAX_SIZE:
                raise ParameterError(
                    f"sampler 'imputation' would need too much memory for {name!r}, which has {len(levels):,} levels "
                    f"in {len(rows):,} rows. Merge rare levels, pass fewer trees (n_trees), or use the default sampler."
                )
        # The mean of an indicator is the level's share, and the decrease of squared error that of the Gini impurity.
        outputs = values[:, None] if numeric else (code[:, None] == np.arange(len(levels))).astype(np.float64)
        forest = grow_forest(
            predictors,
            outputs,
            n_trees=n_trees,
            min_node_size=self.min_node_size,
            tried=columns_tried(self.max_features, predictors.shape[1]),
            seed=int(rng.integers(2**31)),
            codes=code if many else None,  # the same forest up to rounding, grown faster
            n_jobs=self.n_jobs,
        )
        if not numeric:
            return _FeatureForest(forest, levels=levels, representatives=rows[first])
        return _FeatureForest(forest, residuals=self._residuals(forest, predictors, values, name))

    def _residuals(self, forest: Any, predictors: Floats, values: Floats, name: str) -> Floats | None:
        if self.residuals == "test":
            return None
        if self.residuals == "train":
            residuals: Floats = values - forest.predict(predictors)[:, 0]
            return residuals
        residuals = values - forest.out_of_bag[:, 0]
        residuals = residuals[~np.isnan(residuals)]
        if not residuals.size:
            raise ParameterError(
                f"sampler 'imputation' has no out-of-bag residual of {name!r}: each of its {len(values)} training rows "
                f"is in the bootstrap samples of all {self.n_trees} trees. Increase n_trees, or use residuals='train'."
            )
        return residuals


def columns_tried(max_features: Any, n_columns: int) -> int:
    """Return the number of columns tried at each split for scikit-learn's max_features."""
    if max_features is None:
        return n_columns
    if isinstance(max_features, str) and max_features in ("sqrt", "log2"):
        return max(1, int(np.sqrt(n_columns) if max_features == "sqrt" else np.log2(n_columns)))
    is_number = isinstance(max_features, int | float | np.number) and not isinstance(max_features, bool)
    if is_number and isinstance(max_features, int | np.integer) and max_features >= 1:
        return min(int(max_features), n_columns)
    if is_number and isinstance(max_features, float | np.floating) and 0 < max_features <= 1:
        return max(1, int(max_features * n_columns))
    raise ParameterError(
        f"max_features must be 'sqrt', 'log2', a share above 0 and up to 1, a number of columns, or None for all; "
        f"got {max_features!r}."
    )


@dataclass(frozen=True, eq=False)
class _FeatureForest:
    """Forest of one feature.

    Numeric features have `residuals`, None if these are taken from the rows to resample. Other features have `levels`,
    the value of each output of the forest, and `representatives`, a training row with each level.
    """

    forest: Any
    residuals: Floats | None = None
    levels: npt.NDArray[Any] | None = None
    representatives: Rows | None = None


@dataclass(frozen=True, eq=False)
class FittedImputation(FittedSampler):
    """Draws around the predictions of forests."""

    forests: Mapping[str, _FeatureForest] = field(kw_only=True)
    given: tuple[str, ...] | None = None  # predictors of the forests; None for all other columns

    def for_chunks(self) -> FittedImputation:
        """Return the sampler itself, unless it needs residuals of X."""
        if any(one.representatives is None and one.residuals is None for one in self.forests.values()):
            raise _needs_other_residuals()
        return self

    def resample(
        self, table: Table, feature: Feature, rngs: Streams, *, weights: Floats | None = None, exact: bool = True
    ) -> ResampledFeature:
        """Resample one feature."""
        forest, name = lookup_feature(self.forests, feature, Imputation.name), feature[0]
        predicted, own = forest.forest.predict(one_hot(table, name, self.given)), table.values(name)
        groups = RowGroups.single(len(own))
        if forest.representatives is not None:
            assert forest.levels is not None
            levels, rows = forest.levels, forest.representatives
            return sample_levels(predicted, levels, rows, own, name, rngs, exact=exact, groups=groups)
        residuals = forest.residuals
        if residuals is None:
            residuals = own - predicted[:, 0]
            if np.isnan(residuals).all():
                raise ParameterError(
                    f"sampler 'imputation' with residuals='test' has no residual of {name!r}: it is missing in every "
                    f"row. Use residuals='oob'."
                )
            donors, population = _residual_donors(residuals, rngs, weights, table.clusters)
        else:
            pool = np.arange(len(residuals))
            donors, population = lambda: training_donors(groups.code, [pool], rngs), float(len(pool))

        def draws() -> Iterator[Changes]:
            return ({name: predicted[:, 0] + residuals[rows]} for rows in donors())

        return ResampledFeature(groups, draws, None, np.array([population]))


def _residual_donors(
    residuals: Floats, rngs: Streams, weights: Floats | None, clusters: Rows | None
) -> tuple[Callable[[], Iterator[Rows]], float]:
    """Return the rows whose residual each row receives, and the number of distinct draws."""
    code = np.zeros(len(residuals), dtype=np.int32)
    known = ~np.isnan(residuals)
    if weights is not None or clusters is not None:
        shares = np.where(known, 1.0 if weights is None else weights, 0.0)
        return lambda: weighted_donors(code, 1, shares, rngs, clusters=clusters), np.inf
    if known.all():
        return lambda: (donors.rows for donors in cyclic_shifts(code, 1, rngs)), len(code) - 1.0
    return lambda: training_donors(code, [np.flatnonzero(known)], rngs), float(known.sum())


def _needs_other_residuals() -> ParameterError:
    return ParameterError(
        "sampler 'imputation' with residuals='test' adds residuals of other rows of X, and these are never all in "
        "memory if data come in chunks. Use residuals='oob'."
    )

"""The first two steps of `importance`: validated arguments, then rows and a fitted sampler.

They are shared by tables in memory, large data and tables on a device. Below are the checks of weights and rows, with
their warnings.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from subgrove._core.execution import effective_jobs, read_seed
from subgrove._core.kinds import Floats, Rows
from subgrove._core.text import count_of, first_of, percent
from subgrove._core.validate import reject_another_index, warn, whole_number
from subgrove._core.weights import read_weights
from subgrove._data.columns import parse_features, typed
from subgrove._data.from_containers import names_and_rows, untyped_column
from subgrove._data.replace_columns import Frames
from subgrove._data.table import Table, fingerprint, read_once, read_table, shared_rows
from subgrove._models.predictor import Target, as_model, default_loss, read_target
from subgrove._scoring.adaptive_repeats import AdaptiveRepeats
from subgrove._scoring.feature_result import FeatureResult
from subgrove._scoring.row_losses import RowLosses
from subgrove._version import __version__
from subgrove.exceptions import (
    FewRowsWarning,
    InputError,
    LengthError,
    ParameterError,
    SameRowsWarning,
    SingletonSubgroupWarning,
)
from subgrove.losses import Loss
from subgrove.losses.named import get_all
from subgrove.samplers.base import Feature, FittedSampler, title
from subgrove.samplers.fit import features_of, fitted_sampler, sampler_name, with_columns
from subgrove.samplers.given import Given, fitted_given, read_given

_FEW_ROWS = 50  # test rows, below which intervals are unreliable


@dataclass(frozen=True, eq=False, kw_only=True)
class ImportanceSpec:
    """Validated arguments of `importance`; `X`, `y`, `train`, `features`, `given` and weights are read later."""

    model: Any
    X: Any
    y: Any
    train: Any
    features: Any
    given: Any
    sampler: Any
    losses: tuple[Loss, ...]
    n_repeats: int
    adaptive: AdaptiveRepeats | None
    sample_weight: Any
    groups: Any
    response_method: str | None
    check_fidelity: bool
    seed: int
    n_jobs: int | None

    def parse_features(self, names: Sequence[str]) -> tuple[Feature, ...]:
        """Return the features among the columns of the data."""
        return parse_features(features_of(self.sampler) if self.features is None else self.features, names)

    def parse_given(self, features: Sequence[Feature], names: Sequence[str]) -> Mapping[Feature, Given] | None:
        """Return the conditioning columns of each feature, if they were passed."""
        if self.given is None:
            return None
        return read_given(self.given, features, names, named=self.features is not None)

    def fit_sampler(
        self, rows: Any, table: Table, train: Any, features: Sequence[Feature], given: Mapping[Feature, Given] | None
    ) -> tuple[FittedSampler, Table]:
        """Return the fitted sampler, for each set of conditioning columns if there are any, and the table it reads."""
        if given is None:
            return fitted_sampler(self.sampler, rows, table, train, features, self.model, self.seed)
        return fitted_given(self.sampler, given, rows, table, train, self.model, self.seed)

    def settings(
        self, fitted: Mapping[str, Any], given: Mapping[Feature, Given] | None, **others: Any
    ) -> dict[str, Any]:
        """Return the settings of the result; `fitted` has what a fitted sampler adds to them."""
        columns = None if given is None else {title(one): own if own is None else [*own] for one, own in given.items()}
        return {
            "method": "importance",
            "sampler": sampler_name(self.sampler),
            "n_repeats": self.n_repeats,
            "random_state": self.seed,
            **fitted,
            "given": columns,
            **others,
        }


def validate(
    *, n_repeats: Any, loss: Any, model: Any, random_state: Any, sampler: Any, **others: Any
) -> ImportanceSpec:
    """Return the arguments of `importance`, validated as far as possible without reading data."""
    adaptive = n_repeats if isinstance(n_repeats, AdaptiveRepeats) else None
    repeats = adaptive.start if adaptive is not None else whole_number("n_repeats", n_repeats, least=1)
    if not isinstance(others["check_fidelity"], bool):
        raise ParameterError(f"check_fidelity must be True or False; got {others['check_fidelity']!r}.")
    effective_jobs(others["n_jobs"])  # raises if n_jobs is invalid
    seed, model = read_seed(random_state), as_model(model)
    losses = get_all(default_loss(model, others["y"]) if loss is None else loss)
    return ImportanceSpec(
        model=model,
        losses=losses,
        n_repeats=repeats,
        adaptive=adaptive,
        seed=seed,
        sampler=with_columns(sampler),
        **others,
    )


@dataclass(frozen=True, eq=False)
class EvaluationRows:
    """Test rows in memory.

    Attributes
    ----------
    X : table
        All rows, as the user passed them.
    rows : table
        Rows with a weight above 0.
    row_numbers : int array or None
        Their numbers in X; None for all rows.
    table : Table
        The same rows, typed, with their clusters.
    features : tuple
        Features to resample.
    given : mapping or None
        Conditioning columns of each feature.
    target : Target
        y of the rows.
    weights : float array or None
        Weights of the rows.
    """

    X: Any
    rows: Any
    row_numbers: Rows | None
    table: Table
    features: tuple[Feature, ...]
    given: Mapping[Feature, Given] | None
    target: Target
    weights: Floats | None


def read_rows(
    spec: ImportanceSpec, X: Any, y: Any, sample_weight: Any, classes: tuple[Any, ...], *, probabilities: bool
) -> EvaluationRows:
    """Read the test rows; those of weight 0 are left out."""
    table = read_table(X, lenient=True)
    warn_of_few_rows(table.n_rows)
    features = spec.parse_features(table.names)
    reject_another_index(X, y=y, sample_weight=sample_weight, groups=spec.groups)
    target = read_target(y, table.n_rows, classes, spec.losses, probabilities=probabilities)
    weights = read_row_weights(sample_weight, table.n_rows)
    rows, numbers, kept = X, None, np.arange(table.n_rows)
    if weights is not None and not (weights > 0).all():
        numbers = kept = np.flatnonzero(weights > 0)
        rows = Frames(X, table.columns).changed(numbers, {})
        weights, target = weights[numbers], target.taken(numbers)
    clusters = read_clusters(spec.groups, table, kept)
    table = (table if numbers is None else read_table(rows, lenient=True)).with_clusters(clusters)
    given = spec.parse_given(features, table.names)
    return EvaluationRows(X, rows, numbers, table, features, given, target, weights)


def warn_of_few_rows(n_rows: int) -> None:
    """Say that there are few test rows."""
    if n_rows < _FEW_ROWS:
        warn(
            f"X has {count_of(n_rows, 'row')}; with fewer than {_FEW_ROWS}, estimates are noisy and their intervals "
            "unreliable. Pass more held-out rows.",
            FewRowsWarning,
        )


@dataclass(frozen=True, eq=False)
class FittedRows:
    """A fitted sampler, the test rows as it reads them, and the training rows it was fitted on."""

    sampler: FittedSampler
    table: Table
    train: Any
    fingerprint: str

    @property
    def settings(self) -> dict[str, Any]:
        """Settings of the result."""
        choices = {name: [one.to_dict() for one in made] for name, made in self.sampler.selections().items()}
        return {"trained_on": trained_on(self.sampler, self.train), "choices": choices}


def fit(spec: ImportanceSpec, data: EvaluationRows) -> FittedRows:
    """Fit the sampler; warn if it was fitted on the test rows."""
    train = spec.train
    _reject_reordered(spec.model, data.table.names, train)
    with read_once(data.rows, train, table=data.table):
        sampler, table = spec.fit_sampler(data.rows, data.table, train, data.features, data.given)
        mark = fingerprint(data.table)
        warn_of_same_rows(sampler, mark, data.table, table, train)
    return FittedRows(sampler, table, train, mark)


def trained_on(fitted: FittedSampler, train: Any) -> str:
    """Which rows the sampler was fitted on, in a word."""
    parts = [part for part in fitted.members if part.learned_from_rows]
    if not parts:
        return "nothing"
    if any(part.cross_fitted for part in parts):
        return "cross-fitted"
    return "before" if train is None else "train"


def _reject_reordered(model: Any, names: tuple[str, ...], train: Any) -> None:
    """Raise if columns are in another order than in training, and the model does not know their names."""
    by_position = hasattr(model, "n_features_in_") and not hasattr(model, "feature_names_in_")
    trained = names_and_rows(train)[0] if train is not None and by_position else names
    if set(trained) == set(names) and tuple(trained) != names:
        raise InputError(
            "X has the columns of train in another order, and model was fitted on an array, so it goes by position. "
            "Pass X with its columns in the order of train."
        )


def warn_of_same_rows(fitted: FittedSampler, mark: str, table: Table, redrawn: Table, train: Any) -> None:
    """Say that test rows are training rows; `mark` is the fingerprint of `table`, `redrawn` the same as resampled."""
    fitted = next((part for part in fitted.members if not part.keeps_marginal), fitted)
    own = fingerprint(redrawn) if fitted.training_fingerprint and fitted.has_user_kinds else mark
    if fitted.training_fingerprint == own:
        what = "The sampler was fitted on the same rows as X"
    elif train is not None and (share := shared_rows(table, read_table(train, lenient=True))):
        what = f"{percent(share)} of the rows of X are also in train" if share < 1 else "X and train have the same rows"
    else:
        return
    warn(
        f"{what}. Importance on training rows is optimistic, and resampled rows look more realistic than they "
        "are. Pass held-out rows as X and y.",
        SameRowsWarning,
    )


def warn_of_singletons(scores: Sequence[FeatureResult]) -> None:
    """Say which subgroups had one row, which no other row of the same subgroup could be given to."""
    alone = [f"{score.title!r} where {score.rules[k]}" for score in scores for k in score.singletons]
    if alone:
        more = f" and {len(alone) - 3} more" if len(alone) > 3 else ""
        warn(
            f"Subgroups of one row, or of one group of rows, have no donors, so their importance is 0: "
            f"{'; '.join(alone[:3])}{more}. Use samplers.SubgroupSampler(donors='train'), a smaller "
            "max_depth or more rows.",
            SingletonSubgroupWarning,
        )


def read_row_weights(sample_weight: Any, n_rows: int) -> Floats | None:
    """Return the weights; None if all are 1."""
    weights = None if sample_weight is None else read_weights(sample_weight, n_rows)
    return None if weights is None or (weights == 1).all() else weights


def read_clusters(groups: Any, table: Table, rows: Rows) -> Rows | None:
    """Return the cluster of each of the rows, numbered from 0; None if each row is a cluster of its own.

    `groups` has a value for each row of the table, or is the name of one of its columns.
    """
    if groups is None:
        return None
    if isinstance(groups, str):
        if groups not in table.names:
            raise ParameterError(
                f"groups={groups!r} is not a column of X: {first_of(list(table.names), 8)}. Name one, or pass one "
                f"value for each row."
            )
        info, values = table.series(groups).info, table.series(groups).values
    else:
        column, _ = untyped_column(groups, "groups")
        if len(column) != table.n_rows:
            raise LengthError(
                f"groups has {len(column)} values, but X has {table.n_rows} rows. Pass one value for each row of X."
            )
        info, values = typed(column, "groups", None, "groups")
    values = values[rows]
    missing = np.flatnonzero(values < 0 if info.is_nominal else np.isnan(values))
    if len(missing):
        raise InputError(
            f"groups is missing in {len(missing)} rows, the first of them row {rows[missing[0]]}. Give each row a "
            f"group, a value of its own if it belongs to no other, or leave these rows out."
        )
    _, first, clusters = np.unique(values, return_index=True, return_inverse=True)
    if len(first) == 1:
        raise InputError(
            "groups has the same value in all rows, so no row is independent of another. Pass a finer grouping, or "
            "omit groups."
        )
    # Numbered by their first rows, so that draws do not depend on the names of groups.
    return None if len(first) == len(rows) else np.argsort(np.argsort(first))[clusters]


def reject_weighted_scores(losses: RowLosses, weights: Floats | None) -> None:
    """Raise if weights are used with a score of all rows together."""
    scores = [loss.name for loss in losses.losses if not loss.per_row]
    if scores and weights is not None:
        raise ParameterError(
            f"weights cannot be used with {', '.join(scores)}, a score of all rows together. "
            f"Use a loss that has a value for each row, or leave weights out."
        )


def versions() -> dict[str, str]:
    """Return the versions that results were computed with."""
    return {"subgrove": __version__, "numpy": np.__version__, "python": platform.python_version()}


def read_pair(argument: str, value: Any, remedy: str = "") -> tuple[Any, Any]:
    """Return the rows and the target of a data set or of a pair."""
    pair = (value.X, value.y) if hasattr(value, "X") and hasattr(value, "y") else value
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise ParameterError(
            f"{argument} must be a pair (X, y), or have .X and .y; got {type(value).__name__}.{remedy}"
        )
    return pair[0], pair[1]

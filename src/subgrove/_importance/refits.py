"""Importance for a model class: models are fitted on random splits, so that intervals cover the training rows.

A single fitted model does not show how much its importance depends on the rows it was fitted on. Here rows are split at
random repeatedly; a model is fitted on the training side, and importance is computed on the test side. Training sets
overlap, so estimates are positively correlated and their variance is too small: Nadeau and Bengio (2003) correct the
variance of their mean, s² / J, to (1 / J + n_test / n_train) s².

That is a rule of thumb. A row influences the estimate as a training row and as a test row; where both influences are
similar, they cancel between splits, and the variance over refits is still too small (docs/inference.md has a case).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from subgrove._core.parallel import progress_bar
from subgrove._core.random import read_seed, stream
from subgrove._core.validate import reject_another_index, whole_number
from subgrove._data.replace_columns import Frames
from subgrove._data.table import read_table
from subgrove._importance.importance import importance
from subgrove._importance.loco import Refit, unfitted
from subgrove._importance.refits_result import RefitsResult
from subgrove._importance.result import ImportanceResult
from subgrove._scoring.estimate_variance import monte_carlo_variance
from subgrove._scoring.feature_result import FeatureResult
from subgrove.exceptions import InputError, ModelError, ParameterError, SubgroveError, SubgroveWarning

Fit = Callable[[Any, Any], Any]


def importance_over_refits(
    model: Any,
    X: Any,
    y: Any,
    *,
    n_refits: int = 15,
    test_share: float = 0.25,
    refit: Refit | None = None,
    sampler: Any = "auto",
    features: Any = None,
    loss: Any = None,
    n_repeats: int = 10,
    response_method: str | None = None,
    random_state: int | None = None,
    n_jobs: int | None = None,
    progress: bool | None = None,
) -> RefitsResult:
    """Compute the importance of features for a model class, averaged over models fitted on random splits.

    The estimand differs from that of `importance`: not what this model relies on, but what models rely on that are
    fitted in this way on so many rows. The interval covers the training rows, the sampler, the test rows and the
    Monte Carlo draws.

    Parameters
    ----------
    model : object with `fit`
        Unfitted copies of it are fitted; it is not changed itself.
    X : table
        All rows, training and test.
    y : column or array
        Target of all rows.
    n_refits : int, default 15
        Number of random splits, each with a model of its own.
    test_share : float, default 0.25
        Share of the rows that importance is computed on.
    refit : callable, optional
        Takes training table and target and returns a fitted model, in place of copies of `model`.
    sampler : str or sampler, default "auto"
        As in `importance`, unfitted: it is fitted on the training rows of each split.
    features, loss, n_repeats, response_method : optional
        As in `importance`.
    random_state : int, RandomState instance or Generator, optional
        Random state of the splits and the draws.
    n_jobs : int, optional
        Number of processes.
    progress : bool, optional
        Whether to show a progress bar; None shows it in a terminal.

    Returns
    -------
    RefitsResult
        `.overall` in the columns of `importance`, `.refits` with a row for each feature and refit.

    Notes
    -----
    Each model predicts as many rows as `importance` needs for the test rows of the split.

    Examples
    --------
    >>> import subgrove as sg
    >>> from sklearn.linear_model import LinearRegression
    >>> bike = sg.datasets.bike()
    >>> X = bike.X[["temp", "hum", "wind"]]
    >>> found = sg.importance_over_refits(
    ...     LinearRegression(), X, bike.y, n_refits=5, loss="absolute_error", random_state=1
    ... )
    >>> found.overall["noise"][0]
    'test rows + Monte Carlo + sampler + model'
    >>> (found.overall["p_holm"] < 0.05).tolist()
    [True, True, True]
    """
    refits = whole_number("n_refits", n_refits, least=2)
    start = read_seed(random_state)
    splits = _read_splits(X, y, test_share, start)
    options = {
        "sampler": sampler,
        "features": features,
        "loss": loss,
        "n_repeats": n_repeats,
        "response_method": response_method,
        "n_jobs": n_jobs,
        "progress": False,
    }
    fit = refit if refit is not None else lambda rows, target: unfitted(model).fit(rows, target)
    results = []
    with progress_bar(progress, refits, "Refitting") as done:
        for number in range(refits):
            results.append(_importance_of_refit(splits, fit, number, options))
            done(1)
    return _mean_over_refits(results, splits)


def _importance_of_refit(splits: _Splits, fit: Fit, number: int, options: dict[str, Any]) -> ImportanceResult:
    train_X, train_y, test_X, test_y = splits(number)
    fitted = _fitted(fit, train_X, train_y, number)
    seed = int(stream(splits.seed, f"draws of refit {number}").integers(2**62))
    with warnings.catch_warnings():
        if number:  # warnings about the data are given in the first refit
            warnings.simplefilter("ignore", SubgroveWarning)
        return importance(fitted, test_X, test_y, train=train_X, random_state=seed, **options)


def _mean_over_refits(results: Sequence[ImportanceResult], splits: _Splits) -> RefitsResult:
    first = results[0]
    estimates = np.array([[score.overall.mean(axis=1) for score in one.scores] for one in results])
    draws = [[_monte_carlo_variances(score, one.per_row_losses) for score in one.scores] for one in results]
    settings = {
        **first.settings,
        "method": "importance over refits",
        "n_refits": len(results),
        "n_test": splits.n_test,
        "n_train": splits.n_rows - splits.n_test,
        "random_state": splits.seed,
        "trained_on": "train",
        "n_rows_predicted": sum(one.settings["n_rows_predicted"] for one in results),
        "n_calls": sum(one.settings["n_calls"] for one in results),
        "fingerprint": None,
    }
    return RefitsResult(
        features=first.features,
        losses=first.losses,
        estimates=estimates.transpose(2, 1, 0),
        mc_error=np.sqrt(np.mean(draws, axis=0).T / len(results)),
        baseline=tuple(np.mean([one.baseline for one in results], axis=0).tolist()),
        settings=settings,
        backend=first.backend,
    )


def _monte_carlo_variances(score: FeatureResult, per_row_losses: Sequence[bool]) -> list[float]:
    return [monte_carlo_variance(score, at, per_row=per_row) for at, per_row in enumerate(per_row_losses)]


def _read_splits(X: Any, y: Any, test_share: Any, seed: int) -> _Splits:
    table = read_table(X, lenient=True)
    reject_another_index(X, y=y)
    if len(y) != table.n_rows:
        raise InputError(
            f"y has {len(y)} values, but X has {table.n_rows} rows. Pass one value of y for each row of X."
        )
    return _Splits(Frames(X, table.columns), X, y, table.n_rows, _n_test(test_share, table.n_rows), seed)


def _n_test(test_share: Any, n_rows: int) -> int:
    if isinstance(test_share, bool) or not isinstance(test_share, int | float | np.number) or not 0 < test_share < 1:
        raise ParameterError(f"test_share must be a number between 0 and 1; got {test_share!r}.")
    n_test = round(float(test_share) * n_rows)
    if not 2 < n_test < n_rows - 1:
        raise ParameterError(
            f"test_share={test_share!r} of {n_rows} rows leaves {n_test} test rows and "
            f"{n_rows - n_test} training rows. Pass more rows, or another share."
        )
    return n_test


@dataclass(frozen=True, eq=False)
class _Splits:
    """Random splits into training and test rows, one for each refit."""

    frames: Frames
    X: Any
    y: Any
    n_rows: int
    n_test: int
    seed: int

    def __call__(self, number: int) -> tuple[Any, Any, Any, Any]:
        order = stream(self.seed, f"refit {number}").permutation(self.n_rows)
        test, train = np.sort(order[: self.n_test]), np.sort(order[self.n_test :])
        return self.frames.changed(train, {}), self._of(train), self.frames.changed(test, {}), self._of(test)

    def _of(self, rows: Any) -> Any:
        # Tables of some rows are numbered from 0.
        return self.y.iloc[rows].reset_index(drop=True) if hasattr(self.y, "iloc") else np.asarray(self.y)[rows]


def _fitted(fit: Fit, X: Any, y: Any, number: int) -> Any:
    try:
        return fit(X, y)
    except (SubgroveError, SubgroveWarning):
        raise
    except Exception as error:
        raise ModelError(f"Refit {number} raised {type(error).__name__}: {error}") from error

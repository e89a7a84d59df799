"""`importance_over_refits`: importance for a way of fitting models, with the noise of fitting in it.

One fitted model cannot tell how much its importance owes to the rows it was fitted on. Here rows are split at random
again and again; each time a model is fitted on one part, and importance is computed on the other one. Training parts
overlap, so the estimates are alike and their spread says too little: Nadeau and Bengio (2003) correct the variance of
their mean, s² / J, to (1 / J + n_test / n_train) s².

That is a rule of thumb. A row moves the estimate as a training row and as a test row; where both moves are alike, they
cancel between splits, and the spread over refits says too little still (docs/inference.md has a case).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from subgrove._core.parallel import progress_bar
from subgrove._core.random import read_seed, stream
from subgrove._core.validate import reject_another_index, whole_number
from subgrove._data.replace_columns import Frames
from subgrove._data.result_tables import backend_of
from subgrove._data.table import read_table
from subgrove._importance.importance import importance
from subgrove._importance.loco import Refit, unfitted
from subgrove._importance.refits_result import RefitsResult
from subgrove._scoring.estimate_variance import monte_carlo_variance
from subgrove.exceptions import InputError, ModelError, ParameterError, SubgroveError, SubgroveWarning


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
    """Importance of features for models that are fitted again and again, with the noise of fitting.

    It answers another question than `importance`: not what this model relies on, but what models rely on that are
    fitted in this way on so many rows. The interval covers the rows they are fitted on, the sampler, the test rows and
    the draws.

    Parameters
    ----------
    model : object with `fit`
        Of which unfitted copies are fitted; it stays as it is.
    X : table
        All rows, training and test.
    y : column or array
        Target of all rows.
    n_refits : int, default 15
        Number of random splits, each with a model of its own.
    test_share : float, default 0.25
        Share of the rows that importance is computed on.
    refit : callable, optional
        From training table and target to a fitted model, in place of copies of `model`.
    sampler : str or sampler, default "auto"
        As in `importance`, not fitted: it is fitted on the training rows of each split.
    features, loss, n_repeats, response : optional
        As in `importance`.
    random_state : int, RandomState instance or Generator, optional
        Of the splits and the draws.
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
    Each refit asks its model for what `importance` asks for the test rows of the split.

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
    table = read_table(X, lenient=True)
    reject_another_index(X, y=y)
    if len(y) != table.n_rows:
        raise InputError(
            f"y has {len(y)} values, but X has {table.n_rows} rows. Pass one value of y for each row of X."
        )
    n_test = _n_test(test_share, table.n_rows)
    splitting = _Splitting(Frames(X, table.columns), X, y, table.n_rows, n_test, start)
    fit = refit if refit is not None else lambda rows, target: unfitted(model).fit(rows, target)
    options = {
        "sampler": sampler,
        "features": features,
        "loss": loss,
        "n_repeats": n_repeats,
        "response_method": response_method,
    }
    found = []
    with progress_bar(progress, refits, "Refitting") as done:
        for number in range(refits):
            train_X, train_y, test_X, test_y = splitting(number)
            fitted = _fitted(fit, train_X, train_y, number)
            with warnings.catch_warnings():
                if number:  # what there is to say of the data was said the first time
                    warnings.simplefilter("ignore", SubgroveWarning)
                own_seed = int(stream(start, f"draws of refit {number}").integers(2**62))
                found.append(
                    importance(
                        fitted,
                        test_X,
                        test_y,
                        train=train_X,
                        random_state=own_seed,
                        n_jobs=n_jobs,
                        progress=False,
                        **options,
                    )
                )
            done(1)
    estimates = np.array([[score.overall.mean(axis=1) for score in one.scores] for one in found])
    first = found[0]
    draws = [
        [
            [monte_carlo_variance(score, at, per_row=own) for at, own in enumerate(one.per_row_losses)]
            for score in one.scores
        ]
        for one in found
    ]
    settings = {
        **first.settings,
        "method": "importance over refits",
        "n_refits": refits,
        "n_test": n_test,
        "n_train": table.n_rows - n_test,
        "random_state": start,
        "trained_on": "train",
        "n_rows_predicted": sum(one.settings["n_rows_predicted"] for one in found),
        "n_calls": sum(one.settings["n_calls"] for one in found),
        "fingerprint": None,
    }
    return RefitsResult(
        first.features,
        first.losses,
        estimates.transpose(2, 1, 0),
        np.sqrt(np.mean(draws, axis=0).T / refits),
        tuple(np.mean([one.baseline for one in found], axis=0).tolist()),
        settings,
        backend_of(X),
    )


def _n_test(test_share: Any, n_rows: int) -> int:
    if isinstance(test_share, bool) or not isinstance(test_share, int | float | np.number) or not 0 < test_share < 1:
        raise ParameterError(f"test_share must be a number between 0 and 1; got {test_share!r}.")
    n_test = round(float(test_share) * n_rows)
    if not 2 < n_test < n_rows - 1:
        raise ParameterError(
            f"test_share={test_share!r} of {n_rows} rows leaves {n_test} to compute importance on and "
            f"{n_rows - n_test} to fit a model on. Pass more rows, or another share."
        )
    return n_test


@dataclass(frozen=True, eq=False)
class _Splitting:
    """Training and test rows of each refit."""

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


def _fitted(fit: Callable[[Any, Any], Any], X: Any, y: Any, number: int) -> Any:
    try:
        return fit(X, y)
    except (SubgroveError, SubgroveWarning):
        raise
    except Exception as error:
        raise ModelError(f"Refit {number} raised {type(error).__name__}: {error}") from error

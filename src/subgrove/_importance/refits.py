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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from subgrove._core.execution import RandomStateLike, progress_bar, read_seed, stream
from subgrove._core.kinds import Floats
from subgrove._core.text import lines_of, with_errors
from subgrove._core.validate import names_arguments, proportion, reject_another_index, whole_number
from subgrove._data.replace_columns import Frames
from subgrove._data.table import read_table
from subgrove._data.to_containers import table_of_lines
from subgrove._importance import intervals
from subgrove._importance.importance import importance
from subgrove._importance.loco import Refit, fit_again
from subgrove._importance.result import ImportanceResult
from subgrove._importance.storage import StoredResult
from subgrove._importance.tables import loss_column
from subgrove.exceptions import InputError, ParameterError, SubgroveWarning


@dataclass(frozen=True, eq=False)
class RefitsResult(StoredResult):
    """Importance of features for a model class: the mean over models fitted on random splits.

    Attributes
    ----------
    features : tuple of str
        Names of the features, in the order of the tables.
    losses : tuple of str
        Names of the losses.
    estimates : float array (losses, features, refits)
        Importance in each refit.
    mc_error : float array (losses, features)
        Monte Carlo error of the mean.
    baseline : tuple of float
        Mean baseline loss, one for each loss.
    settings : mapping
        How it was computed.
    backend : str
        Library of the tables.
    level : float
        Confidence level of the intervals.

    Notes
    -----
    `estimate` is the mean over refits, `std_error` the root of (1 / J + n_test / n_train) s², with s² the variance over
    the J refits. Test, interval and p-value are those of Student's t with J - 1 degrees of freedom.

    Examples
    --------
    >>> import subgrove as sg
    >>> from sklearn.linear_model import LinearRegression
    >>> bike = sg.datasets.bike()
    >>> X = bike.X[["temp", "hum", "wind"]]
    >>> refits = sg.importance_over_refits(LinearRegression(), X, bike.y, n_refits=3, random_state=1)
    >>> len(refits.refits)
    9
    """

    _tables = ("overall", "refits")
    _kind = "importance over refits"

    features: tuple[str, ...]
    losses: tuple[str, ...]
    estimates: Floats
    mc_error: Floats
    baseline: tuple[float, ...]
    settings: Mapping[str, Any]
    backend: str = "pandas"
    level: float = 0.95

    @property
    def overall(self) -> Any:
        """One row for each feature (and loss): the mean over refits, with the noise of all sources."""
        n_refits = self.estimates.shape[2]
        ratio = 1.0 / n_refits + self.settings["n_test"] / self.settings["n_train"]
        errors = np.sqrt(ratio * self.estimates.var(axis=2, ddof=1))
        freedom = np.full(len(self.features), n_refits - 1.0)
        lines, sources = [], (intervals.TEST_ROWS, intervals.MONTE_CARLO, intervals.SAMPLER, intervals.MODEL)
        for at in range(len(self.losses)):
            columns = intervals.interval_columns(self.estimates[at].mean(axis=1), errors[at], freedom, self.level)
            for k, feature in enumerate(self.features):
                line = {**loss_column(self.losses, at), "feature": feature, "n": int(self.settings["n_test"])}
                line |= {name: float(values[k]) for name, values in columns.items()}
                lines.append(line | {"mc_error": float(self.mc_error[at, k]), "noise": intervals.label(sources)})
        return table_of_lines(self.backend, intervals.adjusted_p_values(lines))

    @property
    def refits(self) -> Any:
        """One row for each feature and refit (and loss)."""
        lines = [
            {**loss_column(self.losses, at), "feature": feature, "refit": number, "estimate": float(value)}
            for at in range(len(self.losses))
            for k, feature in enumerate(self.features)
            for number, value in enumerate(self.estimates[at, k])
        ]
        return table_of_lines(self.backend, lines)

    def with_level(self, level: float) -> RefitsResult:
        """Return the same result with intervals of another confidence level.

        Parameters
        ----------
        level : float
            Coverage of the intervals, between 0 and 1.
        """
        return replace(self, level=proportion("level", level))

    def __repr__(self) -> str:
        found = self._largest_first()
        texts = with_errors([line["estimate"] for line in found], [line["std_error"] for line in found])
        lines = [(line["feature"], text) for line, text in zip(found, texts, strict=True)]
        return lines_of(f"<RefitsResult: {len(self.features)} features, {self.estimates.shape[2]} refits>", lines)

    def _largest_first(self) -> list[dict[str, Any]]:
        """Return the lines of `overall` for the first loss."""
        table = replace(self, backend="pandas").overall
        table = table[table["loss"] == self.losses[0]] if "loss" in table else table
        return list(table.sort_values("estimate", ascending=False, kind="stable").to_dict("records"))


@names_arguments()
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
    random_state: RandomStateLike = None,
    n_jobs: int | None = None,
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
    splits = _Splits.read(X, y, test_share, read_seed(random_state))
    options = {
        "sampler": sampler,
        "features": features,
        "loss": loss,
        "n_repeats": n_repeats,
        "response_method": response_method,
        "n_jobs": n_jobs,
    }
    results = []
    with progress_bar(refits, "Refitting") as done:
        for number in range(refits):
            results.append(_importance_of_refit(splits, model, refit, number, options))
            done(1)
    return _mean_over_refits(results, splits)


def _importance_of_refit(
    splits: _Splits, model: Any, refit: Refit | None, number: int, options: dict[str, Any]
) -> ImportanceResult:
    train_X, train_y, test_X, test_y = splits(number)
    fitted = fit_again(model, refit, train_X, train_y, f"Refit {number}")
    seed = int(stream(splits.seed, f"draws of refit {number}").integers(2**62))
    with warnings.catch_warnings():
        if number:  # warnings about the data are given in the first refit
            warnings.simplefilter("ignore", SubgroveWarning)
        return importance(fitted, test_X, test_y, train=train_X, random_state=seed, **options)


def _mean_over_refits(results: Sequence[ImportanceResult], splits: _Splits) -> RefitsResult:
    first = results[0]
    estimates = np.array([[score.overall.mean(axis=1) for score in one.scores] for one in results])
    draws = [[intervals.monte_carlo_variances(score, one.per_row_losses) for score in one.scores] for one in results]
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


@dataclass(frozen=True, eq=False)
class _Splits:
    """Random splits into training and test rows, one for each refit."""

    frames: Frames
    y: Any
    n_rows: int
    n_test: int
    seed: int

    @classmethod
    def read(cls, X: Any, y: Any, test_share: Any, seed: int) -> _Splits:
        """Validate the rows and the share of the test rows."""
        table = read_table(X, lenient=True)
        n_rows = table.n_rows
        reject_another_index(X, y=y)
        if len(y) != n_rows:
            raise InputError(f"y has {len(y)} values, but X has {n_rows} rows. Pass one value of y for each row of X.")
        n_test = round(proportion("test_share", test_share) * n_rows)
        if not 2 < n_test < n_rows - 1:
            raise ParameterError(
                f"test_share={test_share!r} of {n_rows} rows leaves {n_test} test rows and "
                f"{n_rows - n_test} training rows. Pass more rows, or another share."
            )
        return cls(Frames(X, table.columns), y, n_rows, n_test, seed)

    def __call__(self, number: int) -> tuple[Any, Any, Any, Any]:
        order = stream(self.seed, f"refit {number}").permutation(self.n_rows)
        test, train = np.sort(order[: self.n_test]), np.sort(order[self.n_test :])
        return self.frames.changed(train, {}), self._of(train), self.frames.changed(test, {}), self._of(test)

    def _of(self, rows: Any) -> Any:
        # Tables of some rows are numbered from 0.
        return self.y.iloc[rows].reset_index(drop=True) if hasattr(self.y, "iloc") else np.asarray(self.y)[rows]

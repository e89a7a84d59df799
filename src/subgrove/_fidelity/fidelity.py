"""Data fidelity (as in the paper): how close resampled rows are to the data, for any sampler; and its result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from subgrove._core.execution import RandomStateLike, effective_jobs, read_seed, stream
from subgrove._core.html_views import ResultView
from subgrove._core.kinds import Floats
from subgrove._core.text import count_of, percent
from subgrove._core.validate import names_arguments, warn, whole_number
from subgrove._data.columns import parse_features
from subgrove._data.replace_columns import Frames
from subgrove._data.table import Table, read_table, shared_rows
from subgrove._data.to_containers import Backend, backend_of, make_table, table_of_lines
from subgrove._fidelity import compare
from subgrove.exceptions import SameRowsWarning, SamplerError
from subgrove.samplers.base import title
from subgrove.samplers.fit import training_rows

_SAMPLERS = ("auto", "subgroups", "knockoffs", "imputation", "intervals")
_MIN_GAP = 2.0  # smallest difference of the bounds, in standard errors, for which positions are defined


@dataclass(frozen=True, eq=False, repr=False)
class Fidelity(ResultView):
    """Realism of resampled rows, as returned by `subgrove.fidelity`.

    Tables are frames of the same library as the test rows, pandas for arrays.

    Attributes
    ----------
    features : tuple of str
        Names of the features, in the order of the tables.
    samplers : tuple of str
        Names of the samplers; "unchanged" is the first, "marginal" the last.
    squared_mmd : float array (features, samplers, repeats)
        Squared MMD between reference and resampled rows; NaN where a sampler failed.
    auc : float array (features, samplers, repeats) or None
        Held-out AUC of a classifier for resampled against reference rows; None with `classifier=False`.
    notes : mapping
        (feature, sampler) -> reason why the sampler could not resample the feature.
    n, n_reference : int
        Number of resampled rows and of reference rows in each repeat.
    settings : mapping
        Settings of the computation: repeats, seed, numbers of rows.
    backend : str
        Library of the tables.

    Notes
    -----
    How to read it: `estimate` is -log of the squared MMD, so larger is better, and the difference of two estimates is
    the log of a ratio. Unchanged test rows are the upper bound. A sampler no better than "marginal" ignores the
    dependence of the feature on other columns. `position` is the position between these bounds: 0 is marginal, 1 is
    unchanged. It is NaN if the bounds differ by less than two standard errors, as for a feature that is independent of
    the others: any sampler is sufficient there. Noise can push a position slightly outside of 0 to 1; far below 0, rows
    are less realistic than permuted ones.

    `auc` is the held-out AUC of a classifier for resampled against real rows; 0.5 means that they are
    indistinguishable. It can detect differences that the MMD, which weights all columns equally, misses, above all
    with many columns.

    Standard errors cover the random splits and draws, for the given test rows. All samplers share the same splits, so
    `position_std_error` is more informative about their differences than `std_error`.

    Examples
    --------
    >>> import subgrove as sg
    >>> train, test = sg.datasets.bike(split=0.7, random_state=1)
    >>> options = {"features": "temp", "classifier": False, "random_state": 1}
    >>> fid = sg.fidelity(train.X, test.X, samplers=["subgroups"], **options)
    >>> fid.table[["feature", "sampler", "n", "estimate", "position"]].round(2)
      feature    sampler    n  estimate  position
    0    temp  unchanged  109      5.18       1.0
    1    temp  subgroups  109      5.11       0.7
    2    temp   marginal  109      4.95       0.0
    """

    _tables = ("table", "overall", "repeats")

    features: tuple[str, ...]
    samplers: tuple[str, ...]
    squared_mmd: Floats
    auc: Floats | None
    notes: Mapping[tuple[str, str], str]
    n: int
    n_reference: int
    settings: Mapping[str, Any]
    backend: Backend = "pandas"

    @property
    def table(self) -> Any:
        """One row for each feature and sampler."""
        values, (position, noise) = self.estimates, self._positions(self.estimates)
        pairs = list(product(self.features, self.samplers))
        features, samplers = zip(*pairs, strict=True)
        columns: dict[str, Any] = {"feature": features, "sampler": samplers, "n": [self.n] * len(pairs)}
        numbers = {"estimate": values.mean(axis=2), "std_error": _errors(values)}
        numbers |= {"position": position, "position_std_error": noise}
        if self.auc is not None:
            numbers |= {"auc": self.auc.mean(axis=2), "auc_std_error": _errors(self.auc)}
        columns |= {name: each.ravel() for name, each in numbers.items()}
        return make_table(self.backend, {**columns, "note": [self.notes.get(pair, "") for pair in pairs]})

    @property
    def overall(self) -> Any:
        """One row for each sampler: means over the `n_features` features that it can resample, best first.

        `position` is that of its mean estimate between the mean bounds of the same features, so that samplers with
        different features can be compared; features whose bounds are far apart have the largest weight. `mean_rank` is
        the mean rank among the samplers that can resample a feature, over features and repeats (1 is best). `estimate`
        is larger for features that depend little on others: compare it only if `n_features` is the same. `failed`
        counts the features that the sampler cannot resample.
        """
        able = ~np.isnan(self.squared_mmd[:, :, 0])  # a sampler that failed in one repeat is NaN in all
        ranks, lines = _ranks(self.squared_mmd), []
        for k, (name, own) in enumerate(zip(self.samplers, able.T, strict=True)):
            n = int(own.sum())
            values = self.estimates[own].sum(axis=0) / (n or np.nan)
            line: dict[str, Any] = {"sampler": name, "n_features": n, "estimate": _mean(values[k])}
            line |= {
                "position": float(self._positions(values[None])[0][0, k]),
                "mean_rank": _mean(ranks[own, k].ravel()),
            }
            if self.auc is not None:
                line["auc"] = _mean(self.auc[own, k].ravel())
            lines.append({**line, "failed": len(own) - n})
        last = float("inf")
        lines.sort(key=lambda line: tuple(last if np.isnan(v) else v for v in (-line["position"], line["mean_rank"])))
        return table_of_lines(self.backend, lines)

    @property
    def repeats(self) -> Any:
        """One row for each feature, sampler and repeat."""
        where = product(self.features, self.samplers, range(self.squared_mmd.shape[2]))
        columns: dict[str, Any] = dict(zip(("feature", "sampler", "repeat"), zip(*where, strict=True), strict=True))
        columns |= {"squared_mmd": self.squared_mmd.ravel(), "estimate": self.estimates.ravel()}
        if self.auc is not None:
            columns["auc"] = self.auc.ravel()
        return make_table(self.backend, columns)

    @property
    def estimates(self) -> Floats:
        """-log of the squared MMD of each feature, sampler and repeat."""
        with np.errstate(divide="ignore"):
            return np.asarray(-np.log(self.squared_mmd))

    @property
    def positions(self) -> Floats:
        """Position of each sampler for each feature between marginal (0) and unchanged (1)."""
        return self._positions(self.estimates)[0]

    def _positions(self, values: Floats) -> tuple[Floats, Floats]:
        """Return positions of estimates (features, samplers, repeats) between the bounds, and their standard errors.

        Both use differences to marginal in the same repeat, which cancels the noise that the samplers share. A position
        is a ratio of means; its standard error is that of numerator - position * denominator (delta method).
        """
        gain = values - values[:, [self.samplers.index(compare.MARGINAL)]]
        most = gain[:, [self.samplers.index(compare.UNCHANGED)]]
        with np.errstate(invalid="ignore", divide="ignore"):
            gap = most.mean(axis=2)
            gap = np.where((gap > _MIN_GAP * np.nan_to_num(_errors(most))) & np.isfinite(gap), gap, np.nan)
            positions: Floats = gain.mean(axis=2) / gap
            noise: Floats = _errors(gain - positions[:, :, None] * most) / gap
        return positions, noise

    def __repr__(self) -> str:
        compared = [name for name in self.samplers if name not in (compare.UNCHANGED, compare.MARGINAL)]
        text = f"<Fidelity of {', '.join(compared)}: {count_of(len(self.features), 'feature')}"
        failed = f", {count_of(len(self.notes), 'resampling')} failed" if self.notes else ""
        return f"{text}, {self.n} rows against {self.n_reference}{failed}>"


@names_arguments()
def fidelity(
    train: Any,
    test: Any,
    *,
    samplers: Any = _SAMPLERS,
    features: Any = None,
    reference: Any = None,
    n_repeats: int = 5,
    model: Any = None,
    classifier: Any = True,
    max_rows: int = 1000,
    random_state: RandomStateLike = None,
    n_jobs: int | None = None,
) -> Fidelity:
    """Measure how realistic resampled rows are: -log of the squared MMD between resampled and reference rows.

    The test rows are split at random into two halves. One half is resampled by a sampler fitted on the training rows,
    the other one is the reference. With an ideal sampler, both halves have the same distribution. No model is needed,
    so samplers can be compared before any model is explained with them.

    Parameters
    ----------
    train : frame, table, 2-d array, pair (X, y) or Dataset
        Rows to fit the samplers on, and to standardize columns by.
    test : frame, table, 2-d array, pair (X, y) or Dataset
        Rows to resample and to compare with, with the columns of `train`.
    samplers : list, or mapping from name to sampler
        Samplers to compare: names, objects of `subgrove.samplers`, your own samplers, or the result of
        `find_subgroups`; by default "auto", which `importance` uses, and the samplers of the paper. The bounds
        "unchanged" and "marginal" are always added.
    features : str or list, optional
        Features to resample, one at a time; all columns by default. A list of names within the list is a group of
        features that is resampled jointly.
    reference : frame, table or 2-d array, optional
        Reference rows, in place of half of the test rows. All test rows are then resampled.
    n_repeats : int, default 5
        Number of random splits.
    model : object, optional
        Fitted model, for samplers that use its structure, such as "forest_nodes".
    classifier : bool or scikit-learn classifier, default True
        Whether to train a classifier that separates resampled from reference rows (column `auc`), or the classifier to
        use; True uses a random forest of 30 trees.
    max_rows : int, default 1,000
        Largest number of training rows that samplers are fitted on, and of rows of both halves together; of larger
        data, random subsets are used, in each repeat another one of the test rows. More rows take longer, and flexible
        samplers learn more from them (`docs/fidelity.md` shows how much).
    random_state : int, RandomState instance or Generator, optional
        Seed of all random numbers. Results do not depend on `n_jobs` or on the order of features.
    n_jobs : int, optional
        Number of processes, as in joblib; features are computed in parallel. Each process needs up to 512 MiB.

    Returns
    -------
    Fidelity
        `table` has a row for each feature and sampler, `overall` one for each sampler, `repeats` one for each repeat.

    Notes
    -----
    Distances use columns standardized by the training rows: numbers have mean 0 and standard deviation 1, two different
    labels have distance 1, and a missing value is a label of its own (a missing number is set to the mean and flagged
    by an indicator column). The MMD has a Gaussian kernel whose width comes from the median heuristic.

    A sampler that cannot resample a feature has NaN there, and `note` states the reason. An error is raised only if no
    sampler can resample any feature.

    MMD and classifier use all columns. If a feature depends on one of a hundred columns, resampling it changes the
    joint distribution little, so compare samplers feature by feature, by `position`.

    Examples
    --------
    >>> import subgrove as sg
    >>> train, test = sg.datasets.bike(split=0.7, random_state=1)
    >>> options = {"features": ["temp", "season"], "classifier": False, "random_state": 1}
    >>> fid = sg.fidelity(train.X, test.X, samplers=["subgroups", "knockoffs"], **options)
    >>> print(fid.table[["feature", "sampler", "estimate", "position"]].round(2).to_string(index=False))
    feature   sampler  estimate  position
       temp unchanged      5.18      1.00
       temp subgroups      5.11      0.70
       temp knockoffs      5.02      0.29
       temp  marginal      4.95      0.00
     season unchanged      5.18      1.00
     season subgroups      5.15      0.76
     season knockoffs       NaN       NaN
     season  marginal      5.06      0.00
    >>> fid.notes["season", "knockoffs"].split(".")[0]
    "sampler 'knockoffs' takes numeric columns, but 'season' is nominal"
    """
    train_rows, test_rows, reference_rows = map(training_rows, (train, test, reference))
    n_repeats = whole_number("n_repeats", n_repeats, least=1)
    max_rows = whole_number("max_rows", max_rows, least=4)
    compare.check_classifier(classifier)
    effective_jobs(n_jobs)  # raises if n_jobs is invalid
    seed, named = read_seed(random_state), compare.name_samplers(samplers)
    train_table = read_table(train_rows, argument="train", lenient=True)
    test_table = read_table(test_rows, argument="test", lenient=True)
    parsed = parse_features(features, test_table.names)
    options = {"max_rows": max_rows, "n_repeats": n_repeats, "seed": seed, "classifier": classifier}
    comparison = compare.FidelityComparison.of(train_table, test_rows, reference_rows, **options)
    _warn_of_same_rows(train_table, test_table)
    if train_table.n_rows > max_rows:
        some = np.sort(stream(seed, "training rows").permutation(train_table.n_rows)[:max_rows])
        train_rows = Frames(train_rows, train_table.columns).changed(some, {})
    fits = {
        name: compare.fit_each(sampler, test_rows, test_table, train_rows, parsed, model, seed)
        for name, sampler in named.items()
    }
    squared, auc, notes = comparison.compare_all(fits, n_jobs)
    _reject_if_all_failed(squared, tuple(fits), notes)
    n, n_reference = map(len, comparison.split(0))
    return Fidelity(
        features=tuple(title(feature) for feature in parsed),
        samplers=tuple(fits),
        squared_mmd=squared,
        auc=None if classifier is False else auc,
        notes=notes,
        n=n,
        n_reference=n_reference,
        settings={
            "n_repeats": n_repeats,
            "random_state": seed,
            "max_rows": max_rows,
            "n_train": train_table.n_rows,
            "n_test": test_table.n_rows,
        },
        backend=backend_of(test_rows),
    )


def _warn_of_same_rows(train: Table, test: Table) -> None:
    if share := shared_rows(test, train):
        what = (
            "train and test are the same rows" if share == 1 else f"{percent(share)} of the rows of test are in train"
        )
        warn(f"{what}, so samplers are evaluated on their training data. Pass held-out rows as test.", SameRowsWarning)


def _reject_if_all_failed(squared: Floats, samplers: tuple[str, ...], notes: Mapping[tuple[str, str], str]) -> None:
    """Raise if there are samplers besides the bounds, and none could resample any feature."""
    candidates = [place for place, name in enumerate(samplers) if name not in (compare.UNCHANGED, compare.MARGINAL)]
    if candidates and np.isnan(squared[:, candidates]).all():
        (feature, sampler), reason = next(iter(notes.items()))
        raise SamplerError(f"No sampler could resample any feature. Error of {sampler!r} for {feature!r}: {reason}")


def _mean(values: Floats) -> float:
    return float(np.mean(values)) if len(values) else float("nan")


def _errors(values: Floats) -> Floats:
    """Return standard errors of means over the last axis; NaN for a single value."""
    n = values.shape[-1]
    if n < 2:
        return np.full(values.shape[:-1], np.nan)
    with np.errstate(invalid="ignore"):
        return np.asarray(values.std(axis=-1, ddof=1) / np.sqrt(n))


def _ranks(squared: Floats) -> Floats:
    """Return the rank of each sampler among those that can resample a feature; ties share their mean rank."""
    from scipy.stats import rankdata

    return np.asarray(rankdata(squared, axis=1, nan_policy="omit"))

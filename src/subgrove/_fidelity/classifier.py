"""Can a classifier tell redrawn rows from real ones? Its AUC on rows that it has not seen."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np

from subgrove._core.kinds import Rows
from subgrove._scoring.fidelity_check.pairs import Points
from subgrove.exceptions import ParameterError

_N_FOLDS = 2
_LEAST = 10  # rows of either kind, below which nothing could be learned
_SETTINGS = {"max_iter": 50, "max_leaf_nodes": 15, "min_samples_leaf": 10, "early_stopping": False}


def check_classifier(classifier: Any) -> None:
    """Refuse what is neither yes nor no nor a classifier."""
    has = all(callable(getattr(classifier, name, None)) for name in ("fit", "predict_proba"))
    if isinstance(classifier, type) or not (isinstance(classifier, bool) or has):
        raise ParameterError(
            f"classifier must be True, False, or an object with fit and predict_proba; got {classifier!r}."
        )


def held_out_auc(real: Points, redrawn: Points, classifier: Any, seed: int) -> float:
    """Area under the ROC curve of telling redrawn rows from real ones: 0.5 if they cannot be told apart, at most 1.

    Both samples are halved at random. A classifier learns from one half of both and is judged on the other halves, and
    the reverse; the mean of the two areas is given. So no row is judged by a classifier that has seen it, and if both
    samples are of the same distribution, 0.5 is expected. A single value may well be below.

    NaN if a sample has fewer than 10 rows.
    """
    if min(len(real), len(redrawn)) < _LEAST:
        return float("nan")
    from sklearn.metrics import roc_auc_score
    from threadpoolctl import threadpool_limits

    X = np.vstack([real.matrix, redrawn.matrix])
    y = np.repeat([0, 1], [len(real), len(redrawn)])
    areas = []
    # One thread, so that sums are formed in the same order whatever the number of cores.
    with threadpool_limits(1, user_api="openmp"):
        for learned, judged in _folds(len(real), len(redrawn), np.random.default_rng(seed)):
            fitted = _fresh(classifier, seed).fit(X[learned], y[learned])
            areas.append(roc_auc_score(y[judged], fitted.predict_proba(X[judged])[:, 1]))
    return float(np.mean(areas))


def _fresh(classifier: Any, seed: int) -> Any:
    """A classifier that has not learned yet: the user's, or boosted trees."""
    if classifier is True:
        from sklearn.ensemble import HistGradientBoostingClassifier

        return HistGradientBoostingClassifier(random_state=seed, **_SETTINGS)
    from sklearn.base import clone

    return clone(classifier) if hasattr(classifier, "get_params") else deepcopy(classifier)


def _folds(n: int, m: int, rng: np.random.Generator) -> list[tuple[Rows, Rows]]:
    """Rows to learn from and rows to judge, each fold with its share of both samples."""
    fold = np.concatenate([rng.permutation(np.arange(size) % _N_FOLDS) for size in (n, m)])
    return [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(_N_FOLDS)]

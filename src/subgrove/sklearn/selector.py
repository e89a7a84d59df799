"""`SubgroupImportanceSelector`: select features by their conditional importance on held-out rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier
from sklearn.feature_selection import SelectorMixin
from sklearn.model_selection import train_test_split
from sklearn.utils import check_array, check_consistent_length, check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from subgrove._core.kinds import Floats
from subgrove._core.validate import number_in, whole_number
from subgrove._importance.importance import importance
from subgrove._importance.intervals import benjamini_hochberg
from subgrove._importance.result import ImportanceResult
from subgrove.exceptions import ParameterError

if not hasattr(BaseEstimator, "__sklearn_tags__"):
    raise ImportError("subgrove.sklearn needs scikit-learn 1.6 or newer: pip install --upgrade scikit-learn")

_CRITERIA = ("fdr_bh", "fdr_by", "k_best", "threshold")
_TESTS = ("independence", "importance")
_FEWEST = 6  # rows: of fewer, neither part can be used


class SubgroupImportanceSelector(SelectorMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]  # untyped
    """Select features by their conditional importance: those that the model needs beyond the other columns.

    `fit` fits a clone of the estimator on part of the rows and computes the importance of every column on the held-out
    rows; the sampler is fitted on the rows of the model. In a pipeline both parts come from the training fold.

    Parameters
    ----------
    estimator : estimator
        Regressor or classifier; it is cloned.
    criterion : {"fdr_bh", "fdr_by", "k_best", "threshold"}, default "fdr_bh"
        "fdr_bh" and "fdr_by" select by p-values adjusted after Benjamini and Hochberg, or after Benjamini and
        Yekutieli, whose bound holds for any dependence of the tests. "k_best" selects the largest importances,
        "threshold" those above a number.
    q : float, default 0.1
        Bound of the false discovery rate: the expected share of redundant features among those selected.
    k : int, default 10
        Number of features that "k_best" selects; all, if there are fewer.
    threshold : float, default 0
        Importance that "threshold" requires, in units of the loss.
    test : {"independence", "importance"}, default "independence"
        Which p-values: of `ImportanceResult.independence_test`, which is robust to errors of the sampler, or of
        `ImportanceResult.overall`, for any loss. A feature whose test is undecided is not selected.
    sampler : str, sampler or Subgroups, default "auto"
        As in `importance`.
    loss : str, Loss, scorer or callable, optional
        As in `importance`.
    n_repeats : int, default 10
        As in `importance`.
    test_size : float, default 0.5
        Share of the rows that are held out; stratified by class for classifiers, where classes are large enough.
    random_state : int or RandomState instance, optional
        Seed of the division of the rows and of the resampled values.
    n_jobs : int, optional
        Number of processes.

    Attributes
    ----------
    estimator_ : estimator
        The clone, fitted on all columns of its part of the rows.
    result_ : ImportanceResult
        Importance on the held-out rows.
    feature_importances_ : ndarray of shape (n_features_in_,)
        Estimates, negative ones set to 0. `RFE(selector)` ranks features by it.
    p_values_ : ndarray of shape (n_features_in_,)
        Adjusted p-values, for the criteria "fdr_bh" and "fdr_by"; NaN where the test is undecided.
    n_features_in_ : int
        Number of columns of X in `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, if X is a frame.

    Notes
    -----
    A frame is handed to the estimator as it is, with its categories and missing values. `transform` returns an array
    by default, as all selectors of scikit-learn; `set_output(transform="pandas")` keeps the frame.

    If no feature is selected, `transform` warns and returns no columns.

    Examples
    --------
    x1 follows x2, and is redundant given it:

    >>> import subgrove as sg
    >>> from sklearn.linear_model import LinearRegression
    >>> from subgrove.sklearn import SubgroupImportanceSelector
    >>> data = sg.simulate.null_scenario("linear").sample(600, random_state=1)
    >>> selector = SubgroupImportanceSelector(LinearRegression(), test="importance", random_state=1)
    >>> selector.fit(data.X, data.y).get_feature_names_out().tolist()
    ['x2', 'x3', 'x4', 'x5', 'x6', 'x7', 'x8', 'x9', 'x10']
    """

    def __init__(
        self,
        estimator: Any,
        *,
        criterion: str = "fdr_bh",
        q: float = 0.1,
        k: int = 10,
        threshold: float = 0.0,
        test: str = "independence",
        sampler: Any = "auto",
        loss: Any = None,
        n_repeats: int = 10,
        test_size: float = 0.5,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.criterion = criterion
        self.q = q
        self.k = k
        self.threshold = threshold
        self.test = test
        self.sampler = sampler
        self.loss = loss
        self.n_repeats = n_repeats
        self.test_size = test_size
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any) -> SubgroupImportanceSelector:
        """Fit the estimator on part of the rows, and select features by their importance on the others.

        Parameters
        ----------
        X : frame or array of shape (n_samples, n_features)
            Rows, as the estimator takes them.
        y : array of shape (n_samples,) or (n_samples, n_outputs)
            Target.

        Returns
        -------
        SubgroupImportanceSelector
            The selector itself.
        """
        self._check_parameters()
        X, y = self._checked(X, y)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        parts = train_test_split(X, y, test_size=self.test_size, random_state=seed, stratify=self._strata(y))
        train_X, test_X, train_y, test_y = parts
        self.estimator_ = clone(self.estimator).fit(train_X, train_y)
        self.result_: ImportanceResult = importance(
            self.estimator_, test_X, test_y, train=train_X, features=list(range(self.n_features_in_)),
            sampler=self.sampler, loss=self.loss, n_repeats=self.n_repeats, check_fidelity=False, random_state=seed,
            n_jobs=self.n_jobs,
        )  # fmt: skip
        estimates = _column(self.result_.overall, "estimate")
        self.feature_importances_ = np.maximum(estimates, 0.0)
        if self.criterion == "k_best":
            self._support = np.zeros(len(estimates), dtype=bool)
            self._support[np.argsort(-estimates, kind="stable")[: self.k]] = True
        elif self.criterion == "threshold":
            self._support = estimates > self.threshold
        else:
            table = self.result_.independence_test(test_X) if self.test == "independence" else self.result_.overall
            self.p_values_ = adjusted(_column(table, "p_value"), self.criterion)
            self._support = self.p_values_ <= self.q
        return self

    def _get_support_mask(self) -> Any:
        check_is_fitted(self, "result_")
        return self._support

    def _check_parameters(self) -> None:
        if self.criterion not in _CRITERIA:
            raise ParameterError(f"criterion must be one of {', '.join(map(repr, _CRITERIA))}; got {self.criterion!r}.")
        if self.test not in _TESTS:
            raise ParameterError(f"test must be 'independence' or 'importance'; got {self.test!r}.")
        number_in("q", self.q, low=0, high=1)
        whole_number("k", self.k, least=1)
        if isinstance(self.loss, list | tuple):
            raise ParameterError("loss must be a single loss: features are selected by one.")

    def _checked(self, X: Any, y: Any) -> tuple[Any, Any]:
        """Return X and y after scikit-learn's checks; a frame stays a frame, with its names recorded."""
        names, allow_nan = getattr(X, "columns", None), self.__sklearn_tags__().input_tags.allow_nan
        if names is None:
            X = check_array(X, ensure_all_finite=not allow_nan, ensure_min_samples=_FEWEST)
        elif len(X) < _FEWEST:
            raise ParameterError(f"X must have at least {_FEWEST} rows, some to fit and some to test; got {len(X)}.")
        self.n_features_in_ = int(X.shape[1])
        self.__dict__.pop("feature_names_in_", None)
        if names is not None and all(isinstance(name, str) for name in names):
            self.feature_names_in_ = np.array(list(names), dtype=object)
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        check_consistent_length(X, y)
        if is_classifier(self.estimator):
            check_classification_targets(y)
            return X, check_array(y, dtype=None, ensure_2d=False, ensure_all_finite=False)
        return X, check_array(y, dtype="numeric", ensure_2d=False)

    def _strata(self, y: Any) -> Any:
        """Return what the division is stratified by: the classes, if each has rows for both parts."""
        if not is_classifier(self.estimator) or y.ndim > 1:
            return None
        counts = np.unique(y, return_counts=True)[1]
        smaller = min(self.test_size, 1 - self.test_size) if isinstance(self.test_size, float) else 0
        return y if counts.min() >= 2 and smaller * len(y) >= len(counts) else None

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import get_tags

        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.allow_nan = get_tags(self.estimator).input_tags.allow_nan
        return tags


def adjusted(p_values: Floats, criterion: str) -> Floats:
    """Return p-values adjusted for the false discovery rate; an unknown one counts as a test and stays NaN."""
    known = benjamini_hochberg(np.where(np.isnan(p_values), 1.0, p_values))
    if criterion == "fdr_by":
        known = np.minimum(known * np.sum(1 / np.arange(1, len(p_values) + 1)), 1.0)
    return np.where(np.isnan(p_values), np.nan, known)


def _column(table: Any, name: str) -> Floats:
    """Return a column of a result's table, of any library, as numbers."""
    return np.asarray(table[name], dtype=np.float64)

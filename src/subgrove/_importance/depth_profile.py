"""How well subgroups of every depth predict a feature, and its importance at every depth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from subgrove._core.execution import RandomStateLike, read_seed
from subgrove._core.html_views import ResultView
from subgrove._core.text import count_of, listing
from subgrove._core.validate import number_in
from subgrove._data.table import Kind
from subgrove._importance.importance import importance
from subgrove._importance.result import ImportanceResult
from subgrove._importance.spec import read_pair
from subgrove._subgroups import Subgroups
from subgrove._subgroups.depth import DepthChoice
from subgrove._subgroups.partition import TreeSettings
from subgrove._subgroups.subgroups import grow_all_trees
from subgrove.exceptions import ParameterError

if TYPE_CHECKING:
    import pandas as pd

_COLUMNS = ("n", "estimate", "std_error", "conf_low", "conf_high")  # of the importance, into the table


@dataclass(frozen=True, repr=False)
class DepthProfile(ResultView):
    """Held-out scores of subgroups and importance of features at each depth.

    Attributes
    ----------
    full_depth : Subgroups
        The subgroups at the greatest depth, each with its `choice`.
    importance : mapping from int to ImportanceResult
        The importance at each depth; empty without a model. `plots.importance_by_depth` draws it.
    subgroups : Subgroups
        Each feature at its selected depth, as `find_subgroups(max_depth="auto")` returns them.
    table : pandas.DataFrame
        A row for each feature and depth.
    reasons : tuple of str
        Why each feature has its depth.

    Notes
    -----
    How to read it: a score that is constant from a depth on says that deeper splits predict nothing more. An importance
    that still falls there falls for want of donors or by chance, not by dependence.

    Examples
    --------
    >>> import subgrove as sg
    >>> train, test = sg.datasets.bike(split=0.7, random_state=1)
    >>> def model(X):
    ...     return 2000 + 100 * X["temp"] - 10 * X["hum"]
    >>> profile = sg.DepthProfile.compute(train.X, features="temp", model=model, test=test, random_state=1)
    >>> profile.table[["depth", "score", "selected", "estimate", "conf_low", "conf_high"]].round(2)
       depth  score  selected  estimate  conf_low  conf_high
    0      0   5.04     False    403.83    314.69     499.11
    1      1   3.55     False    240.99    173.02     313.22
    2      2   2.85     False    143.12     87.39     204.39
    3      3   2.64      True    146.71     95.14     204.68
    4      4   2.65     False    142.94     85.92     206.12
    >>> print(profile.reasons[0])
    temp: depth 3 of at most 6 (5 subgroups) has the best CRPS in held-out rows, 2.64; one subgroup has 5.045.
    """

    full_depth: Subgroups
    importance: Mapping[int, ImportanceResult] = field(default_factory=dict)

    @classmethod
    def compute(
        cls,
        train: Any,
        *,
        features: Any = None,
        tree: Literal["transformation", "cart"] = "transformation",
        max_depth: int = 6,
        tolerance: float = 0.0,
        min_samples_leaf: int = 30,
        alpha: float = 0.05,
        given: Any = None,
        kinds: Mapping[str, Kind] | None = None,
        sample_weight: Any = None,
        model: Any = None,
        test: Any = None,
        loss: Any = None,
        n_repeats: int = 10,
        random_state: RandomStateLike = None,
        n_jobs: int | None = None,
    ) -> DepthProfile:
        """Score subgroups of every depth on held-out rows and, with a model, compute the importance at every depth.

        Parameters
        ----------
        train : pandas or polars frame, pyarrow table or 2-d array
            Training rows. Trees grow on all of them once, and once on each four fifths of them, to the maximum depth.
        features, tree, min_samples_leaf, alpha, given, kinds, sample_weight
            As in `find_subgroups`.
        max_depth : int, default 6
            The maximum depth.
        tolerance : float, default 0
            Share of the best depth's gain over one subgroup that a smaller depth may give up; with 0 it must be within
            one standard error of the best.
        model : object or callable, optional
            The model whose importance is computed at each depth.
        test : pair (X, y), or object with X and y, optional
            Test rows and their target; needed with a model.
        loss, n_repeats, random_state, n_jobs
            As in `importance`; one loss.

        Notes
        -----
        The model predicts once for each depth: at depth 0 as `importance` needs for all features, and at each further
        depth the baseline and the features whose trees are that deep. `n_rows_predicted` is the total.

        Examples
        --------
        >>> import subgrove as sg
        >>> train, test = sg.datasets.bike(split=0.7, random_state=1)
        >>> profile = sg.DepthProfile.compute(train.X, features=["temp", "wind"], max_depth=4)
        >>> profile
        <DepthProfile of 2 features, depth 0 to 4>
          temp: depth 3 of at most 4 (5 subgroups) has the best CRPS in held-out rows, 2.64; one subgroup has 5.045.
          wind: depth 1 of at most 4 (2 subgroups) has the best CRPS in held-out rows, 2.791; one subgroup has 2.848.
        >>> profile.subgroups["wind"].rules
        ('season in {WINTER, SPRING}', 'season in {SUMMER, FALL}')
        """
        share = number_in("tolerance", tolerance, low=0.0, high=1.0)
        rows = _read_test(model, test)
        start = read_seed(random_state)
        if isinstance(loss, list | tuple):
            raise ParameterError(f"loss must be one loss here; got {len(loss)} of them. Compute a profile for each.")
        settings = TreeSettings.checked(tree, max_depth, min_samples_leaf, alpha)
        settings = replace(settings, select_depth=True, tolerance=share)
        groups = grow_all_trees(train, settings, features, given, kinds, sample_weight, n_jobs)
        if rows is None:
            return cls(groups)
        results = _by_depth(groups, model, rows, loss=loss, n_repeats=n_repeats, random_state=start, n_jobs=n_jobs)
        return cls(groups, results)

    @property
    def choices(self) -> tuple[DepthChoice, ...]:
        """The scores by depth of each feature."""
        return tuple(each.choice for each in self.full_depth.partitions if each.choice is not None)

    @property
    def subgroups(self) -> Subgroups:
        """Each feature at its selected depth."""
        return self.full_depth.at_selected_depth()

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why each feature has its depth, one sentence each."""
        return tuple(choice.reason for choice in self.choices)

    @property
    def n_rows_predicted(self) -> int:
        """Rows that the model predicted, over all depths."""
        return sum(int(result.settings["n_rows_predicted"]) for result in self.importance.values())

    @property
    def table(self) -> pd.DataFrame:
        """A row for each feature and depth: how many subgroups, their score, and with a model the importance.

        Columns: feature, depth, n_subgroups, score, difference (from the best), score_error (of the difference),
        selected; with a model also n, estimate, std_error, conf_low, conf_high of the importance.
        """
        import pandas as pd

        table = pd.concat([choice.table for choice in self.choices], ignore_index=True)
        table = table.rename(columns={"std_error": "score_error"})
        if not self.importance:
            return table
        estimates = {
            (line["feature"], depth): line
            for depth, result in self.importance.items()
            for line in replace(result, backend="pandas").overall.to_dict("records")
        }
        rows = [estimates[key] for key in zip(table["feature"], table["depth"], strict=True)]
        return table.join(pd.DataFrame(rows, columns=list(_COLUMNS)))

    def with_tolerance(self, tolerance: float) -> DepthProfile:
        """Return the same profile with another tolerance; nothing is fitted or predicted again.

        Parameters
        ----------
        tolerance : float
            Share of the best depth's gain over one subgroup that a smaller depth may give up; 0 for one standard
            error of the best.
        """
        share = number_in("tolerance", tolerance, low=0.0, high=1.0)
        partitions = tuple(
            each if each.choice is None else replace(each, choice=replace(each.choice, tolerance=share))
            for each in self.full_depth.partitions
        )
        return replace(self, full_depth=replace(self.full_depth, partitions=partitions))

    def __repr__(self) -> str:
        deepest = self.full_depth.parameters["max_depth"]
        head = f"<DepthProfile of {count_of(len(self.choices), 'feature')}, depth 0 to {deepest}>"
        return listing(head, self.reasons)


def _read_test(model: Any, test: Any) -> tuple[Any, Any] | None:
    if model is None and test is None:
        return None
    if model is None or test is None:
        given, lacking = ("test", "model") if model is None else ("model", "test")
        raise ParameterError(
            f"{given} was given without {lacking}. Importance by depth needs both; pass {lacking} too."
        )
    return read_pair("test", test)


def _by_depth(groups: Subgroups, model: Any, test: tuple[Any, Any], **options: Any) -> dict[int, ImportanceResult]:
    """Return the importance at each depth; a feature whose tree is less deep keeps its last one."""
    depths = {each.feature: each.tree.depth for each in groups.partitions}
    results: dict[int, ImportanceResult] = {}
    for depth in range(max(depths.values()) + 1):
        features = [each.members for each in groups.partitions if each.tree.depth >= depth]
        result = importance(model, *test, sampler=groups.at_depth(depth), features=features, **options)
        fresh = {score.title: score for score in result.scores}
        previous = {score.title: score for score in results[depth - 1].scores} if depth else {}
        results[depth] = replace(result, scores=tuple((previous | fresh)[name] for name in depths))
    return results

"""The sampler that suits each feature: candidates are compared on rows they have not seen, the simplest good one wins.

Requirements this design meets:

- a proper score (CRPS of numbers, log score of levels) of each training row, by what was learned without it;
- the simplest candidate within one standard error of the best wins: fewest terms and splits to read;
- bounded cost: at most `max_rows` rows are looked at; a tree is grown again on halves only where its having chosen
  splits on the same rows could change the choice; a forest is tried only where the best so far is complicated;
- the choice can be told: every score, and the reason in a sentence (`SamplerChoice`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from subgrove._core.kinds import Floats
from subgrove._core.parallel import one_blas_thread, parallel_map
from subgrove._core.random import Streams
from subgrove._data.table import Table
from subgrove._subgroups import Partition
from subgrove.samplers.auto.candidates import ConditionalSampler
from subgrove.samplers.auto.choice import SamplerChoice
from subgrove.samplers.auto.selector import SamplerSelector
from subgrove.samplers.auto.shared_training import MAX_ROWS, NO_LIMIT, REPORT_DEPTH, read_shared_training
from subgrove.samplers.base import Feature, FittedSampler, Sampler, title
from subgrove.samplers.leaf_donors import TrainingSubgroups
from subgrove.samplers.learned import learned_for
from subgrove.samplers.location_shift import ResidualSampler
from subgrove.samplers.redraw import ResampledFeature, RowGroups


class Auto(Sampler):
    """Chooses for each feature the sampler that foretells it best on training rows that the sampler has not seen.

    Candidates are marginal donors, subgroups of a transformation tree, shifted subgroups, a normal distribution about
    a sum of all columns, and imputation by a forest. A group of features is redrawn within the subgroups of its tree.

    Parameters
    ----------
    max_depth : int, default 30
        Most splits above a subgroup; mostly the tests of the trees stop them before.
    min_samples_leaf : int, default 30
        Least number of training rows in a subgroup.
    alpha : float, default 0.05
        Level of the tests that stop a tree.
    given : list of str, optional
        The columns that values may depend on.
    report_depth : int, default 2
        Depth of the subgroups that results are told by. Redrawing uses all of the tree.
    max_rows : int, default 20000
        Training rows that are used, at random if there are more.
    random_state : int, default 0
        Of folds, halves, forests and the rows that are used.
    n_jobs : int, optional
        Number of features fitted at once.

    Examples
    --------
    >>> import subgrove as sg
    >>> train, test = sg.datasets.bike(split=0.7, random_state=1)
    >>> sampler = sg.samplers.Auto().fit(train.X, ["hum", "weather", "yr"])
    >>> for name, choice in sampler.choices.items():
    ...     print(name, choice.chosen)
    hum shifted_subgroups
    weather subgroups
    yr marginal
    """

    name = "auto"
    accepts_groups = True
    accepts_any_column = True

    def __init__(
        self,
        max_depth: int = NO_LIMIT,
        min_samples_leaf: int = 30,
        alpha: float = 0.05,
        given: Any = None,
        report_depth: int = REPORT_DEPTH,
        max_rows: int = MAX_ROWS,
        random_state: int | None = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.alpha = alpha
        self.given = given
        self.report_depth = report_depth
        self.max_rows = max_rows
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, features: Any = None) -> FittedAuto:
        """Compare the candidates for each feature on training rows, and fit the one that is chosen.

        Parameters
        ----------
        X : table
            Training rows.
        features : list, optional
            Names of the features that will be redrawn, or groups of names; all columns if not given.
        """
        with one_blas_thread():
            columns, asked, setup = read_shared_training(self, X, features)
            found = list(parallel_map(SamplerSelector(setup), asked, self.n_jobs))
        names = [title(feature) for feature in asked]
        learned = {name: drawer for name, (drawer, _, _) in zip(names, found, strict=True)}
        choices = {name: choice for name, (_, choice, _) in zip(names, found, strict=True)}
        told = {name: groups for name, (_, _, groups) in zip(names, found, strict=True) if groups is not None}
        return FittedAuto(columns, X, learned=learned, choices=choices, told=told)


@dataclass(frozen=True, eq=False)
class FittedAuto(FittedSampler):
    """Redraws each feature by the sampler that was chosen for it.

    Attributes
    ----------
    learned : mapping
        Feature -> what redraws it.
    choices : mapping
        Feature -> `SamplerChoice`: what was chosen, the scores and the reason.
    told : mapping
        Feature -> the subgroups that results are told by, for features that are redrawn in none but depend on others.
    """

    learned: Mapping[str, ConditionalSampler] = field(kw_only=True)
    choices: Mapping[str, SamplerChoice] = field(kw_only=True)
    told: Mapping[str, Partition] = field(kw_only=True, default_factory=dict)

    def resample(
        self, table: Table, feature: Feature, rngs: Streams, *, weights: Floats | None = None, exact: bool = True
    ) -> ResampledFeature:
        """The redraw of one feature."""
        redraw = learned_for(self.learned, feature, Auto.name).resample(table, feature, rngs, exact=exact)
        told = self.told.get(title(feature))
        if told is None:
            return redraw
        code = told._assign_table(table).astype(np.int32)
        return replace(redraw, groups=RowGroups(code, told.rules, redraw.groups.conditioning))

    @property
    def uses_training_donors(self) -> bool:
        """Whether donors are training rows."""
        return True

    def split_columns(self, feature: Feature) -> tuple[str, ...] | None:
        """The columns that the feature's tree splits on, if it is redrawn within the subgroups of one alone."""
        drawer = learned_for(self.learned, feature, Auto.name)
        return drawer.conditioning if isinstance(drawer, TrainingSubgroups) else None

    def reporting_subgroups(self, feature: Feature) -> Partition | None:
        """The subgroups that results of the feature are told by."""
        drawer = learned_for(self.learned, feature, Auto.name)
        own = drawer.shown if isinstance(drawer, TrainingSubgroups | ResidualSampler) else None
        return self.told.get(title(feature), own)

    def restricted(self, feature: Feature, columns: Collection[str]) -> FittedAuto:
        """The same, the feature's tree cut back to its splits on some columns."""
        drawer = learned_for(self.learned, feature, Auto.name)
        assert isinstance(drawer, TrainingSubgroups)
        smaller = drawer.partition.restricted_to(columns)
        cut = TrainingSubgroups.of(smaller, drawer.table, drawer.rows, drawer.report_depth)
        return replace(self, learned={**self.learned, title(feature): cut})

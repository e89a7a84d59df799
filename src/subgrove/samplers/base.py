"""The contract of samplers: fit on training rows, redraw a column of other rows.

A sampler of your own needs two methods, and works wherever `sampler=` is an argument::

    class Mine:
        def fit(self, X, features):             # training rows, names of the features to be redrawn
            return self                         # or better: a new object that holds what was learned

        def sample(self, X, feature, rngs):     # rows to redraw, one feature, a random generator for each repeat
            for rng in rngs:
                yield new_values                # one value for each row of X

Samplers of this package return more than that (`ResampledFeature`): the subgroup of each row, the donor rows, and the
exact expectation where it is cheaper than drawing. `docs/add_a_sampler.md` is the page on both.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, cast

import numpy as np

from subgrove._core.kinds import KINDS, ColumnInfo, Floats, Kind
from subgrove._core.random import Streams
from subgrove._core.validate import ParamsMixin
from subgrove._data.features import feature_label, parse_features
from subgrove._data.replace_columns import Frames
from subgrove._data.table import Table, read_like, read_table
from subgrove._subgroups import Partition
from subgrove.exceptions import ParameterError
from subgrove.samplers.redraw import ResampledFeature

Feature = tuple[str, ...]  # names of the columns that are redrawn together; mostly one


def title(feature: Feature) -> str:
    """The name that tables call a feature or a group of features by."""
    return feature_label(feature)


class SupportsSample(Protocol):
    """A fitted sampler of a user: what `fit` returns."""

    def sample(self, X: Any, feature: Any, rngs: Sequence[np.random.Generator]) -> Iterable[Any]:
        """New values of a feature, one column of them for each generator."""


class SupportsFit(Protocol):
    """A sampler of a user, or of this package."""

    def fit(self, X: Any, features: Any) -> SupportsSample:
        """Learn from training rows what redrawing the features needs.

        Parameters
        ----------
        X : table
            Training rows.
        features : list, optional
            Names of the features that will be redrawn, or groups of names; all columns if not given.
        """


@dataclass(frozen=True, eq=False)
class FittedSampler(ABC):
    """A fitted sampler of this package: frozen, and usable on any rows with the columns of training.

    Attributes
    ----------
    columns : tuple of ColumnInfo
        The columns of the training rows.
    train : table or None
        The training rows, where donors are taken from them.

    Examples
    --------
    >>> import subgrove as sg
    >>> train, test = sg.datasets.bike(split=0.7, random_state=1)
    >>> fitted = sg.samplers.SubgroupSampler(max_depth=1).fit(train.X, ["temp"])
    >>> isinstance(fitted, sg.samplers.FittedSampler), fitted.split_columns(("temp",))
    (True, ('season',))
    """

    columns: tuple[ColumnInfo, ...]
    train: Any = None

    @abstractmethod
    def resample(
        self, table: Table, feature: Feature, rngs: Streams, *, weights: Floats | None = None, exact: bool = True
    ) -> ResampledFeature:
        """The redraw of one feature, or of several together.

        Parameters
        ----------
        table : Table
            Rows that `read` has read.
        feature : str or tuple of str
            The feature, or the features of a group.
        rngs : Streams
            A random generator for each repeat.
        weights : float array, optional
            How often each row counts.
        exact : bool
            Whether exact expectations may take the place of draws.
        """

    @property
    def uses_training_donors(self) -> bool:
        """Whether donors are training rows."""
        return False

    def for_feature(self, feature: Feature) -> FittedSampler:
        """The sampler that redraws this feature; another one where different features have different samplers.

        Parameters
        ----------
        feature : str or tuple of str
            The feature, or the features of a group.
        """
        return self

    def split_columns(self, feature: Feature) -> tuple[str, ...] | None:
        """The columns that the feature's tree splits on, those nearest to the root first; None if there is no tree.

        Parameters
        ----------
        feature : str or tuple of str
            The feature, or the features of a group.
        """
        return None

    def reporting_subgroups(self, feature: Feature) -> Partition | None:
        """The subgroups that results of the feature are told by; None if there is no tree, or one for each fold.

        Parameters
        ----------
        feature : str or tuple of str
            The feature, or the features of a group.
        """
        return None

    def restricted(self, feature: Feature, columns: Collection[str]) -> FittedSampler:
        """The same sampler, the feature's tree cut back to its splits on some columns (and below such splits only).

        Parameters
        ----------
        feature : str or tuple of str
            The feature, or the features of a group.
        columns : set of str
            The columns whose splits are kept.
        """
        # Asked of samplers alone whose split_columns is not None; these have their own.
        raise NotImplementedError(f"{type(self).__name__} has no trees")

    def read(self, X: Any) -> Table:
        """Rows to redraw, typed as in training.

        Parameters
        ----------
        X : table
            Rows in the user's container.
        """
        return read_like(X, self.columns)

    def sample(self, X: Any, feature: str | Sequence[str], rngs: Any) -> Iterator[Any]:
        """New values of a feature for each row of X, one column for each repeat.

        Parameters
        ----------
        X : frame, table or 2-d array
            Rows to redraw, with the columns of training.
        feature : str
            Name of the column to redraw.
        rngs : int, or sequence of numpy.random.Generator
            Number of repeats, or a generator for each of them.

        Yields
        ------
        column
            New values, in the type of the column.
        """
        names = (feature,) if isinstance(feature, str) else tuple(feature)
        known = [column.name for column in self.columns]
        if not set(names) <= set(known):
            raise ParameterError(f"feature names {feature!r}, but the sampler was fitted on {', '.join(known)}.")
        frames = Frames(X, self.columns, self.train)
        table = self.read(X)
        # The user's own generators have no seed, which only cross-fitted samplers ask for; these are not public.
        streams = rngs if isinstance(rngs, Streams) else cast(Streams, _Given(rngs))
        for changes in self.resample(table, names, streams, exact=False).draws():
            columns = [_plain_series(frames.native(name, changes[name])) for name in names]
            yield columns[0] if len(columns) == 1 else columns


def _plain_series(column: Any) -> Any:
    return column.to_native() if hasattr(column, "to_native") else column


class _Given:
    """Generators that the user made, in place of streams of a seed."""

    def __init__(self, rngs: Any) -> None:
        if isinstance(rngs, int | np.integer):
            rngs = [np.random.default_rng() for _ in range(int(rngs))]
        self.rngs = list(rngs)
        if not self.rngs:
            raise ParameterError("rngs must be a number of repeats above 0, or a generator for each repeat; got none.")

    def __len__(self) -> int:
        return len(self.rngs)

    def __iter__(self) -> Iterator[np.random.Generator]:
        return iter(self.rngs)

    def __getitem__(self, repeat: int) -> np.random.Generator:
        generator: np.random.Generator = self.rngs[repeat]
        return generator

    @property
    def shared(self) -> np.random.Generator:
        return self[0]


class Sampler(ParamsMixin, ABC):
    """A sampler of this package, not yet fitted: it stores what the constructor was given.

    Class attributes say what it can do, and are asked at the public door.

    Examples
    --------
    >>> import subgrove as sg
    >>> sampler = sg.samplers.SubgroupSampler(max_depth=1)
    >>> isinstance(sampler, sg.samplers.Sampler), sampler.get_params()["max_depth"]
    (True, 1)
    """

    name: ClassVar[str]
    kinds: ClassVar[frozenset[Kind]] = frozenset(KINDS)
    accepts_groups: ClassVar[bool] = False  # whether several features can be redrawn together
    accepts_missing: ClassVar[bool] = True  # whether the redrawn column may have missing values
    accepts_any_column: ClassVar[bool] = (
        False  # whether columns without a value, or with very many levels, may be there
    )
    conditional: ClassVar[bool] = True  # whether a redraw looks at the other columns of the row
    learns: ClassVar[bool] = True  # whether fit looks at the rows, so that it must not see those it is judged on

    @abstractmethod
    def fit(self, X: Any, features: Any = None) -> FittedSampler:
        """Learn from training rows what redrawing the features needs.

        Parameters
        ----------
        X : table
            Training rows.
        features : list, optional
            Names of the features that will be redrawn, or groups of names; all columns if not given.
        """

    def for_model(self, model: Any) -> Sampler:
        """The sampler for this model; only those that look into the model differ.

        Parameters
        ----------
        model : object
            The model that is explained.
        """
        return self

    def without_columns(self) -> Sampler:
        """The sampler that is left where there is no column to condition on: the marginal one."""
        from subgrove.samplers.marginal import Marginal

        return Marginal()

    def reject_unsuitable(self, columns: Sequence[ColumnInfo], features: Sequence[Feature]) -> None:
        """Raise if a feature is of a kind that this sampler does not take.

        Parameters
        ----------
        columns : list of ColumnInfo
            Name, kind and levels of the columns of the table.
        features : list
            The features that are asked for.
        """
        info = {column.name: column for column in columns}
        for feature in features:
            if len(feature) > 1 and not self.accepts_groups:
                raise ParameterError(
                    f"sampler {self.name!r} redraws one feature at a time; got the group {title(feature)!r}. "
                    f"Use 'subgroups' or 'marginal' for groups."
                )
            for name in feature:
                column = info[name]
                if column.kind not in self.kinds:
                    raise ParameterError(
                        f"sampler {self.name!r} takes {' and '.join(sorted(self.kinds))} columns, but {name!r} is "
                        f"{column.kind}. Leave it out of features, or use another sampler for it."
                    )
                if column.has_missing and not self.accepts_missing:
                    raise ParameterError(
                        f"sampler {self.name!r} takes no missing values, but column {name!r} has some. "
                        f"Fill them, leave it out of features, or use 'subgroups'."
                    )


def read_training_table(X: Any, features: Any, sampler: Sampler) -> tuple[Table, tuple[Feature, ...]]:
    """What `fit` was given, checked: the table, and the features by their columns."""
    table = read_table(X, argument="train", lenient=sampler.accepts_any_column)
    read = parse_features(features, table.names)
    sampler.reject_unsuitable(table.columns, read)
    return table, read

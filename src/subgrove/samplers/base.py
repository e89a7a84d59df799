"""The contract of samplers: fit on training rows, then resample a column of other rows.

A user-defined sampler needs two methods and works wherever `sampler=` is an argument::

    class Mine:
        def fit(self, X, features):             # training rows, names of the features that will be resampled
            return self                         # better: a new object with the fitted state

        def sample(self, X, feature, rngs):     # rows, one feature, a random generator for each repeat
            for rng in rngs:
                yield new_values                # one value for each row of X

Samplers of this package return more than that (`ResampledFeature`): the subgroup of each row, the donor rows, and the
exact expectation where it is cheaper than drawing. Class attributes state what a sampler can do; nothing outside its
file has to know it by name. `docs/add_a_sampler.md` describes both kinds.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar, cast

from subgrove._core.execution import Streams, UserStreams
from subgrove._core.kinds import KINDS, Floats, Kind
from subgrove._core.text import quote
from subgrove._core.validate import ParamsMixin
from subgrove._data.columns import ColumnInfo, feature_label, parse_features
from subgrove._data.replace_columns import Frames
from subgrove._data.table import Table, read_like, read_table
from subgrove._subgroups import Partition
from subgrove.exceptions import ParameterError
from subgrove.samplers.resampled_feature import ResampledFeature

Feature = tuple[str, ...]  # columns that are resampled together; usually one
T = TypeVar("T")

ROW_WISE_SAMPLERS = "Use 'auto', 'subgroups', 'marginal' or another sampler that takes values from training rows"


def title(feature: Feature) -> str:
    """Name of a feature, or of a group of features, in tables."""
    return feature_label(feature)


@dataclass(frozen=True, eq=False)
class FittedSampler(ABC):
    """Fitted sampler of this package: frozen, and applicable to any rows with the training columns.

    Attributes
    ----------
    columns : tuple of ColumnInfo
        Columns of the training rows.
    train : table or None
        Training rows, if donors are taken from them.

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

    row_wise: ClassVar[bool] = False  # each row is resampled independently of the other rows, from training values
    user_defined: ClassVar[bool] = False
    cross_fitted: ClassVar[bool] = False
    keeps_marginal: ClassVar[bool] = False  # resamples from all rows, without conditioning

    @abstractmethod
    def resample(
        self, table: Table, feature: Feature, rngs: Streams, *, weights: Floats | None = None, exact: bool = True
    ) -> ResampledFeature:
        """Resample one feature, or several jointly.

        Parameters
        ----------
        table : Table
            Rows as returned by `read`.
        feature : str or tuple of str
            The feature, or the features of a group.
        rngs : Streams
            A random generator for each repeat.
        weights : float array, optional
            Sample weights.
        exact : bool
            Whether exact expectations may replace draws.
        """

    @property
    def has_subgroups(self) -> bool:
        """Whether values are drawn within subgroups by which results can be reported."""
        return False

    @property
    def uses_training_donors(self) -> bool:
        """Whether donors are training rows."""
        return False

    @property
    def learned_from_rows(self) -> bool:
        """Whether the fitted state depends on the training rows."""
        return True

    @property
    def unfitted(self) -> Sampler | None:
        """The sampler that was fitted on `train`, if it can be fitted on parts of these rows at little cost."""
        return None

    @property
    def training_fingerprint(self) -> str | None:
        """Fingerprint of the training rows, if the sampler knows it."""
        return None

    @property
    def has_user_kinds(self) -> bool:
        """Whether the user set the kind of a column, which changes the fingerprint of the rows."""
        return False

    @property
    def default_features(self) -> list[Any] | None:
        """Features that the sampler is limited to; None if it is not."""
        return None

    @property
    def members(self) -> tuple[FittedSampler, ...]:
        """Samplers of features with different conditioning columns; the sampler itself if there is one only."""
        return (self,)

    def of_feature(self, table: Table, feature: Feature) -> tuple[FittedSampler, Table]:
        """Return the sampler of a feature, and the rows as it reads them.

        Parameters
        ----------
        table : Table
            The rows.
        feature : tuple of str
            The feature, or the features of a group.
        """
        return self, table

    def with_rows(self, X: Any) -> FittedSampler:
        """Return the sampler for other rows; differs only for samplers that hold the rows they resample.

        Parameters
        ----------
        X : table
            Rows in the user's container.
        """
        return self

    def selections(self) -> dict[str, list[Any]]:
        """Return the `SamplerChoice` of each feature, one per fold; empty if no sampler was selected."""
        return {}

    def choice_details(self) -> dict[str, Any]:
        """Return the fields of a `SamplerChoice` that describe this sampler."""
        return {}

    def user_kinds(self) -> Collection[str]:
        """Return the columns whose kind the user set, so that it may differ from the dtype."""
        return ()

    def for_chunks(self) -> Any:
        """Return the sampler in a form that resamples each row independently, as data in chunks need it."""
        if not self.row_wise:
            raise needs_all_rows(type(self).__name__)
        return self

    def split_columns(self, feature: Feature) -> tuple[str, ...] | None:
        """Return the split columns of the feature's tree, those nearest to the root first; None without a tree.

        Parameters
        ----------
        feature : str or tuple of str
            The feature, or the features of a group.
        """
        return None

    def reporting_subgroups(self, feature: Feature) -> Partition | None:
        """Return the subgroups by which results of the feature are reported; None without a single tree.

        Parameters
        ----------
        feature : str or tuple of str
            The feature, or the features of a group.
        """
        return None

    def restricted(self, feature: Feature, columns: Collection[str]) -> FittedSampler:
        """Return the sampler with the feature's tree pruned to splits on some columns.

        Parameters
        ----------
        feature : str or tuple of str
            The feature, or the features of a group.
        columns : set of str
            Columns whose splits are retained.
        """
        raise NotImplementedError(f"{type(self).__name__} has no trees")  # those with `split_columns` override it

    def read(self, X: Any) -> Table:
        """Read rows with the column types of training.

        Parameters
        ----------
        X : table
            Rows in the user's container.
        """
        return read_like(X, self.columns)

    def sample(self, X: Any, feature: str | Sequence[str], rngs: Any) -> Iterator[Any]:
        """Yield new values of a feature for each row of X, one column per repeat.

        Parameters
        ----------
        X : frame, table or 2-d array
            Rows with the training columns.
        feature : str
            Name of the column to resample.
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
            raise ParameterError(f"feature is {feature!r}, but the sampler was fitted on {', '.join(known)}.")
        frames = Frames(X, self.columns, self.train)
        streams = rngs if isinstance(rngs, Streams) else cast(Any, UserStreams(rngs))  # only cross-fitting needs a seed
        for changes in self.resample(self.read(X), names, streams, exact=False).draws():
            columns = [frames.native(name, changes[name]) for name in names]
            columns = [one.to_native() if hasattr(one, "to_native") else one for one in columns]
            yield columns[0] if len(columns) == 1 else columns


class Sampler(ParamsMixin, ABC):
    """Sampler of this package, not yet fitted: stores the arguments of the constructor.

    Class attributes state its capabilities, which are checked when a public function is called.

    Examples
    --------
    >>> import subgrove as sg
    >>> sampler = sg.samplers.SubgroupSampler(max_depth=1)
    >>> isinstance(sampler, sg.samplers.Sampler), sampler.get_params()["max_depth"]
    (True, 1)
    """

    name: ClassVar[str]
    feature_kinds: ClassVar[frozenset[Kind]] = frozenset(KINDS)
    accepts_groups: ClassVar[bool] = False  # whether several features can be resampled jointly
    accepts_missing: ClassVar[bool] = True  # whether the resampled column may have missing values
    accepts_any_column: ClassVar[bool] = False  # whether empty columns and columns of very many levels may be present
    conditional: ClassVar[bool] = True  # whether new values depend on the other columns of the row
    learns: ClassVar[bool] = True  # whether fit uses the rows, so that it needs others than those it is applied to
    row_wise: ClassVar[bool] = True  # whether rows can be resampled independently of each other, for data in chunks
    is_bound: ClassVar[bool] = False  # whether it is a bound of fidelity, which every comparison includes

    @abstractmethod
    def fit(self, X: Any, features: Any = None) -> FittedSampler:
        """Fit on training rows.

        Parameters
        ----------
        X : table
            Training rows.
        features : list, optional
            Names of the features that will be resampled, or groups of names; all columns by default.
        """

    @property
    def accepts_given(self) -> bool:
        """Whether the conditioning columns can be set."""
        return "given" in self.get_params()

    @property
    def prefitted(self) -> bool:
        """Whether `fit` needs no training rows, because the subgroups were found before."""
        return False

    @property
    def ignores_train(self) -> bool:
        """Whether training rows have no effect on the samples."""
        return False

    @property
    def default_features(self) -> list[Any] | None:
        """Features that the sampler is limited to; None if it is not."""
        return None

    def for_model(self, model: Any) -> Sampler:
        """Return the sampler for a model; differs only for samplers that use the model itself.

        Parameters
        ----------
        model : object
            The model to explain.
        """
        return self

    def unconditional(self) -> Sampler | None:
        """Return the sampler without conditioning columns; None for the default, the marginal sampler."""
        return None

    def for_chunks(self) -> Sampler:
        """Return the sampler in a form that resamples each row independently, as data in chunks need it."""
        if not self.row_wise:
            raise needs_all_rows(self.name)
        return self

    def warn_about_few_rows(self, n_rows: int, n_folds: int) -> None:
        """Warn if cross-fitting leaves too few training rows.

        Parameters
        ----------
        n_rows : int
            Number of rows.
        n_folds : int
            Number of folds.
        """

    def reject_given(self, given: Sequence[str]) -> None:
        """Raise if conditioning columns have no meaning for this sampler.

        Parameters
        ----------
        given : sequence of str
            Names of the conditioning columns.
        """
        if not self.conditional:
            raise ParameterError(
                f"sampler {self.name!r} does not use other columns, so given={list(given)!r} has no effect. Use a "
                f"conditional sampler such as 'subgroups', or omit given."
            )

    def reject_unsuitable(self, columns: Sequence[ColumnInfo], features: Sequence[Feature]) -> None:
        """Raise if this sampler cannot resample a feature of this kind.

        Parameters
        ----------
        columns : list of ColumnInfo
            Name, kind and levels of the columns of the table.
        features : list
            The features to resample.
        """
        info = {column.name: column for column in columns}
        for feature in features:
            if len(feature) > 1 and not self.accepts_groups:
                raise ParameterError(
                    f"sampler {self.name!r} resamples one feature at a time; got the group {title(feature)!r}. "
                    f"Use 'subgroups' or 'marginal' for groups."
                )
            for name in feature:
                column = info[name]
                if column.kind not in self.feature_kinds:
                    raise ParameterError(
                        f"sampler {self.name!r} takes {' and '.join(sorted(self.feature_kinds))} columns, but {name!r} "
                        f"is {column.kind}. Leave it out of features, or use another sampler for it."
                    )
                if column.has_missing and not self.accepts_missing:
                    raise ParameterError(
                        f"sampler {self.name!r} takes no missing values, but column {name!r} has some. "
                        f"Impute them, leave the column out of features, or use 'subgroups'."
                    )


def needs_all_rows(name: str) -> ParameterError:
    """Return the error for a sampler whose donors are other rows of the data, which arrive in chunks."""
    return ParameterError(
        f"sampler {name!r} takes values from other rows of X, and these are never all in memory if data come in "
        f"chunks. {ROW_WISE_SAMPLERS}."
    )


def lookup_feature(fitted: Mapping[str, T], feature: Feature, sampler: str) -> T:
    """Return the fitted state of a feature, or raise an error that lists the fitted features."""
    try:
        return fitted[title(feature)]
    except KeyError:
        raise ParameterError(
            f"sampler {sampler!r} was not fitted for {title(feature)!r}, only for {quote(fitted)}. Add it to fit."
        ) from None


def read_training_table(X: Any, features: Any, sampler: Sampler) -> tuple[Table, tuple[Feature, ...]]:
    """Validate the arguments of `fit`; return the table and the features as tuples of column names."""
    table = read_table(X, argument="train", lenient=sampler.accepts_any_column)
    parsed = parse_features(features, table.names)
    sampler.reject_unsuitable(table.columns, parsed)
    return table, parsed

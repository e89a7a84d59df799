"""Strength of the interaction of pairs of features: Friedman's H-squared, and its result."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

from subgrove._core.execution import RandomStateLike, read_seed, stream
from subgrove._core.html_views import ResultView
from subgrove._core.kinds import Floats, Rows
from subgrove._core.text import quote
from subgrove._core.validate import whole_number
from subgrove._data.columns import as_list
from subgrove._data.from_containers import names_and_rows
from subgrove._data.replace_columns import Donors, Frames
from subgrove._data.to_containers import Backend, backend_of, make_table
from subgrove._effects.predict import ModelOutputs, batch_rows, changed_rows, model_for_effect
from subgrove._models.predictor import Predictor
from subgrove._models.tree_ensemble.ensemble import NotReadable
from subgrove._models.tree_ensemble.pairs import PairDependence
from subgrove._models.tree_ensemble.reading import CHECK_ROWS, TREE_STEPS, Encode, model_predictions, trusted_steps
from subgrove._models.tree_ensemble.steps import StepFunctions
from subgrove._subgroups import Partition
from subgrove.exceptions import InputError, ParameterError
from subgrove.trees.nodes import ALL_ROWS

_MAX_POINTS = 4096  # rows at which functions of trees with very many thresholds are evaluated
_NEGLIGIBLE = 1e-20  # share of the largest sum of squares below which an interaction is rounding
_CHECKED_PAIRS = 16

PairFunctions = tuple[int, int, Floats, Floats]  # two features, their interaction and joint function: (points, outputs)


@dataclass(frozen=True)
class PairStrength:
    """Strength of one interaction.

    Attributes
    ----------
    output : object
        Class or number of the model's output.
    subgroup : int
        Index of the subgroup.
    rule : str
        Its rule.
    feature, other : str
        The two features.
    n : int
        Number of rows at whose values the functions are evaluated.
    h_squared : float
        Share of the variance of the joint partial dependence that the interaction explains.
    strength : float
        Standard deviation of the interaction, in units of the margin or prediction.
    """

    output: Any
    subgroup: int
    rule: str
    feature: str
    other: str
    n: int
    h_squared: float
    strength: float


@dataclass(frozen=True, repr=False)
class InteractionStrength(ResultView):
    """Strength of the interactions between pairs of features, as returned by `InteractionStrength.compute`.

    Attributes
    ----------
    pairs : tuple of PairStrength
        Data of the table.
    scale : {"margin", "prediction"}
        Scale of the functions: margins of trees (log-odds of boosted classifiers), or what the model returns.
    n_rows_predicted, n_calls : int
        Number of predicted rows, and of calls of the model.
    settings : dict
        "evaluation": "tree steps" if computed from the trees of the model, otherwise "model predictions" and why.
    backend : str
        Library of the table.
    table : table
        A row for each pair, the strongest first: `output` (if there are several), `subgroup` and `rule` (with
        subgroups), `feature`, `other`, `n`, `h_squared`, `strength`.

    Examples
    --------
    >>> import subgrove as sg
    >>> X = sg.datasets.bike().X
    >>> def model(X):
    ...     return 100 * X["temp"] * (X["hum"] < 70) + X["wind"]
    >>> found = sg.InteractionStrength.compute(model, X, features=["temp", "hum", "wind"], random_state=1)
    >>> found.table[["feature", "other", "h_squared"]].round(2)
      feature other  h_squared
    0    temp   hum       0.11
    1    temp  wind       0.00
    2     hum  wind       0.00
    """

    pairs: tuple[PairStrength, ...]
    scale: str
    n_rows_predicted: int
    n_calls: int
    settings: dict[str, Any]
    backend: Backend

    @classmethod
    def compute(
        cls,
        model: Any,
        X: Any,
        *,
        features: Sequence[str] | None = None,
        subgroups: Partition | None = None,
        n_points: int = 100,
        response_method: str | None = None,
        random_state: RandomStateLike = None,
    ) -> InteractionStrength:
        """Compute Friedman's H-squared of all pairs of features (Friedman and Popescu 2008).

        H-squared is the sum over rows of (F_jk - F_j - F_k)^2, divided by that of F_jk^2, for the centred partial
        dependence F_jk on both features and F_j, F_k on each: 0 without interaction, 1 if there is nothing else.

        Parameters
        ----------
        model : object with predict or predict_proba, or function
            A fitted model, or a function of a table.
        X : pandas or polars frame, pyarrow table or 2-d array
            Rows to average over.
        features : list of str, optional
            Features whose pairs are evaluated; all columns by default.
        subgroups : Partition, optional
            Subgroups of a feature, as `find_subgroups(train)["temp"]`: each has numbers of its own, over its own rows.
        n_points : int, default 100
            Number of sampled rows for models whose trees cannot be read; it determines the cost.
        response_method : {"predict", "predict_proba", "decision_function"}, optional
            Method of the model; by default "predict_proba" for classifiers that have it, otherwise "predict".
        random_state : int, RandomState instance or Generator, optional
            Seed of the sample of rows.

        Returns
        -------
        InteractionStrength
            `table` has a row for each pair of features.

        Notes
        -----
        How to read it: H-squared is relative to the joint effect of the two features. It can be large for a pair with
        hardly any effect, so the table is sorted by `strength`, the size of the interaction. Partial dependence
        averages over combinations of values that do not occur if features are dependent; within subgroups there are
        fewer of these.

        For tree ensembles that can be read, numbers are exact over all rows, and the model predicts 256 rows to check
        its trees. They are those of the margin: the log-odds of boosted classifiers, the probability of forests.
        (Trees with very many thresholds are evaluated at the values of 4,096 sampled rows, averaged over all.) For
        other models, `n_points` rows are sampled, and p features need n_points^2 p (p + 1) / 2 predictions.
        """
        n_points = whole_number("n_points", n_points, least=2)
        return cls._of(model, X, features, subgroups, n_points, response_method, read_seed(random_state))

    @classmethod
    def of_trees(cls, model: Any, X: Any, features: Sequence[str], seed: int) -> InteractionStrength:
        """Compute H-squared from the trees of a model; there are no pairs if these cannot be read.

        Parameters
        ----------
        model, X, features
            As in `compute`.
        seed : int
            Seed of the sample of rows.
        """
        return cls._of(model, X, features, None, 0, None, seed)

    @classmethod
    def _of(
        cls,
        model: Any,
        X: Any,
        features: Sequence[str] | None,
        subgroups: Partition | None,
        n_points: int,
        response_method: str | None,
        seed: int,
    ) -> InteractionStrength:
        """Compute H-squared; without trees at `n_points` sampled rows, and not at all if there are none."""
        names, n_rows = names_and_rows(X)
        wanted = _features(features, names, n_rows)
        predictor = model_for_effect(model, response_method)
        outputs = ModelOutputs.of(predictor, None)
        groups = _groups(subgroups, X, n_rows)
        trusted = trusted_steps(predictor, X, (), partial(_changed_rows, Frames(X, (), X), wanted))
        reason, scale, columns = trusted.reason, "prediction", [names.index(name) for name in wanted]
        found: list[tuple[Group, Iterable[PairFunctions]]] = []
        if trusted.steps is not None:
            try:
                found = [(group, _from_trees(trusted.steps, outputs, rows, columns, seed)) for group, rows in groups]
                scale = "prediction" if trusted.steps.ensemble.link == "identity" else "margin"
            except NotReadable as error:
                reason = str(error)
        if reason and n_points:
            evaluate = partial(_from_predictions, predictor, outputs, X, wanted, n_points, seed)
            found = [(group, evaluate(rows)) for group, rows in groups]
        pairs = _strengths(found, wanted, outputs.labels)
        evaluation = model_predictions(reason) if reason else TREE_STEPS
        settings = {"evaluation": evaluation, "n_points": n_points, "random_state": seed}
        return cls(pairs, scale, predictor.n_rows, predictor.n_calls, settings, backend_of(X))

    @property
    def table(self) -> Any:
        """H-squared of each pair, the strongest interaction first."""
        columns = {each.name: [getattr(pair, each.name) for pair in self.pairs] for each in fields(PairStrength)}
        if len(set(map(repr, columns["output"]))) < 2:
            del columns["output"]
        if not any(pair.rule != ALL_ROWS for pair in self.pairs):
            del columns["subgroup"], columns["rule"]
        return make_table(self.backend, columns)

    def __repr__(self) -> str:
        n = len({(pair.feature, pair.other) for pair in self.pairs})
        return f"<InteractionStrength of {n} pair{'s' * (n != 1)} of features>"


Group = tuple[int, str]  # index of a subgroup, and its rule


def _features(features: Any, names: Sequence[str], n_rows: int) -> list[str]:
    """Validate the features."""
    if not n_rows:
        raise InputError("X has no rows. Pass at least two.")
    if isinstance(features, str):
        raise ParameterError(f"features must be a list of at least two columns; got {features!r}.")
    wanted = list(names) if features is None else [str(name) for name in as_list("features", features)]
    if unknown := [name for name in wanted if name not in names]:
        raise ParameterError(f"features has {quote(unknown)}, but X has the columns {quote(names[:30])}.")
    if len(set(wanted)) < 2 or len(set(wanted)) < len(wanted):
        raise ParameterError(f"features must be at least two different columns; got {wanted}.")
    return wanted


def _groups(subgroups: Any, X: Any, n_rows: int) -> list[tuple[Group, Rows]]:
    """Return the rows of each subgroup with at least two rows; all rows without subgroups."""
    if subgroups is None:
        return [((0, ALL_ROWS), np.arange(n_rows))]
    if not isinstance(subgroups, Partition):
        given = type(subgroups).__name__
        raise ParameterError(f"subgroups must be the subgroups of one feature, find_subgroups(...)[name]; got {given}.")
    code = subgroups.assign(X)
    rows = [((number, rule), np.flatnonzero(code == number)) for number, rule in enumerate(subgroups.rules)]
    return [(group, own) for group, own in rows if len(own) > 1]


def _changed_rows(frames: Frames, features: Sequence[str], steps: StepFunctions, encode: Encode) -> tuple[Any, Floats]:
    """Return rows with values of other rows in random pairs of features, and their margins."""
    rng, every = np.random.default_rng(0), list(combinations(features, 2))
    pairs = [every[at] for at in rng.choice(len(every), min(_CHECKED_PAIRS, len(every)), replace=False)]
    n = -(-CHECK_ROWS // len(pairs))
    rows = rng.integers(frames.n_rows, size=n)
    donors = rng.integers(frames.n_rows, size=(len(pairs), 2, n))
    blocks = [
        {
            name: (Donors(own, train=True), steps.places[own, frames.names.index(name)])
            for name, own in zip(pair, received, strict=True)
        }
        for pair, received in zip(pairs, donors, strict=True)
    ]
    return changed_rows(frames, steps, rows, blocks)


def _from_trees(
    steps: StepFunctions, outputs: ModelOutputs, rows: Rows, columns: Sequence[int], seed: int
) -> list[PairFunctions]:
    """Return the functions of all pairs at all rows; at a sample if they have very many places."""
    most = sorted(min(steps.columns[column].n_places, len(rows)) for column in columns)[-2:]
    points = rows
    if len(rows) > _MAX_POINTS and most[0] * most[1] > _MAX_POINTS**2:
        points = np.sort(stream(seed, "interaction strength").choice(rows, _MAX_POINTS, replace=False))
    n_outputs = steps.ensemble.n_outputs
    shown = outputs.columns(n_outputs) if n_outputs > 1 else [0]
    place = {column: at for at, column in enumerate(columns)}
    every = PairDependence(steps, rows, points).pairs(columns)
    return [(place[j], place[k], difference[:, shown], joint[:, shown]) for j, k, difference, joint in every]


def _from_predictions(
    predictor: Predictor, outputs: ModelOutputs, X: Any, features: Sequence[str], n_points: int, seed: int, rows: Rows
) -> Iterator[PairFunctions]:
    """Yield the functions of all pairs, averaged over a sample of rows and evaluated at its values."""
    frames, n = Frames(X, ()), min(n_points, len(rows))
    sample = np.sort(stream(seed, "interaction strength").choice(rows, n, replace=False))
    step = max(1, batch_rows(len(frames.names)) // n)

    def dependence(*names: str) -> Floats:
        means = []
        for start in range(0, n, step):
            donors = np.repeat(sample[start : start + step], n)
            table = frames.changed(np.tile(sample, len(donors) // n), {name: Donors(donors) for name in names})
            about = f"interaction of {' and '.join(names)}"
            predictions = predictor.predict(table, len(donors), lambda row: about)  # noqa: B023 - used at once
            numbers = outputs.numbers(predictions, about)
            means.append(numbers.reshape(len(donors) // n, n, -1).mean(axis=1))
        mean = np.concatenate(means)
        return np.asarray(mean - mean.mean(axis=0))

    singles = {name: dependence(name) for name in features}
    for (j, one), (k, other) in combinations(enumerate(features), 2):
        joint = dependence(one, other)
        yield j, k, joint - singles[one] - singles[other], joint


def _strengths(
    found: Iterable[tuple[Group, Iterable[PairFunctions]]],
    features: Sequence[str],
    labels: Callable[[int], Sequence[Any]],
) -> tuple[PairStrength, ...]:
    """Return the strength of all pairs, by output and subgroup, the strongest first."""
    pairs = [(group, *functions) for group, some in found for functions in some]
    largest = max(((joint**2).sum(axis=0).max() for *_, joint in pairs), default=0.0)
    strengths = []
    for (number, rule), j, k, difference, joint in pairs:
        squares, of_joint, n = (difference**2).sum(axis=0), (joint**2).sum(axis=0), len(joint)
        squares[squares <= _NEGLIGIBLE * largest] = 0.0
        shares = squares / np.where(squares > 0, of_joint, 1.0)
        every = labels(joint.shape[1])
        strengths += [
            PairStrength(every[at], number, rule, features[j], features[k], n, share, float(np.sqrt(square / n)))
            for at, (share, square) in enumerate(zip(shares.tolist(), squares.tolist(), strict=True))
        ]
    place = {repr(each.output): at for at, each in reversed(list(enumerate(strengths)))}
    return tuple(sorted(strengths, key=lambda each: (place[repr(each.output)], each.subgroup, -each.strength)))

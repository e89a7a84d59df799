"""What a report is asked about, checked once: the model, its rows, the task and the loss."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove._core.kinds import Rows
from subgrove._core.parallel import effective_jobs
from subgrove._core.random import read_seed, stream
from subgrove._core.text import quote
from subgrove._core.validate import whole_number
from subgrove._data.features import parse_features
from subgrove._data.replace_columns import Frames
from subgrove._data.table import Table, read_table
from subgrove._models.predictor import (
    Predictor,
    Target,
    gives_probabilities,
    is_classifier,
    read_model,
    read_target,
    response_for,
)
from subgrove._subgroups import Partition, Subgroups
from subgrove.exceptions import InputError, ParameterError
from subgrove.losses import Loss, get_all
from subgrove.samplers.base import FittedSampler, Sampler
from subgrove.samplers.fit import read_sampler

MOST_ROWS = 20_000
"""Test rows that importance is computed on, at random if there are more."""
EFFECT_ROWS = 1_000
"""Test rows that curves are means over, at random if there are more; fewer where features are many."""
_CURVE_ROWS, _FEWEST_ROWS = 25_000, 300  # of all features together, and of one
_ASKED_ROWS = 1_000_000  # redrawn rows of each importance that repeats are chosen for
_FEWEST, _MOST = 5, 20  # repeats
_SMALLEST, _LARGEST = 1e-70, 1e70  # sizes of y whose fourth powers, of which errors of scores are made, floats hold
SURE_TASKS = {"probability": "classification", "label": "classification", "value": "regression"}


@dataclass(frozen=True, eq=False)
class Pair:
    """Rows and their target, as the user gave them; `table` is how they are read."""

    X: Any
    y: Any
    table: Table

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.table.n_rows

    def some(self, rows: Rows) -> Pair:
        """Some of the rows; the same object, where these are all."""
        if len(rows) == self.n:
            return self
        part = Frames(self.X, self.table.columns).changed(rows, {})
        return Pair(part, np.asarray(self.y)[rows], read_table(part, lenient=True))


@dataclass(frozen=True, eq=False)
class Asked:
    """What is asked, checked.

    Attributes
    ----------
    model : object
        The user's.
    train, test : Pair
        The rows it was trained on and all rows it is judged on.
    used, drawn : Pair
        Test rows that importance, and that curves, are computed on.
    features : tuple of str
    task : {"regression", "classification"}
    target : str
        Name of y.
    classes : tuple
        Labels of the classes, in the order of probabilities.
    common : tuple of int
        Places of the classes, the most frequent first.
    loss : Loss
    targets : pair of Target
        y of training and of test rows, as losses compare it.
    sampler : object
        As `importance` takes it, with the depth that was asked for.
    max_depth, n_repeats, seed : int
    n_jobs : int or None
    """

    model: Any
    train: Pair
    test: Pair
    used: Pair
    drawn: Pair
    features: tuple[str, ...]
    task: str
    target: str
    classes: tuple[Any, ...]
    common: tuple[int, ...]
    loss: Loss
    targets: tuple[Target, Target]
    sampler: Any
    max_depth: int
    n_repeats: int
    seed: int
    n_jobs: int | None

    @property
    def probabilities(self) -> bool:
        """Whether the model is asked for probabilities of classes."""
        return gives_probabilities(response_for((self.loss,), None))

    @property
    def fitted_on(self) -> Any:
        """Training rows for the sampler; None where it was fitted before."""
        groups = getattr(self.sampler, "groups", None)
        before = isinstance(self.sampler, FittedSampler | Subgroups | Partition)
        return None if before or (groups is not None and self.sampler.donors != "train") else self.train.X

    def reader(self) -> Predictor:
        """The model as the loss asks it."""
        return read_model(self.model, response_for((self.loss,), None))


def read_asked(
    model: Any,
    train: Any,
    test: Any,
    features: Any,
    loss: Any,
    sampler: Any,
    max_depth: Any,
    n_repeats: Any,
    seed: Any,
    target: str | None,
    n_jobs: int | None,
) -> Asked:
    """The user's arguments, checked."""
    trained, tested = read_pair(train, "train"), read_pair(test, "test")
    _reject_other_columns(trained.table.names, tested.table.names)
    effective_jobs(n_jobs)  # refuses what is no number of jobs
    start, depth = read_seed(seed), whole_number("max_depth", max_depth, least=0)
    names = _features(features, tested.table.names)
    chosen = _loss(loss, model, tested.y)
    task = SURE_TASKS.get(chosen.response_method) or ("classification" if is_classifier(model) else "regression")
    asks = read_model(model, response_for((chosen,), None))
    probabilities = gives_probabilities(response_for((chosen,), None))
    targets = _targets(asks, chosen, trained, tested, probabilities=probabilities)
    used = tested.some(_some_rows(tested.n, MOST_ROWS, start, "rows of the report"))
    return Asked(
        model,
        trained,
        tested,
        used,
        used.some(_some_rows(used.n, _of_curves(len(names)), start, "rows of curves")),
        names,
        task,
        target if target is not None else str(getattr(tested.y, "name", None) or "y"),
        targets[1].classes if task == "classification" else (),
        _by_frequency(targets[0]) if task == "classification" else (),
        chosen,
        targets,
        _sampler(sampler, depth),
        depth,
        _repeats(n_repeats, used.n, len(names)),
        start,
        n_jobs,
    )


def read_pair(given: Any, argument: str) -> Pair:
    """Rows and target of a data set or of a pair."""
    if hasattr(given, "X") and hasattr(given, "y"):
        X, y = given.X, given.y
    elif isinstance(given, tuple | list) and len(given) == 2:
        X, y = given
    else:
        raise ParameterError(
            f"{argument} must be a pair (X, y), or have .X and .y; got {type(given).__name__}. "
            f"Pass {argument}=(X, y), the table of features and the column of the target."
        )
    if y is None or (np.ndim(y) == 2 and np.shape(y)[1] != 1):
        what = "no target" if y is None else f"a target of shape {np.shape(y)}"
        raise InputError(f"{argument} has {what}; a report tells of one target. Pass one value of y for each row.")
    table = read_table(X, argument=f"{argument}.X", lenient=True)
    for at, name in enumerate(table.names):
        if not name.strip():
            raise InputError(
                f"{argument}.X has a column without a name ({name!r}, at place {at}), which no sentence can tell of. "
                f"Give it a name."
            )
    return Pair(X, y, table)


def _reject_other_columns(train: tuple[str, ...], test: tuple[str, ...]) -> None:
    for lacks, there, argument in ((train, test, "train"), (test, train, "test")):
        absent = [name for name in there if name not in lacks]
        if absent:
            raise InputError(
                f"{argument} lacks {quote(absent[:5])}, which the other table has. Pass the same columns in both."
            )


def _features(features: Any, columns: tuple[str, ...]) -> tuple[str, ...]:
    asked = parse_features(features, columns)
    groups = [members for members in asked if len(members) > 1]
    if groups:
        raise ParameterError(
            f"features has the group {quote(groups[0])}; a report tells of one feature at a time. "
            f"Name columns one by one, and use sg.importance for the group."
        )
    return tuple(name for (name,) in asked)


def _loss(loss: Any, model: Any, y: Any) -> Loss:
    """The loss, or that of the task: a report has one, with a value for each row."""
    found = get_all(default_loss(model, y) if loss is None else loss)
    if len(found) > 1:
        raise ParameterError(f"loss names {len(found)} losses; a report is told in one. Name one of them.")
    if not found[0].per_row:
        raise ParameterError(
            f"loss={found[0].name!r} is a score of all rows together, which has no value in a subgroup and no "
            f"interval. Name a loss that has a value for each row, such as 'absolute_error', 'log_loss' or 'brier'."
        )
    return found[0]


def default_loss(model: Any, y: Any) -> str:
    """The loss of the task, as a reader of a report expects it: numbers in the unit of the target."""
    if is_classifier(model) or not _are_numbers(y):
        asks = hasattr(model, "predict_proba") or not hasattr(model, "predict")
        return "log_loss" if asks else "zero_one"
    return "absolute_error"


def _are_numbers(y: Any) -> bool:
    try:
        np.asarray(y).astype(np.float64)
    except (TypeError, ValueError):
        return False
    return np.asarray(y).dtype.kind not in "US"


def _targets(asks: Predictor, loss: Loss, train: Pair, test: Pair, *, probabilities: bool) -> tuple[Target, Target]:
    """y of training and test rows; classes that a model does not tell are those of both."""
    classes = asks.classes
    if not classes and loss.response_method in ("probability", "label"):
        classes = tuple(np.unique(np.concatenate([np.asarray(test.y), np.asarray(train.y)])).tolist())
    read = []
    for pair, argument in ((train, "train"), (test, "test")):
        try:
            read.append(read_target(pair.y, pair.n, classes, (loss,), probabilities=probabilities))
        except InputError as error:
            raise type(error)(f"In {argument}: {error}") from error
        if read[-1].numbers is not None:
            reject_extreme(read[-1].numbers, f"In {argument}: y")
    return read[0], read[1]


def reject_extreme(values: Any, what: str) -> None:
    """Refuse a target whose scores floats cannot hold."""
    largest = float(np.abs(values).max(initial=0.0))
    if largest and not _SMALLEST < largest < _LARGEST:
        raise InputError(
            f"{what} has values up to {largest:g} in size; squares of squares of such numbers are beyond what a float "
            f"can hold. {'Divide' if largest > 1 else 'Multiply'} it by a number, and train on that."
        )


def _by_frequency(target: Target) -> tuple[int, ...]:
    counts = [int((np.asarray(target.raw) == label).sum()) for label in target.classes]
    return tuple(sorted(range(len(counts)), key=lambda at: (-counts[at], at)))


def _sampler(sampler: Any, max_depth: int) -> Any:
    """The sampler, told by subgroups of the depth that was asked for, if it goes by a name."""
    if not isinstance(sampler, str):
        if isinstance(sampler, Sampler):
            _reject_unconditional(sampler)
        return sampler
    method = read_sampler(sampler)
    _reject_unconditional(method)
    takes = method.get_params()
    depth: Mapping[str, int] = {}
    if "report_depth" in takes:
        depth = {"report_depth": max_depth}
    elif "max_depth" in takes:
        depth = {"max_depth": max_depth}
    return type(method)(**{**takes, **depth})


def _reject_unconditional(method: Sampler) -> None:
    if not method.conditional:
        raise ParameterError(
            f"sampler={method.name!r} does not look at other columns, but a report sets a conditional importance "
            f"beside the marginal one. Use 'auto', 'subgroups' or another conditional sampler."
        )


def _repeats(n_repeats: Any, n_rows: int, n_features: int) -> int:
    if n_repeats is not None:
        return whole_number("n_repeats", n_repeats, least=1)
    return int(np.clip(_ASKED_ROWS // max(n_rows * n_features, 1), _FEWEST, _MOST))


def _of_curves(n_features: int) -> int:
    return int(np.clip(_CURVE_ROWS // n_features, _FEWEST_ROWS, EFFECT_ROWS))


def _some_rows(n: int, most: int, seed: int, what: str) -> npt.NDArray[np.intp]:
    if n <= most:
        return np.arange(n)
    return np.sort(stream(seed, what).choice(n, most, replace=False))

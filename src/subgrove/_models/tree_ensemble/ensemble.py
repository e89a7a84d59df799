"""The one node layout of tree ensembles, and where their splits send values.

Requirements this design meets:

- one rule for all libraries: `x <= threshold` goes left; readers adapt thresholds and inputs to it;
- all routing (missing values, categories, levels unknown to the model) is in `TreeEnsemble.goes_left`;
- a layout with an invalid index, a cycle or a value that is not finite raises `NotReadable`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32]
Bools = npt.NDArray[np.bool_]
Link = Literal["identity", "logistic", "softmax", "exp"]

_MAX_SET_CELLS = 1 << 27


class NotReadable(Exception):  # noqa: N818 - says what happened, and is always caught
    """A model, or a table for it, that is not supported here; the message states the reason."""


@dataclass(frozen=True, eq=False)
class TreeEnsemble:
    """A sum of trees.

    Nodes of a tree are consecutive, its root first. Each node belongs to exactly one tree.

    Attributes
    ----------
    n_inputs, n_outputs : int
        Number of numeric inputs of the trees, and of margins.
    roots : int32 (T,)
        Root of each tree, increasing.
    output : int32 (T,)
        Margin to which a tree adds; -1 if leaves have a value for each margin.
    feature : int32 (N,)
        Input of a node; -1 for a leaf.
    threshold : float64 (N,)
        `x <= threshold` goes left; 0 in leaves and in splits by category.
    left, right : int32 (N,)
        Children; -1 in leaves.
    missing_left : bool (N,)
        Whether a missing value (NaN) goes left.
    value : float64 (N, V)
        Values of leaves, scaled so that they are summed; V is 1, or n_outputs where `output` is -1.
    base : float64 (n_outputs,)
        Added to the margins.
    category : int32 (N,)
        Row of `sets` for a split by category; -1 for others.
    sets : bool (n_sets, n_levels)
        Levels 0, 1, ... that go left.
    outside_left : bool (N,)
        Whether levels that are negative or at least n_levels go left.
    link : str
        Response as a function of the margins.
    n_classes : int
        Number of columns of probabilities; 0 if the response is a value (or a margin).
    tolerance : float
        Relative difference to the model's own predictions that rounding explains.
    name : str
        Class of the model.
    """

    n_inputs: int
    n_outputs: int
    roots: Ints
    output: Ints
    feature: Ints
    threshold: Floats
    left: Ints
    right: Ints
    missing_left: Bools
    value: Floats
    base: Floats
    category: Ints
    sets: Bools
    outside_left: Bools
    link: Link = "identity"
    n_classes: int = 0
    tolerance: float = 1e-9
    name: str = ""

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return len(self.roots)

    @property
    def n_nodes(self) -> int:
        """Number of nodes of all trees."""
        return len(self.feature)

    def goes_left(self, nodes: npt.NDArray[Any], x: Floats) -> Bools:
        """Return whether values go left at splits.

        Parameters
        ----------
        nodes : int array
            Nodes that are no leaves.
        x : float64 array
            Value of the input of each of these nodes; NaN is missing.
        """
        left: Bools = x <= self.threshold[nodes]
        if len(self.sets):
            at = np.nonzero(self.category[nodes] >= 0)
            level, node = x[at], nodes[at]
            inside = (level >= 0) & (level < self.sets.shape[1])
            code = np.where(inside, level, 0).astype(np.intp)
            left[at] = np.where(inside, self.sets[self.category[node], code], self.outside_left[node])
        missing = np.isnan(x)
        left[missing] = self.missing_left[nodes[missing]]
        return left

    def response(self, margins: Floats) -> Floats:
        """Return what the method of the model returns: (n,) values, or (n, n_classes) probabilities.

        With several margins and no classes, margins are returned as (n, n_outputs).
        """
        values = margins
        if self.link == "exp":
            values = np.exp(margins)
        elif self.link == "logistic":
            with np.errstate(over="ignore"):
                values = 1 / (1 + np.exp(-margins))
        elif self.link == "softmax":
            values = np.exp(margins - margins.max(axis=1, keepdims=True))
            values /= values.sum(axis=1, keepdims=True)
        if self.n_outputs > 1:
            return values
        return np.hstack([1 - values, values]) if self.n_classes else values[:, 0]


@dataclass(frozen=True, eq=False)
class Nodes:
    """Nodes of all trees, one tree after another, children counted from the root of the tree.

    Attributes
    ----------
    sizes : list of int
        Number of nodes of each tree.
    feature, threshold, left, right, missing_left, value :
        As in `TreeEnsemble`; entries of leaves are arbitrary, but for `feature` (negative) and `value`.
    category, sets, outside_left :
        Likewise; None if no split is by category.
    """

    sizes: Any
    feature: npt.NDArray[Any]
    threshold: npt.NDArray[Any]
    left: npt.NDArray[Any]
    right: npt.NDArray[Any]
    missing_left: npt.NDArray[Any]
    value: npt.NDArray[Any]
    category: npt.NDArray[Any] | None = None
    sets: Bools | None = None
    outside_left: npt.NDArray[Any] | None = None


@dataclass(frozen=True)
class Response:
    """How margins become what the method of a model returns; see `TreeEnsemble`.

    Attributes
    ----------
    link : str
        Link.
    n_classes : int
        Number of columns of probabilities, or 0.
    scale : float
        Factor of the margins.
    """

    link: Link = "identity"
    n_classes: int = 0
    scale: float = 1.0


def build(
    nodes: Nodes,
    output: Any,
    base: Any,
    n_inputs: int,
    response: Response,
    *,
    name: str,
    tolerance: float = 1e-9,
) -> TreeEnsemble:
    """Return the checked ensemble of the nodes of all trees.

    Parameters
    ----------
    nodes : Nodes
        Nodes of all trees.
    output : int array (T,)
        Margin to which each tree adds, or -1.
    base : float array (K,)
        Added to the margins.
    n_inputs : int
        Number of inputs.
    response : Response
        Response of the model; values and base are multiplied by its scale.
    name : str
        Class of the model.
    tolerance : float
        Relative difference to the model's own predictions that rounding explains.
    """
    sizes = np.asarray(nodes.sizes, dtype=np.int64)
    require(len(sizes) > 0 and int(sizes.min()) > 0, "it has no trees")
    roots = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    n = int(sizes.sum())
    require(n < 2**31, "it has too many nodes")
    leaf = np.asarray(nodes.feature) < 0
    split = ~leaf
    shift = np.repeat(roots, sizes)
    children = [np.where(leaf, -1, np.asarray(child, dtype=np.int64) + shift) for child in (nodes.left, nodes.right)]
    bound = shift + np.repeat(sizes, sizes)
    for child in children:
        require(bool((((child > shift) & (child < bound)) | leaf).all()), "a node has an invalid child")
    parents = np.bincount(np.concatenate([child[split] for child in children]), minlength=n)
    parents[roots] += 1
    require(bool((parents == 1).all()), "its nodes are not trees")
    value = np.asarray(nodes.value, dtype=np.float64).reshape(n, -1) * response.scale
    base = np.asarray(base, dtype=np.float64).ravel() * response.scale
    output = np.asarray(output, dtype=np.int32)
    category = np.full(n, -1) if nodes.category is None else np.where(leaf, -1, nodes.category)
    sets = np.zeros((0, 0), dtype=np.bool_) if nodes.sets is None else nodes.sets
    outside = np.zeros(n, dtype=np.bool_) if nodes.outside_left is None else nodes.outside_left
    threshold = np.where(leaf | (category >= 0), 0.0, nodes.threshold)
    feature = np.where(leaf, -1, nodes.feature)
    require(bool(np.isfinite(value[leaf]).all() and np.isfinite(base).all()), "a value is not finite")
    require(not np.isnan(threshold).any(), "a threshold is missing")
    require(int(feature.max(initial=-1)) < n_inputs, "a split is on an unknown feature")
    require(int(category.max(initial=-1)) < len(sets), "a split is on an unknown set of levels")
    vectors = value.shape[1] == len(base) and bool((output == -1).all())
    scalars = value.shape[1] == 1 and bool(((output >= 0) & (output < len(base))).all())
    require(len(output) == len(sizes) and (vectors or scalars), "its leaves do not fit its outputs")
    value[split] = 0.0
    arrays: dict[str, npt.NDArray[Any]] = {
        "roots": roots.astype(np.int32),
        "output": output,
        "feature": feature.astype(np.int32),
        "threshold": threshold,
        "left": children[0].astype(np.int32),
        "right": children[1].astype(np.int32),
        "missing_left": np.asarray(nodes.missing_left).astype(np.bool_) & split,
        "value": np.ascontiguousarray(value),
        "base": base,
        "category": category.astype(np.int32),
        "sets": np.ascontiguousarray(sets),
        "outside_left": np.asarray(outside).astype(np.bool_) & split,
    }
    for array in arrays.values():
        array.flags.writeable = False
    return TreeEnsemble(
        n_inputs, len(base), **arrays, link=response.link, n_classes=response.n_classes, tolerance=tolerance, name=name
    )


def level_sets(rows: npt.NDArray[np.intp], levels: npt.NDArray[np.intp], n_sets: int, n_levels: int) -> Bools:
    """Return (n_sets, n_levels): True at the pairs of a row and a level."""
    require(n_sets * n_levels <= _MAX_SET_CELLS, "its categories have too many levels")
    sets = np.zeros((n_sets, n_levels), dtype=np.bool_)
    sets[rows, levels] = True
    return sets


def require(condition: bool, reason: str) -> None:
    """Raise `NotReadable` with a reason unless a condition holds."""
    if not condition:
        raise NotReadable(reason)

"""What cannot be used is rejected where it is handed over: the message names it and says the remedy."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest

import subgrove as sg
from subgrove.exceptions import ColumnError, InputError, LengthError, ParameterError, SubgroveError
from subgrove.trees import CartTree, ConditionalInferenceTree, TransformationModel, TransformationTree

Grower = TransformationTree | ConditionalInferenceTree | CartTree
GROWERS: list[type[Grower]] = [TransformationTree, ConditionalInferenceTree, CartTree]
each_tree = pytest.mark.parametrize("grower", GROWERS)
for_levels_of_x = pytest.mark.parametrize("grower", [ConditionalInferenceTree, CartTree])

N = 120
NOT_COUNTS = [-1, 2.5, True, "3", None, np.float64(2.0), np.nan, np.inf, [3]]
NO_LEVELS = [-0.1, 1.5, np.nan, np.inf, True, "0.05", None]


def sample(n: int = N) -> tuple[pd.DataFrame, npt.NDArray[np.float64]]:
    """Two numeric columns and a nominal one; x depends on the first."""
    rng = np.random.default_rng(3)
    X = pd.DataFrame({"a": rng.normal(size=n), "b": rng.normal(size=n), "c": rng.choice(["u", "v", "w"], n)})
    return X, 2 * (X["a"].to_numpy() > 0) + rng.normal(size=n)


X, x = sample()
ONES = np.ones(N)


def with_value(column: Any, value: float, row: int = 7) -> npt.NDArray[np.float64]:
    """A copy of a column with one value in it."""
    changed = np.array(column, dtype=float)
    changed[row] = value
    return changed


def objects(values: list[Any], n: int = N) -> npt.NDArray[np.object_]:
    """A column of objects, with these values over and over."""
    column = np.empty(n, dtype=object)
    for row in range(n):
        column[row] = values[row % len(values)]
    return column


def labels(n_levels: int) -> list[str]:
    """Each level twice."""
    return [f"v{index:04d}" for index in range(n_levels)] * 2


def named(*names: Any) -> pd.DataFrame:
    """The sample with other names of its columns."""
    frame = X.copy()
    frame.columns = pd.Index(names)
    return frame


def pair(column: Any) -> npt.NDArray[np.float64]:
    """An array of the first column and another one."""
    return np.column_stack([X["a"], column])


# Claim -> the table, x, weights, the error and what it says.
Case = tuple[Any, Any, Any, type[SubgroveError], str]
WRONG_TYPE = "X must be a pandas or polars frame, a pyarrow table or a 2-d array; got "
ALL_MISSING = " of X has no value at all: every row is missing. Drop the column"
INFINITE = " of X has 1 infinite values .* row 7.* Replace them by missing values or by a finite bound"
MIXED = r"'c' of X .* mixes types \(int, str\). Convert it to numbers, or to strings with astype\(str\)"
TOO_MANY = "'c' of X has 1001 levels; at most 1000 .* Drop it, merge rare levels"
OPPOSITE = with_value(X["b"], np.inf)  # with the other infinity, the sum of the column is missing
NOT_FINITE = "sample_weight must be finite and >= 0; row 7 has "
REJECTED: dict[str, Case] = {
    "empty frame": (pd.DataFrame(), [], None, InputError, "X has 0 rows and 0 columns; at least one of each is needed"),
    "frame without rows": (
        X[:0],
        x[:0],
        None,
        InputError,
        "X has 0 rows and 3 columns; at least one of each is needed",
    ),
    "array without rows": (np.empty((0, 3)), [], None, InputError, "X has 0 rows and 3 columns"),
    "frame without columns": (
        X[[]],
        x,
        None,
        InputError,
        "X has 120 rows and 0 columns; at least one of each is needed",
    ),
    "array without columns": (np.empty((N, 0)), x, None, InputError, "X has 120 rows and 0 columns"),
    "one row": (X[:1], x[:1], None, InputError, "1 row .* a tree needs at least 2 rows. Pass more rows"),
    "one row that counts": (X, x, with_value(0 * ONES, 3), InputError, "1 row .* positive weight; .* Pass more rows"),
    "all-missing numbers": (X.assign(b=np.nan), x, None, ColumnError, "'b'" + ALL_MISSING),
    "all-missing objects": (X.assign(c=objects([None])), x, None, ColumnError, "'c'" + ALL_MISSING),
    "infinite value": (X.assign(b=with_value(X["b"], np.inf)), x, None, ColumnError, "'b'" + INFINITE),
    "infinite value in an array": (pair(with_value(X["b"], -np.inf)), x, None, ColumnError, "'x1'" + INFINITE),
    "both infinities": (
        pair(with_value(OPPOSITE, -np.inf, 8)),
        x,
        None,
        ColumnError,
        "'x1' of X has 2 infinite values",
    ),
    "duplicate names": (named("a", "b", "b"), x, None, InputError, "X has several columns named 'b'. Rename them"),
    "duplicate names of floats": (X[["a", "a"]], x, None, InputError, "X has several columns named 'a'. Rename them"),
    "equal printed names": (
        named(1, "b", "1"),
        x,
        None,
        InputError,
        "X has several columns named '1'. Rename them",
    ),
    "mixed numbers and strings": (X.assign(c=objects([1, "one"])), x, None, ColumnError, MIXED),
    "mixed booleans and strings": (X.assign(c=objects([True, "yes"])), x, None, ColumnError, r"'c' .*\(bool, str\)"),
    "mixed with missing": (X.assign(c=objects([1.5, "1", None])), x, None, ColumnError, r"'c' .*\(float, str\)"),
    "arrays in a column": (X.assign(c=objects([np.zeros(2)])), x, None, ColumnError, "'c' of X .*Convert it"),
    "complex numbers": (X.assign(b=X["b"] + 1j), x, None, ColumnError, "'b' of X has dtype complex128.* or drop it"),
    "1,001 levels": (pd.DataFrame({"c": labels(1001)}), np.arange(2002.0), None, ColumnError, TOO_MANY),
    "list of dictionaries": ([{"a": 1.0}] * N, x, None, InputError, WRONG_TYPE + "list"),
    "list of lists": ([[1.0, 2.0]] * N, x, None, InputError, WRONG_TYPE + "list"),
    "dictionary": ({"a": [1.0] * N}, x, None, InputError, WRONG_TYPE + "dict"),
    "string": ("X.csv", x, None, InputError, WRONG_TYPE + "str"),
    "None": (None, x, None, InputError, WRONG_TYPE + "NoneType"),
    "1-d array": (x, x, None, InputError, r"X must have two dimensions; got an array of shape \(120,\)"),
    "3-d array": (np.ones((N, 1, 1)), x, None, InputError, r"X must have two dimensions; got .* \(120, 1, 1\)"),
    "constant x": (X, 2.5 * ONES, None, InputError, "x .* is constant: every row has 2.5.* leave it out"),
    "x constant where it counts": (X, with_value(ONES, 3), with_value(ONES, 0), InputError, "x .* is constant"),
    "all-missing x": (X, ONES * np.nan, None, ColumnError, "'x' of x .* every row is missing"),
    "infinite x": (X, with_value(x, np.inf), None, ColumnError, "'x' of x has 1 infinite values .* row 7.* Replace"),
    "x too short": (X, x[1:], None, LengthError, "x has 119 values, but X has 120 rows. Pass one value "),
    "x too long": (X, np.r_[x, 1], None, LengthError, "x has 121 values, but X has 120 rows. Pass one value "),
    "empty x": (X, [], None, LengthError, "x has 0 values, but X has 120 rows. Pass one value "),
    "x of two columns": (X, np.ones((N, 2)), None, InputError, r"x must be one column; got .* shape \(120, 2\)"),
    "name for x": (X, "a", None, InputError, "x must be a .* column, .*; got str"),
    "number for x": (X, 3.0, None, InputError, "x must be a .* column, .*; got float"),
    "frame for x": (X, X, None, InputError, "x must be a .* column, .*; got DataFrame"),
    "weight below 0": (X, x, with_value(ONES, -1), InputError, NOT_FINITE + "-1.0.* excludes the row"),
    "missing weight": (X, x, with_value(ONES, np.nan), InputError, NOT_FINITE + "nan"),
    "infinite weight": (X, x, with_value(ONES, np.inf), InputError, NOT_FINITE + "inf"),
    "weights that are all 0": (
        X,
        x,
        0 * ONES,
        InputError,
        "sample_weight is 0 for every row.* Give some rows a weight above 0",
    ),
    "infinite sum of weights": (X, x, 1e308 * ONES, InputError, "weights"),
    "weights too short": (
        X,
        x,
        ONES[1:],
        LengthError,
        r"sample_weight has shape \(119,\), but X has 120 rows. Pass one",
    ),
    "weights too long": (
        X,
        x,
        np.ones(N + 1),
        LengthError,
        r"sample_weight has shape \(121,\), but X has 120 rows. Pass one",
    ),
    "weights in a column": (
        X,
        x,
        np.ones((N, 1)),
        LengthError,
        r"sample_weight has shape \(120, 1\), but X has 120 rows",
    ),
    "one number for weights": (X, x, 2.0, LengthError, r"sample_weight has shape \(\), but X has 120 rows. Pass one"),
    "words for weights": (X, x, ["heavy"] * N, InputError, "sample_weight must be numbers, one for each row; got list"),
    "missing weights": (X, x, [None] * N, InputError, "sample_weight must be"),
    "name for weights": (X, x, "balanced", InputError, "sample_weight must be numbers, one for each row; got str"),
    "ragged weights": (
        X,
        x,
        [[1.0], [1.0, 2.0]],
        InputError,
        "sample_weight must be numbers, one for each row; got list",
    ),
}


@each_tree
@pytest.mark.parametrize("case", REJECTED.values(), ids=list(REJECTED))
def test_input_is_rejected_with_the_remedy(grower: type[Grower], case: Case) -> None:
    table, column, weights, error, message = case
    with pytest.raises(error, match=message):
        grower().fit(table, column, weights)


@each_tree
@pytest.mark.parametrize("case", [REJECTED[claim] for claim in ("infinite value", "mixed with missing", "constant x")])
def test_rejected_input_is_not_changed(grower: type[Grower], case: Case) -> None:
    table, column = case[0], case[1]
    copies = table.copy(), np.array(column)
    with pytest.raises(SubgroveError):
        grower().fit(table, column)
    pd.testing.assert_frame_equal(table, copies[0])
    np.testing.assert_array_equal(column, copies[1])


@each_tree
def test_1000_levels_are_allowed(grower: type[Grower]) -> None:
    numbers = np.random.default_rng(0).normal(size=2000)
    tree = grower(max_depth=1).fit(pd.DataFrame({"c": labels(1000)}), numbers)
    assert len(tree.columns[0].levels) == 1000


# x as levels, and x at the limits of floats.


@for_levels_of_x
@pytest.mark.parametrize("as_list", [True, False])
def test_x_of_mixed_types_is_rejected(grower: type[ConditionalInferenceTree | CartTree], as_list: bool) -> None:
    mixed = [1, "one"] * (N // 2)
    with pytest.raises(ColumnError, match=r"'x' of x .* mixes types \(int, str\). Convert it"):
        grower().fit(X, mixed if as_list else pd.Series(mixed, dtype=object))


@for_levels_of_x
def test_1001_levels_of_x_are_rejected(grower: type[ConditionalInferenceTree | CartTree]) -> None:
    with pytest.raises(ColumnError, match="'x' of x has 1001 levels; at most 1000"):
        grower().fit(pd.DataFrame({"a": np.arange(2002.0)}), labels(1001))


@pytest.mark.parametrize(
    ("levels", "kind"),
    [
        (["u", "v"] * (N // 2), "nominal"),
        ([True, False] * (N // 2), "nominal"),
        (pd.Series(pd.Categorical(["u", "v"] * (N // 2), ordered=True)), "ordered"),
    ],
)
def test_transformation_tree_points_to_conditional_inference_for_levels(levels: Any, kind: str) -> None:
    with pytest.raises(InputError, match=f"x .* is {kind}, .* needs numbers. Use ConditionalInferenceTree"):
        TransformationTree().fit(X, levels)


@each_tree
@pytest.mark.parametrize("scale", [1e-300, 1e300])
def test_x_of_an_extreme_scale_is_used_or_rejected_with_the_remedy(grower: type[Grower], scale: float) -> None:
    try:
        tree = grower(max_depth=1, min_samples_leaf=10).fit(X, x * scale)
    except InputError as error:
        assert "Rescale x" in str(error)  # noqa: PT017  # either way is right, a bare warning is not
    else:
        assert tree.rules == grower(max_depth=1, min_samples_leaf=10).fit(X, x).rules


@each_tree
def test_range_of_x_wider_than_a_float_is_used_or_rejected_with_the_remedy(grower: type[Grower]) -> None:
    try:
        tree = grower(max_depth=1, min_samples_leaf=10).fit(X, np.r_[-1.7e308, 1.7e308, 1e307 * x[2:]])
    except InputError as error:
        assert "Rescale x" in str(error)  # noqa: PT017  # either way is right, a bare warning is not
    else:
        assert np.isfinite(tree.edges).all()


def test_weights_of_a_model_are_not_compared_with_a_table_it_does_not_have() -> None:
    with pytest.raises(LengthError, match=r"sample_weight .* Pass one weight for each") as caught:
        TransformationModel().fit(np.arange(5.0), [1.0])
    assert "X" not in str(caught.value)


# Parameters.


@each_tree
@pytest.mark.parametrize("value", NOT_COUNTS)
def test_max_depth_that_is_not_a_count_is_rejected(grower: type[Grower], value: Any) -> None:
    with pytest.raises(ParameterError, match="max_depth must be a whole number >= 0; got"):
        grower(max_depth=value).fit(X, x)


@each_tree
@pytest.mark.parametrize("value", [0, *NOT_COUNTS])
def test_min_samples_leaf_that_is_not_a_count_is_rejected(grower: type[Grower], value: Any) -> None:
    with pytest.raises(ParameterError, match="min_samples_leaf must be a whole number >= 1; got"):
        grower(min_samples_leaf=value).fit(X, x)


@pytest.mark.parametrize("value", NO_LEVELS)
def test_alpha_that_is_not_a_probability_is_rejected(value: Any) -> None:
    for tree in (TransformationTree(alpha=value), ConditionalInferenceTree(alpha=value)):
        with pytest.raises(ParameterError, match="alpha must be a number from 0 to 1; got"):
            tree.fit(X, x)


@pytest.mark.parametrize("value", NO_LEVELS)
def test_cp_that_is_not_a_share_is_rejected(value: Any) -> None:
    with pytest.raises(ParameterError, match="cp must be a number from 0 to 1; got"):
        CartTree(cp=value).fit(X, x)


@pytest.mark.parametrize("value", [1, *(value for value in NOT_COUNTS if value is not None)])
def test_min_samples_split_that_is_not_a_count_is_rejected(value: Any) -> None:
    with pytest.raises(ParameterError, match="min_samples_split must be a whole number >= 2; got"):
        CartTree(min_samples_split=value).fit(X, x)


@pytest.mark.parametrize("value", [0, *NOT_COUNTS])
def test_order_that_is_not_a_count_is_rejected(value: Any) -> None:
    with pytest.raises(ParameterError, match="order must be a whole number >= 1; got"):
        TransformationTree(order=value).fit(X, x)
    with pytest.raises(ParameterError, match="order must be a whole number >= 1; got"):
        TransformationModel(order=value).fit(x)


@pytest.mark.parametrize("value", ["x", "", None, 3, True])
def test_unknown_likelihood_is_rejected_with_the_known_ones(value: Any) -> None:
    with pytest.raises(ParameterError, match="likelihood must be one of 'auto', 'density', 'interval'; got"):
        TransformationTree(likelihood=value).fit(X, x)
    with pytest.raises(ParameterError, match="likelihood must be one of 'auto', 'density', 'interval'; got"):
        TransformationModel(likelihood=value).fit(x)


def test_interval_likelihood_rejects_fractions() -> None:
    with pytest.raises(InputError, match=r"'interval' needs whole numbers in x.* Use 'density'"):
        TransformationTree(likelihood="interval").fit(X, x)
    with pytest.raises(InputError, match=r"'interval' needs whole numbers in x.* Use 'density'"):
        TransformationModel(likelihood="interval").fit(x)


@pytest.mark.parametrize(
    "value", [(1.0, 0.0), (1.0, 1.0), (0.0, np.inf), (np.nan, 1.0), 1.0, "ab", (1.0,), (None, 1.0)]
)
def test_support_that_is_not_an_interval_is_rejected(value: Any) -> None:
    with pytest.raises(ParameterError, match=r"support must .*low.*high.*; got"):
        TransformationModel(support=value).fit(x)


@each_tree
def test_max_depth_0_gives_one_leaf_with_all_rows(grower: type[Grower]) -> None:
    tree = grower(max_depth=0).fit(X, x)
    assert tree.rules == {1: "all rows"}
    assert tree.apply(X).tolist() == [1] * N


WRONG_KINDS: dict[str, tuple[Any, type[SubgroveError], str]] = {
    "unknown column": ({"z": "nominal"}, ParameterError, "kinds names 'z', but X has the columns 'a', 'b'"),
    "unknown kind": ({"a": "text"}, ParameterError, "kind of 'a' must be one of numeric, ordered, nominal; got 'text'"),
    "no mapping": (["nominal"], ParameterError, "kinds must map column names of X to numeric, .*; got list"),
}


@each_tree
@pytest.mark.parametrize("columns", [["a", "b"], ["a", "b", "c"]], ids=["floats", "mixed"])
@pytest.mark.parametrize("case", WRONG_KINDS.values(), ids=list(WRONG_KINDS))
def test_kinds_are_rejected_with_the_known_ones(grower: type[Grower], columns: list[str], case: Any) -> None:
    kinds, error, message = case
    with pytest.raises(error, match=message):
        grower().fit(X[columns], x, kinds=kinds)


@each_tree
def test_text_read_as_numbers_is_rejected(grower: type[Grower]) -> None:
    with pytest.raises(ColumnError, match=r"'c' of X is to be numeric but holds other values: .*'[uvw]'"):
        grower().fit(X, x, kinds={"c": "numeric"})


@for_levels_of_x
def test_unknown_kind_of_x_is_rejected(grower: type[ConditionalInferenceTree | CartTree]) -> None:
    wrong: Any = "text"
    with pytest.raises(ParameterError, match="kind of 'x' must be one of numeric, ordered, nominal; got 'text'"):
        grower().fit(X, x, x_kind=wrong)


# New rows.


WRONG_ROWS: dict[str, tuple[Any, type[SubgroveError], str]] = {
    "missing columns": (X[["a"]], InputError, "X lacks 'b', 'c', which training had. It has 'a'. Pass a table with"),
    "infinite values": (X.assign(a=with_value(X["a"], np.inf)), ColumnError, "'a'" + INFINITE),
    "text for numbers": (X.assign(a="u"), ColumnError, "'a' of X is to be numeric but holds other values: .*'u'"),
    "wrong type": ([[0.0, 0.0, "u"]], InputError, "X must be a pandas or polars frame, .*; got list"),
    "array": (X[["a", "b"]].to_numpy(), InputError, "X lacks 'a', 'b', 'c', which training had. It has 'x0', 'x1'"),
}


@each_tree
@pytest.mark.parametrize("case", WRONG_ROWS.values(), ids=list(WRONG_ROWS))
def test_new_rows_are_rejected_with_the_remedy(grower: type[Grower], case: Any) -> None:
    rows, error, message = case
    with pytest.raises(error, match=message):
        grower(max_depth=2, min_samples_leaf=10).fit(X, x).apply(rows)


@each_tree
def test_new_array_with_infinite_values_is_rejected(grower: type[Grower]) -> None:
    array = X[["a", "b"]].to_numpy()
    with pytest.raises(ColumnError, match=r"'x0' of X has 1 infinite values .* row 7.* Replace them"):
        grower(max_depth=1).fit(array, x).apply(np.column_stack([with_value(X["a"], np.inf), X["b"]]))


# What holds for all of them.


@pytest.mark.parametrize("error", [InputError, ColumnError, LengthError, ParameterError])
def test_every_rejection_is_a_value_error_of_this_package(error: type[Exception]) -> None:
    assert issubclass(error, SubgroveError)
    assert issubclass(error, ValueError)


@each_tree
def test_inputs_are_never_changed(grower: type[Grower]) -> None:
    frame = X.assign(b=with_value(X["b"], np.nan), d=pd.Categorical(X["c"], ordered=True))
    series, weights = pd.Series(x, name="y"), pd.Series(np.arange(N) % 3)
    copies = frame.copy(), series.copy(), weights.copy()
    grower(max_depth=3, min_samples_leaf=5).fit(frame, series, weights).apply(frame)
    pd.testing.assert_frame_equal(frame, copies[0])
    pd.testing.assert_series_equal(series, copies[1])
    pd.testing.assert_series_equal(weights, copies[2])


@each_tree
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_that_cannot_be_written_to_are_enough(grower: type[Grower], order: Any) -> None:
    array, column, weights = np.array(X[["a", "b"]] + 1e6, order=order), x.copy(), np.arange(N) % 3 + 0.5
    for values in (array, column, weights):
        values.flags.writeable = False
    tree = grower(max_depth=3, min_samples_leaf=5).fit(array, column, weights)
    assert set(tree.apply(array)) == {leaf.id for leaf in tree.leaves}


def test_a_range_that_is_too_small_for_floats_is_reported_with_the_name_of_the_column() -> None:
    table = pd.DataFrame({"tiny": np.arange(60) * 5e-324, "z": np.arange(60.0)})
    with pytest.raises(InputError, match=r"tiny has a range of 2.9.*e-322, too small for floats"):
        sg.find_subgroups(table, features=["tiny"])

"""What cannot be used is refused where it is handed over: the message names it and says the remedy."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest

from subgrove.exceptions import ColumnError, InputError, LengthError, ParameterError, SubgroveError
from subgrove.trees import CartTree, ConditionalInferenceTree, TransformationModel, TransformationTree, Tree

Grower = TransformationTree | ConditionalInferenceTree | CartTree
GROWERS: list[type[Grower]] = [TransformationTree, ConditionalInferenceTree, CartTree]
TESTERS: list[type[TransformationTree | ConditionalInferenceTree]] = [TransformationTree, ConditionalInferenceTree]
each_tree = pytest.mark.parametrize("grower", GROWERS)

N = 120
NOT_COUNTS = [-1, 2.5, True, "3", None, np.float64(2.0), np.nan, np.inf, [3]]


def sample(n: int = N) -> tuple[pd.DataFrame, npt.NDArray[np.float64]]:
    """Two numeric columns and a nominal one; x depends on the first."""
    rng = np.random.default_rng(3)
    X = pd.DataFrame({"a": rng.normal(size=n), "b": rng.normal(size=n), "c": rng.choice(["u", "v", "w"], n)})
    return X, 2 * (X["a"].to_numpy() > 0) + rng.normal(size=n)


def with_value(column: npt.NDArray[np.float64], value: float, row: int = 7) -> npt.NDArray[np.float64]:
    """A copy of a column with one value in it."""
    changed = np.array(column)
    changed[row] = value
    return changed


def labels(n_levels: int) -> list[str]:
    """Each level twice."""
    return [f"v{index:04d}" for index in range(n_levels)] * 2


# The table.


@each_tree
@pytest.mark.parametrize("X", [pd.DataFrame(), pd.DataFrame({"a": []}), np.empty((0, 3))])
def test_empty_frame_is_refused(grower: type[Grower], X: Any) -> None:
    with pytest.raises(InputError, match=r"X has 0 rows and \d columns; at least one of each is needed"):
        grower().fit(X, [])


@each_tree
@pytest.mark.parametrize("X", [pd.DataFrame(index=range(5)), np.empty((5, 0))])
def test_frame_without_columns_is_refused(grower: type[Grower], X: Any) -> None:
    with pytest.raises(InputError, match="X has 5 rows and 0 columns; at least one of each is needed"):
        grower().fit(X, np.arange(5.0))


@each_tree
def test_one_row_is_refused(grower: type[Grower]) -> None:
    X, x = sample()
    with pytest.raises(InputError, match=r"1 row .* at least 2 rows. Pass more rows"):
        grower().fit(X[:1], x[:1])


@each_tree
def test_one_row_that_counts_is_refused(grower: type[Grower]) -> None:
    X, x = sample()
    weights = np.zeros(N)
    weights[4] = 3
    with pytest.raises(InputError, match=r"1 row has a value of x and a weight above 0; .* Pass more rows"):
        grower().fit(X, x, weights)


@each_tree
def test_all_missing_column_is_refused(grower: type[Grower]) -> None:
    X, x = sample()
    with pytest.raises(ColumnError, match=r"'b' of X .* every row is missing. Drop the column"):
        grower().fit(X.assign(b=np.nan), x)


@each_tree
def test_all_missing_nominal_column_is_refused(grower: type[Grower]) -> None:
    X, x = sample()
    with pytest.raises(ColumnError, match=r"'c' of X .* every row is missing. Drop the column"):
        grower().fit(X.assign(c=np.array([None] * N, dtype=object)), x)


@each_tree
@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_infinite_value_in_a_column_is_refused(grower: type[Grower], value: float) -> None:
    X, x = sample()
    with pytest.raises(ColumnError, match=r"'b' of X has 1 infinite values .* row 7.* Replace them"):
        grower().fit(X.assign(b=with_value(X["b"].to_numpy(), value)), x)


@each_tree
@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_infinite_value_in_an_array_is_refused(grower: type[Grower], value: float) -> None:
    X, x = sample()
    array = X[["a", "b"]].to_numpy().copy()
    array[7, 1] = value
    with pytest.raises(ColumnError, match=r"'x1' of X has 1 infinite values .* row 7.* Replace them"):
        grower().fit(array, x)


@each_tree
def test_both_infinities_in_one_column_are_refused(grower: type[Grower]) -> None:
    # Their sum is missing, not infinite.
    X, x = sample()
    array = X[["a", "b"]].to_numpy().copy()
    array[7, 1], array[8, 1] = np.inf, -np.inf
    with pytest.raises(ColumnError, match=r"'x1' of X has 2 infinite values .* Replace them"):
        grower().fit(array, x)


@each_tree
@pytest.mark.parametrize("names", [["a", "b", "a"], ["a", "b", "b"]])
def test_duplicate_column_names_are_refused(grower: type[Grower], names: list[str]) -> None:
    X, x = sample()
    X.columns = pd.Index(names)
    with pytest.raises(InputError, match=f"X has several columns named '{names[2]}'. Rename them"):
        grower().fit(X, x)


@each_tree
def test_duplicate_names_of_numeric_columns_are_refused(grower: type[Grower]) -> None:
    X, x = sample()
    with pytest.raises(InputError, match=r"X has several columns named 'a'. Rename them"):
        grower().fit(pd.concat([X[["a"]], X[["a"]]], axis=1), x)


@each_tree
def test_names_that_print_alike_are_refused(grower: type[Grower]) -> None:
    X, x = sample()
    with pytest.raises(InputError, match=r"X has several columns named '1'. Rename them"):
        grower().fit(pd.DataFrame({1: X["a"], "1": X["b"]}), x)


@each_tree
@pytest.mark.parametrize("values", [[1, "one"], [True, "yes"], [1.5, "1.5", None]])
def test_object_column_of_mixed_types_is_refused(grower: type[Grower], values: list[Any]) -> None:
    X, x = sample()
    mixed = np.array((values * N)[:N], dtype=object)
    with pytest.raises(ColumnError, match=r"'c' of X .* mixes types \(.*str.*\). Convert it to numbers, or to strings"):
        grower().fit(X.assign(c=mixed), x)


@each_tree
def test_object_column_of_arrays_is_refused(grower: type[Grower]) -> None:
    X, x = sample()
    X["c"] = pd.Series([np.zeros(2)] * N, dtype=object)
    with pytest.raises(ColumnError, match=r"'c' of X .*Convert it"):
        grower().fit(X, x)


@each_tree
def test_complex_column_is_refused(grower: type[Grower]) -> None:
    X, x = sample()
    with pytest.raises(ColumnError, match=r"'b' of X has dtype complex128.* Convert it .*, or drop it"):
        grower().fit(X.assign(b=X["b"] + 1j), x)


@each_tree
def test_more_than_1000_levels_are_refused(grower: type[Grower]) -> None:
    x = np.random.default_rng(0).normal(size=2002)
    with pytest.raises(ColumnError, match=r"'c' of X has 1001 levels; at most 1000.* Drop it, merge rare levels"):
        grower().fit(pd.DataFrame({"c": labels(1001)}), x)


@each_tree
def test_1000_levels_are_allowed(grower: type[Grower]) -> None:
    x = np.random.default_rng(0).normal(size=2000)
    tree = grower(max_depth=1).fit(pd.DataFrame({"c": labels(1000)}), x)
    assert len(tree.columns[0].levels) == 1000


@pytest.mark.parametrize("grower", [ConditionalInferenceTree, CartTree])
def test_more_than_1000_levels_of_x_are_refused(grower: type[ConditionalInferenceTree | CartTree]) -> None:
    X = pd.DataFrame({"a": np.arange(2002.0)})
    with pytest.raises(ColumnError, match="'x' of x has 1001 levels; at most 1000"):
        grower().fit(X, labels(1001))


@each_tree
@pytest.mark.parametrize("X", [[{"a": 1.0}] * N, "X.csv", None, {"a": [1.0] * N}, [[1.0, 2.0]] * N])
def test_table_of_a_wrong_type_is_refused(grower: type[Grower], X: Any) -> None:
    _, x = sample()
    expected = f"X must be a pandas or polars frame, a pyarrow table or a 2-d array; got {type(X).__name__}"
    with pytest.raises(InputError, match=expected):
        grower().fit(X, x)


@each_tree
@pytest.mark.parametrize("shape", [(N,), (N, 1, 1)])
def test_array_without_two_dimensions_is_refused(grower: type[Grower], shape: tuple[int, ...]) -> None:
    _, x = sample()
    with pytest.raises(InputError, match=rf"X must have two dimensions; got an array of shape \({N},"):
        grower().fit(np.ones(shape), x)


# x.


@each_tree
def test_constant_x_is_refused(grower: type[Grower]) -> None:
    X, _ = sample()
    with pytest.raises(InputError, match=r"x .* is constant: every row has 2.5.* leave this feature out"):
        grower().fit(X, np.full(N, 2.5))


@pytest.mark.parametrize("grower", [ConditionalInferenceTree, CartTree])
def test_constant_nominal_x_is_refused_by_its_level(grower: type[ConditionalInferenceTree | CartTree]) -> None:
    X, _ = sample()
    with pytest.raises(InputError, match=r"x .* is constant: every row has same.* leave this feature out"):
        grower().fit(X, ["same"] * N)


@each_tree
def test_x_constant_where_it_counts_is_refused(grower: type[Grower]) -> None:
    X, _ = sample()
    x = with_value(np.full(N, 2.5), 3.0)
    with pytest.raises(InputError, match=r"x .* is constant"):
        grower().fit(X, x, with_value(np.ones(N), 0.0))


@each_tree
def test_all_missing_x_is_refused(grower: type[Grower]) -> None:
    X, _ = sample()
    with pytest.raises(ColumnError, match=r"'x' of x .* every row is missing"):
        grower().fit(X, np.full(N, np.nan))


@each_tree
def test_infinite_value_in_x_is_refused(grower: type[Grower]) -> None:
    X, x = sample()
    with pytest.raises(ColumnError, match=r"'x' of x has 1 infinite values .* row 7.* Replace them"):
        grower().fit(X, with_value(x, np.inf))


@each_tree
@pytest.mark.parametrize("n", [0, 1, N - 1, N + 1])
def test_x_of_a_wrong_length_is_refused(grower: type[Grower], n: int) -> None:
    X, _ = sample()
    with pytest.raises(LengthError, match=f"x has {n} values, but X has {N} rows. Pass one value "):
        grower().fit(X, np.arange(float(n)))


@each_tree
def test_x_of_two_columns_is_refused(grower: type[Grower]) -> None:
    X, x = sample()
    with pytest.raises(InputError, match=rf"x must be one column; got an array of shape \({N}, 2\)"):
        grower().fit(X, np.column_stack([x, x]))


@each_tree
@pytest.mark.parametrize("x", ["a", None, 3.0, {"a": 1}])
def test_x_of_a_wrong_type_is_refused(grower: type[Grower], x: Any) -> None:
    X, _ = sample()
    with pytest.raises(InputError, match=f"x must be a .* column, .*; got {type(x).__name__}"):
        grower().fit(X, x)


@pytest.mark.parametrize("grower", [ConditionalInferenceTree, CartTree])
@pytest.mark.parametrize("as_list", [True, False])
def test_x_of_mixed_types_is_refused(grower: type[ConditionalInferenceTree | CartTree], as_list: bool) -> None:
    X, _ = sample()
    mixed = [1, "one"] * (N // 2)
    with pytest.raises(ColumnError, match=r"'x' of x .* mixes types \(int, str\). Convert it"):
        grower().fit(X, mixed if as_list else pd.Series(mixed, dtype=object))


@pytest.mark.parametrize(
    ("x", "kind"),
    [
        (["u", "v"] * (N // 2), "nominal"),
        ([True, False] * (N // 2), "nominal"),
        (pd.Series(pd.Categorical(["u", "v"] * (N // 2), ordered=True)), "ordered"),
    ],
)
def test_transformation_tree_points_to_conditional_inference_for_levels(x: Any, kind: str) -> None:
    X, _ = sample()
    with pytest.raises(InputError, match=f"x .* is {kind}, .* needs numbers. Use ConditionalInferenceTree"):
        TransformationTree().fit(X, x)


def test_transformation_model_refuses_levels() -> None:
    with pytest.raises(InputError, match="x is nominal; a transformation model needs numbers"):
        TransformationModel().fit(["u", "v"])


@each_tree
@pytest.mark.parametrize("scale", [1e-300, 1e300])
def test_x_of_an_extreme_scale_is_used_or_refused_with_the_remedy(grower: type[Grower], scale: float) -> None:
    X, x = sample()
    try:
        tree = grower(max_depth=1, min_leaf=10).fit(X, x * scale)
    except InputError as error:
        assert "Rescale x" in str(error)  # noqa: PT017  # either way is right, a bare warning is not
    else:
        assert tree.rules == grower(max_depth=1, min_leaf=10).fit(X, x).rules


@each_tree
def test_range_of_x_wider_than_a_float_is_used_or_refused_with_the_remedy(grower: type[Grower]) -> None:
    X, x = sample()
    x = 1e307 * x
    x[:2] = -1.7e308, 1.7e308
    try:
        tree = grower(max_depth=1, min_leaf=10).fit(X, x)
    except InputError as error:
        assert "Rescale x" in str(error)  # noqa: PT017  # either way is right, a bare warning is not
    else:
        assert np.isfinite(tree.edges).all()


# Weights.


@each_tree
@pytest.mark.parametrize("value", [-1.0, -1e-300, np.nan, np.inf])
def test_weights_below_0_or_not_finite_are_refused(grower: type[Grower], value: float) -> None:
    X, x = sample()
    with pytest.raises(InputError, match=f"weights must be finite and >= 0; row 7 has {value}.* leaves the row out"):
        grower().fit(X, x, with_value(np.ones(N), value))


@each_tree
def test_weights_of_0_throughout_are_refused(grower: type[Grower]) -> None:
    X, x = sample()
    with pytest.raises(InputError, match=r"weights are all 0.* Give some rows a weight above 0"):
        grower().fit(X, x, np.zeros(N))


@each_tree
@pytest.mark.parametrize("shape", [(), (0,), (N - 1,), (N + 1,), (N, 1)])
def test_weights_of_a_wrong_shape_are_refused(grower: type[Grower], shape: tuple[int, ...]) -> None:
    X, x = sample()
    with pytest.raises(LengthError, match=f"weights has shape .*, but X has {N} rows. Pass one weight for each row"):
        grower().fit(X, x, np.ones(shape))


@each_tree
@pytest.mark.parametrize("weights", [["heavy"] * N, [None] * N, "balanced", {"a": 1.0}, [[1.0], [1.0, 2.0]]])
def test_weights_that_are_no_numbers_are_refused(grower: type[Grower], weights: Any) -> None:
    X, x = sample()
    with pytest.raises(InputError, match="weights must be"):
        grower().fit(X, x, weights)


@each_tree
def test_weights_whose_sum_is_infinite_are_refused(grower: type[Grower]) -> None:
    X, x = sample()
    with pytest.raises(InputError, match="weights"):
        grower().fit(X, x, np.full(N, 1e308))


def test_weights_of_a_model_are_not_compared_with_a_table_it_does_not_have() -> None:
    with pytest.raises(LengthError, match=r"weights .* Pass one weight for each") as caught:
        TransformationModel().fit(np.arange(5.0), [1.0])
    assert "X" not in str(caught.value)


# Parameters.


@each_tree
@pytest.mark.parametrize("value", NOT_COUNTS)
def test_max_depth_that_is_no_count_is_refused(grower: type[Grower], value: Any) -> None:
    with pytest.raises(ParameterError, match="max_depth must be a whole number >= 0; got"):
        grower(max_depth=value).fit(*sample())


@each_tree
@pytest.mark.parametrize("value", [0, *NOT_COUNTS])
def test_min_leaf_that_is_no_count_is_refused(grower: type[Grower], value: Any) -> None:
    with pytest.raises(ParameterError, match="min_leaf must be a whole number >= 1; got"):
        grower(min_leaf=value).fit(*sample())


@pytest.mark.parametrize("grower", TESTERS)
@pytest.mark.parametrize("value", [-0.1, 1.5, np.nan, np.inf, True, "0.05", None])
def test_alpha_that_is_no_level_is_refused(
    grower: type[TransformationTree | ConditionalInferenceTree], value: Any
) -> None:
    with pytest.raises(ParameterError, match="alpha must be a number from 0 to 1; got"):
        grower(alpha=value).fit(*sample())


@pytest.mark.parametrize("value", [0, *NOT_COUNTS])
def test_order_that_is_no_count_is_refused(value: Any) -> None:
    with pytest.raises(ParameterError, match="order must be a whole number >= 1; got"):
        TransformationTree(order=value).fit(*sample())


@pytest.mark.parametrize("value", [0, *NOT_COUNTS])
def test_order_of_a_model_that_is_no_count_is_refused(value: Any) -> None:
    with pytest.raises(ParameterError, match="order must be a whole number >= 1; got"):
        TransformationModel(order=value).fit(sample()[1])


@pytest.mark.parametrize("value", ["x", "", None, 3, True])
def test_unknown_likelihood_is_refused_with_the_known_ones(value: Any) -> None:
    with pytest.raises(ParameterError, match="likelihood must be one of 'auto', 'density', 'interval'; got"):
        TransformationTree(likelihood=value).fit(*sample())


@pytest.mark.parametrize("value", ["x", "", None, 3, True])
def test_unknown_likelihood_of_a_model_is_refused_with_the_known_ones(value: Any) -> None:
    with pytest.raises(ParameterError, match="likelihood must be one of 'auto', 'density', 'interval'; got"):
        TransformationModel(likelihood=value).fit(sample()[1])


def test_interval_likelihood_refuses_fractions() -> None:
    with pytest.raises(InputError, match=r"'interval' needs whole numbers in x.* Use 'density'"):
        TransformationTree(likelihood="interval").fit(*sample())


def test_interval_likelihood_of_a_model_refuses_fractions() -> None:
    with pytest.raises(InputError, match=r"'interval' needs whole numbers in x.* Use 'density'"):
        TransformationModel(likelihood="interval").fit(sample()[1])


@pytest.mark.parametrize("value", [(1.0, 0.0), (1.0, 1.0), (0.0, np.inf), (np.nan, 1.0)])
def test_support_that_is_no_interval_is_refused(value: Any) -> None:
    with pytest.raises(ParameterError, match="support must have low < high, both finite; got"):
        TransformationModel(support=value).fit(sample()[1])


@pytest.mark.parametrize("value", [1.0, "ab", (1.0,), (0.0, 1.0, 2.0), (None, 1.0)])
def test_support_that_is_no_pair_of_numbers_is_refused(value: Any) -> None:
    with pytest.raises(ParameterError, match="support must be a pair of numbers"):
        TransformationModel(support=value).fit(sample()[1])


@pytest.mark.parametrize("value", [1, -1, 2.5, True, "3"])
def test_min_split_that_is_no_count_is_refused(value: Any) -> None:
    with pytest.raises(ParameterError, match="min_split must be a whole number >= 2; got"):
        CartTree(min_split=value).fit(*sample())


@pytest.mark.parametrize("value", [-0.1, 1.5, np.nan, True, "0.01", None])
def test_cp_that_is_no_share_is_refused(value: Any) -> None:
    with pytest.raises(ParameterError, match="cp must be a number from 0 to 1; got"):
        CartTree(cp=value).fit(*sample())


@each_tree
def test_max_depth_0_gives_one_leaf_with_all_rows(grower: type[Grower]) -> None:
    X, x = sample()
    tree = grower(max_depth=0).fit(X, x)
    assert tree.rules == {1: "all rows"}
    assert tree.apply(X).tolist() == [1] * N


@each_tree
def test_kinds_of_an_unknown_column_are_refused(grower: type[Grower]) -> None:
    X, x = sample()
    with pytest.raises(ParameterError, match="kinds names 'z', but X has the columns 'a', 'b', 'c'"):
        grower().fit(X, x, kinds={"z": "nominal"})


@each_tree
@pytest.mark.parametrize("columns", [["a", "b"], ["a", "c"]])
def test_unknown_kind_is_refused_with_the_known_ones(grower: type[Grower], columns: list[str]) -> None:
    X, x = sample()
    wrong: Any = {"a": "categorical"}
    with pytest.raises(ParameterError, match="kind of 'a' must be one of numeric, ordered, nominal; got 'categorical'"):
        grower().fit(X[columns], x, kinds=wrong)


@each_tree
def test_kinds_that_are_no_mapping_are_refused(grower: type[Grower]) -> None:
    X, x = sample()
    wrong: Any = ["nominal", "numeric", "numeric"]
    with pytest.raises(ParameterError, match="kinds must map column names of X to numeric, ordered, nominal; got list"):
        grower().fit(X, x, kinds=wrong)


@pytest.mark.parametrize("grower", [ConditionalInferenceTree, CartTree])
def test_unknown_kind_of_x_is_refused(grower: type[ConditionalInferenceTree | CartTree]) -> None:
    X, x = sample()
    wrong: Any = "categorical"
    with pytest.raises(ParameterError, match="kind of 'x' must be one of numeric, ordered, nominal; got 'categorical'"):
        grower().fit(X, x, x_kind=wrong)


@each_tree
def test_text_read_as_numbers_is_refused(grower: type[Grower]) -> None:
    X, x = sample()
    with pytest.raises(ColumnError, match=r"'c' of X is to be numeric but holds values that are no numbers: .*'[uvw]'"):
        grower().fit(X, x, kinds={"c": "numeric"})


# New rows.


def grown(grower: type[Grower]) -> Tree:
    X, x = sample()
    return grower(max_depth=2, min_leaf=10).fit(X, x)


@each_tree
def test_new_rows_without_a_column_are_refused(grower: type[Grower]) -> None:
    X, _ = sample()
    with pytest.raises(
        InputError, match=r"X lacks 'b', 'c', which training had. It has 'a'. Pass a table with the same"
    ):
        grown(grower).apply(X[["a"]])


@each_tree
def test_new_rows_with_infinite_values_are_refused(grower: type[Grower]) -> None:
    X, _ = sample()
    with pytest.raises(ColumnError, match=r"'a' of X has 1 infinite values .* row 7.* Replace them"):
        grown(grower).apply(X.assign(a=with_value(X["a"].to_numpy(), np.inf)))


@each_tree
def test_new_array_with_infinite_values_is_refused(grower: type[Grower]) -> None:
    X, x = sample()
    array = X[["a", "b"]].to_numpy().copy()
    tree = grower(max_depth=1).fit(array, x)
    array[7, 0] = np.inf
    with pytest.raises(ColumnError, match=r"'x0' of X has 1 infinite values .* row 7.* Replace them"):
        tree.apply(array)


@each_tree
def test_new_rows_with_text_in_a_numeric_column_are_refused(grower: type[Grower]) -> None:
    X, _ = sample()
    with pytest.raises(ColumnError, match=r"'a' of X is to be numeric but holds values that are no numbers: .*'u'"):
        grown(grower).apply(X.assign(a=X["c"].where(X["c"] == "u", "u")))


@each_tree
def test_new_rows_of_a_wrong_type_are_refused(grower: type[Grower]) -> None:
    with pytest.raises(InputError, match=r"X must be a pandas or polars frame, .*; got list"):
        grown(grower).apply([[0.0, 0.0, "u"]])


@each_tree
def test_new_array_with_too_few_columns_is_refused(grower: type[Grower]) -> None:
    X, x = sample()
    array = X[["a", "b"]].to_numpy()
    with pytest.raises(InputError, match=r"X lacks 'x1', which training had. It has 'x0'"):
        grower(max_depth=1).fit(array, x).apply(array[:, :1])


# What holds for all of them.


def test_every_refusal_is_a_value_error_of_this_package() -> None:
    for error in (InputError, ColumnError, LengthError, ParameterError):
        assert issubclass(error, SubgroveError)
        assert issubclass(error, ValueError)


@each_tree
def test_inputs_are_never_changed(grower: type[Grower]) -> None:
    X, x = sample()
    X.loc[5, "b"] = np.nan
    X["d"] = pd.Categorical(X["c"], ordered=True)
    series, weights = pd.Series(x, name="y"), pd.Series(np.arange(N) % 3)
    copies = X.copy(), series.copy(), weights.copy()
    grower(max_depth=3, min_leaf=5).fit(X, series, weights).apply(X)
    pd.testing.assert_frame_equal(X, copies[0])
    pd.testing.assert_series_equal(series, copies[1])
    pd.testing.assert_series_equal(weights, copies[2])


@each_tree
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_that_cannot_be_written_to_are_enough(grower: type[Grower], order: Any) -> None:
    X, x = sample()
    array = np.array(X[["a", "b"]].to_numpy() + 1e6, order=order)
    weights = np.arange(N) % 3 + 0.5
    for values in (array, x, weights):
        values.flags.writeable = False
    tree = grower(max_depth=3, min_leaf=5).fit(array, x, weights)
    assert set(tree.apply(array)) == {leaf.id for leaf in tree.leaves}


@each_tree
def test_refused_input_is_not_changed_either(grower: type[Grower]) -> None:
    X, x = sample()
    X["b"] = with_value(X["b"].to_numpy(), np.inf)
    copy = X.copy()
    with pytest.raises(ColumnError):
        grower().fit(X, x)
    pd.testing.assert_frame_equal(X, copy)

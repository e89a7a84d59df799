"""What `importance` rejects, and in which words."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.svm import LinearSVC

import subgrove as sg
from subgrove.exceptions import ColumnError, InputError, LengthError, ModelError, ParameterError, SubgroveError

Floats = npt.NDArray[np.float64]
N = 80
RNG = np.random.default_rng(0)
ARRAY = RNG.normal(size=(N, 3))
X = pd.DataFrame({"a": ARRAY[:, 0], "b": ARRAY[:, 1], "city": RNG.choice(["Bonn", "Ulm"], N)})
Y = RNG.normal(size=N)
TRAIN = pd.concat([X, X], ignore_index=True).assign(a=RNG.normal(size=2 * N))
GROUPS = sg.find_subgroups(TRAIN)
LABEL = np.where(ARRAY[:, 0] > 0, "yes", "no")
CLASSIFIER = LogisticRegression().fit(ARRAY, LABEL)


def model(X: Any) -> Floats:
    return np.asarray(X["a"], dtype=float)


def first(X: Any) -> Floats:
    return np.asarray(X)[:, 0]


def rejected(kind: type[SubgroveError], words: str, *arguments: Any, **options: Any) -> None:
    """`importance` raises this error, with these words, before the model is call_options for redrawn rows."""
    given = arguments or (model, X, Y)
    with pytest.raises(kind, match=words) as caught:
        sg.importance(*given, **{"sampler": "marginal", "n_repeats": 2, "random_state": 0, **options})
    assert type(caught.value) is kind


def test_y_of_another_length() -> None:
    rejected(LengthError, r"y has 79 values, but X has 80 rows", model, X, Y[1:])


@pytest.mark.parametrize("y", [3.0, "target", None])
def test_y_that_is_no_column(y: Any) -> None:
    rejected(InputError, r"y must be a column with one value for each row", model, X, y)


def test_y_of_three_dimensions() -> None:
    rejected(InputError, r"one for each output; got an array of shape \(80, 2, 2\)", model, X, np.zeros((N, 2, 2)))


@pytest.mark.parametrize("missing", [np.nan, None, pd.NA], ids=["nan", "None", "NA"])
def test_y_with_missing_values(missing: Any) -> None:
    y = pd.Series(Y, dtype=object)
    y[7] = missing
    rejected(InputError, r"y has 1 missing values, the first in row 7", model, X, y)


def test_missing_label() -> None:
    y = LABEL.astype(object)
    y[3] = None
    rejected(InputError, r"missing values, the first in row 3", CLASSIFIER, ARRAY, y)


def test_y_with_infinite_values() -> None:
    rejected(InputError, r"y has infinite values", model, X, np.where(np.arange(N) == 2, np.inf, Y))


@pytest.mark.parametrize("y", [LABEL, LABEL.astype(object), pd.Series(LABEL)], ids=["strings", "objects", "Series"])
def test_labels_with_a_loss_of_numbers(y: Any) -> None:
    rejected(
        InputError, r"squared_error needs numbers, but y holds .* loss='log_loss'", model, X, y, loss="squared_error"
    )


def test_labels_predicted_with_a_loss_of_numbers() -> None:
    """The user saw: ufunc 'subtract' did not contain a loop with signature matching types."""
    classifier = LogisticRegression().fit(ARRAY, LABEL)
    rejected(
        ModelError, r"compares numbers, but the model predicts '(yes|no)'", classifier, ARRAY, Y, loss="squared_error"
    )


def test_poisson_with_negative_y() -> None:
    rejected(InputError, r"'poisson' needs y >= 0; y has -", model, X, Y, loss="poisson")
    rejected(InputError, r"'tweedie\(1.5\)' needs y >= 0", model, X, Y, loss=sg.losses.tweedie(1.5))


def test_gamma_with_y_of_zero() -> None:
    rejected(InputError, r"'gamma' needs y > 0; y has 0", model, X, np.zeros(N), loss="gamma")


def test_prediction_that_a_deviance_has_no_value_for() -> None:
    rejected(ModelError, r"'poisson' is nan \(original row \d+\)", model, X, np.abs(Y), loss="poisson")


def test_classes_that_training_did_not_have() -> None:
    strange = np.where(np.arange(N) == 4, "maybe", LABEL)
    for loss in ("log_loss", "zero_one", "brier", "auc"):
        rejected(InputError, r"not trained on: 'maybe'. It knows 'no', 'yes'", CLASSIFIER, ARRAY, strange, loss=loss)


def test_one_class_for_auc() -> None:
    """The user saw: loss 'auc' is nan, and a warning of scikit-learn."""
    rejected(
        InputError,
        r"'auc' needs rows of every class, but y has no row of class number 1",
        CLASSIFIER,
        ARRAY,
        ["no"] * N,
        loss="auc",
    )


def test_probabilities_for_another_number_of_classes() -> None:
    rejected(
        ModelError,
        r"gave 3 probabilities a row for 2 classes",
        lambda X: np.full((len(X), 3), 1 / 3),
        X,
        LABEL,
        loss="log_loss",
    )


@pytest.mark.parametrize(("value", "shown"), [(np.nan, "nan"), (np.inf, "inf")])
def test_predictions_that_are_not_finite(value: float, shown: str) -> None:
    def broken(X: Any) -> Floats:
        return np.where(np.asarray(X["a"]) == X["a"].iloc[0], value, 0.0)

    rejected(
        ModelError,
        rf"function returned 1 predictions that are not finite, the first {shown} \(original row 0\)",
        broken,
        X,
        Y,
    )


@pytest.mark.parametrize(
    ("give", "shape"),
    [
        (lambda n: np.zeros(n - 1), r"\(79,\)"),
        (lambda n: 0.0, r"\(\)"),
        (lambda n: np.zeros((1, n)), r"\(1, 80\)"),
        (lambda n: np.zeros((n, 2, 2)), r"\(80, 2, 2\)"),
        (lambda n: None, r"\(\)"),
    ],
)
def test_predictions_of_a_wrong_shape(give: Any, shape: str) -> None:
    rejected(ModelError, rf"predictions of shape {shape} for 80 rows \(original rows\)", lambda X: give(len(X)), X, Y)


def test_several_predictions_for_one_y() -> None:
    rejected(ModelError, r"shape \(80, 2\) where y has \(80,\)", lambda X: np.zeros((len(X), 2)), X, Y)


def test_model_that_is_a_class() -> None:
    rejected(ParameterError, r"class LinearRegression, not an object of it. Pass a fitted", LinearRegression, X, Y)


@pytest.mark.parametrize("given", [3, "forest", object(), None])
def test_model_that_predicts_nothing(given: Any) -> None:
    rejected(ParameterError, r"model must have predict or predict_proba, or be a function", given, X, Y)


def test_model_without_the_method_that_a_loss_needs() -> None:
    classifier = LinearSVC().fit(ARRAY, LABEL)
    rejected(ParameterError, r"LinearSVC\) has no predict_proba", classifier, ARRAY, LABEL, loss="log_loss")


def test_model_that_was_not_fitted() -> None:
    rejected(ModelError, r"NotFittedError on 80 rows \(original rows\)", LinearRegression(), ARRAY, Y)


def test_unknown_response() -> None:
    rejected(ParameterError, r"response_method must be one of .*; got 'probabilities'", response_method="probabilities")


def test_unknown_loss() -> None:
    rejected(ParameterError, r"loss='mse' is not a loss. Losses are absolute_error, auc", loss="mse")
    rejected(ParameterError, r"loss must be a name, a Loss, a scikit-learn scorer or a function .*; got int", loss=3)
    rejected(ParameterError, r"loss is an empty list", loss=[])
    rejected(
        ParameterError, r"have the same name: squared_error, squared_error", loss=["squared_error", "squared_error"]
    )


def test_losses_that_need_different_predictions_raise() -> None:
    both = ["log_loss", "squared_error"]
    rejected(
        ParameterError,
        r"different predictions: log_loss \(probability\), squared_error \(value\)",
        CLASSIFIER,
        ARRAY,
        LABEL,
        loss=both,
    )


@pytest.mark.parametrize("give", [lambda y, p: np.zeros(3), lambda y, p: np.zeros((len(y), 2)), lambda y, p: []])
def test_loss_that_gives_a_wrong_shape(give: Any) -> None:
    rejected(ParameterError, r"gave values of shape \(.*\) for 80 rows. It must give one number for each", loss=give)


def test_loss_of_one_number_that_is_said_to_be_per_row() -> None:
    whole = sg.losses.custom(lambda y, p: 1.0, name="whole", response_method="value")
    rejected(
        ParameterError, r"'whole' gave values of shape \(\) .* goes through subgrove.losses.from_metric", loss=whole
    )


def test_unknown_sampler() -> None:
    rejected(
        ParameterError,
        r"sampler='permutation' is not a sampler. Permutation importance is sampler='marginal'. Known names: ",
        sampler="permutation",
    )
    rejected(ParameterError, r"class Marginal, not an object|Marginal\(\)", sampler=sg.samplers.Marginal)


def test_unknown_feature() -> None:
    rejected(ParameterError, r"features names 'c', but X has the columns 'a', 'b', 'city'", features=["a", "c"])


def test_no_features() -> None:
    rejected(ParameterError, r"features is empty", features=[])
    rejected(ParameterError, r"features has a group without columns", features=["a", []])


def test_features_named_twice() -> None:
    rejected(ParameterError, r"features names 'a' more than once", features=["a", "b", "a"])
    rejected(ParameterError, r"names a column twice: 'a', 'a'", features=[["a", "a"]])
    rejected(ParameterError, r"features names 'a \+ b', 'b \+ a' more than once", features=[["a", "b"], ["b", "a"]])


@pytest.mark.parametrize("n_repeats", [0, -1, "10", True, 2.0, None])
def test_number_of_repeats(n_repeats: Any) -> None:
    rejected(ParameterError, r"n_repeats must be a whole number >= 1; got ", n_repeats=n_repeats)


@pytest.mark.parametrize("n_jobs", [0, "2", True, 1.5])
def test_number_of_jobs(n_jobs: Any) -> None:
    rejected(ParameterError, r"n_jobs must be a whole number other than 0", n_jobs=n_jobs)


@pytest.mark.parametrize("seed", [-1, "1", 1.0, True])
def test_seed(seed: Any) -> None:
    rejected(ParameterError, r"random_state must be an integer >= 0", random_state=seed)


@pytest.mark.parametrize(
    "option",
    [{"n_repeats": 0}, {"n_jobs": 0}, {"random_state": -1}, {"loss": "mse"}, {"features": ["c"]}],
)
def test_wrong_arguments_cost_no_prediction(option: dict[str, Any]) -> None:
    call_options: list[int] = []

    def spy(X: Any) -> Floats:
        call_options.append(len(X))
        return model(X)

    with pytest.raises(ParameterError):
        sg.importance(spy, X, Y, **{"sampler": "marginal", **option})
    assert call_options == []


@pytest.mark.parametrize(
    ("weights", "kind", "words"),
    [
        (np.zeros(N), InputError, r"sample_weight is 0 for every row"),
        (-np.ones(N), InputError, r"sample_weight must be finite and >= 0; row 0 has -1"),
        (np.full(N, np.nan), InputError, r"sample_weight must be finite"),
        (np.ones(N - 1), LengthError, r"sample_weight has shape \(79,\), but X has 80 rows"),
        ("often", InputError, r"sample_weight must be numbers"),
    ],
)
def test_weights(weights: Any, kind: type[SubgroveError], words: str) -> None:
    rejected(kind, words, sample_weight=weights)


@pytest.mark.parametrize("table", [X.head(0), X[[]], np.empty((0, 3)), np.empty((5, 0)), pl.DataFrame()])
def test_empty_table(table: Any) -> None:
    rejected(InputError, r"X has \d+ rows and \d+ columns; at least one of each", model, table, Y[: len(table)])


@pytest.mark.parametrize("table", [[[1.0, 2.0]] * N, None, {"a": [1.0]}, pd.Series(Y)])
def test_table_that_is_none(table: Any) -> None:
    rejected(InputError, r"X must be a pandas or polars frame, a pyarrow table or a 2-d array; got ", model, table, Y)


def test_array_of_one_dimension() -> None:
    rejected(InputError, r"X must have two dimensions; got an array of shape \(80,\)", first, Y, Y)


def test_column_that_is_infinite() -> None:
    rejected(
        ColumnError,
        r"Column 'a' of X has 1 infinite values",
        model,
        X.assign(a=np.where(np.arange(N) == 1, np.inf, Y)),
        Y,
    )


def test_two_columns_of_one_name() -> None:
    rejected(InputError, r"several columns named 'a'", model, pd.concat([X, X[["a"]]], axis=1), Y)


@pytest.mark.parametrize("sampler", ["marginal", "subgroups", GROUPS])
def test_test_rows_that_lack_a_column_of_training(sampler: Any) -> None:
    options = {} if sampler is GROUPS else {"train": TRAIN}
    words = r"X lacks (the column )?'city', which (train|training) (has|had)"
    rejected(InputError, words, model, X[["a", "b"]], Y, sampler=sampler, features=["a"], **options)


@pytest.mark.parametrize("sampler", ["marginal", "subgroups", "cart"])
def test_training_rows_that_lack_a_feature(sampler: str) -> None:
    """The user saw: features names 'city', but X has the columns 'a', 'b', which is what train has."""
    rejected(InputError, r"train lacks the column 'city', which X has", sampler=sampler, train=TRAIN[["a", "b"]])


def test_training_rows_without_a_column_that_is_no_feature_are_warned_of() -> None:
    with pytest.warns(sg.exceptions.SubgroveWarning, match="train lacks 'city'"):
        result = sg.importance(model, X, Y, train=TRAIN[["a", "b"]], features=["a"], n_repeats=2, random_state=0)
    assert result.features == ("a",)


NUMBERS = X[["a", "b"]]
DATED = NUMBERS.assign(b=pd.Timestamp("2024-01-01"))
IN_CATEGORIES = X.assign(city=X["city"].astype("category"))
TEXT, NUMBER = (
    r"Column 'b' of X is nominal, but in training it was numeric",
    r"is numeric, but in training it was nominal",
)
STRANGE: dict[str, tuple[Any, Any, str]] = {
    "numbers trained, strings tested": (NUMBERS, NUMBERS.assign(b="text"), TEXT),
    "numbers that look so": (NUMBERS, NUMBERS.assign(b=X["b"].round(2).astype(str)), TEXT),
    "strings trained, numbers tested": (X, X.assign(city=1.0), NUMBER),
    "numbers trained, dates tested": (NUMBERS, DATED, r"holds dates, but in training it held numbers"),
    "dates trained, numbers tested": (DATED, NUMBERS, r"holds numbers, but in training it held dates"),
    "categories trained, numbers tested": (IN_CATEGORIES, X.assign(city=2.0), NUMBER),
}


@pytest.mark.parametrize(("train", "test", "words"), STRANGE.values(), ids=list(STRANGE))
@pytest.mark.parametrize("sampler", ["marginal", "subgroups", "found before"])
def test_test_rows_of_another_type_than_training(sampler: str, train: Any, test: Any, words: str) -> None:
    """The user saw: numbers, where strings that look like numbers had been compared with numbers."""
    options: dict[str, Any] = {"train": train, "sampler": sampler}
    if sampler == "found before":
        options = {"sampler": sg.find_subgroups(train, features=["a"])}
    rejected(ColumnError, words, model, test, Y, features=["a"], **options)


def test_kind_that_was_chosen_when_subgroups_were_found_is_no_other_type() -> None:
    train = TRAIN.assign(year=np.tile([2011, 2012], N))
    groups = sg.find_subgroups(train, kinds={"year": "nominal"})
    test = X.assign(year=2012)
    result = sg.importance(model, test, Y, sampler=groups, features=["a", "year"], n_repeats=2, random_state=0)
    assert result.features == ("a", "year")
    assert sg.importance(model, test, Y, sampler=groups["a"], n_repeats=2, random_state=0).features == ("a",)


def test_zero_and_one_are_booleans() -> None:
    train = TRAIN.assign(flag=RNG.random(2 * N) < 0.5)
    result = sg.importance(model, X.assign(flag=np.arange(N) % 2), Y, train=train, n_repeats=2, random_state=0)
    assert result.features[-1] == "flag"


def test_subgroups_that_lack_the_feature() -> None:
    only = sg.find_subgroups(TRAIN, features=["a"])
    rejected(ParameterError, r"There are no subgroups of 'b', only of a", sampler=only, features=["b"])
    rejected(ParameterError, r"There are no subgroups of 'a \+ b'", sampler=GROUPS, features=[["a", "b"]])


def test_sampler_that_was_fitted_on_other_columns() -> None:
    fitted = sg.samplers.Marginal().fit(TRAIN[["a", "b"]])
    rejected(InputError, r"fitted on other columns: it does not know 'city'", sampler=fitted)
    fitted = sg.samplers.Marginal().fit(TRAIN.assign(more=1.0))
    rejected(InputError, r"X lacks 'more'", sampler=fitted)


def test_training_donors_without_training_rows() -> None:
    sampler = sg.samplers.SubgroupSampler(groups=GROUPS, donors="train")
    rejected(ParameterError, r"donors='train' takes values from training rows. Pass them as train", sampler=sampler)


def test_training_donors_without_training_rows_are_cross_fitted_if_trees_are_grown() -> None:
    sampler = sg.samplers.SubgroupSampler(donors="train", min_samples_leaf=10)
    result = sg.importance(model, X, Y, sampler=sampler, n_repeats=2, random_state=0)
    assert result.settings["trained_on"] == "cross-fitted"


def test_too_few_rows_to_cross_fit_trees_on_are_warned_of() -> None:
    """The user saw: a call on a small table gave the marginal importance without a word."""
    with pytest.warns(sg.exceptions.SubgroveWarning, match="the importance is the marginal one"):
        sg.importance(model, X, Y, sampler="subgroups", features=["a"], n_repeats=2, random_state=0)


@pytest.mark.parametrize("fitted", [False, True])
def test_training_rows_that_have_no_effect_are_rejected(fitted: bool) -> None:
    sampler = sg.samplers.Knockoffs().fit(TRAIN[["a", "b"]]) if fitted else GROUPS
    rejected(ParameterError, r"train has no effect here", sampler=sampler, train=TRAIN)


def test_weights_that_sum_to_one_have_standard_errors() -> None:
    """The user saw: standard errors of NaN."""
    options: dict[str, Any] = {"sampler": "marginal", "features": ["a"], "random_state": 0}
    one = sg.importance(model, X, Y, sample_weight=np.full(len(Y), 1 / len(Y)), **options)
    pd.testing.assert_frame_equal(one.overall, sg.importance(model, X, Y, **options).overall)


def test_frequencies_that_are_not_whole() -> None:
    weights = sg.FrequencyWeights(np.full(len(Y), 0.5))
    rejected(InputError, r"FrequencyWeights must be whole numbers; row 0 has 0\.5", sample_weight=weights)


def test_donors_that_are_neither() -> None:
    neither: Any = "both"
    rejected(
        ParameterError,
        r"donors must be 'test' or 'train'; got 'both'",
        sampler=sg.samplers.SubgroupSampler(donors=neither),
        train=TRAIN,
    )
    both = sg.samplers.SubgroupSampler(donors="train", fixed_points=True)
    rejected(ParameterError, r"fixed_points=True has no meaning with donors='train'", sampler=both, train=TRAIN)


def test_wrong_parameter_of_a_tree() -> None:
    rejected(ParameterError, r"max_depth", sampler=sg.samplers.SubgroupSampler(max_depth=-1), train=TRAIN)


def test_names_of_arguments_are_needed_after_the_data() -> None:
    with pytest.raises(TypeError):
        sg.importance(model, X, Y, "marginal")  # type: ignore[call-arg]


@pytest.mark.parametrize("names", [["a\ud800", "b"], ["a", "b"]])
def test_text_that_is_not_valid_unicode_is_named(names: list[str]) -> None:
    level = "u" if "\ud800" in names[0] else "u\ud800"
    table = pd.DataFrame({0: np.arange(40.0), 1: pd.Series([level, "v"] * 20, dtype=object)})
    table.columns = pd.Index(names, dtype=object)
    with pytest.raises(ColumnError, match=r"that is not valid Unicode \('.ud800'\)\. Rename it"):
        sg.importance(lambda Z: np.zeros(len(Z)), table, np.zeros(40), random_state=1)


def test_collections_as_target_are_rejected() -> None:
    table = pd.DataFrame({"a": np.arange(40.0), "b": np.arange(40.0)})
    with pytest.raises(InputError, match="y has lists or other collections as values"):
        sg.importance(lambda Z: np.zeros(len(Z)), table, pd.Series([[1], [2]] * 20), loss="zero_one", random_state=1)


def test_loss_that_gives_text_is_rejected() -> None:
    table = pd.DataFrame({"a": np.arange(40.0), "b": np.arange(40.0)})

    def words(y: Any, prediction: Any) -> Any:
        return np.array(["a"] * len(y))

    with pytest.raises(ParameterError, match="loss 'words' gave values that are not numbers"):
        sg.importance(lambda Z: np.zeros(len(Z)), table, np.zeros(40), loss=words, random_state=1)

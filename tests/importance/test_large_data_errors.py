"""What importance over partitions rejects, in words that say what to do."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import subgrove as sg
from subgrove.exceptions import (
    ChunkError,
    ColumnError,
    InputError,
    ModelError,
    ParameterError,
    SubgroveError,
    UnseenValueWarning,
)
from tests.large_data_options import importance

N = 300
RNG = np.random.default_rng(3)
DATA = pd.DataFrame({"a": RNG.normal(size=N), "b": RNG.normal(size=N), "w": 1.0})
DATA["y"] = DATA["a"] + RNG.normal(size=N)


def model(X: Any) -> Any:
    return np.asarray(X["a"], dtype=float)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("rows") / "rows.parquet"
    DATA.to_parquet(place)
    return place


def rejected(kind: type[Exception], words: str, *given: Any, **options: Any) -> None:
    call = {
        "sampler": "marginal",
        "n_repeats": 1,
        "random_state": 1,
        "check_fidelity": False,
        **options,
    }
    with pytest.raises(kind, match=words) as caught:
        importance(*given, **call)
    assert isinstance(caught.value, SubgroveError)


class Own:
    """A sampler of a user."""

    def fit(self, X: Any, features: Any) -> Own:
        return self

    def sample(self, X: Any, feature: Any, rngs: Any) -> Any:
        return (rng.permutation(X[feature]) for rng in rngs)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n_repeats": sg.AdaptiveRepeats()}, "is not available for large data: each round.* Pass a number"),
        ({"sampler": "forest_nodes"}, "values from other rows of X.* Use 'auto', 'subgroups'"),
        ({"sampler": sg.samplers.Imputation(residuals="test")}, "Use residuals='oob'"),
        ({"sampler": sg.samplers.Marginal(fixed_points=True)}, "fixed_points=True has no meaning"),
        ({"sampler": Own()}, "sampler 'Own' is user-defined and draws from random generators.* a table in memory"),
        ({"sampler": "strange"}, "sampler='strange' is not a sampler"),
        ({"sample_size": 1}, "sample_size must be a whole number >= 2"),
        ({"row_key": "nowhere"}, "row_key names 'nowhere', which .* does not have. Its columns: 'a', 'b', 'w', 'y'"),
        (
            {"sample_weight": DATA["w"]},
            "weights must be the name of a column of .*, the weight of each row; got Series",
        ),
        ({"features": ["y"]}, "features names 'y', but X has the columns 'a', 'b', 'w'"),
        ({"chunk_rows": 0}, "chunk_rows must be a whole number >= 1"),
        ({"check_fidelity": "yes"}, "check_fidelity must be True or False"),
        (
            {"loss": sg.losses.from_metric(lambda y, p: float(np.mean(p)), name="average")},
            "loss average is a score of all",
        ),
    ],
)
def test_arguments_that_chunks_do_not_take(path: Path, options: dict[str, Any], words: str) -> None:
    rejected(ParameterError, words, model, path, "y", **options)


def test_name_of_the_target_is_for_large_data() -> None:
    rejected(InputError, "y must be a column with one value for each row; got str", model, DATA[["a", "b"]], "y")


def test_y_is_the_name_of_a_column(path: Path) -> None:
    rejected(ParameterError, "y names 'z', which .* does not have. Its columns: 'a', 'b'", model, path, "z")
    rejected(ParameterError, "y must be the name of a column .* got ndarray", model, path, DATA["y"].to_numpy())
    rejected(ParameterError, "y must be the name of a column .* got ndarray", model, pl.LazyFrame(DATA), np.ones(3))
    rejected(InputError, "there is no such file or folder", model, "nowhere", "y")


def test_a_column_that_the_model_was_trained_on_is_missing(path: Path) -> None:
    def trained(X: Any) -> Any:
        return model(X)

    trained.feature_names_in_ = ["a", "z"]  # type: ignore[attr-defined]
    rejected(ParameterError, "names 'z', which .* does not have", trained, path, "y")


def test_rows_that_cannot_be_used_are_reported_with_their_chunk(tmp_path: Path) -> None:
    faults = {
        "y": (
            np.nan,
            "rows.parquet, rows 200 to 299: y, 'y', is missing in 1 of the evaluated .* row 270. Leave",
        ),
        "w": (-1.0, "rows.parquet, rows 200 to 299: weights names 'w'; weights must be finite and >= 0"),
        "b": (np.inf, "In rows drawn at random from .*rows.parquet.*: Column 'b' of X has 1 infinite values"),
    }
    for name, (value, words) in faults.items():
        wrong = DATA.copy()
        wrong.loc[270, name] = value
        wrong.to_parquet(tmp_path / "rows.parquet")
        rejected(
            InputError,
            words,
            model,
            tmp_path / "rows.parquet",
            "y",
            sample_weight="w",
            chunk_rows=100,
            train=DATA[["a", "b"]],
            features=["a"],
        )


def test_a_model_that_raises_is_reported_with_chunk_feature_and_repeat(path: Path) -> None:
    calls = []

    def breaks(X: Any) -> Any:
        calls.append(1)
        if len(calls) > 13:
            raise ZeroDivisionError("too many")
        return model(X)

    words = r"ZeroDivisionError on 100 rows \(rows.parquet, rows 100 to 199, feature 'b', repeat 0\): too many"
    rejected(
        ModelError, words, breaks, path, "y", features=["a", "b"], n_repeats=3, train=DATA[["a", "b", "w"]],
        chunk_rows=100,
    )  # fmt: skip


def test_predictions_that_are_not_finite_are_reported_with_their_row(path: Path) -> None:
    def strange(X: Any) -> Any:
        values = model(X).copy()
        values[np.isclose(X["b"], DATA["b"][250])] = np.nan
        return values if len(X) < N else np.nan_to_num(values)

    words = r"rows.parquet, rows 200 to 299, original rows, row 250\)"
    rejected(ModelError, words, strange, path, "y", train=DATA[["a", "b", "w"]], chunk_rows=100)


def test_too_few_rows_predict_for_training_rows(tmp_path: Path) -> None:
    DATA.head(3).to_parquet(tmp_path / "few.parquet")
    rejected(InputError, "has 3 rows, too few .* Pass training rows as train", model, tmp_path / "few.parquet", "y")


def test_rows_without_weight_leave_nothing(tmp_path: Path) -> None:
    DATA.assign(w=0.0).to_parquet(tmp_path / "rows.parquet")
    rejected(
        InputError, r"No rows left to evaluate: weights \('w'\) are 0", model, tmp_path / "rows.parquet", "y",
        sample_weight="w",
    )  # fmt: skip


def test_a_fitted_sampler_takes_no_training_rows(path: Path) -> None:
    fitted = sg.samplers.Auto().fit(DATA[["a", "b", "w"]], ["a"])
    rejected(ParameterError, "train has no effect here", model, path, "y", sampler=fitted, train=DATA[["a", "b", "w"]])


def test_a_column_of_another_kind_in_training_is_rejected(path: Path) -> None:
    text = DATA[["a", "b", "w"]].assign(b="text")
    rejected(ColumnError, "Column 'b' of X is numeric, but in training it was nominal", model, path, "y", train=text)


def test_training_rows_without_names_are_rejected(path: Path) -> None:
    rejected(InputError, r"^train must be a table .*'a', 'b'.*got ndarray", model, path, "y", train=DATA.to_numpy())
    rejected(InputError, "^train lacks the column 'b'", model, path, "y", train=DATA[["a"]])


def test_a_model_of_an_array_with_fewer_columns_is_reported(path: Path) -> None:
    class Trained:
        n_features_in_ = 2

        def predict(self, X: Any) -> Any:
            return np.asarray(X)[:, 0]

    rejected(ParameterError, "fitted on 2 columns without names, but .* has 3 .*: 'a', 'b', 'w'", Trained(), path, "y")
    result = importance(
        Trained(), path, "y", sample_weight="w", sampler="marginal", n_repeats=1, random_state=1, check_fidelity=False
    )
    assert set(result.overall["feature"]) == {"a", "b"}


def test_a_missing_y_is_reported_by_its_row_among_all_rows(tmp_path: Path) -> None:
    wrong = DATA.assign(y=np.where(DATA["y"] > 0, "up", "down").astype(object))
    wrong.loc[200:, "y"] = None
    wrong.to_parquet(tmp_path / "rows.parquet")
    call: dict[str, Any] = {
        "loss": "zero_one",
        "chunk_rows": 100,
        "sample_size": 40,
    }  # rows of the sample are not evaluated
    with pytest.raises(InputError, match="rows 200 to 299: y, 'y', is missing in ") as reported:
        importance(said, tmp_path / "rows.parquet", "y", sampler="marginal", n_repeats=1, random_state=1, **call)
    found = re.search(r"in (\d+) of .* the first of them row (\d+)\.", str(reported.value))
    assert found is not None
    assert int(found[1]) < 100
    assert int(found[2]) == 200


def said(X: Any) -> Any:
    return np.where(np.asarray(X["a"], dtype=float) > 0, "up", "down")


def test_other_functions_say_that_files_are_to_be_read_first(path: Path) -> None:
    for X, way in (
        (path, "pandas.read_parquet"),
        (str(path), "pandas.read_parquet"),
        (pl.scan_parquet(path), "collect"),
    ):
        with pytest.raises(InputError, match=f"Only importance and effect take large data; .*{way}"):
            sg.find_subgroups(X)


def test_levels_that_training_did_not_have_are_warned_of(tmp_path: Path) -> None:
    level = np.where(DATA["a"] > 0, "high", "low")
    table = DATA.assign(level=level)
    train = table[["a", "b", "w", "level"]]
    table.loc[290:, "level"] = "new"
    table.to_parquet(tmp_path / "rows.parquet")
    groups = sg.find_subgroups(train, features=["a"], given=["level"])
    with pytest.warns(UnseenValueWarning, match="'new'"):
        found = importance(
            model,
            tmp_path / "rows.parquet",
            "y",
            sampler=groups,
            train=train,
            random_state=1,
            check_fidelity=False,
            n_repeats=1,
        )
    assert found.n_rows == N


def test_a_file_that_cannot_be_read_is_named(path: Path, tmp_path: Path) -> None:
    whole = tmp_path / "rows.parquet"
    DATA.to_parquet(whole, row_group_size=100)
    raw = bytearray(whole.read_bytes())
    raw[20:400] = bytes(380)  # pages of the first row group; the footer is at the end
    whole.write_bytes(bytes(raw))
    rejected(ChunkError, "rows.parquet", model, whole, "y", train=DATA[["a", "b", "w"]])

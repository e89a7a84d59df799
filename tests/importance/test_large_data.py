"""Importance over large data: the same numbers whatever the partitions are, and those of a table in memory."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn import config_context

import subgrove as sg
from subgrove._core.execution import KeyedStreams
from subgrove._scale.large_data import read_chunks
from subgrove._scale.readers import row_keys, sample_rows
from subgrove._scoring.feature_result import with_rows
from subgrove.samplers.base import FittedSampler
from subgrove.samplers.resampled_feature import ResampledFeature
from tests.large_data_options import importance

N = 700
COLUMNS = ["a", "b", "c", "level", "flag"]


def rows_of(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    a = rng.normal(size=n)
    table = pd.DataFrame({"a": a, "b": a + rng.normal(size=n), "c": rng.normal(size=n)})
    table.loc[rng.random(n) < 0.1, "c"] = np.nan
    table["level"] = pd.Categorical(np.where(a > 0, "high", rng.choice(["low", "mid"], n)), ["low", "mid", "high"])
    table["flag"] = rng.random(n) < 0.4
    table["id"] = rng.permutation(n) + 10_000
    table["weight"] = rng.integers(0, 4, n).astype(float)
    table["y"] = 3 * a + table["b"] + table["flag"] + rng.normal(size=n)
    return table


def model(X: pd.DataFrame) -> Any:
    known = np.asarray(X["c"], dtype=float)
    parts = 3 * X["a"] + X["b"] + X["flag"] + 2 * (X["level"] == "high") + np.where(np.isnan(known), 1.0, known)
    return np.asarray(parts, dtype=float)


DATA = rows_of(N, 1)
TRAIN = rows_of(400, 2)[COLUMNS]
OPTIONS: dict[str, Any] = {
    "sampler": "subgroups",
    "features": ["a", "level", "flag"],
    "n_repeats": 3,
    "random_state": 1,
    "sample_size": 250,
    "check_fidelity": False,
}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("rows") / "rows.parquet"
    DATA.drop(columns=["id", "weight"]).to_parquet(place, row_group_size=300)
    return place


@pytest.fixture(scope="module")
def with_ids(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("rows") / "ids.parquet"
    DATA.to_parquet(place)
    return place


@pytest.fixture(scope="module")
def whole(path: Path) -> sg.ImportanceResult:
    return importance(model, path, "y", **OPTIONS)


def assert_same(one: sg.ImportanceResult, two: sg.ImportanceResult, rtol: float = 1e-12) -> None:
    for name in ("overall", "by_subgroup", "repeats"):
        first, second = (
            pd.DataFrame(
                getattr(result, name).to_dict(as_series=False) if result.backend == "polars" else getattr(result, name)
            )
            for result in (one, two)
        )
        pd.testing.assert_frame_equal(first, second, rtol=rtol, atol=1e-13, check_exact=False)
    assert one.baseline == pytest.approx(two.baseline, rel=rtol)


@pytest.mark.parametrize("chunk_rows", [1000, 97, 300])
def test_numbers_are_the_same_for_any_chunks(path: Path, whole: sg.ImportanceResult, chunk_rows: int) -> None:
    again = importance(model, sg.LargeData(path, chunk_rows=chunk_rows), "y", **OPTIONS)
    assert_same(again, whole)
    assert (again.by_subgroup["n"] == whole.by_subgroup["n"]).all()
    assert again.settings["chunks"] > N // chunk_rows


def test_numbers_are_the_same_for_files_and_other_batches(tmp_path: Path, whole: sg.ImportanceResult) -> None:
    for number, part in enumerate(np.array_split(np.arange(N), [50, 400])):
        DATA.drop(columns=["id", "weight"]).iloc[part].to_parquet(tmp_path / f"part-{number}.parquet")
    with config_context(working_memory=1e-6):
        found = importance(model, tmp_path, "y", **OPTIONS)
    assert_same(found, whole)


def test_numbers_are_the_same_for_any_number_of_jobs(path: Path, whole: sg.ImportanceResult) -> None:
    with joblib.parallel_config(backend="threading"):
        again = importance(model, sg.LargeData(path, chunk_rows=97), "y", n_jobs=3, **OPTIONS)
    assert_same(again, whole)


def test_with_a_row_key_the_order_of_rows_does_not_matter(tmp_path: Path) -> None:
    predict = {**OPTIONS, "row_key": "id", "sample_weight": "weight"}
    found = []
    for seed in (1, 2):
        place = tmp_path / f"{seed}.parquet"
        DATA.sample(frac=1, random_state=seed).to_parquet(place)
        found.append(importance(model, sg.LargeData(place, chunk_rows=150 * seed), "y", **predict))
    assert_same(found[0], found[1], rtol=1e-10)
    other = importance(model, place, "y", **{**predict, "row_key": None, "features": ["a"]}).overall
    assert abs(other["estimate"][0] - found[0].overall["estimate"][0]) > 1e-6


@pytest.mark.parametrize("kind", ["dataset", "lazy"])
def test_other_containers_have_the_same_numbers(path: Path, whole: sg.ImportanceResult, kind: str) -> None:
    if kind == "dataset":
        import pyarrow.dataset

        X: Any = pyarrow.dataset.dataset(path)
    else:
        import polars

        X = polars.scan_parquet(path)

    def predict(X: Any) -> Any:
        return model(X.to_pandas())

    found = importance(predict, X, "y", **OPTIONS)
    estimates = np.asarray(found.overall["estimate"], dtype=float)
    np.testing.assert_allclose(estimates, whole.overall["estimate"], rtol=1e-12)
    assert found.backend == ("pyarrow" if kind == "dataset" else "polars")


@dataclass(frozen=True, eq=False)
class Keyed(FittedSampler):
    """Another sampler, whose draws in memory are those of rows with these keys."""

    fitted: FittedSampler = field(kw_only=True)
    keys: Any = field(kw_only=True)

    def resample(
        self, table: Any, feature: Any, rngs: Any, *, weights: Any = None, exact: bool = True
    ) -> ResampledFeature:
        return self.fitted.resample(table, feature, KeyedStreams(rngs.seed, rngs.key, len(rngs), rows=self.keys))


CASES: dict[str, tuple[Any, Sequence[Any]]] = {
    "auto": (sg.samplers.Auto(), ["a", "b", "c", "level", "flag", ["a", "b"]]),
    "subgroups": (sg.samplers.SubgroupSampler(donors="train"), ["a", "c", "level", ["a", "level"]]),
    "marginal": (sg.samplers.Marginal(donors="train"), ["a", "flag", ["b", "level"]]),
    "shifted": (sg.samplers.ShiftedSubgroups(), ["a", "level"]),
    "imputation": (sg.samplers.Imputation(n_trees=10), ["a", "level"]),
    "intervals": (sg.samplers.Intervals(10), ["a"]),
}


@pytest.mark.parametrize("weights", [None, "weight"])
@pytest.mark.parametrize("name", CASES)
def test_tables_are_those_of_rows_in_memory_with_the_same_draws(with_ids: Path, name: str, weights: str | None) -> None:
    method, features = CASES[name]
    fitted = method.fit(TRAIN, list(features))

    def predict(X: pd.DataFrame) -> Any:
        return model(X)

    predict.feature_names_in_ = COLUMNS  # type: ignore[attr-defined]
    call: dict[str, Any] = {
        "features": list(features), "n_repeats": 3, "random_state": 1, "loss": ["squared_error", "absolute_error"],
        "check_fidelity": False,
    }  # fmt: skip
    frequencies = weights and sg.FrequencyWeights(weights)
    outside = importance(
        predict, sg.LargeData(with_ids, chunk_rows=200), "y", sampler=fitted, sample_weight=frequencies, **call
    )
    data = read_chunks(with_ids)
    keys = row_keys(data.chunks[0], None)
    counted = sg.FrequencyWeights(DATA["weight"]) if weights else None
    kept = slice(None) if counted is None else (DATA["weight"] > 0).to_numpy()
    sampler = Keyed(fitted.columns, fitted.train, fitted=fitted, keys=keys[kept])
    inside = importance(model, DATA[COLUMNS], DATA["y"], sampler=sampler, sample_weight=counted, **call)
    wide = tuple(replace(score, influence=score.rows) for score in with_rows(inside.scores, "the test"))
    one, two = _without_draws(outside), _without_draws(replace(inside, scores=wide))
    for table in ("overall", "by_subgroup"):  # marks need rows in memory; without them they are more frequent
        first, second = (getattr(each, table).drop(columns="reliable") for each in (one, two))
        pd.testing.assert_frame_equal(first, second, rtol=1e-10, atol=1e-13, check_exact=False)
    assert outside.baseline == pytest.approx(inside.baseline, rel=1e-10)
    pd.testing.assert_frame_equal(outside.repeats, inside.repeats, rtol=1e-10)
    for mine, theirs in zip(outside.scores, inside.scores, strict=True):
        assert mine.n_exact == theirs.n_exact


def test_relative_weights_have_the_tables_of_rows_in_memory(with_ids: Path) -> None:
    method, features = CASES["marginal"]
    fitted = method.fit(TRAIN, list(features))

    def predict(X: pd.DataFrame) -> Any:
        return model(X)

    predict.feature_names_in_ = COLUMNS  # type: ignore[attr-defined]
    call: dict[str, Any] = {
        "features": list(features), "n_repeats": 3, "random_state": 1, "check_fidelity": False,
    }  # fmt: skip
    large = sg.LargeData(with_ids, chunk_rows=200)
    outside = importance(predict, large, "y", sampler=fitted, sample_weight="weight", **call)
    kept = (DATA["weight"] > 0).to_numpy()
    keys = row_keys(read_chunks(with_ids).chunks[0], None)[kept]
    sampler = Keyed(fitted.columns, fitted.train, fitted=fitted, keys=keys)
    inside = importance(model, DATA[COLUMNS], DATA["y"], sampler=sampler, sample_weight=DATA["weight"] * 1000, **call)
    wide = tuple(replace(score, influence=score.rows) for score in with_rows(inside.scores, "the test"))
    one, two = _without_draws(outside), _without_draws(replace(inside, scores=wide))
    for table in ("overall", "by_subgroup"):
        columns = ["n", "estimate", "std_error"]  # intervals: skewness is that of relative weights in memory only
        np.testing.assert_allclose(getattr(one, table)[columns], getattr(two, table)[columns], rtol=1e-9)


def _without_draws(found: sg.ImportanceResult) -> sg.ImportanceResult:
    """The result without the noise of the draws: in memory it is learned from repeats, in partitions from rows."""
    scores = tuple(replace(score, mc_variance=np.zeros_like(score.mc_variance)) for score in found.scores)
    return replace(found.with_noise("test rows"), scores=scores)


@pytest.mark.parametrize("n_repeats", [2, 5])
def test_the_noise_of_the_draws_is_learned_from_all_rows(path: Path, n_repeats: int) -> None:
    call = {**OPTIONS, "sampler": "marginal", "features": ["a"], "n_repeats": n_repeats, "train": TRAIN}
    found = [importance(model, path, "y", **{**call, "random_state": seed}) for seed in range(30)]
    estimates = np.array([one.overall["estimate"][0] for one in found])
    stated = np.array([one.overall["mc_error"][0] for one in found])
    assert stated.std() < 0.2 * stated.mean()  # two repeats alone would estimate it within a factor of several
    # Points of a row over repeats are spread evenly, so that the noise is at most what is said: a standard deviation of
    # 30 runs is itself known to 1 / sqrt(58) = 13 %, of which three are allowed.
    assert estimates.std(ddof=1) < 1.4 * stated.mean()
    line = found[0].overall.iloc[0]
    assert line["p_value"] < 1e-12
    assert line["std_error"] > line["mc_error"]


def test_rows_that_the_sampler_is_fitted_on_are_not_evaluated(with_ids: Path) -> None:
    seen: set[int] = set()

    def predict(X: pd.DataFrame) -> Any:
        seen.update(X["id"].tolist())
        return model(X)

    found = importance(predict, with_ids, "y", **OPTIONS)
    sampled = sample_rows(read_chunks(with_ids), ["id"], 250, 1).table["id"].tolist()
    assert found.settings["left_out"] == 250
    assert found.n_rows == N - 250
    assert len(seen) == N - 250
    assert not seen & set(sampled)
    assert found.settings["trained_on"] == "sample"


def test_the_model_is_predicted_the_rows_that_are_documented(path: Path) -> None:
    predicted_rows = []

    def predict(X: pd.DataFrame) -> Any:
        predicted_rows.append(len(X))
        return model(X)

    found = importance(predict, path, "y", train=TRAIN, **{**OPTIONS, "sampler": "marginal", "features": ["a", "flag"]})
    others = N  # a flag has one other value
    assert sum(predicted_rows) == found.settings["n_rows_predicted"] == 400 + 10 + N + 3 * N + others
    assert len(predicted_rows) == found.settings["n_calls"]
    assert found.settings["trained_on"] == "train"
    assert found.settings["left_out"] == 0


def test_training_rows_may_be_in_chunks_and_a_sampler_fitted_before(path: Path, tmp_path: Path) -> None:
    TRAIN.assign(more=1.0).to_parquet(tmp_path / "train.parquet")
    call = {**OPTIONS, "sample_size": 100_000}
    given = importance(model, path, "y", train=tmp_path / "train.parquet", **call)
    assert given.settings["sample_size"] == len(TRAIN)
    assert given.n_rows == N
    groups = sg.find_subgroups(TRAIN, features=["a", "level", "flag"])
    found = importance(model, path, "y", **{**call, "sampler": groups, "features": None, "train": TRAIN})
    assert found.features == ("a", "level", "flag")
    assert found.subgroups["a"].rules == groups["a"].rules
    fitted = sg.samplers.SubgroupSampler(donors="train", groups=groups).fit(TRAIN)
    before = importance(model, path, "y", **{**call, "sampler": fitted})
    assert_same(before, found)
    assert before.settings["trained_on"] == "before"


def test_given_is_the_marginal_importance_without_columns_and_the_usual_one_with_all(path: Path) -> None:
    call = {**OPTIONS, "features": ["a"]}
    none = importance(model, path, "y", given=[], **call)
    marginal = importance(model, path, "y", **{**call, "sampler": "marginal"})
    assert none.overall["estimate"][0] == pytest.approx(marginal.overall["estimate"][0], rel=1e-12)
    some = importance(model, path, "y", given=["b", "level"], **call)
    assert set(some.scores[0].conditioning) <= {"b", "level"}
    assert some.settings["given"] == {"a": ["b", "level"]}


def test_classes_are_evaluated_by_their_probabilities(tmp_path: Path) -> None:
    from sklearn.linear_model import LogisticRegression

    label = np.where(DATA["y"] > 0, "yes", "no")
    table = DATA[["a", "b"]].assign(label=label)
    table.to_parquet(tmp_path / "rows.parquet")
    classifier = LogisticRegression().fit(TRAIN[["a", "b"]], TRAIN["a"] > 0)
    classifier.classes_ = np.array(["no", "yes"])
    call: dict[str, Any] = {
        "loss": ["log_loss", "zero_one"],
        "sampler": "marginal",
        "check_fidelity": False,
        "random_state": 1,
    }
    found = importance(classifier, tmp_path / "rows.parquet", "label", train=TRAIN[["a", "b"]], **call)
    inside = importance(classifier, table[["a", "b"]], label, **call)
    assert found.baseline == pytest.approx(inside.baseline, rel=1e-12)
    apart = (found.overall["estimate"] - inside.overall["estimate"]).abs()
    assert (apart < 4 * np.hypot(found.overall["mc_error"], inside.overall["mc_error"])).all()


def test_a_model_that_writes_to_its_table_changes_nothing(tmp_path: Path) -> None:
    DATA[["a", "b", "y"]].to_parquet(tmp_path / "rows.parquet")

    def tidy(X: pd.DataFrame) -> Any:
        return np.asarray(3 * X["a"] + X["b"], dtype=float)

    def writes(X: pd.DataFrame) -> Any:
        values = tidy(X)
        X["a"] = 0.0
        X.iloc[:, 1] = 7.0
        return values

    call = {**OPTIONS, "features": ["a", "b", ["a", "b"]]}
    one, two = (importance(each, tmp_path / "rows.parquet", "y", **call) for each in (tidy, writes))
    assert_same(one, two)


def test_a_checkpoint_is_gone_on_from(path: Path, tmp_path: Path, whole: sg.ImportanceResult) -> None:
    predicted_rows = []

    def predict(X: pd.DataFrame) -> Any:
        predicted_rows.append(len(X))
        return model(X)

    call = {**OPTIONS, "chunk_rows": 97, "checkpoint": tmp_path / "kept"}
    assert_same(importance(predict, path, "y", **call), whole)
    predicted_rows.clear()
    assert_same(importance(predict, path, "y", **call), whole)
    assert predicted_rows == [400, 10]  # what the run is known by
    with pytest.raises(sg.exceptions.ParameterError, match="holds another run: model"):
        importance(lambda X: 2 * model(X), path, "y", **call)
    with pytest.raises(sg.exceptions.ParameterError, match="random_state: 1"):
        importance(predict, path, "y", **{**call, "random_state": 2})


def test_a_checkpoint_of_data_that_changed_since_is_rejected(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / "rows.parquet"
    shutil.copy(path, copy)
    call = {**OPTIONS, "chunk_rows": 200, "checkpoint": tmp_path / "kept"}
    importance(model, copy, "y", **call)
    changed = pd.read_parquet(path)
    changed["y"] += 1  # the columns of the model stay, and so do the rows it is tried out on
    changed.to_parquet(copy)
    with pytest.raises(sg.exceptions.ParameterError, match=r"holds another run: files: .*, rows looked at: "):
        importance(model, copy, "y", **call)
    call |= {"checkpoint": tmp_path / "of a frame", "features": ["a"]}
    of_frame, now = (pl.from_pandas(rows).lazy() for rows in (pd.read_parquet(path), changed))
    importance(lambda X: X["a"], of_frame, "y", **call)
    with pytest.raises(sg.exceptions.ParameterError, match="holds another run: rows looked at: "):
        importance(lambda X: X["a"], now, "y", **call)  # where only the rows differ


def test_a_result_of_chunks_is_saved_shown_and_reported(path: Path, tmp_path: Path) -> None:
    whole = importance(model, path, "y", **{**OPTIONS, "sampler": "auto", "features": ["a"], "check_fidelity": True})
    whole.save(tmp_path / "result.json")
    again = sg.ImportanceResult.load(tmp_path / "result.json")
    pd.testing.assert_frame_equal(again.overall, whole.overall, check_exact=True)
    pd.testing.assert_frame_equal(pickle.loads(pickle.dumps(whole)).by_subgroup, whole.by_subgroup, check_exact=True)
    assert "450 rows" in whole._repr_html_()
    assert whole.explain("a").sentences
    assert len(whole.choices) > 0
    assert set(whole.fidelity_checks["fidelity"]) <= {"passed", "small difference", "failed", "unknown"}

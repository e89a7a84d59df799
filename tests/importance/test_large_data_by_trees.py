"""Importance of tree models over large data: exact from the trees, the same for any chunks and engines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import cloudpickle
import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import subgrove as sg
from subgrove._importance import chunked
from subgrove._scale.engines import run_chunks
from tests.large_data_options import importance

pytestmark = pytest.mark.compiled

COLUMNS = ["a", "b", "c", "k"]
N, N_TRAIN = 500, 60
LEVELS = list("uvw")


def rows_of(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 3)), columns=list("abc"))
    X["b"] += X["a"]
    X["k"] = pd.Categorical(rng.choice(LEVELS, n), LEVELS)
    X["w"] = rng.exponential(size=n)
    X["y"] = X["a"] * X["b"] + (X["k"] == "u") + X["c"] ** 2 + 0.3 * rng.normal(size=n)
    return X


DATA, TRAIN = rows_of(N, 1), rows_of(N_TRAIN, 2)
GROWN = rows_of(400, 3)
OPTIONS: dict[str, Any] = {"loss": "squared_error", "random_state": 1, "check_fidelity": False, "n_repeats": 10}
PREDICTED = N + 400 + 10 + 256  # all rows, pilot rows, some of these once more, and rows of the check


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("rows") / "rows.parquet"
    DATA.to_parquet(place, row_group_size=120)
    return place


@pytest.fixture(scope="module")
def model() -> Any:
    return HistGradientBoostingRegressor(categorical_features="from_dtype", max_iter=20).fit(GROWN[COLUMNS], GROWN["y"])


def by_brute_force(model: Any, name: str) -> Any:
    """Mean increase of the loss of each row, over all training rows as donors."""
    receiver, donor = np.repeat(np.arange(N), N_TRAIN), np.tile(np.arange(N_TRAIN), N)
    changed = DATA[COLUMNS].iloc[receiver].reset_index(drop=True)
    changed[name] = TRAIN[name].iloc[donor].array
    y = DATA["y"].to_numpy()
    increase = (model.predict(changed) - y[receiver]) ** 2 - ((model.predict(DATA[COLUMNS]) - y) ** 2)[receiver]
    return increase.reshape(N, N_TRAIN).mean(axis=1)


def same(one: sg.ImportanceResult, two: sg.ImportanceResult, rtol: float = 1e-10) -> None:
    for name in ("overall", "by_subgroup", "repeats"):
        pd.testing.assert_frame_equal(getattr(one, name), getattr(two, name), rtol=rtol, atol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_importance_is_the_mean_over_all_training_rows(path: Path, model: Any, weighted: bool) -> None:
    weight = "w" if weighted else None
    large = sg.LargeData(path, chunk_rows=130)
    imp = importance(model, large, "y", train=TRAIN[COLUMNS], sampler="marginal", sample_weight=weight, **OPTIONS)
    assert imp.settings["evaluation"] == "tree steps"
    assert imp.settings["n_rows_predicted"] == PREDICTED
    assert (imp.overall["mc_error"] == 0).all()
    w = DATA["w"] if weighted else np.ones(N)
    for name, estimate in zip(COLUMNS, imp.overall["estimate"], strict=True):
        assert estimate == pytest.approx(np.average(by_brute_force(model, name), weights=w), rel=1e-10)


@pytest.mark.parametrize("sampler", ["subgroups", "auto"])
def test_importance_is_that_of_a_table_in_memory(path: Path, model: Any, sampler: str) -> None:
    train, X = rows_of(400, 4)[COLUMNS], DATA[COLUMNS]
    own = sg.samplers.SubgroupSampler(donors="train") if sampler == "subgroups" else sampler
    large = importance(model, path, "y", train=train, sampler=sampler, **OPTIONS)
    in_memory = sg.importance(model, X, DATA["y"], train=train, sampler=own, **OPTIONS)
    assert large.settings["evaluation"] == in_memory.settings["evaluation"] == "tree steps"
    assert large.overall["estimate"].to_numpy() == pytest.approx(in_memory.overall["estimate"].to_numpy(), rel=1e-10)


def test_chunks_and_processes_and_threads_give_the_same_numbers(path: Path, model: Any) -> None:
    options = {**OPTIONS, "train": rows_of(400, 4)[COLUMNS], "sampler": "auto", "chunk_rows": 97}
    one = importance(model, path, "y", **options)
    for backend in ("loky", "threading"):
        with joblib.parallel_config(backend=backend):
            other = importance(model, path, "y", n_jobs=2, **options)
        assert other.settings["evaluation"] == "tree steps"
        pd.testing.assert_frame_equal(one.by_subgroup, other.by_subgroup, check_exact=True)
    same(one, importance(model, path, "y", **{**options, "chunk_rows": 1000}))


def test_draws_of_other_samplers_and_of_groups_are_looked_up(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    grown = make_pipeline(StandardScaler(), RandomForestRegressor(20, min_samples_leaf=5, random_state=0))
    model = grown.fit(GROWN[["a", "b", "c"]], GROWN["y"])
    for more in ({"sampler": "knockoffs"}, {"sampler": "marginal", "features": ["c", ["a", "b"]]}):
        options = {**OPTIONS, **more, "train": TRAIN[["a", "b", "c"]]}
        monkeypatch.setenv("SUBGROVE_TREE_STEPS", "1")
        looked_up = importance(model, path, "y", **options)
        assert looked_up.settings["evaluation"] == "tree steps"
        assert looked_up.settings["n_rows_predicted"] == PREDICTED
        monkeypatch.setenv("SUBGROVE_TREE_STEPS", "0")
        predicted = importance(model, path, "y", **options)
        assert predicted.settings["evaluation"] == "model predictions: SUBGROVE_TREE_STEPS is 0"
        drawn = looked_up.overall["feature"] != "c" if "features" in more else slice(None)
        first, second = (result.overall.loc[drawn].reset_index(drop=True) for result in (looked_up, predicted))
        pd.testing.assert_frame_equal(first, second, rtol=1e-10)


def test_classes_and_several_losses_are_served(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    y, table = (GROWN["y"] > 1).astype(int), DATA.assign(y=(DATA["y"] > 1).astype(int))
    place = path.parent / "classes.parquet"
    table.to_parquet(place)
    model = HistGradientBoostingClassifier(categorical_features="from_dtype", max_iter=20).fit(GROWN[COLUMNS], y)
    options = {**OPTIONS, "loss": ["log_loss", "brier"], "train": TRAIN[COLUMNS], "sampler": "marginal"}
    imp = importance(model, place, "y", **options)
    assert imp.settings["evaluation"] == "tree steps"
    monkeypatch.setenv("SUBGROVE_TREE_STEPS", "0")  # each training row is drawn once
    drawn = importance(model, place, "y", **{**options, "n_repeats": N_TRAIN})
    assert imp.overall["estimate"].to_numpy() == pytest.approx(drawn.overall["estimate"].to_numpy(), rel=1e-10)


def test_values_that_only_some_chunks_have_are_served(path: Path, model: Any) -> None:
    """A missing value and a level that neither the training rows nor the pilot rows have."""
    data = DATA.assign(k=DATA["k"].cat.add_categories(["z"]))
    data.loc[[7, 300], "a"], data.loc[[8, 301], "k"] = np.nan, "z"
    place = path.parent / "rare.parquet"
    data.to_parquet(place)
    options = {**OPTIONS, "train": TRAIN[COLUMNS], "sampler": "marginal", "sample_size": 50}
    imp = importance(model, place, "y", chunk_rows=100, **options)
    assert imp.settings["evaluation"] == "tree steps"
    in_memory = sg.importance(
        *(model, data[COLUMNS], data["y"]),
        **{**OPTIONS, "sampler": sg.samplers.Marginal(donors="train"), "train": TRAIN[COLUMNS]},
    )
    assert imp.overall["estimate"].to_numpy() == pytest.approx(in_memory.overall["estimate"].to_numpy(), rel=1e-10)


def test_other_models_predict_chunks_and_the_settings_say_why(path: Path, model: Any) -> None:
    options = {**OPTIONS, "train": TRAIN[COLUMNS], "sampler": "marginal", "n_repeats": 2}
    columns = [*COLUMNS, "w"]
    options_of_function = {**options, "features": ["a"], "train": TRAIN[columns]}
    function = importance(lambda X: model.predict(X[COLUMNS]), path, "y", **options_of_function)
    assert function.settings["evaluation"].startswith("model predictions: not a model of a library")
    model._loss.link.inverse, kept = lambda raw: raw + 1, model._loss.link.inverse
    try:
        changed = importance(model, path, "y", **options)
    finally:
        model._loss.link.inverse = kept
    assert changed.settings["evaluation"] == "model predictions: its trees do not reproduce its predictions"
    assert changed.settings["n_rows_predicted"] > PREDICTED


def test_a_checkpoint_continues_and_belongs_to_one_evaluation(
    path: Path, model: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {**OPTIONS, "train": TRAIN[COLUMNS], "sampler": "marginal", "chunk_rows": 130, "checkpoint": tmp_path}
    first = importance(model, path, "y", **options)
    sorted(tmp_path.glob("chunk-*"))[1].unlink()
    again = importance(model, path, "y", **options)
    pd.testing.assert_frame_equal(first.overall, again.overall, check_exact=True)
    assert again.settings["evaluation"] == "tree steps"
    monkeypatch.setenv("SUBGROVE_TREE_STEPS", "0")
    with pytest.raises(sg.exceptions.ParameterError, match="holds another run: evaluation: tree steps"):
        importance(model, path, "y", **options)


def test_the_model_is_sent_once_to_a_worker(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    big = RandomForestRegressor(30, min_samples_leaf=5, random_state=0).fit(GROWN[["a", "b", "c"]], GROWN["y"])
    sent: list[bytes] = []
    run = run_chunks

    def recorded(work: Any, *arguments: Any, **options: Any) -> Any:
        sent.append(cloudpickle.dumps(work))
        return run(cloudpickle.loads(sent[-1]), *arguments, **options)

    monkeypatch.setattr(chunked, "run_chunks", recorded)
    options = {**OPTIONS, "train": TRAIN[["a", "b", "c"]], "sampler": "marginal"}
    imp = importance(big, path, "y", **options)
    assert imp.settings["evaluation"] == "tree steps"
    assert len(sent[-1]) < 1.3 * len(cloudpickle.dumps(big))


def test_tables_of_pyarrow_and_polars_are_served(path: Path) -> None:
    pyarrow, polars = pytest.importorskip("pyarrow.dataset"), pytest.importorskip("polars")
    numbers = ["a", "b", "c"]
    model = HistGradientBoostingRegressor(max_iter=20).fit(GROWN[numbers], GROWN["y"])
    one, *others = (
        sg.importance(model, sg.LargeData(source, sample_size=100), "y", sampler="marginal", **OPTIONS)
        for source in (path, pyarrow.dataset(path), polars.scan_parquet(path))
    )
    for other in others:
        assert other.settings["evaluation"] == one.settings["evaluation"] == "tree steps"
        estimates = (np.asarray(result.overall["estimate"], dtype=np.float64) for result in (other, one))
        assert next(estimates) == pytest.approx(next(estimates), rel=1e-10)

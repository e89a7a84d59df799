"""Importance of models on tensors: the same numbers as with the table in memory, the result, and errors."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import subgrove as sg
from subgrove.exceptions import (
    ColumnError,
    InputError,
    ModelError,
    ParameterError,
    SameRowsWarning,
    SamplerError,
    SingletonSubgroupWarning,
)

torch = pytest.importorskip("torch", reason="needs PyTorch: pip install 'subgrove[torch]'")
torch.set_num_threads(1)  # workers share the cores

Floats = npt.NDArray[np.float64]
N, SAME = 300, 1e-6  # float32 has seven digits


def frame(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    a = rng.normal(size=n)
    columns = {"a": a, "b": a + rng.normal(size=n), "c": rng.integers(0, 4, n), "d": rng.normal(size=n)}
    return pd.DataFrame({name: np.round(column, 3).astype(np.float64) for name, column in columns.items()})


X, TRAIN = frame(N, 0), frame(400, 1)
Y = (X["a"] * X["c"] + np.random.default_rng(2).normal(size=N)).to_numpy()
COUNTS = np.random.default_rng(3).integers(0, 4, N).astype(np.float64)
GROUPS = sg.find_subgroups(TRAIN, max_depth=2)


def network(outputs: int = 1, columns: int = 4) -> Any:
    torch.manual_seed(1)
    layers = torch.nn.Linear(columns, 16), torch.nn.ReLU(), torch.nn.Linear(16, outputs)
    return torch.nn.Sequential(*layers)


NET = network()
ON_DEVICE = sg.DeviceModel(NET, batch_rows=128)  # three batches, the last one smaller
SAMPLERS: dict[str, dict[str, Any]] = {
    "circles of test rows": {"sampler": GROUPS},
    "marginal": {"sampler": "marginal"},
    "own value allowed": {"sampler": sg.samplers.SubgroupSampler(groups=GROUPS, fixed_points=True)},
    "training donors": {"sampler": sg.samplers.SubgroupSampler(groups=GROUPS, donors="train"), "train": TRAIN},
    "cross-fitted": {"sampler": "subgroups"},
    "values": {"sampler": "knockoffs", "train": TRAIN},
    "chosen": {"sampler": "auto", "train": TRAIN, "features": ["b", "c"]},
    "weights": {"sampler": GROUPS, "sample_weight": sg.FrequencyWeights(COUNTS)},
    "weights and training donors": {
        "sampler": sg.samplers.SubgroupSampler(groups=GROUPS, donors="train"),
        "train": TRAIN,
        "sample_weight": sg.FrequencyWeights(COUNTS),
    },
    "groups of features": {"sampler": "marginal", "features": [["a", "b"], "c"]},
    "given": {"sampler": "subgroups", "train": TRAIN, "given": ["a"], "features": ["b"]},
    "one repeat": {"sampler": GROUPS, "n_repeats": 1},
}


def same_tables(one: Any, two: Any, tolerance: float = SAME) -> None:
    # Marks of intervals depend on whether rows are stored, and the noise of donors is not computed on a device.
    one, two = (each.with_noise("test rows", "Monte Carlo") for each in (one, two))
    for name in ("overall", "by_subgroup"):
        first, second = (getattr(each, name).drop(columns="reliable") for each in (one, two))
        pd.testing.assert_frame_equal(first, second, rtol=tolerance, atol=tolerance)
    pd.testing.assert_frame_equal(one.repeats, two.repeats, rtol=tolerance, atol=tolerance)


@pytest.mark.filterwarnings("ignore:With .* rows:subgrove.exceptions.SubgroveWarning")
@pytest.mark.parametrize("options", SAMPLERS.values(), ids=list(SAMPLERS))
def test_numbers_are_those_of_the_ordinary_path(options: dict[str, Any]) -> None:
    both = {
        "n_repeats": 5,
        "loss": ["squared_error", "absolute_error"],
        "random_state": 3,
        "check_fidelity": False,
        **options,
    }
    here, ordinary = (sg.importance(model, X, Y, **both) for model in (ON_DEVICE, ON_DEVICE.predict))
    same_tables(here, ordinary)
    # On the device no rows are predicted once more: a module is in evaluation mode there, without dropout.
    assert here.settings["n_rows_predicted"] == ordinary.settings["n_rows_predicted"] - 10
    assert here.baseline == pytest.approx(ordinary.baseline, rel=SAME)


def test_fidelity_checks_and_settings_are_those_of_the_ordinary_path() -> None:
    options: dict[str, Any] = {"sampler": GROUPS, "n_repeats": 2, "random_state": 3}
    here, ordinary = (sg.importance(model, X, Y, **options) for model in (ON_DEVICE, ON_DEVICE.predict))
    pd.testing.assert_frame_equal(here.fidelity_checks, ordinary.fidelity_checks)
    for name in ("sampler", "random_state", "trained_on", "fingerprint", "given"):
        assert here.settings[name] == ordinary.settings[name]
    assert here.settings["computed_on"] == "cpu"


LOSSES = {
    "value": ["squared_error", "absolute_error", "poisson", "gamma", "quantile", sg.losses.tweedie(1.5)],
    "logit": ["log_loss", "brier", "zero_one"],
}


@pytest.mark.parametrize("outputs", [1, 3])
def test_losses_of_classes_are_those_of_the_ordinary_path(outputs: int) -> None:
    y = np.random.default_rng(4).integers(0, max(outputs, 2), N)
    y[:3] = np.arange(3) % max(outputs, 2)
    model = sg.DeviceModel(network(outputs), output="logit")
    options: dict[str, Any] = {
        "sampler": GROUPS,
        "n_repeats": 3,
        "loss": LOSSES["logit"],
        "random_state": 3,
        "check_fidelity": False,
    }
    ordinary = sg.importance(model.predict_proba, X, y, **options)  # type: ignore[attr-defined]
    same_tables(sg.importance(model, X, y, **options), ordinary)
    assert sg.importance(model, X, y, sampler="marginal", n_repeats=1, check_fidelity=False).losses == ("log_loss",)


def test_losses_of_numbers_are_those_of_the_ordinary_path() -> None:
    model = sg.DeviceModel(lambda X: (X[:, 0] / 4 + X[:, 2]).exp())
    y = np.abs(Y) + 0.1
    options: dict[str, Any] = {
        "sampler": GROUPS,
        "n_repeats": 3,
        "loss": LOSSES["value"],
        "random_state": 3,
        "check_fidelity": False,
    }
    same_tables(sg.importance(model, X, y, **options), sg.importance(model.predict, X, y, **options), 1e-5)


def test_several_outputs_are_those_of_the_ordinary_path() -> None:
    model, y = sg.DeviceModel(network(2)), np.column_stack([Y, -Y])
    options: dict[str, Any] = {"sampler": GROUPS, "n_repeats": 3, "random_state": 3, "check_fidelity": False}
    same_tables(sg.importance(model, X, y, **options), sg.importance(model.predict, X, y, **options))


QUICK: dict[str, Any] = {"sampler": GROUPS, "n_repeats": 2, "random_state": 3, "check_fidelity": False}
PLAIN = sg.importance(ON_DEVICE, X, Y, **QUICK)
NAMED = sg.DeviceModel(NET, columns=list("abcd"))
CONTAINERS = {
    "polars": lambda: (NET, pl.from_pandas(X), Y),
    "pyarrow": lambda: (NET, pa.Table.from_pandas(X, preserve_index=False), Y),
    "array": lambda: (NAMED, X.to_numpy(), Y),
    "tensors": lambda: (NAMED, torch.tensor(X.to_numpy()), torch.tensor(Y)),
    "more columns in another order": lambda: (NAMED, X[["d", "c", "b", "a"]].assign(e=1.0), Y),
    "whole numbers": lambda: (NET, X.astype({"c": int}), Y),
}


@pytest.mark.parametrize("make", CONTAINERS.values(), ids=list(CONTAINERS))
def test_containers_give_the_same(make: Any) -> None:
    model, table, y = make()
    found = sg.importance(model, table, y, **QUICK).overall
    assert sorted(map(str, found["feature"].to_numpy())) == list("abcd")
    np.testing.assert_allclose(np.asarray(found["estimate"]), PLAIN.overall["estimate"], rtol=SAME)


@pytest.mark.parametrize("batch", [1, 7, N, 10 * N])
def test_batches_do_not_matter(batch: int) -> None:
    found = sg.importance(sg.DeviceModel(NET, batch_rows=batch), X, Y, **{**QUICK, "features": ["b"]})
    within = SAME * PLAIN.baseline[0]  # what rounding may do to losses, of which this is a difference
    assert found.overall["estimate"][0] == pytest.approx(PLAIN.overall["estimate"][1], abs=within)


def test_nothing_of_the_user_is_changed() -> None:
    torch.manual_seed(0)
    writes = torch.nn.Sequential(torch.nn.ReLU(inplace=True), torch.nn.Dropout(0.5), NET)
    writes[1].train()
    writes[2].eval()
    table = torch.tensor(X.to_numpy(dtype=np.float32))
    before = table.clone()
    found = sg.importance(writes, table, Y, sampler="marginal", n_repeats=2, random_state=3, check_fidelity=False)
    assert torch.equal(table, before)
    assert (writes.training, writes[1].training, writes[2].training) == (True, True, False)
    plain = sg.DeviceModel(lambda X: NET(X.relu()))
    again = sg.importance(plain, table, Y, sampler="marginal", n_repeats=2, random_state=3, check_fidelity=False)
    np.testing.assert_array_equal(found.overall["estimate"], again.overall["estimate"])


def test_nothing_but_sums_comes_back() -> None:
    with pytest.raises(ParameterError, match="per_row needs values of single rows"):
        _ = PLAIN.per_row
    assert PLAIN.n_rows == N
    assert "importance" in repr(PLAIN).lower()


def test_a_result_is_saved_and_read(tmp_path: Any) -> None:
    PLAIN.save(tmp_path / "importance.json")
    loaded = sg.ImportanceResult.load(tmp_path / "importance.json")
    pd.testing.assert_frame_equal(loaded.overall, PLAIN.overall)


@pytest.mark.parametrize(
    "more",
    [
        {"loss": "root_mean_squared_error"},
        {"n_repeats": sg.AdaptiveRepeats(share=0.5)},
        {"loss": lambda y, p: abs(y - p)},
    ],
)
def test_what_needs_each_prediction_goes_the_ordinary_way(more: dict[str, Any]) -> None:
    options = {**QUICK, "features": ["a"], **more}
    table, y = torch.tensor(X.to_numpy()), torch.tensor(Y)
    found, ordinary = (
        sg.importance(NAMED, table, y, **options),
        sg.importance(ON_DEVICE.predict, X, Y, **options),
    )
    np.testing.assert_allclose(found.overall["estimate"], ordinary.overall["estimate"], rtol=SAME)
    assert "computed_on" not in found.settings


def test_a_module_has_effects() -> None:
    curve = sg.effect(NET, X, "a", grid_resolution=4, subgroups=None)
    ordinary = sg.effect(ON_DEVICE.predict, X, "a", grid_resolution=4, subgroups=None)
    pd.testing.assert_frame_equal(curve.curves, ordinary.curves)


def test_warnings_point_at_the_call() -> None:
    same = sg.find_subgroups(X, features=["b"], max_depth=1)
    with pytest.warns(SameRowsWarning) as seen:
        sg.importance(NET, X, Y, sampler=same, n_repeats=1, check_fidelity=False)
    assert seen[0].filename == __file__
    with pytest.warns(SingletonSubgroupWarning) as seen:
        sg.importance(NET, X[:1], Y[:1], sampler="marginal", n_repeats=1, check_fidelity=False)
    assert seen[0].filename == __file__


class Fails:
    """A sampler that raises when it is called to redraw."""

    def fit(self, X: Any, features: Any) -> Any:
        return self

    def sample(self, X: Any, feature: Any, rngs: Any) -> Any:
        raise ZeroDivisionError("no")


def not_finite(X: Any) -> Any:
    return torch.where(X[:, 1] > 1e5, float("nan"), X[:, 0])


class Huge(Fails):
    """A sampler that redraws values that the model cannot take, in the second repeat."""

    def sample(self, X: Any, feature: Any, rngs: Any) -> Any:
        for repeat, _ in enumerate(rngs):
            yield np.where(np.arange(len(X)) == 17, 1e6 * repeat, 0.0)


REJECTED: dict[str, tuple[Any, type[Exception], str]] = {
    "text": (
        lambda: sg.importance(NET, X.assign(d="oak"), Y, sampler="marginal"),
        ColumnError,
        "Column 'd' is nominal, and a model on tensors takes numbers",
    ),
    "column that is not there": (
        lambda: sg.importance(sg.DeviceModel(NET, columns=["a", "b", "c", "e"]), X, Y, sampler="marginal"),
        InputError,
        "X lacks the column 'e' that the model takes",
    ),
    "names of other columns": (
        lambda: sg.importance(NAMED, torch.zeros(5, 3), Y[:5], sampler="marginal"),
        InputError,
        "X has 3 columns, but columns names 4",
    ),
    "model without classes": (
        lambda: sg.importance(NET, X, (Y > 0).astype(int), loss="log_loss"),
        ParameterError,
        "no predict_proba",
    ),
    "logits as probabilities": (
        lambda: sg.importance(sg.DeviceModel(NET, output="probability"), X, (Y > 0).astype(int), sampler="marginal"),
        ModelError,
        "If these are logits, pass",
    ),
    "too few classes": (
        lambda: sg.importance(sg.DeviceModel(network(3), output="logit"), X, (Y > 0).astype(int), sampler="marginal"),
        ModelError,
        "3 probabilities per row for 2 classes",
    ),
    "several outputs": (
        lambda: sg.importance(network(3), X, Y, sampler="marginal"),
        ModelError,
        r"shape \(300, 3\), but y has \(300,\)",
    ),
    "what the model raises": (
        lambda: sg.importance(network(columns=7), X, Y, sampler="marginal"),
        ModelError,
        r"The model raised RuntimeError on 300 rows \(original rows\)",
    ),
    "no tensor": (
        lambda: sg.importance(sg.DeviceModel(lambda X: "no"), X, Y, sampler="marginal"),
        ModelError,
        "returned str for 300 rows",
    ),
    "what the sampler raises": (
        lambda: sg.importance(NET, X, Y, sampler=Fails(), train=TRAIN),
        SamplerError,
        "The sampler raised ZeroDivisionError for feature 'a': no|sample of Fails raised",
    ),
    "loss that is not finite": (
        lambda: sg.importance(sg.DeviceModel(not_finite), X, Y, sampler=Huge(), train=TRAIN, n_repeats=3),
        ModelError,
        "The loss is not finite .feature 'b', repeat 1, row 17.",
    ),
    "loss that is not finite at once": (
        lambda: sg.importance(sg.DeviceModel(lambda X: X[:, 0] / 0), X, Y, sampler="marginal"),
        ModelError,
        "The loss is not finite .original rows, row 0.",
    ),
    "no function": (lambda: sg.DeviceModel(3), ParameterError, "a function of a tensor; got int"),
    "class": (lambda: sg.DeviceModel(torch.nn.Linear), ParameterError, "got the class Linear"),
    "twice": (lambda: sg.DeviceModel(ON_DEVICE), ParameterError, "is a DeviceModel already"),
    "gives": (lambda: sg.DeviceModel(NET, output="odds"), ParameterError, "output must be one of 'value'"),  # type: ignore[arg-type]
    "classes of numbers": (lambda: sg.DeviceModel(NET, classes=[0, 1]), ParameterError, "classes requires output"),
    "batch_rows": (lambda: sg.DeviceModel(NET, batch_rows=0), ParameterError, "batch_rows must be"),
    "dtype": (lambda: sg.DeviceModel(NET, dtype=torch.int64), ParameterError, "dtype must be a floating point"),
    "device": (lambda: sg.DeviceModel(NET, device="nowhere"), ParameterError, "device='nowhere' cannot be used here"),
    "elsewhere": (lambda: sg.DeviceModel(NET, device="meta"), ParameterError, "parameters of the module are on 'cpu'"),
}


@pytest.mark.parametrize(("call", "error", "match"), REJECTED.values(), ids=list(REJECTED))
def test_what_cannot_be_done_is_reported(call: Any, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        call()


def test_the_example_of_the_docs_gives_the_same_twice() -> None:
    text = (Path(__file__).parents[2] / "docs" / "large_data.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```py\n(.*?)```", text, re.DOTALL)
    code = code.replace("16_000", "200")
    rows = X[["a", "b", "d"]].set_axis(["x1", "x2", "x3"], axis=1)
    names: dict[str, Any] = {"sg": sg, "test": rows, "train": rows[:150] + 1, "y": pd.Series(Y)}
    exec(code, names)
    same_tables(names["imp"], names["same"])

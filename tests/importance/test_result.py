"""What `importance` returns: tables, other levels and losses, comparing, saving and reading back."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.stats import t as student

import subgrove as sg
from subgrove.exceptions import FormatError, ParameterError

Floats = npt.NDArray[np.float64]
N = 130


def frame_of(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    a = rng.normal(size=n)
    frame = pd.DataFrame({"a": a, "b": a + rng.normal(size=n), "level": rng.choice(["u", "v", "w"], n)})
    frame.index = pd.Index([f"row {k}" for k in range(n)], name="id")
    return frame


def model(X: Any) -> Any:
    return np.asarray(X["a"], dtype=float) + 2 * np.asarray(X["b"], dtype=float)


X, TRAIN = frame_of(N, 0), frame_of(400, 1)
Y = model(X) + np.random.default_rng(2).normal(size=N)
GROUPS = sg.find_subgroups(TRAIN, max_depth=2)
OVERALL = [
    "feature",
    "n",
    "estimate",
    "std_error",
    "statistic",
    "p_value",
    "p_holm",
    "p_bh",
    "conf_low",
    "conf_high",
    "reliable",
    "mc_error",
    "noise",
]
CHECKED = ["auc", "mmd", "fidelity"]


def run(table: Any = X, y: Any = Y, **options: Any) -> sg.ImportanceResult:
    return sg.importance(
        model, table, y, **{"sampler": GROUPS, "n_repeats": 6, "random_state": 1, "loss": "squared_error", **options}
    )


RESULT = run()
SEVERAL = run(loss=["squared_error", "absolute_error"])
CROSS = run(sampler="subgroups")


def test_columns_of_the_tables() -> None:
    by_subgroup = [*OVERALL[1:], "fidelity"]
    assert list(RESULT.overall.columns) == [*OVERALL, *CHECKED]
    assert list(RESULT.by_subgroup.columns) == ["feature", "subgroup", "rule", *by_subgroup]
    assert list(CROSS.by_subgroup.columns) == ["feature", "fold", "subgroup", "rule", *by_subgroup]
    assert list(SEVERAL.overall.columns) == ["loss", *OVERALL, *CHECKED]
    assert list(SEVERAL.per_row.columns) == [
        f"{name}: {loss}" for loss in ("squared_error", "absolute_error") for name in X.columns
    ]
    assert list(RESULT.repeats.columns) == ["feature", "repeat", "estimate"]
    assert RESULT.overall["feature"].tolist() == list(X.columns)
    assert len(RESULT.repeats) == 3 * 6


def test_rules_are_those_of_the_partition_and_n_counts_their_rows() -> None:
    table = RESULT.by_subgroup
    for name in X.columns:
        block = table[table["feature"] == name]
        assert tuple(block["rule"]) == GROUPS[name].rules
        code = GROUPS[name].assign(X)
        assert block["n"].tolist() == np.bincount(code, minlength=len(GROUPS[name])).tolist()
        per_row = RESULT.per_row[name].to_numpy()
        means = [per_row[code == k].mean() for k in range(len(GROUPS[name]))]
        np.testing.assert_allclose(block["estimate"], means, rtol=1e-10)


def test_per_row_has_the_index_of_x() -> None:
    assert RESULT.per_row.index.equals(X.index)
    np.testing.assert_allclose(RESULT.per_row.mean(), RESULT.overall["estimate"], rtol=1e-10)


def test_columns_of_an_interval_belong_together() -> None:
    rows = RESULT.with_noise("test rows")
    for table in (rows.overall, rows.by_subgroup):
        some = table[table["std_error"] > 0]
        assert len(some) >= 2
        half = student.ppf(0.975, some["n"] - 1) * some["std_error"]
        assert (some["conf_low"] <= some["estimate"] - half * (1 - 1e-9)).all()
        assert (some["conf_high"] >= some["estimate"] + half * (1 - 1e-9)).all()
        np.testing.assert_allclose(some["statistic"], some["estimate"] / some["std_error"], rtol=1e-9)
        plain = student.sf(some["statistic"], some["n"] - 1)
        assert (some["p_value"] >= plain * (1 - 1e-9))[some["statistic"] > 0].all()


def test_another_level_gives_another_interval_and_nothing_else() -> None:
    wide, narrow = RESULT.with_level(0.99).overall, RESULT.with_level(0.5).overall
    others = [name for name in OVERALL if not name.startswith("conf")]
    pd.testing.assert_frame_equal(wide[others], RESULT.overall[others])
    rows = RESULT.with_noise("test rows").with_level(0.5).overall
    half = student.ppf(0.75, N - 1) * rows["std_error"]
    assert (rows["estimate"] - rows["conf_low"] >= half * (1 - 1e-7)).all()
    assert (narrow["conf_high"] <= RESULT.overall["conf_high"]).all()
    assert (wide["conf_high"][:2] > RESULT.overall["conf_high"][:2]).all()
    assert RESULT.level == 0.95
    for level in (0, 1, 1.5, "0.9", True):
        with pytest.raises(ParameterError, match="level must be a number between 0 and 1"):
            RESULT.with_level(level)  # type: ignore[arg-type]


def test_one_of_several_losses() -> None:
    for loss in SEVERAL.losses:
        alone, part = run(loss=loss), SEVERAL.for_loss(loss)
        for name in ("overall", "by_subgroup", "per_row", "repeats"):
            pd.testing.assert_frame_equal(getattr(part, name), getattr(alone, name), check_exact=True)
    with pytest.raises(ParameterError, match=r"loss='poisson' is not among .* squared_error, absolute_error"):
        SEVERAL.for_loss("poisson")


def test_quantiles_over_repeats_are_those_of_the_repeats() -> None:
    table = RESULT.over_repeats(quantiles=(0.1, 0.5, 0.975))
    assert list(table.columns) == ["feature", "mean", "median", "q10", "q50", "q97.5"]
    for line in table.to_dict("records"):
        values = RESULT.repeats.query(f"feature == '{line['feature']}'")["estimate"]
        assert line["mean"] == pytest.approx(values.mean())
        assert line["median"] == line["q50"] == pytest.approx(np.median(values))
        assert line["q97.5"] == pytest.approx(np.quantile(values, 0.975))
    by = RESULT.over_repeats(by_subgroup=True)
    assert list(by.columns) == ["feature", "subgroup", "rule", "mean", "median", "q5", "q95"]
    np.testing.assert_allclose(by["mean"], RESULT.by_subgroup["estimate"], rtol=1e-10)
    assert (by["q5"] <= by["q95"]).all()
    with pytest.raises(ParameterError, match=r"quantiles must be numbers from 0 to 1; got 5"):
        RESULT.over_repeats(quantiles=(5,))


def test_text_of_a_result_has_the_largest_first() -> None:
    lines = repr(RESULT).splitlines()
    assert lines[0].startswith(
        "<ImportanceResult: conditional importance of 3 features, 130 rows, sampler subgroups, loss"
    )
    assert [line.split()[0] for line in lines[1:]] == ["b", "a", "level"]


def test_compare_with_itself_is_zero_without_error() -> None:
    table = RESULT.compare(RESULT)
    assert (table[["estimate", "std_error"]] == 0).all().all()
    assert (table["p_value"] == 1).all()


def test_compare_takes_features_and_losses_that_both_have() -> None:
    other = run(sampler="marginal", features=["level", "b"], loss=["absolute_error", "quantile"])
    table = SEVERAL.compare(other)
    assert table["feature"].tolist() == ["b", "level"]
    mine = SEVERAL.for_loss("absolute_error").overall.set_index("feature")["estimate"]
    theirs = other.for_loss("absolute_error").overall.set_index("feature")["estimate"]
    assert table["estimate"].tolist() == [mine[name] - theirs[name] for name in ("b", "level")]
    with pytest.raises(ParameterError, match="no loss, or no feature, in common"):
        RESULT.compare(run(loss="absolute_error"))
    with pytest.raises(ParameterError, match="other must be an ImportanceResult; got dict"):
        RESULT.compare({})  # type: ignore[arg-type]


def test_compare_of_other_rows_is_not_paired() -> None:
    rows = frame_of(N, 7)
    other = run(rows, model(rows) + np.random.default_rng(8).normal(size=N))
    table = RESULT.compare(other)
    expected = np.hypot(RESULT.overall["std_error"], other.overall["std_error"])
    np.testing.assert_allclose(table["std_error"], expected, rtol=1e-9)
    paired = RESULT.compare(run(sampler="marginal"))
    unpaired = np.hypot(RESULT.overall["std_error"], run(sampler="marginal").overall["std_error"])
    assert (paired["std_error"][:2] < 0.9 * unpaired[:2]).all()


def test_compare_of_different_rows_gives_the_same_p_value_in_both_orders() -> None:
    """20 rows against 280: degrees of freedom must not be those of the result that is named first."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(300, 2)), columns=["a", "b"])
    y = X["a"] + rng.normal(size=300)
    options: dict[str, Any] = {"sampler": "marginal", "random_state": 1}
    few, many = (
        sg.importance(lambda rows: rows["a"], X[part], y[part], **options) for part in (slice(20), slice(20, 300))
    )
    one, other = few.compare(many), many.compare(few)
    np.testing.assert_allclose(one["p_value"], other["p_value"], rtol=1e-10)
    np.testing.assert_allclose(one["conf_low"], -other["conf_high"], rtol=1e-10)


def test_compare_of_other_weights_is_not_paired() -> None:
    """Rows that count differently are no pairs: the influence of each is scaled by its own total."""
    weights = np.random.default_rng(0).integers(1, 4, N)
    other = run(sample_weight=weights)
    expected = np.hypot(RESULT.overall["std_error"], other.overall["std_error"])
    np.testing.assert_allclose(RESULT.compare(other)["std_error"], expected, rtol=1e-9)
    marginal = run(sample_weight=weights, sampler="marginal")
    unpaired = np.hypot(other.overall["std_error"], marginal.overall["std_error"])
    assert (other.compare(marginal)["std_error"][:2] < 0.95 * unpaired[:2]).all()


def tables_of(result: sg.ImportanceResult) -> list[Any]:
    return [result.overall, result.by_subgroup, result.per_row, result.repeats]


def equal(one: Any, two: Any) -> bool:
    if isinstance(one, pd.DataFrame):
        pd.testing.assert_frame_equal(one, two, check_exact=True)
        return True
    # Estimates of empty subgroups are NaN, and NaN is not NaN.
    return type(one) is type(two) and repr(one.to_pandas()) == repr(two.to_pandas())


WEIGHTS = np.arange(N) % 3
RESULTS: dict[str, Any] = {
    "subgroups": lambda: RESULT,
    "several losses": lambda: SEVERAL,
    "cross-fitted": lambda: CROSS,
    "frequencies": lambda: run(sample_weight=sg.FrequencyWeights(WEIGHTS)),
    "weights": lambda: run(sample_weight=1 + WEIGHTS),
    "level": lambda: RESULT.with_level(0.8),
    "plain index": lambda: run(X.reset_index(drop=True)),
    "array": lambda: sg.importance(lambda X: X[:, 0], X[["a", "b"]].to_numpy(), Y, sampler="marginal", random_state=0),
    "polars": lambda: run(pl.from_pandas(X)),
    "pyarrow": lambda: run(pa.Table.from_pandas(X, preserve_index=False)),
    "group": lambda: run(features=[["a", "b"], "level"], sampler="marginal"),
}


@pytest.mark.parametrize("make", RESULTS.values(), ids=list(RESULTS))
def test_result_is_the_same_after_saving_and_after_pickling(make: Any, tmp_path: Path) -> None:
    result = make()
    result.save(tmp_path / "result.json")
    assert [path.name for path in tmp_path.iterdir()] == ["result.json"]
    for back in (sg.ImportanceResult.load(tmp_path / "result.json"), pickle.loads(pickle.dumps(result))):
        assert all(equal(one, two) for one, two in zip(tables_of(back), tables_of(result), strict=True))
        assert back.settings == result.settings
        assert back.baseline == result.baseline
        assert back.features == result.features
        assert (back.compare(result)["estimate"].to_numpy() == 0).all()


def test_score_is_the_same_after_saving(tmp_path: Path) -> None:
    result = run(loss="root_mean_squared_error")
    result.save(str(tmp_path / "result.json"))
    assert equal(sg.ImportanceResult.load(tmp_path / "result.json").overall, result.overall)


def test_index_of_dates_is_not_kept_in_a_file(tmp_path: Path) -> None:
    result = run(X.set_index(pd.date_range("2024-01-01", periods=N)))
    result.save(tmp_path / "result.json")
    back = sg.ImportanceResult.load(tmp_path / "result.json").per_row
    assert back.index.equals(pd.RangeIndex(N))
    assert np.array_equal(back.to_numpy(), result.per_row.to_numpy())


def damaged(text: str) -> dict[str, str]:
    values = json.loads(text)
    short = json.loads(text)
    short["scores"][0]["rows"]["base64"] = short["scores"][0]["rows"]["base64"][:-8]
    strange = json.loads(text)
    strange["scores"][0]["rows"]["base64"] = "?" + strange["scores"][0]["rows"]["base64"][1:]
    shape = json.loads(text)
    shape["scores"][0]["rows"]["shape"] = [1, 2]
    return {
        "cut off": text[: len(text) // 2],
        "empty": "",
        "not JSON": "feature,estimate\na,1\n",
        "a list": "[]",
        "another kind": json.dumps({**values, "kind": "subgrove effect"}),
        "another format": json.dumps({**values, "format": 99}),
        "a part missing": json.dumps({name: value for name, value in values.items() if name != "scores"}),
        "a strange part": json.dumps({**values, "scores": ["a"]}),
        "an unknown part": json.dumps({**values, "scores": [{**values["scores"][0], "colour": 1}]}),
        "a short array": json.dumps(short),
        "a strange letter": json.dumps(strange),
        "a wrong shape": json.dumps(shape),
    }


@pytest.mark.parametrize("kind", list(damaged('{"scores": [{"rows": {"base64": "12345678"}}]}')))
def test_damaged_files_are_rejected(kind: str, tmp_path: Path) -> None:
    """The user saw, for some of these, an AttributeError or a ValueError of NumPy."""
    path = tmp_path / "result.json"
    RESULT.save(path)
    path.write_text(damaged(path.read_text(encoding="utf-8"))[kind], encoding="utf-8")
    with pytest.raises(FormatError, match=r"result\.json"):
        sg.ImportanceResult.load(path)


def test_bytes_that_are_not_text_are_rejected(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    path.write_bytes(b"\xff\xfe\x00\x80")
    with pytest.raises(FormatError):
        sg.ImportanceResult.load(path)


def test_a_missing_file_raises_the_error_of_python(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        sg.ImportanceResult.load(tmp_path / "nothing.json")


@pytest.mark.parametrize("step", ["write", "replace"])
def test_file_that_is_there_stays_if_writing_fails(step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "result.json"
    RESULT.save(path)
    before = path.read_bytes()

    def full(*arguments: Any, **options: Any) -> Any:
        raise OSError("No space left on device")

    class Full:
        def __init__(self, file: Any) -> None:
            self.file = file
            self.write = full

        def __enter__(self) -> Any:
            return self

        def __exit__(self, *_: Any) -> None:
            self.file.close()

    real = Path.open

    def opened(path: Path, *arguments: Any, **options: Any) -> Any:
        file = real(path, *arguments, **options)  # the unfinished file is there when writing fails
        assert path.exists()
        return Full(file)

    if step == "write":
        monkeypatch.setattr(Path, "open", opened)
    else:
        monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        SEVERAL.save(path)
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["result.json"]


def test_result_is_frozen() -> None:
    with pytest.raises(AttributeError):
        RESULT.level = 0.5  # type: ignore[misc]


def test_progress_is_quiet_where_there_is_no_terminal(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run()
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("SUBGROVE_PROGRESS", "0")
    run()
    assert capfd.readouterr() == ("", "")


def test_a_setting_of_progress_that_is_neither_0_nor_1_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUBGROVE_PROGRESS", "yes")
    with pytest.raises(ParameterError, match=r"SUBGROVE_PROGRESS must be 0 .* got 'yes'"):
        run()


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_progress_is_shown_on_request(
    n_jobs: int, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TTY_COMPATIBLE", "1")  # rich takes standard error for a terminal then
    monkeypatch.setenv("SUBGROVE_PROGRESS", "1")
    shown = run(n_jobs=n_jobs)
    out, err = capfd.readouterr()
    assert out == ""
    assert "Predicting" in err
    assert equal(shown.overall, RESULT.overall)


def test_place_that_is_none_is_rejected_before_anything_is_written(tmp_path: Path) -> None:
    imp = sg.importance(
        lambda X: X["a"].to_numpy(), pd.DataFrame({"a": np.arange(9.0)}), np.zeros(9), sampler="marginal"
    )
    with pytest.raises(ParameterError, match="is in a folder that does not exist"):
        imp.save(tmp_path / "none" / "importance.json")
    with pytest.raises(ParameterError, match="is a folder"):
        imp.save(tmp_path)
    assert not list(tmp_path.iterdir())


def with_damage(values: Any, random: Random) -> Any:
    """Return a copy of JSON values in which one, anywhere, is removed or replaced."""
    copy = json.loads(json.dumps(values))
    place, key = copy, None
    while key is None or (isinstance(place[key], dict | list) and place[key] and random.random() < 0.8):
        place = copy if key is None else place[key]
        key = random.choice(list(place) if isinstance(place, dict) else range(len(place)))
    if random.random() < 0.2 and isinstance(place, dict):
        del place[key]
    else:
        place[key] = random.choice([None, -1, 1e400, "x", "", [], {}, [[[]]], True, 10**30, "\ud800"])
    return copy


def test_a_damaged_file_is_reported_when_it_is_loaded_and_not_later(tmp_path: Path) -> None:
    X = pd.DataFrame({"a": np.arange(40.0) % 7, "b": np.arange(40.0) % 5})
    imp = sg.importance(lambda Z: np.asarray(Z["a"]), X, X["b"], sampler="marginal", n_repeats=2, random_state=1)
    path = tmp_path / "result.json"
    imp.save(path)
    saved, random, rejected = json.loads(path.read_text()), Random(1), 0
    for _ in range(150):
        path.write_text(json.dumps(with_damage(saved, random)))
        try:
            found = sg.ImportanceResult.load(path)
        except FormatError:
            rejected += 1
        else:
            assert len(found.overall) == 2
            assert repr(found)
    assert rejected > 50
    path.write_text("[" * 100_000)
    with pytest.raises(FormatError, match=r"result\.json is not a file"):
        sg.ImportanceResult.load(path)

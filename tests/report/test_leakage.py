"""Columns that nearly determine the target are found, and no others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from subgrove._report.inputs import read_inputs
from subgrove._report.suspicious_columns import leakage_sentence, leaking_columns

RNG = np.random.default_rng(4)


def leaks(X: pd.DataFrame, y: Any) -> list[tuple[str, ...]]:
    numbers = pd.api.types.is_numeric_dtype(pd.Series(y))
    loss = "absolute_error" if numbers else "zero_one"
    constant = y[0] if not numbers else 0.0
    inputs = read_inputs(
        lambda X: np.repeat(constant, len(X)), (X, y), (X, y), None, loss, "auto", 0.01, 3, 1, "target", None
    )
    return [one.columns for one in leaking_columns(inputs)]


def noise_of(n: int) -> pd.DataFrame:
    X = pd.DataFrame(RNG.normal(size=(n, 4)), columns=["a", "b", "c", "d"])
    return X.assign(kind=pd.Categorical(RNG.choice(list("xyz"), n)))


TRANSFORMATIONS: dict[str, Callable[[Any], Any]] = {
    "copy": lambda y: y,
    "copy far from 0": lambda y: 1e9 + y,
    "falling": lambda y: -3 * y + 7,
    "monotone": lambda y: np.exp(0.5 * y),
    "folded": lambda y: np.where(np.floor(2 * y) % 2 == 0, y, 100 - y),
    "noisy copy": lambda y: y + 0.05 * y.std() * RNG.normal(size=len(y)),
    "copy with missing values": lambda y: np.where(np.arange(len(y)) % 500 == 3, np.nan, y),
}


@pytest.mark.parametrize("n", [60, 300, 5000])
@pytest.mark.parametrize("name", ["copy", "copy far from 0", "falling", "monotone", "noisy copy"])
def test_a_function_of_the_target_is_found(n: int, name: str) -> None:
    y = np.exp(RNG.normal(size=n)) if name == "copy" else RNG.normal(size=n)
    assert leaks(noise_of(n).assign(leak=TRANSFORMATIONS[name](y)), y) == [("leak",)]


@pytest.mark.parametrize("name", ["folded", "copy with missing values"])
def test_a_function_that_is_not_monotone_and_missing_values_are_found(name: str) -> None:
    y = RNG.normal(size=3000)
    assert leaks(noise_of(3000).assign(leak=TRANSFORMATIONS[name](y)), y) == [("leak",)]


def test_a_copy_of_a_target_with_an_outlier_and_many_zeros_is_found() -> None:
    y = np.where(RNG.random(2000) < 0.7, 0.0, RNG.gamma(1, 1, 2000))
    y[3] = 1e6
    assert leaks(noise_of(2000).assign(leak=y), y) == [("leak",)]


@pytest.mark.parametrize("kind", ["numbers", "levels", "missing"])
def test_a_code_of_the_classes_is_found(kind: str) -> None:
    codes = RNG.choice(3, 1500, p=[0.9, 0.08, 0.02])
    y = np.array(["no", "maybe", "yes"])[codes]
    if kind == "missing":  # a date of payment, say, that only one class has
        y = np.where(codes == 0, "no", "yes")
    leak: Any = {
        "numbers": np.array([17.0, 3.0, 99.0])[codes],
        "levels": pd.Categorical(np.array(["q", "r", "s"])[codes]),
        "missing": np.where(codes == 0, np.nan, RNG.normal(size=1500)),
    }[kind]
    assert leaks(noise_of(1500).assign(leak=leak), y) == [("leak",)]


@pytest.mark.parametrize("share", [0.5, 0.85, 0.95])
def test_a_strong_predictor_is_no_leak(share: float) -> None:
    signal = RNG.normal(size=4000)
    y = np.sqrt(share) * signal + np.sqrt(1 - share) * RNG.normal(size=4000)
    assert leaks(noise_of(4000).assign(strong=signal, sum=signal + 2), y) == []


def test_a_strong_predictor_of_classes_is_no_leak() -> None:
    signal = RNG.normal(size=4000)
    y = np.where(signal + 0.2 * RNG.normal(size=4000) > 0, "yes", "no")  # 94 % are predicted correctly
    assert leaks(noise_of(4000).assign(strong=signal, id=np.arange(4000)), y) == []


def test_levels_that_occur_once_are_no_leak() -> None:
    X = noise_of(500).assign(name=[f"name {at}" for at in range(500)])
    assert leaks(X, RNG.normal(size=500)) == []


def test_a_target_that_is_a_sum_of_columns_is_found() -> None:
    X = noise_of(800)
    first, second = RNG.gamma(1, 30, 800), RNG.gamma(1, 100, 800)
    assert leaks(X.assign(casual=first, registered=second), first + second) == [("registered", "casual")]
    mean = (first + second + 40 * X["a"]) / 3
    assert set(leaks(X.assign(casual=first, registered=second), mean.to_numpy())[0]) == {"registered", "casual", "a"}
    unclear = first + second + 10 * RNG.normal(size=800)
    assert leaks(X.assign(casual=first, registered=second), unclear) == []


def test_every_leak_is_named() -> None:
    y = RNG.normal(size=500)
    X = noise_of(500).assign(**{f"copy_{at}": y * at for at in range(1, 7)})
    inputs = read_inputs(lambda X: X["a"], (X, y), (X, y), None, None, "auto", 0.01, 3, 1, "price", None)
    sentence = leakage_sentence(leaking_columns(inputs), "price")
    assert all(f"copy_{at} (more than 99 %)" in sentence for at in range(1, 7))


def test_few_rows_and_a_constant_target_have_no_leak() -> None:
    X = noise_of(15)
    assert leaks(X, X["a"].to_numpy()) == []
    assert leaks(noise_of(100), np.zeros(100)) == []


def test_columns_of_any_kind_and_size_are_read() -> None:
    y = pd.Series(RNG.integers(0, 50, 200), dtype="Int64")
    days = pd.to_datetime("2024-01-01") + pd.to_timedelta(y.astype(int), unit="D")
    X = noise_of(200).assign(huge=RNG.normal(size=200) * 1e307, empty=np.nan, constant=1.0, flag=y > 20, day=days)
    assert leaks(X, y) == [("day",)]

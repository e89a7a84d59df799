"""Validation of the arguments of `fidelity`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import subgrove as sg
from subgrove.exceptions import InputError, ParameterError, SameRowsWarning, SubgroveWarning

RNG = np.random.default_rng(0)
TRAIN, TEST = (pd.DataFrame(RNG.normal(size=(n, 2)), columns=["u", "v"]) for n in (80, 60))


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"samplers": ["subgroup"]}, "'subgroup' is not a sampler. Known names"),
        ({"samplers": "marginale"}, "'marginale' is not a sampler"),
        ({"samplers": [3]}, "samplers: sampler must be a name.*got int"),
        ({"samplers": [sg.samplers.Knockoffs]}, "Knockoffs"),
        ({"features": "x"}, "features names 'x'"),
        ({"features": []}, "features is empty"),
        ({"n_repeats": 0}, "n_repeats"),
        ({"n_repeats": 1.5}, "n_repeats"),
        ({"max_rows": 3}, "max_rows"),
        ({"random_state": -1}, "random_state must be"),
        ({"n_jobs": 0}, "n_jobs must be"),
        ({"classifier": "forest"}, "classifier must be"),
    ],
)
def test_invalid_arguments_raise(more: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        sg.fidelity(TRAIN, TEST, **more)


@pytest.mark.parametrize(
    ("train", "test", "reference", "message"),
    [
        (TRAIN, TEST[:3], None, "test needs at least 4 rows"),
        (TRAIN, TEST[:0], None, "test has 0 rows"),
        (TRAIN, TEST, TEST[:1], "reference needs at least 2 rows"),
        (TRAIN, TEST[["u"]], None, "test lacks 'v'"),
        (TRAIN, TEST, TEST[["v"]], "reference lacks 'u'"),
        (TRAIN[:0], TEST, None, "train has 0 rows"),
        (TRAIN, TEST.assign(u="text"), None, "'u'"),
        (TRAIN, TEST.assign(u=np.inf), None, "'u'"),
    ],
)
def test_tables_that_cannot_be_compared_raise(train: Any, test: Any, reference: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        sg.fidelity(train, test, reference=reference, samplers=["subgroups"], n_repeats=1)


def test_same_train_and_test_rows_cause_a_warning() -> None:
    with pytest.warns(SameRowsWarning, match="train and test are the same rows"):
        sg.fidelity(TRAIN, TRAIN, samplers=[], n_repeats=1, classifier=False, random_state=1)


def test_columns_missing_in_train_are_ignored_with_a_warning() -> None:
    options: dict[str, Any] = {"samplers": [], "features": "u", "n_repeats": 1, "classifier": False, "random_state": 1}
    with pytest.warns(SubgroveWarning, match="train lacks 'w'"):
        more = sg.fidelity(TRAIN, TEST.assign(w=1.0), **options)
    np.testing.assert_array_equal(more.squared_mmd, sg.fidelity(TRAIN, TEST, **options).squared_mmd)


@pytest.mark.parametrize("value", [1e300, 1.5e308])
def test_overflowing_distances_are_reported(value: float) -> None:
    train, test = TRAIN.assign(u=value), TEST.assign(u=value * (TEST["u"] / TEST["u"].abs().max()))
    with pytest.raises(sg.exceptions.SamplerError, match="median distance"):
        sg.fidelity(train, test, samplers=["intervals"], classifier=False, n_repeats=1, random_state=1)

"""Adjusted p-values: by hand, against scipy, and in tables."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import false_discovery_control

import subgrove as sg
from subgrove._core.kinds import Floats
from subgrove._importance.intervals import benjamini_hochberg, holm


def test_holm_by_hand() -> None:
    """Sorted 0.01, 0.02, 0.03, 0.6: times 4, 3, 2, 1, and never less than the one before."""
    np.testing.assert_allclose(holm([0.03, 0.01, 0.6, 0.02]), [0.06, 0.04, 0.6, 0.06])
    np.testing.assert_allclose(holm([0.5, 0.6]), [1.0, 1.0])


def test_benjamini_hochberg_is_that_of_scipy() -> None:
    rng = np.random.default_rng(0)
    for n in (1, 2, 17):
        p_values = rng.uniform(size=n) ** 2
        np.testing.assert_allclose(benjamini_hochberg(p_values), false_discovery_control(p_values, method="bh"))


@pytest.mark.parametrize("method", [holm, benjamini_hochberg])
def test_unknown_p_values_stay_unknown_and_do_not_count(method: object) -> None:
    assert callable(method)
    found = method([0.01, np.nan, 0.03])
    np.testing.assert_allclose(found, [method([0.01, 0.03])[0], np.nan, method([0.01, 0.03])[1]])
    assert len(method([])) == 0
    assert np.isnan(method([np.nan])).all()


def test_tables_adjust_over_their_lines_within_a_loss() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(80, 4))
    y = X[:, 0] + rng.normal(size=80)

    def model(X: Floats) -> Floats:
        return X[:, 0] + 0.1 * X[:, 1] + 0.05 * X[:, 2]

    losses = ["squared_error", "absolute_error"]
    imp = sg.importance(model, X, y, sampler="marginal", loss=losses, random_state=0)
    for table in (imp.overall, imp.by_subgroup):
        for loss in losses:
            part = table[table["loss"] == loss]
            assert len(part) == 4
            np.testing.assert_allclose(part["p_holm"], holm(part["p_value"]))
            np.testing.assert_allclose(part["p_bh"], benjamini_hochberg(part["p_value"]))
            assert (part["p_holm"] > part["p_value"]).any()

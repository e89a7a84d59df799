"""Displays draw what the plots draw, with the attributes of scikit-learn's displays."""

from __future__ import annotations

from typing import Any

import pytest

import subgrove as sg
from subgrove.exceptions import ParameterError
from subgrove.sklearn import EffectDisplay, ImportanceDisplay

DATA = sg.simulate.scenario("linear").sample(120, random_state=1)
OPTIONS: dict[str, Any] = {"sampler": "marginal", "features": ["x1", "x2"], "n_repeats": 2, "random_state": 1}


class Counting:
    calls = 0

    def predict(self, X: Any) -> Any:
        self.calls += 1
        return 2 * X["x1"].to_numpy() + X["x2"].to_numpy()


@pytest.fixture(autouse=True)
def _no_window() -> Any:
    import matplotlib.pyplot as plt

    plt.switch_backend("Agg")
    yield
    plt.close("all")


def test_an_importance_display_has_axes_and_figure_and_draws_again_without_predictions() -> None:
    import matplotlib.pyplot as plt

    model = Counting()
    display = ImportanceDisplay.from_estimator(model, DATA.X, DATA.y, **OPTIONS)
    calls = model.calls
    assert display.figure_ is display.ax_.figure
    figure, ax = plt.subplots()
    assert display.plot(ax=ax, top=1) is display
    assert (display.ax_, display.figure_, model.calls) == (ax, figure, calls)


def test_from_result_draws_what_the_plot_draws() -> None:
    result = sg.importance(Counting(), DATA.X, DATA.y, **OPTIONS)
    one, two = ImportanceDisplay.from_result(result).ax_, sg.plots.importance(result)
    assert [text.get_text() for text in one.get_yticklabels()] == [text.get_text() for text in two.get_yticklabels()]
    assert one.get_xlim() == two.get_xlim()


@pytest.mark.parametrize("features", [["x1", "x2"], [0, 1]])
def test_an_effect_display_has_a_panel_for_each_feature(features: Any) -> None:
    display = EffectDisplay.from_estimator(Counting(), DATA.X, features, subgroups=None)
    assert [ax.get_xlabel() for ax in display.axes_] == ["x1", "x2"]
    assert display.ax_ is display.axes_[0]
    assert display.figure_ is display.axes_[1].figure


def test_positions_are_columns_of_an_array() -> None:
    display = EffectDisplay.from_estimator(lambda X: X[:, 0], DATA.X.to_numpy(), [1], subgroups=None)
    assert display.effects[0].feature == "x1"


def test_panels_are_drawn_on_given_axes_or_in_the_place_of_one() -> None:
    import matplotlib.pyplot as plt

    display = EffectDisplay([sg.effect(Counting(), DATA.X, name, subgroups=None) for name in ("x1", "x2", "x3")])
    _, axes = plt.subplots(1, 3)
    assert list(display.plot(ax=axes).axes_) == list(axes)
    figure, ax = plt.subplots()
    drawn = display.plot(ax=ax, n_cols=2).axes_
    assert not ax.axison
    assert {one.figure for one in drawn} == {figure}
    assert drawn[0].get_subplotspec().get_gridspec().ncols == 2
    with pytest.raises(ParameterError, match=r"ax must be one Axes, or one for each of the 3 effects; got 2\."):
        display.plot(ax=axes[:2])


def test_effects_of_pairs_are_surfaces() -> None:
    display = EffectDisplay.from_estimator(Counting(), DATA.X, [("x1", "x2")], grid_resolution=3)
    assert display.ax_.get_xlabel() == "x1"


@pytest.mark.parametrize("make", [lambda: ImportanceDisplay(3), lambda: EffectDisplay([]), lambda: EffectDisplay([3])])  # type: ignore[arg-type,list-item]
def test_what_is_not_a_result_is_named(make: Any) -> None:
    with pytest.raises(ParameterError, match=r"must be an (ImportanceResult|Effect)"):
        make()


def test_importing_subgrove_does_not_import_scikit_learn() -> None:
    import subprocess
    import sys

    code = "import sys, subgrove; sys.exit('sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0

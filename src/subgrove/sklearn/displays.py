"""`ImportanceDisplay` and `EffectDisplay`: plots with the conventions of scikit-learn's displays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from subgrove import plots
from subgrove._effects import Effect, effect
from subgrove._importance.importance import importance
from subgrove._importance.result import ImportanceResult
from subgrove.exceptions import ParameterError

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class ImportanceDisplay:
    """Plot of the importance of features, as the displays of `sklearn.inspection`.

    Parameters
    ----------
    result : ImportanceResult
        What `importance` returned.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes of the last call of `plot`.
    figure_ : matplotlib Figure
        Their figure.

    Examples
    --------
    >>> import subgrove as sg
    >>> from sklearn.linear_model import LinearRegression
    >>> from subgrove.sklearn import ImportanceDisplay
    >>> linear = sg.simulate.scenario("linear")
    >>> train, test = linear.sample(300, random_state=1), linear.sample(200, random_state=2)
    >>> model = LinearRegression().fit(train.X, train.y)
    >>> display = ImportanceDisplay.from_estimator(
    ...     model, test.X, test.y, train=train.X, features=["x1", "x2"], random_state=1
    ... )
    >>> display.ax_.get_xlabel()
    'conditional importance (increase of absolute error)'
    >>> display.result.features
    ('x1', 'x2')
    """

    ax_: Axes
    figure_: Any  # Figure, or SubFigure of nested figures

    def __init__(self, result: ImportanceResult) -> None:
        if not isinstance(result, ImportanceResult):
            raise ParameterError(f"result must be an ImportanceResult; got {type(result).__name__}.")
        self.result = result

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, ax: Axes | None = None, top: int | None = None, **options: Any
    ) -> Self:
        """Compute the importance of features and draw it.

        Parameters
        ----------
        estimator : object or callable
            Fitted model.
        X : table
            Test rows.
        y : array
            Target of the test rows.
        ax : matplotlib Axes, optional
            Axes to draw on; by default those of a new figure.
        top : int, optional
            Number of features to draw; all by default.
        **options
            Further arguments of `importance`: `train`, `sampler`, `loss`, `random_state` and so on.

        Returns
        -------
        ImportanceDisplay
            With the result, axes and figure.
        """
        return cls.from_result(importance(estimator, X, y, **options), ax=ax, top=top)

    @classmethod
    def from_result(cls, result: ImportanceResult, *, ax: Axes | None = None, top: int | None = None) -> Self:
        """Draw a result of `importance`.

        Parameters
        ----------
        result : ImportanceResult
            The result.
        ax : matplotlib Axes, optional
            Axes to draw on; by default those of a new figure.
        top : int, optional
            Number of features to draw; all by default.

        Returns
        -------
        ImportanceDisplay
            With the result, axes and figure.
        """
        return cls(result).plot(ax=ax, top=top)

    def plot(self, *, ax: Axes | None = None, top: int | None = None, loss: str | None = None) -> Self:
        """Draw the stored result; nothing is computed again.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; by default those of a new figure.
        top : int, optional
            Number of features to draw; all by default.
        loss : str, optional
            Name of the loss, if there are several; the first by default.

        Returns
        -------
        ImportanceDisplay
            The display itself.
        """
        self.ax_ = plots.importance(self.result, ax=ax, top=top, loss=loss)
        self.figure_ = self.ax_.figure
        return self


class EffectDisplay:
    """Plot of the effects of features, one panel for each, as `sklearn.inspection.PartialDependenceDisplay`.

    Parameters
    ----------
    effects : list of Effect
        What `effect` returned for each feature.

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes
        Panels of the last call of `plot`.
    ax_ : matplotlib Axes
        The first panel.
    figure_ : matplotlib Figure
        Their figure.

    Examples
    --------
    >>> import subgrove as sg
    >>> from sklearn.linear_model import LinearRegression
    >>> from subgrove.sklearn import EffectDisplay
    >>> data = sg.simulate.scenario("linear").sample(300, random_state=1)
    >>> model = LinearRegression().fit(data.X, data.y)
    >>> display = EffectDisplay.from_estimator(model, data.X, ["x1", "x2"], subgroups=None)
    >>> [ax.get_xlabel() for ax in display.axes_]
    ['x1', 'x2']
    """

    axes_: Any
    ax_: Axes
    figure_: Any  # Figure, or SubFigure of nested figures

    def __init__(self, effects: Effect | Sequence[Effect]) -> None:
        effects = [effects] if isinstance(effects, Effect) else list(effects)
        if not effects or not all(isinstance(one, Effect) for one in effects):
            raise ParameterError("effects must be an Effect, which `effect` returns, or a list of at least one.")
        self.effects = effects

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, features: Any, *, ax: Any = None, n_cols: int = 3, **options: Any
    ) -> Self:
        """Compute the effects of features and draw them.

        Parameters
        ----------
        estimator : object or callable
            Fitted model.
        X : table
            Rows to average over.
        features : list of str, int or pair of str
            A panel for each; a pair is drawn as a surface. A single name is a list of one.
        ax : matplotlib Axes or array of Axes, optional
            Where to draw: one Axes, which is replaced by a grid of panels if there are several features, or an Axes
            for each feature. By default a new figure.
        n_cols : int, default 3
            Panels beside each other.
        **options
            Further arguments of `effect`: `kind`, `subgroups`, `grid_resolution`, `output` and so on.

        Returns
        -------
        EffectDisplay
            With the effects, axes and figure.
        """
        names = [features] if isinstance(features, str | int) else list(features)
        columns = list(getattr(X, "columns", ()))
        named = [(columns[one] if columns else f"x{one}") if isinstance(one, int) else one for one in names]
        return cls.from_result([effect(estimator, X, one, **options) for one in named], ax=ax, n_cols=n_cols)

    @classmethod
    def from_result(cls, effects: Effect | Sequence[Effect], *, ax: Any = None, n_cols: int = 3) -> Self:
        """Draw results of `effect`.

        Parameters
        ----------
        effects : Effect or list of Effect
            The results.
        ax : matplotlib Axes or array of Axes, optional
            Where to draw, as in `from_estimator`.
        n_cols : int, default 3
            Panels beside each other.

        Returns
        -------
        EffectDisplay
            With the effects, axes and figure.
        """
        return cls(effects).plot(ax=ax, n_cols=n_cols)

    def plot(self, *, ax: Any = None, n_cols: int = 3) -> Self:
        """Draw the stored effects; nothing is computed again.

        Parameters
        ----------
        ax : matplotlib Axes or array of Axes, optional
            Where to draw, as in `from_estimator`.
        n_cols : int, default 3
            Panels beside each other.

        Returns
        -------
        EffectDisplay
            The display itself.
        """
        if ax is None:
            one = len(self.effects) == 1
            axes = [plots.effect(self.effects[0])] if one else list(plots.effects(*self.effects, columns=n_cols))
        else:
            axes = [plots.effect(one, ax=each) for one, each in zip(self.effects, self._axes(ax, n_cols), strict=True)]
        self.axes_ = np.array(axes, dtype=object)
        self.ax_ = self.axes_.flat[0]
        self.figure_ = self.ax_.figure
        return self

    def _axes(self, ax: Any, n_cols: int) -> list[Any]:
        """Return an axes for each effect: those that were given, or panels in the place of one."""
        given = np.asarray(ax, dtype=object).ravel().tolist()
        n = len(self.effects)
        if len(given) == n:
            return given
        if len(given) != 1:
            raise ParameterError(f"ax must be one Axes, or one for each of the {n} effects; got {len(given)}.")
        ax = given[0]
        ax.set_axis_off()
        columns = min(n, n_cols)
        grid = ax.get_subplotspec().subgridspec(-(-n // columns), columns)
        return [ax.figure.add_subplot(grid[at // columns, at % columns]) for at in range(n)]

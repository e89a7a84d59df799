"""Parameter conventions of scikit-learn, and checks of arguments."""

from __future__ import annotations

import inspect
import sys
import warnings
from collections.abc import Callable
from difflib import get_close_matches
from functools import cache, wraps
from typing import Any, ParamSpec, Self, TypeVar

import numpy as np

from subgrove.exceptions import ArgumentNameError, InputError, ParameterError, SubgroveWarning

Arguments = ParamSpec("Arguments")
Returned = TypeVar("Returned")
_SYNONYMS = {  # of other packages -> arguments here
    "scoring": ("loss",),
    "metric": ("loss",),
    "seed": ("random_state",),
    "random_seed": ("random_state",),
    "estimator": ("model",),
    "method": ("sampler", "kind"),
    "n_permutations": ("n_repeats",),
    "weights": ("sample_weight",),
    "features": ("feature",),
    "feature": ("features",),
    "feature_names": ("features", "feature"),
    "n_points": ("grid_resolution",),
    "target": ("output",),
    "verbose": ("progress",),
    "X_train": ("train",),
}


class ParamsMixin:
    """`get_params` and `set_params` as in scikit-learn, for constructors that only store their arguments.

    `fit` returns a new, fitted object and does not change this one.
    """

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the arguments of the constructor by name.

        Parameters
        ----------
        deep : bool
            Ignored; for compatibility with scikit-learn.
        """
        return {name: getattr(self, name) for name in _argument_names(type(self).__init__)}

    def plain_params(self) -> dict[str, Any]:
        """Return the parameters with numpy numbers as Python numbers, for JSON."""
        return {
            name: value.item() if isinstance(value, np.generic) else value for name, value in self.get_params().items()
        }

    def set_params(self, **params: Any) -> Self:
        """Set parameters in place.

        Parameters
        ----------
        **params : object
            New values by name.
        """
        known = self.get_params()
        for name, value in params.items():
            if name not in known:
                raise ParameterError(f"{type(self).__name__} has no parameter {name!r}; it has {', '.join(known)}.")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.get_params().items())})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and self.get_params() == other.get_params()

    def __hash__(self) -> int:
        return hash((type(self), tuple(self.get_params().items())))

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_") and name in self._of_the_fitted():
            raise AttributeError(
                f"{type(self).__name__} has no {name!r}: fit returns the fitted object, "
                f"as in `fitted = {type(self).__name__}(...).fit(...)`, and that has it."
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @classmethod
    def _of_the_fitted(cls) -> frozenset[str]:
        """Return the names of attributes that only the fitted object has."""
        return frozenset()


@cache
def _argument_names(constructor: Callable[..., None]) -> tuple[str, ...]:
    return tuple(inspect.signature(constructor).parameters)[1:]


def public_names(fitted: type) -> frozenset[str]:
    """Return the public attributes of a dataclass."""
    fields = getattr(fitted, "__dataclass_fields__", {})
    return frozenset(name for name in (*dir(fitted), *fields) if not name.startswith("_"))


def names_arguments(usage: str = "") -> Callable[[Callable[Arguments, Returned]], Callable[Arguments, Returned]]:
    """Return a decorator: unknown arguments raise an error that names the right ones; `usage` shows the positions."""

    def decorate(function: Callable[Arguments, Returned]) -> Callable[Arguments, Returned]:
        parameters = inspect.signature(function).parameters
        open_ended = any(each.kind is each.VAR_KEYWORD for each in parameters.values())
        positional = [name for name, each in parameters.items() if each.kind is each.POSITIONAL_OR_KEYWORD]

        @wraps(function)
        def checked(*args: Arguments.args, **options: Arguments.kwargs) -> Returned:
            for name in options:
                if name not in parameters and not open_ended:
                    meant = [each for each in _SYNONYMS.get(name, ()) if each in parameters]
                    meant = meant or get_close_matches(name, parameters, 1) or list(parameters)
                    known = f"use {meant[0]}=" if len(meant) < len(parameters) else f"it has {', '.join(meant)}"
                    raise ArgumentNameError(f"{function.__name__} has no argument {name!r}; {known}.")
            if len(args) > len(positional):
                raise ArgumentNameError(
                    f"{function.__name__} takes {len(positional)} positional arguments, {', '.join(positional)}; got "
                    f"{len(args)}. {usage or 'Pass the others by name.'}"
                )
            return function(*args, **options)

        return checked

    return decorate


def warn(text: str, category: type[Warning] = SubgroveWarning) -> None:
    """Warn, in the line of the first caller outside of this package."""
    frame, level = sys._getframe(), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "subgrove":
        frame, level = frame.f_back, level + 1
    warnings.warn(text, category, stacklevel=level)


def whole_number(name: str, value: Any, *, least: int) -> int:
    """Return `value` as an int, or raise an error that names the argument."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer) or value < least:
        raise ParameterError(f"{name} must be a whole number >= {least}; got {value!r}.")
    if value > sys.maxsize:
        raise ParameterError(f"{name} must be a whole number <= {sys.maxsize}; got one of {len(str(value))} digits.")
    return int(value)


def true_or_false(name: str, value: Any) -> bool:
    """Return `value` as a bool, or raise an error that names the argument."""
    if not isinstance(value, bool | np.bool_ | int):
        raise ParameterError(f"{name} must be True or False; got {type(value).__name__}.")
    return bool(value)


def number_in(name: str, value: Any, *, low: float, high: float) -> float:
    """Return `value` as a float in [low, high], or raise an error that names the argument."""
    is_number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool | np.bool_)
    if not is_number or not low <= value <= high:
        raise ParameterError(f"{name} must be a number from {low:g} to {high:g}; got {value!r}.")
    return float(value)


def proportion(name: str, value: Any) -> float:
    """Return `value` as a float above 0 and below 1, or raise an error that names the argument."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.floating) or not 0 < value < 1:
        raise ParameterError(f"{name} must be a number between 0 and 1; got {value!r}.")
    return float(value)


def reject_another_index(X: Any, **others: Any) -> None:
    """Raise an error if a pandas index contradicts the order of the rows, which are matched by position."""
    one: Any = getattr(X, "index", None)
    for name, other in others.items():
        two: Any = getattr(getattr(other, "counts", other), "index", None)
        if not hasattr(one, "equals") or not hasattr(two, "equals") or one.equals(two):
            continue
        if one.is_unique and two.is_unique and len(one.intersection(two)) == len(one):
            raise InputError(
                f"{name} has the index labels of X in another order, so its rows do not seem to match. "
                f"Align them, as in {name}.loc[X.index], or pass {name}.to_numpy() if rows match by position."
            )

"""Losses by name, from scikit-learn scorers and from functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from subgrove.exceptions import ParameterError
from subgrove.losses.base import Loss, ResponseMethod, SignedMetric, compares_probabilities, custom, from_metric
from subgrove.losses.named import LOSSES, names


def get(loss: str | Loss | Callable[..., Any]) -> Loss:
    """Return the loss of a name, a scikit-learn scorer or a function.

    Parameters
    ----------
    loss : str, Loss, scorer or callable
        A name of `names()`, the name of a scikit-learn scorer ("r2", "roc_auc", "neg_mean_absolute_error", ...), a
        scorer (`make_scorer(...)`), a loss, or a function of (y, prediction).

    Notes
    -----
    A scorer that is the mean of a loss per row is replaced by that loss, so that there are values per row:
    "neg_mean_squared_error" is "squared_error", "accuracy" is "zero_one". Other scorers are metrics of all rows
    together, and the importance is the decrease of the score.

    Examples
    --------
    >>> import subgrove as sg
    >>> sg.losses.get("brier")
    <Loss brier>
    >>> sg.losses.get("neg_mean_squared_error")
    <Loss squared_error>
    >>> sg.losses.get("r2")
    <Loss r2>
    """
    if isinstance(loss, Loss):
        return loss
    if isinstance(loss, str):
        return LOSSES[loss] if loss in LOSSES else _from_scorer(_named_scorer(loss), loss)
    if hasattr(loss, "_score_func"):
        return _from_scorer(loss, None)
    if callable(loss):
        if compares_probabilities(loss):
            return from_metric(loss, greater_is_better=loss.__name__.endswith("_score"), response_method="probability")
        return custom(loss)
    raise ParameterError(
        f"loss must be a name, a Loss, a scikit-learn scorer or a function of (y, prediction); got "
        f"{type(loss).__name__}."
    )


def get_all(loss: Any) -> tuple[Loss, ...]:
    """Return one loss or several as a tuple; their names must differ."""
    each: Sequence[Any] = loss if isinstance(loss, list | tuple) else (loss,)
    if not each:
        raise ParameterError("loss is an empty list. Name at least one loss.")
    losses = tuple(get(one) for one in each)
    titles = [one.name for one in losses]
    if len(set(titles)) < len(titles):
        raise ParameterError(f"Several losses have the same name: {', '.join(titles)}. Give each its own name.")
    return losses


def _named_scorer(name: str) -> Any:
    from difflib import get_close_matches

    from sklearn.metrics import get_scorer, get_scorer_names

    scorers = get_scorer_names()
    if name in scorers:
        return get_scorer(name)
    near = get_close_matches(name, [*names(), *scorers], n=3)
    meant = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
    raise ParameterError(
        f"loss={name!r} is not a loss.{meant} Losses are {', '.join(names())}, and the scorer names of scikit-learn "
        f"(sklearn.metrics.get_scorer_names()). A function of (y, prediction) that returns one number per row is a "
        f"loss too."
    )


# Metrics of scikit-learn that are the mean of a loss per row, or that are here in the same form.
_METRICS = {
    ("mean_squared_error", -1): "squared_error",
    ("mean_absolute_error", -1): "absolute_error",
    ("mean_poisson_deviance", -1): "poisson",
    ("mean_gamma_deviance", -1): "gamma",
    ("root_mean_squared_error", -1): "root_mean_squared_error",
    ("log_loss", -1): "log_loss",
    ("brier_score_loss", -1): "brier",
    ("accuracy_score", 1): "zero_one",
    ("roc_auc_score", 1): "auc",
}


def _from_scorer(scorer: Any, name: str | None) -> Loss:
    """Return the loss of a scikit-learn scorer.

    Scorers have no public attributes for their metric, sign, options and response method; `_score_func`, `_sign`,
    `_kwargs` and `_response_method` have been the same since scikit-learn 1.4, the oldest version that is supported.
    """
    metric, sign, options = scorer._score_func, scorer._sign, scorer._kwargs
    is_sklearn = getattr(metric, "__module__", "").startswith("sklearn.")
    own = _METRICS.get((getattr(metric, "__name__", ""), sign)) if is_sklearn and not options else None
    if own is not None:
        return LOSSES[own]
    response_method = _predictions_of(scorer, metric)
    function = SignedMetric(metric, -sign, response_method == "probability", tuple(options.items()))
    return Loss(name or str(getattr(metric, "__name__", "score")), function, response_method, per_row=False)


def _predictions_of(scorer: Any, metric: Any) -> ResponseMethod:
    """Return the kind of predictions of a scorer; where it takes decision values or probabilities, probabilities."""
    if scorer._response_method != "predict":
        return "probability"
    module = getattr(metric, "__module__", "")
    if module == "sklearn.metrics._regression":
        return "value"
    return "label" if module == "sklearn.metrics._classification" else "any"

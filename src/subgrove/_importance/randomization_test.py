"""The holdout randomization test of Tansey et al. (2018): the loss among the losses of resampled rows.

Under the null hypothesis that target and feature are independent given the other columns, the observed column and K
independent draws from its conditional distribution are exchangeable, and so are their losses on rows that the model
was not fitted on. So the rank of the observed loss is uniform, for any model, any loss and any number of rows. That
needs draws that are independent from row to row and from repeat to repeat: balanced draws and exact expectations, which
`importance` uses because their mean has less noise, are not.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from subgrove._core.execution import stream
from subgrove._core.validate import whole_number
from subgrove._data.to_containers import as_count
from subgrove._importance.recompute import stored_inputs
from subgrove._importance.tables import ImportanceData
from subgrove._scoring.score import score_features
from subgrove.exceptions import SubgroveWarning


def randomization_lines(result: ImportanceData, n_resamples: Any, n_jobs: int | None) -> list[dict[str, Any]]:
    """Return the lines of `ImportanceResult.randomization_test`."""
    n = whole_number("n_resamples", n_resamples, least=1)
    source = stored_inputs(result._source, "randomization_test")
    features = [score.feature for score in result.scores]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SubgroveWarning)  # they were given when the result was computed
        context = replace(
            source.fitted_context(features),
            n_repeats=n,
            seed=int(stream(source.context.seed, "randomization test").integers(2**62)),
            independent_draws=True,
            prediction_values=None,
            adaptive=None,
            fidelity_checker=None,
        )
        scores = [source.of_losses(score, result.losses) for score in score_features(context, features, n_jobs)]
    return [
        {
            **result._loss_column(at),
            "feature": score.title,
            "n": as_count(float(score.sizes.sum())),
            "estimate": float(score.overall[at].mean()),
            "p_value": float(1 + np.count_nonzero(score.overall[at] <= 0)) / (1 + n),
        }
        for at in range(len(result.losses))
        for score in scores
    ]

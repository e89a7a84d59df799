"""Step functions of the user's model, used only after they reproduced its predictions of changed rows."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from subgrove._core.kinds import Floats
from subgrove._models.predictor import Predictor
from subgrove._models.tree_ensemble.ensemble import NotReadable, TreeEnsemble, require
from subgrove._models.tree_ensemble.reading import read_ensemble
from subgrove._models.tree_ensemble.steps import StepFunctions
from subgrove._native.loader import tree_steps

CHECK_ROWS = 256  # changed rows whose predictions must be reproduced
TREE_STEPS = "tree steps"  # evaluation of a result that was computed from step functions
_ROUNDING = 1e-14  # of predictions in double precision, relative to their size

Encode = Callable[[Any], Floats]


def use_tree_steps() -> bool:
    """Return whether step functions may replace predictions: unless the variable SUBGROVE_TREE_STEPS is 0."""
    return os.environ.get("SUBGROVE_TREE_STEPS", "1") != "0"


@dataclass(frozen=True, eq=False)
class TrustedSteps:
    """Step functions that reproduced the model, or the reason why there are none.

    Attributes
    ----------
    steps : StepFunctions or None
        Step functions of the rows.
    encode : function or None
        Returns the inputs of the trees for a table like the user's.
    reason : str
        Why the model itself must predict; empty with step functions.
    """

    steps: StepFunctions | None
    encode: Encode | None
    reason: str = ""

    @property
    def evaluation(self) -> str:
        """Which predictions a result uses, for its settings."""
        return model_predictions(self.reason) if self.steps is None else TREE_STEPS


def model_predictions(reason: str) -> str:
    """Return the evaluation of a result that uses predictions of the model, with the reason."""
    return f"model predictions: {reason}"


def trusted_steps(
    predictor: Predictor,
    rows: Any,
    donors: Sequence[Any],
    changed: Callable[[StepFunctions, Encode], tuple[Any, Floats]],
) -> TrustedSteps:
    """Return the step functions of a model, after a check of predictions of changed rows.

    Parameters
    ----------
    predictor : Predictor
        The model; it predicts the changed rows, which are counted.
    rows : table
        The rows, as the model gets them.
    donors : sequence of tables
        Rows whose values the rows may receive.
    changed : function
        Of the step functions and of the encoding of tables: returns a table of `CHECK_ROWS` changed rows, as the model
        gets them, and their margins according to the step functions.
    """
    try:
        require(use_tree_steps(), "SUBGROVE_TREE_STEPS is 0")
        require(tree_steps is not None, "the compiled part is not installed")
        ensemble, inputs = read_ensemble(predictor.model, predictor.method)
        steps = StepFunctions(ensemble, inputs, inputs.encode(rows), [inputs.encode(table) for table in donors])
        table, margins = changed(steps, inputs.encode)
        check_margins(predictor, steps.ensemble, table, margins)
    except NotReadable as error:
        return TrustedSteps(None, None, str(error))
    return TrustedSteps(steps, inputs.encode)


def check_margins(predictor: Predictor, ensemble: TreeEnsemble, table: Any, margins: Floats) -> None:
    """Raise `NotReadable` unless margins reproduce the predictions of a table, up to rounding.

    The difference may be `ensemble.tolerance` times the range of the predictions.
    """
    ours = ensemble.response(margins)
    theirs = predictor.predict(table, len(margins), lambda row: "rows that compare the model with its trees")
    theirs = np.asarray(theirs, dtype=np.float64)
    require(ours.shape == theirs.shape, "the model returns predictions of another shape than its trees")
    allowed = ensemble.tolerance * np.ptp(theirs, axis=0).max() + _ROUNDING * np.abs(theirs).max()
    require(bool(np.abs(ours - theirs).max() <= allowed), "its trees do not reproduce its predictions")

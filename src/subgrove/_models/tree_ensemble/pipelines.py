"""Pipelines of scikit-learn whose last step is a tree ensemble.

Which inputs are computed from which column follows from the kinds of the steps; a step of another kind is rejected.
The values are those of the fitted steps themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove._data.to_containers import copied
from subgrove._models.tree_ensemble.ensemble import NotReadable, TreeEnsemble, require
from subgrove._models.tree_ensemble.inputs import TreeInputs, check_names

_COLUMNWISE = {  # each output column is a function of the input column at the same place
    *("StandardScaler", "MinMaxScaler", "RobustScaler", "MaxAbsScaler", "OrdinalEncoder"),
    *("PowerTransformer", "QuantileTransformer"),
}


def read_pipeline(
    model: Any, read: Callable[[Any], tuple[TreeEnsemble, TreeInputs]]
) -> tuple[TreeEnsemble, TreeInputs]:
    """Return the ensemble and the inputs of a fitted pipeline; `read` reads its last step."""
    *steps, last = [step for _, step in model.steps]
    ensemble, inputs = read(last)
    steps = [step for step in steps if not _passes_through(step)]
    if not steps:
        return ensemble, inputs
    n_columns = int(steps[0].n_features_in_)
    sources = _sources_of_steps(steps, n_columns)  # of the columns that the last step gets
    require(len(sources) == len(inputs.columns), "its last step has another number of columns")
    columns: list[list[int]] = [[] for _ in range(n_columns)]
    for source, found in zip(sources, inputs.columns, strict=True):
        columns[source].extend(found)
    densely = type(last).__module__.partition(".")[0] in ("sklearn", "lightgbm")  # zeros left out are no missing values
    return ensemble, TreeInputs(
        tuple(tuple(sorted(found)) for found in columns), partial(_encoded, steps, inputs, densely)
    )


def _encoded(steps: Sequence[Any], inputs: TreeInputs, densely: bool, frame: Any) -> npt.NDArray[Any]:
    check_names(frame, steps[0])
    values = copied(frame)  # steps may write to their input
    for step in steps:
        values = step.transform(values)
    if hasattr(values, "toarray"):
        require(densely, "its last step gets a sparse matrix")
        values = values.toarray()
    return inputs.encode(values)


def _passes_through(step: Any) -> bool:
    if step is None or isinstance(step, str):
        return step in (None, "passthrough")
    return _sklearn_name(step) == "FunctionTransformer" and step.func is None and not step.validate


def _sklearn_name(step: Any) -> str:
    """Return the name of a class of scikit-learn itself, not of a subclass; "" for others."""
    return type(step).__name__ if type(step).__module__.partition(".")[0] == "sklearn" else ""


def _sources_of_steps(steps: Sequence[Any], n_columns: int) -> list[int]:
    sources = list(range(n_columns))
    for step in steps:
        sources = [sources[place] for place in _sources(step, len(sources))]
    return sources


def _sources(step: Any, n_columns: int) -> list[int]:
    """Return, for each output column of a fitted step, the input column from which it is computed."""
    if _passes_through(step):
        return list(range(n_columns))
    require("transform" not in getattr(step, "__dict__", {}), "the method of a step has been replaced")
    require(int(step.n_features_in_) == n_columns, "a step has another number of columns")
    name = _sklearn_name(step)
    if name in _COLUMNWISE:
        return list(range(n_columns))
    if name == "SimpleImputer":
        require(not step.add_indicator, "an imputer adds indicators")
        kept = step.keep_empty_features or step.strategy == "constant"
        empty = np.array([value is None or value != value for value in step.statistics_])
        require(not empty.any() or bool(kept), "an imputer drops columns")
        return list(range(n_columns))
    if name == "OneHotEncoder":
        counts = [int(count) for count in step._n_features_outs]
        require(len(counts) == n_columns, "an encoder has another number of columns")
        return [column for column, count in enumerate(counts) for _ in range(count)]
    if name == "Pipeline":
        return _sources_of_steps([one for _, one in step.steps if not _passes_through(one)], n_columns)
    if name == "ColumnTransformer":
        return _sources_of_parts(step)
    raise NotReadable(f"the step {type(step).__name__} is not supported")


def _sources_of_parts(step: Any) -> list[int]:
    """Return the sources of the output columns of a ColumnTransformer."""
    found: dict[int, int] = {}
    for name, transformer, _ in step.transformers_:
        places = [int(place) for place in step._transformer_to_input_indices[name]]
        if (isinstance(transformer, str) and transformer == "drop") or not places:
            continue
        sources = [places[source] for source in _sources(transformer, len(places))]
        outputs = range(10**9)[step.output_indices_[name]]
        require(len(outputs) == len(sources), "a step has another number of columns")
        found.update(zip(outputs, sources, strict=True))
    require(sorted(found) == list(range(len(found))), "a step has another number of columns")
    return [found[output] for output in range(len(found))]

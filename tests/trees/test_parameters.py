"""Constructors store their arguments and nothing else, by scikit-learn's conventions."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from subgrove._core.validate import ParamsMixin
from subgrove.exceptions import ParameterError
from subgrove.trees import (
    CartTree,
    ConditionalInferenceTree,
    FittedTransformation,
    TransformationModel,
    TransformationTree,
    Tree,
)

Trees = TransformationTree | ConditionalInferenceTree | CartTree

TREES: list[Trees] = [
    TransformationTree(max_depth=3, min_samples_leaf=20, alpha=0.1, order=4, likelihood="density"),
    ConditionalInferenceTree(max_depth=3, min_samples_leaf=20, alpha=0.1),
    CartTree(max_depth=3, min_samples_leaf=20, min_samples_split=50, cp=0.02),
]
MODEL = TransformationModel(order=4, support=(0.0, 9.0), likelihood="density")
CONSTRUCTED: list[ParamsMixin] = [*TREES, MODEL]
DEFAULTS: list[tuple[ParamsMixin, dict[str, Any]]] = [
    (TransformationTree(), {"max_depth": 30, "min_samples_leaf": 30, "alpha": 0.05, "order": 5, "likelihood": "auto"}),
    (ConditionalInferenceTree(), {"max_depth": 30, "min_samples_leaf": 30, "alpha": 0.05}),
    (CartTree(), {"max_depth": 30, "min_samples_leaf": 30, "min_samples_split": None, "cp": 0.01}),
    (TransformationModel(), {"order": 5, "support": None, "likelihood": "auto"}),
]


def name_of(thing: Any) -> str:
    return type(thing).__name__


each_constructor = pytest.mark.parametrize("constructed", CONSTRUCTED, ids=name_of)
each_tree = pytest.mark.parametrize("constructed", TREES, ids=name_of)


def data() -> tuple[pd.DataFrame, pd.Series[float]]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=200)})
    return X, (X["a"] + rng.normal(size=200)).rename("y")


@pytest.mark.parametrize(("constructed", "expected"), DEFAULTS, ids=[name_of(thing) for thing, _ in DEFAULTS])
def test_defaults_are_those_of_the_documentation(constructed: ParamsMixin, expected: dict[str, Any]) -> None:
    assert constructed.get_params() == expected


@each_constructor
def test_parameters_are_the_arguments(constructed: ParamsMixin) -> None:
    parameters = constructed.get_params()
    assert type(constructed)(**parameters) == constructed
    assert parameters == {name: getattr(constructed, name) for name in parameters}


@each_constructor
def test_deep_makes_no_difference(constructed: ParamsMixin) -> None:
    assert constructed.get_params(deep=False) == constructed.get_params(deep=True)


@each_constructor
def test_clone_of_scikit_learn_is_equal_and_another_object(constructed: ParamsMixin) -> None:
    copied = clone(constructed)
    assert copied is not constructed
    assert copied == constructed


@each_constructor
def test_copies_and_pickles_are_equal(constructed: ParamsMixin) -> None:
    for copied in (copy.copy(constructed), copy.deepcopy(constructed), pickle.loads(pickle.dumps(constructed))):
        assert copied == constructed


@each_constructor
def test_equal_constructors_have_equal_hashes(constructed: ParamsMixin) -> None:
    assert hash(clone(constructed)) == hash(constructed)


def test_different_constructors_are_not_equal() -> None:
    assert TransformationTree() != ConditionalInferenceTree()
    assert TransformationTree() != TransformationTree(alpha=0.1)
    assert TransformationTree() != "TransformationTree()"


@each_constructor
def test_set_params_changes_the_object_and_returns_it(constructed: ParamsMixin) -> None:
    copied = clone(constructed)
    name, value = next(iter(copied.get_params().items()))
    assert copied.set_params(**{name: value + 1}) is copied
    assert copied.get_params() == constructed.get_params() | {name: value + 1}


@each_constructor
def test_set_params_without_arguments_changes_nothing(constructed: ParamsMixin) -> None:
    assert clone(constructed).set_params() == constructed


@each_constructor
def test_unknown_parameter_is_rejected_with_the_known_ones(constructed: ParamsMixin) -> None:
    known = ", ".join(constructed.get_params())
    with pytest.raises(ParameterError, match=f"{name_of(constructed)} has no parameter 'depth'; it has {known}"):
        clone(constructed).set_params(depth=3)


@each_constructor
def test_constructor_checks_nothing(constructed: ParamsMixin) -> None:
    # As scikit-learn has it: an argument is checked by fit, so that set_params needs no order.
    arguments = dict.fromkeys(constructed.get_params(), "anything")
    assert type(constructed)(**arguments).get_params() == arguments


@each_constructor
def test_repr_is_the_call_that_makes_it(constructed: ParamsMixin) -> None:
    assert eval(repr(constructed), {name_of(constructed): type(constructed)}) == constructed


@each_tree
def test_fit_leaves_the_constructor_as_it_was(constructed: Trees) -> None:
    before = dict(vars(constructed))
    constructed.fit(*data())
    assert vars(constructed) == before


@each_tree
def test_fit_returns_a_new_tree_each_time(constructed: Trees) -> None:
    one, other = constructed.fit(*data()), constructed.fit(*data())
    assert isinstance(one, Tree)
    assert one is not other
    assert one == other


@each_tree
def test_grown_tree_keeps_its_parameters_when_the_constructor_changes(constructed: Trees) -> None:
    copied: Trees = clone(constructed)
    tree = copied.fit(*data())
    copied.set_params(max_depth=1)
    assert tree.parameters == constructed.get_params()


def test_fit_of_a_model_leaves_it_as_it_was() -> None:
    before = dict(vars(MODEL))
    assert isinstance(MODEL.fit(data()[1]), FittedTransformation)
    assert vars(MODEL) == before


@each_tree
@pytest.mark.parametrize("name", ["apply", "rules", "text", "prune", "nodes", "columns", "target", "leaves"])
def test_what_only_the_grown_tree_has_is_pointed_to(constructed: Trees, name: str) -> None:
    with pytest.raises(AttributeError, match=f"has no '{name}': fit returns the fitted object.*fit"):
        getattr(constructed, name)


@pytest.mark.parametrize("name", ["cdf", "pdf", "quantile", "sample", "scores", "theta", "log_likelihood"])
def test_what_only_the_fitted_model_has_is_pointed_to(name: str) -> None:
    with pytest.raises(AttributeError, match=f"has no '{name}': fit returns the fitted object.*fit"):
        getattr(MODEL, name)


@each_constructor
def test_name_that_nothing_has_is_a_plain_attribute_error(constructed: ParamsMixin) -> None:
    with pytest.raises(AttributeError, match="object has no attribute 'predict_proba'"):
        constructed.predict_proba  # noqa: B018  # the access is the test

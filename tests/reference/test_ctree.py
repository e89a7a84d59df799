"""ConditionalInferenceTree against R's ctree: assignment, statistics and degrees of freedom."""

from __future__ import annotations

import pytest

from subgrove.trees import ConditionalInferenceTree

from .cases import ABSENT, case, inputs, names

CASES = names("ctree")
pytestmark = pytest.mark.skipif(not CASES, reason=ABSENT)
FITS = [
    pytest.param(name, fit["maxdepth"], id=f"{name}-{fit['maxdepth']}")
    for name in CASES
    for fit in case(name)["fits"].values()
]


@pytest.mark.parametrize(("name", "depth"), FITS)
def test_every_row_is_in_the_leaf_of_r(name: str, depth: int) -> None:
    X, x = inputs(name)
    tree = ConditionalInferenceTree(max_depth=depth).fit(X, x)
    assert tree.apply(X).tolist() == case(name)["fits"][f"maxdepth_{depth}"]["assignment"]


@pytest.mark.parametrize(("name", "depth"), FITS)
def test_tests_are_those_of_r(name: str, depth: int) -> None:
    tree = ConditionalInferenceTree(max_depth=depth).fit(*inputs(name))
    for node in case(name)["fits"][f"maxdepth_{depth}"]["nodes"]:
        expected, ours = node.get("tests"), tree.nodes[node["id"] - 1].tests
        if expected is None:
            continue
        assert ours is not None
        tested = [ours[column] for column in expected["variables"]]
        assert [test.df for test in tested] == expected["df"]
        assert [test.statistic for test in tested] == pytest.approx(expected["statistic"], rel=1e-6, abs=1e-9)
        assert [test.p_value for test in tested] == pytest.approx(expected["p_adjusted"], rel=1e-6, abs=1e-12)

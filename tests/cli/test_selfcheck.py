"""The self-check passes on this machine, and fails where something is broken."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from time import process_time
from typing import Any

import pytest

import subgrove as sg
from subgrove._cli import oracles, selfcheck
from subgrove._cli.selfcheck import Check, run_checks, summary, table
from subgrove.samplers.knockoffs import FittedKnockoffs
from subgrove.simulate import known
from subgrove.simulate.sampler import FittedTrueConditional


@cache
def checks() -> tuple[Check, ...]:
    return run_checks(seed=1)


def checked(name: str, seed: int = 1) -> Check:
    (oracle,) = (one for one in oracles.ORACLES if one.name == name)
    return selfcheck._ask(oracle, seed)


def test_everything_passes_here_within_its_time() -> None:
    start = process_time()  # of the processor: others may be at work on this machine, too
    assert [check.name for check in checks() if not check.passed] == []
    assert process_time() - start < 20


def test_a_check_passes_if_and_only_if_its_numbers_say_so() -> None:
    for check in checks():
        assert check.passed == (abs(check.measured - check.expected) <= check.tolerance)
        assert check.name
        assert check.what.endswith(".")


def test_margins_are_small() -> None:
    relative = [check.tolerance / check.expected for check in checks() if check.expected]
    assert max(relative) < 0.15
    assert max(check.tolerance for check in checks() if not check.expected) <= 0.1


def test_numbers_depend_on_the_seed_alone() -> None:
    name = "conditional importance, nonlinear"
    (first,) = (check for check in checks() if check.name == name)
    again, other = checked(name), checked(name, seed=2)
    assert (again.measured, again.tolerance) == (first.measured, first.tolerance)
    assert other.passed
    assert other.measured != first.measured


def test_a_wrong_closed_form_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = replace(known.PROCESSES["linear"], importance=1.1 * known.PROCESSES["linear"].importance)
    monkeypatch.setitem(known.PROCESSES, "linear", wrong)
    assert not checked("conditional importance, linear").passed


def test_a_sampler_that_draws_too_wide_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    true = FittedTrueConditional.sample

    def wide(self: Any, X: Any, feature: Any, rngs: Any) -> Any:
        return (1.1 * values for values in true(self, X, feature, rngs))

    monkeypatch.setattr(FittedTrueConditional, "sample", wide)
    assert not checked("conditional importance, nonlinear").passed


def test_a_model_that_is_not_the_true_one_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    # Of half the true model, shuffling x1 costs 6 in place of 10: E[g'^2 - g^2] - 2 E[y (g' - g)] = -4 / 4 + 14 / 2.
    true = sg.simulate.scenario("linear").model
    monkeypatch.setattr(sg.simulate.Scenario, "model", property(lambda self: lambda X: true(X) / 2))
    assert not checked("marginal importance, linear").passed


def test_subgroups_that_do_not_add_up_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    true: Any = sg.ImportanceResult.by_subgroup
    monkeypatch.setattr(sg.ImportanceResult, "by_subgroup", property(lambda self: true.fget(self).iloc[1:]))
    assert not checked("weighted mean").passed


def test_knockoffs_with_other_noise_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    true: Any = FittedKnockoffs.conditional_covariance
    monkeypatch.setattr(FittedKnockoffs, "conditional_covariance", property(lambda self: 1.001 * true.fget(self)))
    assert not checked("knockoffs").passed


def test_draws_that_depend_on_the_number_of_processes_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    true = oracles._bike
    monkeypatch.setattr(oracles, "_bike", lambda seed, n_jobs: true(seed + n_jobs))
    assert not checked("one and two processes").passed


def test_a_tree_that_may_not_split_on_the_right_column_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    find = sg.find_subgroups
    monkeypatch.setattr(sg, "find_subgroups", lambda X, **options: find(X, given=["x3", "x4"], **options))
    check = checked("true split")
    assert not check.passed
    assert "should be on x2 and x3; they are on x3" in check.message


def test_compiled_parts_that_are_not_there_are_told_and_nothing_fails(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.setattr(oracles, "load_kernel", lambda name: None)
    monkeypatch.setattr(sg, "__file__", str(tmp_path / "__init__.py"))
    check = checked("compiled parts")
    assert check.passed
    assert "0 of 5 compiled parts are in use. NumPy stands in" in check.message


def test_compiled_parts_that_cannot_be_loaded_fail(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    (tmp_path / "_native").mkdir()
    (tmp_path / "_native" / "_tree_fit.abi3.so").write_bytes(b"of another machine")
    monkeypatch.setattr(oracles, "load_kernel", lambda name: None)
    monkeypatch.setattr(sg, "__file__", str(tmp_path / "__init__.py"))
    assert checked("compiled parts").measured == 1
    assert not checked("compiled parts").passed


def test_a_check_that_raises_is_a_fail_with_its_message(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: Any, **options: Any) -> float:
        raise RuntimeError("no memory for this")

    monkeypatch.setattr(oracles, "squared_mmd", broken)
    check = checked("MMD of equal samples")
    assert not check.passed
    assert check.message == "RuntimeError: no memory for this"
    assert "FAIL  MMD of equal samples" in table([check])
    assert summary([check]).startswith("0 of 1 checks passed")


def test_the_table_has_a_line_with_numbers_for_each_check() -> None:
    lines = table(checks()).splitlines()
    for check in checks():
        (own,) = (line for line in lines if line.startswith(f"pass  {check.name} "))
        assert f"{check.measured + 0.0:.3g}" in own
    assert lines[-1] == summary(checks())

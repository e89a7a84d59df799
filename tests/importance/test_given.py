"""Any conditioning set: from none, the marginal importance, to all others, the conditional one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest

import subgrove as sg
from subgrove.exceptions import ParameterError

TABLES = ("overall", "by_subgroup", "per_row", "repeats")


def frame(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    a, b, c, rest = rng.normal(size=(4, n))
    kind = np.where(a + 0.5 * rng.normal(size=n) > 0, "warm", "cold")
    return pd.DataFrame({"x": a + b + 0.5 * c + rest, "a": a, "b": b, "c": c, "kind": kind})


def model(X: Any) -> Any:
    return np.asarray(X["x"]) + 0.5 * np.asarray(X["a"]) + (np.asarray(X["kind"]) == "warm")


X, TRAIN = frame(300, 0), frame(800, 1)
Y = model(X) + np.random.default_rng(2).normal(size=300)
FOREST = sg.samplers.Imputation(n_trees=30)


def run(**options: Any) -> sg.ImportanceResult:
    return sg.importance(model, X, Y, **{"n_repeats": 4, "random_state": 5, **options})


def same(one: sg.ImportanceResult, two: sg.ImportanceResult, tables: Sequence[str] = TABLES) -> None:
    for name in tables:
        pd.testing.assert_frame_equal(getattr(one, name), getattr(two, name), check_exact=True)


SAMPLERS: dict[str, dict[str, Any]] = {
    "subgroups": {"sampler": "subgroups", "train": TRAIN},
    "cross-fitted": {"sampler": "subgroups"},
    "cart": {"sampler": "cart", "train": TRAIN},
    "imputation": {"sampler": FOREST, "train": TRAIN},
    "knockoffs": {"sampler": "knockoffs", "train": TRAIN, "features": ["c"]},
}
each_sampler = pytest.mark.parametrize("options", SAMPLERS.values(), ids=list(SAMPLERS))


@each_sampler
def test_no_column_is_the_marginal_importance_to_the_last_digit(options: dict[str, Any]) -> None:
    marginal = run(sampler="marginal", features=options.get("features"))
    same(run(given=[], **options), marginal)


@each_sampler
def test_all_other_columns_are_the_conditional_importance_to_the_last_digit(options: dict[str, Any]) -> None:
    names = options.get("features", list(X.columns))
    given = {name: [other for other in X.columns if other != name] for name in names}
    same(run(given=given, **options), run(**options))


def test_fixed_points_stay_in_the_marginal_importance() -> None:
    sampler = sg.samplers.SubgroupSampler(fixed_points=True)
    same(run(sampler=sampler, train=TRAIN, given=[]), run(sampler=sg.samplers.Marginal(fixed_points=True)))


def test_training_donors_stay_where_no_column_is_given() -> None:
    sampler = sg.samplers.SubgroupSampler(donors="train")
    without = run(sampler=sampler, train=TRAIN, given=[], features=["x"])
    depth0 = run(sampler=sg.samplers.SubgroupSampler(donors="train", max_depth=0), train=TRAIN, features=["x"])
    same(without, depth0)


@pytest.mark.parametrize("sampler", ["subgroups", "cart"])
def test_rules_predict_for_the_given_columns_only(sampler: str) -> None:
    result = run(sampler=sampler, train=TRAIN, features=["x"], given=["b"])
    (score,) = result.scores
    assert score.conditioning == ("b",)
    assert run(sampler=sampler, train=TRAIN, features=["x"]).scores[0].conditioning != ("b",)


def test_given_is_what_a_sampler_with_given_does() -> None:
    for one, two in (
        ("subgroups", sg.samplers.SubgroupSampler(given=["b", "kind"])),
        (FOREST, sg.samplers.Imputation(n_trees=30, given=["b", "kind"])),
    ):
        same(
            run(sampler=one, train=TRAIN, features=["x"], given=["kind", "b"]),
            run(sampler=two, train=TRAIN, features=["x"]),
        )


def test_a_forest_that_is_reported_less_redraws_further_away() -> None:
    estimates = [
        run(sampler=FOREST, train=TRAIN, features=["x"], given=given).overall["estimate"][0]
        for given in ([], ["a"], ["a", "b"], ["a", "b", "c", "kind"])
    ]
    assert estimates == sorted(estimates, reverse=True)
    assert estimates[-1] < 0.6 * estimates[0]


def test_each_feature_has_columns_of_its_own() -> None:
    given = {"x": ["a"], "a": [], "kind": ["b", "a"]}
    names = ["x", "a", "kind", "b"]
    together = run(sampler="subgroups", train=TRAIN, features=names, given=given)
    assert together.settings["given"] == {"x": ["a"], "a": [], "kind": ["a", "b"], "b": None}
    for name in names:
        one = {"given": given[name]} if name in given else {}
        alone = run(sampler="subgroups", train=TRAIN, features=[name], **one)
        # But for p-values that count the lines of the table.
        whole, own = (each.overall.set_index("feature").drop(columns=["p_holm", "p_bh"]) for each in (together, alone))
        pd.testing.assert_frame_equal(whole.loc[[name]], own, check_exact=True)


def test_a_feature_is_left_out_of_its_own_columns_where_features_are_not_named() -> None:
    result = run(sampler="subgroups", train=TRAIN, given=["a", "b"])
    assert result.settings["given"]["a"] == ["b"]
    assert result.settings["given"]["x"] == ["a", "b"]
    assert set(result.features) == set(X.columns)


def test_groups_are_redrawn_given_columns_outside_the_group() -> None:
    group = [["x", "b"]]
    result = run(sampler="subgroups", train=TRAIN, features=group, given=["a", "c"])
    assert set(result.scores[0].conditioning) <= {"a", "c"}
    same(run(sampler="subgroups", train=TRAIN, features=group, given=[]), run(sampler="marginal", features=group))
    same(run(sampler="subgroups", train=TRAIN, features=group, given={("b", "x"): ["a", "c"]}), result)
    same(run(sampler="subgroups", train=TRAIN, features=group, given={"x + b": ["a", "c"]}), result)
    with pytest.raises(ParameterError, match="given names 'b', which is resampled itself"):
        run(sampler="subgroups", train=TRAIN, features=group, given=["a", "b"])


def test_jobs_and_other_features_change_no_digit() -> None:
    given = {"x": ["a"], "a": [], "kind": ["b"]}
    options = {"sampler": FOREST, "train": TRAIN, "features": ["x", "a", "kind"], "given": given}
    same(run(n_jobs=2, **options), run(**options))


def test_weights_count_rows_whatever_is_given() -> None:
    weights = np.arange(300) % 3
    options = {"sampler": "subgroups", "train": TRAIN, "sample_weight": weights, "given": {"x": ["b"], "a": []}}
    mixed = run(features=["x", "a"], **options)
    marginal = run(features=["a"], sampler="marginal", sample_weight=weights)
    assert mixed.overall["estimate"][1] == marginal.overall["estimate"][0]


@dataclass(frozen=True)
class Noted:
    """Redraws by a shuffle, and notes what it was given."""

    seen: list[Any]
    given: list[str] | None = None

    def fit(self, X: Any, features: Any) -> Noted:
        self.seen.append(self.given)
        return self

    def sample(self, X: Any, feature: str, rngs: Any) -> Iterator[Any]:
        for rng in rngs:
            yield rng.permutation(X[feature].to_numpy())


def test_a_sampler_of_the_user_is_copied_and_reported_the_columns() -> None:
    seen: list[Any] = []
    mine = Noted(seen)
    run(sampler=mine, train=TRAIN, features=["x"], given=["b", "a"])
    run(sampler=mine, train=TRAIN, features=["x"], given=["a", "b", "c", "kind"])
    assert seen == [["a", "b"], None]
    assert mine.given is None
    same(run(sampler=mine, train=TRAIN, features=["x"], given=[]), run(sampler="marginal", features=["x"]))


def test_methods_are_not_changed() -> None:
    sampler = sg.samplers.SubgroupSampler(given=["c"])
    run(sampler=sampler, train=TRAIN, features=["x"], given=["b"])
    assert sampler.given == ["c"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"given": ["nope"]}, r"given names 'nope', but X has the columns"),
        ({"given": ["a", "x"]}, r"given names 'x', which is resampled itself"),
        ({"given": {"x": ["x"]}}, r"given names 'x', which is resampled itself"),
        ({"given": {"c": ["a"]}}, r"given has the key 'c', but the features are 'x'"),
        ({"given": 3.5}, r"given must be a name, a position or a list of them; got 3.5"),
        ({"given": ["a"], "sampler": "marginal"}, r"sampler 'marginal' does not use other columns"),
        ({"given": [], "sampler": "unchanged"}, r"sampler 'unchanged' does not use other columns"),
        ({"given": ["a"], "sampler": "intervals"}, r"sampler 'intervals' does not use other columns"),
        ({"given": ["a"], "sampler": "knockoffs"}, r"sampler 'knockoffs' has no parameter given"),
        ({"given": ["a"], "sampler": sg.find_subgroups(TRAIN), "train": None}, "subgroups that were found before"),
        ({"given": ["a"], "sampler": FOREST.fit(TRAIN, ["x"]), "train": None}, "cannot change a fitted sampler"),
    ],
    ids=lambda value: None if isinstance(value, dict) else value[:24],
)
def test_what_cannot_be_is_rejected(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        run(**{"sampler": "subgroups", "train": TRAIN, "features": ["x"], **options})


def test_settings_survive_saving(tmp_path: Any) -> None:
    result = run(sampler="subgroups", train=TRAIN, features=["x"], given=["b"])
    result.save(tmp_path / "one.json")
    assert sg.ImportanceResult.load(tmp_path / "one.json").settings == result.settings

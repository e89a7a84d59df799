"""One seed, and from it an independent stream for each feature and repeat."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import subgrove as sg
from subgrove._core.execution import KeyedStreams, Streams, cached, read_seed, stream
from subgrove.exceptions import ParameterError


def test_stream_depends_only_on_seed_feature_and_repeat() -> None:
    one, two = Streams(7, "temp", 3), Streams(7, "temp", 10)
    assert [rng.random() for rng in one] == [two[repeat].random() for repeat in range(3)]
    assert one.shared.random() == two.shared.random() == stream(7, "temp").random()


def test_streams_differ() -> None:
    numbers = [
        rng.random()
        for seed in (0, 1, 2**62)
        for key in ("temp", "hum", "", "temp, fold 0")
        for rng in (*Streams(seed, key, 5), stream(seed, key))
    ]
    assert len(set(numbers)) == len(numbers) == 3 * 4 * 6


def test_streams_of_neighbours_are_not_correlated() -> None:
    """40 streams of 1000 numbers: correlations have sd 1 / sqrt(1000); the largest of 780 is below 5 of these."""
    repeats = [rng.normal(size=1000) for rng in Streams(0, "x", 20)]
    seeds = [stream(seed, "x").normal(size=1000) for seed in range(20)]
    drawn = np.array(repeats + seeds)
    off = np.asarray(np.corrcoef(drawn))[np.triu_indices(40, 1)]
    assert np.abs(off).max() < 5 / np.sqrt(1000)


def test_repeat_starts_anew_each_time() -> None:
    streams = Streams(0, "x", 2)
    assert streams[1].random() == streams[1].random()
    assert len(streams) == len(list(streams)) == 2
    for repeat in (-1, 2):
        with pytest.raises(IndexError):
            streams[repeat]


def test_stream_is_the_same_on_every_machine() -> None:
    """These numbers must never change, or a seed of today gives other results tomorrow."""
    assert Streams(1, "temp", 1)[0].integers(0, 10**6, 3).tolist() == [526249, 50324, 850276]
    assert stream(0, "folds").integers(0, 10**6, 3).tolist() == [399986, 985933, 531035]


@pytest.mark.parametrize("seed", [0, 5, np.int64(3), np.uint8(4), 2**80])
def test_integers_are_seeds(seed: Any) -> None:
    assert read_seed(seed) == seed
    assert type(read_seed(seed)) is int


def test_drawn_seed_can_be_reused() -> None:
    one, two = read_seed(None), read_seed(None)
    assert one != two
    assert read_seed(json.loads(json.dumps(one))) == one


@pytest.mark.parametrize("seed", [-1, 1.0, "1", True, [1]])
def test_invalid_random_state_raises(seed: Any) -> None:
    with pytest.raises(ParameterError, match="random_state must be an integer"):
        read_seed(seed)


@pytest.mark.parametrize("make", [np.random.default_rng, np.random.RandomState])
def test_generator_as_random_state_is_advanced(make: Any) -> None:
    rng = make(0)
    first, second = read_seed(rng), read_seed(rng)
    assert first != second
    assert first == read_seed(make(0))


N = 20_000
COUNTED = np.arange(N, dtype=np.uint64)  # the worst keys there are: neighbours that nothing has mixed


def keyed(key: str = "x", seed: int = 0, n_repeats: int = 3, rows: Any = COUNTED) -> KeyedStreams:
    return KeyedStreams(seed, key, n_repeats, rows=rows)


def test_keyed_numbers_depend_on_the_key_not_on_the_position() -> None:
    order = np.random.default_rng(1).permutation(N)[:500]
    for name in ("random", "standard_normal"):
        whole = [getattr(rng, name)(N) for rng in keyed()]
        some = [getattr(rng, name)(500) for rng in keyed(n_repeats=2, rows=COUNTED[order])]
        for one, two in zip(some, whole, strict=False):
            assert (one == two[order]).all()
    assert (keyed().of_rows.random(N)[order] == keyed(rows=COUNTED[order]).of_rows.random(500)).all()


def test_keyed_stream_advances_and_can_be_restarted() -> None:
    rng = keyed()[0]
    first, second = rng.random(N), rng.random(N)
    assert (first != second).all()
    assert (keyed()[0].random(N) == first).all()
    with pytest.raises(ValueError, match="20000 rows cannot draw 3 numbers"):
        rng.random(3)
    with pytest.raises(IndexError):
        keyed()[3]


def test_keyed_numbers_are_uniform() -> None:
    """Chi-square of 200 cells has mean 199 and sd 20: 5 sd above it is 299. Of 30 streams."""
    for at in range(30):
        counts = np.bincount((keyed(seed=at, n_repeats=1)[0].random(N) * 200).astype(int), minlength=200)
        assert ((counts - N / 200) ** 2 / (N / 200)).sum() < 299


def test_keyed_normal_numbers_are_normal() -> None:
    """Mean and second, third, fourth moment: 5 standard errors of N normal numbers."""
    drawn = keyed()[0].standard_normal(N)
    for power, moment, variance in ((1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96)):
        assert abs((drawn**power).mean() - moment) < 5 * np.sqrt(variance / N)


def test_keyed_streams_are_uncorrelated() -> None:
    """Seeds, features, repeats, calls, and neighbouring rows: correlations have sd 1 / sqrt(N), of 435 the largest
    is below 5 of these; so has the share of equal highest bits about 1/2, with sd 1 / (2 sqrt(N))."""
    streams = [
        *(rng.random(N) for rng in keyed(n_repeats=10)),
        *(keyed(seed=seed, n_repeats=1)[0].random(N) for seed in range(1, 9)),
        *(keyed(key, n_repeats=1)[0].random(N) for key in ("y", "z", "", "x ", "xx")),
        keyed().of_rows.random(N),
        *(np.roll(keyed()[0].random(N), lag) for lag in (1, 2, 3, 8, 64, 1024)),
    ]
    drawn = np.array(streams)
    off = np.triu_indices(len(drawn), 1)
    assert np.abs(np.corrcoef(drawn)[off]).max() < 5 / np.sqrt(N)
    high = 2.0 * (drawn >= 0.5) - 1.0
    assert np.abs((high @ high.T / N)[off]).max() < 5 / np.sqrt(N)


def test_cached_values_are_computed_once_for_keyed_streams_only() -> None:
    made: list[int] = []
    rngs, plain = keyed(), Streams(0, "x", 3)
    for _ in range(2):
        assert cached(rngs, "pools", lambda: made.append(1) or "kept") == "kept"  # type: ignore[func-returns-value]
        assert cached(plain, "pools", lambda: made.append(2) or "new") == "new"  # type: ignore[func-returns-value]
    assert made == [1, 2, 2]
    assert rngs.shared.random() == plain.shared.random()


def test_generators_and_random_states_are_seeds_that_advance() -> None:
    for make in (np.random.default_rng, np.random.RandomState):
        first, second = make(3), make(3)
        assert read_seed(first) == read_seed(second)
        assert read_seed(first) != read_seed(make(3))


def test_importance_takes_a_generator() -> None:
    train, test = sg.datasets.bike(split=0.7, random_state=1)

    def estimate(random_state: Any) -> float:
        imp = sg.importance(
            lambda X: 100 * X["temp"],
            test.X,
            test.y,
            train=train.X,
            features=["temp"],
            sampler="marginal",
            random_state=random_state,
        )
        return float(imp.overall["estimate"].iloc[0])

    assert estimate(np.random.default_rng(5)) == estimate(np.random.default_rng(5))
    assert estimate(np.random.RandomState(5)) != estimate(np.random.RandomState(6))

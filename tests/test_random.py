"""One seed, and from it an independent stream for each feature and repeat."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from subgrove._random import Streams, read_seed, stream
from subgrove.exceptions import ParameterError


def test_stream_depends_on_seed_feature_and_repeat_alone() -> None:
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
def test_whole_numbers_are_seeds(seed: Any) -> None:
    assert read_seed(seed) == seed
    assert type(read_seed(seed)) is int


def test_seed_that_is_drawn_can_be_given_again() -> None:
    one, two = read_seed(None), read_seed(None)
    assert one != two
    assert read_seed(json.loads(json.dumps(one))) == one


@pytest.mark.parametrize("seed", [-1, 1.0, "1", True, np.random.default_rng(0), [1]])
def test_what_is_no_seed_is_refused(seed: Any) -> None:
    with pytest.raises(ParameterError, match="seed must be a whole number >= 0"):
        read_seed(seed)

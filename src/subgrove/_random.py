"""Randomness: one seed, and from it an independent stream for each (feature, repeat).

A stream depends on the seed, the feature's name and the number of the repeat alone. So the same seed gives the same
numbers for any number of jobs, any order and any subset of features, and more repeats go on where fewer ended (unless
more of them make an expectation exact).
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from subgrove.exceptions import ParameterError


def read_seed(seed: Any) -> int:
    """The seed as a whole number >= 0; None draws one, so that the result can say which it was."""
    if seed is None:
        return secrets.randbits(63)
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise ParameterError(f"seed must be a whole number >= 0, or None for another one each time; got {seed!r}.")
    return int(seed)


@dataclass(frozen=True)
class Streams:
    """One stream for each repeat, made when it is asked for: `for rng in streams`.

    Asking for the same repeat again gives a stream that starts anew.
    """

    seed: int
    key: str
    n_repeats: int

    def __len__(self) -> int:
        return self.n_repeats

    def __getitem__(self, repeat: int) -> np.random.Generator:
        if not 0 <= repeat < self.n_repeats:
            raise IndexError(f"repeat {repeat} of {self.n_repeats}")
        return _generator(self.seed, self.key, repeat)

    def __iter__(self) -> Iterator[np.random.Generator]:
        return (self[repeat] for repeat in range(self.n_repeats))

    @property
    def shared(self) -> np.random.Generator:
        """A stream for what all repeats have in common, the same whatever their number."""
        return stream(self.seed, self.key)


def stream(seed: int, key: str) -> np.random.Generator:
    """A stream for work that has no repeats, such as drawing folds."""
    return _generator(seed, key)


def _generator(seed: int, key: str, *repeat: int) -> np.random.Generator:
    digest = hashlib.blake2b(key.encode(), digest_size=16).digest()
    words = np.frombuffer(digest, dtype="<u4").tolist()
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(*words, *repeat)))

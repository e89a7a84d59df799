"""Does the package compute on this machine what is known to be true? Each oracle is asked, timed and compared.

A check that raises has failed, with its message; it stops nothing. The eight checks of estimates have a margin of four
standard errors: if these are normal, a run with another seed fails by chance in about one of 2,000 runs (8 x 6.3e-5).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from time import perf_counter

from subgrove._cli.oracles import ORACLES, Oracle


@dataclass(frozen=True)
class Check:
    """What one oracle said.

    Attributes
    ----------
    name, what : str
        What was checked, in short and in a sentence.
    measured, expected, tolerance : float
        The number that was computed, the one that is true, and how far apart they may be. NaN if the check raised.
    passed : bool
        Whether they are that close.
    seconds : float
        How long it took.
    message : str
        What is to be known besides; the error of a check that raised.
    """

    name: str
    what: str
    measured: float
    expected: float
    tolerance: float
    passed: bool
    seconds: float
    message: str = ""


def run_checks(seed: int = 1) -> tuple[Check, ...]:
    """All checks, one after the other.

    Parameters
    ----------
    seed : int, default 1
        Of the data and the draws.
    """
    return tuple(checked(seed))


def checked(seed: int = 1) -> Iterator[Check]:
    """The same checks as they are done, for those who want to see them come in.

    Examples
    --------
    >>> from subgrove._cli.selfcheck import checked
    >>> first = next(checked())
    >>> first.name, first.expected, first.passed
    ('conditional importance, independent', 4.0, True)
    """
    for oracle in ORACLES:
        yield _ask(oracle, seed)


def line(check: Check) -> str:
    """A check in a line, and its message in a second one."""
    verdict = "pass" if check.passed else "FAIL"
    numbers = f"{_number(check.measured):>9}  expected {_number(check.expected):>6}  +- {_number(check.tolerance):<8}"
    told = f"{verdict}  {check.name:<{_WIDTH}}  {numbers}  {check.seconds:5.2f} s"
    if not check.passed:
        told += f"\n      {check.what}"
    return f"{told}\n      {check.message}" if check.message else told


def table(checks: Sequence[Check]) -> str:
    """All checks as text, and how many passed."""
    return "\n".join([*map(line, checks), summary(checks)])


def summary(checks: Sequence[Check]) -> str:
    """How many passed, and how long all of them took."""
    passed, seconds = sum(check.passed for check in checks), sum(check.seconds for check in checks)
    return f"{passed} of {len(checks)} checks passed in {seconds:.1f} s."


_WIDTH = max(len(oracle.name) for oracle in ORACLES)


def _ask(oracle: Oracle, seed: int) -> Check:
    start = perf_counter()
    nothing = float("nan")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # numbers are checked here; what is to be told stands in messages
            found = oracle.ask(seed)
    except Exception as error:  # whatever it is, the next check is asked
        message = f"{type(error).__name__}: {error}"
        return Check(oracle.name, oracle.what, nothing, nothing, nothing, False, perf_counter() - start, message)
    passed = abs(found.measured - found.expected) <= found.tolerance
    numbers = (float(found.measured), float(found.expected), float(found.tolerance))
    return Check(oracle.name, oracle.what, *numbers, bool(passed), perf_counter() - start, found.message)


def _number(value: float) -> str:
    return "-" if value != value else f"{value + 0.0:.3g}"

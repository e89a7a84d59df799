"""`subgrove selfcheck`: each check as it is done, and an exit code that says whether all passed."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from pathlib import Path

from subgrove._cli.errors import UNEXPECTED, FailedError
from subgrove._cli.files import check_output, deliver
from subgrove._cli.output import Output
from subgrove._cli.selfcheck import checked, line, summary


def check(seed: int, out: Path | None, output: Output) -> None:
    """Run all checks; failing ones make the command fail."""
    check_output(out, "--json", (".json",))
    done = []
    for one in checked(seed):
        done.append(one)
        output.say(line(one))
    output.say(summary(done))
    if out is not None:
        numbers = [{name: _plain(value) for name, value in asdict(one).items()} for one in done]
        deliver(out, json.dumps(numbers, indent=1))
    if not all(one.passed for one in done):
        raise FailedError(UNEXPECTED)


def _plain(value: object) -> object:
    """JSON has no word for what is not a number."""
    return None if isinstance(value, float) and not math.isfinite(value) else value

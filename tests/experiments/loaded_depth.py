"""Loads all that the depth experiment needs, by computing a unit: for processes that are forked off afterwards."""

from __future__ import annotations

import tempfile

from experiments.__main__ import main

with tempfile.TemporaryDirectory() as folder:
    main(["depth", "run", "--quick", "--reps", "1", "--cells", "linear-*", "--out", folder])

"""Importance without fidelity checks, which take longer than the estimates that claims are about."""

from __future__ import annotations

from functools import partial

import subgrove as sg

importance = partial(sg.importance, check_fidelity=False)

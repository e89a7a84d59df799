"""Any frame, however odd, has finite results or an error of subgrove that names the fault."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import subgrove as sg
from subgrove.exceptions import SubgroveError

pytestmark = pytest.mark.filterwarnings("ignore")
N = 24
NUMBERS = st.one_of(
    st.floats(allow_nan=True, allow_infinity=False), st.sampled_from([0.0, -0.0, 5e-324, 1e308, -1e308, 1.0])
)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "float64": NUMBERS,
    "float32": st.floats(width=32, allow_infinity=False),
    "Int64": st.one_of(st.none(), st.integers(-(2**62), 2**62)),
    "boolean": st.sampled_from([True, False, None]),
    "category": st.one_of(st.none(), st.text(max_size=3), st.sampled_from(["", " ", "nan", "None"])),
    "object": st.one_of(st.none(), st.text(max_size=2), st.binary(max_size=2), st.integers(), st.booleans()),
    "datetime64[us]": st.datetimes().map(np.datetime64),
    "datetime64[us, Europe/Berlin]": st.datetimes(min_value=pd.Timestamp("1950-01-01").to_pydatetime()),
}


@st.composite
def columns(draw: st.DrawFn) -> Any:
    kind = draw(st.sampled_from(list(VALUES)))
    few = draw(st.lists(VALUES[kind], min_size=1, max_size=6))  # ties are likely
    values = [draw(st.sampled_from(few)) for _ in range(N)]
    if kind.endswith("Berlin]"):
        return pd.Series(values, dtype="datetime64[us]").dt.tz_localize("UTC").dt.tz_convert("Europe/Berlin")
    return pd.Series(values, dtype=kind)


@st.composite
def frames(draw: st.DrawFn) -> pd.DataFrame:
    made = draw(st.lists(columns(), min_size=1, max_size=4))
    names = draw(st.lists(st.one_of(st.text(max_size=3), st.integers()), min_size=len(made), max_size=len(made)))
    frame: pd.DataFrame = pd.concat(made, axis=1)
    frame.columns = pd.Index(names, dtype=object)
    return frame


@settings(
    max_examples=int(os.environ.get("SUBGROVE_EXAMPLES", "60")),
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
@given(frame=frames(), sampler=st.sampled_from(["auto", "marginal", "subgroups"]))
def test_a_frame_has_finite_results_or_an_error_with_its_reason(frame: pd.DataFrame, sampler: str) -> None:
    def model(Z: Any) -> Any:
        return Z.iloc[:, 0].isna().to_numpy() + np.arange(len(Z)) % 2.0

    y, before = np.arange(N) % 3.0, frame.copy(deep=True)
    with suppress(SubgroveError):
        found = sg.importance(model, frame, y, sampler=sampler, n_repeats=2, random_state=1).overall
        assert np.isfinite(found["estimate"]).all()
        assert len(found) == frame.shape[1]
    with suppress(SubgroveError):
        curves = sg.effect(model, frame, str(frame.columns[0]), subgroups=None).curves
        assert np.isfinite(curves["estimate"]).all()
    pd.testing.assert_frame_equal(frame, before)

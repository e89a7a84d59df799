"""How do I explain a model on a file that is too large for memory?

Pass `sg.LargeData(path)` instead of the table, and the name of the target column. Samplers are fitted on a sample of
the rows, the model is evaluated on all other rows chunk by chunk, and only sums are accumulated.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.tree import DecisionTreeRegressor

import subgrove as sg

try:
    import pyarrow as pa
    import pyarrow.parquet as pq
except ImportError:
    print('This example needs pyarrow: pip install "subgrove[pyarrow]"')
    sys.exit(0)

SMALL = "--small" in sys.argv  # the size that CI runs
ROWS = 30_000 if SMALL else 1_000_000

# %%
# A folder of Parquet files, as a database would export them. Rows are taxi trips: the fare depends on distance,
# duration and the hour, and the duration depends on the other two.


def trips(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    distance = rng.gamma(2, 3, n).round(1)
    hour = rng.integers(24, size=n)
    rush = np.isin(hour, [7, 8, 9, 16, 17, 18])
    minutes = (distance * np.where(rush, 4.5, 2.5) + rng.gamma(2, 2, n)).round()
    fare = 3 + 1.5 * distance + 0.3 * minutes + 2.0 * (hour < 5) + rng.normal(0, 2, n)
    return pd.DataFrame({"distance": distance, "hour": hour, "minutes": minutes, "fare": fare.round(2)})


folder = tempfile.TemporaryDirectory()
rows = Path(folder.name) / "trips"
rows.mkdir()
for number in range(10):
    table = pa.Table.from_pandas(trips(ROWS // 10, 1 + number), preserve_index=False)
    pq.write_table(table, rows / f"part-{number}.parquet")
FEATURES = ["distance", "hour", "minutes"]
before = trips(20_000, 0)  # of last year
model = DecisionTreeRegressor(min_samples_leaf=20, random_state=1).fit(before[FEATURES], before["fare"])
print(f"{ROWS:,} rows in {len(list(rows.iterdir()))} files")

# %%
# One call. A uniform sample of the rows of all files is used to select and fit samplers. The model is evaluated on all
# other rows, one chunk at a time, with the columns that it was fitted on.
options: dict[str, Any] = {
    "n_repeats": 2,
    "loss": "squared_error",
    "random_state": 1,
    "check_fidelity": False,
}
imp = sg.importance(model, sg.LargeData(rows, sample_size=ROWS // 10), "fare", **options)
print(imp.overall[["feature", "n", "estimate", "std_error", "conf_low", "conf_high"]].round(3).to_string(index=False))

# %%
# The results do not depend on the size of the chunks, because the random numbers of a row depend on the row alone.
small_chunks = sg.LargeData(rows, sample_size=ROWS // 10, chunk_rows=ROWS // 40)
repeated = sg.importance(model, small_chunks, "fare", **options)
difference = np.abs(repeated.overall["estimate"] - imp.overall["estimate"]).max()
print(f"chunks of {ROWS // 40:,} rows: largest difference {difference:.0e}")
assert difference < 1e-10

# %%
# For which trips is the duration important? Results are available by subgroup, as for tables in memory.
print(
    imp.by_subgroup.query("feature == 'minutes'")[["rule", "n", "estimate", "std_error"]]
    .round(3)
    .to_string(index=False)
)
sg.plots.importance(imp)

# %%
# Effects are computed in the same way. Subgroups are found on rows in memory, curves are means over all rows, and the
# grid of a curve comes from the sample.
groups = sg.find_subgroups(before[FEATURES], features="minutes", max_depth=1)
effect = sg.effect(model, rows, "minutes", subgroups=groups, grid_resolution=10)
print(effect.support[["rule", "n", "q1", "median", "q3"]].to_string(index=False))
sg.plots.effect(effect)

# %%
# For long runs, `sg.LargeData(rows, checkpoint="some/folder")` stores the sums of finished chunks, and the same call
# resumes from there; `n_jobs=2` or a Dask or Ray cluster processes several chunks at once. Results for single rows
# (`per_row`, `independence_test`, `explain_gap`) need a table in memory.
folder.cleanup()
plt.show()

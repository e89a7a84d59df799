"""How do I explain a model on a file that is too large for memory?

Find subgroups on a sample, and ask the model batch by batch: importance is a mean over rows, so that the means of
batches add up to that of the file. A sample of some thousand rows mostly says the same.
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
ROWS = 30_000 if SMALL else 300_000
BATCH = 10_000 if SMALL else 50_000

# %%
# A file to try it on, written in row groups as a database would. Rows are trips of taxis: the fare depends on
# distance, duration and the hour, and the duration on the other two.


def trips(n: int, rng: np.random.Generator) -> pd.DataFrame:
    distance = rng.gamma(2, 3, n).round(1)
    hour = rng.integers(24, size=n)
    rush = np.isin(hour, [7, 8, 9, 16, 17, 18])
    minutes = (distance * np.where(rush, 4.5, 2.5) + rng.gamma(2, 2, n)).round()
    fare = 3 + 1.5 * distance + 0.3 * minutes + 2.0 * (hour < 5) + rng.normal(0, 2, n)
    return pd.DataFrame({"distance": distance, "hour": hour, "minutes": minutes, "fare": fare.round(2)})


folder = tempfile.TemporaryDirectory()
path = Path(folder.name) / "trips.parquet"
rng = np.random.default_rng(1)
parts = [pa.Table.from_pandas(trips(10_000, rng), preserve_index=False) for _ in range(ROWS // 10_000)]
with pq.ParquetWriter(path, parts[0].schema) as writer:
    for part in parts:
        writer.write_table(part)
file = pq.ParquetFile(path)
print(f"{file.metadata.num_rows:,} rows in {file.metadata.num_row_groups} row groups")

# %%
# A sample over the whole file, read batch by batch: each row is taken with the same chance. (The first rows of a file
# are no sample: files are mostly in some order.) Half of it is for the model, half for the subgroups.
share = 8_000 / ROWS
sample = pd.concat(
    [
        batch.to_pandas().sample(frac=share, random_state=number)
        for number, batch in enumerate(file.iter_batches(BATCH))
    ],
    ignore_index=True,
)
FEATURES = ["distance", "hour", "minutes"]
half = len(sample) // 2
model = DecisionTreeRegressor(min_samples_leaf=20, random_state=1).fit(sample[FEATURES][:half], sample["fare"][:half])
groups = sg.find_subgroups(sample[FEATURES][half:])
print(groups)

# %%
# All rows, one batch in memory at a time. Each batch is redrawn within the subgroups that are already found; the mean
# over batches, weighted by their rows, is the importance in the whole file. For errors of batches that are drawn
# alike, the variance of the mean is the mean of variances over the number of batches.
asked: dict[str, Any] = {"sampler": groups, "n_repeats": 5, "seed": 1, "certify": False, "progress": False}
tables = []
for batch in file.iter_batches(BATCH):
    rows = batch.to_pandas()
    tables.append(sg.importance(model, rows[FEATURES], rows["fare"], **asked).overall.set_index("feature"))
weight = np.array([table["n"].iloc[0] for table in tables]) / ROWS
whole = sum(w * table["estimate"] for w, table in zip(weight, tables, strict=True))
error = sum((w * table["std_error"]) ** 2 for w, table in zip(weight, tables, strict=True)) ** 0.5
print(pd.DataFrame({"estimate": whole, "std_error": error}).round(3).to_string())

# %%
# How many rows would have been enough? The same importance from samples of more and more rows, drawn from the file's
# first batch, which here is in random order. Intervals shrink with the square root of the rows; decide how narrow you
# need them.
first = next(file.iter_batches(BATCH)).to_pandas()
sizes = [1_000, 2_000, 5_000, 10_000]
found = {n: sg.importance(model, first[FEATURES][:n], first["fare"][:n], **asked) for n in sizes}
table = pd.concat({n: result.overall.set_index("feature") for n, result in found.items()})
figure, axes = plt.subplots(1, 3, figsize=(9, 3), layout="constrained")
for ax, feature in zip(axes, FEATURES, strict=True):
    line = table.xs(feature, level=1)
    ax.errorbar(line.index, line["estimate"], line["estimate"] - line["conf_low"], fmt="o", capsize=3, color="#0072b2")
    ax.axhline(whole[feature], color="#d55e00")
    ax.set(xscale="log", title=feature, xlabel="rows in the sample")
    ax.spines[["top", "right"]].set_visible(False)
axes[0].set_ylabel("increase of squared error")
figure.legend(["all rows of the file", "a sample, 95 % interval"], frameon=False, loc="outside upper center", ncols=2)
covered = [abs(found[n].overall.set_index("feature").loc[f, "estimate"] - whole[f]) for n in sizes for f in FEATURES]
widths = [2.6 * found[n].overall.set_index("feature").loc[f, "std_error"] for n in sizes for f in FEATURES]
assert np.mean(np.array(covered) < np.array(widths)) > 0.8

# %%
# What does not work yet: nothing here reads a file by itself. `find_subgroups` and one call of `importance` need
# their rows in memory; `memory=` bounds what they need beyond that. Quantities that are no means over rows, such as
# the AUC, cannot be put together from batches.
folder.cleanup()
plt.show()

"""A model is tracked by MLflow: how do I log its importance beside its metrics?

Tables, a figure and single numbers go into the run of the model, so that two runs can be compared by what they rely on.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
from sklearn.ensemble import RandomForestRegressor

import subgrove as sg
from subgrove.sklearn import ImportanceDisplay

try:
    import mlflow
except ImportError:
    sys.exit("This example needs MLflow: pip install mlflow-skinny")

SMALL = "--small" in sys.argv  # the size that CI runs

# %%
# A model of three columns of the bike data, and its conditional importance on held-out days.
columns = ["temp", "hum", "wind"]
train, test = sg.datasets.bike(split=0.7, random_state=1)
model = RandomForestRegressor(30 if SMALL else 200, random_state=1).fit(train.X[columns], train.y)
imp = sg.importance(
    model, test.X[columns], test.y, train=train.X[columns], n_repeats=5 if SMALL else 20, random_state=1
)

# %%
# One run holds the settings, a metric for each feature, the table as JSON and the figure. Metrics of features can be
# compared over runs in the user interface, as accuracy can. Here the run is stored in a temporary folder, which
# MLflow 3 has to be allowed.
os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"
display = ImportanceDisplay.from_result(imp)
with tempfile.TemporaryDirectory() as folder:
    mlflow.set_tracking_uri((Path(folder) / "runs").as_uri())
    with mlflow.start_run() as run:
        mlflow.log_param("importance.sampler", imp.settings["sampler"])
        for line in imp.overall.itertuples():
            mlflow.log_metric(f"importance.{line.feature}", line.estimate)
            mlflow.log_metric(f"importance.{line.feature}.std_error", line.std_error)
        mlflow.log_dict(imp.overall.to_dict("list"), "importance.json")
        mlflow.log_figure(display.figure_, "importance.png")
    stored = mlflow.get_run(run.info.run_id).data.metrics
    artifacts = sorted(path.name for path in Path(folder).rglob("importance.*") if path.suffix in (".json", ".png"))
print(f"stored: {len(stored)} metrics, and {' and '.join(artifacts)}")
assert stored["importance.temp"] == imp.overall.set_index("feature")["estimate"]["temp"]
plt.show()

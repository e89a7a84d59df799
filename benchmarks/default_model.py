"""Performance of the default model of `subgrove explain`, compared with other settings of gradient boosting.

Cross-validated R² or D² of the log loss, on at most 4,000 rows of nine data sets, and processor time of five folds::

    python benchmarks/default_model.py          # the data sets beside the repository, or those of SUBGROVE_DATA
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))  # the experiments lie beside this folder

from experiments.data import folder, manifest
from subgrove._cli import default_model
from subgrove._cli.columns import KnownColumns
from subgrove._cli.learning_task import learning_task
from subgrove._cli.options import DataOptions
from subgrove._cli.reading import read_table_file

SETS = (
    "credit-g",
    "eucalyptus",
    "wine_quality",
    "diabetes",
    "churn",
    "bank-marketing",
    "wind",
    "quake",
    "cylinder-bands",
)
EARLY: dict[str, Any] = {"early_stopping": True, "validation_fraction": 0.15}
SETTINGS: dict[str, dict[str, Any]] = {
    "the default": {},
    "scikit-learn's": {"max_leaf_nodes": 31, "max_iter": 100, "early_stopping": False},
    "31 leaves, early": {"max_leaf_nodes": 31, "max_iter": 200, **EARLY},
    "8 leaves, 100 rounds": {"max_iter": 100, "early_stopping": False},
    "15 leaves, rate 0.05": {"max_leaf_nodes": 15, "learning_rate": 0.05, "max_iter": 100, "early_stopping": False},
    "15 leaves, ridge 5": {"max_leaf_nodes": 15, "l2_regularization": 5.0, "max_iter": 100, "early_stopping": False},
}


class VariedModel(default_model.DefaultModel):
    """The default model with some settings changed."""

    settings: dict[str, Any]

    def _unfitted(self, n_classes: int) -> Any:
        return super()._unfitted(n_classes).set_params(**self.settings)


def main() -> None:
    found = folder()
    if found is None:
        raise SystemExit("No data sets found. Set SUBGROVE_DATA to their folder.")
    default_model.DefaultModel = VariedModel  # type: ignore[misc]
    print(f"| data set | {' | '.join(SETTINGS)} |\n| --- |{' --- |' * len(SETTINGS)}")
    for name in SETS:
        entry = manifest().set_index("name").loc[name]
        target = str(entry["target"])
        options = DataOptions(data=found / entry["file"], sample_size=4000)
        task = learning_task(read_table_file(options, KnownColumns({target: ""})), target, None)
        cells = []
        for settings in SETTINGS.values():
            VariedModel.settings = settings
            start = time.process_time()
            score = default_model.cross_validate(task, forest=False, random_state=1)[0]
            cells.append(f"{score.value:.3f} ± {score.std_error:.3f} ({time.process_time() - start:.1f} s)")
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()

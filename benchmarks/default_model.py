"""How good the default model of `subgrove explain` is, beside other settings of the same boosting.

Cross-validated share of squared error or log loss saved, at most 4,000 rows of nine data sets, and the processor's
seconds for five folds::

    python benchmarks/default_model.py          # the data sets beside the repository, or those of SUBGROVE_DATA
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))  # the experiments lie beside this folder

from experiments.data import folder, manifest
from subgrove._cli import training
from subgrove._cli.reading import Request, read_data
from subgrove._cli.target import pose

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


class Other(training.DefaultModel):
    """The default model with some settings changed."""

    settings: dict[str, Any]

    def _fresh(self, n_classes: int) -> Any:
        return super()._fresh(n_classes).set_params(**self.settings)


def main() -> None:
    found = folder()
    if found is None:
        raise SystemExit("There are no data sets. Set SUBGROVE_DATA to their folder.")
    training.DefaultModel = Other  # type: ignore[misc]
    print(f"| data set | {' | '.join(SETTINGS)} |\n| --- |{' --- |' * len(SETTINGS)}")
    for name in SETS:
        entry = manifest().set_index("name").loc[name]
        target = str(entry["target"])
        problem = pose(read_data(Request(found / entry["file"], most=4000, needed={target: ""})), target, None)
        cells = []
        for settings in SETTINGS.values():
            Other.settings = settings
            start = time.process_time()
            skill = training.cross_validate(problem, forest=False, seed=1)[0]
            cells.append(f"{skill.value:.3f} ± {skill.std_error:.3f} ({time.process_time() - start:.1f} s)")
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()

"""The reference cases: outputs of R, in a folder beside the repository that a user's machine does not have.

Made with R 4.2.2, trtf 0.4-2, partykit 1.2-16, rpart 4.1.19; `exact_mle` is a more exact optimum of the same problem.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "reference" / "trees"
ABSENT = f"the reference outputs of R are not beside the repository ({FOLDER.name})"


def names(method: str) -> list[str]:
    """Cases of a method ("trafotree" or "ctree"), or none where the folder is absent."""
    return sorted(path.stem for path in FOLDER.glob("*.json") if case(path.stem)["method"] == method)


@cache
def case(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text())
    return loaded


@cache
def frame(name: str) -> pd.DataFrame:
    columns = json.loads((FOLDER / "data" / f"{name}.schema.json").read_text())["columns"]
    coded = {column: str for column, info in columns.items() if info["type"] in ("factor", "ordered")}
    table = pd.read_csv(FOLDER / "data" / f"{name}.csv.gz", dtype=coded)
    for column, info in columns.items():
        if column in coded:
            table[column] = pd.Categorical(table[column], info["levels"], ordered=info["type"] == "ordered")
        elif info["type"] == "double":
            table[column] = table[column].astype(float)
    return table


def inputs(name: str) -> tuple[pd.DataFrame, pd.Series[Any]]:
    """Candidate columns and x of a case."""
    table, loaded = frame(case(name)["dataset"]), case(name)
    return table[loaded["covariates"]], table[loaded["target"]]

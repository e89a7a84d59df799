"""Other packages on the dependence structures of `experiments structures`, on the same rows.

hidimstat's conditional feature importance with a random forest and with gradient boosting as imputation models, and
fippy's Gaussian sampler. They take numbers: nominal columns are one-hot encoded for them, levels of x1 are codes, which
hidimstat predicts by the classifier of the same kind. Structures with missing values are left out, since they reject
them. `python -m pip install --group peers` installs them.
"""

from __future__ import annotations

import warnings
from contextlib import redirect_stderr
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import subgrove as sg
from experiments import structures
from experiments.peers import _Fitted, _global_seed
from experiments.units import Size, Unit, seed_of
from subgrove._core.kinds import Floats

BEYOND = "other packages on the dependence structures of `structures` (needs the group peers)"
REPETITIONS = 15
PACKAGES = ("hidimstat_forest", "hidimstat_boosting", "fippy_gaussian")
_FEW = 10  # values up to which hidimstat takes a column as levels
_NEAR = 1.5  # times the error of the best package
_EXACT = 1e-9
_TINY = 1e-12  # squared errors below it are rounding


def units(size: Size) -> list[Unit]:
    """The first repetitions of `structures`, without missing values."""
    missing = [name for name in ("fippy", "hidimstat") if find_spec(name) is None]
    if missing:
        raise ModuleNotFoundError(f"Not installed: {', '.join(missing)}. Run `python -m pip install --group peers`.")
    own = Size(size.reps or (2 if size.quick else REPETITIONS), *list(vars(size).values())[1:])
    return [unit for unit in structures.units(own) if unit.params["structure"] != "missing values"]


def run(unit: Unit, seed: int) -> list[dict[str, Any]]:
    """Estimates of the packages, the default and the true sampler, on the rows of the same unit of `structures`."""
    same = seed_of("structures", unit.key)
    return structures.run(unit, same) + peer_rows(unit, same)


def peer_rows(unit: Unit, seed: int) -> list[dict[str, Any]]:
    """Estimates of the packages for both models."""
    options = unit.params
    rows = []
    for model in structures.MODELS:
        if (options["structure"], model) in structures.WITHOUT_TRUTH:
            continue
        structure = sg.simulate.structure(options["structure"], model=model)
        encoded = _Encoded(
            structure,
            structure.sample(options["n_train"], random_state=seed),
            structure.sample(options["n_test"], random_state=seed + 1),
        )
        for method in PACKAGES:
            with warnings.catch_warnings(), redirect_stderr(StringIO()):
                warnings.simplefilter("ignore")
                estimate = encoded.fippy(seed) if method == "fippy_gaussian" else encoded.hidimstat(method, seed)
            rows.append(
                {
                    **{name: options[name] for name in ("structure", "n_train", "n_test", "rep")},
                    "model": model,
                    "method": method,
                    "truth": structure.importance,
                    "estimate": estimate,
                    "covered": False,
                    "difference": False,
                    "sampler_change": np.nan,
                    "selected": "",
                }
            )
    return rows


class _Encoded:
    """Rows as the packages take them: x1 first, nominal columns one-hot encoded; predictions of the test rows."""

    def __init__(self, structure: Any, train: Any, test: Any) -> None:
        self.structure, self.test = structure, test
        dtype = train.X["x1"].dtype
        self.levels = list(dtype.categories) if isinstance(dtype, pd.CategoricalDtype) else None
        both = pd.concat([train.X, test.X])
        others = pd.get_dummies(both.drop(columns="x1"), dtype=float).to_numpy()
        x1 = both["x1"].cat.codes if self.levels else both["x1"]
        matrix = np.column_stack([x1.to_numpy(np.float64), others])
        self.train_rows, self.test_rows = matrix[: len(train.X)], matrix[len(train.X) :]
        self.loss = (np.asarray(test.y) - self.predict(self.test_rows)) ** 2

    def predict(self, rows: Any) -> Floats:
        """Predict test rows, or several copies of them one after the other, with the given values of x1."""
        values = np.asarray(rows, dtype=np.float64)[:, 0]
        frame = pd.concat([self.test.X] * (len(values) // len(self.test.X)), ignore_index=True)
        if self.levels:
            codes = np.clip(np.rint(values), 0, len(self.levels) - 1).astype(int)
            frame["x1"] = pd.Categorical.from_codes(codes, dtype=self.test.X["x1"].dtype)
        else:
            frame["x1"] = values
        return np.asarray(self.structure.model(frame), dtype=np.float64)

    def hidimstat(self, method: str, seed: int) -> float:
        """Conditional feature importance of hidimstat: the mean increase of the loss, which it does not halve."""
        from hidimstat import CFI
        from sklearn.ensemble import (
            HistGradientBoostingClassifier,
            HistGradientBoostingRegressor,
            RandomForestClassifier,
            RandomForestRegressor,
        )

        number = seed % 2**32
        if method == "hidimstat_forest":
            regression: Any = RandomForestRegressor(min_samples_leaf=5, random_state=number)
            classes: Any = RandomForestClassifier(min_samples_leaf=5, random_state=number)
        else:
            regression = HistGradientBoostingRegressor(random_state=number)
            classes = HistGradientBoostingClassifier(random_state=number)
        few = self.levels is not None or len(np.unique(self.train_rows[:, 0])) <= _FEW
        importance = CFI(
            _Fitted(self.predict, self.train_rows.shape[1]),
            n_permutations=structures.N_REPEATS,
            imputation_model_continuous=regression,
            imputation_model_categorical=classes,
            features_groups={"x1": [0]},
            feature_types=["categorical" if few else "continuous"],
            random_state=number,
        )
        importance.fit(self.train_rows, np.zeros(len(self.train_rows)))
        importance.importance(self.test_rows, np.asarray(self.test.y))
        return float(np.mean(importance.loss_[0]) - importance.loss_reference_)

    def fippy(self, seed: int) -> float:
        """Mean increase of the loss over draws of fippy's Gaussian sampler, by its own sampler and our arithmetic."""
        from fippy.samplers import GaussianSampler

        names = ["x1", *(f"z{at}" for at in range(1, self.train_rows.shape[1]))]
        train, test = (pd.DataFrame(rows, columns=names) for rows in (self.train_rows, self.test_rows))
        with _global_seed(seed):
            sampler = GaussianSampler(train)
            drawn = sampler.sample(test, ["x1"], names[1:], n_samples=structures.N_REPEATS)
        values = np.asarray(drawn, dtype=np.float64)[:, :, 0].T
        y = np.asarray(self.test.y)
        return float(np.mean([np.mean((y - self.predict(one[:, None])) ** 2 - self.loss) for one in values]))


def tables(results: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """`lines`: the error of the default and of the best package in each line, over those of the same repetitions."""
    results = results.assign(square=(results["estimate"] - results["truth"]) ** 2)
    lines = []
    by = ["n_train", "structure", "model"]
    for place, part in results.groupby(by, sort=False):
        wide = part.pivot_table(index="rep", columns="method", values="square").dropna()
        errors = wide.mean()
        best = str(errors[list(PACKAGES)].idxmin())
        exact = bool(part["truth"].iloc[0] < _EXACT)
        lines.append(
            {
                **dict(zip(by, place, strict=True)),
                "repetitions": len(wide),
                "exact": exact,
                "ours": errors["auto"],
                "true": errors["true"],
                **{name: errors[name] for name in PACKAGES},
                "best": best,
                "ratio": (errors["auto"] + _TINY) / (errors[best] + _TINY),
            }
        )
    table = pd.DataFrame(lines).sort_values(["n_train", "ratio"], ascending=[False, False], kind="stable")
    return {"lines": table.reset_index(drop=True)}


def figures(results: pd.DataFrame, folder: Path) -> list[Path]:
    """No figure: the table says it."""
    return []


def report(tables: dict[str, pd.DataFrame]) -> str:
    """The section of the page, from the tables and from nothing else."""
    lines = tables["lines"]
    head = ("training rows", "structure", "model", "best package", "its error", "ours", "true sampler's", "ratio")
    lost = lines[lines["ratio"] > 1]
    rows = [f"| {' | '.join(head)} |", "|--:|---|---|---|--:|--:|--:|--:|", *(_row(line) for line in lost.itertuples())]
    intro = (
        "hidimstat's conditional feature importance with a random forest (`min_samples_leaf=5`) and with histogram "
        "gradient boosting as imputation models, and fippy's Gaussian sampler, on the rows of the section above, "
        f"{structures.N_REPEATS} draws, {int(lines['repetitions'].min())} repetitions. Nominal columns are one-hot "
        "encoded for them; structures with missing values are left out, since they reject them. The best package is "
        "the one with the smallest squared error in that line, picked afterwards."
    )
    return "\n\n".join(
        [
            "## Other packages on the dependence structures",
            intro,
            *(_sentence(n, lines[lines["n_train"] == n]) for n in lines["n_train"].unique()),
            "Lines in which the best of them has a smaller error:",
            "\n".join(rows),
        ]
    )


def _sentence(n_train: int, lines: pd.DataFrame) -> str:
    smaller, near = (lines["ratio"] < 1).mean(), (lines["ratio"] <= _NEAR).mean()
    return (
        f"**{n_train:,} training rows**: of {len(lines)} lines the default has a smaller error than the best of the "
        f"packages in {100 * smaller:.0f} %, and at most {_NEAR} times its error in {100 * near:.0f} %. The median "
        f"ratio of the two errors is {lines['ratio'].median():.2f}."
    )


def _row(line: Any) -> str:
    return (
        f"| {line.n_train} | {line.structure} | {line.model} | {line.best} | {getattr(line, line.best):.2g} | "
        f"{line.ours:.2g} | {line.true:.2g} | {line.ratio:.2f} |"
    )

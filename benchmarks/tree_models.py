"""Cost of results that are computed from the trees of a model, relative to its predictions.

    OMP_NUM_THREADS=1 python -m benchmarks.tree_models [--sections importance peers effects interactions] [--rounds 5]
    OMP_NUM_THREADS=1 python -m benchmarks.tree_models --sections large [--rows 1000000]
    OMP_NUM_THREADS=1 python -m benchmarks.tree_models --sections peers --rounds 1 --only "fully grown"

One thread, processor time, minimum of several rounds in turns, all in one run. `predict` is the model's own prediction
of the rows times the number of predictions that the result needs without the trees. The evaluation step is what a call
of `sg.importance` does after it has predicted the baseline rows and has the subgroups: it reads the trees, compares
them with predictions, computes the expected losses, and the errors and values of each row from them.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

import subgrove as sg
from benchmarks.machine import machine
from benchmarks.timing import forget_peak, interleaved, markdown, peak_mib
from subgrove._importance import importance as whole_call
from subgrove._scoring.score import score_features

ROWS, COLUMNS, POINTS = 10_000, 20, 50


def data(n: int = ROWS, p: int = COLUMNS, seed: int = 0) -> tuple[pd.DataFrame, Any]:
    """Independent normal columns, a product, a wave and sums."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    y = X[:, 0] * X[:, 1] + np.sin(X[:, 2]) + X[:, :10].sum(axis=1) + rng.normal(size=n)
    return pd.DataFrame(X, columns=[f"x{index}" for index in range(p)]), y


def models(X: pd.DataFrame, y: Any) -> dict[str, Any]:
    """Fitted models; those of libraries that are not installed are left out."""
    from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor

    made: dict[str, Callable[[], Any]] = {
        "HistGradientBoosting 100 x 31": lambda: HistGradientBoostingRegressor(random_state=0),
        "LightGBM 200 x 31": lambda: _library("lightgbm").LGBMRegressor(n_estimators=200, n_jobs=1, verbose=-1),
        "XGBoost 200 x depth 6": lambda: _library("xgboost").XGBRegressor(n_estimators=200, max_depth=6, n_jobs=1),
        "forest 100, leaves of 5": lambda: RandomForestRegressor(100, min_samples_leaf=5, random_state=0),
    }
    fitted = {}
    for name, make in made.items():
        try:
            fitted[name] = make().fit(X, y)
        except ImportError:
            print(f"{name}: not installed")
    return fitted


def _library(name: str) -> Any:
    from importlib import import_module

    return import_module(name)


def _mean(model: Any, X: pd.DataFrame) -> float:
    return float(np.asarray(model.predict(X), dtype=np.float64).mean())


def effects(rounds: int) -> str:
    """Partial dependence of all features on 50 points, and the largest difference to the model's own curves.

    Beside it Woodelf's on as many points, where it is installed and reads the model.
    """
    X, y = data()
    lines = []
    for name, model in models(X, y).items():

        def curves(model: Any = model) -> Any:
            return sg.Effects.compute(model, X, subgroups=None, grid_resolution=POINTS)

        calls: dict[str, Callable[[], Any]] = {"predict": partial(model.predict, X), "effects": curves}
        calls |= _woodelf(model, X)
        times = {key: min(own) for key, own in interleaved(calls, rounds, time.process_time).items()}
        found, at = curves()["x1"].curves, X.copy()
        difference = 0.0
        for line in found.iloc[:: POINTS // 5].itertuples():
            difference = max(difference, abs(_mean(model, at.assign(x1=line.x)) - line.estimate))
        bare = times["predict"] * POINTS * COLUMNS
        cells = [name, f"{1000 * times['effects']:.0f}", f"{bare:.1f}", f"{times['effects'] / bare:.4f}"]
        theirs = f"{1000 * times['woodelf']:.0f}" if "woodelf" in times else ""
        lines.append([*cells, f"{difference:.0e}", theirs])
    columns = ["model", "curves of all features, ms", "bare predict, s", "ratio", "difference", "Woodelf, ms"]
    return markdown(columns, lines)


def _woodelf(model: Any, X: pd.DataFrame) -> dict[str, Callable[[], Any]]:
    """Return a call of Woodelf's partial dependence; none if it is not installed or cannot read the model."""
    try:
        woodelf_pdp = _library("woodelf.pdp").woodelf_pdp
        woodelf_pdp(model, X, k=POINTS, centered=False, verbose=False)
    except Exception:
        return {}
    return {"woodelf": lambda: woodelf_pdp(model, X, k=POINTS, centered=False, verbose=False)}


def interactions(rounds: int) -> str:
    """H-squared of all pairs of features."""
    X, y = data()
    lines = []
    for name, model in models(X, y).items():
        calls = {"h": lambda model=model: sg.InteractionStrength.compute(model, X, random_state=0)}
        n = rounds if "forest" not in name else 1
        seconds = min(interleaved(calls, n, time.process_time)["h"])
        lines.append([name, str(COLUMNS * (COLUMNS - 1) // 2), f"{seconds:.2f}"])
    return markdown(["model", "pairs", "s"], lines)


def _importance_models(X: pd.DataFrame, y: Any, only: str = "") -> dict[str, tuple[Any, Any, str]]:
    """Fitted models whose names contain a text, their targets and losses."""
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor, RandomForestRegressor

    forest: dict[str, Any] = {"n_estimators": 100, "max_features": 0.33, "random_state": 0}
    light: dict[str, Any] = {"n_estimators": 200, "n_jobs": 1, "verbose": -1}
    made: dict[str, Callable[[], Any]] = {
        "HistGradientBoosting 100 x 31": lambda: HistGradientBoostingRegressor(random_state=0),
        "the same, two classes, log loss": lambda: HistGradientBoostingClassifier(random_state=0),
        "LightGBM 200 x 31": lambda: _library("lightgbm").LGBMRegressor(**light),
        "LightGBM 200 x 127": lambda: _library("lightgbm").LGBMRegressor(num_leaves=127, **light),
        "XGBoost 200 x depth 6": lambda: _library("xgboost").XGBRegressor(n_estimators=200, max_depth=6, n_jobs=1),
        "forest 100, leaves of 5": lambda: RandomForestRegressor(min_samples_leaf=5, **forest),
        "forest 100, fully grown": lambda: RandomForestRegressor(**forest),
    }
    fitted = {}
    for name, make in made.items():
        if only not in name:
            continue
        try:
            model = make()
        except ImportError:
            print(f"{name}: not installed")
            continue
        own = y > 0 if "classes" in name else y
        fitted[name] = (model.fit(X, own), own, "log_loss" if "classes" in name else "squared_error")
    return fitted


@contextmanager
def evaluation_step(clock: Callable[[], float]) -> Iterator[list[float]]:
    """Collect the times of the evaluation steps of calls of `sg.importance`."""
    times: list[float] = []
    function = score_features

    def timed(*arguments: Any, **options: Any) -> Any:
        start = clock()
        results = function(*arguments, **options)
        times.append(clock() - start)
        return results

    whole_call.score_features = timed  # type: ignore[attr-defined]
    try:
        yield times
    finally:
        whole_call.score_features = function  # type: ignore[attr-defined]


def importance(rounds: int, only: str = "") -> str:
    """Whole calls of `sg.importance`, as ratios to the predictions of 10 repeats of all features."""
    lines = []
    for p in (COLUMNS, 5 * COLUMNS):
        train, test = data(p=p), data(p=p, seed=1)
        groups = sg.find_subgroups(train[0])
        for name, (model, _, loss) in _importance_models(*train, only).items():
            lines.append([name, str(p), *_ratios(model, loss, train[0], *test, groups, rounds)])
            print(lines[-1], flush=True)
    columns = ["model", "features", "bare predict, s", "evaluation step"]
    columns += ["subgroups given", "subgroups found", "default call"]
    return markdown(columns, lines)


def _ratios(model: Any, loss: str, X: Any, test: Any, y: Any, groups: Any, rounds: int) -> list[str]:
    """Seconds of bare predictions, and ratios of the calls to it; the default call with few features only."""
    y, predict = (y > 0, model.predict_proba) if loss == "log_loss" else (y, model.predict)
    quick: dict[str, Any] = {"check_fidelity": False, "loss": loss, "random_state": 1}
    calls: dict[str, Callable[[], Any]] = {
        "predict": lambda: predict(test),
        "given": lambda: sg.importance(model, test, y, sampler=groups, **quick),
        "found": lambda: sg.importance(model, test, y, sampler="subgroups", train=X, **quick),
    }
    if test.shape[1] == COLUMNS:
        calls["default"] = lambda: sg.importance(model, test, y, train=X, loss=loss, random_state=1)
    assert calls["given"]().settings["evaluation"] == "tree steps"
    times = {key: min(own) for key, own in interleaved(calls, rounds, time.process_time).items()}
    with evaluation_step(time.process_time) as steps:
        for _ in range(rounds):
            calls["given"]()
    times["step"] = min(steps)
    bare = times.pop("predict") * 10 * test.shape[1]
    return [
        f"{bare:.1f}",
        *(f"{times[key] / bare:.4f}" if key in times else "" for key in ("step", "given", "found", "default")),
    ]


def peers(rounds: int, only: str = "") -> str:
    """Processor time in seconds beside packages that predict, or explain the same rows in another way."""
    lines = []
    for n in (1_000, ROWS):
        test = data(n, seed=1)
        for name, (model, _, loss) in _importance_models(*data(n), only).items():
            lines.append([name, f"{n:,}", *_seconds(model, loss, *test, rounds)])
            print(lines[-1], flush=True)
    columns = ["model", "rows", "subgrove, exact", "scikit-learn, 10 repeats"]
    columns += ["hidimstat, 10 permutations", "shap, path-dependent"]
    return markdown(columns, lines)


def _seconds(model: Any, loss: str, test: Any, y: Any, rounds: int) -> list[str]:
    from sklearn.inspection import permutation_importance

    y, scoring = (y > 0, "neg_log_loss") if loss == "log_loss" else (y, "neg_mean_squared_error")
    options: dict[str, Any] = {"sampler": "marginal", "loss": loss, "check_fidelity": False, "random_state": 1}
    calls: dict[str, Callable[[], Any]] = {
        "ours": lambda: sg.importance(model, test, y, **options),
        "theirs": lambda: permutation_importance(model, test, y, scoring=scoring, n_repeats=10, random_state=1),
    }
    with suppress(ImportError):
        calls["hidimstat"] = _hidimstat(model, loss, test, y)
    times = {key: min(own) for key, own in interleaved(calls, rounds, time.process_time).items()}
    return [
        *(f"{times[key]:.2f}" if key in times else "" for key in ("ours", "theirs", "hidimstat")),
        _shap(model, test),
    ]


def _hidimstat(model: Any, loss: str, test: Any, y: Any) -> Callable[[], Any]:
    """Return a call of hidimstat's permutation importance with its own class."""
    from hidimstat import PFI
    from sklearn.metrics import log_loss, mean_squared_error

    method, own = ("predict_proba", log_loss) if loss == "log_loss" else ("predict", mean_squared_error)
    maker = PFI(estimator=model, method=method, loss=own, n_permutations=10, random_state=1)
    return lambda: maker.fit(test, y).importance(test, y)


def _shap(model: Any, test: pd.DataFrame, n: int = 200) -> str:
    """Seconds of SHAP's tree explainer, extrapolated from some rows; empty if it is not installed or fails."""
    try:
        explainer = _library("shap").TreeExplainer(model)
        start = time.process_time()
        explainer.shap_values(test.iloc[:n])
    except Exception:  # not installed, or a model that it cannot read
        return ""
    return f"{(time.process_time() - start) * len(test) / n:.2f}"


def large(rounds: int, n_rows: int = 1_000_000) -> str:
    """Peak memory of a call above its data, in a process of its own, and how much two threads save."""
    context = multiprocessing.get_context("spawn")
    lines, size = [], (n_rows, 50)
    for name in LARGE_MODELS:
        cells = [name, f"{size[0]:,}", str(size[1])]
        for work in (_memory, _threads):
            receiver, sender = context.Pipe(duplex=False)
            process = context.Process(target=work, args=(name, size, rounds, sender))
            process.start()
            cells += receiver.recv()
            process.join()
        lines.append(cells)
        print(lines[-1], flush=True)
    columns = ["model", "rows", "features", "peak above the data, MiB", "one thread, s", "two threads, s", "ratio"]
    return markdown(columns, lines)


def _boosting() -> Any:
    from sklearn.ensemble import HistGradientBoostingRegressor

    return HistGradientBoostingRegressor(random_state=0)


LARGE_MODELS: dict[str, Callable[[], Any]] = {
    "HistGradientBoosting 100 x 31": _boosting,
    "LightGBM 200 x 31": lambda: _library("lightgbm").LGBMRegressor(n_estimators=200, n_jobs=1, verbose=-1),
}


def _large_call(name: str, size: tuple[int, int]) -> Callable[[int], Any]:
    """Return a call of `sg.importance` within subgroups that were found before, by the number of jobs."""
    train, test = data(p=size[1]), data(*size, seed=1)
    model = LARGE_MODELS[name]().fit(*train)
    groups = sg.find_subgroups(train[0])
    options: dict[str, Any] = {"sampler": groups, "loss": "squared_error", "check_fidelity": False, "random_state": 1}
    sg.importance(model, test[0][:1_000], test[1][:1_000], **options)  # everything is imported
    return lambda n_jobs: sg.importance(model, *test, n_jobs=n_jobs, **options)


def _memory(name: str, size: tuple[int, int], rounds: int, sender: Any) -> None:
    call = _large_call(name, size)
    forget_peak()
    before = peak_mib()
    assert call(1).settings["evaluation"] == "tree steps"
    sender.send([f"{peak_mib() - before:,.0f}"])


def _threads(name: str, size: tuple[int, int], rounds: int, sender: Any) -> None:
    """Send the wall-clock time of the evaluation step, in turns."""
    call = _large_call(name, size)
    times: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(rounds):
        for n_jobs, own in times.items():
            with evaluation_step(time.perf_counter) as steps:
                call(n_jobs)
            own += steps
    one, two = (min(own) for own in times.values())
    sender.send([f"{one:.1f}", f"{two:.1f}", f"{max(a / b for a, b in zip(*times.values(), strict=True)):.2f}"])


SECTIONS: dict[str, Callable[..., str]] = {
    "importance": importance,
    "peers": peers,
    "effects": effects,
    "interactions": interactions,
    "large": large,
}


def main() -> None:
    """Print the table of each section."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sections", nargs="+", choices=list(SECTIONS), default=list(SECTIONS))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=1_000_000, help="number of rows of the section large")
    parser.add_argument("--only", default="", help="text in the names of the models of importance and peers")
    arguments = parser.parse_args()
    print(machine("scikit-learn", "lightgbm", "xgboost-cpu"))
    some = {"only": arguments.only}
    options: dict[str, dict[str, Any]] = {"large": {"n_rows": arguments.rows}, "importance": some, "peers": some}
    for name in arguments.sections:
        print(f"\n{name}\n\n{SECTIONS[name](arguments.rounds, **options.get(name, {}))}")


if __name__ == "__main__":
    main()

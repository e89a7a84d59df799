"""The bike application of the paper, end to end: what a forest uses to predict the number of rented bikes.

A random forest is fitted to 70 % of the days. On the other days: dependence between features, the subgroups of
each, marginal and conditional importance, temperature by subgroup, effect curves, and importance against depth. The
report on the forest is `report.html`; the paper's tables and figures are in `application.html`. Run it with `make
demo`, or as `python examples/bike.py --out demo`.
"""

from __future__ import annotations

import argparse
import base64
import html
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import pandas as pd
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestRegressor
from sklearn.metrics import mean_absolute_error
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder

import subgrove as sg

Tables = dict[str, pd.DataFrame]

# %%
# The model: a random forest on one-hot encoded columns. Any model with `predict` works.


def encoded() -> Any:
    names = ["season", "yr", "holiday", "weekday", "work", "weather"]
    return make_column_transformer((OneHotEncoder(handle_unknown="ignore"), names), remainder="passthrough")


def fitted_forest(train: sg.datasets.Dataset, trees: int) -> Pipeline:
    forest = RandomForestRegressor(trees, min_samples_leaf=2, max_features=1 / 3, random_state=1, n_jobs=-1)
    return make_pipeline(encoded(), forest).fit(train.X, train.y)


# %%
# How well a feature is predicted by the others: a forest fitted on one half of the training rows, evaluated on the
# other.


def dependence_table(found: sg.Dependence) -> pd.DataFrame:
    shown: pd.DataFrame = found.table[["feature", "explained", "predictors", "sampler"]]
    return shown.assign(explained=[f"{max(0, share):.0%}" for share in shown["explained"]])


# %%
# Importance: marginal (depth 0) and conditional, within subgroups of each depth.


def importances(
    model: Pipeline, test: sg.datasets.Dataset, groups: sg.Subgroups, depths: range, repeats: int
) -> dict[int, sg.ImportanceResult]:
    results = {}
    for depth in depths:
        sampler: Any = groups.at_depth(depth) if depth else "marginal"
        results[depth] = sg.importance(
            model,
            test.X,
            test.y,
            sampler=sampler,
            loss="absolute_error",
            n_repeats=repeats,
            random_state=1,
        )
    return results


# %%
# Figures of the paper's application.


def importance_figure(results: dict[int, sg.ImportanceResult]) -> Any:
    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 5.5), layout="constrained")
    sg.plots.importance({"within subgroups": results[2], "marginal": results[0]}, ax=left)
    sg.plots.subgroup_importance(results[2], "temp", ax=right)
    return figure


def temperature_figure(model: Pipeline, X: pd.DataFrame, groups: sg.Subgroups) -> Any:
    curves = [sg.effect(model, X, "temp", kind="pdp", subgroups=None), sg.effect(model, X, "temp", kind="ale")]
    return sg.plots.effects(curves, sg.effect(model, X, "temp", kind="pdp", subgroups=groups))[0].figure


def season_figure(model: Pipeline, X: pd.DataFrame, groups: sg.Subgroups) -> Any:
    return sg.plots.effects(
        sg.effect(model, X, "season", subgroups=None), sg.effect(model, X, "season", subgroups=groups)
    )[0].figure


# %%
# Notes of the page on how to read the figures; they do not depend on the results.

NOTES = {
    "dependence": (
        "Share of the loss that a random forest explains when it predicts the feature from the other features (R "
        "squared, or one minus the ratio of the error rates of the forest and of the most frequent level). 0 % means "
        "independent, 100 % fully determined. Where the share is large, shuffling the feature gives unrealistic days. "
        "In brackets, the share of each column; sampler is the recommended sampler."
    ),
    "subgroups": (
        "A tree for each feature finds subgroups of days in which it hardly depends on the other features. n is the "
        "number of training days."
    ),
    "importance": (
        "Increase of the absolute error when a feature is resampled from all days (marginal), or from days of the same "
        "subgroup. Where the two differ, the feature shares information with other features. The dashed line on the "
        "right is the mean over the subgroups."
    ),
    "mark": (
        "An exclamation mark: the resampled days failed the fidelity check, so the estimate depends on unrealistic "
        "days. auc is that of a classifier which separates resampled from real days (0.5 is chance), mmd their "
        "distance (1 is that of shuffled days)."
    ),
    "default": (
        "For each feature, the default selects a simple sampler that predicts it well on held-out training days: all "
        "days, subgroups, or a location shift by other columns with subgroups of the residuals."
    ),
    "choices": (
        "score: CRPS of the predicted distributions on held-out days (lower is better); score_gap: difference to the "
        "best; complexity: number of terms and splits. The least complex candidate within one standard error is "
        "selected."
    ),
    "repeats": "The spread over repeats, as in the tables of the paper.",
    "depth": "Deeper trees leave less dependence within subgroups; depth 0 is the marginal importance.",
    "temperature": (
        "Left: averages over all days, which include unrealistic ones. Right: one curve for each subgroup, bold "
        "between the quartiles of its days. Levels differ by season, slopes are the effect of temperature."
    ),
    "season": "Mean predictions if all days had this season; right: only days with temperatures at which it occurs.",
}

# %%
# Write everything to a folder, with one page that shows it.


def heading(title: str, note: str) -> str:
    return f"<h2>{html.escape(title)}</h2>" + (f"\n<p>{html.escape(note)}</p>" if note else "")


def marked(table: pd.DataFrame, note: str) -> tuple[pd.DataFrame, str]:
    """Features whose resampled rows failed the fidelity check get a mark, and the note explains it."""
    if "fidelity" not in table or not (table["fidelity"] == "failed").any():
        return table, note
    names = [
        f"{name} !" if verdict == "failed" else name
        for name, verdict in zip(table["feature"], table["fidelity"], strict=True)
    ]
    return table.assign(feature=names), f"{note} {NOTES['mark']}".strip()


class Output:
    """Tables and pictures of a run, in a folder."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.parts: list[str] = []

    def table(self, name: str, title: str, table: pd.DataFrame, note: str = "") -> None:
        table.to_csv(self.folder / f"{name}.csv", index=False)
        table, note = marked(table, note)
        shown = table.to_html(index=False, border=0, float_format=lambda value: f"{value:.4g}", escape=True)
        self.parts.append(f"{heading(title, note)}\n<div>{shown}</div>")

    def picture(self, name: str, title: str, figure: Any, note: str = "") -> None:
        path = self.folder / f"{name}.png"
        figure.savefig(path, dpi=130)
        plt.close(figure)
        data = base64.b64encode(path.read_bytes()).decode("ascii")
        self.parts.append(
            f'{heading(title, note)}\n<img alt="{html.escape(title)}" src="data:image/png;base64,{data}">'
        )

    def text(self, title: str, sentences: Iterable[str], note: str = "") -> None:
        lines = "".join(f"<li>{html.escape(sentence)}</li>" for sentence in sentences)
        self.parts.append(f"{heading(title, note)}\n<ul>{lines}</ul>")

    def page(self, title: str) -> Path:
        style = (
            "body{font:16px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem}"
            "img{max-width:100%}div{overflow-x:auto}table{border-collapse:collapse}"
            "td,th{padding:.2rem .8rem;text-align:left}"
            "tr:nth-child(even){background:#f3f3f3}"
        )
        body = "\n".join(self.parts)
        page = (
            f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{html.escape(title)}</title>'
            f"<style>{style}</style><h1>{html.escape(title)}</h1>\n{body}</html>\n"
        )
        unfinished, path = self.folder / ".application.html", self.folder / "application.html"
        unfinished.write_text(page, encoding="utf-8")
        return unfinished.replace(path)


def explained(output: Output, chosen: sg.ImportanceResult, marginal: sg.ImportanceResult) -> None:
    """Write the choices of the default sampler and the explanation of temperature."""
    axes = sg.plots.importance({"the default": chosen, "marginal": marginal})
    output.picture("importance_default", "Importance by the default sampler", axes.figure, NOTES["default"])
    output.table("importance_default", "Importance by the default sampler (absolute error)", chosen.overall)
    output.table("choices", "What was compared for each feature", chosen.choices, NOTES["choices"])
    gap = chosen.explain_gap(marginal, "temp")
    output.picture("temperature_gap", "Temperature: importance shared with other columns", sg.plots.gap(gap).figure)
    output.text("The story of temperature", chosen.explain("temp", marginal=marginal).sentences)


# %%
# The report: one call, one page.


def report(
    model: Pipeline, train: sg.datasets.Dataset, test: sg.datasets.Dataset, trees: int, repeats: int
) -> sg.Report:
    return sg.report(
        model,
        train,
        test,
        n_repeats=min(repeats, 20),
        random_state=1,
        labels={
            "title": "Rented bikes: what the forest uses",
            "target": "rented bikes a day",
            "description": f"Random forest of {trees} trees on one-hot columns",
            "origin": f"Trained on {len(train.X)} of {len(train.X) + len(test.X)} days. {train.source}",
        },
    )


@contextmanager
def stages(console: Console, names: list[str]) -> Iterator[Any]:
    """A progress bar that names the current stage; yields a function that moves on to the next."""
    columns = (TextColumn("{task.description:<34}"), BarColumn(), TextColumn("{task.completed}/{task.total}"))
    with Progress(*columns, TimeElapsedColumn(), console=console) as bar:
        task = bar.add_task(names[0], total=len(names))
        left = iter([*names[1:], "done"])
        yield lambda: bar.update(task, advance=1, description=next(left))


def run(out: Path, trees: int, repeats: int, max_depth: int, console: Console) -> Path:
    output = Output(out)
    names = ["forest", "dependence", "subgroups", "importance by depth", "one default"]
    names += ["temperature curves", "season curves", "page", "report"]
    with stages(console, names) as next_stage:
        train, test = sg.datasets.bike(split=0.7, random_state=1)
        model = fitted_forest(train, trees)
        error = mean_absolute_error(test.y, model.predict(test.X))
        next_stage()
        found = sg.dependence(train.X, n_trees=trees, n_repeats=5, random_state=1)
        title = "How well each feature is predicted by the others"
        output.table("dependence", title, dependence_table(found), NOTES["dependence"])
        output.picture("dependence", "Which column is predicted by which", sg.plots.dependence(found).figure)
        next_stage()
        groups = sg.find_subgroups(train.X, max_depth=max_depth)
        output.table("subgroups", "Subgroups, two splits deep", groups.at_depth(2).table, NOTES["subgroups"])
        output.picture("temperature_tree", "Subgroups of temperature", sg.plots.tree(groups.at_depth(2)["temp"]).figure)
        next_stage()
        results = importances(model, test, groups, range(max_depth + 1), repeats)
        figure = importance_figure(results)
        output.picture("importance", "Importance: marginal, and within subgroups", figure, NOTES["importance"])
        output.table("importance", "Importance within subgroups (absolute error)", results[2].overall)
        output.table("importance_marginal", "Marginal importance (absolute error)", results[0].overall)
        by_subgroup = results[2].by_subgroup
        output.table("temperature", "Temperature by subgroup", by_subgroup[by_subgroup["feature"] == "temp"])
        output.table("over_repeats", "Median and quantiles over repeats", results[2].over_repeats(), NOTES["repeats"])
        depth = sg.plots.importance_by_depth(results).figure
        output.picture("importance_by_depth", "Importance against the depth of the trees", depth, NOTES["depth"])
        next_stage()
        chosen = sg.importance(
            model,
            test.X,
            test.y,
            train=train.X,
            loss="absolute_error",
            n_repeats=repeats,
            random_state=1,
        )
        explained(output, chosen, results[0])
        next_stage()
        at_two = groups.at_depth(2)
        figure = temperature_figure(model, test.X, at_two)
        output.picture("temperature_effect", "Effect of temperature", figure, NOTES["temperature"])
        next_stage()
        figure = season_figure(model, test.X, at_two)
        output.picture("season_effect", "Effect of season", figure, NOTES["season"])
        next_stage()
        output.page("Rented bikes: what the forest uses")
        next_stage()
        report(model, train, test, trees, repeats).save(out / "report.html")
        next_stage()
    console.print(f"Mean absolute error of the forest on {len(test.X)} held-out days: {error:.0f} bikes a day.")
    compared = results[2].compare(results[0])[["feature", "this", "other", "estimate", "std_error"]]
    console.print("Importance within subgroups compared with marginal importance (other):")
    console.print(compared.round(1).to_string(index=False))
    return out / "report.html"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("demo"), help="folder for tables and pictures (default: demo)")
    parser.add_argument("--trees", type=int, default=200, help="trees of each forest (default: 200)")
    parser.add_argument("--repeats", type=int, default=50, help="repeats for each feature (default: 50)")
    parser.add_argument("--max-depth", type=int, default=5, help="depth of the deepest subgroups (default: 5)")
    arguments = parser.parse_args()
    mpl.use("Agg")
    start, console = time.perf_counter(), Console()
    page = run(arguments.out, arguments.trees, arguments.repeats, max(2, arguments.max_depth), console)
    console.print(f"Took {time.perf_counter() - start:.0f} s. The report is in {page.resolve()}", soft_wrap=True)


if __name__ == "__main__":
    main()

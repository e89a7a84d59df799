"""The section on inference, its sentences made from the numbers, and its figure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

_LEVEL = 0.06
_LEAST, _MOST = 0.93, 0.97
_WHOSE = {
    "rows": "With fitted samplers, the t-test on rows",
    "doubting": "With fitted samplers, `imp.test`",
    "its own": "The test of hidimstat",
}
_COLORS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7")
_TESTS = {"rows": "t-test on rows", "doubting": "`imp.test`", "its own": "its own test"}


def section(tables: dict[str, pd.DataFrame]) -> str:
    """Markdown: coverage, then size and power."""
    parts = ["## Inference: do intervals cover, and do tests keep their level?"]
    if "coverage" in tables:
        parts += _coverage(tables["coverage"])
    if "tests" in tables:
        parts += _tests(tables["tests"])
    return "\n\n".join(parts) + "\n"


def _coverage(table: pd.DataFrame) -> list[str]:
    true = table[table["method"] == "true"]
    within = int(((true["coverage"] >= _LEAST) & (true["coverage"] <= _MOST)).sum())
    lines = ["scenario | test rows | sampler | runs | coverage | bias | sd of estimates | mean std_error"]
    lines.append("--- | --: | --- | --: | --: | --: | --: | --:")
    lines += [
        f"{one['scenario']} | {one['n_test']:.0f} | {one['method']} | {one['runs']} | "
        f"{100 * one['coverage']:.1f} ± {100 * one['coverage_se']:.1f} % | {one['bias']:.3f} | {one['sd']:.3f} | "
        f"{one['std_error']:.3f}"
        for one in table.sort_values(["scenario", "n_test"], kind="stable").to_dict("records")
    ]
    fitted = table[table["method"] != "true"]
    worst = fitted.sort_values("coverage").iloc[0] if len(fitted) else None
    said = (
        f"With the true sampler, coverage of 95 % intervals is between 93 % and 97 % in {within} of {len(true)} cells."
    )
    if worst is not None:
        said += (
            f" Fitted samplers are off by their own error, which the interval does not cover: at worst "
            f"{100 * worst['coverage']:.0f} % "
            f"({worst['method']}, {worst['scenario']}, {worst['n_test']:.0f} test rows)."
        )
    return [
        "### Coverage",
        "The true model, squared error, 20 redraws, samplers fitted on 1000 rows; the truth is known exactly.",
        "\n".join(f"| {line} |" for line in lines),
        said,
    ]


def _tests(table: pd.DataFrame) -> list[str]:
    shown = table
    null, found = shown[shown["strength"] == 0], shown[shown["strength"] > 0]
    methods = list(dict.fromkeys(zip(shown["sampler"], shown["test"], shown["m"], strict=True)))
    cells = list(dict.fromkeys(zip(shown["scenario"], shown["model"], strict=True)))
    head = ["sampler", "test", "redraws", *(f"{scenario}, {model}" for scenario, model in cells)]
    lines = [" | ".join(head), " | ".join(["---", "---", "--:", *["--:"] * len(cells)])]
    for sampler, test, m in methods:
        entries = [_entry(null, found, scenario, model, sampler, test, m) for scenario, model in cells]
        lines.append(" | ".join([sampler, _TESTS[str(test)], str(m), *entries]))
    said = [_kept(null, test) for test in ("rows", "doubting", "its own") if test in set(null["test"])]
    absent = "" if "hidimstat" in set(shown["sampler"]) else " hidimstat was not installed."
    return [
        "### Size and power of the tests",
        f"Share of {int(shown['runs'].min())} runs or more in which x1 was called important at 5 %: first where it is "
        f"of no use beside the others (should be 5 %), then where the target has {found['strength'].max():g} x1 in it. "
        f"500 training and 500 test rows.{absent}",
        "\n".join(f"| {line} |" for line in lines),
        "![Size and power](images/beyond/inference_tests.png)",
        " ".join(said),
    ]


def _entry(null: pd.DataFrame, found: pd.DataFrame, scenario: Any, model: Any, sampler: Any, test: Any, m: Any) -> str:
    shares = []
    for part in (null, found):
        own = part[
            (part["scenario"] == scenario)
            & (part["model"] == model)
            & (part["sampler"] == sampler)
            & (part["test"] == test)
            & (part["m"] == m)
        ]
        shares.append(f"{100 * own['rejected'].iloc[0]:.0f} %" if len(own) else "")
    return ", ".join(shares)


def _kept(null: pd.DataFrame, test: str) -> str:
    """How often a test kept its level; above 6 % counts as not."""
    fitted = null[(null["test"] == test) & (null["sampler"] != "true")]
    kept = int((fitted["rejected"] <= _LEVEL).sum())
    worst = fitted.sort_values("rejected").iloc[-1]
    return (
        f"{_WHOSE[test]} rejects at most 6 % of true nulls in {kept} of {len(fitted)} cells, "
        f"at worst {100 * worst['rejected']:.0f} % ({worst['sampler']}, {worst['scenario']}, {worst['model']})."
    )


def draw(table: pd.DataFrame, folder: Path) -> Path:
    """A row for each sampler and test, a panel for size and one for power, a dot for each scenario and model."""
    from matplotlib.figure import Figure

    methods = list(dict.fromkeys(zip(table["sampler"], table["test"], table["m"], strict=True)))
    figure = Figure(figsize=(8, 0.3 * len(methods) + 1.6), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    strengths = sorted(set(table["strength"]))
    kinds = list(dict.fromkeys(zip(table["scenario"], table["model"], strict=True)))
    scenarios, models = (list(dict.fromkeys(table[name])) for name in ("scenario", "model"))
    for ax, strength in zip(panels, (strengths[0], strengths[-1]), strict=True):
        for scenario, model in kinds:
            chosen = (table["scenario"] == scenario) & (table["model"] == model) & (table["strength"] == strength)
            own = table[chosen]
            places = [methods.index(key) for key in zip(own["sampler"], own["test"], own["m"], strict=True)]
            marker, color = "os^"[models.index(model) % 3], _COLORS[scenarios.index(scenario) % len(_COLORS)]
            ax.plot(own["rejected"], places, marker, color=color, ms=5, alpha=0.85, label=f"{scenario}, {model}")
        ax.set_xlim(-0.02, 1.02)
        described = "x1 is of no use: should be 5 %" if strength == 0 else "x1 is of use: the more the better"
        ax.set_title(described, fontsize=9)
        ax.tick_params(labelsize=8)
        ax.grid(axis="y", color="#dddddd", linewidth=0.6)
        ax.set_axisbelow(True)
        for side in ("top", "right", "left"):
            ax.spines[side].set_visible(False)
    panels[0].axvline(0.05, color="#555555", linewidth=1, zorder=0)
    panels[0].set_yticks(range(len(methods)), [_row(*key) for key in methods], fontsize=8)
    panels[0].invert_yaxis()
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=min(len(labels), 4), frameon=False, fontsize=8)
    figure.supxlabel("share of runs that reject at 5 %", fontsize=9)
    path = folder / "inference_tests.png"
    figure.savefig(path, dpi=150)
    return path


def _row(sampler: Any, test: Any, m: Any) -> str:
    return f"{sampler}, {_TESTS[str(test)].strip('`')}, {m}"

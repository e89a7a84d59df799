"""What the ranks of samplers among the paper's methods say, in words and as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from experiments.fidelity_figures import word
from experiments.parts.sections import markdown, with_error
from experiments.redraws import METHODS

_SHOWN = 5  # data sets that are named
_OURS, _THEIRS, _BOUND = "#0072B2", "#8C8C8C", "#D55E00"


def section(tables: dict[str, pd.DataFrame]) -> str:
    """Markdown: for each sampler its rank, wins and losses, the data sets that suit it least, and its choices."""
    sets = tables["data_sets"]
    parts = ["## Data fidelity among the paper's methods", _about(sets)]
    for sampler in dict.fromkeys(tables["ranks"]["sampler"]):
        own = {title: table[table["sampler"] == sampler] for title, table in tables.items()}
        parts += [
            f"### `{sampler}`",
            _verdict(str(sampler), own["ranks"]),
            f"![mean rank of {sampler} in each data set](images/beyond/beyond_fidelity_{sampler}.png)",
            _rank_table(own["ranks"], own["pairs"]),
            _sets(str(sampler), own["data_sets"]),
            *_choices(own["choices"]),
        ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _about(sets: pd.DataFrame) -> str:
    first = sets[sets["sampler"] == sets["sampler"].iloc[0]]
    low, high = int(first["repetitions"].min()), int(first["repetitions"].max())
    repeated = f"{low}" if low == high else f"{low} to {high}"
    repeated += " repetition" if high == 1 else " repetitions"
    return (
        f"How close rows stay to the data when a feature is redrawn, as in the paper's section on data fidelity and on "
        f"the very rows of our run of it: {len(first)} data sets, {int(first['features'].sum())} features, {repeated}. "
        f"A sampler with its default settings is added to the paper's eight methods, and the nine are "
        f"ranked by squared MMD within data set, feature and repetition, the smallest first. `none` changes "
        f"nothing. The paper's subgroups permute the rows that are judged, and its knockoffs are fitted on them; the "
        f"sampler is fitted on the train rows only."
    )


def _verdict(sampler: str, ranks: pd.DataFrame) -> str:
    by_name = ranks.set_index("variant")
    mean = by_name["mean_rank"]
    others = mean.drop([sampler, "none"])
    nearest = str(others.idxmin())
    ahead = int((others > mean[sampler]).sum())
    text = (
        f"Mean rank {with_error(mean[sampler], by_name['std_error'][sampler])}: better than {ahead} of the paper's "
        f"{len(others)} methods (`none` left out, which has {mean['none']:.2f})."
    )
    apart, error = by_name["behind"][nearest], by_name["behind_se"][nearest]
    if ahead < len(others):
        better = [word(str(name)) for name in others.index[others <= mean[sampler]]]
        return f"{text} **Not better than {', '.join(better)}.**"
    return f"{text} The nearest is {word(nearest)}, which is {with_error(apart, error)} behind on the same rows."


def _rank_table(ranks: pd.DataFrame, pairs: pd.DataFrame) -> str:
    header = ("method", "mean rank", "std. error", "among eight", "sampler is closer", "data sets won", "lost")
    against = pairs.set_index("variant")
    lines = []
    for row in ranks.to_dict("records"):
        name = str(row["variant"])
        known = name in against.index
        lines.append(
            (
                word(name) if name in METHODS else f"**{name}**",
                f"{row['mean_rank']:.2f}",
                f"{row['std_error']:.2f}",
                f"{row['without']:.2f}" if row["without"] == row["without"] else "",
                f"{against['better'][name]:.0%}" if known else "",
                str(against["sets_won"][name]) if known else "",
                str(against["sets_lost"][name]) if known else "",
            )
        )
    text = markdown(header, lines)
    if "imp_oob" in against.index:
        text += (
            f"\n\nImputation with out-of-bag residuals, which is ours and not ranked here, is beaten in "
            f"{against['better']['imp_oob']:.0%}."
        )
    return text


def _sets(sampler: str, sets: pd.DataFrame) -> str:
    candidates = [name for name in METHODS if name != "none"]
    worst = sets.sort_values("rank", ascending=False, kind="stable").head(_SHOWN)
    labels = [
        f"{one['name']} ({one['rank']:.1f}; best {word(best)} {one[best]:.1f})"
        for one in worst.to_dict("records")
        for best in [min(candidates, key=lambda name: float(one[name]))]
    ]
    first = int((sets["rank"] < sets[candidates].min(axis=1)).sum())
    return (
        f"In {first} of {len(sets)} data sets the mean rank of `{sampler}` is better than that of every method but "
        f"`none`. Its worst: {', '.join(labels)}."
    )


def _choices(choices: pd.DataFrame) -> list[str]:
    if choices.empty:
        return []
    candidates = ("none", "ko", "cs_trtr_30", "cs_cart_30", "imp")
    header = ("chosen", "share", "own residual kept", "mean rank there", *(word(name) for name in candidates))
    lines = [
        (
            str(row["candidate"]).replace("_", " "),
            f"{row['share']:.0%}",
            f"{row['kept']:.0%}",
            f"{row['rank']:.2f}",
            *(f"{row[name]:.2f}" for name in candidates),
        )
        for row in choices.to_dict("records")
    ]
    return [
        "What was chosen, the mean share of its own residual that a row keeps, and mean ranks where it was:",
        markdown(header, lines),
    ]


def draw(sets: pd.DataFrame, sampler: str, folder: Path) -> Path:
    """The mean rank in each data set: ours, and the best of the paper's methods but `none`."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    own = sets[sets["sampler"] == sampler].sort_values("rank", kind="stable")
    candidates = own[[name for name in METHODS if name != "none"]]
    figure = Figure(figsize=(7.5, 1.3 + 0.17 * len(own)), layout="constrained")
    FigureCanvasAgg(figure)
    ax: Any = figure.subplots()
    places = list(range(len(own)))
    ax.hlines(places, candidates.min(axis=1), candidates.max(axis=1), color="#e5e5e5", lw=4, zorder=0)
    for at, values in zip(places, candidates.to_numpy(), strict=True):
        ax.plot(values, [at] * len(values), "o", color=_THEIRS, ms=2.5)
    ax.plot(own["none"], places, "|", color=_BOUND, ms=8, label="none")
    ax.plot([], [], "o", color=_THEIRS, ms=2.5, label="the paper's other methods")
    ax.plot(own["rank"], places, "o", color=_OURS, ms=5, label=sampler)
    ax.set_yticks(places, own["name"], fontsize=7)
    ax.set_xlabel("mean rank among nine, by squared MMD", fontsize=9)
    ax.tick_params(axis="x", labelsize=8)
    ax.invert_yaxis()
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    figure.legend(loc="outside upper center", ncols=3, frameon=False, fontsize=8)
    path = folder / f"beyond_fidelity_{sampler}.png"
    figure.savefig(path, dpi=150)
    return path

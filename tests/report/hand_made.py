"""Summaries made by hand for tests of the page: plausible numbers, no model; every kind of picture has a case."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from subgrove._importance.explanation import finding_of
from subgrove._report.model_summary import (
    ClassSummary,
    ConfusionSummary,
    ImportantSize,
    InteractionSummary,
    ModelSummary,
    Score,
)
from subgrove._report.summary import (
    CandidateSummary,
    ColumnSummary,
    DataSummary,
    DependenceSummary,
    Distribution,
    Estimate,
    FeatureSummary,
    FidelitySummary,
    GapStepSummary,
    GroupSummary,
    MethodSummary,
    PredictorShare,
    ReportCurve,
    Setting,
    SubgroupSummary,
    Summary,
    TreeNode,
)

BASELINE = 466.2
NASTY_NAME = "<script>alert(1)</script>"
NASTY_LEVEL = '"><img src=x onerror=alert(1)>'

RULES = (
    "season in {WINTER}",
    "season in {SPRING, FALL}",
    "season in {SUMMER} and hum <= 66.75",
    "season in {SUMMER} and hum > 66.75",
)


def estimate(value: float, error: float, p_holm: float = 0.01) -> Estimate:
    low, high = value - 1.96 * error, value + 1.96 * error
    line = {"estimate": value, "conf_low": low, "conf_high": high, "p_holm": p_holm}
    finding = finding_of(line, BASELINE, 0.95)
    return Estimate(value, error, low, high, 0.01, error / 5, "test rows + Monte Carlo", finding)


def fidelity(verdict: str = "passed") -> FidelitySummary:
    auc = 0.51 if verdict == "passed" else 0.83
    return FidelitySummary(
        verdict, auc, 0.004, f"A forest distinguishes resampled from real rows with an AUC of {auc}."
    )


def numeric_line(
    kind: str, subgroup: int | None, f: Callable[[float], float], output: str | None = None, n: int = 25
) -> ReportCurve:
    x = tuple(round(1.5 * at, 2) for at in range(n))
    y = tuple(f(one) for one in x)
    near = tuple(2 if n / 4 < at < 3 * n / 4 else 1 if n / 8 < at < 7 * n / 8 else 0 for at in range(n))
    wide = tuple(0.04 * abs(max(y) - min(y)) + 0.001 for _ in x)
    low, high = (tuple(v + s * w for v, w in zip(y, wide, strict=True)) for s in (-1, 1))
    return ReportCurve(kind, output, subgroup, x, y, low, high, near, 50)


def level_line(kind: str, subgroup: int | None, levels: Sequence[str], f: Callable[[float], float]) -> ReportCurve:
    y = tuple(f(float(at)) for at in range(len(levels)))
    near = tuple(0 if subgroup == 1 and at == 2 else 2 for at in range(len(levels)))
    return ReportCurve(
        kind, None, subgroup, tuple(levels), y, tuple(v - 90 for v in y), tuple(v + 90 for v in y), near, 50
    )


def subgroups_of(values: Sequence[float], rules: Sequence[str] = RULES) -> tuple[SubgroupSummary, ...]:
    return tuple(
        SubgroupSummary(
            at,
            rules[at],
            120 + at,
            54 + at,
            estimate(value, 40.0),
            f"Where {rules[at]}, its importance is {value:.0f}.",
        )
        for at, value in enumerate(values)
    )


def two_level_tree() -> tuple[TreeNode, ...]:
    return (
        TreeNode(None, "", "", 512, 0.0, None),
        TreeNode(0, "season", "season in {WINTER}", 127, None, 0),
        TreeNode(0, "season", "season in {SPRING, SUMMER, FALL}", 385, 0.00004, None),
        TreeNode(2, "season", "season in {SPRING, FALL}", 265, None, 1),
        TreeNode(2, "season", "season in {SUMMER}", 120, 0.021, None),
        TreeNode(4, "hum", "hum <= 66.75", 70, None, 2),
        TreeNode(4, "hum", "hum > 66.75", 50, None, 3),
    )


def histogram(center: float, n: int = 20) -> tuple[int, ...]:
    return tuple(round(18 * math.exp(-(((at - center) / 4) ** 2))) for at in range(n))


def numeric_lines(lower: float, output: str | None) -> list[ReportCurve]:
    def in_subgroup(g: int) -> Callable[[float], float]:
        return lambda x: 3500 + 700 * g + 600 * math.tanh((x - 10) / (4 + g))

    return [
        numeric_line("pdp", None, lambda x: 4500 + 900 * math.tanh((x - 12) / 8) + lower, output),
        numeric_line("ale", None, lambda x: 700 * math.tanh((x - 14) / 8), output),
        *(numeric_line("pdp", g, in_subgroup(g), output) for g in range(4)),
    ]


def numeric_feature(name: str = "temp", rank: int = 1, outputs: Sequence[str | None] = (None,)) -> FeatureSummary:
    by = tuple(histogram(center) for center in (4, 9, 14, 16))
    counts = tuple(map(sum, zip(*by, strict=True)))
    lines = [line for at, output in enumerate(outputs) for line in numeric_lines(-400.0 * at, output)]
    return FeatureSummary(
        feature=name,
        kind="numeric",
        rank=rank,
        conditional=estimate(303.2 / rank, 21.0),
        marginal=estimate(694.1 / rank, 25.3),
        headline=f"{name} is important given the other features: {303.2 / rank:.0f} bikes.",
        sampler="subgroups",
        candidates=(
            CandidateSummary("subgroups", 0.812, 0.0, 0.01, 4, True),
            CandidateSummary("shifted subgroups", 0.831, 0.019, 0.012, 4, False),
            CandidateSummary("marginal", 1.204, 0.392, 0.03, 1, False),
        ),
        fidelity=fidelity(),
        marginal_fidelity=fidelity("failed"),
        gap=(
            GapStepSummary("season", 694.1 / rank, 318.9 / rank, 375.2 / rank, 49.9),
            GapStepSummary("hum", 318.9 / rank, 303.2 / rank, 15.7 / rank, 7.4),
        ),
        story=(
            f"Shuffling {name} raises the absolute error by {694.1 / rank:.0f}.",
            "54 % of that is shared with season; the share of hum (2 %) is within noise.",
        ),
        tree=two_level_tree(),
        subgroups=subgroups_of((463.8, 264.6, -33.8, 13.6)),
        lines=tuple(lines),
        distribution=Distribution(tuple(1.8 * at for at in range(21)), (), counts, by, 3),
        x_labels=(),
        effect_sentences=("Predictions rise by 1,700 bikes from 2 to 30 in winter, and hardly change in summer.",),
        direction="rise with temp up to 22, then fall",
    )


def level_feature(
    name: str = "weather", rank: int = 2, levels: Sequence[str] = ("GOOD", "MISTY", "BAD")
) -> FeatureSummary:
    counts = tuple(70 - 60 * at // len(levels) for at in range(len(levels)))
    half = tuple(n // 2 for n in counts)
    others = tuple(n - h for n, h in zip(counts, half, strict=True))
    return replace(
        numeric_feature(name, rank),
        kind="nominal",
        tree=(
            TreeNode(None, "", "", 512, 0.0004, None),
            TreeNode(0, "hum", "hum <= 66.75", 300, None, 0),
            TreeNode(0, "hum", "hum > 66.75", 212, None, 1),
        ),
        subgroups=subgroups_of((120.5, 60.25), ("hum <= 66.75", "hum > 66.75")),
        lines=(
            level_line("pdp", None, levels, lambda x: 4600 - 300 * x),
            level_line("ale", None, levels, lambda x: 250 - 250 * x),
            level_line("pdp", 0, levels, lambda x: 4800 - 200 * x),
            level_line("pdp", 1, levels, lambda x: 4200 - 500 * x),
        ),
        distribution=Distribution((), tuple(levels), counts, (half, others), 0),
    )


def independent_feature(name: str = "holiday", rank: int = 3) -> FeatureSummary:
    """A feature without subgroups, intervals, fidelity_checks, candidates or gap."""
    estimate_only = Estimate(4.0, None, None, None, None, None, "nothing", "unknown")
    return replace(
        level_feature(name, rank, ("NO", "YES")),
        conditional=estimate_only,
        marginal=estimate_only,
        sampler="marginal",
        candidates=(),
        fidelity=None,
        marginal_fidelity=None,
        gap=(),
        story=(),
        tree=(TreeNode(None, "", "", 512, None, 0),),
        subgroups=(SubgroupSummary(0, "all rows", None, 219, estimate_only, ""),),
        lines=(level_line("pdp", None, ("NO", "YES"), lambda x: 4600 - 30 * x),),
        distribution=Distribution((), ("NO", "YES"), (200, 19), ((200, 19),), 0),
        effect_sentences=(),
        direction="rise with temp up to 22, then fall",
    )


def dependence_of(features: Sequence[FeatureSummary]) -> tuple[DependenceSummary, ...]:
    shares = (PredictorShare("season", 0.41), PredictorShare("hum", 0.12), PredictorShare("wind", 0.03))
    return tuple(
        DependenceSummary(
            one.feature,
            max(0.0, 0.72 - 0.6 * at / len(features)),
            shares,
            at < len(features) / 3,
            f"The other columns predict {one.feature} well." if at < len(features) / 3 else "",
        )
        for at, one in enumerate(features)
    )


def model_summary(verdict: str = "good") -> ModelSummary:
    return ModelSummary(
        "RandomForestRegressor(n_estimators=200)",
        "regression",
        "count",
        (),
        "given by the caller",
        (
            Score("absolute error", 466.2, 21.1, 1560.9, 0.70),
            Score("squared error", 402_311.0, 31_002.0, 3_716_202.0, 0.89),
        ),
        verdict,
        f"The verdict on this model is {verdict}.",
        "absolute error",
        ("On held-out rows, the error of the model is 466 bikes; that of the best constant prediction is 1,561.",),
        (),
        (),
        (),
        (),
    )


def classifier_summary(labels: Sequence[str]) -> ModelSummary:
    """Return the model of a summary with these classes, each of them twice as frequent as the next."""
    n = [2 ** (len(labels) - at) for at in range(len(labels))]
    curve = ((0.2, 1.0), (0.6, 0.5), (1.0, 0.1))
    per_class = tuple(
        ClassSummary(label, count, count, 0.75, 0.5, 0.6, at > 1, curve if at > 1 else ())
        for at, (label, count) in enumerate(zip(labels, n, strict=True))
    )
    confusion = tuple(tuple(count if at == place else 0 for at in range(len(n))) for place, count in enumerate(n))
    return replace(
        model_summary(),
        task="classification",
        classes=tuple(labels),
        per_class=per_class,
        confusion=confusion,
        confusions=(ConfusionSummary(labels[0], labels[-1], 7),),
    )


def summary_of(features: Sequence[FeatureSummary], verdict: str = "good") -> Summary:
    columns = tuple(
        ColumnSummary(one.feature, one.kind, one.distribution.n_missing, "a few values", "read as a number")
        for one in features
    )
    return Summary(
        title="Bikes hired in a day",
        created="2026-01-05T10:20:30",
        level=0.95,
        loss="absolute_error",
        loss_unit="bikes",
        baseline=BASELINE,
        important=ImportantSize(5.1, 0.01, "the gain over the best constant prediction"),
        model=model_summary(verdict),
        data=DataSummary(512, 219, columns, ("Rows were split at random: 512 to train, 219 to explain.",)),
        highlights=(
            "temp is most important given the other columns: 303 \u00b1 41 bikes.",
            "Shuffling temp creates unrealistic rows; its marginal importance of 694 is more than twice as large.",
            "On humid summer days temp adds little: \u221234 \u00b1 78.",
        ),
        dependence=dependence_of(features),
        interactions=(
            InteractionSummary("temp", "hum", None, 212.0, 0.11),
            InteractionSummary("temp", NASTY_NAME, None, 30.5, 0.004),
        ),
        interaction_sentences=("temp and hum have the strongest interaction.",),
        dependence_sentences=("3 of 9 features are predicted by the others.",),
        features=tuple(features),
        groups=(
            GroupSummary(
                "temp and hum",
                ("temp", "hum"),
                estimate(450.0, 20.0),
                estimate(800.0, 30.0),
                fidelity(),
                "temp and hum are important given the other features: 450 bikes.",
            ),
        ),
        methods=MethodSummary(
            ("Conditional importance resamples a feature within its subgroups and measures the increase of the loss.",),
            (Setting("seed", 1), Setting("n_repeats", 5), Setting("max_depth", 2), Setting("n_jobs", None)),
            (Setting("subgrove", "0.1.0"), Setting("python", "3.12")),
            (Setting("importance", 19_710), Setting("effects", 40_515), Setting("in all", 60_225)),
        ),
        cautions=("Importance is about the model, not about causes.", "Duplicated features are low for each."),
        warnings=("The subgroup 'season in {SUMMER} and hum > 66.75' has 22 rows.",),
    )


def bike_like() -> Summary:
    names = ("temp", "hum", "wind")
    numeric = [numeric_feature(name, rank) for rank, name in enumerate(names, 1)]
    levels = [
        level_feature("weather", 4),
        level_feature("season", 5, ("WINTER", "SPRING", "SUMMER", "FALL")),
        level_feature("weekday", 6, ("MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN")),
    ]
    return summary_of([*numeric, *levels, independent_feature("holiday", 7)])


def many_features(n: int = 100) -> Summary:
    features = [
        level_feature(f"column_{rank}", rank) if rank % 5 == 0 else numeric_feature(f"column_{rank}", rank)
        for rank in range(1, n + 1)
    ]
    return summary_of(features)


def with_classes() -> Summary:
    classes = ("small", "middle", "large")
    summary = summary_of([numeric_feature("temp", 1, classes), level_feature("weather", 2)], "weak")
    model = replace(summary.model, task="classification", classes=classes)
    return replace(summary, model=model, loss="log_loss", loss_unit="nats")


def deep_tree(depth: int) -> tuple[TreeNode, ...]:
    """A tree with all splits to a depth, by columns with long names."""
    nodes = [TreeNode(None, "", "", 2**depth * 30, 0.0001, None)]
    leaves = 0

    def grow(parent: int, level: int) -> None:
        nonlocal leaves
        for side in ("<=", ">"):
            is_leaf = level == depth
            rule = f"a_column_with_quite_a_long_name_{level} {side} 1234.5678"
            nodes.append(TreeNode(parent, "x", rule, 30, None if is_leaf else 0.2, leaves if is_leaf else None))
            if is_leaf:
                leaves += 1
            else:
                grow(len(nodes) - 1, level + 1)

    grow(0, 1)
    return tuple(nodes)


def odd() -> Summary:
    """Features at the edges: sixteen subgroups, dates, forty levels with long names, one value, no rows, no curves."""
    rules = tuple(f"a_column_with_quite_a_long_name > {at} and another_column in {{LEVEL {at}}}" for at in range(16))
    dates = numeric_feature("date", 1)
    deep = replace(
        dates,
        tree=deep_tree(4),
        subgroups=subgroups_of([10.0 * at - 40 for at in range(16)], rules),
        lines=tuple(numeric_line("pdp", g, lambda x, g=g: x * (g + 1)) for g in range(16)),  # type: ignore[misc]
        distribution=replace(dates.distribution, by_subgroup=(histogram(5),) * 16),
        x_labels=((0.0, "2011-01-01"), (18.0, "2011-07-01"), (36.0, "2012-01-01")),
    )
    many = level_feature("weather_" * 12, 2, [f"a level that has quite a long name, number {at}" for at in range(40)])
    one_value = replace(
        dates,
        feature="constant",
        rank=3,
        conditional=Estimate(0.0, 0.0, 0.0, 0.0, None, 0.0, "", "none"),
        tree=(TreeNode(None, "", "", 5, None, 0),),
        subgroups=subgroups_of((0.0,), ("all rows",)),
        lines=(ReportCurve("pdp", None, None, (2.0,), (3.0,), (None,), (None,), (2,), 5),),
        distribution=Distribution((2.0, 2.0), (), (5,), ((5,),), 0),
        gap=(GapStepSummary("the others", 0.0, 0.0, 0.0, None),),
    )
    no_rows = replace(
        one_value,
        feature="",
        rank=4,
        conditional=estimate(-1e-9, 1e-10),
        marginal=estimate(-3e12, 1e11),
        subgroups=(*subgroups_of((0.0,), ("all rows",)), SubgroupSummary(7, "none", None, 0, None, "")),
        lines=(),
        distribution=Distribution((), (), (), (), 9),
        gap=(),
    )
    return summary_of([deep, many, one_value, no_rows])


def hostile() -> Summary:
    nasty = level_feature(NASTY_NAME, 1, (NASTY_LEVEL, "a\nb", "</script>"))
    nasty = replace(nasty, story=(NASTY_NAME,), headline=NASTY_LEVEL, sampler=NASTY_NAME)
    rules = (f"{NASTY_NAME} in {{{NASTY_LEVEL}}}", "x > '1' & \"2\"")
    nasty = replace(nasty, subgroups=subgroups_of((1.0, 2.0), rules))
    numeric = numeric_feature("</script><script>alert(2)</script>", 2)
    summary = summary_of([nasty, numeric], "useless")
    model = replace(classifier_summary([NASTY_NAME, NASTY_LEVEL, "</script>"]), verdict_sentence=NASTY_LEVEL)
    return replace(summary, title=NASTY_NAME, highlights=(NASTY_LEVEL,), model=model)

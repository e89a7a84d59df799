"""A report as Markdown, with the whole content of the page. Text from the data is escaped."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from subgrove._core.text import number, percent
from subgrove._report.numbers import with_interval
from subgrove._report.summary import Estimate, FeatureSummary, FidelitySummary, Score, Setting, Summary

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~$&])")
_START = re.compile(r"^(\d+(?=[.)](?:\s|$))|(?=[-+=]))")  # the start of a list, or the underline of a heading


def markdown(summary: Summary) -> str:
    """Return the whole report as Markdown."""
    parts = [
        *_head(summary),
        *_model(summary),
        *_dependence(summary),
        *_importance(summary),
        *(line for one in summary.features for line in _feature(summary, one)),
        *_methods(summary),
        *_data(summary),
        *_section("What not to conclude", summary.cautions),
        *(_section("Warnings", summary.warnings) if summary.warnings else []),
    ]
    return "\n\n".join(parts) + "\n"


def escaped(value: object) -> str:
    """Return text that Markdown shows literally, on one line."""
    plain = re.sub(r"[\s\x00-\x1f\x7f]+", " ", str(value)).strip()
    return _START.sub(r"\1\\", _SPECIAL.sub(r"\\\1", plain))


def _section(title: str, sentences: Iterable[str], depth: int = 2) -> list[str]:
    return [f"{'#' * depth} {title}", *_bullets(sentences)]


def _bullets(sentences: Iterable[str]) -> list[str]:
    lines = [f"- {escaped(sentence)}" for sentence in sentences]
    return ["\n".join(lines)] if lines else []


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}"]
    lines += [f"| {' | '.join(escaped(cell) for cell in row)} |" for row in rows]
    return "\n".join(lines)


def _head(summary: Summary) -> list[str]:
    created = [f"Created {escaped(summary.created)}."] if summary.created else []
    return [f"# {escaped(summary.title)}", *created, *_bullets(summary.highlights)]


def _model(summary: Summary) -> list[str]:
    model = summary.model
    kind = f"{model.description}: {model.task}, target {model.target}."
    classes = f" Classes: {', '.join(model.classes)}." if model.classes else ""
    description = escaped(f"{kind}{classes} {model.origin}".strip())
    verdict = [f"**This model is {model.verdict}.**"] if model.verdict != "good" else []
    scores = _table(("measure", "value", "standard error", "constant prediction", "skill"), map(_score, model.scores))
    return ["## Model performance", description, *verdict, *_bullets(model.sentences), scores]


def _score(one: Score) -> tuple[str, ...]:
    return (one.name, *(_known(value) for value in (one.value, one.std_error, one.constant, one.skill)))


def _known(value: float | None) -> str:
    return "" if value is None else number(value)


def _dependence(summary: Summary) -> list[str]:
    rows = [
        (
            one.feature,
            "" if one.explained is None else percent(one.explained),
            ", ".join(f"{share.column} ({percent(share.share)})" for share in one.predictors),
            "yes" if one.misleads else "no",
            one.sentence,
        )
        for one in summary.dependence
    ]
    head = ("feature", "R2 given the others", "predictors", "shuffling is misleading", "in words")
    return [*_section("Dependence between features", summary.dependence_sentences), _table(head, rows)]


def _importance(summary: Summary) -> list[str]:
    rows = [
        (
            one.rank,
            one.feature,
            with_interval(one.conditional, summary.level),
            with_interval(one.marginal, summary.level),
            _verdict(one.fidelity),
            _verdict(one.marginal_fidelity),
            one.sampler,
            one.headline,
        )
        for one in summary.features
    ]
    loss = escaped(summary.loss.replace("_", " "))
    unit = escaped(summary.loss_unit)
    lead = f"Increase of the {loss} ({unit}) when a feature is resampled; the baseline is {number(summary.baseline)}."
    head = ("rank", "feature", "conditional", "marginal", "fidelity", "fidelity, shuffled", "sampler", "in words")
    return ["## Importance", lead, _table(head, rows)]


def _verdict(one: FidelitySummary | None) -> str:
    return "" if one is None else one.verdict


def _feature(summary: Summary, one: FeatureSummary) -> list[str]:
    parts = [f"## {one.rank}. {escaped(one.feature)}", escaped(one.headline), *_bullets(one.story)]
    if one.candidates:
        rows = [
            (
                c.name,
                _known(c.score),
                _known(c.score_gap),
                _known(c.std_error),
                c.complexity,
                "yes" if c.selected else "",
            )
            for c in one.candidates
        ]
        head = ("sampler", "score", "score gap", "standard error", "complexity", "selected")
        parts += ["### Samplers that were compared", _table(head, rows)]
    if one.gap:
        rows_of_gap = [(g.column, *map(_known, (g.start, g.end, g.step, g.noise))) for g in one.gap]
        parts += [
            "### From marginal to conditional importance",
            _table(("column held fixed", "from", "to", "step", "standard error"), rows_of_gap),
        ]
    if len(one.tree) > 1:
        parts += ["### Tree", _tree(one)]
    subgroups = [
        (s.subgroup, s.rule, "" if s.n_train is None else s.n_train, s.n, _estimate(summary, s.estimate), s.sentence)
        for s in one.subgroups
    ]
    head = ("subgroup", "rule", "training rows", "test rows", "importance", "in words")
    parts += ["### Subgroups", _table(head, subgroups), *_section("Curves", one.effect_sentences, 3)]
    for output in dict.fromkeys(line.output for line in one.lines):
        parts += [*([escaped(f"Output: {output}")] if output is not None else []), _curves(one, output)]
    return [*parts, *_distribution(one)]


def _estimate(summary: Summary, one: object) -> str:
    return with_interval(one, summary.level) if isinstance(one, Estimate) else ""


def _tree(one: FeatureSummary) -> str:
    depth: list[int] = []
    lines = []
    for node in one.tree:
        depth.append(0 if node.parent is None else depth[node.parent] + 1)
        leaf = "" if node.subgroup is None else f", subgroup {node.subgroup}"
        lines.append(f"{'  ' * depth[-1]}- {escaped(node.rule or 'all rows')} ({node.n_train} training rows{leaf})")
    return "\n".join(lines)


def _curves(one: FeatureSummary, output: str | None) -> str:
    labels = dict(one.x_labels)
    rows = [
        (
            line.kind,
            "all rows" if line.subgroup is None else line.subgroup,
            line.n,
            "; ".join(f"{_x(x, labels)}: {number(y)}" for x, y in zip(line.x, line.y, strict=True)),
        )
        for line in one.lines
        if line.output == output
    ]
    return _table(("curve", "subgroup", "rows", "value: prediction"), rows)


def _x(value: float | str, labels: dict[float, str]) -> str:
    return value if isinstance(value, str) else labels.get(value, number(value))


def _distribution(one: FeatureSummary) -> list[str]:
    spread = one.distribution
    if spread.levels:
        cells = [f"{level}: {n}" for level, n in zip(spread.levels, spread.counts, strict=True)]
    else:
        ends = zip(spread.edges[:-1], spread.edges[1:], spread.counts, strict=True)
        cells = [f"{number(low)} to {number(high)}: {n}" for low, high, n in ends]
    missing = f" Missing: {spread.n_missing}." if spread.n_missing else ""
    return [escaped(f"Test rows by value: {'; '.join(cells)}.{missing}")] if cells or missing else []


def _methods(summary: Summary) -> list[str]:
    methods = summary.methods

    def shown(settings: Sequence[Setting]) -> list[tuple[object, ...]]:
        return [(one.name, "" if one.value is None else one.value) for one in settings]

    return [
        *_section("Methods", methods.sentences),
        _table(("setting", "value"), shown(methods.settings)),
        _table(("package", "version"), shown(methods.versions)),
        _table(("rows predicted", "number"), shown(methods.rows_predicted)),
    ]


def _data(summary: Summary) -> list[str]:
    rows = [(one.name, one.kind, one.n_missing, one.values, one.note) for one in summary.data.columns]
    head = ("column", "kind", "missing in test rows", "values", "note")
    return [*_section("Data", summary.data.sentences), _table(head, rows)]

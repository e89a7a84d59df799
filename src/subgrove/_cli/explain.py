"""`subgrove explain`: from a file to a report, with the performance first."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from subgrove._cli.files import STDOUT, check_output, deliver
from subgrove._cli.models import Loaded, Trust, fit_columns, labels_like, load_model
from subgrove._cli.output import Output, number
from subgrove._cli.reading import Data, Request, column_names, feature_names, read_data, read_like
from subgrove._cli.target import Problem, pose
from subgrove._cli.training import TRAIN_SHARE, Skill, cross_validate, split_rows, train
from subgrove.exceptions import ParameterError

MARKS = {
    "failed": "redrawn rows do not look real",
    "unknown": "not known whether redrawn rows look real",
}


@dataclass(frozen=True)
class Outputs:
    """Where a report goes: the page, and the same as JSON and as Markdown where asked for."""

    page: Path
    json: Path | None = None
    markdown: Path | None = None

    def check(self) -> None:
        """Refuse what cannot be written."""
        check_output(self.page, "--out", (".html", ".htm"))
        check_output(self.json, "--json", (".json",))
        check_output(self.markdown, "--markdown", (".md", ".markdown"))
        piped = [
            f"{option} -"
            for option, path in (("--out", self.page), ("--json", self.json), ("--markdown", self.markdown))
            if path == Path(STDOUT)
        ]
        if len(piped) > 1:
            raise ParameterError(f"{' and '.join(piped)} cannot both go to standard output. Name a file for one.")


@dataclass(frozen=True)
class Explain:
    """What `subgrove explain` was asked for."""

    request: Request
    target: str
    outputs: Outputs
    test: Path | None = None
    model: Path | None = None
    trust: Trust = field(default_factory=Trust)
    forest: bool = False
    task: str | None = None
    features: tuple[str, ...] = ()
    settings: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Ready:
    """A model, the rows it is explained on, and how it came about."""

    model: Any
    train: Problem
    test: Problem
    description: str
    origin: str


def explain(asked: Explain, output: Output) -> None:
    """Read, train or load, tell the performance, explain, write."""
    start = time.perf_counter()
    asked.outputs.check()
    loaded = load_model(asked.model, asked.trust) if asked.model else None
    data = read_data(_request(asked, loaded))
    tell_columns(data, output, asked.target)
    problem = pose(data, asked.target, asked.task or _task_of(loaded))
    for note in (*data.notes, *problem.notes):
        output.note(note)
    _features(asked, problem.X)  # refused before time is spent on a model
    ready = _trained(asked, data, problem, output) if loaded is None else _given(asked, data, problem, loaded, output)
    report = _report(asked, data, ready, output)
    write(report, asked.outputs)
    tell_findings(report.summary, output)
    output.say(f"\nReport: {asked.outputs.page} ({time.perf_counter() - start:.0f} s)")


def _request(asked: Explain, loaded: Loaded | None) -> Request:
    needed = {asked.target: "--target"}
    if loaded is None:
        return replace(asked.request, needed=needed)
    if loaded.columns is None:
        return replace(asked.request, needed=needed, known_model=True)
    needed |= dict.fromkeys(loaded.columns, "the model asks for it")
    return replace(asked.request, needed=needed, only=(), known_model=True)


def _task_of(loaded: Loaded | None) -> str | None:
    return None if loaded is None else "classification" if loaded.classifier else "regression"


def _trained(asked: Explain, data: Data, problem: Problem, output: Output) -> Ready:
    """The default model: cross-validated on all rows, then trained on the training rows."""
    seed = asked.request.seed
    progress = False if output.quiet else None
    learned, held_out = (problem, _test_rows(asked, data, problem)) if asked.test else split_rows(problem, seed)
    skills = cross_validate(
        problem, forest=asked.forest, seed=seed, n_jobs=asked.settings.get("n_jobs"), progress=progress
    )
    model = train(learned, forest=asked.forest, seed=seed)
    told = ", ".join(str(skill) for skill in skills)
    output.say(f"\nHeld-out performance (5-fold cross-validation, {len(problem.y):,} rows): {told}")
    if skills[0].value - 2 * skills[0].std_error <= 0:
        output.say("The model is no better than a constant: what follows explains a model that has learned nothing.")
    return Ready(model, learned, held_out, model.describe(), _origin(asked, learned, held_out, told, skills))


def _origin(asked: Explain, learned: Problem, held_out: Problem, told: str, skills: tuple[Skill, ...]) -> str:
    where = (
        f"all rows of {asked.request.path.name}" if asked.test else f"{TRAIN_SHARE:.0%} of the rows, drawn at random"
    )
    rows = f"the {len(held_out.y):,} rows of {asked.test.name}" if asked.test else f"the other {len(held_out.y):,} rows"
    return (
        f"Trained by subgrove explain on {where} ({len(learned.y):,}), explained on {rows}. "
        f"In 5-fold cross-validation of {asked.request.path.name}: {told}."
    )


def _given(asked: Explain, data: Data, problem: Problem, loaded: Loaded, output: Output) -> Ready:
    """A model of the user's: the rows are split for samplers and explanation."""
    present = [str(name) for name in problem.X.columns]
    named = column_names(asked.request.only or (), present, "--columns")  # in the order of the user
    names = fit_columns(loaded, named or present, data.path)
    problem = replace(problem, X=problem.X[list(names)])
    if loaded.classifier and hasattr(loaded.model, "learn_classes"):
        loaded.model.learn_classes(problem.X, problem.y)
    problem = replace(problem, y=labels_like(loaded, problem.y, asked.target))
    if asked.test:
        learned, held_out = problem, _test_rows(asked, data, problem, loaded)
    else:
        learned, held_out = split_rows(problem, asked.request.seed)
        output.note("If the model was trained on some of these rows, its performance looks better than it is (--test).")
    origin = (
        f"Given as a file. Ways to redraw were learned from {len(learned.y):,} rows, the model is explained on "
        f"{len(held_out.y):,} others"
        + (f" ({asked.test.name})." if asked.test else "; subgrove cannot know whether it was trained on them.")
    )
    return Ready(loaded.model, learned, held_out, loaded.description, origin)


def _test_rows(asked: Explain, data: Data, problem: Problem, loaded: Loaded | None = None) -> Problem:
    assert asked.test is not None
    request = replace(asked.request, path=asked.test, known_model=loaded is not None)
    posed = pose(read_like(request, data), asked.target, problem.task)
    y = posed.y if loaded is None else labels_like(loaded, posed.y, asked.target)
    known = y.isin(set(problem.y)) if problem.task == "classification" else y.notna()
    if not known.all():
        strange = sorted({str(label) for label in y[~known]})[0]
        raise ParameterError(f"--test {asked.test} has the class {strange!r}, which {asked.request.path} has not.")
    return replace(posed, X=posed.X[list(problem.X.columns)], y=y)


def _features(asked: Explain, X: Any) -> list[str]:
    names = [str(name) for name in X.columns]
    return list(feature_names(asked.features, names, "--features", asked.target))


def _report(asked: Explain, data: Data, ready: Ready, output: Output) -> Any:
    import subgrove

    names = [str(name) for name in ready.train.X.columns]
    notes = {column.name: column.note for column in data.columns if column.note and column.name in names}
    return subgrove.report(
        ready.model,
        (ready.train.X, ready.train.y),
        (ready.test.X, ready.test.y),
        features=_features(asked, ready.train.X) or None,
        random_state=asked.request.seed,
        target=asked.target,
        description=ready.description,
        origin=ready.origin,
        column_notes=notes,
        progress=False if output.quiet else None,
        **asked.settings,
    )


def write(report: Any, outputs: Outputs) -> None:
    """All that was asked for; the page last, for it is the sign that all is done."""
    if outputs.json is not None:
        deliver(outputs.json, report.to_json())
    if outputs.markdown is not None:
        deliver(outputs.markdown, report.to_markdown())
    deliver(outputs.page, report.to_html())


def tell_columns(data: Data, output: Output, target: str | None = None) -> None:
    """What was inferred of each column."""
    rows = []
    for column in data.columns:
        role = "target" if column.name == target else "left out" if column.left_out else column.kind
        notes = column.left_out or column.note
        rows.append((column.name, role, column.n_missing or "", column.values, notes))
    size = f"{len(data.frame):,} rows of {data.path}"
    output.table(size, ("column", "read as", "missing", "values", "note"), rows, right=(2,))


def tell_findings(summary: Any, output: Output) -> None:
    """The importances of a report, most important first."""
    rows = [
        (
            one.feature,
            number(one.conditional.estimate),
            _interval(one.conditional),
            number(one.marginal.estimate),
            MARKS.get("passed" if one.certificate is None else one.certificate.verdict, ""),
        )
        for one in summary.features
    ]
    title = f"Importance: increase of {summary.loss} (now {number(summary.baseline)}) when a feature is redrawn"
    header = ("feature", "conditional", f"{summary.level:.0%} interval", "marginal", "mark")
    output.table(title, header, rows, right=(1, 2, 3))
    if summary.model.verdict != "good":
        output.say(f"\nThe model is {summary.model.verdict}: {' '.join(summary.model.sentences)}")


def _interval(estimate: Any) -> str:
    if estimate.conf_low is None or estimate.conf_high is None:
        return ""
    return f"{number(estimate.conf_low)} to {number(estimate.conf_high)}"

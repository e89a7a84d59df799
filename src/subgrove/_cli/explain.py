"""`subgrove explain`, `demo` and `report`: from a file to a report, with the performance of the model first."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import subgrove
from subgrove._cli.columns import RARE_VALUES, KnownColumns
from subgrove._cli.default_model import cross_validate, train
from subgrove._cli.learning_task import LearningTask, learning_task
from subgrove._cli.load_model import LoadedModel, columns_for, labels_for, load_model
from subgrove._cli.options import DemoOptions, ExplainOptions, RebuildOptions, ReportOptions
from subgrove._cli.reading import (
    FileTable,
    check_readable,
    feature_names,
    print_columns,
    read_like,
    read_table_file,
    selected_columns,
)
from subgrove._cli.splitting import TRAIN_SHARE, dependent_groups, describe_split, known_classes, split_rows, with_roles
from subgrove._cli.terminal import STDOUT, Output, check_output, number, write_results
from subgrove._core.execution import keep_freed_memory
from subgrove._core.text import percent
from subgrove._report.suspicious_columns import leakage_sentence
from subgrove.exceptions import ParameterError

FIDELITY_NOTES = {"failed": "resampled rows are unrealistic", "unknown": "realism of resampled rows unknown"}


@dataclass(frozen=True, eq=False)
class FittedModel:
    """A fitted model, the rows it is explained on, and where it comes from."""

    model: Any
    train: LearningTask
    test: LearningTask
    description: str
    origin: str


def explain(options: ExplainOptions, output: Output) -> None:
    """Explain a model of the target column and write a report.

    Without --model, gradient boosting is trained on 70 % of the rows and explained on the remaining 30 %. Its
    performance in 5-fold cross-validation is printed first.

    \b
    subgrove explain bikes.csv --target cnt
    subgrove explain bikes.csv --target cnt --drop casual,registered --nominal season,weekday
    subgrove explain credit.parquet -t class --forest --out credit.html --json credit.json
    subgrove explain rows.csv -t price --model model.skops --test new_rows.csv
    subgrove explain rows.csv -t price --quiet --json - | jq '.features[0].headline'
    subgrove explain folder_of_parquet/ -t price --sample-size 50000
    subgrove explain weather.csv -t rain --time date
    subgrove explain visits.csv -t pain --group patient
    """
    start = time.perf_counter()
    _check_report_files(options)
    if options.loss is not None:
        subgrove.losses.get(options.loss)  # an unknown name is an error
    loaded = load_model(options.model, options.trust, options.trust_pickle) if options.model else None
    table = _read(options, loaded)
    keep_freed_memory()
    print_columns(table, output, options.target)
    task = learning_task(table, options.target, options.task or (loaded.kind if loaded else None))
    task = with_roles(task, options.time, options.group, _used_by(loaded, options))
    recurring = [column.name for column in table.columns if RARE_VALUES in column.left_out and options.group is None]
    hints = [f"If rows of the same {name} depend on each other, use --group {name}." for name in recurring]
    output.note(*table.notes, *task.notes, *hints)
    features = feature_names(options.features, task.X, "--features", options.target)
    if loaded is None:
        fitted = _train_default(options, table, task, output)
    else:
        fitted = _use_loaded(options, table, task, loaded, output)
    notes = {one.name: one.note for one in table.columns if one.note and one.name in fitted.train.X}
    labels = {"title": options.title, "target": options.target, "columns": notes}
    selected = {name: getattr(options, name) for name in ("min_share", "n_repeats", "loss")}
    settings = {name: value for name, value in selected.items() if value is not None}
    _write_report(options, fitted, output, labels, features=features or None, **settings)
    output.say(f"\nReport: {options.out} ({time.perf_counter() - start:.0f} s)")


def demo(options: DemoOptions, output: Output) -> None:
    """Write a report on bike rentals, from data that come with subgrove.

    \b
    subgrove demo
    subgrove demo --out bikes.html --json bikes.json
    """
    start = time.perf_counter()
    _check_report_files(options)
    learned, held_out = subgrove.datasets.bike(split=TRAIN_SHARE, random_state=options.random_state)
    output.note(f"{learned.description} {len(learned.X)} days for training, {len(held_out.X)} held-out days.")
    training, test = (LearningTask(data.X, data.y, "regression", ()) for data in (learned, held_out))
    model = train(training, forest=False, random_state=options.random_state)
    origin = f"Trained by subgrove demo on {percent(TRAIN_SHARE)} of the days. {learned.source}"
    fitted = FittedModel(model, training, test, model.describe(), origin)
    labels = {"title": "Bike rentals per day", "target": "cnt"}
    _write_report(options, fitted, output, labels, loss="absolute_error")
    output.say(f"\nReport: {options.out} ({time.perf_counter() - start:.0f} s). Open it in a browser.")


def report(options: RebuildOptions, output: Output) -> None:
    """Build the page of a report that was saved as JSON.

    \b
    subgrove report out.json
    subgrove report out.json --out page.html
    """
    check_readable(options.saved)
    page = options.out or options.saved.with_suffix(".html")
    check_output(page, "--out", (".html", ".htm", ".md", ".markdown"), options)
    report = subgrove.Report.load(options.saved)
    markdown = page.suffix.lower() in (".md", ".markdown")
    write_results({page: report.to_markdown() if markdown else report.to_html()})
    output.say(f"Report: {page}")


def _read(options: ExplainOptions, loaded: LoadedModel | None) -> FileTable:
    regression = options.task == "regression"
    required = {options.target: "--target with --task regression" if regression else "--target"}
    for option, name in (("--time", options.time), ("--group", options.group)):
        if name == options.target:
            raise ParameterError(f"{option} {name} is the target. Name the column that orders or groups the rows.")
        required |= {} if name is None else {name: option}
    if loaded is not None and loaded.columns is not None:
        required |= dict.fromkeys(loaded.columns, "the model needs it")
        options = replace(options, columns=list(required))
    if regression:
        options = replace(options, numeric=[*options.numeric, options.target])
    return read_table_file(options, KnownColumns(required, keep_all=loaded is not None))


def _used_by(loaded: LoadedModel | None, options: ExplainOptions) -> tuple[str, ...]:
    """Return columns that remain features even if they order or group the rows: those that a fitted model uses."""
    return () if loaded is None else tuple(loaded.columns or options.columns)


def _train_default(options: ExplainOptions, table: FileTable, task: LearningTask, output: Output) -> FittedModel:
    """Cross-validate the default model on all rows, then train it on the training rows."""
    seed = options.random_state
    learned, held_out = (
        (task, _test_rows(options, table, task, output)) if options.test else _split(options, task, output)
    )
    selected, validation, errors = describe_split(options.time, options.group)
    scores = cross_validate(task, forest=options.forest, random_state=seed, n_jobs=options.n_jobs)
    model = train(learned, forest=options.forest, random_state=seed)
    performance = ", ".join(map(str, scores))
    output.say(f"\nHeld-out performance ({validation}, {len(task.y):,} rows): {performance}")
    name = options.data.name
    training = f"all rows of {name}" if options.test else selected
    test = f"the {len(held_out.y):,} rows of {options.test.name}" if options.test else f"the other {len(held_out.y):,}"
    sentences = (
        f"Trained by subgrove explain on {training} ({len(learned.y):,}), explained on {test}.",
        f"In {validation} of {name}: {performance}.",
        errors,
        *(f"{name} is not a feature." for name in dict.fromkeys((options.time, options.group)) if name is not None),
        table.sampling,
    )
    origin = " ".join(sentence for sentence in sentences if sentence)
    return FittedModel(model, learned, held_out, model.describe(), origin)


def _use_loaded(
    options: ExplainOptions, table: FileTable, task: LearningTask, loaded: LoadedModel, output: Output
) -> FittedModel:
    """Split the rows: samplers are fitted on one part, the user's model is explained on the other."""
    present = [str(name) for name in task.X.columns]
    selected = selected_columns(options.columns, present, "--columns") if loaded.columns is None else ()
    names = columns_for(loaded, selected or present, table.path)  # in the order of the user
    task = replace(task, X=task.X[list(names)])
    if loaded.classifier and hasattr(loaded.model, "learn_classes"):
        loaded.model.learn_classes(task.X, task.y)
    task = replace(task, y=labels_for(loaded, task.y, options.target))
    if options.test:
        learned, held_out, caveat = task, _test_rows(options, table, task, output, loaded), f" of {options.test.name}."
    else:
        learned, held_out = _split(options, task, output)
        part, _, errors = describe_split(options.time, options.group)
        how = "" if options.time is None and options.group is None else f" Samplers: {part}. {errors}"
        caveat = f"; whether these were used to train it is unknown.{how}"
        output.note("If the model was trained on some of these rows, its performance is overestimated (see --test).")
    origin = (
        f"Loaded from a file. Samplers were fitted on {len(learned.y):,} rows, the model is explained on "
        f"{len(held_out.y):,} other rows{caveat} {table.sampling}"
    )
    return FittedModel(loaded.model, learned, held_out, loaded.description, origin.strip())


def _split(options: ExplainOptions, task: LearningTask, output: Output) -> tuple[LearningTask, LearningTask]:
    """Split the rows at random, by time or by group."""
    learned, held_out = split_rows(task, options.random_state)
    held_out = known_classes(learned, held_out)
    output.note(*held_out.notes)
    return learned, held_out


def _test_rows(
    options: ExplainOptions, table: FileTable, task: LearningTask, output: Output, loaded: LoadedModel | None = None
) -> LearningTask:
    """Read the rows of --test with the columns, kinds and classes of the training rows."""
    assert options.test is not None
    more = read_like(replace(options, data=options.test), table, keep_all=loaded is not None)
    held_out = with_roles(
        learning_task(more, options.target, task.kind), options.time, options.group, _used_by(loaded, options)
    )
    notes = (*more.notes, *(f"{one.name!r}: {one.note}" for one in more.columns if one.note), *held_out.notes)
    output.note(*(f"{options.test.name}: {note}" for note in notes))
    y = held_out.y if loaded is None else labels_for(loaded, held_out.y, options.target)
    known = y.isin(set(task.y)) if task.kind == "classification" else y.notna()
    if not known.all():
        label = min(str(label) for label in y[~known])
        raise ParameterError(f"--test {options.test} has the class {label!r}, which does not occur in {options.data}.")
    return replace(held_out, X=held_out.X[list(task.X.columns)], y=y)


def _check_report_files(options: ReportOptions) -> None:
    """Reject files that cannot be written, and more than one result for standard output."""
    check_output(options.out, "--out", (".html", ".htm"), options)
    check_output(options.json, "--json", (".json",), options)
    check_output(options.markdown, "--markdown", (".md", ".markdown"), options)
    files = {"--out": options.out, "--json": options.json, "--markdown": options.markdown}
    piped = [f"{option} -" for option, path in files.items() if path == Path(STDOUT)]
    if len(piped) > 1:
        raise ParameterError(f"{' and '.join(piped)} cannot both go to standard output. Name a file for one.")


def _write_report(
    options: ReportOptions, fitted: FittedModel, output: Output, labels: dict[str, Any], **settings: Any
) -> None:
    """Explain a model, write all files of the report, and print the importance of the features."""
    of_train, of_test = fitted.train.groups, dependent_groups(fitted.test)
    sampler = subgrove.samplers.Auto(report_depth=getattr(options, "max_depth", 2))
    report = subgrove.report(
        fitted.model,
        (fitted.train.X, fitted.train.y),
        (fitted.test.X, fitted.test.y),
        sampler=sampler,
        random_state=options.random_state,
        labels={**labels, "description": fitted.description, "origin": fitted.origin},
        groups=of_test if of_train is None else (of_train, of_test),
        n_jobs=options.n_jobs,
        **settings,
    )
    makers = {options.json: report.to_json, options.markdown: report.to_markdown, options.out: report.to_html}
    # The page last: it shows that all files are complete.
    write_results({path: make() for path, make in makers.items() if path is not None})
    _print_importance(report.summary, output)
    output.note(*(f"Warning: {warning}" for warning in report.summary.warnings))


def _print_importance(summary: Any, output: Output) -> None:
    """Print the importance of groups and features of a report, most important first, members below their group."""
    grouped = {name for group in summary.groups for name in group.features}
    own = [one for one in summary.features if one.feature not in grouped]
    rows = []
    together = [(f"{one.name} (together)", one, one.features) for one in summary.groups]
    alone = [(one.feature, one, ()) for one in own]
    for name, one, members in sorted([*together, *alone], key=lambda each: -each[1].conditional.estimate):
        rows.append(_importance_row(name, one))
        rows += [_importance_row(f"  {each.feature}", each) for each in summary.features if each.feature in members]
    loss = summary.loss.replace("_", " ")
    title = f"Importance: increase of the {loss} when a feature is resampled (baseline {number(summary.baseline)})"
    header = ("feature", "conditional", f"{percent(summary.level)} interval", "marginal", "note")
    output.table(title, header, rows, right=(1, 2, 3))
    model = summary.model
    more = model.sentences if model.verdict != "good" or model.per_class else ()
    output.say("\n" + " ".join((model.verdict_sentence, *more)))
    if model.leakage:
        output.say(leakage_sentence(model.leakage, model.target))


def _importance_row(name: str, one: Any) -> tuple[str, ...]:
    notes = ["" if one.fidelity is None else FIDELITY_NOTES.get(one.fidelity.verdict, ""), one.conditional.unreliable]
    estimates = number(one.conditional.estimate), _interval(one.conditional), number(one.marginal.estimate)
    return name, *estimates, "; ".join(filter(None, notes))


def _interval(estimate: Any) -> str:
    low, high = number(estimate.conf_low), number(estimate.conf_high)
    return f"{low} to {high}" if low and high else f"at least {low}" if low else ""

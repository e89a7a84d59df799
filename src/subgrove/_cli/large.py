"""`subgrove explain` for data in many parts: the model is asked about all rows, here or on a cluster.

A sample is drawn. On it the default model is trained and judged, and samplers are fitted; importance is then computed
over all other rows, part by part. Numbers of single rows are not kept, so the page has what sums can tell.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from subgrove._cli.columns import RawTable
from subgrove._cli.explain import Explain, tell_columns
from subgrove._cli.files import deliver
from subgrove._cli.large_options import Large
from subgrove._cli.large_page import Findings, page, tell
from subgrove._cli.models import Loaded, fit_columns, load_model
from subgrove._cli.output import Output
from subgrove._cli.parquet_model import StoredModel
from subgrove._cli.reading import Data, Request, column_names, feature_names, typed, wanted_columns
from subgrove._cli.target import pose
from subgrove._cli.training import cross_validate, rows_of, train
from subgrove._scale.engines import carry_out
from subgrove._scale.readers import Partitioned, Sample, read_partitioned, sample_rows
from subgrove.exceptions import ClusterError, InputError, ParameterError

SAMPLE = 100_000
JUDGED = 20_000  # rows of the sample that cross-validation takes
CURVES = 4  # features that have a curve, the most important ones
CURVE_ROWS = 2_000
_REPEATS = 2
_TEXT_ONLY = ("delimiter", "missing", "numeric", "nominal")


def explain_large(asked: Explain, large: Large, output: Output) -> None:
    """Draw, train or load, tell the performance, ask about all rows, write."""
    start = time.perf_counter()
    asked.outputs.check()
    _refuse(asked)
    loaded = load_model(asked.model, asked.trust) if asked.model else None
    path = str(asked.request.path)
    with connected(large.cluster, output):
        data = read_partitioned(path, argument="DATA")
        output.note(f"{data.n_rows:,} rows of {path}, in {_parts(data)}.")
        found = _trained(asked, large, data, output) if loaded is None else _given(asked, large, data, loaded, output)
    for place, text in ((asked.outputs.json, found.to_json), (asked.outputs.markdown, found.to_markdown)):
        if place is not None:
            deliver(place, text())
    deliver(asked.outputs.page, page(found))
    tell(found, output)
    output.say(f"\nPage: {asked.outputs.page} ({time.perf_counter() - start:.0f} s)")


def _refuse(asked: Explain) -> None:
    if asked.test is not None:
        raise ParameterError("--test is for files that are read whole. Explain the test rows alone, with --model.")
    for name in _TEXT_ONLY:
        if getattr(asked.request, name):
            option = "na" if name == "missing" else name
            raise ParameterError(
                f"--{option} is for files that are read whole; data in parts are read as their types say. "
                f"Change the type of the column in the file."
            )


@contextmanager
def connected(address: str | None, output: Output) -> Iterator[None]:
    """A connection to the cluster at an address, if there is one."""
    if address is None:
        yield
    elif address.startswith("ray://"):
        with _ray(address):
            yield
    else:
        with _dask(address, output):
            yield


@contextmanager
def _dask(address: str, output: Output) -> Iterator[None]:
    try:
        from distributed import Client
    except ImportError as error:
        raise ParameterError(f"--cluster {address} needs Dask. Run: pip install 'subgrove[dask]'") from error
    try:
        client = Client(address, timeout=10)
    except (OSError, ValueError, TypeError) as error:
        raise ClusterError(
            f"--cluster {address}: no Dask scheduler answers there ({type(error).__name__}). "
            f"Pass an address such as tcp://host:8786, or ray://host:10001 for Ray."
        ) from error
    try:
        output.note(f"Cluster: {sum(client.nthreads().values())} threads of {len(client.nthreads())} workers.")
        yield
    finally:
        client.close(timeout=5)


@contextmanager
def _ray(address: str) -> Iterator[None]:
    try:
        import ray
    except ImportError as error:
        raise ParameterError(f"--cluster {address} needs Ray. Run: pip install 'subgrove[ray]'") from error
    try:
        ray.init(address, log_to_driver=False)
    except (OSError, ValueError, RuntimeError) as error:
        raise ClusterError(f"--cluster {address}: no Ray answers there ({type(error).__name__}: {error}).") from error
    try:
        yield
    finally:
        ray.shutdown()


def _trained(asked: Explain, large: Large, data: Partitioned, output: Output) -> Findings:
    """The default model: trained and judged on the sample, which is not asked about afterwards."""
    seed, request = asked.request.seed, replace(asked.request, needed={asked.target: "--target"})
    columns = wanted_columns(request, data.columns)
    drawn = _sample(asked, large, data, columns)
    table = typed(_raw(drawn, request), replace(request, nominal=_texts(drawn)), ())
    table = _few_levels(table, asked.target)
    tell_columns(table, output, asked.target)
    problem = pose(table, asked.target, asked.task)
    for note in problem.notes:
        output.note(note)
    names = [str(name) for name in problem.X.columns]
    features = feature_names(asked.features, names, "--features", asked.target)
    some = rows_of(problem, np.arange(min(JUDGED, len(problem.y))))
    progress = False if output.quiet else None
    skills = cross_validate(
        some, forest=asked.forest, seed=seed, n_jobs=asked.settings.get("n_jobs"), progress=progress
    )
    told = ", ".join(str(skill) for skill in skills)
    output.say(f"\nHeld-out performance (5-fold cross-validation, {len(some.y):,} rows of the sample): {told}")
    learned = train(problem, forest=asked.forest, seed=seed)
    kinds = {column.name: column.kind for column in table.columns if column.name in names}
    model = StoredModel(learned, {name: kinds[name] for name in names}, _labels(learned, drawn, table, asked.target))
    about = [
        f"Model: {learned.describe()}, trained on {len(problem.y):,} rows drawn at random.",
        f"In 5-fold cross-validation of {len(some.y):,} of these: {told}.",
    ]
    return _asked_about_all(asked, large, data, model, features, drawn.table, about, output)


def _given(asked: Explain, large: Large, data: Partitioned, loaded: Loaded, output: Output) -> Findings:
    """A model of the user's, which takes rows as the file stores them."""
    request = replace(asked.request, needed={asked.target: "--target"})
    present = [name for name in wanted_columns(request, data.columns) if name != asked.target]
    named = column_names(asked.request.only or (), present, "--columns")
    names = fit_columns(loaded, named or present, asked.request.path)
    features = feature_names(asked.features, names, "--features", asked.target)
    if loaded.columns is None:
        loaded.model.feature_names_in_ = np.array(names, dtype=object)
    drawn = _sample(asked, large, data, [*names, asked.target])
    if loaded.classifier and hasattr(loaded.model, "learn_classes"):
        loaded.model.learn_classes(drawn.table[list(names)], drawn.table[asked.target])
    output.note("If the model was trained on some of these rows, its performance looks better than it is.")
    return _asked_about_all(
        asked, large, data, loaded.model, features, drawn.table, [f"Model: {loaded.description}."], output
    )


def _sample(asked: Explain, large: Large, data: Partitioned, columns: list[str]) -> Sample:
    """The rows that importance draws too, and leaves out of what it asks about."""
    n = min(large.sample or SAMPLE, data.n_rows // 2)
    if n < 2:
        raise InputError(f"{data.description} has {data.n_rows} rows, too few to draw a sample and ask about others.")
    if large.row_key is not None:
        data.reject_unknown([large.row_key], "--row-key")
    run = partial(carry_out, n_jobs=asked.settings.get("n_jobs"), progress=False, what="Drawing the sample")
    return sample_rows(data, columns, n, asked.request.seed, large.row_key, run)


def _raw(drawn: Sample, request: Request) -> RawTable:
    import pyarrow as pa

    from subgrove._cli.parquet import raw_columns

    table = pa.Table.from_pandas(drawn.table, preserve_index=False)
    return RawTable(raw_columns(table), tuple(range(drawn.n)), drawn.of)


def _texts(drawn: Sample) -> tuple[str, ...]:
    """Columns of text: levels, whatever the text looks like."""
    return tuple(str(name) for name in drawn.table.columns if drawn.table[name].dtype.kind not in "biufMm")


def _few_levels(table: Data, target: str) -> Data:
    """Columns of so many levels that the rare ones would be merged are left out: parts are not changed."""
    from subgrove._cli.inference import OTHER

    many = {
        column.name
        for column in table.columns
        if column.name in table.frame and column.kind == "nominal" and OTHER in table.frame[column.name].cat.categories
    } - {target}
    why = "more levels than can be told apart; merge rare ones in the file to use it"
    columns = tuple(replace(one, left_out=why) if one.name in many else one for one in table.columns)
    return replace(table, frame=table.frame.drop(columns=list(many)), columns=columns)


def _labels(learned: Any, drawn: Sample, table: Data, target: str) -> Any:
    """What the file calls the classes of the model, in its order."""
    if learned.task == "regression":
        return np.empty(0)
    stored = dict(zip(table.frame[target].astype(str), drawn.table[target], strict=True))
    return np.array([stored[str(label)] for label in learned.classes_])


def _asked_about_all(
    asked: Explain,
    large: Large,
    data: Partitioned,
    model: Any,
    features: tuple[str, ...],
    rows: Any,
    about: list[str],
    output: Output,
) -> Findings:
    import subgrove
    from subgrove._report.inputs import default_loss

    settings = dict(asked.settings)
    title, depth = settings.pop("title", None), settings.pop("max_depth", 2)
    loss = settings.pop("loss", None) or default_loss(model, rows[asked.target])
    found = subgrove.importance(
        model,
        str(asked.request.path),
        asked.target,
        sampler=subgrove.samplers.Auto(report_depth=depth),
        features=list(features) or None,
        random_state=asked.request.seed,
        sample=large.sample or SAMPLE,
        row_key=large.row_key,
        checkpoint=large.checkpoint,
        progress=False if output.quiet else None,
        n_repeats=settings.pop("n_repeats", _REPEATS),
        loss=loss,
        **settings,
    )
    judged = data.n_rows - int(found.settings["left_out"])
    about.append(
        f"Importance: {judged:,} of {data.n_rows:,} rows, in {_parts(data)}; the other "
        f"{found.settings['left_out']:,} taught how to redraw. The model was asked for "
        f"{found.settings['n_rows_predicted']:,} rows."
    )
    name = title or f"What the model of {asked.target} uses"
    return Findings(name, asked.target, tuple(about), found, _curves(model, found, rows, depth, asked))


def _curves(model: Any, found: Any, rows: Any, depth: int, asked: Explain) -> tuple[Any, ...]:
    """Partial dependence by subgroup of the most important features, on drawn rows: a mean needs no more."""
    import subgrove

    names = [str(name) for name in model.feature_names_in_]
    half = min(len(rows) // 2, 10 * CURVE_ROWS)
    grown, drawn = rows[names].iloc[:half], rows[names].iloc[half:][:CURVE_ROWS].reset_index(drop=True)
    best = found.overall.sort_values("estimate", ascending=False, kind="stable")["feature"].head(CURVES)
    groups = subgrove.find_subgroups(grown, features=list(best), max_depth=depth)
    return tuple(subgrove.effect(model, drawn, name, kind="pdp", subgroups=groups) for name in best)


def _parts(data: Partitioned) -> str:
    return f"{len(data.pieces):,} part{'s' * (len(data.pieces) != 1)}"

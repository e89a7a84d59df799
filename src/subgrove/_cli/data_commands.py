"""`subgrove subgroups`, `dependence` and `fidelity`: looks at the data that need no model."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from subgrove._cli.explain import tell_columns
from subgrove._cli.files import check_output, deliver
from subgrove._cli.output import Output, number, safe
from subgrove._cli.reading import Data, Request, feature_names, read_data


@dataclass(frozen=True)
class Look:
    """What a look at a file was asked for; the target, if there is one, is not a feature."""

    request: Request
    features: tuple[str, ...] = ()
    target: str | None = None
    json: Path | None = None
    jobs: int | None = None


def subgroups(asked: Look, max_depth: int | str, output: Output) -> None:
    """The tree and the rules of features."""
    import subgrove

    X, features = _features(asked, output)
    depth: Any = max_depth
    found = subgrove.find_subgroups(X, features=features, max_depth=depth, n_jobs=asked.jobs)
    for feature in found:
        partition = found[feature]
        if output.results and sys.stdout.isatty() and not output.quiet:
            _draw(partition)
        else:
            output.say(f"\n{partition.text()}")
        rows = list(zip(range(1, len(partition) + 1), partition.sizes, partition.rules, strict=True))
        output.table(
            f"{feature}: {_subgroups(len(partition), depth)}", ("subgroup", "rows", "rule"), rows, right=(0, 1)
        )
    _deliver(asked.json, {"table": records(found.table)})


def dependence(asked: Look, output: Output) -> None:
    """How well each feature is foretold by the others."""
    import subgrove

    X, features = _features(asked, output)
    progress = False if output.quiet else None
    found = subgrove.dependence(
        X, features=features, random_state=asked.request.seed, n_jobs=asked.jobs, progress=progress
    )
    table = found.table.sort_values("explained", ascending=False, kind="stable")
    rows = [
        (
            row["feature"],
            "" if np.isnan(row["explained"]) else f"{row['explained']:.0%}",
            row["predictors"],
            row["note"],
        )
        for row in records(table, missing=float("nan"))
    ]
    output.table("How well each feature is foretold by the others", ("feature", "explained", "by", "note"), rows, (1,))
    output.say("\n" + "\n".join(found.advice or ("No feature depends on the others so much that it matters.",)))
    _deliver(asked.json, {"table": records(table), "advice": list(found.advice)})


def fidelity(asked: Look, samplers: tuple[str, ...], output: Output) -> None:
    """How real redrawn rows look, sampler by sampler."""
    import subgrove

    X, features = _features(asked, output)
    first = np.zeros(len(X), dtype=np.bool_)
    first[np.random.default_rng(asked.request.seed).permutation(len(X))[: len(X) // 2]] = True
    chosen: dict[str, Any] = {"samplers": list(samplers)} if samplers else {}
    settings: dict[str, Any] = {"random_state": asked.request.seed, "n_jobs": asked.jobs, "classifier": False}
    progress = False if output.quiet else None
    train, test = X.loc[first], X.loc[~first]
    found = subgrove.fidelity(train, test, features=features, progress=progress, **chosen, **settings)
    overall, table = records(found.overall), records(found.table)
    output.table(
        "Samplers, best first: 1 keeps to the data as well as rows left alone, 0 no better than shuffling",
        ("sampler", "position", "fidelity", "features it could not redraw"),
        [(row["sampler"], number(row["position"]), number(row["estimate"]), row["failed"] or "") for row in overall],
        right=(1, 2, 3),
    )
    own = [name for name in found.samplers if name not in ("unchanged", "marginal")]
    places = {(row["feature"], row["sampler"]): row["position"] for row in table}
    lines = [(feature, *(number(places[feature, name]) for name in own)) for feature in found.features]
    output.table("Position by feature (empty: any sampler will do, or it cannot redraw it)", ("feature", *own), lines)
    _deliver(asked.json, {"overall": overall, "table": table})


def records(table: Any, missing: Any = None) -> list[dict[str, Any]]:
    """Rows of a table as plain values that JSON can hold; what is not a number is `missing`."""
    plain: list[dict[str, Any]] = []
    for row in table.to_dict(orient="records"):
        values = {str(name): value.item() if isinstance(value, np.generic) else value for name, value in row.items()}
        plain.append({name: missing if value != value else value for name, value in values.items()})
    return plain


def _features(asked: Look, output: Output) -> tuple[Any, list[str] | None]:
    """The table without its target, and the features asked for."""
    check_output(asked.json, "--json", (".json",))
    needed = {} if asked.target is None else {asked.target: "--target"}
    data: Data = read_data(replace(asked.request, needed=needed))
    tell_columns(data, output, asked.target)
    for note in data.notes:
        output.note(note)
    X = data.frame if asked.target is None else data.frame.drop(columns=asked.target)
    names = [str(name) for name in X.columns]
    return X, list(feature_names(asked.features, names, "--feature", asked.target)) or None


def _deliver(path: Path | None, values: Any) -> None:
    if path is not None:
        deliver(path, json.dumps(values, ensure_ascii=False, indent=1))


def _subgroups(n: int, max_depth: Any) -> str:
    if max_depth == 0:
        return "one subgroup, as --max-depth 0 asks for"
    return "one subgroup: it depends on no other column, as far as the tree can tell" if n == 1 else f"{n} subgroups"


def _draw(partition: Any) -> None:
    """The tree with branches, in a terminal."""
    from rich.console import Console
    from rich.text import Text
    from rich.tree import Tree

    tree = partition.tree
    branches = {1: Tree(Text.assemble((safe(partition.feature), "bold"), f"  all {tree.nodes[0].n:g} rows"))}
    for node in tree.nodes:
        for child in node.children or ():
            below = tree.nodes[child - 1]
            told = Text.assemble(
                safe(str(tree.branches[child])), (f"  {below.n:g} rows", "dim" if below.children else "green")
            )
            branches[child] = branches[node.id].add(told)
    Console().print(branches[1])

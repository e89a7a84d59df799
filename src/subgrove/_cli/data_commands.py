"""`subgrove subgroups`, `dependence` and `fidelity`: analyses of a file that need no model."""

from __future__ import annotations

from typing import Any

import numpy as np

import subgrove
from subgrove._cli.columns import KnownColumns
from subgrove._cli.options import FeatureOptions, FidelityOptions, SubgroupOptions
from subgrove._cli.reading import feature_names, print_columns, read_table_file
from subgrove._cli.terminal import Output, check_output, number, write_json
from subgrove._core.text import percent


def subgroups(options: SubgroupOptions, output: Output) -> None:
    """Show the tree and the rules of the subgroups within which a feature hardly depends on the other features.

    \b
    subgrove subgroups bikes.csv --feature temp --target cnt
    subgrove subgroups bikes.csv --feature temp --max-depth 3 --json rules.json
    """
    X, features = _read_features(options, output)
    groups = subgrove.find_subgroups(X, features=features, max_depth=options.max_depth, n_jobs=options.n_jobs)
    for feature in groups:
        partition = groups[feature]
        output.say(f"\n{partition.text()}")
        rows = list(zip(range(1, len(partition) + 1), partition.sizes, partition.rules, strict=True))
        title = f"{feature}: {_number_of_subgroups(len(partition), options.max_depth)}"
        output.table(title, ("subgroup", "rows", "rule"), rows, right=(0, 1))
    write_json(options.json, {"table": records(groups.table)})


def dependence(options: FeatureOptions, output: Output) -> None:
    """Show how well each feature is predicted by the other features, and by which.

    \b
    subgrove dependence bikes.csv --target cnt
    subgrove dependence bikes.csv --target cnt --feature temp --feature hum --json -
    """
    X, features = _read_features(options, output)
    result = subgrove.dependence(X, features=features, random_state=options.random_state, n_jobs=options.n_jobs)
    table = result.table.sort_values("explained", ascending=False, kind="stable")
    rows = [
        (row["feature"], "" if row["explained"] is None else percent(row["explained"]), row["predictors"], row["note"])
        for row in records(table)
    ]
    title = "Share of each feature that is explained by the other features"
    output.table(title, ("feature", "explained", "by", "note"), rows, right=(1,))
    output.say("\n" + "\n".join(result.advice or ("The features are nearly independent.",)))
    write_json(options.json, {"table": records(table), "advice": list(result.advice)})


def fidelity(options: FidelityOptions, output: Output) -> None:
    """Compare how realistic the rows of different samplers are; samplers are fitted on one half of the rows.

    \b
    subgrove fidelity bikes.csv --target cnt
    subgrove fidelity bikes.csv --target cnt --sampler subgroups --sampler imputation
    """
    X, features = _read_features(options, output)
    first = np.zeros(len(X), dtype=np.bool_)
    first[np.random.default_rng(options.random_state).permutation(len(X))[: len(X) // 2]] = True
    settings: dict[str, Any] = {"samplers": list(options.samplers)} if options.samplers else {}
    settings |= {"features": features, "random_state": options.random_state, "n_jobs": options.n_jobs}
    result = subgrove.fidelity(X.loc[first], X.loc[~first], classifier=False, **settings)
    overall, table = records(result.overall), records(result.table)
    output.table(
        "Samplers, most realistic first: position 1 is as close to the data as unchanged rows, 0 as shuffled ones",
        ("sampler", "position", "mean rank", "features", "failed on"),
        [
            (row["sampler"], number(row["position"]), number(row["mean_rank"]), row["n_features"], row["failed"] or "")
            for row in overall
        ],
        right=(1, 2, 3, 4),
    )
    names = [name for name in result.samplers if name not in ("unchanged", "marginal")]
    positions = {(row["feature"], row["sampler"]): row["position"] for row in table}
    rows = [(feature, *(number(positions[feature, name]) for name in names)) for feature in result.features]
    title = "Position by feature (empty: shuffling is realistic too, or the sampler failed)"
    output.table(title, ("feature", *names), rows)
    write_json(options.json, {"overall": overall, "table": table})


def records(table: Any) -> list[dict[str, Any]]:
    """Return the rows of a table as plain values for JSON, None where a value is missing."""
    rows: list[dict[str, Any]] = table.astype(object).where(table.notna(), None).to_dict(orient="records")
    return rows


def _read_features(options: FeatureOptions, output: Output) -> tuple[Any, list[str] | None]:
    """Read the file; return its table without the target, and the features that the user named."""
    check_output(options.json, "--json", (".json",), options)
    required = {} if options.target is None else {options.target: "--target"}
    table = read_table_file(options, KnownColumns(required))
    print_columns(table, output, options.target)
    output.note(*table.notes)
    X = table.frame if options.target is None else table.frame.drop(columns=options.target)
    return X, feature_names(options.features, X, "--feature", options.target) or None


def _number_of_subgroups(n: int, max_depth: int) -> str:
    if max_depth == 0:
        return "one subgroup (--max-depth 0)"
    return "one subgroup: no dependence on other columns was detected" if n == 1 else f"{n} subgroups"

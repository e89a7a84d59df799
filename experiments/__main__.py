"""`python -m experiments NAME [run|table|figure|all]`: compute, aggregate, draw."""

from __future__ import annotations

import argparse
import ast
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import pandas as pd

from experiments import data
from experiments.store import Store, replace_file
from experiments.units import Size

HERE = Path(__file__).parent
STEPS = ("run", "table", "figure", "all")
_WITH_SAMPLERS = ("ground_truth", "data_fidelity", "peers")
_OWN_UNITS = ("ground_truth", "data_fidelity")  # where samplers of the package have units of their own


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return 0 if all units worked."""
    parser = _parser()
    args = parser.parse_args(arguments)
    _reject_what_has_no_use(parser, args)
    if args.data is not None:
        os.environ[data.FOLDER_VARIABLE] = str(args.data.resolve())
    if args.fetch:
        os.environ[data.FETCH_VARIABLE] = "1"
    if args.name == "summary":
        return _write_summary()
    if args.scenarios == "zoo":
        args.name = "structures"
    names = sorted(summaries()) if args.name == "everything" else [args.name]
    return max(_one(name, args) for name in names)


def _one(name: str, args: argparse.Namespace) -> int:
    from importlib import import_module

    # The same rows args about by samplers of the package in place of the paper's: an experiment beside the first.
    module = import_module(
        f"experiments.{name}_samplers" if name in _OWN_UNITS and args.sampler else f"experiments.{name}"
    )
    size = Size(args.reps, tuple(args.cells), args.quick, data.folder(), args.sampler, args.seed, args.forest)
    name = stored_name(name, size)
    store = Store(args.out / (f"{name}-quick" if args.quick else name))
    failed = 0
    if args.step in ("run", "all"):
        failed = _run(name, module, size, store, args)
    if args.step in ("table", "figure", "all"):
        results = _chosen(store.read(), size)
        if hasattr(module, "beside") and size.samplers:
            results = module.beside(results, _chosen(_beside(args, size), size))
        if results.empty:
            print(f"{name}: no results in {store.folder}. Run `python -m experiments {name} run` first.")
            return 1
        if args.step != "figure":
            _write_tables(name, module, results, _table_folder(name, results, args, size))
        if args.step != "table":
            for path in module.figures(results, _made(args.out / ("figures-part" if _partial(size) else "figures"))):
                print(path)
    return failed


def _run(name: str, module: ModuleType, size: Size, store: Store, args: argparse.Namespace) -> int:
    from experiments.running import run_all

    if args.fresh:
        store.clear()
    try:
        units = [unit for unit in module.units(size) if size.takes(unit.cell)]
    except (FileNotFoundError, ModuleNotFoundError) as error:  # of data sets or packages; the message says what to do
        print(f"{name}: {error}", file=sys.stderr)
        return 1
    if not units:
        print(f"{name}: --cells {' '.join(size.cells)} names no cell.")
        return 1
    try:
        failures = run_all(module.__name__.removeprefix("experiments."), units, store, args.jobs)
    except KeyboardInterrupt:
        print(f"{name}: stopped. The same command goes on where it ended.")
        raise SystemExit(130) from None
    for failure in failures[:3]:
        print(f"{name}: unit {failure.key} failed.\n{failure.trace}", file=sys.stderr)
    if failures:
        print(f"{name}: {len(failures)} of {len(units)} units failed; the others are stored.", file=sys.stderr)
    return 1 if failures else 0


def _chosen(results: pd.DataFrame, size: Size) -> pd.DataFrame:
    if results.empty or not size.cells:
        return results
    return results[[size.takes(str(cell)) for cell in results["cell"]]].reset_index(drop=True)


def _write_tables(name: str, module: ModuleType, results: pd.DataFrame, folder: Path) -> None:
    from experiments.parts.ran import ran

    tables: dict[str, pd.DataFrame] = module.tables(results)
    for title, table in ({"run": ran(results)} | tables).items():
        path = folder / f"{name}_{title}.csv"
        replace_file(path, table.to_csv(index=False, lineterminator="\n").encode())
        print(path)
    print(module.report(tables))


def _table_folder(name: str, results: pd.DataFrame, args: argparse.Namespace, size: Size) -> Path:
    """Only tables of whole experiments are kept beside the code, and none gives way to one of fewer units."""
    kept: Path = args.results
    part: Path = args.out / "tables"
    if _partial(size):
        return part
    known = kept / f"{name}_run.csv"
    units = int(pd.read_csv(known)["units"].iloc[0]) if known.exists() else 0
    if results["key"].nunique() < units:
        print(f"{known} is of {units} units, and these are {results['key'].nunique()}: tables go to {part}.")
        return part
    return kept


def _partial(size: Size) -> bool:
    return size.quick or bool(size.cells) or size.seed != 0


def stored_name(name: str, size: Size) -> str:
    """The name that results are stored under: with the samplers, the forest and the seed that were args for."""
    parts = [name, *(size.samplers if name in _OWN_UNITS else ())]
    parts += ["own"] if size.forest == "own" else []
    return "_".join([*parts, *([f"seed{size.seed}"] if size.seed else [])])


def _beside(args: argparse.Namespace, size: Size) -> pd.DataFrame:
    """What stands beside: to packages what samplers had of the same rows, to samplers what the paper's methods had."""
    if args.name != "peers":
        return Store(args.out / (f"{args.name}-quick" if args.quick else args.name)).read()
    return Store(args.out / stored_name("ground_truth", size)).read()


def _reject_what_has_no_use(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    if args.sampler and args.name not in _WITH_SAMPLERS:
        parser.error(f"--sampler is for {', '.join(_WITH_SAMPLERS)}; got {args.name}.")
    from subgrove.samplers.fit import samplers_by_name

    unknown = [one for one in args.sampler if one not in samplers_by_name()]
    if unknown:
        parser.error(f"--sampler takes names out of {', '.join(sorted(samplers_by_name()))}; got {', '.join(unknown)}.")
    takes_seed = args.name == "peers" or (args.name == "ground_truth" and args.sampler)
    if args.seed and not takes_seed:
        parser.error("--seed is for ground_truth with --sampler, and for peers.")
    if args.scenarios != "paper" and args.name != "ground_truth":
        parser.error("--scenarios is for ground_truth.")
    if args.forest != "sklearn" and not (args.name == "ground_truth" and args.sampler):
        parser.error("--forest is for ground_truth with --sampler.")


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _write_summary() -> int:
    from importlib import import_module

    for page in ("summary", "beyond"):
        print(import_module(f"experiments.{page}").write())
    return 0


def summaries(title: str = "SUMMARY") -> dict[str, str]:
    """Experiment of the paper -> its line in the help, read without importing anything; past it: "BEYOND"."""
    found = {}
    for path in sorted(HERE.glob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            names = [target.id for target in getattr(node, "targets", []) if isinstance(target, ast.Name)]
            if title in names and isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
                found[path.stem] = str(node.value.value)
    return found


def _parser() -> argparse.ArgumentParser:
    known, further = summaries(), summaries("BEYOND")
    labels = known | further | {"everything": "each of the paper's in turn", "summary": "the pages from the tables"}
    width = max(map(len, labels)) + 2
    lines = [f"  {name:<{width}}{line}" for name, line in labels.items()]
    parser = argparse.ArgumentParser(
        prog="python -m experiments",
        description="The paper's tables and figures, computed anew.",
        epilog="experiments:\n" + "\n".join(lines),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "name", choices=[*known, *further, "everything", "summary"], metavar="NAME", help="which experiment"
    )
    parser.add_argument("step", nargs="?", choices=STEPS, default="all", help="default: all")
    parser.add_argument("--reps", type=_count, help="repetitions (default: as the experiment says)")
    parser.add_argument("--cells", nargs="+", default=[], metavar="PATTERN", help='such as "I-linear-*"')
    parser.add_argument("--jobs", type=_count, default=1, help="worker processes (default: 1)")
    parser.add_argument("--out", type=Path, default=HERE / "out", help="folder of raw results and figures")
    parser.add_argument("--results", type=Path, default=HERE / "results", help="folder of tables")
    parser.add_argument("--data", type=Path, help=f"folder of data sets (default: ${data.FOLDER_VARIABLE})")
    parser.add_argument("--fetch", action="store_true", help="allow downloading data sets from OpenML")
    parser.add_argument("--fresh", action="store_true", help="forget what was computed before")
    parser.add_argument(
        "--sampler", type=_names, default=(), metavar="NAME[,NAME]", help="samplers of the package to evaluate"
    )
    parser.add_argument("--seed", type=int, default=0, help="another number than 0: fresh rows (default: 0)")
    parser.add_argument(
        "--forest",
        choices=("sklearn", "own"),
        default="sklearn",
        help="forest that setting II explains (default: sklearn); own: that of the paper's methods, setting II alone",
    )
    parser.add_argument(
        "--scenarios",
        choices=("paper", "zoo"),
        default="paper",
        help="of ground_truth (default: paper); zoo: dependence structures of many kinds, the experiment `structures`",
    )
    parser.add_argument("--quick", action="store_true", help="tiny sizes: does it work? the numbers mean nothing")
    return parser


def _names(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be 1 or more")
    return number


if __name__ == "__main__":
    sys.exit(main())

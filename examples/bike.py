"""Subgroups of the bike-sharing features: a tree per feature, in rules a person can read.

Each feature is explained by the other eight, to a depth of two. Run it with `make demo`, or as
`python examples/bike.py --out demo`.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import subgrove as sg

# %%
# Which tree finds the subgroups of a feature: a transformation tree if it is numeric, for then its whole
# distribution counts, and a conditional inference tree otherwise.


def grow(name: str, max_depth: int) -> sg.trees.Tree:
    X = sg.datasets.bike().X
    if X[name].dtype == float:
        return sg.trees.TransformationTree(max_depth=max_depth).fit(X.drop(columns=name), X[name])
    return sg.trees.ConditionalInferenceTree(max_depth=max_depth).fit(X.drop(columns=name), X[name])


# %%
# The rules of all nine trees, and a picture of the one for temperature.


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("demo"), help="folder for the picture (default: demo)")
    parser.add_argument("--max-depth", type=int, default=2, help="most splits above a subgroup (default: 2)")
    arguments = parser.parse_args()
    for name in sg.datasets.bike().X.columns:
        tree = grow(name, arguments.max_depth)
        print(f"{name}: {len(tree.leaves)} {'subgroup' if len(tree.leaves) == 1 else 'subgroups'}")
        for leaf in tree.leaves:
            print(f"  {leaf.n:5.0f} days  {tree.rules[leaf.id]}")
    arguments.out.mkdir(parents=True, exist_ok=True)
    picture = arguments.out / "temperature_tree.png"
    figure = sg.plots.tree(grow("temp", arguments.max_depth)).get_figure(root=True)
    assert figure is not None
    figure.savefig(picture, dpi=150)
    print(f"\nThe temperature tree is drawn in {picture.resolve()}")


if __name__ == "__main__":
    main()

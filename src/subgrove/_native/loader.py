"""The compiled kernels, each None where the package was installed without a C compiler, and versions in use.

Kernel by kernel there is a fallback beside its caller. All but that of the forest give the same numbers up to rounding;
without the compiled forest, scikit-learn's is used, which draws other random numbers, and a warning is raised once.
"""

from __future__ import annotations

import sys
from functools import cache
from importlib import import_module
from types import ModuleType

from subgrove._core.validate import warn
from subgrove._version import __version__
from subgrove.exceptions import FallbackWarning

KERNELS = ("forest", "lasso_path", "mmd_pairs", "tree_fit", "tree_pairs", "tree_steps", "tree_sums")
MAX_COEFFICIENTS = 32  # of a model beyond the first, or scores of a row, that the tree kernels take


def load_kernel(name: str) -> ModuleType | None:
    """Return a compiled kernel, or None if it is not installed."""
    try:
        return import_module(f"subgrove._native._{name}")
    except ImportError:
        return None


forest = load_kernel("forest")
lasso_path = load_kernel("lasso_path")
mmd_pairs = load_kernel("mmd_pairs")
tree_fit = load_kernel("tree_fit")
tree_pairs = load_kernel("tree_pairs")
tree_steps = load_kernel("tree_steps")
tree_sums = load_kernel("tree_sums")


def kernels_in_use() -> dict[str, bool]:
    """Return for each kernel whether the compiled version is in use."""
    return {name: globals()[name] is not None for name in KERNELS}


@cache
def warn_forest_fallback() -> None:
    """Warn, once per process, that scikit-learn's forest replaces the compiled one."""
    warn(
        "The compiled forest is not installed, so scikit-learn's forest is used: the same random_state gives other "
        "draws than on machines with the compiled part, and it is slower. Install a wheel of subgrove, or install it "
        "where there is a C compiler; subgrove.show_versions() lists the compiled parts.",
        FallbackWarning,
    )


REQUIRED = (
    *("charset-normalizer", "cloudpickle", "jinja2", "joblib", "loky", "markupsafe", "msgspec", "narwhals", "numpy"),
    *("pandas", "rich", "scikit-learn", "scipy", "threadpoolctl", "typer"),
)
OPTIONAL = ("dask", "distributed", "matplotlib", "onnxruntime", "polars", "pyarrow", "ray", "skops", "torch")
NOT_INSTALLED = "not installed"
_FALLBACK = {True: "compiled", False: "not installed: NumPy gives the same numbers, slower"}
_NO_FOREST = "not installed: scikit-learn's forest is used, with other random draws"


def show_versions() -> None:
    """Print the versions of Python, subgrove and its dependencies, and which compiled parts are in use.

    Examples
    --------
    >>> import subgrove as sg
    >>> sg.show_versions()  # doctest: +ELLIPSIS
    System
      python: 3...
      ...
    Python packages
      subgrove: ...
      ...
    Compiled parts
      forest: ...
      ...
    """
    import platform

    kernels = {name: _FALLBACK[compiled] for name, compiled in kernels_in_use().items()}
    if not kernels_in_use()["forest"]:
        kernels["forest"] = _NO_FOREST
    sections = {
        "System": {"python": platform.python_version(), "executable": sys.executable, "platform": platform.platform()},
        "Python packages": {"subgrove": __version__} | {name: version_of(name) for name in (*REQUIRED, *OPTIONAL)},
        "Compiled parts": kernels,
    }
    for title, lines in sections.items():
        print(title)
        for name, text in lines.items():
            print(f"  {name}: {text}")


def version_of(package: str) -> str:
    """Return the version of a package, or "not installed"."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return NOT_INSTALLED

"""Versions of Python, of this package and its dependencies, and the compiled parts in use: what a bug report needs."""

from __future__ import annotations

import sys

from subgrove._native.loader import kernels_in_use
from subgrove._version import __version__

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

"""Checks of the checkout before any test runs, and modules whose examples need an extra that is not installed."""

from importlib.util import find_spec
from pathlib import Path

import pytest

NEEDS = {
    "_models/device_model.py": "torch",
    "_scale/engines/with_dask.py": "distributed",
    "_scale/engines/with_ray.py": "ray",
}
NATIVE = Path(__file__).parent / "src" / "subgrove" / "_native"
KERNELS = ("forest", "lasso_path", "mmd_pairs", "tree_fit", "tree_sums")


def pytest_configure() -> None:
    """Stop if the checkout holds compiled kernels of another version; none at all is fine, fallbacks are used then."""
    compiled = {path.name.split(".")[0] for path in NATIVE.glob("_*.so")}
    if compiled and not {f"_{kernel}" for kernel in KERNELS} <= compiled:
        raise pytest.UsageError(
            f"src/subgrove/_native has compiled kernels of another version ({', '.join(sorted(compiled))}). "
            f"Compile them again: python setup.py build_ext --inplace (with a Python that has setuptools)."
        )


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Skip the modules of `NEEDS` whose extra is missing, in the source tree or installed."""
    for name, package in NEEDS.items():
        if collection_path.as_posix().endswith(f"subgrove/{name}") and not find_spec(package):
            return True
    return None

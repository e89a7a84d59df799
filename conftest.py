"""Modules that need an extra which is not installed are not searched for examples."""

from importlib.util import find_spec
from pathlib import Path

NEEDS = {
    "_models/device/model.py": "torch",
    "_scale/engines/with_dask.py": "distributed",
    "_scale/engines/with_ray.py": "ray",
}


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave such a module out, in the source or installed."""
    for name, package in NEEDS.items():
        if collection_path.as_posix().endswith(f"subgrove/{name}") and not find_spec(package):
            return True
    return None

"""Checks of the checkout before any test runs, durations by folder after them, and modules that need an extra."""

from collections import defaultdict
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

NEEDS = {
    "_models/device_model.py": "torch",
    "_scale/engines/with_dask.py": "distributed",
    "_scale/engines/with_ray.py": "ray",
}
NATIVE = Path(__file__).parent / "src" / "subgrove" / "_native"
KERNELS = ("forest", "lasso_path", "mmd_pairs", "tree_fit", "tree_sums")


def is_compiled() -> bool:
    """Return whether the package has its compiled parts."""
    spec = find_spec("subgrove")
    folders = [] if spec is None else spec.submodule_search_locations or []
    return any(list((Path(folder) / "_native").glob("_forest.*[od]")) for folder in folders)  # .so or .pyd


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Without the compiled parts, skip the tests of these and of numbers that were recorded with them."""
    if not is_compiled():
        reason = "needs the compiled parts, or compares with numbers that they gave"
        for item in items:
            if item.get_closest_marker("compiled"):
                item.add_marker(pytest.mark.skip(reason=reason))


def pytest_configure(config: pytest.Config) -> None:
    """Stop if the checkout holds compiled kernels of another version; none at all is fine, fallbacks are used then.

    The warning of few rows is ignored: tests have few, so that they are quick. Without the compiled forest its fallback
    is what is tested, and the warning of that is no error. The package is not imported here, nor named in the settings
    of pytest, which would import it: the lines that run then would not be counted by `make coverage`.
    """
    config.addinivalue_line("filterwarnings", "ignore::subgrove.exceptions.FewRowsWarning")
    if not is_compiled():
        config.addinivalue_line("filterwarnings", "ignore::subgrove.exceptions.FallbackWarning")
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


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print how long the tests of each folder took, summed over processes, the longest first."""
    seconds: dict[str, float] = defaultdict(float)
    reports = [one for kind in ("passed", "failed", "error") for one in terminalreporter.stats.get(kind, [])]
    for report in reports:
        seconds["/".join(report.nodeid.split("::")[0].split("/")[:2])] += getattr(report, "duration", 0.0)
    if len(seconds) > 1:
        ranked = sorted(seconds.items(), key=lambda item: -item[1])
        terminalreporter.write_sep("=", "seconds by folder")
        terminalreporter.write_line(", ".join(f"{name} {taken:.0f}" for name, taken in ranked))

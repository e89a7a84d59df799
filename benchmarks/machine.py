"""What the numbers of a benchmark were taken on: processor, cores, memory, Python and the versions of packages.

    python -m benchmarks.machine [PACKAGE ...]

Scripts print `machine(...)` above their tables, so that a table that is copied says where it comes from.
"""

from __future__ import annotations

import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

USUAL = ("numpy", "pandas", "scikit-learn")


def machine(*packages: str) -> str:
    """One line: the machine, Python, and the versions of packages (the usual ones if none are named)."""
    named = ", ".join(f"{name} {version_of(name)}" for name in packages or USUAL)
    return f"{_cores()} of {_processor()}, {_memory()}; Python {platform.python_version()}, {named}."


def version_of(package: str) -> str:
    """The version of an installed package."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _cores() -> str:
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return f"{usable} core{'s' if usable != 1 else ''}"


def _processor() -> str:
    found = Path("/proc/cpuinfo")
    lines = found.read_text().splitlines() if found.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _memory() -> str:
    if not hasattr(os, "sysconf") or "SC_PHYS_PAGES" not in os.sysconf_names:
        return platform.system()
    return f"{os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') / 2**30:.0f} GiB, {platform.system()}"


if __name__ == "__main__":
    print(machine(*sys.argv[1:]))

"""The compiled part, which is optional: without a C compiler the package installs and runs in NumPy alone."""

from setuptools import Extension, setup

TREES = "src/subgrove/trees"
SOURCES = {
    "subgrove.trees._inner": [
        f"{TREES}/_inner.c",
        *(f"{TREES}/_loops/{name}.c" for name in ("newton", "fit_plain", "fit_wide")),
    ],
    "subgrove.trees._sums": [f"{TREES}/_sums.c", *(f"{TREES}/_loops/{name}.c" for name in ("sums_plain", "sums_wide"))],
    "subgrove._forest._grow": ["src/subgrove/_forest/_grow.c"],
    "subgrove._shift._path": ["src/subgrove/_shift/_path.c"],
    "subgrove._fidelity._pairs": ["src/subgrove/_fidelity/_pairs.c"],
}
HEADERS = [f"{TREES}/_loops/{name}.h" for name in ("buffers", "fit", "lanes", "newton", "numbers", "sums")]

setup(
    ext_modules=[
        Extension(name, sources, extra_compile_args=["-O3"], py_limited_api=True, optional=True, depends=HEADERS)
        for name, sources in SOURCES.items()
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)

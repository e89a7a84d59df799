"""The compiled part, which is optional: without a C compiler the package installs and runs in NumPy alone."""

from setuptools import Extension, setup

NATIVE = "src/subgrove/_native"
SOURCES = {
    "subgrove._native._inner": [
        f"{NATIVE}/_inner.c",
        *(f"{NATIVE}/_loops/{name}.c" for name in ("newton", "fit_plain", "fit_wide")),
    ],
    "subgrove._native._sums": [
        f"{NATIVE}/_sums.c",
        *(f"{NATIVE}/_loops/{name}.c" for name in ("sums_plain", "sums_wide")),
    ],
    "subgrove._native._grow": [f"{NATIVE}/_grow.c"],
    "subgrove._native._path": [f"{NATIVE}/_path.c"],
    "subgrove._native._pairs": [f"{NATIVE}/_pairs.c"],
}
HEADERS = [f"{NATIVE}/_loops/{name}.h" for name in ("buffers", "fit", "lanes", "newton", "numbers", "sums")]

setup(
    ext_modules=[
        Extension(name, sources, extra_compile_args=["-O3"], py_limited_api=True, optional=True, depends=HEADERS)
        for name, sources in SOURCES.items()
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)

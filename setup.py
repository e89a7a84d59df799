"""The compiled part, which is optional: without a C compiler the package installs and runs in NumPy alone."""

from setuptools import Extension, setup

setup(
    ext_modules=[
        Extension(name, [source], extra_compile_args=["-O3"], py_limited_api=True, optional=True, depends=included)
        for name, source, included in [
            ("subgrove.trees._inner", "src/subgrove/trees/_inner.c", ["src/subgrove/trees/_lanes.h"]),
            ("subgrove.trees._sums", "src/subgrove/trees/_sums.c", ["src/subgrove/trees/_lanes.h"]),
            ("subgrove._forest._grow", "src/subgrove/_forest/_grow.c", []),
            ("subgrove._shift._path", "src/subgrove/_shift/_path.c", []),
            ("subgrove._fidelity._pairs", "src/subgrove/_fidelity/_pairs.c", []),
        ]
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)

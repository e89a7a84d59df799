"""The compiled part, which is optional: without a C compiler the package installs and runs in NumPy alone."""

from setuptools import Extension, setup

setup(
    ext_modules=[
        Extension(
            "subgrove.trees._inner",
            ["src/subgrove/trees/_inner.c"],
            extra_compile_args=["-O3"],
            py_limited_api=True,
            optional=True,
        )
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)

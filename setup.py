"""The compiled kernels, which are optional: without a C compiler the package installs and runs with fallbacks."""

from pathlib import Path
from typing import Any

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

NATIVE = Path("src/subgrove/_native")
SOURCES = {
    "tree_fit": ["tree_fit", "newton", "tree_fit_plain", "tree_fit_wide"],
    "tree_sums": ["tree_sums", "tree_sums_plain", "tree_sums_wide"],
    "forest": ["forest"],
    "lasso_path": ["lasso_path"],
    "mmd_pairs": ["mmd_pairs"],
    "tree_pairs": ["tree_pairs"],
    "tree_steps": ["tree_steps", "tree_masks", "tree_lists", "tree_steps_plain", "tree_steps_wide"],
}
# No operations are fused, so that all processors give the same numbers; comparisons that trap would not be vectorized.
FLAGS = ["-O3", "-ffp-contract=off", "-fno-trapping-math"]
WIDE_FLAGS = ["-ffp-contract=fast"]  # of `*_wide.c`, the variant for processors with fused multiply-add


class BuildKernels(build_ext):
    """Compile `*_wide.c` with its own flags."""

    def build_extension(self, ext: Extension) -> None:
        """Compile one kernel.

        Parameters
        ----------
        ext : Extension
            The kernel.
        """
        compile_file = self.compiler._compile

        def with_own_flags(obj: str, src: str, *rest: Any) -> None:
            extension, cc_args, flags, defines = rest
            flags = [*flags, *WIDE_FLAGS] if src.endswith("_wide.c") else flags
            compile_file(obj, src, extension, cc_args, flags, defines)

        self.compiler._compile = with_own_flags
        try:
            super().build_extension(ext)
        finally:
            self.compiler._compile = compile_file


setup(
    ext_modules=[
        Extension(
            f"subgrove._native._{kernel}",
            [str(NATIVE / f"{source}.c") for source in sources],
            extra_compile_args=FLAGS,
            py_limited_api=True,
            optional=True,
            depends=[str(header) for header in sorted(NATIVE.glob("*.h"))],
        )
        for kernel, sources in SOURCES.items()
    ],
    cmdclass={"build_ext": BuildKernels},
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)

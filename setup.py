"""The compiled kernels, which are optional: without a C compiler the package installs and runs with fallbacks.

With `SUBGROVE_REQUIRE_COMPILED=1` they are not: the build then fails if a kernel cannot be compiled, so that no wheel
without them is published. Links of README.md to files of the repository become addresses, for package indexes.
"""

import os
import re
import sys
import sysconfig
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
MSVC_FLAGS = ["/O2", "/std:c11"]  # `restrict` is of C99; Microsoft's compiler knows it from /std:c11 on
DEBUG = "-g" in os.environ.get("CFLAGS", "").split()
STRIP_FLAGS = [] if DEBUG else ["-g0"]  # Python's own flags include debug information
STRIP_LINK_FLAGS = [] if DEBUG or not sys.platform.startswith("linux") else ["-Wl,-s"]

REQUIRED = os.environ.get("SUBGROVE_REQUIRE_COMPILED", "0") not in ("", "0")
# One build serves Python 3.11 and later, except free-threaded Python, which has no limited API: it needs its own.
LIMITED_API = not sysconfig.get_config_var("Py_GIL_DISABLED")

REPOSITORY = "https://github.com/subgrove/subgrove"
LINK = re.compile(r"(?P<image>!?)\[(?P<text>[^\]]*)\]\((?![a-z]+:|#)(?P<target>[^)\s]+)\)")


def readme_of_an_index() -> str:
    """Return README.md with addresses instead of links to files, at the tag of this version."""
    version = re.search('__version__ = "(.+)"', Path("src/subgrove/_version.py").read_text(encoding="utf-8"))
    assert version

    def with_address(link: re.Match[str]) -> str:
        view = "raw" if link["image"] else "blob"
        return f"{link['image']}[{link['text']}]({REPOSITORY}/{view}/v{version[1]}/{link['target']})"

    return LINK.sub(with_address, Path("README.md").read_text(encoding="utf-8"))


class BuildKernels(build_ext):
    """Compile with the flags of the compiler, and `*_wide.c` with its own."""

    def build_extension(self, ext: Extension) -> None:
        """Compile one kernel.

        Parameters
        ----------
        ext : Extension
            The kernel.
        """
        if self.compiler.compiler_type == "msvc":
            ext.extra_compile_args = MSVC_FLAGS
        else:
            ext.extra_compile_args, ext.extra_link_args = FLAGS + STRIP_FLAGS, STRIP_LINK_FLAGS
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
            define_macros=[("Py_LIMITED_API", "0x030b0000")] if LIMITED_API else [],
            py_limited_api=LIMITED_API,
            optional=not REQUIRED,
            depends=[str(header) for header in sorted(NATIVE.glob("*.h"))],
        )
        for kernel, sources in SOURCES.items()
    ],
    long_description=readme_of_an_index(),
    long_description_content_type="text/markdown",
    cmdclass={"build_ext": BuildKernels},
    options={"bdist_wheel": {"py_limited_api": "cp311"}} if LIMITED_API else {},
)

"""Tables of parameters show the default of each, also where a docstring describes several names together.

The reader of docstrings gives all names of such an entry the default of the first, and the type `Any` of the signature
where the docstring has none. Here the signature gives the default, and `Any`, which is uninformative, is left out.
"""

from __future__ import annotations

from typing import Any

import griffe


class OwnDefaults(griffe.Extension):
    """Looks at every function of the package once it is loaded."""

    def on_package(self, *, pkg: Any, **_: Any) -> None:
        """Walk the package."""
        walk(pkg)


def walk(thing: Any) -> None:
    """Mend a function, or the members of a module or class."""
    if thing.is_alias:
        return
    if thing.is_function and thing.docstring:
        mend(thing)
    for member in thing.members.values():
        walk(member)


def mend(function: Any) -> None:
    """Defaults and types of the described parameters, from the signature."""
    known = {parameter.name: parameter for parameter in function.parameters}
    for section in function.docstring.parsed:
        if section.kind is griffe.DocstringSectionKind.parameters:
            for described in section.value:
                own = known.get(described.name.lstrip("*"))
                described.value = own.default if own is not None else described.value
                if str(described.annotation) == "Any":
                    described.annotation = None

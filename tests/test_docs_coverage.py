"""Every public name is documented: what it is, its parameters, an example."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from types import ModuleType
from typing import Any

import subgrove as sg
import subgrove.sklearn

DOORS = [sg, *(getattr(sg, name) for name in sg.__all__ if isinstance(getattr(sg, name), ModuleType)), subgrove.sklearn]


def public_things() -> Iterator[tuple[str, Any]]:
    """Functions and classes, under the name that users write."""
    for door in DOORS:
        for name in door.__all__:
            value = getattr(door, name)
            if inspect.isfunction(value) or inspect.isclass(value):
                yield f"{door.__name__}.{name}", value


def public_members(owner: str, kind: type) -> Iterator[tuple[str, Any]]:
    """Methods and properties that a class has from this package."""
    for name, value in inspect.getmembers(kind):
        if name.startswith("_"):
            continue
        raw = inspect.getattr_static(kind, name)
        code = raw.fget if isinstance(raw, property) else getattr(raw, "__func__", getattr(raw, "func", raw))
        if inspect.isfunction(code) and code.__module__.startswith("subgrove"):
            yield f"{owner}.{name}", raw if isinstance(raw, property) else value


THINGS = dict(public_things())
CLASSES = {name: value for name, value in THINGS.items() if inspect.isclass(value)}
MEMBERS = {name: value for owner, kind in CLASSES.items() for name, value in public_members(owner, kind)}
CALLED = {
    name: value
    for name, value in {**THINGS, **MEMBERS}.items()
    if inspect.isfunction(inspect.unwrap(value)) or inspect.ismethod(value)
}


def described(value: Any, *sections: str) -> set[str]:
    """Names that sections of a numpydoc docstring describe."""
    doc = inspect.getdoc(value) or ""
    names: set[str] = set()
    for section in sections:
        found = re.search(rf"^{section}\n-+\n(?P<body>.*?)(?=^\w[\w ]*\n-+\n|\Z)", doc, re.MULTILINE | re.DOTALL)
        lines = re.findall(r"^(\*{0,2}\w[\w*, ]*?)(?: :.*)?$", found["body"], re.MULTILINE) if found else []
        names |= {name.strip(" *") for line in lines for name in line.split(",")}
    return names


def parameters_of(value: Any) -> set[str]:
    return {name for name in inspect.signature(value).parameters if name not in ("self", "cls") and name[0] != "_"}


def missing(required: dict[str, set[str]], sections: tuple[str, ...], values: dict[str, Any]) -> dict[str, list[str]]:
    """Name -> its parameters that the docstring does not describe."""
    left = {name: sorted(names - described(values[name], *sections)) for name, names in required.items()}
    return {name: names for name, names in left.items() if names}


def test_the_walk_finds_what_there_is() -> None:
    assert {"subgrove.importance", "subgrove.ImportanceResult", "subgrove.trees.Tree"} <= set(THINGS)
    assert {"subgrove.ImportanceResult.overall", "subgrove.trees.Tree.apply"} <= set(MEMBERS)
    assert {"subgrove.importance", "subgrove.trees.Tree.apply", "subgrove.trees.Tree.from_dict"} <= set(CALLED)
    assert described(sg.DepthProfile.compute, "Parameters") >= {"train", "features", "kinds", "n_jobs"}


def test_every_public_name_says_what_it_is() -> None:
    assert [name for name, value in {**THINGS, **MEMBERS}.items() if not (inspect.getdoc(value) or "").strip()] == []


def test_every_parameter_is_described() -> None:
    required = {name: parameters_of(value) for name, value in CALLED.items()}
    assert missing(required, ("Parameters",), CALLED) == {}


def test_every_parameter_of_a_constructor_is_described() -> None:
    required = {
        name: {field.name for field in fields(kind) if field.name[0] != "_"}
        if is_dataclass(kind)
        else parameters_of(kind)
        for name, kind in CLASSES.items()
        if not issubclass(kind, Exception)
    }
    assert missing(required, ("Parameters", "Attributes"), CLASSES) == {}


def test_every_function_and_class_has_an_example() -> None:
    things = {name: value for name, value in THINGS.items() if not name.startswith("subgrove.exceptions.")}
    assert [name for name, value in things.items() if ">>>" not in (inspect.getdoc(value) or "")] == []

"""What a front door imports is what it lists, sorted."""

from __future__ import annotations

import inspect
from types import ModuleType

import pytest

import subgrove as sg
import subgrove.sklearn

DOORS = [sg, sg.trees, sg.plots, sg.samplers, sg.losses, sg.datasets, sg.exceptions, subgrove.sklearn]


@pytest.mark.parametrize("door", DOORS, ids=lambda door: str(door.__name__))
def test_all_is_sorted_and_without_duplicates(door: ModuleType) -> None:
    assert door.__all__ == sorted(set(door.__all__))


@pytest.mark.parametrize("door", [sg, sg.trees, sg.plots, sg.samplers], ids=lambda door: str(door.__name__))
def test_everything_imported_is_exported(door: ModuleType) -> None:
    imported = {
        name
        for name, value in vars(door).items()
        if not name.startswith("_") and (not inspect.ismodule(value) or name in door.__all__)
    }
    assert imported == {name for name in door.__all__ if not name.startswith("_")}


@pytest.mark.parametrize("door", DOORS, ids=lambda door: str(door.__name__))
def test_every_exported_name_exists(door: ModuleType) -> None:
    for name in door.__all__:
        assert hasattr(door, name)


@pytest.mark.parametrize(
    "door",
    [sg.trees, sg.plots, sg.datasets, sg.samplers, sg.losses, subgrove.sklearn],
    ids=lambda door: str(door.__name__),
)
def test_every_public_thing_has_a_docstring(door: ModuleType) -> None:
    for name in door.__all__:
        value = getattr(door, name)
        assert value.__doc__, name
        for method, function in inspect.getmembers(value, inspect.isfunction):
            if not method.startswith("_") and function.__module__.startswith("subgrove"):
                assert function.__doc__, f"{name}.{method}"


def test_front_door_computes_nothing() -> None:
    source = inspect.getsource(sg)
    assert "def " not in source
    assert "for " not in source.split('"""')[2]

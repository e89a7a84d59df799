"""Compiled templates are kept beside compiled modules, unless Python keeps none."""

from __future__ import annotations

import os
import sys
from typing import Any

import pytest
from jinja2 import FileSystemBytecodeCache

from subgrove._report import render

environment: Any = render._environment.__wrapped__  # a new one at each call


@pytest.mark.parametrize("keeps", [True, False])
def test_templates_are_kept_only_where_python_keeps_modules(keeps: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", not keeps)
    monkeypatch.setattr(os, "access", lambda place, mode: True)
    assert isinstance(environment(autoescape=True).bytecode_cache, FileSystemBytecodeCache) == keeps


def test_html_and_text_are_kept_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(os, "access", lambda place, mode: True)
    html, text = (environment(autoescape=each).bytecode_cache.pattern for each in (True, False))
    assert html != text


def test_templates_are_not_kept_in_a_folder_that_cannot_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(os, "access", lambda place, mode: False)
    assert environment(autoescape=True).bytecode_cache is None

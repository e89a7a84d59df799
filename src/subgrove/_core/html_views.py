"""Views of results, registered for their classes from outside: results do not import what draws them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import singledispatch
from pathlib import Path
from typing import Any, ClassVar

from subgrove._core.files import check_file_path, write_bytes, write_text
from subgrove.exceptions import ParameterError


@singledispatch
def html_of(result: object) -> str:
    """Return the HTML that a notebook shows for a result; `subgrove._report.notebook` registers the views."""
    raise NotImplementedError(f"No HTML view is registered for {type(result).__name__}.")


@singledispatch
def plot_of(result: object, *others: Any, **options: Any) -> Any:
    """Draw a result, and others of its class; `subgrove.plots` registers the functions."""
    raise ParameterError(f"There is no plot of a {type(result).__name__}; draw its table, .to_frame().")


class HtmlView:
    """A result with an HTML view in notebooks."""

    def _repr_html_(self) -> str:
        return html_of(self)


class ResultView(HtmlView):
    """A result that can be drawn, converted and saved; the first of its tables is the main one."""

    _tables: ClassVar[tuple[str, ...]] = ("table",)

    def plot(self, *others: Any, **options: Any) -> Any:
        """Draw the result with the function of `subgrove.plots` for it, and return the matplotlib axes.

        Parameters
        ----------
        *others : object
            Results to draw beside it, where the function takes several.
        **options : object
            Options of the function, such as `ax` and `top`.
        """
        return plot_of(self, *others, **options)

    def to_frame(self) -> Any:
        """Return the main table of the result as a pandas frame."""
        return self._frame(self._tables[0])

    def to_dict(self) -> dict[str, Any]:
        """Return the tables of the result as lists of rows, plain values for JSON; None where a value is missing."""
        frames = {name: self._frame(name) for name in self._tables}
        return {
            name: json.loads(frame.to_json(orient="records", double_precision=15)) for name, frame in frames.items()
        }

    def save(self, path: str | Path) -> None:
        """Write the result; an existing file is replaced once the new one is complete.

        Parameters
        ----------
        path : str or path
            Its suffix is the format: `.csv` or `.parquet` for the main table, `.json` for all tables.
        """
        place = Path(path)
        check_file_path(place)
        writers: dict[str, Callable[[Path], None]] = {
            ".csv": lambda place: write_text(place, self.to_frame().to_csv(index=False)),
            ".parquet": lambda place: write_bytes(place, self.to_frame().to_parquet(index=False)),
            ".json": self._write_json,
        }
        if place.suffix.lower() not in writers:
            raise ParameterError(
                f"path={str(path)!r} must end in {', '.join(writers)}, which is the format of the file."
            )
        writers[place.suffix.lower()](place)

    def _frame(self, name: str) -> Any:
        own = replace(self, backend="pandas") if hasattr(self, "backend") else self  # type: ignore[type-var]  # a dataclass
        return getattr(own, name)

    def _write_json(self, path: Path) -> None:
        write_text(path, json.dumps(self.to_dict()))

"""`report`: everything this package tells of a model, as one thing to read, hand over and keep."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from subgrove._core.files import check_file_path, write_text
from subgrove._core.html_views import html_of
from subgrove._report.inputs import read_asked
from subgrove._report.summarise import summarise
from subgrove._report.summary import Summary
from subgrove._report.validate_json import reject_misfits
from subgrove.exceptions import FormatError, ParameterError

_FORMS = (".html", ".json", ".md")


@dataclass(frozen=True, repr=False)
class Report:
    """A report on a model: what `subgrove.report` returns.

    Attributes
    ----------
    summary : Summary
        Everything the report says, as frozen plain values; `docs/report.md` has each field.

    Examples
    --------
    >>> import subgrove as sg
    >>> train, test = sg.datasets.bike(split=0.7, random_state=1)
    >>> def model(X):
    ...     return 2000 + 100 * X["temp"] + 1000 * (X["yr"] == "2012")
    >>> found = sg.report(model, train, test, features=["temp", "yr"], n_repeats=5, random_state=1)
    >>> found
    <Report 'What the model of cnt uses': 2 features, 219 test rows, absolute_error>
    >>> found.summary.features[0].feature
    'yr'
    """

    summary: Summary

    def to_dict(self) -> dict[str, Any]:
        """The report as plain values that JSON can hold; `docs/report.schema.json` is their schema."""
        return self.summary.to_dict()

    def to_html(self) -> str:
        """The report as one page that needs nothing else."""
        from subgrove._report.render import page

        return page(self.summary)

    def to_markdown(self) -> str:
        """The report as Markdown."""
        from subgrove._report.markdown import text

        return text(self.summary)

    def to_json(self) -> str:
        """The report as JSON."""
        return json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False, indent=1) + "\n"

    def save(self, path: str | Path) -> None:
        """Write the report; a file that is there is replaced once the new one is complete.

        Parameters
        ----------
        path : str or Path
            Its ending says as what: `.html`, `.json` or `.md`.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> import subgrove as sg
        >>> train, test = sg.datasets.bike(split=0.7, random_state=1)
        >>> model = lambda X: 100 * X["temp"]
        >>> found = sg.report(model, train, test, features=["temp"], n_repeats=5, random_state=1)
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "bike.json"
        >>> found.save(path)
        >>> sg.Report.load(path) == found
        True
        """
        place = Path(path)
        make = {".html": self.to_html, ".json": self.to_json, ".md": self.to_markdown}.get(place.suffix.lower())
        if make is None:
            raise ParameterError(
                f"path={str(path)!r} must end in {', '.join(_FORMS)}, which says as what the report is written."
            )
        check_file_path(place)
        write_text(place, make())

    @classmethod
    def load(cls, path: str | Path) -> Report:
        """Read what `save` wrote as JSON; the model and the data are not needed for that.

        Parameters
        ----------
        path : str or path
            A JSON file that `save` wrote.
        """
        try:
            values = json.loads(Path(path).read_text(encoding="utf-8"))
        except (ValueError, RecursionError) as error:
            raise FormatError(f"{path} does not hold JSON: {error}. Pass a file that Report.save wrote.") from error
        summary = Summary.from_dict(values)
        reject_misfits(summary)
        return cls(summary)

    def __repr__(self) -> str:
        one = self.summary
        n, rows = len(one.features), one.data.n_test
        return f"<Report {one.title!r}: {n} feature{'s' * (n != 1)}, {rows} test row{'s' * (rows != 1)}, {one.loss}>"

    def _repr_html_(self) -> str:
        return html_of(self)


def report(
    model: Any,
    train: Any,
    test: Any,
    *,
    features: Any = None,
    loss: Any = None,
    sampler: Any = "auto",
    max_depth: int = 2,
    n_repeats: int | None = None,
    random_state: int | None = None,
    title: str | None = None,
    target: str | None = None,
    description: str | None = None,
    origin: str | None = None,
    column_notes: Mapping[str, str] | None = None,
    created: str | None = None,
    n_jobs: int | None = None,
    progress: bool | None = None,
) -> Report:
    """Explain a model whole: how good it is, which features depend on which, importance, subgroups and curves.

    Parameters
    ----------
    model : object or callable
        Anything fitted that has `predict` or `predict_proba`, or a function of a table.
    train, test : Dataset or pair (X, y)
        The rows that the model was trained on, and rows that it has not seen: the report explains it on these.
    features : list of str, optional
        The features to tell of; every column by default. All columns take part in redrawing in any case.
    loss : str, Loss or callable, optional
        What importance is measured in; it must have a value for each row. By default absolute error, log loss of a
        classifier with `predict_proba`, and the share of rows misclassified of one without.
    sampler : str or sampler, default "auto"
        How features are redrawn given the others, as in `importance`. Those that do not look at other columns are
        refused; the marginal importance is in the report anyway.
    max_depth : int, default 2
        Most conditions in the rule of a subgroup.
    n_repeats : int, optional
        Redraws of each feature. By default 20, and fewer, down to 5, where rows and features are many.
    random_state : int, RandomState instance or Generator, optional
        Same seed, same report, whatever the number of jobs.
    title, target, description, origin : str, optional
        Words for the page: its title, what y is called, what the model is, and where it comes from.
    column_notes : mapping, optional
        Column name -> a note on it, such as what was inferred when its file was read.
    created : str, optional
        Date and time that the report bears. Now, if not given; "" for none.
    n_jobs : int, optional
        Number of jobs, as joblib counts them.
    progress : bool, optional
        Whether a bar shows how far it is; by default in a terminal.

    Returns
    -------
    Report
        `.save("report.html")` (or `.json`, `.md`), `.summary`, `.to_html()`, `.to_markdown()`, `.to_dict()`.

    Notes
    -----
    Importance is computed on at most 20,000 test rows, curves on at most 1,000 (300 where features are many), forests
    of dependence on at most 2,000 training rows, with fewer rows and trees where columns are many. Gaps are told
    column by column as long as that asks the model for at most 800,000 rows. The part on methods says what was done,
    and `summary.methods.rows_predicted` how many rows the model was asked for.

    Warnings of subgrove do not appear as warnings: they are in `summary.warnings`, and so in the report.

    Examples
    --------
    >>> import subgrove as sg
    >>> train, test = sg.datasets.bike(split=0.7, random_state=1)
    >>> def model(X):
    ...     return 2000 + 100 * X["temp"] + 1000 * (X["yr"] == "2012")
    >>> found = sg.report(model, train, test, features=["temp", "yr"], n_repeats=5, random_state=1)
    >>> print(found.summary.features[0].headline)
    yr matters: 273 (95 % interval 221 to 322).
    """
    asked = read_asked(model, train, test, features, loss, sampler, max_depth, n_repeats, random_state, target, n_jobs)
    words = {"title": title, "description": description, "origin": origin, "created": created, "target": target}
    for name, value in words.items():
        if value is not None and not isinstance(value, str):
            raise ParameterError(f"{name} must be text; got {type(value).__name__}. Pass a str, or leave it out.")
    moment = datetime.now(UTC).isoformat(timespec="seconds") if created is None else created
    summary = summarise(
        asked,
        title=title,
        created=moment,
        description=description,
        origin=origin,
        column_notes=column_notes,
        progress=progress,
    )
    return Report(summary)

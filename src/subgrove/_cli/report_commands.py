"""`subgrove report` and `subgrove demo`: a page from a saved report, and one from data that come with the package."""

from __future__ import annotations

import time
from pathlib import Path

from subgrove._cli.explain import Outputs, tell_findings
from subgrove._cli.files import check_output, deliver
from subgrove._cli.open_file import reject_unreadable
from subgrove._cli.output import Output


def rebuild(path: Path, out: Path | None, output: Output) -> None:
    """The page, or the Markdown, of a report that was saved as JSON."""
    import subgrove

    reject_unreadable(path)
    page = out or path.with_suffix(".html")
    check_output(page, "--out", (".html", ".htm", ".md", ".markdown"))
    report = subgrove.Report.load(path)
    markdown = page.suffix.lower() in (".md", ".markdown")
    deliver(page, report.to_markdown() if markdown else report.to_html())
    output.say(f"Report: {page}")


def demo(outputs: Outputs, seed: int, jobs: int | None, output: Output) -> None:
    """Rented bikes: boosted trees on weather and calendar, explained on days not seen."""
    import subgrove
    from subgrove._cli.explain import write
    from subgrove._cli.target import Problem
    from subgrove._cli.training import train

    start = time.perf_counter()
    outputs.check()
    learned, held_out = subgrove.datasets.bike(split=0.7, random_state=seed)
    model = train(Problem(learned.X, learned.y, "regression", ()), forest=False, seed=seed)
    output.note(f"{learned.description} {len(learned.X)} days to train on, {len(held_out.X)} to explain on.")
    report = subgrove.report(
        model,
        learned,
        held_out,
        loss="absolute_error",
        random_state=seed,
        title="Rented bikes a day",
        target="cnt",
        description=model.describe(),
        origin=f"Trained by subgrove demo on 70 % of the days. {learned.source}",
        n_jobs=jobs,
        progress=False if output.quiet else None,
    )
    write(report, outputs)
    tell_findings(report.summary, output)
    output.say(f"\nReport: {outputs.page} ({time.perf_counter() - start:.0f} s). Open it in a browser.")

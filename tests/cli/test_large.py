"""`subgrove explain` on data in many parts: all rows are asked about, and what is told is what was computed."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import subgrove as sg
from subgrove._cli import large, large_page
from subgrove._cli.output import Output
from subgrove._cli.training import train
from subgrove._scale.readers import read_partitioned, sample_rows
from subgrove._scoring.fidelity_check.check import FidelityCheck

from .conftest import rows
from .run import invoke, refused

QUICK = ("-t", "price", "--drop", "sold", "--repeats", 1, "--sample", 400)


@dataclass(frozen=True)
class Told:
    """What a run told, wrote and trained its model on."""

    result: Any
    folder: Path
    trained_on: Any

    @property
    def values(self) -> Any:
        return json.loads((self.folder / "out.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Told:
    """One run, on three files of 400 rows; `new` is true or false, `street` has very many levels."""
    folder, seen = tmp_path_factory.mktemp("parts"), list[Any]()

    def trained(problem: Any, **settings: Any) -> Any:
        seen.append(problem)
        return train(problem, **settings)

    (folder / "parts").mkdir()
    for at in range(3):
        frame = rows(400, seed=at).assign(street=[f"s{k % 150}" for k in range(400)])
        frame.assign(new=frame["a"] > 0).to_parquet(folder / "parts" / f"{at}.parquet")
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(folder)
        patched.setattr(large, "train", trained)
        result = invoke(
            "explain", "parts", *QUICK, "--checkpoint", "kept", "--json", "out.json", "--markdown", "out.md"
        )
    assert result.exit_code == 0, result.output
    return Told(result, folder, seen[-1])


@pytest.fixture
def parts(told: Told, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files, in the folder that we are in."""
    monkeypatch.chdir(told.folder)
    return Path("parts")


def test_a_folder_is_explained_with_all_rows(told: Told) -> None:
    assert "Held-out performance" in told.result.stdout
    assert "Importance: 800 of 1,200 rows" in told.result.stderr
    values = told.values
    assert sum(line["n"] for line in values["subgroups"] if line["feature"] == "a") == 800
    assert sorted(line["feature"] for line in values["features"]) == ["a", "b", "kind", "new"]
    page = (told.folder / "report.html").read_text(encoding="utf-8")
    for text in ("Importance of 4 features", "Effect of a", "What is not here"):
        assert text in page
    lines = told.result.stdout.split("Importance:")[1].splitlines()
    assert lines[2].split()[1] == f"{values['features'][0]['estimate']:.3g}"
    assert values["loss"] == "absolute_error"  # as in the report of a table
    assert "Content-Security-Policy" in page
    assert "| feature | n | estimate |" in (told.folder / "out.md").read_text(encoding="utf-8")


def test_redraws_that_do_not_look_real_are_marked(told: Told, capsys: pytest.CaptureFixture[str]) -> None:
    assert {line["fidelity"] for line in told.values["features"]} <= {"passed", "failed", "unknown"}
    X = rows(60)[["a", "b"]]
    found = sg.importance(lambda X: X["a"].to_numpy(), X, X["a"], sampler="marginal", random_state=1)
    failed = FidelityCheck("failed", "they are told apart")
    scores = tuple(replace(score, fidelity_check=failed) for score in found.scores)
    findings = large_page.Findings("title", "price", ("about",), replace(found, scores=scores), ())
    large_page.tell(findings, Output())
    assert "redrawn rows do not look real" in capsys.readouterr().out
    assert "rows which cannot exist" in large_page.page(findings)


def test_column_of_very_many_levels_is_left_out_and_told(told: Told) -> None:
    assert "more levels than can be told apart" in told.result.stdout


def test_the_model_is_trained_on_rows_that_are_left_out(told: Told, parts: Path) -> None:
    drawn = sample_rows(read_partitioned(str(parts)), ["price"], 400, 1)
    assert np.array_equal(np.sort(told.trained_on.y), np.sort(drawn.table["price"]))


def test_a_run_with_a_checkpoint_goes_on(told: Told, parts: Path) -> None:
    kept = list(Path("kept").glob("piece-*"))
    before = {file: file.stat().st_mtime_ns for file in kept}
    result = invoke("explain", parts, *QUICK, "--checkpoint", "kept", "--json", "again.json")
    assert result.exit_code == 0, result.output
    assert Path("again.json").read_text() == Path("out.json").read_text()
    assert {file: file.stat().st_mtime_ns for file in kept} == before != {}


@pytest.mark.slow
def test_checkpoint_of_another_question_is_refused(parts: Path) -> None:
    refused(invoke("explain", parts, *QUICK, "--checkpoint", "kept", "--seed", 2), "kept", "holds another run")


@pytest.mark.slow
@pytest.mark.parametrize("target", ["sold", "new"])
def test_classes_are_called_as_the_file_calls_them(target: str, parts: Path) -> None:
    options = ("--columns", "a,kind", "--repeats", 1, "--sample", 400, "--json", "classes.json")
    result = invoke("explain", parts, "-t", target, *options)
    assert result.exit_code == 0, result.output
    assert "log_loss" in result.stdout
    assert json.loads(Path("classes.json").read_text())["features"][0]["feature"] == "a"


def test_model_of_a_file_is_asked_about_stored_rows(parts: Path) -> None:
    import joblib
    from sklearn.linear_model import LinearRegression

    frame = rows(400, seed=9)
    model = LinearRegression().fit(frame[["a", "b"]], frame["price"])
    joblib.dump(model, "line.joblib")
    options = ("-m", "line.joblib", "--trust-pickle", "--sample", 400, "--json", "line.json", "--out", "line.html")
    result = invoke("explain", parts, "-t", "price", *options)
    assert result.exit_code == 0, result.output
    sampler = sg.samplers.Auto(report_depth=2)
    asked: dict[str, Any] = {
        "loss": "absolute_error",
        "n_repeats": 2,
        "random_state": 1,
        "sample": 400,
        "check_fidelity": False,
    }
    known = sg.importance(model, str(parts), "price", sampler=sampler, **asked)
    told = {line["feature"]: line["estimate"] for line in json.loads(Path("line.json").read_text())["features"]}
    assert told == known.overall.set_index("feature")["estimate"].to_dict()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--test", "x.csv"), ("--test is for files that are read whole",)),
        (("--nominal", "a"), ("--nominal is for files that are read whole",)),
        (("--na", "none"), ("--na is for files that are read whole",)),
        (("--target", "prize"), ("no column 'prize'", "Did you mean 'price'?")),
        (("--features", "c"), ("--features 'c' is no column",)),
        (("--row-key", "id"), ("--row-key", "'id'")),
    ],
)
def test_what_cannot_be_done_is_refused_in_words(options: tuple[str, ...], words: tuple[str, ...], parts: Path) -> None:
    refused(invoke("explain", parts, "-t", "price", "--drop", "sold", *options), *words)


def test_text_file_is_not_explained_in_parts(houses: Path) -> None:
    refused(invoke("explain", houses, "-t", "price", "--sample", 100), "Parquet")


def test_cluster_that_does_not_answer_is_told_with_an_exit_code_of_its_own(
    parts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    distributed = pytest.importorskip("distributed", reason="needs the extra: pip install 'subgrove[dask]'")

    def silent(*address: Any, **options: Any) -> Any:
        raise OSError("timed out")

    monkeypatch.setattr(distributed, "Client", silent)
    result = invoke("explain", parts, "-t", "price", "--cluster", "tcp://127.0.0.1:9")
    assert result.exit_code == 4
    assert "no Dask scheduler answers there" in result.stderr


def test_cluster_does_the_work(told: Told, parts: Path) -> None:
    distributed = pytest.importorskip("distributed", reason="needs the extra: pip install 'subgrove[dask]'")
    options = {"n_workers": 1, "threads_per_worker": 2, "processes": False, "dashboard_address": ":0"}
    with distributed.LocalCluster(protocol="tcp", **options) as cluster:
        there = invoke("explain", parts, *QUICK, "--cluster", cluster.scheduler_address, "--json", "there.json")
    assert there.exit_code == 0, there.output
    assert "Cluster: 2 threads of 1 workers" in there.stderr
    assert json.loads(Path("there.json").read_text()) == told.values

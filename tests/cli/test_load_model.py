"""Models from files: trusted ones are loaded and called correctly, others are rejected with instructions."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import subgrove as sg
from subgrove._cli import load_model as loading
from subgrove._cli.load_model import load_model
from subgrove._core import files
from subgrove.exceptions import InputError, ModelError, ParameterError

from .commands import error_message, invoke
from .conftest import rows

QUICK = ("--n-repeats", 3, "--features", "a", "-q", "--json", "out.json")
NUMBERS = ["a", "b"]


class Own(BaseEstimator):  # type: ignore[misc]
    """A model whose type skops does not know."""

    def fit(self, X: Any, y: Any) -> Own:
        self.mean_ = float(np.mean(y))
        return self

    def predict(self, X: Any) -> Any:
        return np.full(len(X), self.mean_)


def linear() -> Any:
    frame = rows()
    return LinearRegression().fit(frame[NUMBERS], frame["price"])


def pipeline() -> Any:
    frame = rows().fillna({"kind": "hut"})
    encode = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), ["kind"]), remainder="passthrough")
    return make_pipeline(encode, LogisticRegression()).fit(frame[["kind", "a", "b"]], frame["sold"])


def baseline(loss: str, y: Any, model: Any, X: Any) -> float:
    """Return the loss of the test rows, 30 % of all, that a command explains a model on."""
    from subgrove._cli.learning_task import LearningTask
    from subgrove._cli.splitting import split_rows

    held_out = split_rows(LearningTask(X, y, "regression" if loss == "absolute_error" else "classification", ()), 1)[1]
    if loss == "absolute_error":
        return float(np.abs(model.predict(held_out.X) - held_out.y).mean())
    probabilities = model.predict_proba(held_out.X)
    return float(
        -np.log(probabilities[np.arange(len(probabilities)), np.searchsorted(model.classes_, held_out.y)]).mean()
    )


def test_pickle_is_loaded_only_if_trusted(houses: Path, folder: Path) -> None:
    joblib.dump(linear(), "model.joblib")
    error_message(invoke("explain", houses, "-t", "price", "-m", "model.joblib", *QUICK), "--trust-pickle")
    assert not (folder / "out.json").exists()
    result = invoke("explain", houses, "-t", "price", "-m", "model.joblib", "--trust-pickle", *QUICK)
    assert result.exit_code == 0, result.output
    frame = rows()
    assert sg.Report.load("out.json").summary.baseline == pytest.approx(
        baseline("absolute_error", frame["price"], linear(), frame[NUMBERS])
    )


def test_code_of_an_untrusted_pickle_is_not_run(houses: Path, folder: Path) -> None:
    class Bomb:
        def __reduce__(self) -> Any:
            return (Path.touch, (folder / "exploded",))

    Path("model.pkl").write_bytes(pickle.dumps(Bomb()))
    error_message(invoke("explain", houses, "-t", "price", "-m", "model.pkl"), "--trust-pickle")
    assert not (folder / "exploded").exists()
    with pytest.raises(ParameterError, match="no predict"):
        load_model(Path("model.pkl"), trust_pickle=True)
    assert (folder / "exploded").exists()  # so the check above can fail


def test_skops_loads_a_scikit_learn_pipeline(houses: Path) -> None:
    from skops.io import dump

    dump(pipeline(), "model.skops")
    frame = rows().fillna({"kind": "hut"})
    frame.to_csv(houses, index=False)
    result = invoke("explain", houses, "-t", "sold", "-m", "model.skops", *QUICK)
    assert result.exit_code == 0, result.output
    summary = sg.Report.load("out.json").summary
    assert summary.model.description == "Pipeline (LogisticRegression) from model.skops"
    frame["kind"] = frame["kind"].astype("category")
    expected = baseline("log_loss", frame["sold"], pipeline(), frame[["kind", "a", "b"]])
    assert summary.baseline == pytest.approx(expected)


@pytest.mark.parametrize("name", ["model.skops", "rows.xlsx"])
def test_an_archive_that_would_fill_the_memory_is_not_opened(
    houses: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(files, "_MOST_UNPACKED", 10**6)
    with ZipFile(name, "w", ZIP_DEFLATED) as archive:
        archive.writestr("xl/workbook.xml", bytes(2 * 10**6))
    words = (name, "-t", "price") if name == "rows.xlsx" else (houses, "-t", "price", "-m", name)
    error_message(invoke("explain", *words), name, "would unpack to", "more than 100 times its size")


def test_skops_lists_untrusted_types(folder: Path) -> None:
    from skops.io import dump, get_untrusted_types

    dump(Own().fit(None, [1.0, 2.0]), "model.skops")
    (name,) = get_untrusted_types(file="model.skops")
    with pytest.raises(ParameterError, match=f"--trust {name}"):
        load_model(Path("model.skops"))


def test_a_file_that_is_no_model_is_error_message(folder: Path) -> None:
    pytest.importorskip("onnxruntime")
    for name in ("model.skops", "model.onnx", "model.joblib"):
        Path(name).write_bytes(b"not a model")
        with pytest.raises((InputError, ModelError), match=name):
            load_model(Path(name), trust_pickle=True)
    Path("model.h5").write_bytes(b"x")
    with pytest.raises(ParameterError, match=r"\.skops"):
        load_model(Path("model.h5"))


@pytest.mark.parametrize(("name", "line"), [("model.skops", "subgrove[skops]"), ("model.onnx", "subgrove[onnx]")])
def test_error_for_missing_extra_has_the_install_command(
    folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, line: str
) -> None:
    monkeypatch.setattr(loading, "find_spec", lambda module: None)
    Path(name).write_bytes(b"x")
    with pytest.raises(ParameterError) as caught:
        load_model(Path(name))
    assert f"pip install '{line}'" in str(caught.value)


def to_onnx(model: Any, path: str, inputs: list[Any], **options: Any) -> None:
    from skl2onnx import convert_sklearn

    Path(path).write_bytes(convert_sklearn(model, initial_types=inputs, **options).SerializeToString())


def test_onnx_with_matrix_input_predicts_like_the_model(houses: Path) -> None:
    pytest.importorskip("skl2onnx")
    from skl2onnx.common.data_types import FloatTensorType

    to_onnx(linear(), "model.onnx", [("input", FloatTensorType([None, 2]))])
    loaded = load_model(Path("model.onnx"))
    np.testing.assert_allclose(loaded.model.predict(rows()[NUMBERS]), linear().predict(rows()[NUMBERS]), atol=1e-4)
    options = ("--columns", "a,b", *QUICK)
    result = invoke("explain", houses, "-t", "price", "-m", "model.onnx", *options)
    assert result.exit_code == 0, result.output
    error_message(invoke("explain", houses, "-t", "price", "-m", "model.onnx"), "takes 2 columns", "--columns")


@pytest.mark.parametrize("zipmap", [True, False])
def test_onnx_classifier_with_one_input_per_column_predicts_like_the_model(houses: Path, zipmap: bool) -> None:
    pytest.importorskip("skl2onnx")
    from skl2onnx.common.data_types import FloatTensorType, StringTensorType

    inputs = [("kind", StringTensorType([None, 1])), *((name, FloatTensorType([None, 1])) for name in NUMBERS)]
    to_onnx(pipeline(), "model.onnx", inputs, options={LogisticRegression: {"zipmap": zipmap}})
    frame = rows().fillna({"kind": "hut"}).assign(kind=lambda table: table["kind"].astype("category"))
    loaded = load_model(Path("model.onnx"))
    assert (loaded.columns, loaded.classifier) == (("kind", "a", "b"), True)
    model = loaded.model.learn_classes(frame, frame["sold"])
    assert model.classes_.tolist() == ["no", "yes"]
    np.testing.assert_allclose(
        model.predict_proba(frame), pipeline().predict_proba(frame[["kind", *NUMBERS]]), atol=1e-5
    )
    copy = pickle.loads(pickle.dumps(model))  # as for other processes
    assert (copy.predict(frame) == pipeline().predict(frame[["kind", *NUMBERS]])).all()
    result = invoke("explain", houses, "-t", "sold", "-m", "model.onnx", *QUICK)
    assert result.exit_code == 0, result.output


def test_onnx_with_numeric_input_rejects_levels(houses: Path) -> None:
    pytest.importorskip("skl2onnx")
    from skl2onnx.common.data_types import FloatTensorType

    to_onnx(linear(), "model.onnx", [("input", FloatTensorType([None, 2]))])
    options = ("--columns", "a,kind")
    result = invoke("explain", houses, "-t", "price", "-m", "model.onnx", *options)
    assert result.exit_code == 3
    assert "'kind' holds levels" in result.stderr
    assert "Traceback" not in result.output


def test_column_of_the_model_missing_from_the_file_is_named(houses: Path) -> None:
    joblib.dump(linear(), "model.joblib")
    rows().rename(columns={"b": "B"}).to_csv(houses, index=False)
    message = error_message(
        invoke("explain", houses, "-t", "price", "-m", "model.joblib", "--trust-pickle"), "no column 'b'"
    )
    assert "the model needs it" in message


def test_model_without_feature_names_gets_columns_in_the_order_of_the_option(houses: Path) -> None:
    frame = rows()
    joblib.dump(LinearRegression().fit(frame[["b", "a"]].to_numpy(), frame["price"]), "model.joblib")
    options = ("-t", "price", "-m", "model.joblib", "--trust-pickle", "--columns", "b,a")
    assert invoke("explain", houses, *options, *QUICK).exit_code == 0
    expected = baseline("absolute_error", frame["price"], linear(), frame[NUMBERS])
    assert sg.Report.load("out.json").summary.baseline == pytest.approx(expected)


def test_integer_classes_match_labels_stored_as_text(folder: Path) -> None:
    frame = rows().assign(sold=lambda table: (table["sold"] == "yes").astype(int))
    frame.to_csv("houses.csv", index=False)
    joblib.dump(
        RandomForestClassifier(5, random_state=1).fit(frame[NUMBERS], frame["sold"].astype(str)), "model.joblib"
    )
    options = ("-m", "model.joblib", "--trust-pickle", *QUICK)
    assert invoke("explain", "houses.csv", "-t", "sold", *options).exit_code == 0
    assert sg.Report.load("out.json").summary.model.classes == ("0", "1")


def test_a_target_of_other_classes_is_error_message(houses: Path) -> None:
    frame = rows()
    joblib.dump(RandomForestClassifier(5, random_state=1).fit(frame[NUMBERS], frame["sold"]), "model.joblib")
    options = ("-m", "model.joblib", "--trust-pickle")
    error_message(invoke("explain", houses, "-t", "kind", *options), "'flat'", "'no', 'yes'")


class Failing:
    """A model whose predictions fail."""

    def predict(self, X: Any) -> Any:
        raise RuntimeError("division failed")


def test_failing_model_gives_exit_code_3_and_no_file(
    houses: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "_load_pickle", lambda path, trusted: Failing())
    Path("model.joblib").write_bytes(b"x")
    result = invoke("explain", houses, "-t", "price", "-m", "model.joblib", "--drop", "sold")
    assert result.exit_code == 3
    assert "division failed" in result.stderr
    assert sorted(path.name for path in folder.iterdir()) == ["houses.csv", "model.joblib"]


def test_debug_prints_the_traceback(houses: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "_load_pickle", lambda path, trusted: Failing())
    Path("model.joblib").write_bytes(b"x")
    options = ("-m", "model.joblib", "--drop", "sold", "--debug")
    result = invoke("explain", houses, "-t", "price", *options)
    assert "Traceback" in result.stderr


def test_model_of_another_scikit_learn_version_gives_a_note(houses: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as then:
        then.setattr("sklearn.base.__version__", "0.24.0")
        joblib.dump(linear(), "model.joblib")
    options = ("-m", "model.joblib", "--trust-pickle", "--n-repeats", 2, "-f", "a")
    result = invoke("explain", houses, "-t", "price", *options)
    assert result.exit_code == 0, result.output
    assert "version 0.24.0" in result.stderr


def test_onnx_with_weights_in_a_file_beside_it_does_not_read_the_working_folder(folder: Path) -> None:
    onnx = pytest.importorskip("onnx")
    make, weights = onnx.helper, np.array([[2.0], [1.0]], np.float32)
    sizes = (("X", [None, 2]), ("Y", [None, 1]))
    inputs, outputs = ([make.make_tensor_value_info(name, onnx.TensorProto.FLOAT, size)] for name, size in sizes)
    node = make.make_node("MatMul", ["X", "W"], ["Y"])
    graph = make.make_graph([node], "linear", inputs, outputs, [onnx.numpy_helper.from_array(weights, "W")])
    model = make.make_model(graph, opset_imports=[make.make_opsetid("", 17)], ir_version=8)
    Path("models").mkdir()
    apart = {"save_as_external_data": True, "location": "weights.bin", "size_threshold": 0}
    onnx.save_model(model, "models/model.onnx", **apart)
    Path("weights.bin").write_bytes((9 * weights).tobytes())
    loaded = load_model(Path("models/model.onnx"))
    table = pd.DataFrame({"a": [1.0, 2.0], "b": [1.0, 1.0]})
    assert pickle.loads(pickle.dumps(loaded.model)).predict(table).tolist() == [3.0, 5.0]

"""`DeviceModel`: a PyTorch module or a function of tensors as a model, with its device and kind of output."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from subgrove._core.validate import whole_number
from subgrove._models.device_table import Tensor, host_table, is_module, matrix_of, torch_of
from subgrove.exceptions import ModelError, ParameterError

__all__ = ["DeviceClassifier", "DeviceModel"]

Output = Literal["value", "probability", "logit"]
_OUTPUTS = ("value", "probability", "logit")
_CPU_ROWS = 16_384
_BATCH_BYTES = 2**32  # what a batch may take on a GPU: fewer, larger batches leave the host time to run ahead
_PROBE_ROWS = 1_024
_FREE_SHARE = 0.5


class DeviceModel:
    """A PyTorch module, or a function of a tensor, as a model that `importance` evaluates on its device.

    A `torch.nn.Module` that returns numbers can be passed to `importance` and `effect` itself; `DeviceModel` has the
    options. With `output="probability"` or `"logit"` it is a classifier, a `DeviceClassifier`.

    Parameters
    ----------
    model : torch.nn.Module or callable
        From a tensor (rows, columns) to a tensor (rows,) or (rows, outputs).
    device : str or torch.device, optional
        Where it is evaluated, such as "cuda". By default the device of the module's parameters; "cpu" for a function.
    dtype : torch.dtype, optional
        Type of the numbers that the model is given; by default that of the module's parameters, else float32.
    output : {"value", "probability", "logit"}, default "value"
        What the model returns: numbers; probabilities of classes; or logits, which are converted to probabilities (by
        softmax, or by the logistic function for a single column). A single column is the second of two classes.
    classes : list, optional
        Labels of the classes, in the order of the model's columns; by default those of y, sorted.
    columns : list of str, optional
        Names of the columns that the model takes, in its order: columns of a frame are selected by name, columns of an
        array or tensor get these names. By default all columns in their order.
    batch_rows : int, optional
        Rows predicted at once. By default 16,384 on a processor; on a GPU as many as use 4 GiB, and at most half of
        the free memory.

    Notes
    -----
    The module is evaluated in eval mode and without gradients, and its mode is restored afterwards.
    Besides the rows that `settings["n_rows_predicted"]` counts, at most 3,072 rows are predicted once, to measure the
    memory of a batch and to check whether the module modifies its input.

    Examples
    --------
    >>> import numpy as np
    >>> import subgrove as sg
    >>> X = np.random.default_rng(1).normal(size=(1000, 2)).astype(np.float32)
    >>> model = sg.DeviceModel(lambda X: 2 * X[:, 0].relu(), columns=["a", "b"])
    >>> imp = sg.importance(model, X, 2 * X[:, 0], sampler="marginal", n_repeats=5, random_state=1)
    >>> imp.overall.set_index("feature")["estimate"].round(1).to_dict()
    {'a': 4.0, 'b': 0.0}
    """

    def __new__(cls, model: Any = None, *, output: Output = "value", **_options: Any) -> DeviceModel:
        """Return a `DeviceClassifier` if the output is classes."""
        return super().__new__(DeviceModel if isinstance(output, str) and output == "value" else DeviceClassifier)

    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, Any]]:
        return (), {"output": self.output}

    def __init__(
        self,
        model: Any,
        *,
        device: Any = None,
        dtype: Any = None,
        output: Output = "value",
        classes: Sequence[Any] | None = None,
        columns: Sequence[str] | None = None,
        batch_rows: int | None = None,
    ) -> None:
        _check_model(model)
        if not isinstance(output, str) or output not in _OUTPUTS:
            raise ParameterError(f"output must be one of {', '.join(map(repr, _OUTPUTS))}; got {output!r}.")
        if classes is not None and output == "value":
            raise ParameterError("classes requires output='probability' or output='logit'.")
        if batch_rows is not None:
            whole_number("batch_rows", batch_rows, least=1)
        torch = torch_of()
        own = next(iter(model.parameters()), None) if is_module(model) else None
        self.model = model
        self.device = _device(torch, device, own)
        if dtype is None:
            dtype = own.dtype if own is not None and own.dtype.is_floating_point else torch.float32
        elif not (isinstance(dtype, torch.dtype) and dtype.is_floating_point):
            raise ParameterError(f"dtype must be a floating point type such as torch.float32; got {dtype!r}.")
        self.dtype = dtype
        self.output = output
        self.classes = None if classes is None else tuple(classes)
        self.columns = None if columns is None else tuple(map(str, columns))
        self.batch_rows = batch_rows
        self._sizes: dict[int, int] = {}

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Predictions for the rows of a table, on the host.

        Parameters
        ----------
        X : frame, table, 2-d array or tensor
            Rows of numbers.
        """
        return self._predictions(X)

    def _predictions(self, X: Any) -> npt.NDArray[Any]:
        matrix = matrix_of(X, self.columns, self.device, self.dtype)
        with self._inference():
            parts = [self._predict_tensor(rows.clone()) for rows in matrix.split(self._rows_at_once(matrix))]
        return np.asarray(torch_of().cat(parts).cpu().numpy())

    def _host_tables(self, *tables: Any) -> list[Any]:
        """Return tensors and arrays as tables on the host, with the names of `columns`; other tables unchanged."""
        return [table if table is None else host_table(table, self.columns) for table in tables]

    @contextmanager
    def _inference(self) -> Iterator[None]:
        """Evaluate the model without gradients and in eval mode, which is restored afterwards."""
        modules = [one for one in self.model.modules() if one.training] if is_module(self.model) else []
        try:
            if modules:
                self.model.eval()
            with torch_of().inference_mode():
                yield
        finally:
            for one in modules:
                one.training = True

    def _predict_tensor(self, rows: Tensor, about: str = "predict") -> Tensor:
        """Return the predictions of some rows, (n,) or (n, k); probabilities for logits."""
        try:
            given = self.model(rows)
        except Exception as error:
            hint = " Pass a smaller batch_rows to DeviceModel." if "out of memory" in str(error) else ""
            raise ModelError(
                f"The model raised {type(error).__name__} on {len(rows)} rows ({about}): {error}{hint}"
            ) from error
        if not hasattr(given, "is_floating_point") or given.ndim not in (1, 2) or len(given) != len(rows):
            raise ModelError(
                f"The model returned {_shape(given)} for {len(rows)} rows ({about}). It must return a tensor with one "
                f"number, or one row of numbers, for each row."
            )
        if given.ndim == 2 and given.shape[1] == 1:
            given = given[:, 0]
        if self.output == "logit":
            given = given.sigmoid() if given.ndim == 1 else given.softmax(dim=1)
        return given

    def _rows_at_once(self, matrix: Tensor) -> int:
        """Return how many rows are predicted at once: the same for the same model and device."""
        if self.batch_rows is not None:
            return self.batch_rows
        if self.device.type != "cuda":
            return _CPU_ROWS
        columns = int(matrix.shape[1])
        if columns not in self._sizes:
            self._sizes[columns] = _fitting_rows(self._predict_tensor, matrix)
        return self._sizes[columns]


class DeviceClassifier(DeviceModel):
    """A model on tensors that predicts classes; created by `DeviceModel(..., output=...)`."""

    @property
    def classes_(self) -> tuple[Any, ...]:
        """Labels of the classes, if they were given."""
        return () if self.classes is None else self.classes

    def predict_proba(self, X: Any) -> npt.NDArray[Any]:
        """Probabilities of the classes for the rows of a table, on the host.

        Parameters
        ----------
        X : frame, table, 2-d array or tensor
            Rows of numbers.
        """
        predictions = self._predictions(X)
        return predictions if predictions.ndim == 2 else np.column_stack([1.0 - predictions, predictions])

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The likeliest class of each row: its label if `classes` were given, else its number.

        Parameters
        ----------
        X : frame, table, 2-d array or tensor
            Rows of numbers.
        """
        codes = self.predict_proba(X).argmax(axis=1)
        return np.asarray(codes if self.classes is None else np.asarray(self.classes)[codes])


def _shape(given: Any) -> str:
    shape = getattr(given, "shape", None)
    return type(given).__name__ if shape is None else f"a {type(given).__name__} of shape {tuple(shape)}"


def _fitting_rows(predict: Callable[[Tensor], Tensor], matrix: Tensor) -> int:
    """Return the rows of a batch on a GPU from the memory that a few of them need: a power of two."""
    torch = torch_of()
    device, probe = matrix.device, min(_PROBE_ROWS, len(matrix))
    predict(matrix[:probe].clone())  # the first call also sets up what later ones share
    torch.cuda.synchronize(device)
    allocated = torch.cuda.memory_allocated(device)
    torch.cuda.reset_peak_memory_stats(device)
    predict(matrix[:probe].clone())
    torch.cuda.synchronize(device)
    each = max((torch.cuda.max_memory_allocated(device) - allocated) / probe, 1.0)
    free = torch.cuda.mem_get_info(device)[0] * _FREE_SHARE
    rows = max(min(_BATCH_BYTES, free) / each, 1.0)
    return int(2 ** int(np.log2(rows)))


def _check_model(model: Any) -> None:
    if isinstance(model, DeviceModel):
        raise ParameterError("model is a DeviceModel already. Pass the module or function.")
    if isinstance(model, type) or not callable(model):
        name = f"the class {model.__name__}" if isinstance(model, type) else type(model).__name__
        raise ParameterError(
            f"model must be a torch.nn.Module or a function of a tensor; got {name}. "
            f"Models with predict are passed to importance themselves."
        )


def _device(torch: Any, device: Any, own: Tensor) -> Any:
    """Return the device of a model; raise if it cannot be used."""
    if device is None:
        return torch.device("cpu") if own is None else own.device
    try:
        where = torch.device(device)
        torch.zeros(1, dtype=torch.float64, device=where)
    except (RuntimeError, TypeError, AssertionError, ValueError) as error:
        raise ParameterError(
            f"device={device!r} cannot be used here ({error}). It must be a device of this PyTorch that holds float64, "
            f"such as 'cpu' or 'cuda'."
        ) from error
    where = torch.zeros(1, device=where).device  # with its number
    if own is not None and own.device != where:
        raise ParameterError(
            f"device={device!r}, but the parameters of the module are on {str(own.device)!r}. "
            f"Move it with module.to({device!r}), or leave device out."
        )
    return where

"""A model on tensors as a model: `on_device` says where it runs and what its numbers mean."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from subgrove._models.device.host import host_table
from subgrove._models.device.matrix import matrix_of
from subgrove._models.device.torch import Tensor, is_module, torch_of
from subgrove.exceptions import ModelError, ParameterError

__all__ = ["DeviceClassifier", "DeviceModel", "as_model", "on_device"]

Gives = Literal["value", "probability", "logit"]
_GIVES = ("value", "probability", "logit")
_CPU_ROWS = 16_384
_BATCH_BYTES = 2**32  # what a batch may take on a GPU: fewer, larger batches leave the host time to run ahead
_PROBE_ROWS = 1_024
_FREE_SHARE = 0.5


def on_device(
    model: Any,
    *,
    device: Any = None,
    dtype: Any = None,
    gives: Gives = "value",
    classes: Sequence[Any] | None = None,
    columns: Sequence[str] | None = None,
    batch_rows: int | None = None,
) -> DeviceModel:
    """A PyTorch module, or a function on tensors, as a model that `importance` computes where its tensors are.

    A `torch.nn.Module` of numbers can be passed to `importance` and `effect` as it is; this function is for whatever
    has to be said about it.

    Parameters
    ----------
    model : torch.nn.Module or callable
        From a tensor (rows, columns) to a tensor (rows,) or (rows, outputs).
    device : str or torch.device, optional
        Where it is computed, such as "cuda". If not given: where the parameters of the module are; "cpu" for a
        function.
    dtype : torch.dtype, optional
        Of the numbers that the model is given; that of the module's parameters if not given, else float32.
    gives : {"value", "probability", "logit"}, default "value"
        What it gives: numbers; the probabilities of classes; or logits, of which probabilities are made here (by
        softmax, or of a single column by the logistic function). A single column is of the second of two classes.
    classes : list, optional
        Labels of the classes, in the order of the model's columns; those that y has, sorted, if not given.
    columns : list of str, optional
        Names of the columns that the model takes, in its order: those of a frame are taken out by name, those of an
        array or tensor are so called. All columns as they come, if not given.
    batch_rows : int, optional
        Rows that the model is asked for at once. If not given, 16,384 on a processor; on a GPU as many as take
        4 GiB, which is measured.

    Returns
    -------
    DeviceModel
        It has `predict`, and `predict_proba` if it gives probabilities, for tables of any kind that hold numbers.

    Notes
    -----
    `importance` with such a model puts the table on the device once, as numbers of `dtype`. Donors are drawn as row
    numbers; only the changed column is written; losses are computed and added up there, in float64. What comes back
    are sums by feature, subgroup and repeat, so that a result has no `per_row`. To keep numbers of each row, pass the
    function `predict` of what this returns. Losses of your own, scores of all rows (AUC), `budget` and
    `partition_resamples` need each prediction: they are computed in the ordinary way, with
    predictions from the device. So are data in partitions.
    Besides the rows that `settings["n_rows_predicted"]` counts, at most 3,072 rows are predicted once, to see
    what a batch takes and whether the module writes to its input.

    Examples
    --------
    >>> import numpy as np
    >>> import subgrove as sg
    >>> X = np.random.default_rng(1).normal(size=(1000, 2)).astype(np.float32)
    >>> model = sg.on_device(lambda X: 2 * X[:, 0].relu(), columns=["a", "b"])
    >>> imp = sg.importance(model, X, 2 * X[:, 0], sampler="marginal", n_repeats=5, random_state=1)
    >>> imp.overall.set_index("feature")["estimate"].round(1).to_dict()
    {'a': 4.0, 'b': 0.0}
    """
    if isinstance(model, DeviceModel):
        raise ParameterError("model is on a device already: it came from on_device. Pass the module or function.")
    if isinstance(model, type) or not callable(model):
        raise ParameterError(
            f"model must be a torch.nn.Module or a function of a tensor; got {_named(model)}. "
            f"Models with predict go to importance as they are."
        )
    if gives not in _GIVES:
        raise ParameterError(f"gives must be one of {', '.join(map(repr, _GIVES))}; got {gives!r}.")
    if classes is not None and gives == "value":
        raise ParameterError("classes belong to gives='probability' or 'logit'; with gives='value' there are none.")
    if batch_rows is not None and (isinstance(batch_rows, bool) or not isinstance(batch_rows, int) or batch_rows < 1):
        raise ParameterError(f"batch_rows must be a whole number above 0, or None; got {batch_rows!r}.")
    torch = torch_of()
    own = next(iter(model.parameters()), None) if is_module(model) else None
    where = _device(torch, device, own)
    if dtype is None:
        dtype = own.dtype if own is not None and own.dtype.is_floating_point else torch.float32
    elif not (isinstance(dtype, torch.dtype) and dtype.is_floating_point):
        raise ParameterError(f"dtype must be a floating point type such as torch.float32; got {dtype!r}.")
    names = None if columns is None else tuple(map(str, columns))
    kind = DeviceModel if gives == "value" else DeviceClassifier
    return kind(model, where, dtype, gives, None if classes is None else tuple(classes), names, batch_rows)


def as_model(model: Any) -> Any:
    """A `torch.nn.Module` as a model; anything else, and a module that has `predict`, as it is."""
    plain = is_module(model) and not (hasattr(model, "predict") or hasattr(model, "predict_proba"))
    return on_device(model) if plain else model


def _named(model: Any) -> str:
    return f"the class {model.__name__}" if isinstance(model, type) else type(model).__name__


def _device(torch: Any, device: Any, own: Tensor) -> Any:
    """Where a model is computed; refused if it is not there."""
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


@dataclass(frozen=True, eq=False)
class DeviceModel:
    """A model on tensors; made by `on_device`.

    Attributes
    ----------
    model : torch.nn.Module or callable
        The user's.
    device : torch.device
        Where it is computed.
    dtype : torch.dtype
        Of the numbers that it is given.
    gives : {"value", "probability", "logit"}
        What it gives.
    classes : tuple or None
        Labels of the classes, if they were given.
    columns : tuple of str or None
        The columns that it takes, if they were given.
    batch_rows : int or None
        Rows that it is asked for at once, if that was given.

    Examples
    --------
    >>> import numpy as np
    >>> import subgrove as sg
    >>> model = sg.on_device(lambda X: X[:, 0] - X[:, 1])
    >>> isinstance(model, sg.DeviceModel), model.predict(np.array([[3.0, 1.0], [1.0, 1.0]])).tolist()
    (True, [2.0, 0.0])
    """

    model: Any
    device: Any
    dtype: Any
    gives: Gives = "value"
    classes: tuple[Any, ...] | None = None
    columns: tuple[str, ...] | None = None
    batch_rows: int | None = None
    _sizes: dict[int, int] = field(default_factory=dict, repr=False)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Predictions for the rows of a table, on the host.

        Parameters
        ----------
        X : frame, table, 2-d array or tensor
            Rows of numbers.
        """
        return self._answers(X)

    def _answers(self, X: Any) -> npt.NDArray[Any]:
        matrix = matrix_of(X, self.columns, self.device, self.dtype)
        with self._asked():
            parts = [self._answer(rows.clone()) for rows in matrix.split(self._rows_at_once(matrix))]
        found: npt.NDArray[Any] = torch_of().cat(parts).cpu().numpy()
        return found

    def _host_tables(self, *tables: Any) -> list[Any]:
        """Tables of tensors and arrays on the host, with the names of `columns`; other tables as they are."""
        return [table if table is None else host_table(table, self.columns) for table in tables]

    @contextmanager
    def _asked(self) -> Iterator[None]:
        """A context in which the model is asked: no gradients, and a module in eval mode, put back afterwards."""
        modules = [one for one in self.model.modules() if one.training] if is_module(self.model) else []
        try:
            if modules:
                self.model.eval()
            with torch_of().inference_mode():
                yield
        finally:
            for one in modules:
                one.training = True

    def _answer(self, rows: Tensor, about: str = "predict") -> Tensor:
        """What the model gives for some rows: (n,) or (n, k); of logits, the probabilities."""
        try:
            given = self.model(rows)
        except Exception as error:
            hint = " Give on_device a smaller batch_rows." if "out of memory" in str(error) else ""
            raise ModelError(
                f"The model raised {type(error).__name__} on {len(rows)} rows ({about}): {error}{hint}"
            ) from error
        if not hasattr(given, "is_floating_point") or given.ndim not in (1, 2) or len(given) != len(rows):
            raise ModelError(
                f"The model gave {_shape(given)} for {len(rows)} rows ({about}). It must give a tensor with one "
                f"number, or one line of numbers, for each row."
            )
        if given.ndim == 2 and given.shape[1] == 1:
            given = given[:, 0]
        if self.gives == "logit":
            given = given.sigmoid() if given.ndim == 1 else given.softmax(dim=1)
        return given

    def _rows_at_once(self, matrix: Tensor) -> int:
        """How many rows are asked for at once: always the same for the same model and device."""
        if self.batch_rows is not None:
            return self.batch_rows
        if self.device.type != "cuda":
            return _CPU_ROWS
        columns = int(matrix.shape[1])
        if columns not in self._sizes:
            self._sizes[columns] = _fitting_rows(self._answer, matrix)
        return self._sizes[columns]


class DeviceClassifier(DeviceModel):
    """A model on tensors that tells classes; made by `on_device(..., gives=...)`."""

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
        given = self._answers(X)
        return given if given.ndim == 2 else np.column_stack([1.0 - given, given])

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The likeliest class of each row: its label if `classes` were given, else its number.

        Parameters
        ----------
        X : frame, table, 2-d array or tensor
            Rows of numbers.
        """
        chosen = self.predict_proba(X).argmax(axis=1)
        labels = np.arange(int(chosen.max(initial=0)) + 1) if self.classes is None else np.asarray(self.classes)
        found: npt.NDArray[Any] = labels.take(chosen)
        return found


def _shape(given: Any) -> str:
    shape = getattr(given, "shape", None)
    return type(given).__name__ if shape is None else f"a {type(given).__name__} of shape {tuple(shape)}"


def _fitting_rows(answer: Callable[[Tensor], Tensor], matrix: Tensor) -> int:
    """Rows of a batch on a GPU, by the memory that a few of them take: a power of two."""
    torch = torch_of()
    device, probe = matrix.device, min(_PROBE_ROWS, len(matrix))
    answer(matrix[:probe].clone())  # the first call also sets up what later ones share
    torch.cuda.synchronize(device)
    before = torch.cuda.memory_allocated(device)
    torch.cuda.reset_peak_memory_stats(device)
    answer(matrix[:probe].clone())
    torch.cuda.synchronize(device)
    each = max((torch.cuda.max_memory_allocated(device) - before) / probe, 1.0)
    free = torch.cuda.mem_get_info(device)[0] * _FREE_SHARE
    rows = max(min(_BATCH_BYTES, free) / each, 1.0)
    return int(2 ** int(np.log2(rows)))

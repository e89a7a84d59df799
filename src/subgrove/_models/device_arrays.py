"""Arithmetic on a device: array operations of the accumulator, and losses.

Sums have the same bits each time, in whatever order the device works. Atomic additions into subgroups have no fixed
order, so rows are sorted by subgroup and each subgroup is padded with zeros to whole blocks; blocks are summed one by
one, then those of a subgroup.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove import losses
from subgrove._core.kinds import Floats, Rows
from subgrove._data.replace_columns import CyclicShift
from subgrove._models.device_table import DeviceMatrix, Sender, Tensor
from subgrove.losses import Loss
from subgrove.losses.named import PinballLoss, TweedieDeviance

_BLOCK = 1_024
POWERS = (2, 3, 4)


class DeviceGroupSums:
    """Sums of values (..., n) by subgroup; values may have a column of zeros at the end, else one is added.

    Parameters
    ----------
    code : int array
        Subgroup of each row.
    n_groups : int
        Number of subgroups.
    send : Sender
        Sends arrays to the device.
    """

    def __init__(self, code: Rows, n_groups: int, send: Sender) -> None:
        self.code, self.n_groups, self.n_rows = code, n_groups, len(code)
        self.send, self.torch = send, send.torch
        self.order: Tensor | None = None  # rows by subgroup, once known
        self._places: Tensor | None = None
        self._slots: dict[bool, Tensor] = {}

    def __call__(self, values: Tensor) -> Tensor:
        """Return the sums of values in the order of the rows."""
        return self._sums(values, ordered=False)

    def ordered(self, values: Tensor) -> Tensor:
        """Return the sums of values in the order of the subgroups."""
        return self._sums(values, ordered=True)

    def _sums(self, values: Tensor, *, ordered: bool) -> Tensor:
        if values.shape[-1] == self.n_rows:
            values = self.torch.nn.functional.pad(values, (0, 1))
        if ordered not in self._slots:
            self._slots[ordered] = self._padded_slots(ordered)
        blocks = values.index_select(-1, self._slots[ordered]).unflatten(-1, (-1, _BLOCK)).sum(dim=-1)
        return blocks @ self.of_blocks

    def _padded_slots(self, ordered: bool) -> Tensor:
        """Return the row in each slot of the blocks; slots that pad a subgroup have the column of zeros."""
        if self._places is None:
            self._lay_out()
        if ordered:
            order = self.torch.arange(self.n_rows, device=self.send.device)
        elif self.order is None:
            order = self.send(self.code.astype(np.int32)).sort(stable=True).indices
        else:
            order = self.order
        slots = self.torch.full((self.n_slots,), self.n_rows, dtype=order.dtype, device=self.send.device)
        slots[self._places] = order
        return slots

    def _lay_out(self) -> None:
        counts = np.bincount(self.code, minlength=self.n_groups)
        blocks = -(-counts // _BLOCK)
        moved = (np.cumsum(blocks) - blocks) * _BLOCK - (np.cumsum(counts) - counts)
        self.n_slots = int(blocks.sum()) * _BLOCK
        places = self.torch.arange(self.n_rows, device=self.send.device)
        places += self.torch.repeat_interleave(
            self.send(moved), self.send(counts.astype(np.int64)), output_size=self.n_rows
        )
        self._places = places
        group = self.send(np.repeat(np.arange(self.n_groups), blocks))
        every = self.torch.arange(self.n_groups, device=self.send.device)
        self.of_blocks = (group[:, None] == every).to(self.torch.float64)


class TensorArrays:
    """The methods of `NumpyArrays` for the rows of a table on a device.

    Parameters
    ----------
    n_rows : int
        Number of rows.
    weights : float array (n,) or None
        Weights of the rows.
    matrix : DeviceMatrix
        The table.
    """

    def __init__(self, n_rows: int, weights: Floats | None, matrix: DeviceMatrix) -> None:
        self.n_rows, self.host_weights, self.matrix, self.send = n_rows, weights, matrix, matrix.send
        self.xp = self.send.torch
        self.weights = None if weights is None else self.send(np.append(np.asarray(weights), 0.0))

    def zeros(self, *shape: int) -> Tensor:
        """Return zeros in float64."""
        return self.xp.zeros(*shape, dtype=self.xp.float64, device=self.send.device)

    def repeats(self, n_losses: int, n_repeats: int, n_groups: int) -> Tensor:
        """Return zeros for sums of each loss, repeat and subgroup; repeats are the first axis in memory."""
        return self.zeros(n_repeats, n_losses, n_groups).transpose(0, 1)

    def array(self, values: npt.NDArray[Any]) -> Tensor:
        """Return an array of the host on the device."""
        return self.send(values)

    def index(self, rows: Any) -> Tensor:
        """Return row numbers on the device."""
        return self.send.rows(rows).long() if isinstance(rows, np.ndarray) else rows

    def group_sums(self, code: Rows, n_groups: int) -> DeviceGroupSums:
        """Return a function that sums values of all rows by subgroup."""
        return DeviceGroupSums(code, n_groups, self.send)

    def subset_sums(self, by_group: DeviceGroupSums, rows: Any) -> Any:
        """Return a function that sums values of some rows by subgroup."""
        index = self.index(rows)

        def sums(values: Tensor) -> Tensor:
            padded = self.zeros(*values.shape[:-1], self.n_rows + 1)
            padded[..., index] = values
            return by_group(padded)

        return sums

    def scatter(self, index: Tensor, values: Tensor, n: int) -> Tensor:
        """Return sums (L, n) of values (L, m) by index, in a fixed order."""
        if index.device.type == "cpu":
            return self.xp.stack([self.xp.bincount(index, weights=line, minlength=n) for line in values])
        sums = self.zeros(len(values), n)
        for line, own in zip(sums, values, strict=True):
            line.index_put_((index,), own, accumulate=True)  # which sorts on a GPU, and so has a fixed order
        return sums

    def take(self, values: Tensor, index: Any) -> Tensor:
        """Return values at an index of the last axis."""
        return values.index_select(-1, index)

    to_rows = take

    def same_group(self, code: Tensor, donors: Tensor, rows: Any) -> Tensor:
        """Return whether all donors are in the subgroup of their row, as a tensor: nothing waits for it."""
        return (code[donors] == (code if rows is None else code[self.index(rows)])).all()

    def estimates(self, sums: Tensor, sizes: Tensor) -> Tensor:
        """Return the mean increase of each loss and subgroup."""
        return sums.mean(dim=1) / sizes

    def squares_by_group(self, by_group: DeviceGroupSums, squares: Tensor, rows: Any) -> Tensor:
        """Return squares of rows summed by subgroup."""
        return by_group(squares) if rows is None else self.subset_sums(by_group, rows)(squares)

    def ordered_by(self, shift: CyclicShift, values: Tensor) -> tuple[Any, Tensor]:
        """Return a cyclic shift on the device, and values in its order."""
        own = self.matrix.on_device(shift)
        return own, values.index_select(-1, own.order)

    def returned(self, own: Any, shift: CyclicShift, values: Tensor) -> Tensor:
        """Return values of receivers at the positions of their donors, both in the order of the shift."""
        return own.returned(shift, values)


def central_moments(values: Tensor, by_group: Any, code: Tensor, sizes: Tensor, weights: Tensor | None) -> Tensor:
    """Return means (L, K) of values (L, n) by subgroup, and sums of powers of the deviations: (L, 1 + powers, K)."""
    torch = by_group.torch
    means = by_group(values if weights is None else values * weights) / sizes.clamp(min=1e-300)
    centred = values - means.index_select(-1, code)
    moments, power = [means], centred
    for _ in POWERS:
        power = power * centred
        moments.append(by_group(power if weights is None else power * weights))
    return torch.stack(moments, dim=-2)


TensorLoss = Callable[[Tensor, Tensor], Tensor]
_ON_TENSORS = ("squared_error", "absolute_error", "poisson", "gamma", "log_loss", "brier")


def on_tensors(loss: Loss) -> TensorLoss | None:
    """The loss on tensors of float64, or None if it is not one of these."""
    if loss.function is losses.get("zero_one").function:
        return _zero_one
    named = any(loss.function is losses.get(name).function for name in _ON_TENSORS)
    return loss.function if named or isinstance(loss.function, PinballLoss | TweedieDeviance) else None


def _zero_one(y: Tensor, probability: Tensor) -> Tensor:
    return (probability.argmax(dim=1) != y).to(probability.dtype)

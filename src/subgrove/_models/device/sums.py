"""Sums by subgroup on a device: the same bits each time, whatever else it works on.

Adding into subgroups by atomic operations has no fixed order. Here rows are put in the order of their subgroups, each
subgroup filled up with zeros to whole chunks; chunks are added up one by one, and then those of a subgroup.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from subgrove._core.kinds import Rows
from subgrove._models.device.matrix import Sender
from subgrove._models.device.torch import Tensor, torch_of

_CHUNK = 1_024
POWERS = (2, 3, 4)


class DeviceGroupSums:
    """Sums of values by subgroup.

    Parameters
    ----------
    counts : int array
        Rows of each subgroup.
    order : int tensor
        Rows, subgroup after subgroup.
    send : Sender
        How arrays come to the device.
    """

    def __init__(self, counts: Rows, order: Tensor, send: Sender) -> None:
        self.torch = send.torch
        n = int(counts.sum())
        chunks = -(-counts // _CHUNK)
        ends = np.cumsum(counts)
        moved = (np.cumsum(chunks) - chunks) * _CHUNK - (ends - counts)
        # The row n is one of zeros, which whoever adds up puts at the end.
        self.slots = self.torch.full((int(chunks.sum()) * _CHUNK,), n, dtype=order.dtype, device=send.device)
        places = self.torch.arange(n, device=send.device)
        places += self.torch.repeat_interleave(send(moved), send(counts.astype(np.int64)), output_size=n)
        self.slots[places] = order
        group = send(np.repeat(np.arange(len(counts)), chunks))
        every = self.torch.arange(len(counts), device=send.device)
        self.of_chunks = (group[:, None] == every).to(self.torch.float64)

    def __call__(self, values: Tensor) -> Tensor:
        """Sums (..., subgroups) of values (..., n + 1), of which the last are zeros."""
        chunks = values.index_select(-1, self.slots).unflatten(-1, (-1, _CHUNK)).sum(dim=-1)
        return chunks @ self.of_chunks


def central_moments(
    values: Tensor, sums: Callable[[Tensor], Tensor], code: Tensor, sizes: Tensor, weights: Tensor | None
) -> Any:
    """Means of values by subgroup, and sums of powers of what is left of them: (..., 1 + number of powers, subgroups).

    `values`, `code` and `weights` have one entry more than there are rows; of `weights`, or else of what is summed,
    the last is zero.
    """
    torch = torch_of()
    counted = values if weights is None else values * weights
    means = sums(counted) / sizes.clamp(min=1e-300)
    centred = values - means.index_select(-1, code)
    found, power = [means], centred
    for _ in POWERS:
        power = power * centred
        counted = power.clone() if weights is None else power * weights
        counted[..., -1] = 0
        found.append(sums(counted))
    return torch.stack(found, dim=-2)


def scattered(rows: Tensor, values: Tensor, n: int, torch: Any) -> Tensor:
    """Sums (..., n) of values (..., m) by the row numbers that they belong to, in a fixed order."""
    if rows.device.type == "cpu":
        lines = [torch.bincount(rows, weights=line, minlength=n) for line in values.reshape(-1, values.shape[-1])]
        return torch.stack(lines).reshape(*values.shape[:-1], n)
    found = torch.zeros(*values.shape[:-1], n, dtype=values.dtype, device=values.device)
    for line, own in zip(found.reshape(-1, n), values.reshape(-1, values.shape[-1]), strict=True):
        line.index_put_((rows.long(),), own, accumulate=True)  # which sorts on a GPU, and so has a fixed order
    return found

"""Adding up the losses of one feature on a device: what `tally.py` does, of which only sums come back.

Of n rows and M repeats these come back, for each loss and subgroup: the sum of increases in each repeat, the squares of
single increases, the squares of a row's mean, and the moments of `influence` up to the fourth. Standard errors and
intervals are made of them as they are made of rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from subgrove._core.kinds import Floats, Rows
from subgrove._data.replace_columns import Donors
from subgrove._models.device.matrix import DeviceMatrix
from subgrove._models.device.sums import DeviceGroupSums, central_moments, scattered
from subgrove._models.device.torch import Tensor
from subgrove.samplers.redraw import ExpectationTerm, ResampledFeature


@dataclass(frozen=True, eq=False)
class DeviceContext:
    """What the tallies of all features have in common, on the device.

    Attributes
    ----------
    matrix : Matrix
        The table.
    weights : float tensor (n + 1,), or None
        How often each row counts; the last is 0.
    counted : float array (n,), or None
        The same on the host.
    n_losses, n_rows : int
        Numbers of losses and rows.
    """

    matrix: DeviceMatrix
    weights: Tensor | None
    counted: Floats | None
    n_losses: int
    n_rows: int

    def zeros(self, *shape: int) -> Tensor:
        """Zeros in float64."""
        torch = self.matrix.send.torch
        return torch.zeros(*shape, dtype=torch.float64, device=self.matrix.send.device)


class DeviceAccumulator:
    """Sums of one feature.

    Parameters
    ----------
    ground : Ground
        What all features have in common.
    redraw : Redraw
        How the feature is redrawn.
    n_repeats : int
        Number of redraws.
    """

    def __init__(self, ground: DeviceContext, redraw: ResampledFeature, n_repeats: int) -> None:
        self.ground, self.redraw, self.n_repeats = ground, redraw, n_repeats
        self.send = ground.matrix.send
        self.torch = self.send.torch
        n, groups = ground.n_rows, len(redraw.groups)
        host = redraw.groups.code.astype(np.int32)
        self.counts = np.bincount(host, minlength=groups)
        weighted = np.bincount(host, weights=ground.counted, minlength=groups)
        self.sizes = weighted.astype(np.float64)
        self.code = self.send(np.append(host, np.int32(0)))
        self.groups: DeviceGroupSums | None = None
        self.total = ground.zeros(ground.n_losses, n + 1)
        self.given: Tensor | None = None  # in the order of the circles, if there are any
        self.cyclic_shift: Any = None
        self.sums = ground.zeros(n_repeats, ground.n_losses, groups)
        self.squares = ground.zeros(ground.n_losses, groups)
        self.donor_squares = ground.zeros(ground.n_losses, groups)  # with weights alone
        self.among: Tensor | None = None  # whether donors are of the same subgroup
        exact = redraw.exact
        self.exact = None if exact is None else self.send(np.append(exact.rows, False).astype(np.float64))
        self.cell_sums = ground.zeros(ground.n_losses, exact.n_cells if exact is not None else 0)

    def by_group(self, values: Tensor) -> Tensor:
        """Sums by subgroup of values (..., n + 1)."""
        if self.groups is None:
            order = self.code[:-1].sort(stable=True).indices if self.cyclic_shift is None else self.cyclic_shift.order
            self.groups = DeviceGroupSums(self.counts, order, self.send)
        return self.groups(values)

    def add(self, repeat: int, column: Any, increase: Tensor, rows: Rows | None) -> None:
        """Count the increases (losses, n + 1) of one repeat; those of rows that are not drawn are 0."""
        self.total += increase
        weights = self.ground.weights
        counted = increase if weights is None else increase * weights
        if isinstance(column, Donors) and column.cyclic_shift is not None and rows is None and weights is None:
            self._add_turned(column.cyclic_shift, increase)
        elif isinstance(column, Donors) and not (column.train or column.representatives):
            self._add_donors(column, counted, rows)
        self.sums[repeat] = self.by_group(counted)
        self.squares += self.by_group(counted * increase)

    def _add_turned(self, cyclic_shift: Any, increase: Tensor) -> None:
        self.cyclic_shift = self.ground.matrix.turned_by(cyclic_shift)
        returned = self.cyclic_shift.returned(cyclic_shift, increase.index_select(-1, self.cyclic_shift.order))
        self.given = returned if self.given is None else self.given.add_(returned)

    def _add_donors(self, column: Donors, counted: Tensor, rows: Rows | None) -> None:
        donors = self.send.rows(column.rows)
        here = self.send.rows(np.arange(self.ground.n_rows) if rows is None else rows)
        if self.given is None:
            self.given = self.ground.zeros(self.ground.n_losses, self.ground.n_rows)
            self.among = (self.code.index_select(0, donors) == self.code.index_select(0, here)).all()
        counted = counted.index_select(-1, here)
        self.given += scattered(donors, counted, self.ground.n_rows, self.torch)
        if self.ground.weights is not None:
            squares = self.ground.zeros(self.ground.n_losses, self.ground.n_rows + 1)
            squares[:, here.long()] = counted.square() / self.ground.weights.index_select(0, donors)
            self.donor_squares += self.by_group(squares)

    def add_exact(self, step: ExpectationTerm, increase: Tensor, rows: Tensor) -> None:
        """Count the increases (losses, number of rows) of one value of an exact expectation."""
        self.total[:, rows.long()] += increase * self.send(step.weights)
        if step.cells is None:
            return
        if self.given is None:
            self.given = self.ground.zeros(self.ground.n_losses, self.ground.n_rows)
        weights = self.ground.weights
        counted = increase if weights is None else increase * weights.index_select(0, rows)
        self.cell_sums += scattered(self.send.rows(step.cells), counted, self.cell_sums.shape[1], self.torch)

    def finished(self) -> dict[str, Tensor]:
        """What comes back to the host: small tensors, by name."""
        rows, m = self.total, self.n_repeats
        rows /= m if self.exact is None else self.exact + (1 - self.exact) * m
        given = None if self.given is None else self._given_means()
        counts = self.ground.weights
        if self.exact is not None:
            counts = 1 - self.exact if counts is None else counts * (1 - self.exact)
            exact_rows = rows * self.exact
            self.sums += self.by_group(exact_rows if self.ground.weights is None else exact_rows * self.ground.weights)
        squares = [self._squares_of(rows, counts)]
        if given is not None:
            squares.append(self._squares_of(given, counts) if self.ground.weights is None else self.donor_squares)
        sizes = self.send(self.sizes)
        influence = rows if given is None else self._influence(rows, given, sizes)
        among = self.among if self.among is not None else self.torch.ones((), device=self.send.device)
        return {
            "sums": self.sums.transpose(0, 1),
            "squares": self.squares,
            "squares_of_means": self.torch.stack(squares),
            "moments": central_moments(influence, self.by_group, self.code, sizes, self.ground.weights),
            "among": among.to(self.torch.float64),
        }

    def _squares_of(self, means: Tensor, counts: Tensor | None) -> Tensor:
        square = means.square()
        return self.by_group(square if counts is None else square * counts)

    def _given_means(self) -> Tensor:
        """Of each row the mean increase of those it gave its value to; 0 at the end."""
        assert self.given is not None
        given = self.given if self.cyclic_shift is None else self.given.index_select(-1, self.cyclic_shift.place)
        given = self.torch.nn.functional.pad(given / self.n_repeats, (0, 1))
        weights = self.ground.weights
        if weights is not None:
            given[:, :-1] /= weights[:-1]
        exact = self.redraw.exact
        if exact is None or exact.cell is None:
            return given
        own: Any = 1.0 if self.ground.counted is None else np.minimum(self.ground.counted[exact.rows], 1.0)
        groups = self.redraw.groups.code[exact.rows]
        others = np.maximum(self.sizes[groups] - own, np.finfo(np.float64).tiny)
        here = self.send(np.flatnonzero(exact.rows))
        cells = self.send.rows(exact.cell[exact.rows])
        given[:, here] = self.cell_sums.index_select(-1, cells) / self.send(others)
        return given

    def _influence(self, rows: Tensor, given: Tensor, sizes: Tensor) -> Tensor:
        """Of each row the sum of its two parts; see `Tally._influence`."""
        torch = self.torch
        factor = torch.where(sizes > 2, (sizes - 1) / (sizes - 2).clamp(min=1.0), 1.0)
        if self.among is not None:
            factor = torch.where(self.among, factor, 1.0)
        some = sizes.clamp(min=1e-300)
        estimates = self.sums.mean(dim=0) / some
        means = estimates
        if self.cyclic_shift is None:
            weights = self.ground.weights
            means = self.by_group(given if weights is None else given * weights) / some
        moved = estimates - factor * (means + estimates)
        found = (given + rows) * factor.index_select(0, self.code) + moved.index_select(-1, self.code)
        found[:, -1] = 0
        return found

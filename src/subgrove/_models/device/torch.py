"""PyTorch, which is not needed by anything else: imported here, and only when a tensor is."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import numpy.typing as npt

from subgrove.exceptions import ParameterError

Tensor = Any  # torch.Tensor; PyTorch may not be installed


def torch_of() -> Any:
    """The module torch; an error with the install line if it is missing."""
    try:
        import torch
    except ImportError as error:
        raise ParameterError(
            "Models on a device are computed by PyTorch, which is not installed. "
            "Install it with: pip install 'subgrove[torch]'"
        ) from error
    return torch


def tensor_of(array: npt.NDArray[Any]) -> Tensor:
    """An array as a tensor on the host, without a copy if rows lie one after the other and may be written to."""
    plain = np.ascontiguousarray(array)
    return torch_of().from_numpy(plain if plain.flags.writeable else plain.copy())


def is_tensor(value: Any) -> bool:
    """Whether something is a tensor; torch is not imported to find out."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def is_module(value: Any) -> bool:
    """Whether something is a `torch.nn.Module`; torch is not imported to find out."""
    torch = sys.modules.get("torch")
    nn = getattr(torch, "nn", None)
    return nn is not None and isinstance(value, nn.Module)

"""Models on tensors: what PyTorch computes, on a processor or a GPU. Nothing here is imported before it is needed."""

from subgrove._models.device.host import on_host
from subgrove._models.device.model import DeviceClassifier, DeviceModel, as_model

__all__ = ["DeviceClassifier", "DeviceModel", "as_model", "on_host"]

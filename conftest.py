"""Examples that need an extra which is not installed are not collected."""

from importlib.util import find_spec

collect_ignore = [] if find_spec("torch") else ["src/subgrove/_device/model.py"]

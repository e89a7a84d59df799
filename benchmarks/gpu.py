"""Cost of `importance` of a PyTorch model beyond its forward passes, with the table on the device.

A multilayer perceptron of four hidden layers of 512 units, 2,000,000 rows x 50 columns, all 50 features, 5 repeats,
subgroups found beforehand on other rows. The forward passes alone are over the same number of rows, which
are already on the device, in batches of the best of several sizes, without gradients; their outputs are discarded::

    python benchmarks/gpu.py                             # on the GPU, with and without TF32: some minutes
    python benchmarks/gpu.py --device cpu --rows 20000   # anywhere
    python benchmarks/gpu.py --quick                     # small, as a test

`importance` is timed whole, from a float32 array on the host and from a tensor on the device. The last columns show how
far its numbers are from those of the ordinary path on the processor, on the first 20,000 rows: the largest difference
of an estimate, and of a standard error, relative to it.
"""

from __future__ import annotations

import argparse
import copy
import cProfile
import pstats
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

import subgrove as sg

SIZES = (8_192, 16_384, 32_768, 65_536, 131_072, 262_144, 524_288)
TRAIN_ROWS = 20_000


@dataclass(frozen=True)
class Setting:
    """Settings of a measurement."""

    device: str
    rows: int
    columns: int
    width: int
    layers: int
    repeats: int
    agree_rows: int
    passes: int
    profile: bool


def main() -> None:
    import torch

    setting, precisions = _read(torch)
    device = torch.device(setting.device)
    X, train = _data(setting)
    net = _net(torch, setting).to(device)
    on_device = torch.from_numpy(X).to(device)
    y = _target(torch, net, on_device)
    start = time.perf_counter()
    groups = sg.find_subgroups(train, max_depth=2)
    print(f"{_named(torch, device)}, PyTorch {torch.__version__}, NumPy {np.__version__}")
    print(
        f"{setting.rows:,} rows x {setting.columns} columns, {setting.layers} hidden layers of {setting.width},",
        end=" ",
    )
    print(f"{setting.repeats} repeats; subgroups found on {len(train):,} rows in {time.perf_counter() - start:.1f} s\n")
    print(
        "| precision | bare batch | bare s | X on | importance s | ratio | batch | peak GiB | estimates | std. errors |"
    )
    print("| --- | ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: |", flush=True)
    for precision in precisions:
        torch.set_float32_matmul_precision(precision)
        batch = _best_batch(torch, net, on_device)
        away = _away(torch, net, X, y, groups, setting)
        for name, table in (("host", X), ("device", on_device)):
            bare = _bare(torch, net, on_device, batch, setting)
            peak = _peak(torch, device)
            begin = time.perf_counter()
            with cProfile.Profile() if setting.profile else nullcontext() as profile:
                imp = _importance(net, table, y, groups, setting.repeats)
            seconds = time.perf_counter() - begin
            if profile is not None:
                pstats.Stats(profile).sort_stats("cumulative").print_stats(45)
            expected = setting.rows * (1 + setting.columns * setting.repeats)
            assert imp.settings["n_rows_predicted"] == expected, imp.settings
            print(
                f"| {'TF32' if precision == 'high' else 'float32'} | {batch:,} | {bare:.2f} | {name} | {seconds:.2f} "
                f"| {seconds / bare:.3f} | {imp.settings['batch_rows']:,} | {peak():.2f} | {away[0]:.1e} "
                f"| {away[1]:.1e} |",
                flush=True,
            )


def _read(torch: Any) -> tuple[Setting, tuple[str, ...]]:
    parser = argparse.ArgumentParser(description="Importance of a PyTorch model against its bare forward passes.")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--passes", type=int, help="bare passes that are timed; all of them if not given")
    parser.add_argument("--precision", choices=("highest", "high"), help="one of both: float32 or TF32")
    parser.add_argument("--quick", action="store_true", help="2,000 rows x 6 columns, layers of 32")
    parser.add_argument("--profile", action="store_true", help="profile the host's time, which takes longer")
    parser.add_argument("--syncs", action="store_true", help="warn whenever the host waits for the GPU")
    given = parser.parse_args()
    if given.syncs:
        torch.cuda.set_sync_debug_mode("warn")
    if given.quick:
        given.rows, given.columns, given.width = 2_000, 6, 32
    passes = given.passes or 1 + given.columns * given.repeats
    setting = Setting(
        given.device,
        given.rows,
        given.columns,
        given.width,
        given.layers,
        given.repeats,
        min(given.rows, 20_000),
        passes,
        given.profile,
    )
    tf32 = ("highest", "high") if given.device.startswith("cuda") else ("highest",)
    return setting, (given.precision,) if given.precision else tf32


def _data(setting: Setting) -> tuple[Any, Any]:
    """Columns that depend on each other: rows to explain, and rows to find subgroups on."""
    rng = np.random.default_rng(1)
    n, p = setting.rows + TRAIN_ROWS, setting.columns
    hidden = rng.standard_normal((n, 5), dtype=np.float32)
    X = hidden @ rng.standard_normal((5, p), dtype=np.float32)
    X += rng.standard_normal((n, p), dtype=np.float32)
    X /= X.std(axis=0)
    return X[: setting.rows], X[setting.rows :].astype(np.float64)


def _net(torch: Any, setting: Setting) -> Any:
    torch.manual_seed(1)
    widths = [setting.columns, *[setting.width] * setting.layers]
    layers: list[Any] = []
    for one, two in pairwise(widths):
        layers += [torch.nn.Linear(one, two), torch.nn.ReLU()]
        torch.nn.init.kaiming_normal_(layers[-2].weight)
    return torch.nn.Sequential(*layers, torch.nn.Linear(widths[-1], 1))


def _target(torch: Any, net: Any, X: Any) -> Any:
    """Return predictions of the model plus noise, so that the model is accurate."""
    with torch.inference_mode():
        labels = torch.cat([net(rows)[:, 0] for rows in X.split(65_536)]).double().cpu().numpy()
    return labels + 0.1 * labels.std() * np.random.default_rng(2).normal(size=len(labels))


def _importance(model: Any, X: Any, y: Any, groups: Any, repeats: int) -> Any:
    return sg.importance(
        model,
        X,
        y,
        sampler=groups,
        n_repeats=repeats,
        random_state=1,
        check_fidelity=False,
        loss="squared_error",
    )


def _best_batch(torch: Any, net: Any, X: Any) -> int:
    """The batch size with the shortest pass; a first one is not counted."""
    sizes = [size for size in SIZES if size <= len(X)] or [len(X)]
    times = {}
    for size in sizes:
        for _ in range(2):
            times[size] = _seconds(torch, X.device, partial(_pass, torch, net, X, size))
    return min(times, key=lambda size: times[size])


def _bare(torch: Any, net: Any, X: Any, batch: int, setting: Setting) -> float:
    def all_passes() -> None:
        for _ in range(setting.passes):
            _pass(torch, net, X, batch)

    wanted = 1 + setting.columns * setting.repeats
    return _seconds(torch, X.device, all_passes) * wanted / setting.passes


def _pass(torch: Any, net: Any, X: Any, batch: int) -> None:
    with torch.inference_mode():
        for rows in X.split(batch):
            net(rows)


def _seconds(torch: Any, device: Any, function: Callable[[], None]) -> float:
    wait = torch.cuda.synchronize if device.type == "cuda" else lambda: None
    wait()
    start = time.perf_counter()
    function()
    wait()
    return time.perf_counter() - start


def _peak(torch: Any, device: Any) -> Callable[[], float]:
    """Peak memory on the device from now on, in GiB, the table of the bare passes included; NaN on a processor."""
    if device.type != "cuda":
        return lambda: float("nan")
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats(device)
    return lambda: float(torch.cuda.max_memory_allocated(device) / 2**30)


def _away(torch: Any, net: Any, X: Any, y: Any, groups: Any, setting: Setting) -> tuple[float, float]:
    """Return the differences of estimates and standard errors to those computed on the processor."""
    n = setting.agree_rows
    here = _importance(net, X[:n], y[:n], groups, setting.repeats).overall
    there = sg.DeviceModel(copy.deepcopy(net).cpu()).predict
    plain = _importance(there, X[:n], y[:n], groups, setting.repeats).overall
    found = [(here[name] / plain[name] - 1).abs().max() for name in ("estimate", "std_error")]
    return float(found[0]), float(found[1])


def _named(torch: Any, device: Any) -> str:
    if device.type == "cuda":
        return str(torch.cuda.get_device_name(device))
    return f"a processor, {torch.get_num_threads()} threads"


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Measures PyTorch's operations on a CUDA device, to compare them with cuda_bench.

usage: bench/kernels/cuda_torch.py [--any-load]

64 Mi floats; GB/s counts bytes read and bytes written, each array once, as cuda_bench --full does.
Each figure is the median (least .. greatest) of 21 rounds. Behind it is the load: how many
processors were busy before and after.
"""
import argparse
import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import machine_load  # noqa: E402

try:
    import torch
except ImportError:
    sys.exit("cuda_torch.py: PyTorch is not installed (python3-torch)")

COUNT = 64 << 20
ROUNDS, CALLS = 21, 10


def measure(name, floats_moved, call):
    load_before = machine_load.busy_processors()
    call()
    rates = []
    for _ in range(ROUNDS):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        for _ in range(CALLS):
            call()
        end.record()
        torch.cuda.synchronize()
        rates.append(4e-6 * floats_moved * COUNT * CALLS / begin.elapsed_time(end))
    load = {"load_before": load_before, "load_after": machine_load.busy_processors()}
    print(f"{name:16} {statistics.median(rates):7.1f} ({min(rates):.1f} .. {max(rates):.1f}); "
          f"{machine_load.text(load)}", flush=True)


def measure_step(name, state_per_weight, make, **options):
    weights = torch.nn.Parameter(torch.rand(COUNT, device="cuda"))
    weights.grad = torch.rand(COUNT, device="cuda") - 0.5
    step = make([weights], lr=1e-3, **options).step
    measure(name, 3 + 2 * state_per_weight, step)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    machine_load.declare(parser)
    asked = parser.parse_args()
    if not torch.cuda.is_available():
        print("not run on a GPU: PyTorch finds no CUDA device")
        return
    machine_load.require_quiet_machine(asked.any_load)
    print(f"PyTorch {torch.__version__} on {torch.cuda.get_device_name()}, GB/s")
    x, y, z = (torch.rand(COUNT, device="cuda") - 0.5 for _ in range(3))
    halves = torch.empty(COUNT, device="cuda", dtype=torch.float16)
    measure_step("sgd", 0, torch.optim.SGD, fused=True)
    measure_step("momentum", 1, torch.optim.SGD, momentum=0.9, fused=True)
    measure_step("adagrad", 1, torch.optim.Adagrad, foreach=True)
    measure_step("adam", 2, torch.optim.Adam, fused=True)
    measure_step("adamw", 2, torch.optim.AdamW, fused=True)
    measure("add", 3, lambda: z.add_(x))
    measure("axpy", 3, lambda: z.add_(x, alpha=0.5))
    measure("scale", 2, lambda: z.mul_(-1.0))
    measure("clip", 2, lambda: z.clamp_(-0.5, 0.5))
    measure("dot", 2, lambda: torch.dot(x, y))
    measure("norm", 1, lambda: torch.linalg.vector_norm(x))
    measure("all finite", 1, lambda: torch.isfinite(x).all())
    measure("to_fp16", 1.5, lambda: halves.copy_(x))
    measure("from_fp16", 1.5, lambda: z.copy_(halves))
    count = COUNT // 100
    measure("top_k of 1 %", 3 + 2 / 100, lambda: torch.topk(x.abs(), count, sorted=False))


if __name__ == "__main__":
    main()

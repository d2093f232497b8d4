#!/usr/bin/env python3
"""Measures the cost of replicas, of the write-ahead log and of checkpoints.

usage: bench/faults/safety_cost.py FOLDER_OF_PROGRAMS [replicas] [log] [checkpoints] [--data DIR]
                            [--rounds 3] [--passes 5]

Each round runs all cases in turn.
replicas, log: async_sgd on MNIST, mlp:256, asp, 2 workers, 3 servers. A request is a worker's push
and the pull for its next step; its time ends when all servers have replied to both.
checkpoints: the same, and count_batches with 64 MB of parameters. Checkpoints are written every
2 s, every 30 s, or only at the end. Their rate is compared with a file of that size, written and
synced.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests/distributed"))
import cluster  # noqa: E402

ELEMENTS = 16_000_000
OFTEN_S, SELDOM_S, NEVER_S = 2, 30, 100_000  # Time between checkpoints.


def run(asked, program, *words):
    """Returns the report, with the events of the run."""
    with tempfile.TemporaryDirectory(prefix="safety-") as home:
        subprocess.run([asked.programs / program, *map(str, words), "--report", "report.json",
                        "--run-dir", "run"],
                       cwd=home, check=True, capture_output=True, timeout=1800)
        report = json.loads((pathlib.Path(home) / "report.json").read_text())
        return report | {"events": cluster.read_events(pathlib.Path(home) / "run/events.jsonl")}


def train(asked, *words, passes=None):
    return run(asked, "async_sgd", "--data", f"mnist:{asked.data}/mnist", "--lr", 0.2, "--workers", 2,
               "--servers", 3, "--epochs", passes or asked.passes, *words)


def spread(values, form="{:.0f}"):
    return (f"{form} ({form} .. {form})").format(statistics.median(values), min(values), max(values))


def compare(asked, cases):
    """Runs cases {name: call} in turn and prints each one's ratio to the first case."""
    found = {name: [] for name in cases}
    for _ in range(asked.rounds):
        for name, call in cases.items():
            found[name].append(call())
    base = [x["samples_per_second"] for x in next(iter(found.values()))]
    for name, reports in found.items():
        speed = [x["samples_per_second"] for x in reports]
        ratio = [a / b for a, b in zip(speed, base)]
        at = {q: [x["request_ms"][q] for x in reports] for q in ("p50", "p99", "max")}
        print(f"  {name:<22} samples/s {spread(speed)}  ratio {spread(ratio, '{:.3f}')}  request ms p50 "
              f"{spread(at['p50'], '{:.2f}')}, p99 {spread(at['p99'], '{:.1f}')}, max "
              f"{spread(at['max'], '{:.0f}')}", flush=True)
    return found


def replicas(asked):
    print("replicas")
    compare(asked, {f"R = {r}": lambda r=r: train(asked, "--replicas", r) for r in (1, 2, 3)})


def log(asked):
    print("write-ahead log")
    compare(asked, {f"R = {r}, {mode}": lambda r=r, mode=mode: train(
        asked, "--replicas", r, "--durability", mode) for r in (1, 2) for mode in ("memory", "log")})


def checkpoint_seconds(events):
    """Returns how long each took: from the end of one to the cut of the next are OFTEN_S, so the
    rest is its own time.
    """
    ends = [x["time"] for x in cluster.matching(events, "checkpoint_committed")]
    return [b - a - OFTEN_S for a, b in zip(ends[:-2], ends[1:-1])]


def disk_seconds(size_bytes):
    block = os.urandom(1 << 20)
    with tempfile.NamedTemporaryFile(prefix="safety-") as file:
        began = time.monotonic()
        for _ in range(size_bytes >> 20):
            file.write(block)
        file.flush()
        os.fsync(file.fileno())
        return time.monotonic() - began


def checkpoints(asked):
    print("checkpoints: MNIST")
    passes = 15 * asked.passes
    cases = {"none": NEVER_S} | {f"every {x} s": x for x in (SELDOM_S, OFTEN_S)}
    compare(asked, {name: lambda every=every: train(asked, "--checkpoint-every", f"{every}s", passes=passes)
                    for name, every in cases.items()})
    print(f"checkpoints: {4 * ELEMENTS / 1e6:.0f} MB of parameters, 2 servers, each step changes all of them")

    def count(every):
        return run(asked, "count_batches", "--elements", ELEMENTS, "--batch", 1, "--workers", 2,
                   "--servers", 2, "--samples", 300 * asked.passes, "--epochs", 1,
                   "--checkpoint-every", f"{every}s")

    found = compare(asked, {name: lambda every=every: count(every) for name, every in cases.items()})
    took = [x for report in found[f"every {OFTEN_S} s"]
            for x in checkpoint_seconds(report["events"])]
    if not took:
        sys.exit("FAILED: too few checkpoints to time one; it needs more --passes")
    plain = [disk_seconds(4 * ELEMENTS) for _ in range(5)]
    rate = [4e-9 * ELEMENTS / x for x in took]
    print(f"  one of {len(took)} takes {spread(took, '{:.2f}')} s, {spread(rate, '{:.2f}')} GB/s; a file "
          f"of that size {spread([4e-9 * ELEMENTS / x for x in plain], '{:.2f}')} GB/s")


def main():
    cases = {"replicas": replicas, "log": log, "checkpoints": checkpoints}
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("programs", type=pathlib.Path)
    parser.add_argument("cases", nargs="*", choices=[*cases, []], default=[])
    parser.add_argument("--data", type=pathlib.Path,
                        default=pathlib.Path(os.environ.get("TROUPE_DATA", "../shared/data")))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--passes", type=int, default=5)
    asked = parser.parse_args()
    asked.programs, asked.data = asked.programs.resolve(), asked.data.resolve()
    if not (asked.data / "mnist").is_dir():
        print(f"SKIPPED: no MNIST in {asked.data}: give --data DIR")
        sys.exit(cluster.SKIPPED)
    for case in asked.cases or cases:
        cases[case](asked)


if __name__ == "__main__":
    main()

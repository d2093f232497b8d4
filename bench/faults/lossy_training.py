#!/usr/bin/env python3
"""Trains MNIST while processes are killed, and compares with undisturbed training.

usage: bench/faults/lossy_training.py FOLDER_OF_PROGRAMS [--data DIR] [bsp] [asp] [--kills 100]
                               [--pause-s 3] [--rounds 10] [--at-once 1] [--slow-ms 0]

bsp: a run that loses a process every --pause-s seconds, --kills times, ends in the same bytes as an
undisturbed run. asp: accuracies of --rounds runs of each kind, in turn. A process is a server, a
worker or the coordinator, drawn at random. Effective time is the undisturbed run's time divided by
the disturbed run's time, for the same passes. The program fails if bsp differs or a run ends before
its last kill. It does not rate the accuracies of asp. If disturbed runs were like the others, all
ten would lie between the others' least and greatest in one trial of four. With --slow-ms steps
mostly wait, so that many runs fit on one machine (--at-once).
"""
import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import random
import shutil
import statistics
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests/distributed"))
import cluster  # noqa: E402

SERVERS, WORKERS, REPLICAS = 3, 4, 2
MNIST_SAMPLES = 60_000  # Samples of a pass.
VICTIMS = [("server", i) for i in range(SERVERS)] + [("worker", i) for i in range(WORKERS)] \
    + [("coordinator", 0)]


def train(asked, sync, passes, dice=None):
    """Trains once; with `dice`, kills a process every pause. Returns the report with the kills."""
    home = pathlib.Path(tempfile.mkdtemp(prefix="lossy-"))
    words = [asked.programs.resolve() / "async_sgd", "--data", f"mnist:{asked.data}/mnist", "--model",
             asked.model, "--lr", "0.2", "--sync", sync, "--workers", str(WORKERS), "--servers",
             str(SERVERS), "--replicas", str(REPLICAS), "--epochs", str(passes), "--run-dir",
             home / "run", "--report", home / "report.json", "--export", home / "values.npz",
             *(word for i in range(WORKERS if asked.slow_ms else 0)
               for word in ("--slow", f"{i}:{asked.slow_ms}"))]
    run = cluster.Run(home, "run0", words)
    kills = 0
    try:
        run.await_event("training_started")
        began = time.monotonic()
        for number in range(1, asked.kills + 1 if dice else 1):
            while time.monotonic() < began + number * asked.pause_s and run.launcher.poll() is None:
                time.sleep(0.01)
            while run.launcher.poll() is None and not run.kill(*dice.choice(VICTIMS)):
                time.sleep(0.01)
            kills += run.launcher.poll() is None
        status = run.wait(7200)
        if status != 0:
            sys.exit(f"FAILED: status {status}\n{run.story()}")
        if dice and kills < asked.kills:
            sys.exit(f"FAILED: it ended after {kills} of {asked.kills} kills, so it shows too little")
        report = json.loads((home / "report.json").read_text())
        report["values"] = hashlib.sha256((home / "values.npz").read_bytes()).hexdigest()
        report["kills"] = kills
        return report
    finally:
        run.end()
        shutil.rmtree(home)


def told(name, report):
    print(f"  {name:<12} {report['kills']:>4} kills  {report['seconds']:>7.1f} s  "
          f"{report['samples_per_second']:>7.0f} samples/s  accuracy {report['test_accuracy']:.4f}  "
          f"rolled back {sum(x['updates_rolled_back'] for x in report['recoveries'])}", flush=True)


def passes_for(asked, sync):
    """Returns the number of passes during which all kills fit."""
    trial = train(asked, sync, 3)
    seconds = 1.1 * (asked.kills * asked.pause_s + 2)
    return max(1, int(seconds * trial["samples_per_second"] / MNIST_SAMPLES))


def compare_bsp(asked, dice):
    passes = passes_for(asked, "bsp")
    print(f"bsp, {passes} passes, {WORKERS} workers, {SERVERS} servers, {REPLICAS} replicas")
    calm = train(asked, "bsp", passes)
    told("undisturbed", calm)
    hurt = train(asked, "bsp", passes, dice)
    told("disturbed", hurt)
    equal = calm["values"] == hurt["values"]
    print(f"  parameters {'byte-equal' if equal else 'DIFFER'}, effective time "
          f"{calm['seconds'] / hurt['seconds']:.3f}", flush=True)
    return equal


def compare_asp(asked, dice):
    passes = passes_for(asked, "asp")
    print(f"asp, {passes} passes, {WORKERS} workers, {SERVERS} servers, {REPLICAS} replicas")
    seeds = [dice.random() for _ in range(asked.rounds)]

    def one(number):
        kind, seed = ("disturbed", seeds[number // 2]) if number % 2 else ("undisturbed", None)
        report = train(asked, "asp", passes, random.Random(seed) if seed else None)
        told(kind, report)
        return report

    with concurrent.futures.ThreadPoolExecutor(asked.at_once) as pool:
        reports = list(pool.map(one, range(2 * asked.rounds)))
    calm, hurt = reports[::2], reports[1::2]
    low, high = (f(x["test_accuracy"] for x in calm) for f in (min, max))
    inside = sum(low <= x["test_accuracy"] <= high for x in hurt)
    effective = [a["seconds"] / b["seconds"] for a, b in zip(calm, hurt)]
    print(f"  {inside} of {asked.rounds} disturbed runs within {low:.4f} .. {high:.4f}, "
          f"theirs {min(x['test_accuracy'] for x in hurt):.4f} .. "
          f"{max(x['test_accuracy'] for x in hurt):.4f}; mean "
          f"{statistics.mean(x['test_accuracy'] for x in calm):.4f} undisturbed, "
          f"{statistics.mean(x['test_accuracy'] for x in hurt):.4f} disturbed; effective time "
          f"{statistics.median(effective):.3f} ({min(effective):.3f} .. {max(effective):.3f})")
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("programs", type=pathlib.Path)
    parser.add_argument("modes", nargs="*", choices=["bsp", "asp", []], default=[])
    parser.add_argument("--data", type=pathlib.Path,
                        default=pathlib.Path(os.environ.get("TROUPE_DATA", "../shared/data")))
    parser.add_argument("--kills", type=int, default=100, help="of one run")
    parser.add_argument("--pause-s", type=float, default=3.0, help="between two kills")
    parser.add_argument("--rounds", type=int, default=10, help="of asp")
    parser.add_argument("--at-once", type=int, default=1, help="runs of asp")
    parser.add_argument("--slow-ms", type=int, default=0, help="that each step waits")
    parser.add_argument("--model", default="mlp:256")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    asked.data = asked.data.resolve()
    if not (asked.data / "mnist").is_dir():
        print(f"SKIPPED: no MNIST in {asked.data}: give --data DIR")
        sys.exit(cluster.SKIPPED)
    dice = random.Random(asked.seed)
    done = [{"bsp": compare_bsp, "asp": compare_asp}[mode](asked, dice)
            for mode in asked.modes or ("bsp", "asp")]
    sys.exit(0 if all(done) else 1)


if __name__ == "__main__":
    main()

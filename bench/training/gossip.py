#!/usr/bin/env python3
"""Measures gossip beside all-reduce and servers, by training on the digits of optdigits.

usage: bench/training/gossip.py PROGRAMS [--data DIR] [--rounds 5] [--quick] [--any-load]
                                [accuracy] [distance] [straggler] [seconds]

accuracy: test accuracy, and kB that a peer sends and receives for a step, at equal samples. Bytes
are `bytes` of the report over acknowledged batches: gradients and values without their frames.
Gossip counts all parcels, copies for the collector included. All-reduce counts 2 (n - 1) / n sums
for each step. In processes a step takes a fraction of a millisecond, so many neighbours are busy
when a peer of pairwise asks. A simulated step takes about 10 ms.
distance: how far the copies of all peers are apart when a run of some epochs has ended, in percent
of the norm of their mean, as the collector logs it. Each step takes 5 ms longer, so that peers find
neighbours that are free. Copies of a running job are of different times, so they do not count.
straggler: steps of the other workers in a second if worker 3 needs 50 ms more in each step, over
those without a straggler, in virtual time. A report counts the steps of all workers. The straggler
takes one in the time of a usual step and 50 ms, and its steps are subtracted. All-reduce has neither
--simulate nor --slow; its workers wait for each other as those of bsp do.
seconds: time of a step of 2 peers with 1 MB and 40 MB of parameters: the time of training divided by
the steps of a peer. In rows with sockets a limit of file sizes takes away the memory that processes
share. The sums of all-reduce then go over links, and the payloads of all links through sockets. The
logs of all-reduce are checked for that; those of gossip say nothing of it.
Rounds have other seeds. Accuracies are mean (deviation), other figures median (least .. greatest)
of the rounds. --quick shows in seconds that all cases work; its figures say nothing.
"""
import argparse
import collections
import gzip
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

import compression
from compression import spread
from staleness import head, row

import machine_load  # Lies in a folder that compression adds.

TRAIN, TEST = "optdigits.tra.gz", "optdigits.tes.gz"
GRAPHS = ("ring", "torus", "exponential", "complete")
MIXINGS = ("each_step", "pairwise")
TRAINING = ("--model", "mlp:64", "--batch", 16, "--lr", 0.3)
RUN_SECONDS_MAX = 600
SKIPPED = 77

DISTANCE_PEERS, PACE_MS = 8, 5
MEAN = re.compile(r"mean of (\d+) copies with (\d+) batches; their distance is ([\d.]+)")

SLOW_WORKER, SLOW_MS = 3, 50

# Models of about 250,000 and 10,000,000 parameters, samples of an epoch, epochs.
Size = collections.namedtuple("Size", "name model bytes samples epochs")
SIZES = (Size("1 MB", "mlp:464,464", 1_002_280, 3_823, 8),
         Size("40 MB", "mlp:3125,3125", 40_012_540, 1_280, 1))
TESTED = 100  # Samples, so that evaluations of large models take no time of the peers.
Contestant = collections.namedtuple("Contestant", "name words shares_memory")
WAYS = {"all-reduce": ("async_sgd", "--sync", "allreduce"),
        **{x: ("gossip", "--mixing", x) for x in MIXINGS}}
CONTESTANTS = [Contestant(name, words, shares) for shares in (False, True)
               for name, words in WAYS.items()]

Plan = collections.namedtuple("Plan", "programs data rounds workers epochs distance_epochs "
                                      "straggler_epochs sizes any_load")


def csv_of(folder):
    return f"csv:{folder / TRAIN},{folder / TEST}"


def trained(plan, words, prefix=()):
    """Returns the report of a run, with the logs of its processes as `logs` by name."""
    program, *options = map(str, words)
    data = [] if "--data" in options else ["--data", csv_of(plan.data)]
    kept = [] if "--simulate" in options else ["--run-dir", "run"]
    with tempfile.TemporaryDirectory(prefix="gossip-") as home:
        done = subprocess.run(
            [*prefix, plan.programs / program, *data, *options, *kept, "--report", "report.json"],
            cwd=home, capture_output=True, text=True, stdin=subprocess.DEVNULL,
            timeout=RUN_SECONDS_MAX, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{program} {' '.join(options)}: {done.stderr.strip()}")
        report = compression.report_of(home)
        report["logs"] = {x.stem: x.read_text() for x in pathlib.Path(home).glob("run/logs/*.log")}
    return report


def seeds(plan):
    return range(1, plan.rounds + 1)


def deviating(values, form):
    deviation = statistics.stdev(values) if len(values) > 1 else 0
    return f"{form} ({form})".format(statistics.mean(values), deviation)


def kilobytes(reports, way):
    return spread([x["bytes"][way] / x["pushes"]["acknowledged"] / 1000 for x in reports], "{:.1f}")


def accuracy(plan):
    print(f"accuracy: {plan.epochs} epochs, {' '.join(map(str, TRAINING))}, {plan.rounds} seeds; "
          "kB of a peer's step\n")
    cases = [("all-reduce", "", WAYS["all-reduce"], False),
             ("asp, 2 servers", "", ("async_sgd", "--sync", "asp", "--servers", 2), True)]
    cases += [(how, graph, (*WAYS[how], "--neighbours", graph), True)
              for how in MIXINGS for graph in GRAPHS]
    head("peers", "mixing", "neighbours", "accuracy in %", "kB sent", "kB received",
         "kB sent, simulated")
    for workers in plan.workers:
        for name, graph, words, simulates in cases:
            runs = [(*words, *TRAINING, "--workers", workers, "--epochs", plan.epochs, "--seed", x)
                    for x in seeds(plan)]
            reports = [trained(plan, x) for x in runs]
            virtual = [trained(plan, (*x, "--simulate")) for x in runs] if simulates else []
            row(str(workers), name, graph,
                deviating([100 * x["test_accuracy"] for x in reports], "{:.2f}"),
                kilobytes(reports, "sent"), kilobytes(reports, "received"),
                kilobytes(virtual, "sent") if virtual else "")


def final_distance(report):
    """Returns the distance of the copies that have all batches, in percent."""
    found = MEAN.findall(report["logs"]["server-0"])
    if not found:
        raise RuntimeError("the collector logged no distance")
    copies, batches, distance = found[-1]
    if int(copies) != report["workers"] or int(batches) != report["pushes"]["acknowledged"]:
        raise RuntimeError(f"the last mean is of {copies} copies and {batches} batches")
    return 100 * float(distance)


def distance(plan):
    print(f"distance: {DISTANCE_PEERS} peers, {' '.join(map(str, TRAINING))}, {plan.rounds} seeds; "
          "% of the norm of the mean\n")
    cases = [(how, graph) for how in MIXINGS for graph in ("ring", "complete")]
    head("epochs", *(f"{how}, {graph}" for how, graph in cases))
    pace = [f"{x}:{PACE_MS}" for x in range(DISTANCE_PEERS)]
    for epochs in plan.distance_epochs:
        cells = []
        for how, graph in cases:
            words = (*WAYS[how], "--neighbours", graph, *TRAINING, "--workers", DISTANCE_PEERS,
                     "--epochs", epochs, "--slow", *pace, "--seed")
            cells.append(spread([final_distance(trained(plan, (*words, x))) for x in seeds(plan)],
                                "{:.2f}"))
        row(str(epochs), *cells)


def train_seconds(plan, report):
    with gzip.open(plan.data / TRAIN, "rt") as file:
        samples = sum(1 for _ in file)
    return samples * report["epochs"] / report["samples_per_second"]


def steps_of_others(plan, report, usual_seconds):
    """Returns how many steps each worker but the straggler took in a second."""
    seconds = train_seconds(plan, report)
    of_slow = seconds / (usual_seconds + SLOW_MS / 1000)
    others = report["workers"] - 1
    return (report["pushes"]["acknowledged"] - of_slow) / others / seconds


def straggler(plan):
    print(f"straggler: worker {SLOW_WORKER} {SLOW_MS} ms slower in each step, --simulate, "
          f"{' '.join(map(str, TRAINING))}, {plan.straggler_epochs} epochs, {plan.rounds} seeds; "
          "steps/s of the others over those without it\n")
    cases = [(f"{how}, {graph}", (*WAYS[how], "--neighbours", graph))
             for how in MIXINGS for graph in ("ring", "complete")]
    cases += [(f"{x}, 2 servers", ("async_sgd", "--sync", x, "--servers", 2))
              for x in ("asp", "bsp")]
    head("", *(f"{x} workers" for x in plan.workers))
    for name, words in cases:
        cells = []
        for workers in plan.workers:
            ratios = []
            for seed in seeds(plan):
                base = (*words, *TRAINING, "--simulate", "--stragglers", "off", "--workers",
                        workers, "--epochs", plan.straggler_epochs, "--seed", seed)
                calm = trained(plan, base)
                late = trained(plan, (*base, "--slow", f"{SLOW_WORKER}:{SLOW_MS}"))
                step = train_seconds(plan, calm) * workers / calm["pushes"]["acknowledged"]
                ratios.append(steps_of_others(plan, late, step) * step)
            cells.append(spread(ratios, "{:.3f}"))
        row(name, *cells)


def shortened(source, folder, samples):
    """Writes the first `samples` rows for training and TESTED rows for tests into `folder`."""
    folder.mkdir()
    for name, count in ((TRAIN, samples), (TEST, TESTED)):
        with gzip.open(source / name, "rt") as rows, gzip.open(folder / name, "wt") as out:
            out.writelines(line for _, line in zip(range(count), rows))
    return csv_of(folder)


def contest(plan, size, who, data, seed):
    """Returns (seconds of a step, MB that a peer sends for it) of one run."""
    limit = () if who.shares_memory else ("prlimit", f"--fsize={size.bytes * 3 // 2}")
    report = trained(plan, (*who.words, "--data", data, "--model", size.model, "--batch", 16,
                            "--workers", 2, "--epochs", size.epochs, "--checkpoint-every", "never",
                            "--seed", seed), limit)
    if who.name == "all-reduce":
        way = "adds up in shared memory" if who.shares_memory else "adds up over links"
        if way not in report["logs"]["worker-1"]:
            raise RuntimeError(f"no worker {way}")
    steps = report["pushes"]["acknowledged"] / 2
    train = size.samples * size.epochs / report["samples_per_second"]
    return train / steps, report["bytes"]["sent"] / 2 / steps / 1e6


def seconds(plan):
    print(f"seconds: 2 peers, batch 16, {plan.rounds} rounds, in turns; ms of a step, MB that a "
          "peer sends for it\n")
    head("parameters", "", "payloads", "ms", "MB")
    with tempfile.TemporaryDirectory(prefix="gossip-data-") as home:
        for size in plan.sizes:
            data = shortened(plan.data, pathlib.Path(home) / str(size.samples), size.samples)
            found = {x: [] for x in CONTESTANTS}
            before = machine_load.busy_processors()
            for seed in seeds(plan):
                for who in CONTESTANTS:
                    found[who].append(contest(plan, size, who, data, seed))
            load = {"load_before": before, "load_after": machine_load.busy_processors()}
            for who, runs in found.items():
                row(size.name, who.name, "shared memory" if who.shares_memory else "sockets",
                    spread([1000 * x for x, _ in runs], "{:.2f}"),
                    spread([x for _, x in runs], "{:.2f}"))
            print(f"\n{size.name}: {machine_load.text(load)}\n", flush=True)


CASES = {x.__name__: x for x in (accuracy, distance, straggler, seconds)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("programs", type=pathlib.Path)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(CASES))
    parser.add_argument("--data", default=os.environ.get("TROUPE_DATA", "../shared/data"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="one short round, at any load")
    machine_load.declare(parser)
    asked = parser.parse_intermixed_args()
    if unknown := set(asked.cases) - set(CASES):
        parser.error(f"no such case: {', '.join(sorted(unknown))}; known: {', '.join(CASES)}")
    cases = asked.cases or list(CASES)
    programs = asked.programs.resolve()
    data = pathlib.Path(asked.data).resolve() / "optdigits"
    if not (data / TRAIN).exists():
        print(f"SKIPPED: no {data / TRAIN}: name the folder of the data sets by --data")
        sys.exit(SKIPPED)
    if asked.quick:
        plan = Plan(programs, data, 1, (4,), 1, (1,), 1, [SIZES[0]._replace(epochs=1)], True)
    else:
        plan = Plan(programs, data, asked.rounds, (4, 8), 20, (1, 2, 5, 10, 20), 40, SIZES,
                    asked.any_load)
    if "seconds" in cases:
        machine_load.require_quiet_machine(plan.any_load)
    for name in cases:
        CASES[name](plan)
        print(flush=True)


if __name__ == "__main__":
    main()

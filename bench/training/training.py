#!/usr/bin/env python3
"""Trains real data in every way and prints the results as tables of ratios.

usage: bench/training/training.py PROGRAMS [--data DIR] [--rounds 3] [--passes N]
                         [accuracy] [stragglers] [overhead] [bytes] [overlap]

PROGRAMS: folder with async_sgd and plain_loop. DIR: data sets, by default $TROUPE_DATA or
../shared/data. N: passes of a run, by default 20 for stragglers, 3 for bytes, else 10. Each figure
is median (least .. greatest) of the rounds; contestants run in turn within each round.
"""
import argparse
import json
import os
import pathlib
import resource
import statistics
import subprocess
import tempfile

programs = pathlib.Path(".")


def run(program, *words):
    """Runs a program and returns its report, with CPU seconds of all its processes."""
    with tempfile.TemporaryDirectory(prefix="training-") as home:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([programs / program, *map(str, words), "--report", "report.json"], cwd=home,
                       check=True, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        report = json.loads((pathlib.Path(home) / "report.json").read_text())
    report["cpu_seconds"] = (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)
    return report


def plain(*words):
    """Runs the same training without the framework, as the yardstick, and returns its report."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([programs / "plain_loop", *map(str, words), "--json"], check=True,
                          capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    report = json.loads(done.stdout.splitlines()[-1])
    report["cpu_seconds"] = (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)
    return report


def spread(values, form="{:.0f}"):
    return (f"{form} ({form} .. {form})").format(statistics.median(values), min(values), max(values))


def ratio(values):
    return f"{spread(values, '{:.3f}')}, round by round {', '.join(f'{x:.3f}' for x in values)}"


def accuracy(data, rounds, passes):
    mnist, a9a = f"mnist:{data}/mnist", f"libsvm:{data}/libsvm/a9a.gz,{data}/libsvm/a9a.t.gz"
    cases = [(mnist, "mlp:256", "asp", ("--lr", 0.2)), (mnist, "mlp:256", "ssp:3", ("--lr", 0.2)),
             (mnist, "mlp:256", "bsp", ("--optimizer", "adam", "--lr", 0.001)),
             (mnist, "softmax", "asp", ("--lr", 0.1)), (a9a, "softmax", "asp", ("--lr", 0.1))]
    print(f"accuracy: {passes} passes, 4 workers, 2 servers, processes, batch 64")
    for source, model, sync, more in cases:
        reports = [run("async_sgd", "--processes", "--data", source, "--model", model, "--sync", sync,
                       "--workers", 4, "--servers", 2, "--epochs", passes, "--seed", seed + 1, *more)
                   for seed in range(rounds)]
        line = f"  {source.split(':')[0]:<7}{model:<9}{sync:<7}{' '.join(map(str, more)):<28}accuracy "
        line += spread([x["test_accuracy"] for x in reports], "{:.4f}")
        if "test_auc" in reports[0]:
            line += "  AUC " + spread([x["test_auc"] for x in reports], "{:.4f}")
        print(line + "  samples/s " + spread([x["samples_per_second"] for x in reports]), flush=True)


def stragglers(data, rounds, passes):
    common = ("--processes", "--data", f"mnist:{data}/mnist", "--servers", 2, "--lr", 0.1, "--epochs")
    slow = ("--slow", "0:50")
    # At full speed the other workers leave the straggler no processor time; with a pause in each of
    # their steps they do.
    beside = [f"{worker}:5" for worker in (1, 2, 3)]
    speeds = {}

    def note(name, *words):
        speeds.setdefault(name, []).append(run("async_sgd", *common, *words)["samples_per_second"])

    for _ in range(rounds):  # One pass is long enough where workers wait for the straggler.
        note("the straggler alone", 1, "--workers", 1, "--sync", "asp", *slow)
        note("3 workers", passes, "--workers", 3, "--sync", "asp")
        note("3 and the straggler, asp", passes, "--workers", 4, "--sync", "asp", *slow)
        note("3 and the straggler, ssp:3", 1, "--workers", 4, "--sync", "ssp:3", *slow)
        note("3 and the straggler, bsp", 1, "--workers", 4, "--sync", "bsp", *slow)
        note("3 workers of 5 ms", passes // 4, "--workers", 3, "--sync", "asp",
             "--slow", "0:5", "1:5", "2:5")
        note("3 of 5 ms and the straggler, asp", passes // 4, "--workers", 4, "--sync", "asp", *slow,
             *beside)
    print(f"stragglers: {passes} passes, samples/s of 4 workers, one 50 ms slower in each step")
    for name, values in speeds.items():
        print(f"  {name:<34}{spread(values)}")
    for others, all_four in (("3 workers", "3 and the straggler, asp"),
                             ("3 workers of 5 ms", "3 of 5 ms and the straggler, asp")):
        ratios = [a / (b + c) for a, b, c in zip(speeds[all_four], speeds[others],
                                                 speeds["the straggler alone"])]
        print(f"  asp / ({others} + the straggler alone): {ratio(ratios)}", flush=True)


def overhead(data, rounds, passes):
    common = ("--data", f"mnist:{data}/mnist", "--model", "mlp:256", "--batch", 64,
              "--epochs", passes, "--lr", 0.2)
    one = ("--workers", 1, "--servers", 1, "--sync", "asp")
    ways = [(mode, ahead) for mode in ("--threads", "--processes") for ahead in (0, 1)]
    reports = {}
    for _ in range(rounds):
        reports.setdefault("plain loop", []).append(plain(*common))
        for mode, ahead in ways:
            reports.setdefault(f"{mode} --pull-ahead {ahead}", []).append(
                run("async_sgd", *common, *one, mode, "--pull-ahead", ahead))
    print(f"overhead: {passes} passes, one worker, one server, against a plain loop of the same model")
    for name, own in reports.items():
        ratios = [x["samples_per_second"] / y["samples_per_second"]
                  for x, y in zip(own, reports["plain loop"])]
        print(f"  {name:<26}samples/s {spread([x['samples_per_second'] for x in own]):<28}"
              f"cpu s {spread([x['cpu_seconds'] for x in own], '{:.1f}'):<18}"
              f"ratio {ratio(ratios)}", flush=True)


def bytes_on_links(data, rounds, passes):
    mnist, a9a = f"mnist:{data}/mnist", f"libsvm:{data}/libsvm/a9a.gz,{data}/libsvm/a9a.t.gz"
    keys, delta = (("--no-key-cache",), ()), ((), ("--delta-pulls",))
    cases = [(a9a, "softmax", 64, ("--sparse",), keys), (a9a, "softmax", 1024, ("--sparse",), keys),
             (mnist, "softmax", 64, (), delta), (mnist, "mlp:256", 64, (), delta),
             (mnist, "mlp:256", 64, ("--sync", "bsp"), delta), (mnist, "mlp:256", 4, (), delta)]
    print(f"bytes: {passes} passes, 2 workers, 2 servers, processes; bytes of a batch on links, "
          "requests + answers")
    for source, model, batch, more, ways in cases:
        name = f"{source.split(':')[0]:<7}{model:<9}batch {batch:<5}{' '.join(more)}"
        for way in ways:
            found = {"sent": [], "received": [], "samples_per_second": []}
            for seed in range(rounds):
                report = run("async_sgd", "--processes", "--data", source, "--model", model,
                             "--batch", batch, "--workers", 2, "--servers", 2, "--epochs", passes,
                             "--seed", seed + 1, *more, *way)
                for key, value in report["wire_bytes"].items():
                    found[key].append(value / report["pushes"]["acknowledged"])
                found["samples_per_second"].append(report["samples_per_second"])
            print(f"  {name:<40}{' '.join(way):<15}{spread(found['sent'])} + "
                  f"{spread(found['received'])}  samples/s {spread(found['samples_per_second'])}",
                  flush=True)


def overlap(data, rounds, passes):
    common = ("--processes", "--data", f"mnist:{data}/mnist", "--model", "mlp:256", "--batch", 64,
              "--epochs", passes, "--lr", 0.2, "--workers", 2, "--servers", 1, "--sync", "asp")
    ways = [(ahead, together) for ahead in (0, 1, 2) for together in (1, 4, 16)]
    reports = {way: [] for way in ways}
    for seed in range(rounds):
        for ahead, together in ways:
            reports[ahead, together].append(run(
                "async_sgd", *common, "--pull-ahead", ahead, "--apply-batch", together,
                "--seed", seed + 1))
    print(f"overlap: {passes} passes, 2 workers, 1 server; idle: share of the workers' time")
    for (ahead, together), own in reports.items():
        print(f"  --pull-ahead {ahead} --apply-batch {together:<3}"
              f"samples/s {spread([x['samples_per_second'] for x in own]):<26}"
              f"idle {spread([x['idle_seconds'] / 2 / x['seconds'] for x in own], '{:.3f}'):<24}"
              f"staleness {spread([x['staleness_versions']['mean'] for x in own], '{:.2f}'):<20}"
              f"accuracy {spread([x['test_accuracy'] for x in own], '{:.4f}')}", flush=True)


# The parts and the passes of their runs; asp with a straggler varies too much in 10 passes.
PARTS = {"accuracy": (accuracy, 10), "stragglers": (stragglers, 20), "overhead": (overhead, 10),
         "bytes": (bytes_on_links, 3), "overlap": (overlap, 10)}


def main():
    global programs
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("programs", type=pathlib.Path)
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--data", default=os.environ.get("TROUPE_DATA", "../shared/data"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--passes", type=int, help="of a run; default: 20 for stragglers, 3 for bytes, else 10")
    asked = parser.parse_intermixed_args()
    unknown = set(asked.parts) - set(PARTS)
    if unknown:
        parser.error(f"no such part: {', '.join(sorted(unknown))}; known: {', '.join(PARTS)}")
    programs = asked.programs.resolve()
    data = pathlib.Path(asked.data).resolve()
    for name in asked.parts or PARTS:
        part, passes = PARTS[name]
        part(data, asked.rounds, asked.passes or passes)


if __name__ == "__main__":
    main()

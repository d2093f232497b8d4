#!/usr/bin/env python3
"""Measures what --staleness-lr saves and costs, by training in simulated clusters.

usage: bench/training/staleness.py PROGRAMS [--data DIR] [--results FILE] [--jobs 1] [--rounds 3]
                                   [mnist] [a9a] [digits]

Each case is a data set, an optimiser, a rate and a number of workers. Each case runs with each C of
--staleness-lr, and with other seeds in each round; all runs of a data set take as many samples.
One worker has no staleness, so it runs with C = 0 and, as a check, with the strictest C. The rate
that is best for a small cluster without --staleness-lr is then tried with more epochs.
The tables show the median accuracy (least .. greatest) of the rounds, and how far each C stays
behind the best C of its case. A run whose parameters stop being finite counts as accuracy 0.
FILE keeps the finished runs, which are not run again. Simulated runs do not depend on the load of
the machine: FILE may be filled at any time.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import statistics
import subprocess
import tempfile

WORKERS = (1, 4, 8, 16, 32, 64)
LIMITS = (0, 1, 2, 4, 8)
RATES = {"sgd": (0.05, 0.1, 0.3), "momentum": (0.01, 0.03, 0.1), "adam": (0.001, 0.003, 0.01)}
EPOCHS = {"mnist": 1, "a9a": 2, "digits": 1}
LONGER, LONGER_WORKERS = 3, (4, 64)  # Times as many epochs.
SERVERS, MODEL = 2, "mlp:64"
RUN_SECONDS_MAX = 3600  # A run takes a second; at low priority on a busy machine, minutes.
SMALL = 4
BEHIND, LOST = 0.02, 0.2  # Accuracies: a slower training, and one that has diverged.


def source_of(name, data):
    return {"mnist": f"mnist:{data}/mnist", "digits": "digits",
            "a9a": f"libsvm:{data}/libsvm/a9a.gz,{data}/libsvm/a9a.t.gz"}[name]


def cases_of(sets, rounds):
    """Returns runs as (data set, optimiser, rate, workers, C, seed, epochs), all C in turn."""
    return [(name, optimizer, rate, workers, limit, seed, EPOCHS[name])
            for seed in range(1, rounds + 1) for name in sets for workers in WORKERS
            for optimizer, rates in RATES.items() for rate in rates
            for limit in (LIMITS if workers > 1 else LIMITS[:2])]


def longer_cases_of(rates, rounds):
    return [(name, optimizer, rate, workers, limit, seed, LONGER * EPOCHS[name])
            for seed in range(1, rounds + 1) for (name, optimizer), rate in rates.items()
            for workers in LONGER_WORKERS for limit in LIMITS]


def trained(program, data, case):
    """Returns the accuracy of a run; 0 if its parameters stopped being finite."""
    name, optimizer, rate, workers, limit, seed, epochs = case
    words = ["--simulate", "--data", source_of(name, data), "--model", MODEL, "--sync", "asp",
             "--servers", SERVERS, "--workers", workers, "--epochs", epochs, "--optimizer",
             optimizer, "--lr", rate, "--staleness-lr", limit, "--seed", seed]
    with tempfile.TemporaryDirectory(prefix="staleness-") as home:
        done = subprocess.run([program, *map(str, words), "--report", "report.json"], cwd=home,
                              capture_output=True, text=True, stdin=subprocess.DEVNULL,
                              timeout=RUN_SECONDS_MAX)
        if done.returncode == 0:
            return json.loads((pathlib.Path(home) / "report.json").read_text())["test_accuracy"]
    if "finite" not in done.stderr:
        raise RuntimeError(f"{' '.join(map(str, words))}: {done.stderr.strip()}")
    return 0


def measure(program, data, cases, file, jobs):
    """Returns the accuracies by case, those of the file without running them again."""
    known = {}
    if file and file.exists():
        for line in file.read_text().splitlines():
            *case, accuracy = json.loads(line)
            known[tuple(case)] = accuracy
    missing = [case for case in cases if case not in known]
    pool = concurrent.futures.ThreadPoolExecutor(jobs)
    try:
        for case, accuracy in zip(missing, pool.map(lambda x: trained(program, data, x), missing)):
            known[case] = accuracy
            if file:
                with file.open("a") as out:
                    out.write(json.dumps([*case, accuracy]) + "\n")
    finally:
        pool.shutdown(cancel_futures=True)
    return {case: known[case] for case in cases}


def row(*cells):
    print("| " + " | ".join(cells) + " |")


def head(*cells):
    row(*cells)
    print("|" + "---|" * len(cells))


def spread(values):
    return f"{statistics.median(values):.3f} ({min(values):.3f} .. {max(values):.3f})"


def by_case(accuracies):
    """Returns the accuracies of the rounds by (data set, optimiser, rate, workers) and C."""
    found = {}
    for (*case, limit, _, _), accuracy in accuracies.items():
        found.setdefault(tuple(case), {}).setdefault(limit, []).append(accuracy)
    for by_limit in found.values():
        for limit in LIMITS:
            by_limit.setdefault(limit, by_limit[LIMITS[1]])
    return found


def print_all(found):
    for name, optimizer in dict.fromkeys(case[:2] for case in found):
        print(f"\n{name}, {optimizer}\n")
        head("workers", "`--lr`", "off", *(f"C = {x}" for x in LIMITS[1:]))
        for (*what, rate, workers), by_limit in found.items():
            if what == [name, optimizer]:
                row(str(workers), f"{rate:g}", *(spread(by_limit[x]) for x in LIMITS))


def print_behind(found, title, key_of):
    """Prints how far each C stays behind the best C of a case, by a part of the case."""
    print("\nbehind the best C of a case: median, greatest; "
          f"cases behind by more than {BEHIND}, and by more than {LOST}\n")
    head(title, "cases", "off", *(f"C = {x}" for x in LIMITS[1:]))
    for key in [*dict.fromkeys(map(key_of, found)), "all"]:
        rows = [{x: statistics.median(y) for x, y in by_limit.items()}
                for case, by_limit in found.items() if key in (key_of(case), "all")]
        cells = []
        for limit in LIMITS:
            gaps = [max(each.values()) - each[limit] for each in rows]
            cells.append(f"{statistics.median(gaps):.3f}, {max(gaps):.3f}; "
                         f"{sum(gap > BEHIND for gap in gaps)}, {sum(gap > LOST for gap in gaps)}")
        row(str(key), str(len(rows)), *cells)


def rates_of_small(found):
    """Returns the best rate of SMALL workers without --staleness-lr, by (data set, optimiser)."""
    best = {}
    for (*what, rate, workers), by_limit in found.items():
        if workers == SMALL:
            accuracy = statistics.median(by_limit[0])
            best[tuple(what)] = max(best.get(tuple(what), (0, 0)), (accuracy, rate))
    return {what: rate for what, (_, rate) in best.items()}


def print_scaled_out(found, title):
    """Prints cases whose rate was found on a small cluster, and what each C costs there."""
    print(f"\n{title}, the rate that is best for {SMALL} workers without --staleness-lr\n")
    head("data, optimiser, `--lr`", "workers", "off", *(f"C = {x}" for x in LIMITS[1:]))
    for (name, optimizer, rate, workers), by_limit in found.items():
        row(f"{name}, {optimizer}, {rate:g}", str(workers), *(spread(by_limit[x]) for x in LIMITS))
    print_behind(found, "workers", lambda case: case[3])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("programs", type=pathlib.Path)
    parser.add_argument("sets", nargs="*", metavar="DATA", help=", ".join(EPOCHS))
    parser.add_argument("--data", default=os.environ.get("TROUPE_DATA", "../shared/data"))
    parser.add_argument("--results", type=pathlib.Path, help="keeps finished runs")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time")
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_intermixed_args()
    if unknown := set(asked.sets) - set(EPOCHS):
        parser.error(f"no such data: {', '.join(sorted(unknown))}; known: {', '.join(EPOCHS)}")
    cases = cases_of(asked.sets or list(EPOCHS), asked.rounds)
    data = pathlib.Path(asked.data).resolve()
    program = asked.programs.resolve() / "async_sgd"
    found = by_case(measure(program, data, cases, asked.results, asked.jobs))
    print(f"{MODEL}, {SERVERS} servers, asp, batch 64, {asked.rounds} seeds; epochs: "
          + ", ".join(f"{name} {EPOCHS[name]}" for name in dict.fromkeys(x[0] for x in cases)))
    print_all(found)
    print("\nall rates")
    for title, key_of in (("workers", lambda x: x[3]), ("optimiser", lambda x: x[1]),
                          ("data", lambda x: x[0])):
        print_behind(found, title, key_of)
    rates = rates_of_small(found)
    small = {case: y for case, y in found.items() if rates[case[:2]] == case[2]}
    print_scaled_out(small, "as many epochs")
    cases = longer_cases_of(rates, asked.rounds)
    longer = by_case(measure(program, data, cases, asked.results, asked.jobs))
    print_scaled_out(longer, f"{LONGER} times as many epochs")


if __name__ == "__main__":
    main()

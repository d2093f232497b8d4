"""Times all-reduce on one host: Troupe's teams, by memory and by links, Open MPI and Gloo. All take
turns within each round.

all_reduce.py PROGRAMS [--ranks 2,4] [--sizes BYTES,...] [--rounds 5] [--seconds 0.2] [--json]
              [--any-load]

PROGRAMS: the folder with all_reduce_team, all_reduce_links and, where they were built,
all_reduce_mpi and all_reduce_gloo. --settings all: a round before the others finds Open MPI's
fastest settings for each size; --settings one: Open MPI's defaults. A figure is the median of the
rounds' medians; a ratio is the median of the rounds' ratios. Every contestant checks its sums.
"""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import machine_load  # noqa: E402

SIZES = [1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20, 1 << 22, 40 << 20, 160 << 20]
SLEEP_BELOW = 1 << 16
# 3: recursive doubling, 4: ring, 5: segmented ring, 6: Rabenseifner.
ALGORITHMS = [None, 3, 4, 5, 6]
COPIES = ["cma", "none"]


def rows_of(command, environment=None):
    run = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=280,
                         env={**os.environ, **(environment or {})})
    if run.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: exit status {run.returncode}")
    return [json.loads(line) for line in run.stdout.splitlines()]


class Contest:
    def __init__(self, asked):
        self.asked = asked
        self.programs = pathlib.Path(asked.programs)
        self.mpi = shutil.which("mpirun") if (self.programs / "all_reduce_mpi").exists() else None
        self.gloo = (self.programs / "all_reduce_gloo").exists()
        self.settings = {}  # (ranks, bytes) -> Open MPI's fastest.

    def run(self, program, ranks, sizes, *more):
        if not sizes:
            return []
        return rows_of([self.programs / program, "--ranks", str(ranks), "--sizes",
                        ",".join(map(str, sizes)), "--seconds", str(self.asked.seconds), *more])

    def run_mpi(self, ranks, sizes, setting):
        algorithm, copy = setting
        words = ["--mca", "btl_vader_single_copy_mechanism", copy]
        if algorithm:
            words += ["--mca", "coll_tuned_use_dynamic_rules", "1",
                      "--mca", "coll_tuned_allreduce_algorithm", str(algorithm)]
        return rows_of([self.mpi, "-n", str(ranks), "--oversubscribe", *words,
                        self.programs / "all_reduce_mpi", "--sizes", ",".join(map(str, sizes)),
                        "--seconds", str(self.asked.seconds)],
                       {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"})

    def choose_settings(self, ranks, sizes):
        if self.asked.settings == "one":
            self.settings.update({(ranks, size): (None, "cma") for size in sizes})
            return
        best = {}
        for setting in [(algorithm, copy) for algorithm in ALGORITHMS for copy in COPIES]:
            for row in self.run_mpi(ranks, sizes, setting):
                if row["us"] < best.get(row["bytes"], 1e30):
                    best[row["bytes"]] = row["us"]
                    self.settings[ranks, row["bytes"]] = setting

    def round(self, ranks, sizes):
        rows = []
        for memory in ("threads", "shared", "private"):
            rows += self.run("all_reduce_team", ranks, sizes, "--memory", memory)
        small = [size for size in sizes if size < SLEEP_BELOW]
        for memory in ("threads", "private"):
            rows += self.run("all_reduce_team", ranks, small, "--memory", memory, "--spin", "0")
        for way in ("arena", "tcp"):
            rows += self.run("all_reduce_links", ranks, sizes, "--way", way)
        for setting in sorted(set(self.settings.values()), key=str) if self.mpi else []:
            fitting = [size for size in sizes if self.settings[ranks, size] == setting]
            rows += self.run_mpi(ranks, fitting, setting) if fitting else []
        if self.gloo:
            rows += self.run("all_reduce_gloo", ranks, sizes)
        return rows

    def contest(self, ranks):
        sizes = self.asked.sizes
        if self.mpi:
            self.choose_settings(ranks, sizes)
        rounds = [self.round(ranks, sizes) for _ in range(self.asked.rounds)]
        times = [{(row["contestant"], row["bytes"]): row for row in rows} for rows in rounds]
        for size in sizes:
            for name in dict.fromkeys(row["contestant"] for row in rounds[0]):
                if (name, size) not in times[0]:
                    continue
                yield self.figures(ranks, size, name, times)

    def figures(self, ranks, size, name, times):
        us = [each[name, size]["us"] for each in times]
        row = {"contestant": name, "ranks_are": times[0][name, size]["ranks_are"], "ranks": ranks,
               "bytes": size, "us": statistics.median(us), "us_min": min(us), "us_max": max(us),
               "gb_s": size / statistics.median(us) * 1e-3}
        for other in ("mpi", "gloo-ring_chunked"):
            if (other, size) in times[0]:
                ratios = [each[name, size]["us"] / each[other, size]["us"] for each in times]
                row[f"to_{other.split('-')[0]}"] = statistics.median(ratios)
                row[f"to_{other.split('-')[0]}_max"] = max(ratios)
        if name == "mpi":
            row["setting"] = "{}/{}".format(*self.settings[ranks, size])
        return row


def show(row):
    def ratio(key):
        return f"{row[key]:7.2f} (..{row[key + '_max']:.2f})" if key in row else f"{'-':>15}"
    print(f"{row['ranks']:2} {row['bytes']:>10} {row['contestant']:24} {row['us']:11.1f} "
          f"({row['us_min']:.1f}..{row['us_max']:.1f}) us {row['gb_s']:8.3f} GB/s  "
          f"to MPI {ratio('to_mpi')}  to Gloo {ratio('to_gloo')}  {row.get('setting', '')}",
          flush=True)


def main():
    numbers = lambda text: [int(word) for word in text.split(",")]
    parser = argparse.ArgumentParser()
    parser.add_argument("programs")
    parser.add_argument("--ranks", type=numbers, default=[2, 4])
    parser.add_argument("--sizes", type=numbers, default=SIZES)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.2)
    parser.add_argument("--settings", choices=["all", "one"], default="all")
    parser.add_argument("--json", action="store_true")
    machine_load.declare(parser)
    contest = Contest(parser.parse_args())
    for name, there in (("Open MPI", contest.mpi), ("Gloo", contest.gloo)):
        if not there:
            print(f"without {name}, which is not installed", file=sys.stderr)
    machine_load.require_quiet_machine(contest.asked.any_load)
    for ranks in contest.asked.ranks:
        before = machine_load.busy_processors()
        rows = list(contest.contest(ranks))
        load = {"load_before": before, "load_after": machine_load.busy_processors()}
        if not contest.asked.json:
            print(f"{ranks} ranks; {machine_load.text(load)}")
        for row in rows:
            print(json.dumps({**row, **load}), flush=True) if contest.asked.json else show(row)


if __name__ == "__main__":
    main()

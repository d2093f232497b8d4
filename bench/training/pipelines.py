#!/usr/bin/env python3
"""Measures how long the parts of a pipeline are idle, by parts that wait in place of computing.

usage: bench/training/pipelines.py PROGRAMS [idle] [link] [--rounds 3] [--seconds 2] [--json]
                [--any-load] [--parts 2 3] [--micro-batches M ...] [--part-ms MS ...] [--mbit 100]

PROGRAMS: folder with pipeline_bench and troupe. A part takes --part-ms for the forward of a
micro-batch, and as long for its backward.
idle: the share of a batch's time in which a part does not compute, with both orders, on one host.
Beside it is (P - 1) / (M + P - 1), that of P parts and M micro-batches on links without delay.
link: samples/s of 2 parts on two hosts, with TLS on a link of --mbit. Beside them are their ratio to
the smaller of two bounds, and the prediction of `troupe plan`. The bounds are the parts' pace, and
the link's rate / bytes of a sample. It needs root, for network namespaces.
The time of a batch is from its first computation to that of the next batch. The first two batches
do not count. Each figure is median (least .. greatest) of the rounds; cases run in turn, within
each round.
"""
import argparse
import collections
import json
import math
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

from compression import spread
# These lie in a folder that compression adds.
import machine_load
import throttled_link

ORDERS = {"1f1b": (), "fill-drain": ("--pipeline-order", "fill-drain")}
AHEADS = {f"1f1b, ahead {n}": ("--pipeline-ahead", str(n)) for n in (2, 0)}
WARM_UP, BATCHES_MIN = 2, 3
MICRO_SAMPLES = 32
WIDTH = 256  # Floats of a sample's activations.
# The bucket of a link passes at any rate after a pause. A larger one would hide the link's delay.
BURST = "6kb"
SKIPPED = 77

Case = collections.namedtuple("Case", "parts way options micros part_ms")


def samples_of(case):
    return MICRO_SAMPLES * case.micros


def pace_seconds(case):
    """Returns the time of a batch's computations in a part."""
    return 2 * case.micros * case.part_ms / 1000


def words_of(asked, case):
    return [asked.programs / "pipeline_bench", "--parts", case.parts, "--micro-batches",
            case.micros, "--batch", samples_of(case), "--forward-ms", case.part_ms,
            "--backward-ms", case.part_ms, "--width", WIDTH, "--servers", 1, *case.options]


def least_seconds(case):
    """Returns the time of a batch on links without delay."""
    return pace_seconds(case) * (case.micros + case.parts - 1) / case.micros


def batch_seconds(asked, case, expected, train):
    """Trains and returns the mean time of a batch. `expected`: about that time."""
    batches = max(BATCHES_MIN, math.ceil(asked.seconds / expected))
    count = WARM_UP + batches + 1
    with tempfile.TemporaryDirectory(prefix="pipelines-") as folder:
        begins = pathlib.Path(folder) / "begins"
        train([*map(str, words_of(asked, case)), "--begins", str(begins), "--batches", str(count)])
        times = [int(line) / 1e9 for line in begins.read_text().split()]
    if len(times) != count:
        raise RuntimeError(f"{case}: {len(times)} batches began, not {count}")
    mean = (times[-1] - times[WARM_UP]) / batches
    if mean < least_seconds(case):
        raise RuntimeError(f"{case}: a batch took {mean} s, less than {least_seconds(case)} s")
    return mean


def on_this_host(words):
    with tempfile.TemporaryDirectory(prefix="pipelines-") as home:
        done = subprocess.run(words, cwd=home, capture_output=True, text=True, check=False,
                              timeout=throttled_link.RUN_SECONDS_MAX)
    if done.returncode != 0:
        raise RuntimeError(f"status {done.returncode}: {' '.join(words)}\n{done.stderr[-2000:]}")


def in_rounds(asked, cases, measure):
    """Returns {case: its times of a batch}, and the load."""
    load = {"load_before": machine_load.busy_processors()}
    found = {case: [] for case in cases}
    for _ in range(asked.rounds):
        for case in cases:
            found[case].append(measure(case))
    return found, load | {"load_after": machine_load.busy_processors()}


def row_of(case, seconds, figures, more):
    """Returns a row of JSON. `figures`: {name: values of the rounds}."""
    figures = {"samples_s": [samples_of(case) / x for x in seconds], **figures}
    row = {"contestant": f"{case.parts} parts, {case.way}", "micro_batches": case.micros,
           "part_ms": case.part_ms}
    for name, values in figures.items():
        row |= {name: statistics.median(values), f"{name}_min": min(values),
                f"{name}_max": max(values)}
    return row | more


def idle(asked):
    cases = [Case(parts, order, options, micros, part_ms)
             for part_ms in asked.part_ms or [20] for parts in asked.parts
             for order, options in ORDERS.items() for micros in asked.micro_batches or [1, 2, 4, 8]]

    def measure(case):
        return batch_seconds(asked, case, least_seconds(case), on_this_host)

    found, load = in_rounds(asked, cases, measure)
    if not asked.json:
        print(f"idle: share of a part's time, processes of one host; {machine_load.text(load)}")
    for case, seconds in found.items():
        share = [1 - pace_seconds(case) / x for x in seconds]
        formula = 1 - pace_seconds(case) / least_seconds(case)
        if asked.json:
            print(json.dumps(row_of(case, seconds, {"idle": share}, {"formula": formula} | load)))
        else:
            print(f"  {case.parts} parts of {case.part_ms:g} ms  {case.way:<12}M = {case.micros:<4}"
                  f"idle {spread(share, '{:.3f}')}  formula {formula:.3f}")
    sys.stdout.flush()


def predicted_rate(asked, case):
    """Returns the samples/s that `troupe plan` predicts."""
    samples, part = samples_of(case), f"{case.micros * case.part_ms:g}ms"
    words = [asked.programs / "troupe", "plan", "--parts", f"{part}/{part},{part}/{part}",
             "--batch", samples, "--micro-batches", case.micros, "--activations",
             4 * WIDTH * samples, "--network", f"{asked.mbit:g}Mbit/s", *case.options]
    done = subprocess.run([*map(str, words)], check=True, capture_output=True, text=True,
                          timeout=throttled_link.RUN_SECONDS_MAX)
    return float(re.search(r"time of a batch .* (\d+) samples/s", done.stdout)[1])


def over_link(asked, link, certificates):
    cases = [Case(2, way, options, micros, part_ms)
             for part_ms in asked.part_ms or [0.5, 1.5, 4]
             for micros in asked.micro_batches or [16, 32]
             for way, options in (AHEADS | {"fill-drain": ORDERS["fill-drain"]}).items()]
    predicted = {case: predicted_rate(asked, case) for case in cases}

    def measure(case):
        return batch_seconds(
            asked, case, samples_of(case) / predicted[case],
            lambda words: link.train(words, "server:0,line:0", "line:1", ("--tls", certificates)))

    found, load = in_rounds(asked, cases, measure)
    of_link = asked.mbit * 1e6 / 8 / (4 * WIDTH)
    if not asked.json:
        print(f"link: 2 parts, TLS, {4 * WIDTH} bytes of a sample, so the link brings "
              f"{of_link:.0f} samples/s; {machine_load.text(load)}")
    for case, seconds in found.items():
        rates = [samples_of(case) / x for x in seconds]
        bound = min(samples_of(case) / pace_seconds(case), of_link)
        ratio = [x / bound for x in rates]
        if asked.json:
            print(json.dumps(row_of(case, seconds, {"of_bound": ratio},
                                    {"predicted_samples_s": predicted[case]} | load)))
        else:
            print(f"  parts of {case.part_ms:g} ms  M = {case.micros:<4}{case.way:<15}samples/s "
                  f"{spread(rates):<27}of {bound:.0f} {spread(ratio, '{:.3f}'):<24}"
                  f"predicted {predicted[case]:.0f}")
    sys.stdout.flush()


def on_two_hosts(asked):
    try:
        link = throttled_link.ThrottledLink(f"{asked.mbit:g}mbit", BURST)
    except OSError as why:
        print(f"SKIPPED: link: no network namespaces here: {why}")
        sys.exit(SKIPPED)
    try:
        with tempfile.TemporaryDirectory(prefix="pipelines-") as folder:
            certificates = pathlib.Path(folder) / "certs"
            subprocess.run([asked.programs / "troupe", "certs", "--out", certificates, "--hosts",
                            ",".join(throttled_link.ADDRESSES)], check=True, capture_output=True,
                           timeout=throttled_link.RUN_SECONDS_MAX)
            over_link(asked, link, certificates)
    finally:
        link.close()


def main():
    cases = {"idle": idle, "link": on_two_hosts}
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("programs", type=pathlib.Path)
    parser.add_argument("cases", nargs="*", metavar="CASE", help="idle, link; default: both")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2, help="of a run, about")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    parser.add_argument("--parts", type=int, nargs="+", default=[2, 3],
                        help="idle: parts of a line")
    parser.add_argument("--micro-batches", type=int, nargs="+",
                        help="default: 1 2 4 8; link: 16 32")
    parser.add_argument("--part-ms", type=float, nargs="+", help="default: 20; link: 0.5 1.5 4")
    parser.add_argument("--mbit", type=float, default=100, help="link: its rate, Mbit/s")
    machine_load.declare(parser)
    asked = parser.parse_intermixed_args()
    if unknown := set(asked.cases) - set(cases):
        parser.error(f"no such case: {', '.join(sorted(unknown))}; known: {', '.join(cases)}")
    asked.programs = asked.programs.resolve()
    machine_load.require_quiet_machine(asked.any_load)
    for case in asked.cases or cases:
        cases[case](asked)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Prints the fault matrix: 19 kinds of faults by 13 checkers. A cell says how often the fault took
place in runs that the checker examined, or why there can be no such run.

usage: bench/faults/fault_matrix.py FOLDER_OF_PROGRAMS [--quick] [--markdown] [--only RUNNER...]

Exits with 1 where a checker finds a violation, a cell is empty without a reason, or a fault took
place too seldom. Needs root (network namespaces, small disks), strace, and 15 minutes.

scripts/build release --target benchmarks builds all programs that it runs.
"""
import argparse
import collections
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import bad_link  # noqa: E402
import fault_runs as runs  # noqa: E402

FAULTS = {
    "F1": "kill -9 and restart", "F2": "restart before a detector fires", "F3": "pause",
    "F4": "cut both ways", "F5": "cut one way", "F6": "loss, repetition, overtaking",
    "F7": "slow link", "F8": "clock rate, skew", "F9": "slow disk",
    "F10": "full disk, failed fsync",
    "F11": "torn or lost writes", "F12": "bit rot of a checkpoint",
    "F13": "coordinator killed or paused", "F14": "whole chain lost", "F15": "straggler",
    "F16": "malformed messages", "F17": "gradient not finite", "F18": "resize during faults",
    "F19": "other protocol version"}
CHECKERS = {
    "C1": "exactly once", "C2": "linearizable reads", "C3": "conservation", "C4": "staleness",
    "C5": "monotonic reads", "C6": "replica equality", "C7": "checkpoint consistency",
    "C8": "no bad checkpoint", "C9": "evictions", "C10": "liveness", "C11": "training equality",
    "C12": "resources", "C13": "vacuity"}
# Least counts over all runners, for the default amount of work.
MINIMA = {"F1": 1000, "F2": 10, "F3": 1000, "F4": 1000, "F5": 1000, "F6": 1000, "F7": 1, "F8": 1000,
          "F9": 10, "F10": 3, "F11": 40, "F12": 40, "F13": 1000, "F14": 20, "F15": 100, "F16": 1000,
          "F17": 3, "F18": 1000, "F19": 40}

# Faults that the simulator's rows count; all rows must be there. Some rows count as two kinds.
SIMULATED = {
    "servers killed": ("F1",), "workers killed": ("F1",),
    "restarts unnoticed": ("F2",), "servers paused": ("F3",),
    "processes paused": ("F3",), "connections cut": ("F4", "F5"), "cuts that last": ("F4", "F5"),
    "servers deaf": ("F5",), "messages lost": ("F6",), "messages doubled": ("F6",),
    "slow saves": ("F9",), "parts not written": ("F10",),
    "logs not written": ("F10",), "checkpoints unreadable": ("F12",),
    "coordinators killed": ("F13",), "shards lost": ("F14",), "shards restored": ("F14",),
    "workers as backups": ("F15",), "servers added": ("F18",), "servers drained": ("F18",),
    "shards moved": ("F18",)}
JUDGED_BY_WORLD = {"chain": "C1 C2 C5 C6 C10 C13",
                   "job": "C1 C2 C3 C4 C5 C6 C7 C8 C9 C10 C13"}
CHAOS = {
    "kill server": "F1", "kill worker": "F1", "kill actor": "F1", "kill coordinator": "F13",
    "stop shorter than a lease (0.8 s)": "F3", "stop longer than a lease (0.8 s)": "F3",
    "stop longer than silence (1.3 s)": "F3", "stop longer than death (5 s)": "F3",
    "cut both ways": "F4", "cut one way in": "F5", "cut one way out": "F5", "full disk": "F10",
    "flipped bit": "F12"}
DAMAGES = {"truncated": "F11", "a file emptied": "F11", "a block of zeros": "F11"}

SKIPPED = 77  # Exit status of a runner that was skipped.
NO_READER = "only the simulator sees every read and what its reader had been told"
# Cells without a run: (faults, checkers, why). The first that fits counts.
REASONS = (
    ("F7 F11 F16 F17 F19", "C2 C5", NO_READER + ", and it has no such fault"),
    ("F17", "C4 C6 C7 C8", "the push is refused before a clock, a log or a checkpoint has it"),
    ("F17", "C1 C3", "its job has no sums; C11 shows that its batches count once"),
    ("F11 F12", "C6", "replicas are compared by their records, and a job that is resumed has none"),
    ("F2", "C11 C12", "whoever starts a real process again has seen its end"),
)
LEGEND = "C1 and C3 of real jobs rest on the same sums: right where each batch is in them once."


class Outcome:
    def __init__(self, counts, judged):
        self.counts, self.judged = collections.Counter(counts), set(judged)


def outcomes(pairs):
    return [Outcome(*pair) for pair in pairs]


def told(words, seconds=600):
    """Returns the output of a program. Raises Violation unless its status is 0."""
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True,
                          timeout=seconds, check=False)
    said = done.stdout + done.stderr
    if done.returncode != 0:
        why = [x for x in said.splitlines() if re.search("seed|VIOLATED|too few|violat|not", x)]
        raise runs.Violation(" ".join(map(str, words[1:3])), "; ".join(why[-3:]) or said[-300:])
    return said


def rows(said):
    """Returns counts by row: {"servers killed": 12}. Adds up a row's numbers for kinds of jobs."""
    return {name: sum(map(int, counts.split()))
            for name, counts in re.findall(r"^ +(\S.*?)  +(\d+(?: +\d+)*)(?:  too few.*)?$", said, re.M)}


# -- runners: lists of outcomes --

def simulated(asked, home):
    words = ["--mutant", asked.mutant] if asked.mutant else []
    found, missing = [], set(SIMULATED)
    for world, judged in JUDGED_BY_WORLD.items():
        said = told([asked.programs / "troupe", "sim", "--world", world, "--seeds",
                     f"1..{asked.seeds}", *words])
        counts = collections.Counter()
        for name, count in rows(said).items():
            counts.update(dict.fromkeys(SIMULATED.get(name, ()), count))
            missing.discard(name)
        # In each history every process has a clock of its own rate.
        counts["F8"] += int(re.search(r"(\d+) histories", said)[1])
        found.append(Outcome(counts, judged.split()))
    runs.require(not missing, "C13 vacuity", f"troupe sim counts no {missing}")
    return found


def stragglers(asked, home):
    said = told([asked.programs / "troupe", "sim", "--stragglers", "--worker-hours", asked.hours])
    # Columns: case, worker-hours, steps, stragglers, slow out, never out, well out, within.
    found = re.findall(r"^.*?  +\d+ +\d+ +(\d+) +\d+ +\d+ +\d+ +\d+ s$", said, re.M)
    return [Outcome({"F15": sum(map(int, found))}, ["C9", "C13"])]


def chaos(*words):
    def runner(asked, home):
        said = told([asked.programs / "troupe", "chaos", "--seed", asked.seed, "--seconds",
                     asked.chaos_seconds, *words])
        counts = collections.Counter()
        for name, count in rows(said).items():
            if name in CHAOS:
                counts[CHAOS[name]] += count
                counts["F1"] += count if name == "kill coordinator" else 0
            if name == "shards restored":
                counts["F14"] += count
        return [Outcome(counts, re.findall(r"^(C\d+) .*? holds ", said, re.M))]
    return runner


def damages(asked, home):
    said = told([asked.programs / "checkpoint_trials", "--count", asked.damages, "--servers",
                 asked.restores])
    counts = collections.Counter()
    for name, noticed in re.findall(r"^  (\S.*?)  +\d+  +\d+  +(\d+)  ", said, re.M):
        if name != "all":
            counts[DAMAGES.get(name, "F12")] += int(noticed)
    return [Outcome(counts, ["C7", "C8"])]


def fuzz(asked, home):
    count = 0
    for name in "wire", "fragment", "connection", "job":
        said = told([asked.programs / f"{name}_fuzz", f"-runs={asked.inputs}", "-rss_limit_mb=1024",
                     "-timeout=10"])
        count += int(re.search(r"Done (\d+) runs", said)[1])
    return [Outcome({"F16": count}, ["C12"])]


def counting(name, seconds, faults, replicas=2, hosts=1):
    def runner(asked, home):
        link = bad_link.BadLink(asked.seed) if hosts == 2 else None
        try:
            return outcomes(runs.counting(home, asked.programs, name, seconds, faults, replicas,
                                          link, asked.seed))
        finally:
            if link:
                link.close()
    return runner


def training(name, epochs, faults):
    return lambda asked, home: outcomes(runs.training(home, asked.programs, name, epochs, faults,
                                                       seed=asked.seed))


def resumed(asked, home):
    return outcomes(runs.resumed(home, asked.programs, "resumed", 8, [runs.flip, runs.tear],
                                 asked.seed))


def not_finite(asked, home):
    return outcomes(runs.not_finite(home, asked.programs, "not-finite"))


KILLS = [runs.kill("server"), runs.kill("worker"), runs.kill("coordinator")]
STOPS = [runs.stop("server", 0.5), runs.stop("server", 2.5), runs.stop("worker", 2),
         runs.stop("coordinator", 1)]
DISKS = [runs.slow_disk, runs.failed_sync, runs.full_disk]
LINKS = [runs.slow_link, runs.unreliable_link, runs.cut(0, 1), runs.cut(0), runs.cut(1)]

RUNNERS = {
    "sim": simulated,
    "sim --stragglers": stragglers,
    "chaos": chaos("--kill", "--stop", "--partition", "--full-disk", "--flip"),
    "chaos, one replica": chaos("--kill", "--flip", "--replicas", 1),
    "checkpoint_trials": damages,
    "fuzz": fuzz,
    "counting": counting("counting", 70, [*KILLS, *STOPS, *DISKS, runs.strangers, runs.resize]),
    "counting, one replica": counting("lost", 30, [runs.kill_all_servers, *KILLS], replicas=1),
    "counting, bad link": counting("link", 45, LINKS, hosts=2),
    "training": training("training", 30, [*KILLS, *STOPS, *DISKS, runs.strangers, runs.resize,
                                          runs.kill_all_servers]),
    "training, resumed": resumed,
    "training, not finite": not_finite,
}


# -- the matrix --

def reason_for(fault, checker):
    for faults, checkers, why in REASONS:
        if fault in faults.split() and checker in checkers.split():
            return why
    return None


def number(count):
    return str(count) if count < 10_000 else f"{count // 1000}k"


def text_of(cells, notes, markdown):
    heads = ["", *CHECKERS]
    lines = [[f"{fault} {name}", *(cells[fault, checker] for checker in CHECKERS)]
             for fault, name in FAULTS.items()]
    if markdown:
        table = [heads, ["---"] * len(heads), *lines]
        text = "\n".join("| " + " | ".join(line) + " |" for line in table)
        return text + "\n\n" + "\n".join(f"{letter}. n/a because {why}." for why, letter in notes) \
            + f"\n\n{LEGEND}"
    text = "\n".join(f"{line[0]:<36}" + "".join(f"{x:>7}" for x in line[1:])
                     for line in [heads, *lines])
    text += "".join(f"\n{letter}: n/a because {why}" for why, letter in notes)
    return f"{text}\n{LEGEND}"


def total(found):
    return sum((x.counts for x in found), collections.Counter())


def fill(found):
    """Returns {(fault, checker): text}, [(reason, letter)], and cells without count or reason."""
    cells, letters, empty = {}, {}, []
    for fault in FAULTS:
        for checker in CHECKERS:
            count = sum(x.counts[fault] for x in found if checker in x.judged)
            why = reason_for(fault, checker)
            if count > 0:
                cells[fault, checker] = number(count)
            elif why:
                cells[fault, checker] = letters.setdefault(why, chr(ord("a") + len(letters)))
            else:
                cells[fault, checker] = "-"
                empty.append(f"{fault} x {checker}")
    return cells, letters.items(), empty


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("programs", type=pathlib.Path)
    parser.add_argument("--quick", action="store_true", help="little of everything, minima of 1")
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--only", nargs="+", choices=RUNNERS, metavar="RUNNER",
                        help="what they do not fill is not asked for: " + ", ".join(RUNNERS))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--mutant", help="planted in the simulator: must be noticed")
    parser.add_argument("--minimum", nargs="+", default=[], metavar="FAULT=COUNT")
    asked = parser.parse_args()
    asked.programs = asked.programs.resolve()
    asked.minima = {} if asked.only else dict.fromkeys(MINIMA, 1) if asked.quick else dict(MINIMA)
    for each in asked.minimum:
        fault, _, count = each.partition("=")
        if fault not in FAULTS or not count.isdigit():
            parser.error(f"--minimum: '{each}' is not FAULT=COUNT, such as F1=100")
        asked.minima[fault] = int(count)
    asked.seeds, asked.hours = (300, 50) if asked.quick else (2000, 1000)
    asked.chaos_seconds = 45 if asked.quick else 90
    asked.damages, asked.restores = (50, 2) if asked.quick else (400, 4)
    asked.inputs = 2000 if asked.quick else 30000
    lacks = "root: network namespaces and small disks" if os.geteuid() != 0 \
        else "strace: apt-get install strace" if shutil.which("strace") is None else None
    if lacks:
        print(f"SKIPPED: needs {lacks}")
        sys.exit(SKIPPED)
    return asked


def run(asked):
    found, wrong = [], []
    home = pathlib.Path(tempfile.mkdtemp(prefix="fault-matrix-"))
    for name in asked.only or RUNNERS:
        began = time.monotonic()
        try:
            fresh = RUNNERS[name](asked, home)
            found += fresh
            seen = ", ".join(f"{k} {v}" for k, v in sorted(total(fresh).items()) if v)
        except runs.Violation as why:
            seen = "VIOLATED " + ": ".join(why.args).replace("\n", "; ")
            wrong.append(f"{name}: {seen}")
        except Exception as why:  # A runner that breaks has checked no run.
            traceback.print_exc()
            seen = f"FAILED {type(why).__name__}: {why}"
            wrong.append(f"{name}: {seen}")
        print(f"{name:<24} {time.monotonic() - began:6.1f} s  {seen}", flush=True)
    if wrong:
        print(f"logs in {home}")
    else:
        shutil.rmtree(home)
    return found, wrong


def main():
    asked = parse()
    found, wrong = run(asked)
    cells, notes, empty = fill(found)
    print("\n" + text_of(cells, notes, asked.markdown) + "\n")
    totals = total(found)
    few = [f"{fault}: {totals[fault]} times, at least {least} were to come"
           for fault, least in asked.minima.items() if totals[fault] < least]
    if empty and not asked.only:
        wrong.append("neither run nor n/a: " + ", ".join(empty))
    for line in wrong + few:
        print(f"fault_matrix: {line}")
    run_cells = sum(not x.isalpha() and x != "-" for x in cells.values())
    print(f"{run_cells} of {len(cells)} cells run, {len(cells) - run_cells - len(empty)} n/a")
    sys.exit(1 if wrong or few else 0)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Stops a replica while workers push as fast as they can, and watches each process's memory.

usage: bench/kills/frozen_replica.py FOLDER_OF_PROGRAMS [--stops 6] [--stop-s 5] [-- OPTION...]

Runs count_batches with 64 MB of parameters, one chain of two servers, and four workers. A step
changes all parameters, so each push is 64 MB; a worker has at most 256 MiB of pushes under way. The
server behind the head is stopped (SIGSTOP) and continued. It is left out of the chain meanwhile and
joins again behind the head. Prints the largest resident memory of each process before the first
stop, and from each stop until 5 s after its end.
Fails unless every batch is applied exactly once. Fails as well if a server takes more than 10 %
beyond its limits: the pushes under way, the log for a joiner, the parameters and a copy of them,
and as much as the coordinator takes, which has no parameters.
"""
import argparse
import os
import pathlib
import signal
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests/distributed"))
import cluster  # noqa: E402

ELEMENTS, WORKERS, CAP_MIB = 16_000_000, 4, 256
JOINER_LOG_MIB = 256
VALUES_MIB = ELEMENTS * 4 / (1 << 20)
PASS_SAMPLES = 200
TRIAL_PASSES = 2
AWAKE_S = 5


def resident_mib(pid):
    for line in cluster.read_proc(pid, "status").splitlines():
        if line.startswith(b"VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0


def watch(run, peaks, phase, seconds):
    """Adds the peaks of one phase of `seconds`."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and run.launcher.poll() is None:
        for who, pid in run.processes().items():
            of_process = peaks.setdefault(who, {})
            of_process[phase] = max(of_process.get(phase, 0.0), resident_mib(pid))
        time.sleep(0.05)


def disturb(run, asked):
    """Returns {process: {stop: MiB}}, where stop 0 is the time before the first stop."""
    peaks = {}
    run.await_event("training_started")
    watch(run, peaks, 0, 5)
    for number in range(1, asked.stops + 1):
        victim = run.processes()["server", 1]
        os.kill(victim, signal.SIGSTOP)
        watch(run, peaks, number, asked.stop_s)
        os.kill(victim, signal.SIGCONT)
        watch(run, peaks, number, AWAKE_S)
    if run.launcher.poll() is not None:
        sys.exit(f"FAILED: the run ended before its last stop; it needs more samples\n{run.story()}")
    return peaks


def start(asked, home, name, passes, words):
    return cluster.Run(home, name, [
        asked.programs.resolve() / "count_batches", "--elements", ELEMENTS, "--batch", 1, "--workers",
        WORKERS, "--servers", 2, "--replicas", 2, "--shards", 1, "--push-memory", CAP_MIB, "--samples",
        PASS_SAMPLES, "--epochs", passes, "--checkpoint-every", "100000s", "--run-dir",
        home / name / "run", "--report", home / name / "report.json", *words])


def passes_for(asked, home, words):
    """Returns a number of passes during which all stops fit, at 1.5 times the speed of a trial."""
    trial = start(asked, home, "trial", TRIAL_PASSES, words)
    try:
        status = trial.wait(300)
        if status != 0:
            sys.exit(f"FAILED: status {status}\n{trial.story()}")
    finally:
        trial.end()
    seconds = 10 + asked.stops * (asked.stop_s + AWAKE_S)
    return max(1, int(1.5 * seconds * trial.report["samples_per_second"] / PASS_SAMPLES))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("programs", type=pathlib.Path)
    parser.add_argument("--stops", type=int, default=6)
    parser.add_argument("--stop-s", type=float, default=5.0)
    words = sys.argv[1:]
    split = words.index("--") if "--" in words else len(words)
    asked = parser.parse_args(words[:split])
    with tempfile.TemporaryDirectory(prefix="frozen-") as home:
        home = pathlib.Path(home)
        passes = passes_for(asked, home, words[split + 1:])
        run = start(asked, home, "run0", passes, words[split + 1:])
        try:
            peaks = disturb(run, asked)
            status = run.wait(600)
        finally:
            run.end()
        print(f"{'MiB':<15}{'before':>9}" + "".join(f"{x:>9}" for x in range(1, asked.stops + 1)))
        for (role, index), of_process in sorted(peaks.items()):
            print(f"{role + ' ' + str(index):<15}"
                  + "".join(f"{of_process.get(x, 0):>9.0f}" for x in range(asked.stops + 1)))
        servers = [x for (role, _), x in peaks.items() if role == "server"]
        largest = max(mib for x in servers for mib in x.values())
        cap = (WORKERS * CAP_MIB + JOINER_LOG_MIB + 2 * VALUES_MIB
               + max(peaks["coordinator", 0].values()))
        exact = status == 0 and cluster.is_exact(run.events, ELEMENTS)
        print(f"a server holds {largest:.0f} MiB at most, {largest / cap:.2f} of the {cap:.0f} MiB of its "
              "limits; " + ("exactly once" if exact else f"FAILED: status {status}\n{run.story()}"))
        sys.exit(not exact or largest > 1.1 * cap)


if __name__ == "__main__":
    main()

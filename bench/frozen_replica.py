#!/usr/bin/env python3
"""Stops a replica while workers push as fast as they can, and watches what each process holds.

usage: bench/frozen_replica.py FOLDER_OF_PROGRAMS [--freezes 5] [--freeze-s 5] [-- OPTION...]

count_batches with 64 MB of parameters, one chain of two servers, four workers of which each has at most
256 MiB of pushes under way: a step changes all parameters, so each push is 64 MB. The server behind the
head is stopped (SIGSTOP) and wakes up again. Prints the largest resident memory of each process before the
first stop, while the replica is stopped, and in the 5 s after it woke. Fails unless every batch is applied
exactly once, and where a server grew by more than the 256 MiB of a chain's log and 10 %.
"""
import argparse
import os
import pathlib
import signal
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests/distributed"))
import cluster  # noqa: E402

ELEMENTS, WORKERS, CAP_MIB = 16_000_000, 4, 256
PASS_SAMPLES = 400
PHASES = ("before", "stopped", "awake")


def resident_mib(pid):
    for line in cluster.read_proc(pid, "status").splitlines():
        if line.startswith(b"VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0


def watch(run, peaks, phase, seconds):
    """The peaks of a phase, looked at for so long."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and run.launcher.poll() is None:
        for who, pid in run.processes().items():
            of_process = peaks.setdefault(who, dict.fromkeys(PHASES, 0.0))
            of_process[phase] = max(of_process[phase], resident_mib(pid))
        time.sleep(0.05)


def disturb(run, asked):
    """{who: {phase: MiB}}."""
    peaks = {}
    run.await_text("training with")
    watch(run, peaks, "before", 5)
    for number in range(asked.freezes):
        victim = run.processes()["server", 1 - number % 2]  # Where the other one leads.
        os.kill(victim, signal.SIGSTOP)
        watch(run, peaks, "stopped", asked.freeze_s)
        os.kill(victim, signal.SIGCONT)
        watch(run, peaks, "awake", 5)
    if run.launcher.poll() is not None:
        sys.exit(f"FAILED: the run ended before its last stop; it needs more samples\n{run.story()}")
    return peaks


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("programs", type=pathlib.Path)
    parser.add_argument("--freezes", type=int, default=5)
    parser.add_argument("--freeze-s", type=float, default=5.0)
    words = sys.argv[1:]
    split = words.index("--") if "--" in words else len(words)
    asked = parser.parse_args(words[:split])
    passes = int(10 + asked.freezes * (asked.freeze_s + 5) / 5)
    with tempfile.TemporaryDirectory(prefix="frozen-") as home:
        home = pathlib.Path(home)
        run = cluster.Run(home, "run0", [
            asked.programs.resolve() / "count_batches", "--elements", ELEMENTS, "--batch", 1, "--workers",
            WORKERS, "--servers", 2, "--replicas", 2, "--chains", 1, "--memory-cap", CAP_MIB, "--samples",
            PASS_SAMPLES, "--epochs", passes, "--checkpoint-every", "100000s", "--run-dir", home / "run",
            *words[split + 1:]])
        try:
            peaks = disturb(run, asked)
            status = run.wait(600)
        finally:
            run.end()
        print(f"{'MiB':<15}" + "".join(f"{phase:>9}" for phase in PHASES))
        for (role, index), of_process in sorted(peaks.items()):
            print(f"{role + ' ' + str(index):<15}"
                  + "".join(f"{of_process[phase]:>9.0f}" for phase in PHASES))
        growth = max(max(x["stopped"], x["awake"]) - x["before"]
                     for (role, _), x in peaks.items() if role == "server")
        exact = status == 0 and f"right: {ELEMENTS} of {ELEMENTS}\n" in run.out
        print(f"{asked.freezes} stops of {asked.freeze_s:g} s: a server grew by {growth:.0f} MiB at most; "
              + ("exactly once" if exact else f"FAILED: status {status}\n{run.story()}"))
        sys.exit(not exact or growth > 1.1 * CAP_MIB)


if __name__ == "__main__":
    main()

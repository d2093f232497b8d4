#!/usr/bin/env python3
"""Trains for a long time while a process is killed now and then, and watches what each process holds.

usage: bench/soak.py PROGRAM [--minutes 30] [--kill-every 20] [-- OPTION...]

Prints resident memory, descriptors and threads of each process at minute 5 and at the end, then the
verdict: the run must end by SIGINT with status 130, every killed process recovered.
"""
import argparse
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

ROLES = ("coordinator", "server", "worker")


def read(path):
    try:
        return pathlib.Path(path).read_text()
    except OSError:
        return ""


def children(launcher):
    """{"worker-1": pid} of a launcher."""
    found = {}
    for pid in read(f"/proc/{launcher}/task/{launcher}/children").split():
        words = read(f"/proc/{pid}/cmdline").split("\0")
        if "--child" in words:
            kind, index = words[words.index("--child") + 1].split(":")[:2]
            found[f"{ROLES[int(kind)]}-{index}"] = int(pid)
    return found


def holdings(pid):
    """Resident MB, descriptors, threads."""
    status = dict(line.split(":", 1) for line in read(f"/proc/{pid}/status").splitlines() if ":" in line)
    try:
        descriptors = len(os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        descriptors = 0
    resident = int(status.get("VmRSS", "0").split()[0]) / 1024
    return resident, descriptors, int(status.get("Threads", "0"))


def show(title, launcher):
    print(f"\n{title}\n{'process':<15}{'RSS MB':>8}{'fds':>6}{'threads':>9}")
    for name, pid in {"launcher": launcher, **dict(sorted(children(launcher).items()))}.items():
        resident, descriptors, threads = holdings(pid)
        print(f"{name:<15}{resident:>8.1f}{descriptors:>6}{threads:>9}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--kill-every", type=float, default=20, metavar="SECONDS")
    parser.add_argument("--seed", type=int, default=1)
    words = sys.argv[1:]
    split = words.index("--") if "--" in words else len(words)
    asked = parser.parse_args(words[:split])
    home = pathlib.Path(tempfile.mkdtemp(prefix="soak-"))
    words = [asked.program.resolve(), "--processes", "--epochs", "1000000", "--report", "report.json",
             *sys.argv[2 + split:]]
    chance = random.Random(asked.seed)
    with open(home / "out", "wb") as out:
        run = subprocess.Popen(words, cwd=home, stdout=out, stderr=out, stdin=subprocess.DEVNULL)
    start = time.monotonic()
    kills, middle_shown = 0, False
    next_kill = start + asked.kill_every
    try:
        while time.monotonic() - start < asked.minutes * 60:
            time.sleep(0.5)
            if run.poll() is not None:
                sys.exit(f"the run ended early with status {run.returncode}: {home}/out")
            now = time.monotonic()
            if not middle_shown and now - start >= min(300, asked.minutes * 30):
                show(f"after {(now - start) / 60:.1f} minutes", run.pid)
                middle_shown = True
            if now >= next_kill:
                name, pid = chance.choice(sorted(children(run.pid).items()))
                os.kill(pid, signal.SIGKILL)
                kills += 1
                next_kill += asked.kill_every
        show(f"after {(time.monotonic() - start) / 60:.1f} minutes", run.pid)
        time.sleep(5)  # The last killed process may still be on its way back.
        run.send_signal(signal.SIGINT)
        status = run.wait(60)
    finally:
        if run.poll() is None:
            run.kill()
    report = json.loads((home / "report.json").read_text())
    recovered = [x for x in report["recoveries"] if x["recovered_ms"] is not None]
    times = sorted(x["recovered_ms"] for x in recovered)
    print(f"\n{kills} kills, {len(report['recoveries'])} deaths reported, {len(recovered)} recovered, "
          f"after {times[len(times) // 2]:.0f} ms (median), {times[-1]:.0f} ms (longest)")
    print(f"{report['samples_per_second']:.0f} samples/s, accuracy {report['test_accuracy']}, "
          f"status {status}, files in {home}")
    sys.exit(status != 130 or len(recovered) < len(report["recoveries"]))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Trains for long while processes are killed, and watches each process's memory and descriptors.

usage: bench/faults/soak.py PROGRAM [--minutes 30] [--kill-every 20] [-- OPTION...]

Prints resident memory, descriptors and threads of each process at minute 5 and at the end, then the
verdict: the run must end by SIGINT with status 130, every killed process recovered.
"""
import argparse
import os
import pathlib
import random
import signal
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests/distributed"))
import cluster  # noqa: E402


def holdings(pid):
    """Returns resident MB, descriptors and threads."""
    text = cluster.read_proc(pid, "status").decode()
    status = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
    try:
        descriptors = len(os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        descriptors = 0
    resident = int(status.get("VmRSS", "0").split()[0]) / 1024
    return resident, descriptors, int(status.get("Threads", "0"))


def show(title, run):
    print(f"\n{title}\n{'process':<15}{'RSS MB':>8}{'fds':>6}{'threads':>9}")
    for who, pid in [(("launcher",), run.launcher.pid), *sorted(run.processes().items())]:
        resident, descriptors, threads = holdings(pid)
        name = "-".join(map(str, who))
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
    run = cluster.Run(home, "run0", words)
    start = time.monotonic()
    kills, middle_shown = 0, False
    next_kill = start + asked.kill_every
    try:
        while time.monotonic() - start < asked.minutes * 60:
            time.sleep(0.5)
            if run.launcher.poll() is not None:
                sys.exit(f"FAILED: the run ended early\n{run.story()}")
            now = time.monotonic()
            if not middle_shown and now - start >= min(300, asked.minutes * 30):
                show(f"after {(now - start) / 60:.1f} minutes", run)
                middle_shown = True
            if now >= next_kill:
                kills += run.kill(*chance.choice(sorted(run.processes())))
                next_kill += asked.kill_every
        show(f"after {(time.monotonic() - start) / 60:.1f} minutes", run)
        time.sleep(5)  # The last killed process may still be restarting.
        run.signal(signal.SIGINT)
        status = run.wait(time.monotonic() - run.started + 60)
    finally:
        run.end()
    report = run.report
    recovered = [x for x in report["recoveries"] if x["recovered_ms"] is not None]
    times = sorted(x["recovered_ms"] for x in recovered)
    print(f"\n{kills} kills, {len(report['recoveries'])} deaths reported, {len(recovered)} recovered, "
          f"after {times[len(times) // 2]:.0f} ms (median), {times[-1]:.0f} ms (longest)")
    print(f"{report['samples_per_second']:.0f} samples/s, accuracy {report['test_accuracy']}, "
          f"status {status}, files in {home}")
    sys.exit(status != 130 or len(recovered) < max(kills, len(report["recoveries"])))


if __name__ == "__main__":
    main()

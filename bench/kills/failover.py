#!/usr/bin/env python3
"""Kills processes of replicated clusters and measures how long acknowledgements pause.

usage: bench/kills/failover.py FOLDER_OF_PROGRAMS [--kills 100] [--runs 1] [--silent] [-- OPTION...]

Each run is count_batches with three replicas, four servers and four workers. It has to end with
every batch applied exactly once and without a rollback. The traces (--record) tell when each server
applied each push. The printed time of a killed server is from the kill to the end of the pause on
its chains. That of another process, or of a server that was in no chain ("idle"), is the longest
pause of any chain within the next 1.5 s. With --silent servers are stopped for some seconds instead
of killed: their silence alone shows the fault, as when a whole host is lost.
"""
import argparse
import bisect
import json
import os
import pathlib
import random
import shutil
import signal
import struct
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests/distributed"))
import cluster  # noqa: E402

SERVERS, WORKERS = 4, 4
WINDOW_S = 1.5  # After a kill.
SILENCE_S = 3.0  # With --silent.
KILLED = ("server", "idle server", "worker", "coordinator")
FIXED_HEADER = struct.Struct("<8sIQIQQIQI")
RECORD_BYTES, EVENT_AT, APPLIED = 64, 56, 1


def boot_clock():
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def read_record(path):
    """Returns chain, server, and {version: s} of the pushes that the server applied. Returns None
    if it was killed before it wrote the header.
    """
    data = path.read_bytes()
    if len(data) < FIXED_HEADER.size:
        return None
    header = FIXED_HEADER.unpack_from(data)
    chain, server, partitions = header[3], header[6], header[8]
    begin = FIXED_HEADER.size + 4 * partitions + 4
    times = {}
    for at in range(begin, len(data) - RECORD_BYTES + 1, RECORD_BYTES):
        time_ns, version = struct.unpack_from("<QQ", data, at)
        if struct.unpack_from("<I", data, at + EVENT_AT)[0] == APPLIED:
            times[version] = time_ns * 1e-9
    return chain, server, times


def first_times(records):
    """Returns {chain: times at which the first replica applied a push}, ordered."""
    first = {}
    for chain, _, times in records:
        steps = first.setdefault(chain, {})
        for version, at in times.items():
            steps[version] = min(steps.get(version, at), at)
    return {chain: sorted(steps.values()) for chain, steps in first.items()}


def longest_pause(times, begin, end):
    """Returns (length, end) of the longest pause that begins within these times."""
    at = max(1, bisect.bisect_left(times, begin))
    pauses = [(times[i] - times[i - 1], times[i])
              for i in range(at, len(times)) if times[i - 1] < end]
    return max(pauses, default=(0.0, begin))


def judge(record, kills):
    """Returns {role: times in ms}."""
    records = [x for x in map(read_record, sorted(record.glob("*.pushes"))) if x]
    applied = first_times(records)
    last = min(times[-1] for times in applied.values() if times)
    by_server = [(chain, server, sorted(times.values())) for chain, server, times in records]
    found = {killed: [] for killed in KILLED}
    for role, index, at in kills:
        if at >= last:
            continue  # No further push was to come.
        # The server's last records may be lost with it.
        chains = {chain for chain, server, times in by_server if (role, index) == ("server", server)
                  and bisect.bisect(times, at - 0.4) < bisect.bisect(times, at)}
        if chains:
            # Pushes on their way through the chain may still become final for some ms.
            end = max(longest_pause(applied[c], at, at + 0.05)[1] for c in chains)
            found[role].append(1e3 * (end - at))
        else:
            killed = "idle server" if role == "server" else role
            found[killed].append(1e3 * max(longest_pause(x, at, at + WINDOW_S)[0]
                                           for x in applied.values()))
    return found


def wake(pid):
    try:
        os.kill(pid, signal.SIGCONT)
    except ProcessLookupError:
        pass  # The launcher killed the process.


def one_run(home, asked, dice, more):
    seconds = asked.kills * (asked.pause_s + SILENCE_S * asked.silent) + 4
    samples = int(750 * 1.25 * seconds) // WORKERS * WORKERS
    words = [asked.programs.resolve() / "count_batches", "--elements", "100000", "--batch", "1",
             "--workers", str(WORKERS), "--servers", str(SERVERS), "--replicas", "3",
             "--samples", str(samples), "--epochs", "1", "--record", home / "record",
             "--report", home / "report.json", "--run-dir", home / "run",
             *cluster.slow([4] * WORKERS), *more]
    run = cluster.Run(home, "run0", words)
    kills = []
    try:
        run.await_event("training_started")
        time.sleep(1)
        servers = [("server", i) for i in range(SERVERS)]
        others = [("worker", i) for i in range(WORKERS)] + [("coordinator", 0)]
        while len(kills) < asked.kills and run.launcher.poll() is None:
            only_servers = asked.silent or dice.random() < 0.7
            role, index = dice.choice(servers if only_servers else others)
            pid = run.processes().get((role, index))
            if pid is not None:
                os.kill(pid, signal.SIGSTOP if asked.silent else signal.SIGKILL)
                kills.append((role, index, boot_clock()))
            if asked.silent and pid is not None:
                time.sleep(SILENCE_S)
                wake(pid)
            time.sleep(dice.uniform(0.7, 1.3) * asked.pause_s)
        status = run.wait(120 + 4 * seconds)
    finally:
        run.end()
    report = json.loads((home / "report.json").read_text())
    lost = [x for x in report["recoveries"] if x["updates_rolled_back"]]
    exact = cluster.is_exact(run.events, 100_000) and report["test_accuracy"] == 1.0
    if status != 0 or lost or not exact or run.told(*cluster.ROLLBACKS):
        sys.exit(f"FAILED: status {status}, rolled back {lost}, exact {exact}\n{run.story()}")
    if len(kills) < asked.kills:
        sys.exit(f"FAILED: it ended after {len(kills)} of {asked.kills}, so it shows too little")
    return kills, judge(home / "record", kills), report


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("programs", type=pathlib.Path)
    parser.add_argument("--kills", type=int, default=100, help="of one run")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--pause-s", type=float, default=1.0, help="mean time between two kills")
    parser.add_argument("--silent", action="store_true", help="stop servers instead")
    parser.add_argument("--times", type=pathlib.Path, metavar="FILE",
                        help="all times are kept there; those of former calls count as well")
    parser.add_argument("--seed", type=int, default=1)
    words = sys.argv[1:]
    split = words.index("--") if "--" in words else len(words)
    asked = parser.parse_args(words[:split])
    dice = random.Random(asked.seed)
    done = "stops" if asked.silent else "kills"
    all_times = {killed: [] for killed in KILLED}
    if asked.times and asked.times.exists():
        all_times = json.loads(asked.times.read_text())
    for i in range(asked.runs):
        home = pathlib.Path(tempfile.mkdtemp(prefix="failover-"))
        kills, found, report = one_run(home, asked, dice, words[split + 1:])
        for role, times in found.items():
            all_times[role] += times
        print(f"run {i}: {len(kills)} {done}, {report['samples_per_second']:.0f} samples/s, "
              "exactly once, nothing rolled back", flush=True)
        shutil.rmtree(home)
    if asked.times:
        asked.times.write_text(json.dumps(all_times))
    what = "stopped" if asked.silent else "killed"
    print(f"{what:<13}{done:>6}{'median':>9}{'90 %':>9}{'99 %':>9}{'max':>9}   ms")
    for role, times in all_times.items():
        times.sort()
        at = [times[min(len(times) - 1, int(q * len(times)))] for q in (0.5, 0.9, 0.99, 1)] \
            if times else [0, 0, 0, 0]
        print(f"{role:<13}{len(times):>6}" + "".join(f"{x:>9.1f}" for x in at))


if __name__ == "__main__":
    main()

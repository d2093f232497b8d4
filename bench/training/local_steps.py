#!/usr/bin/env python3
"""Measures what local steps save and cost, by training on MNIST.

usage: bench/training/local_steps.py PROGRAMS [--data DIR] [--rounds 3] [--rate 10mbit]
                                     [loopback] [link]

loopback: accuracy, and bytes on links, of 4 workers that take 1, 10 or 100 local steps of 64
samples, beside the plain run of as many samples.
link: samples/s of a worker on a link of --rate to the server, divided by 64 / (c + b / H), with
H = 100 and without local steps. Here c is the time of a local step without exchanges, and b the time
of the bytes of an exchange, in both directions one after the other, at the measured rate of the
link. It needs root, for network namespaces.
Each figure is median (least .. greatest) of the rounds, which have other seeds.
"""
import argparse
import gzip
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import compression
import throttled_link
from compression import spread

BATCH = 64
PROBE_BYTES = 4_000_000
PROBE_SECONDS_MAX = 600
NESTEROV = ("--optimizer", "nesterov", "--lr", "0.7", "--momentum", "0.9", "--local-lr", "0.2")
# In asp the differences of all workers are added up, so the outer rate is small.
RUNS = [("plain", "asp", 0, ("--lr", "0.2"))]
RUNS += [("local", "bsp", steps, NESTEROV) for steps in (1, 10, 100)]
RUNS += [("local", "asp", steps, ("--local-lr", rate, "--lr", outer))
         for steps, rate, outer in ((1, "0.4", "0.5"), (10, "0.6", "0.25"), (100, "0.4", "0.25"))]
RECEIVER = """
import socket, time
here = socket.create_server(("{address}", 7778))
print("ready", flush=True)
link = here.accept()[0]
count, began = len(link.recv(65536)), time.monotonic()
first = count
while part := link.recv(65536):
    count += len(part)
print((count - first) / (time.monotonic() - began))
"""
SENDER = """
import socket
socket.create_connection(("{address}", 7778)).sendall(bytes({count}))
"""


def trained(program, words):
    with tempfile.TemporaryDirectory(prefix="local-steps-") as home:
        subprocess.run([program, *words, "--report", "report.json"], cwd=home, check=True,
                       stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        return compression.report_of(home)


def shortened(source, folder, count):
    """Writes MNIST with the first `count` training images into `folder`."""
    for kind, head, width in (("images-idx3", 16, 784), ("labels-idx1", 8, 1)):
        shutil.copy(source / f"t10k-{kind}-ubyte.gz", folder)
        whole = gzip.decompress((source / f"train-{kind}-ubyte.gz").read_bytes())
        (folder / f"train-{kind}-ubyte").write_bytes(
            whole[:4] + count.to_bytes(4, "big") + whole[8:head + count * width])


def stepping(steps):
    return ["--batch", str(BATCH * steps), "--local-steps", str(steps)]


def on_loopback(programs, data, rounds):
    print("loopback: 10 passes, 4 workers, 2 servers, processes, mlp:256")
    for kind, sync, steps, more in RUNS:
        program, own = ((programs / "local_steps", stepping(steps)) if kind == "local"
                        else (programs / "async_sgd", []))
        reports = [trained(program, [*data, "--sync", sync, *own, *more, "--seed", str(seed)])
                   for seed in range(1, rounds + 1)]
        name = f"{sync}, H = {steps}" if kind == "local" else f"{sync}, plain"
        accuracy = spread([x["test_accuracy"] for x in reports], "{:.4f}")
        sent = spread([sum(x["wire_bytes"].values()) / 1e6 for x in reports], "{:.1f}")
        print(f"  {name:<14}accuracy {accuracy}  MB on links {sent}", flush=True)


def bytes_per_second(link):
    """Returns the rate of one connection over the link."""
    address = throttled_link.ADDRESSES[0]
    receiver = subprocess.Popen(
        [*link.prefixes[0], sys.executable, "-c", RECEIVER.format(address=address)],
        stdout=subprocess.PIPE, text=True)
    receiver.stdout.readline()
    subprocess.run([*link.prefixes[1], sys.executable, "-c",
                    SENDER.format(address=address, count=PROBE_BYTES)], check=True,
                   timeout=PROBE_SECONDS_MAX)
    return float(receiver.communicate(timeout=PROBE_SECONDS_MAX)[0])


def on_link(programs, mnist, rounds, link):
    measured = bytes_per_second(link)
    print(f"link: {measured:.0f} bytes/s measured; 1 worker, 1 server, asp, mlp:256")
    common = ["--model", "mlp:256", "--sync", "asp", "--workers", "1", "--servers", "1"]
    cases = (("H = 100", programs / "local_steps", stepping(100), 100, 60_000),
             ("plain", programs / "async_sgd", [], 1, 1_920))
    shares, rates = {}, {}
    for name, program, own, steps, samples in cases:
        shares[name], rates[name] = [], []
        with tempfile.TemporaryDirectory(prefix="local-steps-") as folder:
            shortened(mnist, pathlib.Path(folder), samples)
            words = [*common, "--data", f"mnist:{folder}", *own, "--epochs", "1"]
            for seed in range(1, rounds + 1):
                calm = trained(programs / "local_steps",
                               [*common, "--data", f"mnist:{mnist}", "--threads",
                                *stepping(900), "--epochs", "5"])
                report = compression.over_link(program, [*words, "--seed", str(seed)], link, 1)
                exchange = sum(report["wire_bytes"].values()) / report["pushes"]["acknowledged"]
                seconds = BATCH / calm["samples_per_second"] + exchange / measured / steps
                rates[name].append(report["samples_per_second"])
                shares[name].append(report["samples_per_second"] * seconds / BATCH)
        print(f"  {name:<8} samples/s {spread(rates[name])}  of the bound "
              f"{spread(shares[name], '{:.3f}')}", flush=True)
    local, plain = (name for name, *_ in cases)
    gains = [a / b for a, b in zip(rates[local], rates[plain])]
    kept = [a / b for a, b in zip(shares[local], shares[plain])]
    print(f"  {local} over {plain}: {spread(gains, '{:.1f}')}, "
          f"{spread(kept, '{:.3f}')} of (c + b) / (c + b / H)")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("programs", type=pathlib.Path)
    parser.add_argument("parts", nargs="*", metavar="PART", help="loopback, link")
    parser.add_argument("--data", default=os.environ.get("TROUPE_DATA", "../shared/data"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rate", default="10mbit", help="as tc(8) writes it")
    asked = parser.parse_intermixed_args()
    if unknown := set(asked.parts) - {"loopback", "link"}:
        parser.error(f"no such part: {', '.join(sorted(unknown))}; known: loopback, link")
    programs = asked.programs.resolve()
    mnist = pathlib.Path(asked.data).resolve() / "mnist"
    if "loopback" in asked.parts or not asked.parts:
        on_loopback(programs, ["--data", f"mnist:{mnist}", "--model", "mlp:256"], asked.rounds)
    if "link" in asked.parts or not asked.parts:
        try:
            link = throttled_link.ThrottledLink(asked.rate)
        except OSError as why:
            print(f"link: left out: no network namespaces here: {why}", file=sys.stderr)
            return
        try:
            on_link(programs, mnist, asked.rounds, link)
        finally:
            link.close()


if __name__ == "__main__":
    main()

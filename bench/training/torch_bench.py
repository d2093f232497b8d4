#!/usr/bin/env python3
"""Trains the same network with PyTorch and with Troupe, in turn, and prints samples/s and ratios.

usage: bench/training/torch_bench.py PROGRAMS [--rounds 5] [--full] [--json] [--batch 64 256]
                                     [--only NAME] [--any-load]

PROGRAMS: folder with async_sgd and plain_loop. The network is 784-512-256-10, its input drawn, of
MNIST's shape. Contestants:
  torch           one PyTorch process, one thread
  torch-ddp       DistributedDataParallel over Gloo, 2 processes, one thread each
  torch-rpc       a parameter server over PyTorch RPC, 2 workers; a step is one call that brings a
                  gradient and takes values home
  plain           one plain loop of Troupe's trainer
  plain-x2        two independent plain loops at a time: the limit of 2 workers
  troupe          async_sgd, 2 workers, 1 server, processes
  troupe-ahead    the same with --pull-ahead 1
Each figure is median (least .. greatest) of the rounds; ratios are of the same round. Without
PyTorch a message replaces its rows.
"""
import argparse
import json
import os
import pathlib
import random
import resource
import shutil
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time

WIDTHS = (784, 512, 256, 10)
WORKERS = 2
RATE = 0.01
WARM_UP_STEPS = 20
SELF = pathlib.Path(__file__).resolve()
sys.path.insert(0, str(SELF.parents[1]))
import machine_load  # noqa: E402


# -- PyTorch's sides, each in processes of their own ------------------------------------------------


def make_network(torch):
    torch.manual_seed(1)
    layers = []
    for width, following in zip(WIDTHS, WIDTHS[1:]):
        layers += [torch.nn.Linear(width, following), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers[:-1])


def make_batches(torch, batch):
    """Draws all batches once, as loading is no part of the comparison."""
    generator = torch.Generator().manual_seed(2)
    return [(torch.rand(batch, WIDTHS[0], generator=generator),
             torch.randint(0, WIDTHS[-1], (batch,), generator=generator)) for _ in range(64)]


def timed(step, batches, seconds):
    """Returns steps a second, after a warm-up."""
    for i in range(WARM_UP_STEPS):
        step(*batches[i % len(batches)])
    begin, steps = time.monotonic(), 0
    while time.monotonic() - begin < seconds:
        for _ in range(8):
            step(*batches[steps % len(batches)])
            steps += 1
    return steps / (time.monotonic() - begin)


def trained_by(torch, network, optimizer):
    loss_of = torch.nn.CrossEntropyLoss()

    def step(inputs, labels):
        optimizer.zero_grad(set_to_none=True)
        loss_of(network(inputs), labels).backward()
        optimizer.step()

    return step


def play_alone(torch, asked):
    network = make_network(torch)
    step = trained_by(torch, network, torch.optim.SGD(network.parameters(), lr=RATE))
    return timed(step, make_batches(torch, asked.batch[0]), asked.seconds) * asked.batch[0]


def play_ddp(torch, asked):
    import torch.distributed as distributed
    distributed.init_process_group("gloo", rank=asked.rank, world_size=WORKERS)
    network = torch.nn.parallel.DistributedDataParallel(make_network(torch))
    step = trained_by(torch, network, torch.optim.SGD(network.parameters(), lr=RATE))
    batches = make_batches(torch, asked.batch[0])
    # Every step waits for the other process, so both have to take the same number of steps.
    begin = time.monotonic()
    for i in range(WARM_UP_STEPS):
        step(*batches[i % len(batches)])
    pace = torch.tensor([(time.monotonic() - begin) / WARM_UP_STEPS])
    distributed.broadcast(pace, 0)
    steps = max(16, int(asked.seconds / pace.item()))
    begin = time.monotonic()
    for i in range(steps):
        step(*batches[i % len(batches)])
    rate = steps / (time.monotonic() - begin) * asked.batch[0]
    distributed.destroy_process_group()
    return rate


class Server:
    """The RPC variant's server: one vector, and a lock, as calls come on many threads."""

    vector, lock = None, None


def take_step(gradient):
    """Runs in the server's process: applies a gradient and returns the new values."""
    with Server.lock:
        Server.vector.sub_(gradient, alpha=RATE)
        return Server.vector.clone()


def play_rpc(torch, asked):
    import threading
    import torch.distributed.rpc as rpc
    names = ["server", *(f"worker{i}" for i in range(WORKERS))]
    network = make_network(torch)
    parameters = list(network.parameters())
    vector = torch.nn.utils.parameters_to_vector(parameters).detach()
    if asked.rank == 0:
        Server.vector, Server.lock = vector, threading.Lock()
    rpc.init_rpc(names[asked.rank], rank=asked.rank, world_size=1 + WORKERS)
    rate = 0.0
    if asked.rank > 0:
        loss_of = torch.nn.CrossEntropyLoss()

        def step(inputs, labels):
            gradients = torch.autograd.grad(loss_of(network(inputs), labels), parameters)
            values = rpc.rpc_sync("server", take_step,
                                  (torch.cat([x.reshape(-1) for x in gradients]),))
            with torch.no_grad():
                torch.nn.utils.vector_to_parameters(values, parameters)

        rate = timed(step, make_batches(torch, asked.batch[0]), asked.seconds) * asked.batch[0]
    rpc.shutdown()
    return rate


PARTS = {"torch": (play_alone, 1), "torch-ddp": (play_ddp, WORKERS),
         "torch-rpc": (play_rpc, 1 + WORKERS)}


def play(asked):
    import torch
    torch.set_num_threads(1)
    rate = PARTS[asked.play][0](torch, asked)
    print(json.dumps({"samples_s": rate}), flush=True)


# -- the rounds ------------------------------------------------------------------------------------


def free_port():
    with socket.socket() as any_port:
        any_port.bind(("127.0.0.1", 0))
        return any_port.getsockname()[1]


def together(commands, environment=None, home=None):
    """Runs all commands at once and returns their outputs. Prints their logs if one fails."""
    running = [subprocess.Popen([*map(str, words)], text=True, cwd=home, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                env={**os.environ, **(environment or {})})
               for words in commands]
    outputs = [process.communicate() for process in running]
    if any(process.returncode for process in running):
        print(*(log for _, log in outputs), file=sys.stderr)
        raise RuntimeError(f"failed: {' '.join(map(str, commands[0]))}")
    return [output for output, _ in outputs]


def run_torch(name, batch, asked, _home):
    ways = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo", "TP_SOCKET_IFNAME": "lo",
            "PYTHONWARNINGS": "ignore"}
    outputs = together([[asked.python, SELF, "--play", name, "--rank", rank, "--batch", batch,
                         "--seconds", 8 if asked.full else asked.seconds]
                        for rank in range(PARTS[name][1])], ways)
    return sum(json.loads(x.splitlines()[-1])["samples_s"] for x in outputs)


def training_words(batch, asked, home):
    return ("--data", f"mnist:{home}", "--model", "mlp:512,256", "--batch", batch, "--lr", RATE,
            "--epochs", asked.passes or (10 if asked.full else 1))


def run_plain(name, batch, asked, home):
    words = [asked.programs / "plain_loop", *training_words(batch, asked, home), "--json"]
    outputs = together([words] * (WORKERS if name == "plain-x2" else 1))
    return sum(json.loads(x.splitlines()[-1])["samples_per_second"] for x in outputs)


def run_troupe(name, batch, asked, home):
    with tempfile.TemporaryDirectory(dir=home) as here:
        together([[asked.programs / "async_sgd", *training_words(batch, asked, home), "--processes",
                   "--workers", WORKERS, "--servers", 1, "--sync", "asp",
                   "--checkpoint-every", "60m", "--pull-ahead", int(name == "troupe-ahead"),
                   "--report", "report.json"]], home=here)
        return json.loads((pathlib.Path(here) / "report.json").read_text())["samples_per_second"]


CONTESTANTS = {"torch": run_torch, "torch-ddp": run_torch, "torch-rpc": run_torch,
               "plain": run_plain, "plain-x2": run_plain, "troupe": run_troupe,
               "troupe-ahead": run_troupe}


def write_idx(path, shape, values):
    path.write_bytes(struct.pack(f">BBBB{len(shape)}I", 0, 0, 8, len(shape), *shape) + values)


def write_samples(home, count):
    """Writes random samples as files in MNIST's form."""
    draw = random.Random(1)
    for part, size in (("train", count), ("t10k", 1000)):
        write_idx(home / f"{part}-images-idx3-ubyte", (size, 28, 28),
                  draw.randbytes(size * WIDTHS[0]))
        write_idx(home / f"{part}-labels-idx1-ubyte", (size,),
                  bytes(x % WIDTHS[-1] for x in draw.randbytes(size)))


def with_torch():
    """Returns an interpreter that has PyTorch, or None."""
    for candidate in (sys.executable, "/usr/bin/python3"):
        found = shutil.which(candidate)
        if found and subprocess.run([found, "-c", "import torch.distributed.rpc"],
                                    stderr=subprocess.DEVNULL).returncode == 0:
            return found
    return None


def cpu_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def spread(values, form="{:,.0f}"):
    return (f"{form} ({form} .. {form})").format(statistics.median(values), min(values), max(values))


def ratios(rates, name, other):
    return [x / y for x, y in zip(rates[name], rates.get(other, []))]


def show(batch, rates, seconds, load, asked):
    if not asked.json:
        print(f"\nbatch {batch}; {asked.rounds} rounds; {machine_load.text(load)}")
        print(f"  {'contestant':<13}{'samples/s':<28}{'CPU s a run':<13}"
              f"{'ratio to torch':<24}ratio to plain-x2")
    for name in rates:
        against = {other: ratios(rates, name, other) for other in ("torch", "plain-x2")}
        if asked.json:
            row = {"contestant": name, "batch": batch, "rounds": asked.rounds,
                   "samples_s": statistics.median(rates[name]), "samples_s_min": min(rates[name]),
                   "samples_s_max": max(rates[name]), "cpu_s": statistics.median(seconds[name]),
                   **load}
            for other, values in against.items():
                if values:
                    row["ratio_to_" + other] = statistics.median(values)
            print(json.dumps(row), flush=True)
        else:
            texts = [spread(x, "{:.3f}") if x else "" for x in against.values()]
            print(f"  {name:<13}{spread(rates[name]):<28}{statistics.median(seconds[name]):<13.1f}"
                  f"{texts[0]:<24}{texts[1]}", flush=True)


def measure(asked, home):
    names = [x for x in CONTESTANTS if not asked.only or x in asked.only]
    asked.python = with_torch()
    if not asked.python:
        names = [x for x in names if x not in PARTS]
        print(f"left out: {', '.join(PARTS)}: no PyTorch (python3-torch)", file=sys.stderr)
    write_samples(home, asked.samples)
    for batch in asked.batch:
        load_before = machine_load.busy_processors()
        rates, seconds = {x: [] for x in names}, {x: [] for x in names}
        for turn in range(asked.rounds):
            for i in range(len(names)):
                name = names[(i + turn) % len(names)]  # Varies the order of contestants.
                before = cpu_seconds()
                rates[name].append(CONTESTANTS[name](name, batch, asked, home))
                seconds[name].append(cpu_seconds() - before)
        load = {"load_before": load_before, "load_after": machine_load.busy_processors()}
        show(batch, rates, seconds, load, asked)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", type=pathlib.Path, nargs="?", help="folder of the programs")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--full", action="store_true", help="long enough for steady figures")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    parser.add_argument("--batch", type=int, nargs="+", default=[64, 256])
    parser.add_argument("--only", action="append", choices=CONTESTANTS, help="repeatable")
    parser.add_argument("--samples", type=int, default=60_000, help="of one pass of Troupe's runs")
    parser.add_argument("--passes", type=int, help="of Troupe's runs; default 1, with --full 10")
    parser.add_argument("--seconds", type=float, default=2, help="of PyTorch's runs; --full: 8")
    machine_load.declare(parser)
    parser.add_argument("--play", choices=PARTS, help=argparse.SUPPRESS)
    parser.add_argument("--rank", type=int, default=0, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.play:
        return play(asked)
    if not asked.programs:
        parser.error("say where the programs are, such as build/release/bin")
    asked.programs = asked.programs.resolve()
    machine_load.require_quiet_machine(asked.any_load)
    with tempfile.TemporaryDirectory(prefix="torch-bench-") as home:
        measure(asked, pathlib.Path(home))


if __name__ == "__main__":
    main()

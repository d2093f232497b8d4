#!/usr/bin/env python3
"""Measures the savings and costs of --compress and --compress-pulls by training on MNIST.

usage: bench/training/compression.py PROGRAMS [--data DIR] [--rounds 3] [--passes N] [--rate 1gbit]
                            [--workers 1] [--model mlp:256] [--json] [loopback] [link]

loopback: bytes of a step on links, samples/s, test accuracy; 4 workers, 2 servers.
link: bytes and time of a step if a link of --rate lies between the workers and the server. It needs
root, for network namespaces.
Each figure is median (least .. greatest) of the rounds; all codecs run in turn, within each round.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
import throttled_link  # noqa: E402

CODECS = [(), ("--compress", "fp16"), ("--compress", "bf16"), ("--compress", "int8"),
          ("--compress", "onebit"), ("--compress", "topk:0.01"), ("--compress", "randomk:0.01"),
          ("--compress", "int8", "--compress-pulls", "fp16"),
          ("--compress", "topk:0.01", "--compress-pulls", "int8")]
BATCH = 64


def report_of(home):
    return json.loads((pathlib.Path(home) / "report.json").read_text())


def on_loopback(programs, words):
    with tempfile.TemporaryDirectory(prefix="compression-") as home:
        subprocess.run([programs / "async_sgd", "--processes", *words, "--report", "report.json"],
                       cwd=home, check=True, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        return report_of(home)


def over_link(program, words, link, workers):
    """Runs the server on the first host and the workers on the second."""
    return link.train([program, *words], "server:0", ",".join(f"worker:{i}" for i in range(workers)))


def figures(report, workers):
    steps = report["pushes"]["acknowledged"]
    return {"sent_bytes": report["wire_bytes"]["sent"] / steps,
            "received_bytes": report["wire_bytes"]["received"] / steps,
            "step_ms": 1000 * workers * BATCH / report["samples_per_second"],
            "samples_s": report["samples_per_second"],
            "test_accuracy": report["test_accuracy"]}


def spread(values, form="{:.0f}"):
    return (f"{form} ({form} .. {form})").format(statistics.median(values), min(values), max(values))


def measure(part, train, rounds, workers, as_json):
    found = {codec: [] for codec in CODECS}
    for seed in range(1, rounds + 1):
        for codec in CODECS:
            found[codec].append(figures(train([*codec, "--seed", str(seed)]), workers))
    for codec, all_rounds in found.items():
        columns = {key: [x[key] for x in all_rounds] for key in all_rounds[0]}
        name = " ".join(codec) or "f32"
        if as_json:
            row = {key: statistics.median(values) for key, values in columns.items()}
            print(json.dumps({"part": part, "contestant": name, **row,
                              "least": {key: min(values) for key, values in columns.items()},
                              "greatest": {key: max(values) for key, values in columns.items()}}))
        else:
            print(f"  {name:<44}bytes {spread(columns['sent_bytes'])} + "
                  f"{spread(columns['received_bytes'])}  step ms "
                  f"{spread(columns['step_ms'], '{:.2f}')}  samples/s "
                  f"{spread(columns['samples_s'])}  accuracy "
                  f"{spread(columns['test_accuracy'], '{:.4f}')}")
    sys.stdout.flush()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("programs", type=pathlib.Path)
    parser.add_argument("parts", nargs="*", metavar="PART", help="loopback, link")
    parser.add_argument("--data", default=os.environ.get("TROUPE_DATA", "../shared/data"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--passes", type=int, help="default: 10 on loopback, 1 over the link")
    parser.add_argument("--rate", default="1gbit", help="as tc(8) writes it")
    parser.add_argument("--workers", type=int, default=1, help="over the link")
    parser.add_argument("--model", default="mlp:256")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_intermixed_args()
    if unknown := set(asked.parts) - {"loopback", "link"}:
        parser.error(f"no such part: {', '.join(sorted(unknown))}; known: loopback, link")
    programs, data = asked.programs.resolve(), pathlib.Path(asked.data).resolve()
    common = ["--data", f"mnist:{data}/mnist", "--model", asked.model, "--batch", str(BATCH),
              "--lr", "0.2", "--sync", "asp"]

    def words(workers, servers, passes):
        return [*common, "--workers", str(workers), "--servers", str(servers), "--epochs",
                str(asked.passes or passes)]
    if "loopback" in asked.parts or not asked.parts:
        if not asked.json:
            print(f"loopback: {asked.passes or 10} passes, 4 workers, 2 servers, {asked.model}")
        measure("loopback", lambda more: on_loopback(programs, [*words(4, 2, 10), *more]),
                asked.rounds, 4, asked.json)
    if "link" in asked.parts or not asked.parts:
        try:
            link = throttled_link.ThrottledLink(asked.rate)
        except OSError as why:
            print(f"link: left out: no network namespaces here: {why}", file=sys.stderr)
            return
        try:
            if not asked.json:
                print(f"link of {asked.rate}: {asked.passes or 1} pass, {asked.workers} workers, "
                      f"1 server, {asked.model}")
            base = words(asked.workers, 1, 1)
            program = programs / "async_sgd"
            measure("link", lambda more: over_link(program, [*base, *more], link, asked.workers),
                    asked.rounds, asked.workers, asked.json)
        finally:
            link.close()


if __name__ == "__main__":
    main()

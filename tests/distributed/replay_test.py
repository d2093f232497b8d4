"""Checks that the replay of a recorded run in one process ends in the same bytes, also after kills.
A changed record ends in other bytes or is refused.
"""
import os
import pathlib
import random
import re
import struct
import subprocess

import cluster

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = pathlib.Path(os.environ.get("TROUPE_DATA", ROOT.parent / "shared/data"))
MODEL = ("--data", "digits", "--model", "mlp:64")
# Passes of workers that are so slow last at least 3 s, however fast the machine is.
LASTS_MS, LASTS_PASSES = cluster.count((4, 3), (1, 12))
LASTS = cluster.slow([LASTS_MS] * 4)
PASSES = cluster.count(2, 4)
RECORD = 64  # Bytes of one record.
BASE_VERSION = 16  # Its offset in a record.


def crc32c(data):
    value = 0xFFFFFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
    return value ^ 0xFFFFFFFF


class Replay(cluster.ClusterTest):
    seconds = 60
    common = ("--workers", 4, "--servers", 2, "--batch", 64)

    def record(self, *options, model=MODEL, epochs=PASSES):
        """Runs a job that leaves its record and its parameters in its home; returns the run."""
        run = self.start(*model, "--epochs", epochs, *options, "--record", "record",
                         "--export", "trained.npz")
        self.assertEqual(run.wait(100), 0)
        return run

    def replay(self, run, model=MODEL, status=0, compare="trained.npz"):
        """Replays the record; returns the output."""
        words = [cluster.arguments.programs / self.program, *model, "--replay", "record"]
        words += ["--compare", compare] if compare else []
        done = subprocess.run([str(word) for word in words], cwd=run.home, capture_output=True,
                              text=True, timeout=100)
        said = done.stdout + done.stderr
        self.assertEqual(done.returncode, status, said)
        return said

    def check(self, *options, model=MODEL, epochs=PASSES):
        run = self.record(*options, model=model, epochs=epochs)
        said = self.replay(run, model)
        self.assertIn("equal to trained.npz\n", said)
        print(said.splitlines()[-3], end="; ", flush=True)
        return run

    def files(self, run):
        return sorted((run.home / "record").glob("*.pushes"), key=lambda path: path.stat().st_size)

    # -- byte-equal --

    def test_mnist(self):
        if not (DATA / "mnist").is_dir():
            self.skipTest(f"no MNIST in {DATA}; set TROUPE_DATA")
        model = ("--data", f"mnist:{DATA / 'mnist'}", "--model", "mlp:256")
        run = self.check(model=model, epochs=2)
        pushes = 2 * 2 * 938  # 2 passes of 938 batches, once for each of 2 chains.
        size = sum(path.stat().st_size for path in self.files(run))
        self.assertLess(size / pushes, RECORD + 1)

    def test_asp(self):
        run = self.check("--optimizer", "adam", "--lr", 0.001, "--staleness-lr", 1.5)
        self.assertIn("equal to run/checkpoints\n",  # This includes the optimiser's state.
                      self.replay(run, compare="run/checkpoints"))

    def test_sparse(self):
        file = self.home / "samples"
        dice = random.Random(1)
        with file.open("w") as out:
            for _ in range(8000):
                keys = sorted(dice.sample(range(1, 3000), 12))
                out.write(f"{keys[0] % 3} {' '.join(f'{key}:{key % 5 + 1}' for key in keys)}\n")
        model = ("--data", f"libsvm:{file},{file}", "--model", "mlp:16", "--sparse")
        run = self.start(*model, "--epochs", 4, "--optimizer", "adam", "--lr", 0.001,
                         "--record", "record")
        self.assertEqual(run.wait(100), 0)
        self.assertIn("equal to run/checkpoints\n",
                      self.replay(run, model, compare="run/checkpoints"))

    def test_until(self):
        run = self.record()
        replayed = []
        for share in cluster.count((0, 0.2), (0, 0.05, 0.2, 0.5)):
            seconds = round(share * run.report["seconds"], 3)
            said = self.replay(run, (*MODEL, "--until", seconds, "--export", "early.npz"),
                               compare=None)
            replayed.append(int(re.search(r"replayed (\d+) steps", said)[1]))
            differs = self.replay(run, compare="early.npz", status=1)
            self.assertRegex(differs, "differs from early.npz: table '.*' differs first in elem")
        self.assertEqual(replayed, sorted(set(replayed)))
        self.assertIn("--compare needs its end", self.replay(run, (*MODEL, "--until", 1), status=2))

    def test_pipeline_and_update_buffer(self):
        self.check("--pull-ahead", 2, "--apply-batch", 8, "--delta-pulls", "--clip-norm", 1)

    def test_ssp(self):
        self.check("--sync", "ssp:3", "--optimizer", "momentum", "--lr", 0.01)

    def test_bsp(self):
        self.check("--sync", "bsp")

    def test_threads(self):
        run = self.start(*MODEL, "--epochs", 2, "--threads", "--record", "record", "--export", "trained.npz",
                         processes=False)
        self.assertEqual(run.wait(100), 0)
        self.assertIn("equal to trained.npz\n", self.replay(run))

    def test_workers_killed(self):
        run = self.check("--kill", "worker:1@0.4", "--kill", "worker:2@0.8",
                         "--kill", "worker:3@1.2", *LASTS, epochs=LASTS_PASSES)
        self.assert_recovered(run, ("worker", 1), ("worker", 2), ("worker", 3))

    def test_replica_killed(self):
        run = self.check("--replicas", 2, "--kill", "server:0@0.7", *LASTS, epochs=LASTS_PASSES)
        self.assert_recovered(run, ("server", 0))
        self.assertGreater(len(self.files(run)), 4)  # The restarted server wrote its own files.

    # -- refused, or different --

    def test_rolled_back(self):
        run = self.record("--checkpoint-every", "500ms", "--kill", "server:0@1.5", *LASTS,
                          epochs=LASTS_PASSES)
        self.assertIn("a rollback cannot be replayed", self.replay(run, status=1))

    def test_changed(self):
        run = self.record()
        path = self.files(run)[0]
        whole = path.read_bytes()
        header = len(whole) % RECORD
        at = header + (len(whole) - header) // RECORD // 2 * RECORD
        # The checksum reveals a flipped bit.
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1:])
        self.assertIn("is damaged", self.replay(run, status=1))
        # The outcome reveals a base version that is one too low.
        record = bytearray(whole[at:at + RECORD - 4])
        base, = struct.unpack_from("<Q", record, BASE_VERSION)
        struct.pack_into("<Q", record, BASE_VERSION, base - 1)
        record += struct.pack("<I", crc32c(record))
        path.write_bytes(whole[:at] + record + whole[at + RECORD:])
        self.assertRegex(self.replay(run, status=1), "table '.*' differs first in element ")
        # The gap reveals a missing record.
        path.write_bytes(whole[:at] + whole[at + RECORD:])
        self.assertIn("no server's record has step ", self.replay(run, status=1))
        path.write_bytes(whole)
        self.assertIn("equal to trained.npz\n", self.replay(run))

    def test_other_options(self):
        run = self.record()
        self.assertRegex(self.replay(run, ("--model", "mlp:32"), status=1),
                         r"the record is of another model: table '\w+' is \S+ there and \S+ here")
        said = self.replay(run, (*MODEL, "--lr", 0.9, "--workers", 7))
        self.assertIn("as the record says and leaves these options out: --lr, --workers\n", said)
        self.assertIn("equal to trained.npz\n", said)
        again = self.start(*MODEL, "--record", run.home / "record")
        self.assertEqual(again.wait(), 1)
        self.assertIn("holds the record of another run", again.err)


if __name__ == "__main__":
    cluster.main(__doc__)

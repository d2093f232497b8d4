"""Checks slow, spare and stopped workers as real processes: measures by degrees, backup workers."""
import os
import re
import signal
import time

import cluster


class Slow(cluster.ClusterTest):
    program = "count_batches"
    elements = 10_000
    common = ("--elements", elements, "--batch", 1, "--epochs", 1, "--workers", 8,
              "--checkpoint-every", "1s")


class Degrees(Slow):
    alone = "it compares the speeds of workers"

    def test_told_relieved_backup_evicted_and_back(self):
        # 140 batches/s. The rules run 8 times as fast: an eviction lasts 3.75 s, not 30 s.
        run = self.start("--samples", 2400, "--straggler-time-scale", 8,
                         *cluster.slow([50] * 7 + [350]))
        for kind, fields in (
                ("worker_warned", {"figures": re.compile(
                    r"^(?:[3-9]|\d\d)\d\d ms for 1 samples, the median of 8")}),
                ("worker_rebalanced", {}),
                ("worker_demoted", {}),
                ("worker_evicted", {"reason": "slow", "seconds": lambda x: round(x, 3) == 3.75}),
                ("worker_lost", {"reason": "evicted"}),
                ("member_rejoined", {}),
                ("worker_readmitted", {"reason": "its time is over"})):
            run.await_event(kind, 30, member="worker 7", **fields)
        self.assertEqual(run.wait(90), 0)
        self.assert_exact(run, self.elements)
        slow = run.members_of("worker_warned", "worker_rebalanced", "worker_demoted")
        self.assertEqual(set(slow), {"worker 7"})


class Stopped(Slow):
    def test_a_stopped_worker_is_replaced_and_its_ghost_refused(self):
        run = self.start("--samples", 1600, "--straggler-time-scale", 4, *cluster.slow([100] * 8))
        run.await_event("training_started")
        time.sleep(1)
        stopped = run.processes()["worker", 3]
        os.kill(stopped, signal.SIGSTOP)
        run.await_event("worker_lost", member="worker 3", reason="silent for 5000 ms")
        os.kill(stopped, signal.SIGCONT)  # It pushes what it had computed, and hears that it is dead.
        run.await_event("member_rejoined", member="worker 3")
        self.assertNotEqual(run.processes()["worker", 3], stopped)
        self.assertEqual(run.wait(60), 0)
        self.assert_exact(run, self.elements)


class Backups(cluster.ClusterTest):
    common = ("--sync", "bsp", "--model", "mlp:16", "--batch", 512, "--epochs", 1, "--workers", 3,
              "--seed", 7, "--stragglers", "off")

    def parameters(self, name, *options):
        exported = self.home / f"{name}.npz"
        run = self.finish(*options, "--export", exported, name=name)
        return exported.read_bytes(), run

    def test_same_bits_and_sooner(self):
        plain, _ = self.parameters("plain")
        alone, without = self.parameters("alone", "--slow", "1:250")
        self.assertEqual(plain, alone)
        backed, run = self.parameters("backed", "--slow", "1:250", "--backup-workers", 1)
        self.assertEqual(plain, backed)
        seconds, before = run.report["seconds"], without.report["seconds"]
        print(f"{before:.1f} s alone, {seconds:.1f} s with a backup worker, "
              f"{before / seconds:.1f} times as fast", end=" ", flush=True)
        self.assertLess(seconds, before)
        hurt, run = self.parameters("hurt", *cluster.slow([100, 200, 100, 100]),  # Lasts 4 s.
                                    "--backup-workers", 1,
                                    "--kill", "worker:0@0.5", "--kill", "worker:3@1")
        self.assertEqual(plain, hurt)
        self.assert_recovered(run, ("worker", 0), ("worker", 3))


if __name__ == "__main__":
    cluster.main(__doc__)

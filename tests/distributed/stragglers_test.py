"""Workers that are slow, spare or stopped, as real processes: force by degrees, backup workers."""
import os
import re
import signal
import time

import cluster


class Degrees(cluster.ClusterTest):
    program = "count_batches"
    elements = 10_000
    common = ("--elements", elements, "--batch", 1, "--epochs", 1, "--workers", 8,
              "--checkpoint-every", "1s", "--straggler-time-scale", 4)

    def test_told_relieved_backup_evicted_and_back(self):
        # 70 batches/s. The times of the rules are a quarter: out for 7.5 s, not for 30 s.
        run = self.start("--samples", 2400, *cluster.slow([100] * 7 + [700]))
        for words in (r"worker 7 is slow, it is watched; (?:[6-9]|\d\d)\d\d ms for 1 samples, "
                      "the median of 8",
                      "worker 7 is slow, it gives back a part of its work",
                      "worker 7 is slow, nobody waits for it any more",
                      "worker 7 stayed slow and is out for 7500 ms",
                      r"worker 7 lost: \d+ batches go to others \(evicted\)",
                      "worker 7 rejoined",
                      "worker 7 may work again: its time is over"):
            run.await_match(words, 30)
        self.assertEqual(run.wait(90), 0)
        self.assert_exact(run, self.elements)
        told = re.findall(r"worker (\d+) is slow", run.out)
        self.assertEqual(set(told), {"7"})

    def test_a_stopped_worker_is_replaced_and_its_ghost_refused(self):
        run = self.start("--samples", 1600, *cluster.slow([100] * 8))
        run.await_text("training with")
        time.sleep(1)
        stopped = run.processes()["worker", 3]
        os.kill(stopped, signal.SIGSTOP)
        run.await_match(r"worker 3 lost: \d+ batches go to others \(silent for 5000 ms\)", 20)
        os.kill(stopped, signal.SIGCONT)  # It pushes what it had computed, and hears that it is dead.
        run.await_text("worker 3 rejoined")
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
        hurt, run = self.parameters("hurt", *cluster.slow([100, 200, 100, 100]),  # For 4 s.
                                    "--backup-workers", 1,
                                    "--kill", "worker:0@0.5", "--kill", "worker:3@1")
        self.assertEqual(plain, hurt)
        self.assert_recovered(run, ("worker", 0), ("worker", 3))


if __name__ == "__main__":
    cluster.main(__doc__)

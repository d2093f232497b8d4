"""Checks that a job survives the death of any process, and its directory the death of all."""
import os
import re
import shutil
import signal
import subprocess

import cluster

ALL_SLOW = cluster.slow([10] * 4)


class Recovery(cluster.ClusterTest):
    common = ("--model", "softmax", "--epochs", 2, *ALL_SLOW, "--checkpoint-every", "300ms")
    batches = 2 * 938

    def test_each_role(self):
        calm = self.finish(name="calm")
        hurt = self.finish("--kill", "worker:1@0.5", "--kill", "server:0@1", "--kill",
                           "coordinator:0@2", "--kill", "server:1@3", name="hurt")
        self.assert_recovered(hurt, ("worker", 1), ("server", 0), ("coordinator", 0),
                              ("server", 1))
        self.assertAlmostEqual(self.accuracy(hurt), self.accuracy(calm), delta=0.02)

    def test_all_at_once(self):
        run = self.start()
        run.await_event("checkpoint_committed", checkpoint=1)
        processes = run.processes()
        self.assertEqual(len(processes), 7)
        for (role, index), pid in processes.items():
            name = role if role == "coordinator" else f"{role}-{index}"
            self.assertEqual(cluster.read_proc(pid, "comm").decode().strip(), name)
            os.kill(pid, signal.SIGKILL)
        self.assertEqual(run.wait(), 0)
        self.assert_recovered(run, *processes)

    def test_damage_is_known_before_the_checkpoint_is_needed(self):
        run = self.start("--checkpoint-keep", 50, "--checkpoint-scrub", "20ms")
        run.await_event("checkpoint_committed", checkpoint=2)
        oldest = run.directory / "checkpoints/checkpoints/00000001"
        victim = max(oldest.glob("chain-0/*.sst"), key=lambda path: path.stat().st_size)
        with open(victim, "r+b") as file:
            byte = file.read(1)[0]
            file.seek(0)
            file.write(bytes([byte ^ 1]))
        run.await_event("checkpoint_damaged", reason=re.compile(
            rf"the checksum of file chain-0/{re.escape(victim.name)} is wrong$"))
        self.assertEqual(run.wait(), 0)
        words = [cluster.arguments.programs / "troupe", "scrub", run.directory]
        said = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(said.returncode, 1)
        self.assertRegex(said.stdout, r"^ +1  checkpoint 1 in .* is damaged: the checksum of file")
        self.assertRegex(said.stdout, r"\n +2  good, 2 shards, \d+\.\d MB, batches below \d+\n")
        self.assertRegex(said.stderr, r"^troupe scrub: 1 of \d+ checkpoints cannot be used\n$")

    def test_launcher(self):
        checkpoints = self.home / "checkpoints"
        first = self.start("--checkpoint", checkpoints)
        first.await_event("checkpoint_committed", checkpoint=2)
        first.signal(signal.SIGKILL)
        self.assertEqual(first.wait(), -signal.SIGKILL)  # wait() checks that no process is left.
        copy = self.home / "copy"
        shutil.copytree(checkpoints, copy)
        for directory, servers in (checkpoints, 2), (copy, 3):
            again = self.finish("--checkpoint", directory, "--resume", "--servers", servers)
            self.assertTrue(again.told("batches_applied", batches=self.batches))
            self.assertLess(again.report["pushes"]["applied"], 0.95 * self.batches)
            self.assertGreater(again.report["pushes"]["applied"], 0)
            self.assertGreater(self.accuracy(again), 0.75)


if __name__ == "__main__":
    cluster.main(__doc__)

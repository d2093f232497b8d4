"""Checks --sync allreduce: each batch counts once and parameters are equal, even after kills."""
import os
import random
import re
import signal
import subprocess
import time

import cluster


class Diverging(cluster.ClusterTest):
    def test_gradients_that_are_not_finite_end_the_job(self):
        run = self.start("--sync", "allreduce", "--workers", 2, "--model", "mlp:16", "--lr", 1e30,
                         "--epochs", 5)
        self.assertEqual(run.wait(120), 1)
        self.assertIn("training diverged: 20 gradients in a row are not finite; a smaller --lr may "
                      "help", run.err)
        self.assertTrue(run.told("run_ended", status=1, reason=re.compile("training diverged")))


class Noted(cluster.ClusterTest):
    program = "private_sgd"

    def test_counts_of_the_program_are_in_the_report(self):
        common = ("--sync", "allreduce", "--workers", 2, "--epochs", 4, "--bound", 1e-6)
        plain = self.finish(*common)
        self.assertEqual(plain.report["counts"],
                         {"privacy.clipped": plain.report["pushes"]["applied"]})
        killed = self.finish(*common, "--kill", "worker:1@0.1")
        # A batch that is computed again counts again; the last count of the lost rank may be missing.
        self.assertAlmostEqual(killed.report["counts"]["privacy.clipped"],
                               killed.report["pushes"]["applied"], delta=100)


class Counted(cluster.ClusterTest):
    program = "count_batches"
    common = ("--sync", "allreduce", "--workers", 4, "--elements", 1000, "--batch", 1,
              "--samples", 40000, "--epochs", 2)
    batches = 2 * 40000

    def begin(self):
        """Starts a job, and waits for its first checkpoint: it comes long before the job's end."""
        run = self.start("--checkpoint", self.home / "kept", "--checkpoint-every", "50ms")
        run.await_true(lambda: list(self.home.glob("kept/checkpoints/*/COMMIT")), 60, "a checkpoint")
        return run

    def test_lost_workers(self):
        run = self.start("--kill", "worker:0@0.2", "--kill", "worker:2@0.6")
        self.assertEqual(run.wait(120), 0)
        self.assert_exact(run, 1000)
        self.assertEqual(run.report["pushes"]["applied"], self.batches)
        self.assertIn("parameters are equal on all 4 workers", run.out)
        self.assertEqual({x["members"] for x in run.told("progress")}, {4})
        self.assertNotIn("coordinator", run.out)

    def test_a_worker_that_hangs_is_killed(self):
        run = self.begin()
        os.kill(run.processes()["worker", 2], signal.SIGSTOP)
        self.assertEqual(run.wait(120), 0)
        self.assert_exact(run, 1000)
        self.assertEqual(run.report["pushes"]["applied"], self.batches)
        self.assertEqual(run.members_of("process_hung"), ["worker 2"])
        self.assertEqual(run.members_of("process_ended"), ["worker 2"])

    def test_there_are_no_servers_to_add_to(self):
        run = self.begin()
        done = subprocess.run([cluster.arguments.programs / "troupe", "add", run.directory],
                              capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, "^troupe.*: the job in .*/run has no servers: its workers .*\n$")

    def test_stop_and_resume(self):
        run = self.begin()
        run.signal(2)
        self.assertEqual(run.wait(60), 130)
        again = self.start("--checkpoint", self.home / "kept", "--resume", name="again")
        self.assertEqual(again.wait(120), 0)
        self.assert_exact(again, 1000)
        done = [each.report["pushes"]["applied"] for each in (run, again)]
        self.assertGreater(min(done), 0)
        self.assertEqual(sum(done), self.batches)

    def test_a_last_checkpoint_that_cannot_be_written_is_told(self):
        kept = self.home / "kept"
        kept.mkdir()
        (kept / "servers").write_text("in the way")
        run = self.start("--checkpoint", kept)
        self.assertEqual(run.wait(120), 1)
        self.assert_exact(run, 1000)
        self.assertIn("count_batches: the last checkpoint cannot be written: see logs/worker-0.log",
                      run.err)

    def test_stop_while_a_worker_comes_back(self):
        run = self.begin()
        self.assertTrue(run.kill("worker", 2))
        run.signal(2)
        self.assertEqual(run.wait(120), 130)
        self.assertIn("parameters are equal on all 4 workers", run.out)
        again = self.start("--checkpoint", self.home / "kept", "--resume", name="again")
        self.assertEqual(again.wait(120), 0)
        self.assert_exact(again, 1000)
        self.assertEqual(run.report["pushes"]["applied"] + again.report["pushes"]["applied"],
                         self.batches)

    def test_short_passes(self):
        """A pass ends during the evaluation of the one before; the last one is evaluated too."""
        run = self.finish("--sync", "allreduce", "--workers", 2, "--elements", 4000000, "--batch", 1,
                          "--samples", 4, "--epochs", 5, common=())
        self.assert_exact(run, 4000000)
        self.assertEqual([x["epoch"] for x in run.report["loss_curve"] if "test_loss" in x][-1], 5)


class SharedMemory(cluster.ClusterTest):
    program = "count_batches"
    common = ("--sync", "allreduce", "--workers", 4, "--batch", 1, "--epochs", 1)

    def shares_memory(self, run):
        """Whether all workers have mapped a team's memory; no link is there then."""
        for (role, _), pid in run.processes().items():
            maps = cluster.read_proc(pid, "maps")
            if role == "worker" and b"troupe-team" not in maps:
                return False
        return len(run.processes()) == 4

    def test_workers_add_up_in_memory_that_ends_with_them(self):
        run = self.start("--elements", 200000, "--samples", 100000)
        run.await_event("progress", phase="training")
        self.assertTrue(self.shares_memory(run))
        for log in ("worker-0", "worker-1", "worker-2", "worker-3"):
            self.assertIn("adds up in shared memory", run.logs[log])
        files = {line.split()[-1] for pid in run.alive()
                 for line in cluster.read_proc(pid, "maps").decode().splitlines()
                 if "/dev/shm/" in line}
        run.launcher.kill()
        cluster.poll(lambda: not run.alive(), 10, "end of all processes of the run")
        self.assertEqual([name for name in files if os.path.exists(name)], [])

    def test_workers_that_die_in_the_midst_of_sums(self):
        """Sums of 8 MB are most of what these workers do."""
        elements = 2000000
        run = self.start("--elements", elements, "--samples", 1600)
        run.await_event("progress", phase="training")
        dice = random.Random(7)
        kills = 0
        for _ in range(5):
            time.sleep(dice.uniform(0.1, 0.4))
            kills += run.kill("worker", dice.randrange(4))
        self.assertEqual(run.wait(120), 0)
        self.assertGreaterEqual(kills, 4)
        self.assertEqual(len(run.report["recoveries"]), kills)
        self.assert_exact(run, elements)
        self.assertEqual(run.report["pushes"]["applied"], 1600)
        self.assertIn("parameters are equal on all 4 workers", run.out)

    def test_without_memory_to_share_sums_go_over_links(self):
        run = self.start("--elements", 1000, "--samples", 300,
                         prefix=("bash", "-c", 'ulimit -f 1024; exec "$0" "$@"'))
        self.assertEqual(run.wait(60), 0)
        self.assertTrue(run.told("note", text=re.compile(
            r"sums go over links: cannot share \d+ MiB of memory: File too large; "
            r"limits: ulimit -f 1024$")), run.out)
        self.assertIn("adds up over links", run.logs["worker-1"])
        self.assert_exact(run, 1000)
        self.assertIn("parameters are equal on all 4 workers", run.out)


class Trained(cluster.ClusterTest):
    common = ("--batch", 512, "--epochs", 3)

    def test_same_bits_as_servers_give(self):
        """Checks that both add up in the order of the workers, in one part and in two."""
        for model, workers in (("mlp:16", 2), ("mlp:128,128", 2), ("mlp:128,128", 3)):
            values, run = [], None
            for sync in ("bsp", "allreduce"):
                name = f"{model}-{workers}-{sync}"
                exported = self.home / f"{name}.npz"
                run = self.finish("--sync", sync, "--model", model, "--optimizer", "adam", "--lr",
                                  "0.01", "--workers", workers, "--export", exported, name=name)
                values.append(exported.read_bytes())
            self.assertEqual(*values)
            self.assertTrue(re.search(f"equal on all {workers} workers, checksum [0-9a-f]{{16}}",
                                      run.out))
            self.assertEqual((run.report["sync"], run.report["servers"]), ("allreduce", 0))


if __name__ == "__main__":
    cluster.main(__doc__)

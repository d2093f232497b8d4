"""Checks that a stopped job loses no work: its rest can be done later."""
import os
import signal
import time

import cluster

ALL_SLOW = cluster.slow([10] * 4)


class Stop(cluster.ClusterTest):
    common = ("--model", "softmax", "--epochs", 2, *ALL_SLOW)
    batches = 2 * 938

    def setUp(self):
        super().setUp()
        self.checkpoints = self.home / "checkpoints"

    def begin(self, *options, **more):
        run = self.start("--checkpoint", self.checkpoints, *options, **more)
        run.await_epoch(0.1)
        return run

    def done_by(self, run):
        done = run.report["pushes"]["applied"]
        self.assertGreater(done, 0.05 * self.batches)
        self.assertLess(done, self.batches)
        return done

    def resume(self, done, *options):
        """Resumes and checks that the rest is done. `done`: batches that the stopped run did."""
        run = self.finish("--checkpoint", self.checkpoints, "--resume", *options)
        self.assertTrue(run.told("batches_applied", batches=self.batches))
        # Nothing was in flight but a few batches of each worker.
        self.assertLessEqual(run.report["pushes"]["applied"], self.batches - done + 16)

    def check_files(self, run):
        self.assertEqual(os.listdir(run.temporary), [])
        self.assertEqual(sorted(os.listdir(run.home)),
                         ["err", "out", "report.json", "run", "tmp"])
        self.assertEqual(sorted(os.listdir(self.home)), sorted(["checkpoints", run.home.name]))

    def stop_and_resume(self, number, *options):
        run = self.begin(*options)
        os.killpg(run.launcher.pid, number)  # To all processes, as from a terminal.
        self.assertEqual(run.wait(), 128 + number)
        self.assert_untold(run, *cluster.LOSSES)
        self.assertTrue(run.told("checkpoint_committed"))
        self.assertIn("continue with --resume", run.out)
        self.assertEqual(run.err, "")
        self.check_files(run)
        self.resume(self.done_by(run), *options)

    def test_interrupt(self):
        self.stop_and_resume(signal.SIGINT)

    def test_last_checkpoint_that_cannot_be_written(self):
        """The line at the end names the checkpoint that the job goes on from."""
        run = self.begin("--checkpoint-every", "200ms")
        run.await_event("checkpoint_committed")
        aside = self.home / "aside"
        self.checkpoints.rename(aside)
        self.checkpoints.write_text("no directory")
        failed = run.await_event("checkpoint_failed")["checkpoint"]
        run.signal(signal.SIGTERM)
        self.assertEqual(run.wait(), 143)
        committed = max(x["checkpoint"] for x in run.told("checkpoint_committed"))
        self.assertLess(committed, failed)
        self.assertIn("stopped; the last checkpoint was not written, so work after checkpoint "
                      f"{committed} is lost; continue with --resume", run.out)
        self.checkpoints.unlink()
        aside.rename(self.checkpoints)
        again = self.finish("--checkpoint", self.checkpoints, "--resume")
        self.assertTrue(again.told("shard_restored", checkpoint=committed))

    def test_terminate(self):
        self.stop_and_resume(signal.SIGTERM, "--sync", "bsp")

    def test_killed_launcher(self):
        """--resume needs only the run directory, and --epochs above the passes already trained."""
        where = ("--run-dir", self.home / "here")
        model, passes = ("--model", "softmax"), ("--epochs", 6)
        run = self.start(*where, *passes, "--checkpoint-every", "200ms", common=(*model, *ALL_SLOW),
                         processes=False)
        run.await_epoch(1.3)  # And a checkpoint of after the first epoch.
        run.signal(signal.SIGKILL)
        self.assertEqual(run.wait(), -signal.SIGKILL)
        checkpoints = self.home / "here" / "checkpoints" / "checkpoints"
        before = sorted(os.listdir(checkpoints))
        shorter = self.finish(*where, "--resume", "--epochs", 1, common=model, status=1,
                              processes=False)
        self.assertRegex(shorter.err, r"already at epoch [1-5]\.\d+ of 1: give --epochs [2-6] or more\n$")
        self.assertEqual(sorted(os.listdir(checkpoints)), before)
        again = self.finish(*where, *passes, "--resume", common=model, processes=False)
        self.assertTrue(again.told("batches_applied", batches=3 * self.batches))
        self.assertTrue(again.told("shard_restored", checkpoint=lambda x: x >= 1))

    def test_threads(self):
        run = self.begin("--threads", "--events", "events.jsonl", processes=False)
        run.signal(signal.SIGINT)
        self.assertEqual(run.wait(), 130)
        self.resume(self.done_by(run))

    def test_frozen_launcher(self):
        """A launcher that was stopped goes on with its job, even if the job has ended."""
        run = self.begin()
        os.kill(run.launcher.pid, signal.SIGSTOP)
        time.sleep(6)  # Longer than the 5 s of silence after which a member counts as lost.
        os.kill(run.launcher.pid, signal.SIGCONT)
        self.assertEqual(run.wait(), 0)
        self.assertTrue(run.told("batches_applied", batches=self.batches))
        self.assertIn("test accuracy", run.out)
        self.assert_untold(run, *cluster.LOSSES)

    def test_twice_ends_at_once(self):
        run = self.begin()
        os.kill(run.processes()["server", 0], signal.SIGSTOP)  # Its last checkpoint would take long.
        run.signal(signal.SIGINT)
        run.await_event("stopping")
        time.sleep(0.2)  # A signal that comes again within 0.1 s is one request.
        began = time.monotonic()
        run.signal(signal.SIGINT)
        self.assertEqual(run.wait(), 130)
        print(f"{time.monotonic() - began:.2f} s", end=" ", flush=True)
        self.assertIn("stopped at once", run.err)
        self.assert_untold(run, *cluster.LOSSES)


if __name__ == "__main__":
    cluster.main(__doc__)

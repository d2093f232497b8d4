"""Checks --reads any: pulls from all replicas give the same results as pulls from heads alone."""
import os
import signal
import subprocess
import time

import cluster

SERVERS = ("--servers", 3, "--replicas", 3)
MODEL = ("--data", "digits", "--model", "mlp:64")


class Reads(cluster.ClusterTest):
    def assert_spread(self, run):
        """Checks that each server answered at least half of an equal share."""
        pulls = run.report["pulls"]
        self.assertEqual(len(pulls), 3)
        self.assertGreater(min(pulls), sum(pulls) / 6)

    def replay(self, run):
        done = subprocess.run([str(cluster.arguments.programs / self.program), *MODEL, "--replay",
                               "record", "--compare", "trained.npz"], cwd=run.home,
                              capture_output=True, text=True, timeout=100)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("equal to trained.npz\n", done.stdout)

    def test_one_chain(self):
        """Servers behind the head answer as much as it does, and no pulls with --reads head."""
        common = (*MODEL, *SERVERS, "--shards", 1, "--workers", 3, "--epochs", 1, "--sync", "bsp")
        self.assert_spread(self.finish(*common, "--reads", "any"))
        head = self.finish(*common)
        self.assertEqual(sorted(head.report["pulls"])[:2], [0, 0])

    def test_bsp(self):
        exported = []
        for where in ("head", "any"):
            run = self.finish(*MODEL, *SERVERS, "--sync", "bsp", "--workers", 3, "--epochs", 2,
                              "--reads", where, "--export", "trained.npz",
                              *(("--kill", "server:1@0.7", "--slow", "0:12")
                                if where == "any" else ()))
            exported.append((run.home / "trained.npz").read_bytes())
            self.assert_spread(run)
        self.assertEqual(*exported)
        self.assert_recovered(run, ("server", 1))

    def test_record(self):
        """The record names the values of each gradient, also with delta pulls and after kills."""
        run = self.finish(*MODEL, *SERVERS, "--reads", "any", "--workers", 4, "--epochs", 4,
                          "--delta-pulls", "--pull-ahead", 1, *cluster.slow([3] * 4),
                          "--kill", "server:0@0.7", "--kill", "worker:2@1.1",
                          "--record", "record", "--export", "trained.npz")
        self.assert_recovered(run, ("server", 0), ("worker", 2))
        self.replay(run)
        self.assertEqual({x["updates_rolled_back"] for x in run.report["recoveries"]}, {0})

    def test_stops_and_kills(self):
        self.program = "count_batches"
        run = self.start("--elements", 100_000, "--batch", 1, "--samples", 8000, "--epochs", 1,
                         "--workers", 4, *SERVERS, "--shards", 1, "--reads", "any",
                         *cluster.slow([4] * 4))
        run.await_event("training_started")
        time.sleep(1)
        head = run.processes()["server", 0]
        os.kill(head, signal.SIGSTOP)  # It stops longer than its lease, so another head takes over.
        time.sleep(3)
        os.kill(head, signal.SIGCONT)
        time.sleep(2)
        self.assertTrue(run.kill("server", 1))
        self.assertEqual(run.wait(), 0)
        self.assert_exact(run, 100_000)
        self.assert_untold(run, *cluster.ROLLBACKS)


if __name__ == "__main__":
    cluster.main(__doc__)

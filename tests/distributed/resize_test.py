"""Checks that servers come and go while a job trains: 2 become 6, then 3 leave. No update is lost
or rolled back, and every batch is applied exactly once. Prints samples/s and the longest pause.
"""
import subprocess
import time

import cluster

WORKERS, ELEMENTS = 4, 100_000
STEP_MS = cluster.count(20, 10)
SLOW = cluster.slow([STEP_MS] * WORKERS)


def lasting(seconds):
    """Returns the number of samples that train for about so many seconds."""
    return seconds * 1000 * WORKERS // STEP_MS


class Resizing(cluster.ClusterTest):
    program = "count_batches"
    common = ("--elements", ELEMENTS, "--batch", 1, "--workers", WORKERS, "--servers", 2,
              "--shards", 12, "--checkpoint-every", "1s", *SLOW)

    def troupe(self, *words, status=0, seconds=60):
        """Runs the command, whose exit status must be `status`; returns its output."""
        done = subprocess.run([cluster.arguments.programs / "troupe", *map(str, words)], text=True,
                              capture_output=True, timeout=seconds, check=False)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout if status == 0 else done.stderr

    @staticmethod
    def servers_of(run):
        return sorted(index for role, index in run.processes() if role == "server")


class Resize(Resizing):
    seconds = 100
    samples = lasting(17)

    def stretches(self, run, marks):
        """Returns samples/s between each two neighbours of `marks`, which are in seconds."""
        curve = [(0.0, 0.0)] + [(x["seconds"], x["epoch"] * self.samples)
                                for x in run.report["loss_curve"] if "train_loss" in x]

        def at(moment):
            before = max((x for x in curve if x[0] <= moment), default=curve[0])
            after = min((x for x in curve if x[0] > moment), default=curve[-1])
            share = (moment - before[0]) / (after[0] - before[0]) if after[0] > before[0] else 0
            return before[1] + share * (after[1] - before[1])
        return [(at(end) - at(begin)) / (end - begin) for begin, end in zip(marks, marks[1:])]

    def check(self, replicas, victim=None, *options):
        run = self.start("--samples", self.samples, "--epochs", 1, "--replicas", replicas, *options)
        run.await_event("training_started")
        marks, killed = [], False

        def mark():
            marks.append(time.monotonic() - run.started)
        mark()
        time.sleep(1)
        mark()
        said = self.troupe("add", run.directory, "--count", 4)
        mark()
        for index in range(2, 6):
            self.assertRegex(said, rf"server {index} holds {2 * replicas} shards\n")
        self.assertEqual(self.servers_of(run), [0, 1, 2, 3, 4, 5])
        time.sleep(1)
        mark()
        words = [cluster.arguments.programs / "troupe", "drain", run.directory, "server:0",
                 "server:1", "server:2"]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as leaving:
            if victim is not None:
                run.await_event("server_draining", member="server 2")
                killed = run.kill("server", victim)
            said = leaving.communicate(timeout=60)[0]
        mark()
        self.assertEqual(leaving.returncode, 0, said)
        self.assertIn("drained server 0, server 1, server 2\n", said)
        cluster.poll(lambda: self.servers_of(run) == [3, 4, 5], 20, "only servers 3, 4 and 5")
        time.sleep(1)
        mark()
        self.assertIsNone(run.launcher.poll(), "it ended before the resizing; more samples")
        self.assertEqual(run.wait(150), 0)
        self.assertEqual(self.servers_of(run), [])
        self.assert_exact(run, ELEMENTS)
        self.assert_untold(run, *cluster.ROLLBACKS)
        self.assertTrue(killed or victim in (None, 0))  # One that leaves may have left already.
        self.assert_recovered(run, *([("server", victim)] if killed else []))
        names = ("2 servers", f"adding 4 ({marks[2] - marks[1]:.1f} s)", "6 servers",
                 f"draining 3 ({marks[4] - marks[3]:.1f} s)", "3 servers")
        rates = zip(names, self.stretches(run, marks))
        again = sum(x["batches"] for x in run.told("batches_recomputed"))
        print(", ".join(f"{name}: {rate:.0f} samples/s" for name, rate in rates),
              f"; {again} batches recomputed" if again else "",
              f"; longest pause {run.report['longest_pause_ms']:.0f} ms", end=" ", flush=True)

    def test_one_replica(self):
        self.check(1)

    def test_two_replicas(self):
        self.check(2)

    def test_two_replicas_and_a_kill(self):
        self.check(2, 4)

    def test_two_replicas_and_a_kill_of_one_that_leaves(self):
        self.check(2, 0)

    def test_bsp(self):
        self.check(2, None, "--sync", "bsp")


if __name__ == "__main__":
    cluster.main(__doc__)

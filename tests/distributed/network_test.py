"""What becomes of a job whose hosts are two: kills, cuts of the line, a launcher that is lost."""
import re
import time

import cluster
import two_hosts


class Network(two_hosts.TwoHosts):
    seconds = 80
    common = ("--model", "softmax", "--epochs", 2, "--checkpoint-every", "300ms",
              *cluster.slow([25] * 4))
    plain = "--allow-plaintext-on-network"

    def begin(self):
        checkpoints = self.home / "checkpoints"  # Both hosts use it, as on a shared file system.
        here = self.start("--listen", self.where, self.plain, "--here", "server:0,worker:0,worker:1",
                          "--checkpoint", checkpoints, prefix=self.on["a"], name="a")
        here.await_event("note", text=re.compile("without encryption"))
        there = self.start("--join", self.where, self.plain, "--here", "server:1,worker:2,worker:3",
                           "--checkpoint", checkpoints, prefix=self.on["b"], name="b")
        here.await_event("training_started", workers=4)
        return here, there

    def end(self, here, there):
        self.assertEqual([here.wait(), there.wait()], [0, 0])
        self.assertGreater(self.accuracy(here), 0.75)
        self.assertTrue(here.told("batches_applied", batches=1876))

    def test_two_hosts(self):
        here, there = self.begin()
        self.assertEqual(sorted(here.processes()),
                         [("coordinator", 0), ("server", 0), ("worker", 0), ("worker", 1)])
        self.assertEqual(sorted(there.processes()),
                         [("server", 1), ("worker", 2), ("worker", 3)])
        self.end(here, there)

    def test_kills_on_the_joined_host(self):
        here, there = self.begin()
        here.await_event("checkpoint_committed", checkpoint=1)
        self.assertTrue(there.kill("worker", 2))
        here.await_event("member_rejoined", member="worker 2")
        self.assertTrue(there.kill("server", 1))
        here.await_event("member_rejoined", member="server 1")
        self.end(here, there)
        recovered = {(x["role"], x["index"]) for x in here.report["recoveries"]
                     if x["recovered_ms"] is not None}
        self.assertEqual(recovered, {("worker", 2), ("server", 1)})

    def test_coordinator_lost(self):
        here, there = self.begin()
        here.await_event("checkpoint_committed", checkpoint=1)
        self.assertTrue(here.kill("coordinator", 0))
        here.await_event("coordinator_back")
        self.end(here, there)

    def test_short_cut(self):
        here, there = self.begin()
        here.await_event("checkpoint_committed", checkpoint=1)
        self.cut("down")
        time.sleep(2)  # Longer than any packet is repeated, shorter than a member may be silent.
        self.cut("up")
        self.end(here, there)
        self.assert_untold(here, *cluster.LOSSES)

    def test_long_cut(self):
        here, there = self.begin()
        here.await_event("checkpoint_committed", checkpoint=1)
        self.cut("down")
        here.await_event("server_lost", member="server 1")
        there.await_event("coordinator_silent")
        self.cut("up")
        here.await_event("member_rejoined", member="server 1")
        self.end(here, there)

    def test_joined_launcher_lost(self):
        """The rest of the job waits for the lost host and goes on when it is back."""
        here, there = self.begin()
        here.await_event("checkpoint_committed", checkpoint=1)
        there.launcher.kill()
        there.wait()
        here.await_event("server_lost", member="server 1")
        self.assertIsNone(here.launcher.poll())
        again = self.start(*there.words[5:-2], prefix=there.words[:4], common=(), name="again")
        self.end(here, again)


if __name__ == "__main__":
    cluster.main(__doc__)

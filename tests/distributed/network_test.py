"""Two hosts: network namespaces with addresses of their own, joined by a pair of virtual cards.
Needs root.
"""
import os
import pathlib
import subprocess
import time

import cluster

HOSTS = {"a": "10.203.77.1", "b": "10.203.77.2"}
PORT = 7777
DIRECTORY_OF_NAMES = pathlib.Path("/run/netns")


def ip(*words):
    done = subprocess.run(["ip", *words], capture_output=True, text=True, timeout=20, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"ip {' '.join(words)}: {done.stderr.strip()}")


class Network(cluster.ClusterTest):
    common = ("--model", "softmax", "--epochs", 2, "--checkpoint-every", "300ms",
              *[word for i in range(4) for word in ("--slow", f"{i}:5")])

    def setUp(self):
        super().setUp()
        self.names = {host: f"troupe-{os.getpid()}-{host}" for host in HOSTS}
        try:
            self.make_network()
        except (OSError, RuntimeError) as why:
            self.skipTest(f"no network namespaces here: {why}")

    def make_network(self):
        for name in self.names.values():
            self.addCleanup(self.remove, name)  # Before it exists: also for half of one.
            ip("netns", "add", name)
        card = {host: f"tr{os.getpid()}{host}" for host in HOSTS}
        ip("link", "add", card["a"], "netns", self.names["a"], "type", "veth",
           "peer", "name", card["b"], "netns", self.names["b"])
        for host, address in HOSTS.items():
            ip("-n", self.names[host], "addr", "add", f"{address}/24", "dev", card[host])
            ip("-n", self.names[host], "link", "set", card[host], "up")
            ip("-n", self.names[host], "link", "set", "lo", "up")

    def remove(self, name):
        self.end_runs()
        if (DIRECTORY_OF_NAMES / name).exists():
            ip("netns", "del", name)

    plain = "--allow-plaintext-on-network"

    def begin(self):
        checkpoints = self.home / "checkpoints"  # Of both hosts, as on a shared file system.
        on = {host: ("ip", "netns", "exec", name) for host, name in self.names.items()}
        where = f"{HOSTS['a']}:{PORT}"
        here = self.start("--listen", where, self.plain, "--here", "server:0,worker:0,worker:1",
                          "--checkpoint", checkpoints, prefix=on["a"], name="a")
        here.await_text("without encryption")
        there = self.start("--join", where, self.plain, "--here", "server:1,worker:2,worker:3",
                           "--checkpoint", checkpoints, prefix=on["b"], name="b")
        here.await_text("training with 4 workers")
        return here, there

    def end(self, here, there):
        self.assertEqual([here.wait(), there.wait()], [0, 0])
        self.assertGreater(self.accuracy(here), 0.75)
        self.assertIn("all 1876 batches are applied", here.out)

    def test_two_hosts(self):
        here, there = self.begin()
        self.assertEqual(sorted(here.processes()),
                         [("coordinator", 0), ("server", 0), ("worker", 0), ("worker", 1)])
        self.assertEqual(sorted(there.processes()),
                         [("server", 1), ("worker", 2), ("worker", 3)])
        self.end(here, there)

    def test_kills_on_the_joined_host(self):
        here, there = self.begin()
        here.await_text("checkpoint 1 committed")
        self.assertTrue(there.kill("worker", 2))
        here.await_text("worker 2 rejoined")
        self.assertTrue(there.kill("server", 1))
        here.await_text("server 1 rejoined")
        self.end(here, there)
        recovered = {(x["role"], x["index"]) for x in here.report["recoveries"]
                     if x["recovered_ms"] is not None}
        self.assertEqual(recovered, {("worker", 2), ("server", 1)})

    def test_coordinator_lost(self):
        here, there = self.begin()
        here.await_text("checkpoint 1 committed")
        self.assertTrue(here.kill("coordinator", 0))
        here.await_text("coordinator back")
        self.end(here, there)

    def cut(self, state):
        ip("-n", self.names["b"], "link", "set", f"tr{os.getpid()}b", state)

    def test_short_cut(self):
        here, there = self.begin()
        here.await_text("checkpoint 1 committed")
        self.cut("down")
        time.sleep(2)  # Longer than any repetition of a packet, shorter than what counts as death.
        self.cut("up")
        self.end(here, there)
        self.assertNotIn("lost", here.out)

    def test_long_cut(self):
        here, there = self.begin()
        here.await_text("checkpoint 1 committed")
        self.cut("down")
        here.await_text("server 1 lost")
        there.await_text("no word from the coordinator")
        self.cut("up")
        here.await_text("server 1 rejoined")
        self.end(here, there)

    def test_joined_launcher_lost(self):
        """The rest of the job waits for that host, and goes on when it is there again."""
        here, there = self.begin()
        here.await_text("checkpoint 1 committed")
        there.launcher.kill()
        there.wait()
        here.await_text("server 1 lost")
        self.assertIsNone(here.launcher.poll())
        again = self.start(*there.words[5:-2], prefix=there.words[:4], common=(), name="again")
        self.end(here, again)


if __name__ == "__main__":
    cluster.main(__doc__)

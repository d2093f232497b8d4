"""`troupe add` and `troupe drain`: what they refuse and how they end, and servers of other hosts."""
import signal
import subprocess
import time

import cluster
from resize_test import ELEMENTS, SLOW, Resizing, lasting


class Commands(Resizing):
    """Checks exit statuses, and that one line names the error."""
    seconds = 50

    def refused(self, status, pattern, *words):
        said = self.troupe(*words, status=status)
        self.assertEqual(len(said.splitlines()), 1, said)
        self.assertRegex(said, pattern)

    def test_bad_words(self):
        for words, pattern in [(("add",), "RUN_DIRECTORY"), (("drain", "x"), "SERVERS"),
                               (("drain", "x", "worker:1"), "'worker:1' is not a server"),
                               (("drain", "x", "3"), "'3' is not a server"),
                               (("add", "x", "--count", 0), "--count"),
                               (("add", "x", "--timeout", 0), "--timeout")]:
            self.refused(2, pattern, *words)

    def test_no_run(self):
        self.refused(1, "no run in .*/missing: cannot read .*/cluster.json: No such file", "add",
                     self.home / "missing")
        self.refused(1, "no such file|cannot", "drain", self.home, "server:0", "--tls", self.home)
        self.refused(1, "there is no directory .*/missing", "scrub", self.home / "missing")

    def test_a_run_that_has_ended(self):
        run = self.finish("--samples", 40, common=("--elements", 64, "--batch", 1, "--servers", 1))
        self.refused(1, "no job answers at .*: the run has ended", "add", run.directory)
        with open("/dev/full", "w") as full:  # The command itself would succeed.
            done = subprocess.run([cluster.arguments.programs / "troupe", "scrub", run.directory],
                                  stdout=full, stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, "^troupe: cannot write its output: No space left on device\n$")

    def test_refusals(self):
        run = self.start("--samples", lasting(15), "--epochs", 1, "--replicas", 2)
        run.await_event("training_started")
        where = run.directory
        self.refused(1, "one server would be left, and each chain has 2 replicas", "drain", where,
                     "server:0")
        self.refused(1, "no server would be left", "drain", where, "server:0", "server:1")
        self.refused(1, "cannot drain server 7: the job has no such server", "drain", where,
                     "server:7")
        run.signal(signal.SIGSTOP)  # The launcher cannot start the server.
        self.refused(1, "not done within 3 s; the job goes on with it", "add", where,
                     "--timeout", 3)
        run.signal(signal.SIGCONT)
        self.assertEqual(run.wait(), 0)
        self.assert_exact(run, ELEMENTS)

    def test_another_host_lends_a_server_and_gets_it_back(self):
        where = f"127.0.0.1:{cluster.free_port()}"
        words = ("--samples", lasting(15), "--epochs", 1, "--replicas", 2)
        run = self.start("--listen", where, *words)
        run.await_event("training_started")
        other = self.start("--join", where, "--here", "server:2", "--checkpoint",
                           run.directory / "checkpoints", *words)
        run.await_event("server_placed", member="server 2", shards=8)
        self.assertTrue(other.kill("server", 2))
        run.await_event("member_rejoined", member="server 2")
        self.assertEqual([self.servers_of(run), self.servers_of(other)], [[0, 1], [2]])
        self.troupe("drain", other.directory, "server:2")
        cluster.poll(lambda: not self.servers_of(other), 20, "the end of server 2")
        time.sleep(1.5)  # A process that ends with status 0 is started again after 1 s.
        self.assertEqual([self.servers_of(run), self.servers_of(other)], [[0, 1], []])
        self.assertEqual([run.wait(), other.wait()], [0, 0])
        self.assert_exact(run, ELEMENTS)
        self.assert_untold(run, *cluster.ROLLBACKS)

    def test_more_servers_than_chains_can_use(self):
        run = self.start("--samples", lasting(10), "--epochs", 1, common=(
            "--elements", ELEMENTS, "--batch", 1, "--servers", 2, *SLOW))
        run.await_event("training_started")
        said = self.troupe("add", run.directory)
        self.assertIn("server 2 of count_batches will be without work", said)
        self.assertIn("server 2 holds no shard, as there are not enough\n", said)
        said = self.troupe("drain", run.directory, "server:2")
        self.assertTrue(said.startswith("draining server 2\n"), said)
        self.assertTrue(said.endswith("\ndrained server 2\n"), said)
        self.assertEqual(run.wait(), 0)


if __name__ == "__main__":
    cluster.main(__doc__)

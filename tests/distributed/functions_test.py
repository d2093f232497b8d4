"""Checks server functions in processes: with kills each batch counts once in values and in state,
replicas agree byte for byte, and a function that breaks the rules ends the job in one line.
"""
import random
import re
import subprocess

import cluster

ELEMENTS = 100_000
OTHERWISE = r"computes 'host' otherwise \([0-9a-f]{8}, the job [0-9a-f]{8}\): build all hosts alike"


class Functions(cluster.ClusterTest):
    """The function `add` counts its steps in the state, and fails if the count is not exact."""
    seconds = 60
    program = "count_batches"
    common = ("--elements", ELEMENTS, "--batch", 1, "--epochs", 1, "--function", "add")
    slow = cluster.slow([6] * 4)

    def survive(self, samples, *options, servers=3):
        """Kills workers and servers; `samples` are those of a run with five kills."""
        print(f"seed {cluster.arguments.seed}", end=" ", flush=True)
        kills = cluster.arguments.kills
        dice = random.Random(cluster.arguments.seed)
        run = self.start("--samples", samples * kills // 5, "--workers", 4, "--servers", servers,
                         *self.slow, "--checkpoint-every", "300ms", *options)
        targets = [*(("worker", i) for i in range(4)), *(("server", i) for i in range(servers))]
        self.survive_kills(run, kills, ELEMENTS, dice, (0.3, 1.3), lambda: dice.choice(targets), 4)

    def test_asp_with_kills_and_two_replicas(self):
        self.survive(4000, "--replicas", 2, "--verify-replicas", 3)

    def test_bsp_with_kills_and_two_replicas(self):
        self.survive(3000, "--sync", "bsp", "--replicas", 2, "--verify-replicas", 1)

    def test_rows_with_kills_and_two_replicas(self):
        self.survive(4000, "--sparse", "--replicas", 2, "--verify-replicas", 3)

    def test_from_checkpoints(self):
        self.survive(4000)

    def test_from_logs(self):
        self.survive(4000, "--durability", "log")

    def test_other_ways_to_run(self):
        for words in (("--threads",), ("--simulate",), ("--sync", "allreduce"),
                      ("--threads", "--sparse", "--sync", "bsp")):
            with self.subTest(words):
                processes = "allreduce" in words
                run = self.finish("--samples", 400, "--workers", 4, *words, name=words[-1],
                                  processes=processes)
                self.assertIn(f"right: {ELEMENTS} of {ELEMENTS}", run.out)

    def test_a_replay_ends_in_the_same_bytes(self):
        run = self.finish("--samples", 400, "--workers", 2, "--record", "record", "--export",
                          "trained.npz", "--kill", "worker:1@0.2", *cluster.slow([2] * 2))
        words = [cluster.arguments.programs / self.program, *self.common, "--samples", 400,
                 "--replay", "record", "--compare", "trained.npz"]
        again = subprocess.run([str(word) for word in words], cwd=run.home, capture_output=True,
                               text=True, timeout=60, check=False)
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertIn("equal to trained.npz\n", again.stdout)

    # -- refused --

    def refused(self, *options, **more):
        """Returns the only line of a run that fails."""
        run = self.start("--samples", 4000, "--workers", 2, *options, **more)
        self.assertEqual(run.wait(40), 1 if more.get("processes", True) else 2, run.err)
        self.assertEqual(len(run.err.splitlines()), 1, run.err)
        return run.err

    def test_ways_to_run_that_a_function_does_not_fit(self):
        self.assertIn("it names a server function, and hogwild has no server",
                      self.refused("--threads", "--sync", "hogwild", processes=False))
        self.assertIn("table 'counts' has a function, which gets each push by itself: leave out "
                      "--apply-batch", self.refused("--threads", "--apply-batch", 4,
                                                    processes=False))

    def test_replicas_that_differ_end_the_job(self):
        said = self.refused("--function", "hidden", "--servers", 2, "--replicas", 2,
                            "--verify-replicas", 10, *self.slow[:4],
                            common=self.common[:-2])
        self.assertRegex(said, r"shard \d has other values on server \d than on server \d after "
                               r"version \d+0 \([0-9a-f]{8}, [0-9a-f]{8}\): a server function reads")

    def test_a_function_that_fails_ends_the_job(self):
        for words in ((), ("--sync", "allreduce")):
            with self.subTest(words):
                said = self.refused("--function", "fail", *words, common=self.common[:-2],
                                    name="-".join(words))
                self.assertIn("function 'fail' gave a value that is not finite: table 'counts', "
                              "elements", said)

    def test_a_host_of_another_build_is_refused(self):
        where = f"127.0.0.1:{cluster.free_port()}"
        both = ("--samples", 400, "--workers", 2, "--function", "host", "--checkpoint",
                self.home / "checkpoints")
        main = self.start(*both, "--listen", where, "--here", "server:0,worker:0", name="main",
                          common=self.common[:-2])
        main.await_true(lambda: "join" in main.out, 20, "an address to join")
        joining = (*both, "--join", where, "--here", "server:1,worker:1")
        for name, environment in (("other", "COUNT_BATCHES_HOST=1"), ("alike", "NOTHING=1")):
            run = self.start(*joining, name=name, prefix=("env", environment),
                             common=self.common[:-2])
            if name == "other":
                self.assertEqual(run.wait(40), 1, run.err)
                self.assertRegex(run.err, OTHERWISE)
                self.assertEqual(len(run.err.splitlines()), 1, run.err)
        self.assertEqual(main.wait(60), 0, main.err)
        self.assert_exact(main, ELEMENTS)
        self.assertTrue(re.search(OTHERWISE, str(main.logs)), "the main host does not tell")


if __name__ == "__main__":
    options = cluster.parser(__doc__)
    options.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    options.add_argument("--kills", type=int, default=cluster.count(3, 5))
    cluster.main(options=options)

"""Checks training without servers, by 10_gossip: accuracy, deaths of peers, of the collector and of
the coordinator, checkpoints, and the other ways to run. Each batch is applied, whatever dies.
"""
import cluster

EPOCHS = 3
BATCHES = EPOCHS * 938  # 60,000 drawn digits, 64 per batch.
PEERS = 4
ACCURACY = 0.92

# (words, exit status, pattern of the single line). {home} is the test's directory.
BAD_INPUT = [
    ("--workers 1", 2, "gossip needs 2 workers or more, not 1"),
    ("--workers 7 --neighbours torus", 2, "7 is no product of two numbers of 2 or more: use ring"),
    ("--workers 3 --neighbours torus:2x2", 2, "there are 3 workers: use --workers 4"),
    ("--neighbours torus:0x4", 2, "'torus:0x4' names no neighbour graph: use ring, torus"),
    ("--neighbours star", 2, "'star' names no neighbour graph: use ring, torus"),
    ("--neighbours file:{home}/none", 2, "cannot read .*/none"),
    ("--neighbours file:{home}/one-way", 2, "one-way: asymmetric: 1 2 is there and 2 1 is not"),
    ("--neighbours file:{home}/apart", 2, "apart: unconnected: no way leads from peer 0 to peers "
     "2, 3"),
    ("--neighbours file:{home}/large", 2, "the list has peers 0 to 4, which are 5, and there are 4 "
     "workers"),
    ("--neighbours file:{home}/twice", 2, "twice: line 2: the edge 0 1 is there twice"),
    ("--mixing all", 2, "'all' is no way of mixing: use each_step or pairwise"),
    ("--sync bsp", 2, "--sync has no effect: peers is gossip"),
    ("--compress fp16", 2, "--compress: peers is gossip, whose gradients stay in their workers"),
    ("--workers-per-process 2", 2, "--workers-per-process: peers is gossip"),
    ("--servers 2", 2, "--servers has no effect: peers is gossip"),
    ("--record {home}/trace", 2, "--record: peers is gossip, which keeps no order of pushes"),
]
EDGE_LISTS = {"one-way": "0 1\n1 0\n1 2\n2 3\n3 2\n", "apart": "0 1\n2 3\n",
              "large": "0 1\n1 2\n2 3\n3 4\n", "twice": "0 1\n0 1\n1 2\n2 3\n"}


class Gossip(cluster.ClusterTest):
    program = "gossip"
    seconds = 30
    common = ("--data", "digits", "--model", "mlp:32", "--lr", 0.3)

    def assert_learnt(self, run, batches=BATCHES, accuracy=ACCURACY):
        """Checks that each batch is applied, and what the mean of the peers has learnt."""
        self.assertTrue(run.told("batches_applied", batches=batches), run.out[-1000:])
        self.assertGreater(self.accuracy(run), accuracy)

    def survive(self, name, *options, deaths):
        """Runs a job of which lists of processes die, one list after the other. Returns the run."""
        run = self.start("--workers", PEERS, "--epochs", EPOCHS, *cluster.slow([8] * PEERS),
                         *options, name=name)
        run.await_epoch(0.2, within=40)
        for together in deaths:
            begun = len(run.told("member_rejoined"))
            self.assertTrue(run.kill_together(together), together)
            run.await_event("member_rejoined", count=begun + len(together))
        self.assertEqual(run.wait(), 0)
        self.assert_recovered(run, *(who for together in deaths for who in together))
        self.assert_learnt(run)
        return run

    def test_peers_die(self):
        """First one dies, then two neighbours of it, which leaves one peer alone in the ring."""
        for mixing in ("pairwise", "each_step"):
            with self.subTest(mixing):
                run = self.survive(mixing, "--mixing", mixing,
                                   deaths=[[("worker", 1)], [("worker", 0), ("worker", 2)]])
                self.assertIn("deaths cut the neighbour graph: the parts 1 | 3 do not mix",
                              run.logs["server-0"])

    def test_collector_dies(self):
        """Peers go on meanwhile: each batch is computed once."""
        run = self.start("--workers", PEERS, "--epochs", EPOCHS, *cluster.slow([8] * PEERS))
        run.await_epoch(0.2, within=40)
        self.assertTrue(run.kill("server", 0))
        self.assertEqual(run.wait(), 0)
        self.assert_recovered(run, ("server", 0))
        self.assert_learnt(run)
        self.assert_untold(run, "worker_lost")
        self.assertEqual(run.report["pushes"]["sent"], BATCHES)

    def test_coordinator_dies(self):
        """The successor trusts the batches that living peers have finished."""
        run = self.start("--workers", PEERS, "--epochs", EPOCHS, *cluster.slow([8] * PEERS),
                         "--neighbours", "complete")
        run.await_epoch(0.2, within=40)
        self.assertTrue(run.kill("coordinator", 0))
        self.assertEqual(run.wait(), 0)
        self.assert_recovered(run, ("coordinator", 0))
        self.assert_learnt(run)
        self.assert_untold(run, "worker_lost")
        self.assertEqual(run.report["pushes"]["sent"], BATCHES)

    def test_checkpoints(self):
        """A checkpoint is the mean of all peers. Other numbers of them go on with it."""
        def export_of(name, *options):
            file = self.home / f"{name}.npz"
            run = self.finish("--checkpoint", self.home / "state", "--export", file, *options,
                              name=name)
            return file.read_bytes(), run
        first, run = export_of("whole", "--workers", PEERS, "--epochs", EPOCHS)
        self.assert_learnt(run)
        self.assertEqual(run.report["pushes"]["sent"], BATCHES)
        again, run = export_of("completed", "--workers", 3, "--epochs", EPOCHS, "--resume")
        self.assertEqual(again, first)
        self.assertEqual(run.report["pushes"]["sent"], 0)
        # More epochs, with another graph and another way of mixing. After one of them the accuracy
        # still changes by some points from batch to batch.
        more_epochs = 4
        more, run = export_of("longer", "--workers", 6, "--neighbours", "torus", "--mixing",
                              "each_step", "--epochs", EPOCHS + more_epochs, "--resume")
        self.assertNotEqual(more, first)
        self.assertEqual(run.report["pushes"]["sent"], more_epochs * BATCHES // EPOCHS)
        self.assert_learnt(run, BATCHES + more_epochs * BATCHES // EPOCHS)

    def test_other_ways(self):
        for mode in ("--threads", "--simulate"):
            with self.subTest(mode):
                run = self.finish("--workers", 3, "--batch", 128, "--epochs", 1, mode,
                                  processes=False, name=mode)
                self.assertEqual(run.report["pushes"]["applied"], 469)
                self.assertGreater(self.accuracy(run), 0.7)

    def test_bad_input(self):
        for name, text in EDGE_LISTS.items():
            (self.home / name).write_text(text)
        self.assert_refused(BAD_INPUT)


if __name__ == "__main__":
    cluster.main(__doc__)

"""With three replicas SIGKILLs of servers take nothing back, and with write-ahead logs not even those
of a chain's only server: no update is rolled back, and every batch ends up applied exactly once.
--kills 50 for a longer trial; --seed repeats the order.
"""
import random

import cluster

WORKERS = 4
ELEMENTS = 100_000


class Kills(cluster.ClusterTest):
    program = "count_batches"
    common = ("--elements", ELEMENTS, "--batch", 1, "--workers", WORKERS,
              "--checkpoint-every", "2s",
              *cluster.slow([4] * WORKERS))

    def check(self, kills, *options):
        # A kill each 1.3 s or so, and 1000 batches/s at most. Whole clocks, as bsp needs them.
        samples = 1300 * kills // WORKERS * WORKERS
        print(f"seed {cluster.arguments.seed}", end=" ", flush=True)
        dice = random.Random(cluster.arguments.seed)
        run = self.start("--samples", samples, "--epochs", 1, *self.safety, *options)
        others = [("worker", i) for i in range(WORKERS)] + [("coordinator", 0)]
        servers = [("server", i) for i in range(self.servers)]
        report = self.survive_kills(  # The pause is for the replica before to join again.
            run, kills, ELEMENTS, dice, (0.8, 1.8),
            lambda: dice.choice(servers if dice.random() < 0.7 else others))
        for each in report["recoveries"]:
            self.assertEqual(each["updates_rolled_back"], 0, each)
        self.assertNotIn("rolled back", run.out)


class Replicas(Kills):
    servers = 4
    safety = ("--servers", servers, "--replicas", 3)

    def test_asp(self):
        self.check(cluster.arguments.kills)

    def test_bsp(self):
        self.check(cluster.arguments.kills // 2, "--sync", "bsp")

    def test_sparse(self):
        self.check(cluster.arguments.kills // 2, "--sparse")


class Logs(Kills):
    servers = 2
    safety = ("--servers", servers, "--durability", "log")

    def test_asp(self):
        self.check(cluster.arguments.kills // 2)

    def test_bsp(self):
        self.check(cluster.arguments.kills // 2, "--sync", "bsp")

    def test_sparse(self):
        self.check(cluster.arguments.kills // 2, "--sparse")


if __name__ == "__main__":
    options = cluster.parser(__doc__)
    options.add_argument("--kills", type=int, default=12, help="of the asp run; fewer in the others")
    options.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    cluster.main(options=options)

"""Checks that SIGKILLs of servers roll back no update, and that each batch is applied exactly once:
with three replicas, and with write-ahead logs even if a chain's only server is killed. --kills 50
makes a longer trial; --seed repeats the order.
"""
import random

import cluster

WORKERS = 4
ELEMENTS = 100_000


def victims(dice, servers, others):
    """Yields processes to kill. Each round has every server once, so that in the end no chain has a
    member that it began with.
    """
    while True:
        kills = [*servers, *dice.choices(others, k=len(servers) // 2)]
        dice.shuffle(kills)
        yield from kills


class Kills(cluster.ClusterTest):
    program = "count_batches"
    common = ("--elements", ELEMENTS, "--batch", 1, "--workers", WORKERS,
              "--checkpoint-every", "2s",
              *cluster.slow([4] * WORKERS))

    def check(self, kills, *options):
        # A kill comes about every 1.3 s, at 1000 batches/s at most. bsp needs whole clocks.
        samples = 1300 * kills // WORKERS * WORKERS
        print(f"seed {cluster.arguments.seed}", end=" ", flush=True)
        dice = random.Random(cluster.arguments.seed)
        run = self.start("--samples", samples, "--epochs", 1, *self.safety, *options)
        others = [("worker", i) for i in range(WORKERS)] + [("coordinator", 0)]
        servers = [("server", i) for i in range(self.servers)]
        report = self.survive_kills(  # The pause lets the killed replica join again.
            run, kills, ELEMENTS, dice, (0.8, 1.8), victims(dice, servers, others).__next__)
        for each in report["recoveries"]:
            self.assertEqual(each["updates_rolled_back"], 0, each)
        self.assert_untold(run, *cluster.ROLLBACKS)


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
    options.add_argument("--kills", type=int, default=cluster.count(6, 12),
                         help="of the asp run; fewer in the others")
    options.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    cluster.main(options=options)

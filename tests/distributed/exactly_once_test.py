"""Checks by the sums of count_batches that every batch is applied exactly once under random
SIGKILLs. --kills 50 makes a longer trial; --seed repeats the order of the kills.
"""
import random

import cluster

WORKERS, SERVERS = 4, 3
ELEMENTS = 100_000


class ExactlyOnce(cluster.ClusterTest):
    program = "count_batches"
    common = ("--elements", ELEMENTS, "--batch", 1, "--workers", WORKERS, "--servers", SERVERS,
              "--checkpoint-every", "300ms",
              *cluster.slow([4] * WORKERS))

    def check(self, kills, *options):
        # A kill comes about every 0.85 s, at 1000 batches/s at most. bsp needs whole clocks.
        samples = 850 * kills // WORKERS * WORKERS
        print(f"seed {cluster.arguments.seed}", end=" ", flush=True)
        dice = random.Random(cluster.arguments.seed)
        run = self.start("--samples", samples, "--epochs", 1, *options)
        targets = ([("worker", i) for i in range(WORKERS)] + [("coordinator", 0)]
                   + [("server", i) for i in range(SERVERS)])
        # The launcher gives up a process that dies again and again before it has done any work.
        deaths_max = 4 if kills <= 4 * len(targets) else None
        self.survive_kills(run, kills, ELEMENTS, dice, (0.1, 1.6), lambda: dice.choice(targets),
                           deaths_max)

    def test_asp(self):
        self.check(cluster.arguments.kills)

    def test_bsp(self):
        self.check((cluster.arguments.kills + 2) // 3, "--sync", "bsp")

    def test_sparse(self):
        self.check((cluster.arguments.kills + 1) // 2, "--sparse")

    def test_sparse_bsp(self):
        self.check((cluster.arguments.kills + 2) // 3, "--sync", "bsp", "--sparse")


if __name__ == "__main__":
    options = cluster.parser(__doc__)
    options.add_argument("--kills", type=int, default=cluster.count(8, 15),
                         help="of the asp run; fewer in the others")
    options.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    cluster.main(options=options)

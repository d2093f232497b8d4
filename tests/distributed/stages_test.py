"""Checks stages of a program's own in processes: that each batch counts once behind them, despite
kills, and that a stage that breaks a rule ends the job in one line.
"""
import random

import cluster

ELEMENTS = 100_000


class Stages(cluster.ClusterTest):
    program = "count_batches"
    common = ("--elements", ELEMENTS, "--batch", 1, "--epochs", 1, "--servers", 3,
              "--checkpoint-every", "300ms")

    def survive(self, samples, *options, workers=(0, 1, 2, 3)):
        """Kills workers and servers; `samples` are those of a run with five kills."""
        print(f"seed {cluster.arguments.seed}", end=" ", flush=True)
        kills = cluster.arguments.kills
        dice = random.Random(cluster.arguments.seed)
        run = self.start("--samples", samples * kills // 5, "--workers", 4,
                         *cluster.slow([6] * 4), "--stage", "plain", *options)
        targets = [*(("worker", i) for i in workers), *(("server", i) for i in range(3))]
        self.survive_kills(run, kills, ELEMENTS, dice, (0.3, 1.3), lambda: dice.choice(targets), 4)

    def test_asp_with_kills(self):
        self.survive(4000)

    def test_bsp_with_kills(self):
        self.survive(3000, "--sync", "bsp")

    def test_ssp_with_kills(self):
        self.survive(3000, "--sync", "ssp:2")

    def test_before_a_reducer_with_kills(self):
        self.survive(4000, "--workers-per-process", 2, workers=(0, 2))

    def test_before_a_codec_with_kills(self):
        self.survive(4000, "--compress", "fp16")

    def test_threads_and_simulation(self):
        for mode in ("--threads", "--simulate"):
            with self.subTest(mode):
                run = self.finish("--samples", 500, "--workers", 4, "--stage", "plain", mode,
                                  processes=False, name=mode,
                                  common=("--elements", ELEMENTS, "--batch", 1, "--epochs", 1))
                self.assertIn(f"right: {ELEMENTS} of {ELEMENTS}", run.out)
                self.assertEqual(run.report["counts"], {"plain.pushes": 500})

    def test_each_mistake_ends_the_job_and_names_stage_and_batch(self):
        mistakes = {
            "swallow": r"stage 'swallow' answered batch \d+ of worker \d, which was not applied",
            "double": r"stage 'double' forwarded batch \d+ of worker \d twice",
            "rename": r"stage 'rename' forwarded batch \d+ of worker \d, which it does not hold",
            "reorder": r"stage 'reorder' kept back batch \d+ of worker \d and forwarded a later",
            "throw": r"stage 'throw' failed: a stage that fails on purpose",
        }
        for name, pattern in mistakes.items():
            with self.subTest(name):
                run = self.start("--samples", 4000, "--workers", 2, "--pull-ahead", 1, "--stage",
                                 name, name=name)
                self.assertEqual(run.wait(30), 1, run.err)
                self.assertEqual(len(run.err.splitlines()), 1, run.err)
                self.assertRegex(run.err, pattern)


if __name__ == "__main__":
    options = cluster.parser(__doc__)
    options.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    options.add_argument("--kills", type=int, default=5)
    cluster.main(options=options)

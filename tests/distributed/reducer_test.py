"""Checks workers that share a process and its reducer: the bytes they send, that each batch counts
once despite late workers and kills, and that bsp ends in the same bytes.
"""
import random

import cluster

ELEMENTS = 100_000
SAMPLES = cluster.count(400, 800)


class Counting(cluster.ClusterTest):
    seconds = 50
    program = "count_batches"
    common = ("--elements", ELEMENTS, "--batch", 1, "--epochs", 1, "--servers", 3,
              "--checkpoint-every", "300ms")

    def survive(self, samples_per_kill, kills, *options):
        print(f"seed {cluster.arguments.seed}", end=" ", flush=True)
        dice = random.Random(cluster.arguments.seed)
        run = self.start("--samples", samples_per_kill * kills, "--workers", 8,
                         "--workers-per-process", 4, *cluster.slow([6] * 8), *options)
        targets = [("worker", 0), ("worker", 4), ("coordinator", 0),
                   *(("server", i) for i in range(3))]
        report = self.survive_kills(run, kills, ELEMENTS, dice, (0.3, 1.3),
                                    lambda: dice.choice(targets), 4)
        print(report["reducers"], end=" ", flush=True)
        return report

    def test_asp_with_kills(self):
        report = self.survive(1000, cluster.count(5, 8))
        self.assertGreater(report["reducers"]["sums"], 100)

    def test_ssp_with_kills(self):
        memory = ("--push-memory", 1)  # Less than the pushes of a process that wait for answers.
        report = self.survive(1200, cluster.count(3, 5), "--sync", "ssp:2", *memory)
        self.assertGreater(report["reducers"]["sums"], 100)

    def test_bsp_with_kills(self):
        report = self.survive(1000, cluster.count(3, 4), "--sync", "bsp")
        self.assertEqual(report["reducers"]["sums"], 0)

    def test_replicas_with_logs_and_kills(self):
        report = self.survive(1500, cluster.count(3, 4), "--replicas", 2, "--durability", "log")
        self.assertGreater(report["reducers"]["sums"], 100)

    def test_sparse(self):
        run = self.finish("--samples", 1000, "--workers", 4, "--workers-per-process", 4, "--sparse",
                          *cluster.slow([6] * 4))
        self.assert_exact(run, ELEMENTS)
        self.assertGreater(run.report["reducers"]["sums"], 100)

    def test_threads(self):
        run = self.finish("--samples", 1000, "--workers", 4, "--workers-per-process", 4, "--threads",
                          "--events", "events.jsonl", processes=False,
                          common=("--elements", ELEMENTS, "--batch", 1, "--epochs", 1))
        self.assert_exact(run, ELEMENTS)

    def test_one_worker_past_the_deadline(self):
        run = self.finish("--samples", 1000, "--workers", 4, "--workers-per-process", 4,
                          "--reduce-wait", 20, "--stragglers", "off",
                          *cluster.slow([10, 10, 10, 200]))
        self.assert_exact(run, ELEMENTS)
        reducers, pushes = run.report["reducers"], run.report["pushes"]
        print(reducers, pushes, end=" ", flush=True)
        self.assertGreater(reducers["left_out"]["worker-3"], 5)
        self.assertEqual(pushes["applied"], 1000)
        self.assertEqual(pushes["duplicates_dropped"], 0)


class Traffic(cluster.ClusterTest):
    program = "count_batches"
    alone = "workers that a busy machine delays share fewer requests"
    common = Counting.common

    def bytes_per_batch(self, name, *options):
        run = self.finish("--samples", SAMPLES, "--workers", 4, *cluster.slow([20] * 4), *options,
                          name=name)
        self.assert_exact(run, ELEMENTS)
        wire = run.report["wire_bytes"]
        return wire["sent"] / SAMPLES, wire["received"] / SAMPLES

    def test_a_quarter_of_the_bytes(self):
        for sync, pushes, pulls in (("asp", 0.35, 0.35), ("bsp", 1.05, 0.35)):
            sent, received = self.bytes_per_batch(f"{sync}-alone", "--sync", sync)
            sent_less, received_less = self.bytes_per_batch(f"{sync}-together", "--sync", sync,
                                                            "--workers-per-process", 4)
            print(f"\n  {sync}: bytes a step sent {sent:.0f} -> {sent_less:.0f} "
                  f"({sent_less / sent:.2f}), received {received:.0f} -> {received_less:.0f} "
                  f"({received_less / received:.2f})", end=" ", flush=True)
            self.assertLess(sent_less, pushes * sent)
            self.assertLess(received_less, pulls * received)


class Bytes(cluster.ClusterTest):
    common = ("--sync", "bsp", "--model", "mlp:16", "--batch", 512, "--epochs", 1, "--workers", 4,
              "--seed", 7, "--stragglers", "off")

    def parameters(self, name, *options):
        exported = self.home / f"{name}.npz"
        self.finish(*options, "--export", exported, name=name)
        return exported.read_bytes()

    def test_bsp_ends_in_the_same_bytes(self):
        plain = self.parameters("plain")
        self.assertEqual(plain, self.parameters("four", "--workers-per-process", 4))
        self.assertEqual(plain, self.parameters("late", "--workers-per-process", 2,
                                                "--reduce-wait", 1, "--slow", "1:30"))


if __name__ == "__main__":
    options = cluster.parser(__doc__)
    options.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    cluster.main(options=options)

"""Checks that sparse tables train to the results of dense tables."""
import random
import re
import signal
import time

import cluster

FEATURES, SAMPLES = 400, 2000


def write_samples(path, seed):
    """Writes samples whose classes differ by the features that occur; no data set is needed."""
    dice = random.Random(seed)
    with path.open("w") as file:
        for _ in range(SAMPLES):
            label = dice.randrange(3)
            features = {3 * dice.randrange(FEATURES // 3) + dice.choice((label, dice.randrange(3)))
                        for _ in range(12)}
            row = " ".join(f"{i + 1}:{dice.choice((0.5, 1, 2))}" for i in sorted(features))
            file.write(f"{label} {row}\n")


class Sparse(cluster.ClusterTest):
    common = ("--batch", 50, "--workers", 2, "--model", "softmax")

    def setUp(self):
        super().setUp()
        files = [self.home / name for name in ("train", "test")]
        for seed, path in enumerate(files):
            write_samples(path, seed)
        self.data = ("--data", f"libsvm:{files[0]},{files[1]}")

    def loss(self, name, *options, epochs=3, servers=2, **more):
        run = self.finish(*self.data, "--epochs", epochs, "--servers", servers, *options,
                          name=name, **more)
        self.assertGreater(run.report["test_accuracy"], 0.6)
        losses = [x["test_loss"] for x in run.report["loss_curve"] if "test_loss" in x]
        return losses[-1], run

    def test_same_as_dense(self):
        """bsp fixes the order of sums, so even the last bits are equal: a row without a gradient is
        unchanged, and so is a dense element with a zero gradient."""
        dense, _ = self.loss("dense", "--sync", "bsp")
        sparse, run = self.loss("sparse", "--sync", "bsp", "--sparse")
        self.assertEqual(dense, sparse)
        bookless, other = self.loss("bookless", "--sync", "bsp", "--sparse", "--no-key-cache")
        self.assertEqual(sparse, bookless)
        self.assertLess(run.report["wire_bytes"]["sent"], other.report["wire_bytes"]["sent"])
        alone, _ = self.loss("threads", "--sync", "bsp", "--sparse", "--threads",
                             processes=False)
        self.assertEqual(sparse, alone)

    def test_asp(self):
        self.loss("asp", "--sparse", "--optimizer", "adam", "--lr", 0.01)

    def test_dense_layers_on_a_device(self):
        """The rows of features stay on the CPU, also beside a worker that uses only the CPU."""
        self.common = ("--batch", 50, "--workers", 2, "--model", "mlp:16", "--sparse", "--lr", 0.5)
        alone, _ = self.loss("alone", "--sync", "bsp")
        split, _ = self.loss("split", "--sync", "bsp", "--device", cluster.DEVICE)
        self.assertAlmostEqual(alone, split, places=3)
        _, mixed = self.loss("mixed", "--device", cluster.DEVICE + "+cpu", "--kill", "worker:0@0.1")
        self.assertEqual(mixed.report["pushes"]["applied"], 3 * SAMPLES // 50)

    def test_restores_on_another_number_of_servers(self):
        state = self.home / "state"
        options = ("--sync", "bsp", "--sparse", "--optimizer", "adam", "--lr", 0.01)
        whole, _ = self.loss("whole", *options, epochs=4)
        self.loss("half", *options, "--checkpoint", state, epochs=2)
        resumed, _ = self.loss("resumed", *options, "--checkpoint", state, "--resume", epochs=4,
                               servers=3)
        self.assertEqual(whole, resumed)


class Rejoin(cluster.ClusterTest):
    def test_from_what_the_server_kept(self):
        """A killed replica has its rows of the newest checkpoint and gets the rows changed since.
        Here these are rows of the few features that most samples have, not of the many others."""
        dice = random.Random(1)
        data = self.home / "train"
        with data.open("w") as file:
            for i in range(10_000):
                features = range(40 * i, 40 * i + 40) if i % 10 == 0 else dice.sample(range(1, 40), 10)
                row = " ".join(f"{x + 1}:1" for x in sorted(features))
                file.write(f"{dice.randrange(2)} {row}\n")
        common = ("--data", f"libsvm:{data},{data}", "--sparse", "--model", "mlp:64", "--servers", 2,
                  "--replicas", 2, "--partitions", 4, "--workers", 2, "--batch", 5, "--checkpoint",
                  self.home / "state")
        self.finish(*common, "--epochs", 1)
        run = self.start(*common, "--epochs", 2, "--resume", "--checkpoint-every", "1s",
                         "--slow", "0:700", "--slow", "1:700")
        run.await_event("training_started")
        time.sleep(4)
        self.assertTrue(run.kill("server", 1))
        cluster.poll(lambda: run.logs.get("server-1", "").count("was sent") == 2, 10, "both copies")
        run.signal(signal.SIGINT)
        run.wait()
        sent = [(float(x), float(y)) for x, y in
                re.findall(r"was sent ([\d.]+) of ([\d.]+) MB", run.logs["server-1"])]
        print(sent, end=" ")
        self.assertGreater(sum(y for _, y in sent), 5)
        self.assertLess(sum(x for x, _ in sent), 0.2 * sum(y for _, y in sent))


if __name__ == "__main__":
    cluster.main(__doc__)

"""Runs the examples on real data sets and compares their results with known ones."""
import os
import pathlib

import cluster

DATA = pathlib.Path(os.environ.get("TROUPE_DATA", cluster.ROOT.parent / "shared/data")).resolve()


class ExampleTest(cluster.ClusterTest):
    common = ()

    def file(self, name):
        """Returns the path of a data file; skips the test where there is none."""
        if not (DATA / name).exists():
            self.skipTest(f"no {DATA / name}")
        return DATA / name


class MatrixFactorisation(ExampleTest):
    program = "matrix_factorisation"

    def test_ratings_of_movielens(self):
        files = self.file("ml-100k/u1.base.gz"), self.file("ml-100k/u1.test.gz")
        run = self.finish("--data", "movielens:{},{}".format(*files), "--epochs", 16,
                          "--replicas", 2, "--kill", "worker:1@0.3", "--kill", "server:0@0.6")
        self.assertLess(run.report["rmse"], 0.938)
        self.assertIsNone(run.report["test_accuracy"])
        self.assertTrue(run.told("evaluated", epoch=16, rmse=run.report["rmse"]))
        self.assertLess(run.report["train.rmse"], run.report["rmse"])

    def test_ratings_that_cannot_be_read(self):
        """Each is one line, and status 1 for a file and 2 for an option."""
        good, bad = self.home / "good", self.home / "bad"
        good.write_text("1 2 3 881250949\n")
        for text, why in (("1 x 3\n", "bad item 'x' .*bad line 1"), ("1 2\n", "bad rating"),
                          ("-1 2 3\n", "bad user '-1'"), ("", "the file is empty")):
            bad.write_text(text)
            self.refused(why, 1, "--data", f"movielens:{bad},{good}")
        self.refused("known: drawn, movielens:TRAIN,TEST", 2, "--data", f"movielens:{good}")

    def refused(self, why, status, *words):
        run = self.start(*words, processes=False)
        self.assertEqual(run.wait(20), status)
        self.assertRegex(run.err, f"^matrix_factorisation: .*{why}")
        self.assertEqual(len(run.err.splitlines()), 1, run.err)


class Hogwild(ExampleTest):
    program = "hogwild"

    def test_a9a(self):
        files = self.file("libsvm/a9a.gz"), self.file("libsvm/a9a.t.gz")
        run = self.finish("--data", "libsvm:{},{}".format(*files), processes=False)
        self.assertGreater(self.accuracy(run), 0.845)


class LocalSteps(ExampleTest):
    program = "local_steps"

    def test_ten_local_steps_on_mnist(self):
        data = self.file("mnist/train-images-idx3-ubyte.gz").parent
        run = self.finish("--data", f"mnist:{data}", "--epochs", 3, "--batch", 640, "--sync", "bsp",
                          "--optimizer", "nesterov", "--lr", 0.7, "--local-lr", 0.2,
                          "--kill", "worker:1@0.3")
        self.assertGreater(self.accuracy(run), 0.97)


class Libtorch(ExampleTest):
    program = "libtorch"

    def setUp(self):
        super().setUp()
        if not (cluster.arguments.programs / self.program).exists():
            self.skipTest("the program libtorch is not built (package libtorch-dev)")

    def train(self, *words, **more):
        """Trains on MNIST and returns the run; its home has the values in trained.npz."""
        data = self.file("mnist/train-images-idx3-ubyte.gz").parent
        return self.finish("--data", f"mnist:{data}", "--export", "trained.npz", *words,
                           seconds=120, **more)

    def test_mnist(self):
        run = self.train("--epochs", 5, "--sync", "bsp", "--lr", 0.004, "--replicas", 2,
                         "--kill", "worker:1@0.5", "--kill", "server:0@1.5")
        self.assertGreaterEqual(self.accuracy(run), 0.985)

    def test_bsp_ends_in_the_same_bytes(self):
        """A process computes the gradient of a batch as any other does, and as a thread does."""
        words = "--epochs", 1, "--sync", "bsp", "--batch", 128, "--lr", 0.004
        killed = self.train(*words, "--kill", "worker:1@0.3", "--kill", "server:0@0.6")
        threads = self.train(*words, "--threads", processes=False)
        values = [(x.home / "trained.npz").read_bytes() for x in (killed, threads)]
        self.assertTrue(values[0] == values[1], "the values differ")

    def test_images_of_another_size(self):
        rows = self.home / "rows"
        rows.write_text("1,0\n2,1\n")
        run = self.start("--data", f"csv:{rows},{rows}", processes=False)
        self.assertEqual(run.wait(20), 2)
        self.assertRegex(run.err, "^libtorch: --data needs images of 28 x 28")


if __name__ == "__main__":
    cluster.main(__doc__)

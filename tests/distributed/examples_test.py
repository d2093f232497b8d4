"""Runs the examples on real data sets and compares their results with known ones."""
import os
import pathlib
import re

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

    def write_ratings(self, name, line="{}\t{}\t{}\t0\n", front="", items=0, users=0, value=None):
        """Writes 20 ratings of each of 20 users; returns the path."""
        text = "".join(line.format(u + users, i + items, value or 1 + (u * i) % 5)
                       for u in range(1, 21) for i in range(1, 21))
        (self.home / name).write_text(front + text)
        return self.home / name

    def rmse(self, train, test, epochs=2):
        run = self.finish("--threads", "--sync", "bsp", "--epochs", epochs, "--data",
                          f"movielens:{train},{test}", processes=False)
        return run.report["rmse"]

    def test_columns_of_other_files(self):
        good = self.write_ratings("good")
        wanted = self.rmse(good, good)
        for line, front in (("{}::{}::{}::0\n", ""), ("{} {} {}\n", "user item rating\n"),
                            ("{},{},{},0\n", "userId,movieId,rating,timestamp\n"),
                            ('"{}","{}","{}"\n', '"userId","movieId","rating"\n'),
                            ('"{}";"{}";"{}"\r\n', '\ufeff"User-ID";"ISBN";"Book-Rating"\r\n'),
                            ("{};{};{}\n", ""), ('{}\t"{}"\t{}\t"a\nb"\n', ""),
                            ('{}\t{}\t{}\t"a" b\t"\n', "")):
            other = self.write_ratings("other", line, front)
            self.assertEqual(self.rmse(other, good), wanted, (line, front))
        for text, why in (("movieId\tuserId\trating\n1\t2\t3\n",
                           "'movieId', 'userId' and 'rating' in `user item rating`.*line 1"),
                          ("1::2\n", "bad rating: a missing value '' in `user item rating`"),
                          ("1;31;3,5\n", "a decimal comma instead of a point in '3,5' .*line 1"),
                          ("1 31 4\n2 31 3,5\n", "a decimal comma instead of a point .*line 2"),
                          ("1\t2\t3,5\n", "a decimal comma instead of a point in '3,5' .*line 1"),
                          ('1,2,"3,5"\n', "a decimal comma instead of a point in '3,5' .*line 1"),
                          ('"1";"034545104X";"5"\n', "bad item '034545104X' .*line 1"),
                          ('1,2,3\n1,"2,3\n', "a quote that no other one closes .*line 2"),
                          ('"1" "2" "3"\n4 5 6\n', "bad user '\"1\"' .*line 1"),
                          ("<html>\n", "bad is an HTML page"), ("[1, 2, 3]\n", "is a JSON text"),
                          ("1 18446744073709551616 3\n", "item .* is above the limit of 2.64 - 1")):
            (self.home / "bad").write_text(text)
            self.refused(why, 1, "--data", f"movielens:{self.home / 'bad'},{good}")

    def test_item_numbers_of_64_bits(self):
        large = self.write_ratings("large", items=(1 << 63) + 5)
        self.assertLess(self.rmse(large, large, epochs=10), 2)

    def test_unseen_users_have_no_bias(self):
        """All ratings are 3, so the mean is exact: no bias of a user is to be added to it."""
        train, test = (self.write_ratings(name, users=users, value=3)
                       for name, users in (("train", 0), ("test", 1000)))
        self.assertLess(self.rmse(train, test, epochs=5), 0.06)

    def test_other_ratings_are_another_job(self):
        good, other = self.write_ratings("good"), self.write_ratings("other", value=4)
        run = self.start("--data", f"movielens:{good},{good}", "--epochs", 1, "--record", "record")
        self.assertEqual(run.wait(60), 0)
        why = "another data set: the files that the program reads have other bytes"
        for data in f"{other},{good}", f"{good},{other}":
            self.refused(why, 1, "--data", f"movielens:{data}", "--replay", run.home / "record")
            self.refused(why, 1, "--data", f"movielens:{data}", "--epochs", 2, "--resume",
                         "--checkpoint", run.directory / "checkpoints")


class OwnOptions(ExampleTest):
    """--resume, --replay and --join go on with another value of a program's option, and tell it."""
    program = "private_sgd"
    common = ("--workers", 2, "--servers", 1, "--batch", 4000)

    def test_resume_and_replay(self):
        run = self.finish("--epochs", 1, "--record", "record")
        again = self.finish("--epochs", 2, "--sigma", 0, "--resume", "--checkpoint",
                            run.directory / "checkpoints")
        self.assertTrue(again.told("note", text=re.compile(
            r"^--sigma is '0' here and was '0.01' in checkpoint \d+$")))
        once_more = self.finish("--epochs", 3, "--sigma", 0, "--resume", "--checkpoint",
                                run.directory / "checkpoints")
        self.assert_untold(once_more, "note", text=re.compile("--sigma"))
        replay = self.finish("--replay", run.home / "record", "--bound", 2, common=(),
                             processes=False)
        self.assertIn("--bound is '2' here and was '1' in the record\n", replay.out)

    def test_join(self):
        where = f"127.0.0.1:{cluster.free_port()}"
        main = self.start("--epochs", 1, "--listen", where, "--here", "worker:0,server:0")
        other = self.start("--epochs", 1, "--join", where, "--here", "worker:1", "--sigma", 5)
        self.assertEqual([main.wait(60), other.wait(60)], [0, 0])
        self.assertTrue(other.told("note", text="--sigma is '5' here and was '0.01' in the main "
                                                "host's job"))


class CountBatches(ExampleTest):
    program = "count_batches"

    def test_options_that_no_sum_can_count(self):
        for words in ("--sync", "bsp", "--workers", 5), ("--samples", 1_000_000_000, "--batch", 1):
            run = self.start(*words, processes=False)
            self.assertEqual(run.wait(20), 2, run.err)


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

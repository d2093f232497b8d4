"""Checks that ssp:S lets workers drift apart by S clocks, and never further."""
import cluster


class Ssp(cluster.ClusterTest):
    # 60,000 samples are 236 batches; the straggler does the fewest.
    common = ("--model", "softmax", "--batch", 256, "--epochs", 1, "--slow", "0:50")

    def check(self, bound):
        report = self.finish("--sync", f"ssp:{bound}").report
        self.assertEqual(report["staleness_clocks"]["max"], bound)
        self.assertGreater(report["waiting_pulls"], 0)

    def test_0(self):
        self.check(0)

    def test_1(self):
        self.check(1)

    def test_3(self):
        self.check(3)

    def test_8(self):
        self.check(8)


if __name__ == "__main__":
    cluster.main(__doc__)

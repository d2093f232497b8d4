"""Checks that a checkpoint restores on any number of servers: exported parameters are equal bytes
for all numbers of servers that write and read it.
"""
import cluster

# (Servers that write, servers that resume).
PAIRS = cluster.count(((1, 8), (7, 3)), ((1, 8), (8, 1), (2, 5), (7, 3)))


class ResumeServers(cluster.ClusterTest):
    common = ("--model", "mlp:32", "--workers", 2, "--optimizer", "adam", "--lr", 0.001)

    def exported(self, name, servers, epochs, *options):
        file = self.home / f"{name}.npz"
        run = self.finish("--servers", servers, "--epochs", epochs, "--export", file, *options,
                          name=name)
        return file.read_bytes(), run

    def check(self, epochs, *options):
        """Yields, per pair: the first half's export, the resumed job's export and its run."""
        for before, after in PAIRS:
            with self.subTest(before=before, after=after):
                name = f"{before}-{after}"
                state = ("--checkpoint", self.home / f"{name}-state", *options)
                first, _ = self.exported(name, before, 1, *state)
                yield first, *self.exported(f"{name}-resumed", after, epochs, *state, "--resume")

    def test_asp(self):
        """A completed job has no batch left, so its parameters stay."""
        for first, resumed, run in self.check(1):
            self.assertEqual(first, resumed)
            self.assertEqual(run.report["pushes"]["applied"], 0)

    def test_bsp(self):
        """Values of bsp are a function of the job, so the second half reveals a wrong restore."""
        whole, _ = self.exported("whole", 2, 2, "--sync", "bsp")
        for first, resumed, _ in self.check(2, "--sync", "bsp"):
            self.assertNotEqual(first, whole)
            self.assertEqual(resumed, whole)


if __name__ == "__main__":
    cluster.main(__doc__)

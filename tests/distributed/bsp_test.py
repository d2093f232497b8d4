"""Checks that the parameters of bsp are a function of the job alone, to the last bit."""
import cluster


class Bsp(cluster.ClusterTest):
    common = ("--sync", "bsp", "--model", "mlp:16", "--batch", 512, "--epochs", 3, "--workers", 3)

    def parameters(self, name, *options, seed=7, **more):
        exported = self.home / f"{name}.npz"
        run = self.finish("--seed", seed, *options, "--export", exported, name=name, **more)
        return exported.read_bytes(), run

    def test_same_bits(self):
        plain, _ = self.parameters("plain", "--servers", 2)
        slow, _ = self.parameters("slow", "--servers", 2, "--slow", "0:3", "--slow", "2:7")
        self.assertEqual(plain, slow)
        hurt, run = self.parameters(
            "hurt", "--servers", 2, "--slow", "1:30", "--checkpoint-every", "300ms",
            "--kill", "worker:0@0.5", "--kill", "server:1@1.2", "--kill", "coordinator:0@2")
        self.assertEqual(plain, hurt)
        self.assert_recovered(run, ("worker", 0), ("server", 1), ("coordinator", 0))
        threads, _ = self.parameters("threads", "--servers", 3, "--threads", processes=False)
        self.assertEqual(plain, threads)
        delta, run = self.parameters(
            "delta", "--servers", 2, "--delta-pulls", "--slow", "1:20", "--checkpoint-every",
            "300ms", "--kill", "worker:0@0.5", "--kill", "server:1@1.2")
        self.assertEqual(plain, delta)
        self.assert_recovered(run, ("worker", 0), ("server", 1))
        other, _ = self.parameters("other", "--servers", 2, seed=8)
        self.assertNotEqual(plain, other)


if __name__ == "__main__":
    cluster.main(__doc__)

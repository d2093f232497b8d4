"""Checks that a simulated training is a function of its command line, to the last bit. It is also a
real training: its record can be replayed, bsp ends as with threads, and asp diverges at high rates.
"""
import subprocess

import cluster

MODEL = ("--data", "digits", "--model", "mlp:16")


class Simulate(cluster.ClusterTest):
    common = (*MODEL, "--epochs", 2, "--workers", 6, "--batch", 512)

    def parameters(self, *options, how="--simulate"):
        run = self.start(how, *options, "--export", "trained.npz", processes=False)
        self.assertEqual(run.wait(100), 0)
        return (run.home / "trained.npz").read_bytes(), run

    def told(self, run):
        """Returns the report without the fields that depend on the machine."""
        return {key: value for key, value in run.report.items()
                if key not in ("command", "peak_rss_bytes")}

    def test_same_seed(self):
        for sync in ("asp", "ssp:2", "bsp"):
            options = ("--sync", sync, "--servers", 2, "--slow", "1:20")
            first, run = self.parameters(*options)
            again, rerun = self.parameters(*options)
            self.assertEqual(first, again, sync)
            self.assertEqual(self.told(run), self.told(rerun), sync)
            self.assertEqual(run.out.rpartition(" in ")[0], rerun.out.rpartition(" in ")[0])
            other, _ = self.parameters(*options, "--seed", 2)
            self.assertNotEqual(first, other, sync)

    def test_record(self):
        exported, run = self.parameters("--record", "record", "--optimizer", "adam", "--lr", 0.001,
                                        "--servers", 3, "--pull-ahead", 1)
        words = [cluster.arguments.programs / self.program, *MODEL, "--replay", "record",
                 "--compare", "trained.npz"]
        done = subprocess.run([str(word) for word in words], cwd=run.home, capture_output=True,
                              text=True, timeout=100)
        self.assertIn("equal to trained.npz\n", done.stdout, done.stderr)

    def test_bsp_as_in_threads(self):
        real, _ = self.parameters("--sync", "bsp", "--servers", 2, how="--threads")
        for servers in (1, 3):
            simulated, run = self.parameters("--sync", "bsp", "--servers", servers)
            self.assertEqual(real, simulated)
        self.assertEqual(run.report["staleness_versions"]["max"], 0)

    def test_no_real_time(self):
        """A straggler costs only virtual seconds."""
        _, run = self.parameters("--sync", "bsp", "--slow", "0:10000", "--stragglers", "off")
        self.assertGreater(run.report["seconds"], 300)

    def test_divergence(self):
        """A learning rate at which bsp converges makes asp with 16 workers diverge, unless the rate
        of stale updates is lower, as by default."""
        options = (*MODEL, "--epochs", 3, "--workers", 16, "--batch", 128, "--lr", 0.1)
        found = {}
        for name, more in (("bsp", ("--sync", "bsp")), ("asp", ()), ("full", ("--staleness-lr", 0))):
            found[name] = self.finish("--simulate", *options, *more, common=(), processes=False,
                                      name=name).report
        self.assertGreater(found["bsp"]["test_accuracy"], 0.6)
        self.assertGreater(found["asp"]["test_accuracy"], 0.6)
        self.assertLess(found["full"]["test_accuracy"], 0.3)
        self.assertGreater(found["asp"]["staleness_versions"]["mean"], 10)


if __name__ == "__main__":
    cluster.main(__doc__)

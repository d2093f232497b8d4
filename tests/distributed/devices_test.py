"""Checks --device: workers on GPUs and on the CPU train together.

GPUs are emulated, or those of TROUPE_TEST_DEVICE.
"""
import cluster

DEVICE = cluster.DEVICE
BATCHES = 2 * 469  # 60,000 drawn digits, 128 per batch, two passes.


class Mixed(cluster.ClusterTest):
    common = ("--device", DEVICE + "+cpu", "--model", "mlp:16", "--batch", 128, "--workers", 2,
              "--epochs", 2)

    def test_each_sync(self):
        for sync in ("asp", "bsp", "ssp:3", "allreduce"):
            with self.subTest(sync=sync):
                run = self.finish("--sync", sync, name=sync.replace(":", "-"))
                self.assertGreater(self.accuracy(run), 0.8)
                if sync == "allreduce":
                    self.assertIn("parameters are equal on all 2 workers", run.out)
                else:
                    self.assertEqual(run.report["pushes"]["applied"], BATCHES)
                self.assertEqual("in other bytes" in run.err, sync in ("bsp", "allreduce"))

    def test_a_worker_of_each_kind_killed(self):
        run = self.finish("--kill", "worker:0@0.1", "--kill", "worker:1@0.3")
        self.assertGreater(self.accuracy(run), 0.8)
        self.assertEqual(run.report["pushes"]["applied"], BATCHES)
        self.assertEqual(cluster.unrecovered(run.report), [])


class Together(cluster.ClusterTest):
    """Workers of one process have one device each, and add up gradients on the devices."""

    common = ("--model", "mlp:16", "--batch", 128, "--workers", 4, "--workers-per-process", 4,
              "--epochs", 2)
    adds_up = "4 devices add up gradients: "

    def assert_trained(self, run):
        self.assertGreater(self.accuracy(run), 0.8)
        self.assertEqual(run.report["pushes"]["applied"], BATCHES)

    def test_each_sync(self):
        for sync in ("asp", "ssp:3", "bsp"):
            with self.subTest(sync=sync):
                run = self.finish("--device", DEVICE, "--sync", sync, name=sync.replace(":", "-"))
                self.assert_trained(run)
                sums = run.report["reducers"]
                self.assertEqual(sums["device_sums"] > BATCHES / 8, sync != "bsp")
                self.assertEqual(sums["device_sums"], sums["sums"])
                if DEVICE == "emulated":  # One for each worker, which real ones may not be.
                    self.assertEqual(self.adds_up in run.logs["worker-0"], sync != "bsp")

    def test_with_a_worker_on_the_cpu(self):
        run = self.finish("--device", DEVICE + "+cpu")
        self.assert_trained(run)
        self.assertGreater(run.report["reducers"]["sums"], BATCHES / 8)
        self.assertLess(run.report["reducers"]["device_sums"], run.report["reducers"]["sums"])

    def test_their_process_killed(self):
        run = self.finish("--device", DEVICE, "--kill", "worker:0@0.2", "--kill",
                          "worker:0@0.6")
        self.assert_trained(run)
        self.assertEqual(cluster.unrecovered(run.report), [])


if __name__ == "__main__":
    cluster.main(__doc__)

"""What a job waits for is a line on the console within seconds, whichever process waits."""
import os
import resource
import shutil
import signal
import subprocess
import time

import cluster

ELEMENTS = 1000
WORKERS = 2
SOON = 60  # Seconds, lest a line that never comes hangs the test; usually it takes less than 5.


def cpu_seconds(pid):
    fields = cluster.read_proc(pid, "stat").rpartition(b") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Waits(cluster.ClusterTest):
    program = "count_batches"
    common = ("--elements", ELEMENTS, "--batch", 1, "--workers", WORKERS, "--servers", 2,
              "--epochs", 1, *cluster.slow([4] * WORKERS))

    def begin(self, samples, *options, **more):
        run = self.start("--samples", samples, *options, **more)
        run.await_text("training with 2 workers")
        return run

    def end(self, run):
        self.assertEqual(run.wait(90), 0)
        self.assert_exact(run, ELEMENTS)

    def without_files(self, run, role):
        """No process of that role can open one more file; returns what undoes that."""
        pid = run.processes()[role, 0]
        before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, before[1]))
        return pid, lambda: resource.prlimit(pid, resource.RLIMIT_NOFILE, before)

    def test_a_server_without_files(self):
        run = self.begin(3000)
        pid, undo = self.without_files(run, "server")
        run.kill("worker", 1)
        run.await_match(r"\] server 0: cannot accept a connection: Too many open files; "
                        "limits: ulimit -n 3", SOON)
        run.await_match(r"worker 1: waits for server 0: 127.0.0.1:\d+ ", SOON)
        before = cpu_seconds(pid)
        time.sleep(1)
        self.assertLess(cpu_seconds(pid) - before, 0.5)  # It does not try all the time.
        self.assertEqual(run.out.count("cannot accept a connection"), 1)
        undo()
        self.end(run)

    def test_a_coordinator_without_files(self):
        run = self.begin(3000)
        _, undo = self.without_files(run, "coordinator")
        run.kill("worker", 1)
        run.await_match(r"\] coordinator: cannot accept a connection: Too many open files", SOON)
        run.await_match(r"worker 1: waits for the coordinator: 127.0.0.1:\d+ ", SOON)
        run.await_text("is still without worker 1", SOON)
        undo()
        self.end(run)

    def test_members_of_another_host(self):
        run = self.start("--samples", 1000, "--listen", "127.0.0.1:0", "--here",
                         "worker:1")
        run.await_text("waits for server 0, server 1, worker 0\n", SOON)
        run.signal(signal.SIGTERM)
        self.assertEqual(run.wait(20), 128 + signal.SIGTERM)

    def test_a_coordinator_that_stands_still(self):
        run = self.start("--samples", 3000)
        pid = cluster.poll(lambda: run.processes().get(("coordinator", 0)), 10, "a coordinator")
        os.kill(pid, signal.SIGSTOP)
        run.await_match("waits for the coordinator|no word from the coordinator", SOON)
        run.signal(signal.SIGTERM)
        run.wait(60)

    def test_a_log_that_cannot_be_written(self):
        logs = self.home / "run" / "logs"
        logs.mkdir(parents=True)
        for name in "console", "worker-1":
            (logs / f"{name}.log").symlink_to("/dev/full")
        run = self.begin(2000, "--run-dir", self.home / "run", processes=False)
        run.await_match("worker 1: cannot write its log: No space left on device; it would say: "
                        r"worker 1 starts, pid \d+", SOON)
        self.end(run)

    def test_a_worker_that_does_not_come(self):
        """Of a job without servers: the other one says so too."""
        self.program = "async_sgd"
        run = self.start("--model", "softmax", "--epochs", 50, "--workers", 2, "--sync",
                         "allreduce", common=())
        os.kill(cluster.poll(lambda: run.processes().get(("worker", 1)), 10, "worker 1"),
                signal.SIGSTOP)
        run.await_text("waits for worker 1", SOON)
        run.signal(signal.SIGTERM)
        run.wait(60)

    def test_full_disk(self):
        """Of the checkpoints of a job without servers."""
        if os.getuid() != 0 or not shutil.which("unshare"):
            self.skipTest("mounts a small disk, which needs root")
        disk = self.home / "disk"
        disk.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "none", disk],
                          check=False).returncode != 0:
            self.skipTest("cannot mount a small disk here")
        self.addCleanup(subprocess.run, ["umount", "--lazy", disk], check=True)
        self.program = "async_sgd"
        run = self.start("--model", "softmax", "--epochs", 1000, "--workers", 2, "--sync",
                         "allreduce", "--checkpoint-every", "500ms", "--checkpoint",
                         disk / "checkpoints", common=())
        run.await_match(r"training .* checkpoint \d+,")
        try:
            (disk / "filler").write_bytes(bytes(8 << 20))
        except OSError:
            pass
        run.await_match("worker 0: no checkpoint: .*No space left on device", SOON)
        (disk / "filler").unlink()
        run.signal(signal.SIGTERM)
        self.assertEqual(run.wait(60), 128 + signal.SIGTERM)


if __name__ == "__main__":
    cluster.main(__doc__)

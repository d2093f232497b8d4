"""What a job waits for is an event within seconds, whichever process waits."""
import contextlib
import os
import re
import resource
import shutil
import signal
import subprocess
import time

import cluster

ELEMENTS = 1000
WORKERS = 2
SOON = 60  # Seconds, lest an event that never comes hangs the test; usually it takes less than 5.


def cpu_seconds(pid):
    fields = cluster.read_proc(pid, "stat").rpartition(b") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def await_wait(run, pattern):
    """Waits for the line of a process that matches this pattern."""
    run.await_event("process_waits", SOON, text=re.compile(pattern))


class Waits(cluster.ClusterTest):
    program = "count_batches"
    common = ("--elements", ELEMENTS, "--batch", 1, "--workers", WORKERS, "--servers", 2,
              "--epochs", 1, *cluster.slow([4] * WORKERS))

    def begin(self, samples, *options, **more):
        run = self.start("--samples", samples, *options, **more)
        run.await_event("training_started", workers=2)
        return run

    def end(self, run):
        self.assertEqual(run.wait(90), 0)
        self.assert_exact(run, ELEMENTS)

    def without_files(self, run, role):
        """Lets process 0 of `role` open no more files; returns its pid and an undo function."""
        pid = run.processes()[role, 0]
        before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, before[1]))
        return pid, lambda: resource.prlimit(pid, resource.RLIMIT_NOFILE, before)

    def test_a_server_without_files(self):
        run = self.begin(3000)
        pid, undo = self.without_files(run, "server")
        run.kill("worker", 1)
        await_wait(run, "^server 0: cannot accept a connection: Too many open files; "
                   "limits: ulimit -n 3")
        await_wait(run, r"worker 1: waits for server 0: 127.0.0.1:\d+ ")
        before = cpu_seconds(pid)
        time.sleep(1)
        self.assertLess(cpu_seconds(pid) - before, 0.5)  # It does not try all the time.
        told = run.told("process_waits", text=re.compile("cannot accept a connection"))
        self.assertEqual(len(told), 1)
        undo()
        self.end(run)

    def test_a_coordinator_without_files(self):
        run = self.begin(3000)
        _, undo = self.without_files(run, "coordinator")
        run.kill("worker", 1)
        await_wait(run, "^coordinator: cannot accept a connection: Too many open files")
        await_wait(run, r"worker 1: waits for the coordinator: 127.0.0.1:\d+ ")
        await_wait(run, "^the job is still without worker 1")
        undo()
        self.end(run)

    def test_members_of_another_host(self):
        run = self.start("--samples", 1000, "--listen", "127.0.0.1:0", "--here",
                         "worker:1")
        await_wait(run, "^the job waits for server 0, server 1, worker 0$")
        run.signal(signal.SIGTERM)
        self.assertEqual(run.wait(20), 128 + signal.SIGTERM)

    def test_a_coordinator_that_stands_still(self):
        run = self.start("--samples", 3000)
        pid = cluster.poll(lambda: run.processes().get(("coordinator", 0)), 10, "a coordinator")
        os.kill(pid, signal.SIGSTOP)
        waits = re.compile("waits for the coordinator")
        run.await_true(lambda: run.told("process_waits", text=waits)
                       or run.told("coordinator_silent"), SOON, "a wait for the coordinator")
        run.signal(signal.SIGTERM)
        run.wait(60)

    def test_a_log_that_cannot_be_written(self):
        logs = self.home / "run" / "logs"
        logs.mkdir(parents=True)
        for name in "console", "worker-1":
            (logs / f"{name}.log").symlink_to("/dev/full")
        run = self.begin(2000, "--run-dir", self.home / "run", processes=False)
        await_wait(run, "worker 1: cannot write its log: No space left on device; it would say: "
                   r"starts as counters:1, pid \d+")
        self.end(run)

    def test_a_worker_that_does_not_come(self):
        """In a job without servers, the other worker reports the wait."""
        self.program = "async_sgd"
        run = self.start("--model", "softmax", "--epochs", 50, "--workers", 2, "--sync",
                         "allreduce", common=())
        # The worker is stopped before it has met the other one.
        os.kill(cluster.poll(lambda: run.processes().get(("worker", 1)), 10, "worker 1", 0.001),
                signal.SIGSTOP)
        await_wait(run, "^the job waits for worker 1")
        run.signal(signal.SIGTERM)
        run.wait(60)

    def test_full_disk(self):
        """The disk for checkpoints of a job without servers is full."""
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
        run.await_event("progress", phase="training", checkpoint=lambda x: x > 0)
        filler = disk / "filler"
        no_room = re.compile("worker 0: no checkpoint: .*No space left on device")

        def is_told():
            # A file that is written reserves room and gives some back, so one filling is too few.
            with contextlib.suppress(OSError), filler.open("ab") as file:
                file.write(bytes(8 << 20))
            return run.told("process_waits", text=no_room)
        run.await_true(is_told, SOON, "a checkpoint without room")
        filler.unlink()
        run.signal(signal.SIGTERM)
        self.assertEqual(run.wait(60), 128 + signal.SIGTERM)


if __name__ == "__main__":
    cluster.main(__doc__)

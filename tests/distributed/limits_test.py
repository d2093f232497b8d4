"""Checks jobs under limits of the system: a job works, or ends within seconds with one line that
names the limit. --table tries all values and prints how each run ended; the test takes three of
them, in `scripts/test --long` every third.
"""
import os
import signal
import time
import unittest

import cluster

SMALL = ("--model", "softmax", "--epochs", 1, "--workers", 2, "--servers", 2)
MODES = {"asp": ("--sync", "asp"), "bsp": ("--sync", "bsp"), "allreduce": ("--sync", "allreduce")}
MODE_OPTIONS = {"allreduce": ("--model", "softmax", "--epochs", 1, "--workers", 2)}
NOBODY = 65534  # ulimit -u does not bind root.
MIB = 1 << 20
# Threads of a process that trains and writes no checkpoint, with SMALL.
THREADS = {"launcher": 7, "coordinator": 9, "server": 6, "worker": 7}

# Name in messages and the table: (option of prlimit, values).
LIMITS = {
    "ulimit -n": ("nofile", (14, 16, 20, 24, 28, 32, 40, 48, 64, 128)),
    # The last one is no bound: a loaded system ends threads late, so a peak says nothing of a job.
    "ulimit -u": ("nproc", (2, 4, 6, 9, 12, 16, 20, 25, 30, 40, 4000)),
    "ulimit -v": ("as", tuple(n * MIB for n in
                              (150, 300, 500, 700, 900, 1200, 1500, 2000, 2500, 3000, 4000))),
    "ulimit -f": ("fsize", (512, 1024, 4096, 16384, 65536, 131072, 262144, 524288, MIB, 4 * MIB)),
}


def prefix(kind, value):
    words = ["prlimit", f"--{kind}={value}"]
    if kind == "nproc":
        words += ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    return words


class Limits(cluster.ClusterTest):
    seconds = 60

    def setUp(self):
        super().setUp()
        self.home.chmod(0o777)

    def start(self, *options, **more):
        os.umask(0)  # The user of a run may write into directories of this test.
        return super().start(*options, **more)

    def attempt(self, limit, value, mode):
        kind, _ = LIMITS[limit]
        begun = time.monotonic()
        common = MODE_OPTIONS.get(mode, SMALL)
        run = self.start(*MODES[mode], common=common, prefix=prefix(kind, value))
        try:
            status = run.wait(60)
        except AssertionError:
            run.signal(signal.SIGTERM)
            status = "hangs"
        seconds = time.monotonic() - begun
        said = run.err.strip()
        if cluster.arguments.table:
            print(f"{limit} {value} {mode}: status {status}, {seconds:.1f} s, {said[-300:]!r}",
                  flush=True)
            run.end()
            return
        least, *_, most = LIMITS[limit][1]
        if status == 0:
            self.assertNotEqual(value, least, "the limit had no effect")
            self.assertIn("test accuracy", run.out)
            return
        self.assertNotEqual(value, most, run.story())
        self.assertEqual(status, 1, run.story())
        self.assertEqual(said.count("\n"), 0, run.story())
        self.assertRegex(said, r"limits: .*" + limit, run.story())
        self.assertNotIn("No such file", said)  # It would be the error of another call.

    def sweep(self, limit):
        values = LIMITS[limit][1]
        some = cluster.count((values[0], values[len(values) // 2], values[-1]),
                             (*values[:-1:3], values[-1]))
        for value in values if cluster.arguments.table else some:
            for mode in MODES:
                with self.subTest(limit=limit, value=value, mode=mode):
                    self.attempt(limit, value, mode)

    def test_files(self):
        self.sweep("ulimit -n")

    def test_stack(self):
        for kib in (64, 128, 255):  # With less, no program starts.
            with self.subTest(kib=kib):
                run = self.start(common=SMALL, prefix=("prlimit", f"--stack={kib << 10}"))
                self.assertEqual(run.wait(), 1, run.story())
                self.assertRegex(run.err, f"a stack of 256 KiB; limits: ulimit -s {kib}\n")
        self.assertIn("test accuracy", self.finish(
            *MODES["asp"], common=SMALL, prefix=("prlimit", f"--stack={256 << 10}")).out)

    def test_processor_time(self):
        """Each process has its own limit; members that used it up are started again."""
        run = self.start("--epochs", 1000, "--threads", common=SMALL[:2], processes=False,
                         prefix=("prlimit", "--cpu=2"))
        self.assertEqual(run.wait(), 1, run.story())
        self.assertIn("the processor time is used up; limits: ulimit -t 2", run.err)
        # A stall of the machine counts as processor time, and at the hard limit comes SIGKILL.
        run = self.start("--epochs", 1000, common=SMALL[:2], prefix=("prlimit", "--cpu=1:20"))
        self.assertEqual(run.wait(120), 1, run.story())
        self.assertIn("the processor time is used up; limits: ulimit -t 1\n", run.err)

    def test_threads(self):
        """A job has few threads, so it fits small limits. Threads that come and go do not count."""
        run = self.start("--checkpoint-every", "never", *cluster.slow([10] * 2),
                         common=(*SMALL[:2], "--epochs", 20, *SMALL[4:]))
        run.await_epoch(0.1)
        least = {}
        for _ in range(20):
            for who, pid in {("launcher", 0): run.launcher.pid, **run.processes()}.items():
                count = len(os.listdir(f"/proc/{pid}/task"))
                least[who] = min(count, least.get(who, count))
            time.sleep(0.1)
        self.assertEqual(len(least), 6, least)
        for (role, _), count in least.items():
            self.assertLessEqual(count, THREADS[role], least)
        run.end()

    @unittest.skipUnless(os.geteuid() == 0, "setpriv needs root")
    def test_processes(self):
        self.sweep("ulimit -u")

    @unittest.skipUnless(os.geteuid() == 0, "setpriv needs root")
    def test_processes_of_a_run_inside_a_main(self):
        """run() returns the lack of a thread; it neither ends the process nor hangs."""
        words = [cluster.arguments.programs / "misbehave", "inside", "threads", "nowhere", "nothing"]
        os.umask(0)
        for most in (1, 2, 3, 5, 7, 40, 4000):
            with self.subTest(most=most):
                run = cluster.Run(self.home, f"inside{most}", words, prefix("nproc", most))
                self.runs.append(run)
                if run.wait(60) == 0:
                    self.assertGreater(most, 2)
                    self.assertEqual(run.out, "test accuracy 1.0000\n")
                else:
                    self.assertLess(most, 4000)
                    self.assertEqual(run.launcher.returncode, 1, run.story())
                    self.assertRegex(run.err, "^misbehave: .*cannot start a thread: Resource ")

    def test_address_space(self):
        self.sweep("ulimit -v")

    def test_size_of_a_file(self):
        self.sweep("ulimit -f")


if __name__ == "__main__":
    options = cluster.parser(__doc__)
    options.add_argument("--table", action="store_true", help="print how each run ended")
    cluster.main(options=options)

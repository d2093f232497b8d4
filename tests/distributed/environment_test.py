"""Checks jobs under nohup, in a container, through a dynamic loader, in a directory whose name is
not UTF-8, in another locale, and with user code that ends its process or starts others.
"""
import json
import os
import pty
import re
import signal
import subprocess
import unittest

import cluster

COMMON = ("--model", "softmax", "--epochs", 2, "--workers", 2, "--servers", 1)
SLOW = cluster.slow([10] * 2)


def in_trainer(how, after=0):
    """Returns options of `misbehave` whose trainers misbehave after so many calls."""
    return ("--where", "trainer", "--how", how, "--after", after)


def ignoring(*numbers):
    """Returns words that start a program with these signals ignored."""
    names = " ".join(number.name.removeprefix("SIG") for number in numbers)
    return ("sh", "-c", f"trap '' {names}; exec \"$@\"", "sh")


def can_make_namespaces():
    return subprocess.run(["unshare", "--pid", "--fork", "--mount-proc", "true"],
                          capture_output=True).returncode == 0


class Signals(cluster.ClusterTest):
    seconds = 50
    common = (*COMMON, *SLOW)

    def test_ignored_signals_stay_ignored(self):
        run = self.start(prefix=ignoring(signal.SIGHUP, signal.SIGINT))
        run.await_epoch(0.1)
        for number in (signal.SIGHUP, signal.SIGINT):
            run.signal(number)
        self.assertEqual(run.wait(), 0)
        self.assert_untold(run, "stopping", "stop_requested")
        self.assertIn("after 2 of 2", run.out)

    def test_other_signals_still_stop(self):
        run = self.start(prefix=ignoring(signal.SIGHUP))
        run.await_epoch(0.1)
        run.signal(signal.SIGTERM)
        self.assertEqual(run.wait(), 128 + signal.SIGTERM)

    def test_a_terminal_that_is_closed(self):
        home = self.home / "terminal"
        home.mkdir()
        words = [str(cluster.arguments.programs / "async_sgd"), *map(str, self.common),
                 "--report", str(home / "report.json"), "--run-dir", str(home / "run")]
        pid, terminal = pty.fork()
        if pid == 0:
            try:
                os.chdir(home)  # nohup makes a nohup.out.
                os.execvp("nohup", ["nohup", "sh", "-c", 'exec "$@" > "$0/out" 2>&1', str(home),
                                    *words])
            finally:
                os._exit(127)
        out = home / "out"
        events = cluster.EventFile(home / "run/events.jsonl")
        cluster.poll(lambda: cluster.matching(events.read(), "progress", epoch=lambda x: x >= 0.1),
                     20, "training")
        os.close(terminal)  # The system sends SIGHUP to all processes of the terminal.
        cluster.poll(lambda: os.waitpid(pid, os.WNOHANG)[0] == pid, 40, "end of the run")
        self.assertIn("after 2 of 2", out.read_text())
        self.assertTrue(json.loads((home / "report.json").read_text())["test_accuracy"])

    def in_a_terminal(self, **settings):
        """Returns what a run writes to a terminal, in an environment with these settings."""
        home = self.home / "-".join(["terminal", *settings.values()])
        home.mkdir()
        words = [str(cluster.arguments.programs / "async_sgd"), *map(str, COMMON)]
        pid, terminal = pty.fork()
        if pid == 0:
            try:
                os.chdir(home)
                os.execve(words[0], words, dict(os.environ, **settings))
            finally:
                os._exit(127)
        said = bytearray()
        while True:
            try:
                said += os.read(terminal, 65536)
            except OSError:  # The other end is closed.
                break
        os.close(terminal)
        self.assertEqual(os.waitpid(pid, 0)[1], 0)
        self.assertIn(b"after 2 of 2", said)
        return bytes(said)

    def test_terminals_that_know_less(self):
        escape, colors = b"\x1b", (b"\x1b[3", b"\x1b[1m")
        self.assertNotIn(escape, self.in_a_terminal(TERM="dumb"))
        self.assertNotIn(escape, self.in_a_terminal(TERM=""))
        plain = self.in_a_terminal(TERM="xterm", NO_COLOR="1")
        self.assertIn(escape, plain)
        self.assertFalse([color for color in colors if color in plain])
        colored = self.in_a_terminal(TERM="xterm", NO_COLOR="")
        self.assertTrue(all(color in colored for color in colors))

    def test_processes_that_a_service_manager_signals(self):
        run = self.start()
        run.await_epoch(0.1)
        for pid in run.processes().values():
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                os.kill(pid, number)
        self.assertEqual(run.wait(), 0)
        self.assert_untold(run, "process_ended")

    def test_death_by_signal_9(self):
        run = self.start()
        run.await_epoch(0.1)
        self.assertTrue(run.kill("worker", 1))
        self.assertEqual(run.wait(), 0)
        self.assertTrue(run.told("process_ended", member="worker 1",
                                 reason="killed by signal 9 (perhaps out of memory)"))
        planned = self.finish("--kill", "worker:1@0.3")
        self.assertTrue(planned.told("process_ended", member="worker 1",
                                     reason="killed by signal 9"))


@unittest.skipUnless(can_make_namespaces(), "needs the right to make namespaces of processes")
class Containers(cluster.ClusterTest):
    common = (*COMMON, *SLOW)
    container = ("unshare", "--pid", "--fork", "--mount-proc")

    def first_process(self, run):
        """Returns the pid of the program that is process 1 of its container."""
        def child():
            return next((pid for pid in cluster.pids()
                         if cluster.state_and_parent(pid)[1] == run.launcher.pid), None)
        return cluster.poll(child, 10, "the container's first process")

    def test_process_1_collects_orphans(self):
        run = self.start(prefix=self.container)
        first = self.first_process(run)
        run.await_epoch(0.1)

        def children():
            return sum(cluster.state_and_parent(pid)[1] == first for pid in cluster.pids())
        own = children()
        subprocess.run(["nsenter", "--target", str(first), "--pid", "sh", "-c",
                        "for i in 1 2 3 4 5; do sleep 1 & done"], check=True)
        cluster.poll(lambda: children() == own + 5, 5, "orphans are there")
        cluster.poll(lambda: children() == own, 10, "orphans are collected")
        self.assertEqual(run.wait(), 0)

    def test_process_1_is_stopped(self):
        run = self.start(prefix=self.container)
        first = self.first_process(run)
        run.await_epoch(0.1)
        os.kill(first, signal.SIGTERM)
        self.assertEqual(run.wait(), 128 + signal.SIGTERM)
        self.assertIn("continue with --resume", run.out)

    def test_containers_that_start_at_once_in_one_directory(self):
        shared = self.home / "shared"
        shared.mkdir()
        inside = ("sh", "-c", f'cd "{shared}" && exec "$@"', "sh", *self.container)
        for _ in range(3):  # More than one start falls into the same second.
            runs = [self.start(prefix=inside, processes=False) for _ in range(3)]
            for run in runs:
                self.assertEqual(run.wait(), 0, run.story())
        self.assertEqual(len(list((shared / "runs").iterdir())), 9)


@unittest.skipUnless(can_make_namespaces(), "needs the right to make namespaces of processes")
class Process1(cluster.ClusterTest):
    program = "misbehave"

    def test_user_code_waits_for_its_children(self):
        for mode in ("--threads", "--workers"):
            with self.subTest(mode=mode):
                run = self.finish(*(("--threads",) if mode == "--threads" else ("--workers", 1)),
                                  *in_trainer("child"), prefix=Containers.container, status=1,
                                  processes=mode != "--threads")
                self.assertIn("status 0", run.err)

    def test_the_status_is_that_of_the_launcher(self):
        self.finish("--loads", "none", prefix=Containers.container, status=2)
        self.finish("--threads", *in_trainer("segv"), prefix=Containers.container,
                    status=128 + signal.SIGSEGV, processes=False)


class UserCode(cluster.ClusterTest):
    """User code that starts programs, or that ends its process."""
    program = "misbehave"
    common = ("--servers", 1, "--samples", 200)

    def assert_default_signals(self, text):
        """The text has two lines of /proc/PID/status, with escapes in a message."""
        numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE, signal.SIGXFSZ)
        for field in ("SigBlk", "SigIgn"):
            found = re.search(field + r":(?:\s|\\x09)*([0-9a-f]{16})", text)
            self.assertTrue(found, text)
            mask = int(found[1], 16)
            self.assertEqual([x for x in numbers if mask >> (x - 1) & 1], [], text)
        self.assertNotIn("lives", text)

    def test_programs_that_it_starts_have_the_default_signals(self):
        run = self.finish(*in_trainer("child"), status=1)
        self.assert_default_signals(run.err)
        threads = self.finish(*in_trainer("child"), "--threads", status=1, processes=False)
        self.assert_default_signals(threads.err)
        early = self.finish(prefix=("env", "MISBEHAVE_EARLY=1"))
        log = early.logs["worker-0"]
        self.assert_default_signals(log)

    def test_ends_without_work_are_named_and_counted(self):
        """Also those after more than 2 s, with any status."""
        six = "6 times in a row before it had done any work "
        runs = [(self.start(*in_trainer(how), "--loads", seconds), six + reason)
                for how, seconds, reason in (
                    ("exit-0", 2.1, r"\(exit status 0\): worker [01]'s trainer called exit\(0\)"),
                    ("exit-3", 0, r"\(exit status 3\): worker [01]'s trainer called exit\(3\)"),
                    ("exit-4", 0, r"\(exit status 4\): worker [01]'s trainer called exit\(4\)"),
                    ("kill", 2.1, r"\(killed by signal 9 "),
                    ("assert", 0, r"\(killed by signal 6\): .*Assertion `.*made to fail\"' failed"),
                    ("throw-in-thread", 0, r"\(killed by signal 6\): made to fail"),
                    ("abort", 0, r"\(killed by signal 6\): see /.*/logs/worker-[01]\.log\n$"),
                    ("segv", 0, r"\(killed by signal 11\): see /.*/logs/worker-[01]\.log\n$"))]
        for run, reason in runs:
            self.assertEqual(run.wait(90), 1, run.story())
            self.assertRegex(run.err, reason)
        self.assertTrue(runs[0][0].told("process_ended", reason=re.compile(
            r"^exit status 0 although the job goes on: worker [01]'s trainer called exit\(0\)")))
        self.assertTrue(runs[-1][0].told("process_ended", reason=re.compile(
            r"^killed by signal 11: see .*/logs/worker-[01]\.log$")))

    def test_ends_after_work_do_not_count(self):
        run = self.finish("--workers", 1, "--epochs", 1, "--samples", 30, *in_trainer("kill", 3),
                          common=())
        self.assertGreater(len(run.told("process_ended", member="worker 0")), 6)

    def test_a_server_that_crashes_again_and_again_ends_the_job(self):
        for place, after, times in (("keeper", 0, "in a row before it had done any work"),
                                    ("function", 20, "within 120 s")):
            with self.subTest(place=place):
                run = self.finish("--where", place, "--how", "exit-3", "--after", after,
                                  "--samples", 200, status=1, common=())
                self.assertRegex(run.err, rf"server 0 ended 6 times {times} \(exit status 3\): "
                                 r".* called exit\(3\)")
                self.assertEqual(len(run.told("process_ended", member="server 0")), 6)

    def test_kills_of_a_server_after_work_do_not_count(self):
        """Each life of at least 1.2 s leaves a checkpoint, so the job comes to its end."""
        run = self.finish("--servers", 1, "--workers", 1, "--epochs", 1, "--samples", 700,
                          "--where", "function", "--how", "kill", "--after", 60,
                          "--checkpoint-every", "10clocks", *cluster.slow([20]), common=())
        self.assertGreater(len(run.told("process_ended", member="server 0")), 6)

    def test_code_that_closes_files_of_troupe_ends_its_process(self):
        for place, member in (("trainer", "worker"), ("function", "server")):
            with self.subTest(place=place):
                run = self.finish("--where", place, "--how", "close-all", status=1)
                self.assertRegex(run.err, member + r" [01] ended 6 times .*\(killed by signal 6\): "
                                 "code of the program closed files of this process: Bad file ")

    def test_numbers_are_written_with_points_in_any_locale(self):
        made = subprocess.run(["localedef", "-i", "de_DE", "-f", "UTF-8", self.home / "de_DE"],
                              capture_output=True)
        if not (self.home / "de_DE").exists():
            self.skipTest(f"no locale de_DE: {made.stderr}")
        prefix = ("env", f"LOCPATH={self.home}", "MISBEHAVE_LOCALE=de_DE")
        for more in (), ("MISBEHAVE_STREAMS=de_DE",):
            run = self.finish("--straggler-time-scale", 1.5, "--loads", 0.25, "--kill",
                              "worker:0@0.01", prefix=prefix + more)
            self.assertEqual(run.report["optimizer"], "sgd")


class Starts(cluster.ClusterTest):
    common = COMMON

    def test_through_the_dynamic_loader(self):
        loaders = [path for path in ("/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1")
                   if os.path.exists(path)]
        if not loaders:
            self.skipTest("no dynamic loader at a known place")
        self.assertIn("after 2 of 2", self.finish(prefix=(loaders[0],)).out)

    @unittest.skipUnless(can_make_namespaces(), "needs the right to make namespaces")
    def test_without_proc(self):
        hidden = ("unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /proc && exec "$@"', "sh")
        self.assertIn("after 2 of 2", self.finish(prefix=hidden).out)

    def test_names_that_are_not_utf_8(self):
        run = self.start("--checkpoint", self.home / "kept\udcff", name="run\udcfe")
        self.assertEqual(run.wait(), 0)
        self.assertIn("kept\\xff", run.report["command"])
        self.assertIn("kept\\\\xff", (run.directory / "cluster.json").read_text())
        again = self.finish("--checkpoint", self.home / "kept\udcff", "--resume", "--epochs", 3,
                            common=COMMON[:2] + COMMON[4:])
        self.assertTrue(again.told("shard_restored"))
        self.assertIn("after 3 of 3", again.out)


if __name__ == "__main__":
    cluster.main(__doc__)

"""Runs programs of Troupe as their users do: real processes in a private directory.

A test file is a unittest.TestCase derived from ClusterTest, and ends with cluster.main(). Its first
argument is the folder of the programs.
"""
import argparse
import collections
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import uuid

ROLES = ("coordinator", "server", "worker")
SKIPPED = 77
MARK = "TROUPE_TEST"  # Its value, inherited by all processes of a run, tells them from all others.

arguments = argparse.Namespace(programs=pathlib.Path("."))


def poll(what, seconds, message):
    """Waits for `what()` to be true and returns its value. Looks are counted, so that a machine that
    stands still costs one look."""
    pause = 0.02
    for _ in range(round(seconds / pause)):
        value = what()
        if value:
            return value
        time.sleep(pause)
    raise AssertionError(f"not within {seconds} s: {message}")


def slow(milliseconds):
    """Options by which each worker takes so much longer for a step."""
    return [word for i, ms in enumerate(milliseconds) for word in ("--slow", f"{i}:{ms}")]


def is_exact(said, elements):
    """Whether the last sums that count_batches told are all right."""
    told = re.findall(r"right: (\d+) of (\d+)\n", said)
    return bool(told) and told[-1] == (str(elements), str(elements))


def read_proc(pid, name):
    try:
        return pathlib.Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:  # It ended meanwhile.
        return b""


def state_and_parent(pid):
    """Of a process that is there: ('S', 1). The name in front of them may hold anything."""
    fields = read_proc(pid, "stat").rpartition(b") ")[2].split()
    return (fields[0].decode(), int(fields[1])) if fields else ("", 0)


def pids():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def send(pid, number):
    """A signal; False where the process has ended meanwhile."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


class Run:
    """One launcher and the processes that it starts."""

    def __init__(self, home, name, words, prefix=()):
        self.home = home / name
        self.home.mkdir()
        self.temporary = self.home / "tmp"
        self.temporary.mkdir()
        self.directory = self.home / "run"
        self.mark = uuid.uuid4().hex
        self.started = time.monotonic()
        self.words = [*prefix, *(str(word) for word in words)]
        environment = dict(os.environ, TMPDIR=str(self.temporary), HOME=str(self.home))
        environment[MARK] = self.mark
        with open(self.home / "out", "wb") as out, open(self.home / "err", "wb") as err:
            self.launcher = subprocess.Popen(
                self.words, stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=self.home,
                env=environment, start_new_session=True)

    # -- what it says --

    @property
    def out(self):
        return (self.home / "out").read_text(errors="replace")

    @property
    def err(self):
        return (self.home / "err").read_text(errors="replace")

    @property
    def report(self):
        return json.loads((self.home / "report.json").read_text())

    @property
    def logs(self):
        return {path.stem: path.read_text(errors="replace")
                for path in sorted(self.directory.glob("logs/*.log"))}

    def await_text(self, text, seconds=20):
        self.await_match(re.escape(text), seconds)

    def await_match(self, pattern, seconds=20):
        """The same for a regular expression."""
        def said():
            ended = self.launcher.poll()  # First: what it said at its end counts.
            found = re.search(pattern, self.out) is not None
            if not found and ended is not None:
                raise AssertionError(f"ended with {ended} before '{pattern}'")
            return found
        poll(said, seconds, f"'{pattern}'")

    # -- its processes --

    def processes(self):
        """{("worker", 1): pid} of the launcher's living children."""
        found = {}
        for pid in pids():
            state, parent = state_and_parent(pid)
            if parent != self.launcher.pid or state == "Z":
                continue
            words = read_proc(pid, "cmdline").split(b"\0")
            if b"--child" in words:
                kind, index = words[words.index(b"--child") + 1].split(b":")[:2]
                found[ROLES[int(kind)], int(index)] = pid
        return found

    def alive(self):
        """All of this run, also those that lost their parent."""
        wanted = f"{MARK}={self.mark}".encode()
        return [pid for pid in pids()
                if wanted in read_proc(pid, "environ").split(b"\0")
                and state_and_parent(pid)[0] not in ("Z", "")]

    def kill(self, role, index):
        """SIGKILL to a process; False where it does not run just now."""
        pid = self.processes().get((role, index))
        return pid is not None and send(pid, signal.SIGKILL)

    def signal(self, number):
        self.launcher.send_signal(number)

    def wait(self, seconds=60):
        """The exit status, so many seconds after the start at most. Nothing may be left then."""
        try:
            status = self.launcher.wait(max(0.1, seconds - (time.monotonic() - self.started)))
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still running after {seconds} s") from None
        poll(lambda: not self.alive(), 10, "end of all processes of the run")
        return status

    def end(self):
        """Whatever it takes."""
        if self.launcher.poll() is None:
            self.launcher.kill()
            self.launcher.wait()
        def nothing_is_left():
            left = self.alive()
            for pid in left:
                send(pid, signal.SIGKILL)
            return not left
        poll(nothing_is_left, 10, "end of all processes of the run")  # They write to its directory.

    def story(self):
        """For a person who looks at a failure."""
        parts = [f"$ {' '.join(self.words)}\nstatus {self.launcher.poll()}",
                 "out: " + self.out[-2500:], "err: " + self.err[-2000:]]
        parts += [f"log of {name}: {text[-400:]}" for name, text in self.logs.items()]
        return "\n".join(parts)


class Result(unittest.TextTestResult):
    """Says how long tests took, and what the runs of failed ones said."""

    def startTest(self, test):
        self.began = time.monotonic()
        super().startTest(test)

    def addSuccess(self, test):
        super().addSuccess(test)
        self.stream.writeln(f"  {time.monotonic() - self.began:.1f} s")

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.tell(test)

    def addError(self, test, err):
        super().addError(test, err)
        self.tell(test)

    def tell(self, test):
        for run in getattr(test, "runs", ()):
            self.stream.writeln(run.story())


class ClusterTest(unittest.TestCase):
    program = "async_sgd"
    common = ()  # Options of every run of the test.

    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="troupe-")
        self.addCleanup(directory.cleanup)
        self.home = pathlib.Path(directory.name)
        self.runs = []
        self.addCleanup(self.end_runs)

    def end_runs(self):
        for run in self.runs:
            run.end()

    def start(self, *options, name=None, prefix=(), common=None, processes=True):
        name = name or f"run{len(self.runs)}"
        home = self.home / name
        words = [arguments.programs / self.program, *(self.common if common is None else common),
                 *options]
        if "--join" not in options:  # The main host reports.
            words += ["--report", home / "report.json"]
        if processes:
            words += ["--run-dir", home / "run"]
        run = Run(self.home, name, words, prefix)
        self.runs.append(run)
        return run

    def finish(self, *options, seconds=60, status=0, **more):
        """Runs to the end, which must be this one."""
        run = self.start(*options, **more)
        self.assertEqual(run.wait(seconds), status)
        return run

    def accuracy(self, run):
        return run.report["test_accuracy"]

    def assert_exact(self, run, elements):
        """Of count_batches: every batch counts once in all of its sums."""
        self.assertTrue(is_exact(run.out, elements), run.out[-1000:])
        self.assertEqual(run.report["test_accuracy"], 1.0)

    def survive_kills(self, run, kills, elements, dice, pause_s, draw, deaths_max=None):
        """SIGKILLs to whom `draw()` says, one after each pause, so many of one at most; nevertheless
        every batch counts once. Returns the report.
        """
        run.await_text("training with")
        killed = collections.Counter()
        while killed.total() < kills and run.launcher.poll() is None:
            time.sleep(dice.uniform(*pause_s))
            who = draw()
            if deaths_max is None or killed[who] < deaths_max:
                killed[who] += run.kill(*who)
        self.assertEqual(run.wait(60 + 6 * kills), 0)
        self.assertGreaterEqual(len(run.report["recoveries"]), 2 * kills // 3)
        self.assert_exact(run, elements)
        self.assertEqual(unrecovered(run.report), [])
        return run.report

    def assert_recovered(self, run, *expected):
        """Each of these (role, index) was lost once, and all that was lost came back."""
        recoveries = run.report["recoveries"]
        self.assertEqual(sorted((x["role"], x["index"]) for x in recoveries), sorted(expected))
        self.assertEqual(unrecovered(run.report), [])


def unrecovered(report):
    """The losses not made good, but for those of the last second, when nobody is needed."""
    return [x for x in report["recoveries"]
            if x["recovered_ms"] is None and x["at_seconds"] < report["seconds"] - 1]


def parser(description):
    made = argparse.ArgumentParser(description=description)
    made.add_argument("programs", type=pathlib.Path, help="folder of the programs")
    made.add_argument("--only", help="name of a single test, such as Bsp.test_slow")
    return made


def main(description=None, options=None):
    """`options`: a parser() with more options."""
    (options or parser(description)).parse_args(namespace=arguments)
    arguments.programs = arguments.programs.resolve()
    runner = unittest.TextTestRunner(stream=sys.stdout, verbosity=2, resultclass=Result)
    result = unittest.main(argv=[sys.argv[0]], defaultTest=arguments.only, testRunner=runner,
                           exit=False).result
    for test, why in result.skipped:
        print(f"SKIPPED: {test}: {why}")
    if not result.wasSuccessful():
        sys.exit(1)
    sys.exit(SKIPPED if len(result.skipped) == result.testsRun else 0)

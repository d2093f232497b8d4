"""Runs programs of Troupe as users do: real processes in a private directory.

A test file derives a unittest.TestCase from ClusterTest and ends with cluster.main(). Its first
argument is the folder of the programs. Each class is an entry of ctest, and runs beside others: a
test uses free ports and names of its own. A class may have these attributes:

* alone = "REASON": it runs with no other entry, because it measures time or processor use
* seconds = N: how long it takes; the longest classes begin first
"""
import argparse
import collections
import functools
import json
import os
import pathlib
import random
import re
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import uuid

ROLES = ("coordinator", "server", "worker", "launcher", "actor")
SKIPPED = 77
HANGS = 120  # Seconds after which a run hangs; on a busy machine, most take a quarter of it.
MARK = "TROUPE_TEST"  # All processes of a run inherit its value, which identifies them.
ROOT = pathlib.Path(__file__).resolve().parents[2]
# Kinds of events: a process ended or was given up; a shard lost updates.
LOSSES = ("process_ended", "server_lost", "worker_lost", "actor_lost")
ROLLBACKS = ("shard_restarted", "shard_restored")
# Where tests of devices compute; cuda:all, for example, names real ones.
DEVICE = os.environ.get("TROUPE_TEST_DEVICE", "emulated")
IS_LONG = os.environ.get("TROUPE_LONG_TESTS") == "1"  # `scripts/test --long` sets it.

arguments = argparse.Namespace(programs=pathlib.Path("."))


def count(plain, long):
    """Returns `long` in `scripts/test --long`, else `plain`: kills, seeds or repetitions."""
    return long if IS_LONG else plain


def poll(what, seconds, message, pause=0.02):
    """Waits until `what()` is true and returns its value. It counts looks, so that a machine that
    stalls costs one look."""
    for _ in range(round(seconds / pause)):
        value = what()
        if value:
            return value
        time.sleep(pause)
    raise AssertionError(f"not within {seconds} s: {message}")


def free_port():
    """Returns a port that is free on loopback. The system gives ports from 32768 on to programs that
    ask for any, so none of them takes this one before it is used.
    """
    while True:
        port = random.randrange(10000, 32768)
        try:
            with socket.create_server(("127.0.0.1", port)):
                return port
        except OSError:  # Another program uses it.
            pass


def slow(milliseconds):
    """Returns options that delay each step of worker i by `milliseconds[i]`."""
    return [word for i, ms in enumerate(milliseconds) for word in ("--slow", f"{i}:{ms}")]


@functools.cache
def event_sentences():
    """Returns {kind: sentence} of all kinds of events, the sentences with their {fields}."""
    text = (ROOT / "serialization/job_event.cpp").read_text()
    literal = r'"(?:[^"\\]|\\.)*"'
    rows = re.findall(rf'{{event_kind::(\w+), "(\w+)",\s*({literal}(?:\s*{literal})*)}}', text)
    assert rows and all(kind == name for kind, name, _ in rows), rows
    return {kind: "".join(word[1:-1] for word in re.findall(literal, sentence))
            for kind, _, sentence in rows}


class EventFile:
    """Reads a launcher's events.jsonl while it grows."""

    def __init__(self, path, begin=0):
        self.path, self.end = path, begin
        self.events = []

    def read(self):
        """Returns all events so far; a last line that is only half written comes later."""
        try:
            with open(self.path, "rb") as file:
                file.seek(self.end)
                data = file.read()
        except FileNotFoundError:
            data = b""
        whole = data.rfind(b"\n") + 1
        self.end += whole
        self.events += [json.loads(line) for line in data[:whole].splitlines()]
        return self.events


def read_events(path):
    """Returns the events of a file; [] where there is none."""
    return EventFile(path).read()


def matching(events, *kinds, **fields):
    """Returns the events of these kinds that have these fields. A compiled pattern is searched for
    in the field's text, a function is called with the field's value, any other value is equal.
    """
    unknown = set(kinds) - event_sentences().keys()
    if unknown:  # A misspelt kind would never be found.
        raise ValueError(f"no such kinds of events: {unknown}")

    def fits(value, wanted):
        if isinstance(wanted, re.Pattern):
            return isinstance(value, str) and wanted.search(value) is not None
        return wanted(value) if callable(wanted) else value == wanted
    return [x for x in events if x["event"] in kinds
            and all(name in x and fits(x[name], wanted) for name, wanted in fields.items())]


def is_exact(events, elements):
    """Returns whether the last sums that count_batches noted are all right."""
    notes = [re.search(r"right: (\d+) of (\d+)$", x["text"]) for x in matching(events, "note")]
    told = [found.groups() for found in notes if found]
    return bool(told) and told[-1] == (str(elements), str(elements))


def option(words, name):
    """Returns the word that follows an option; None where the option is not given."""
    return words[words.index(name) + 1] if name in words else None


def read_proc(pid, name):
    try:
        return pathlib.Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:  # The process has ended.
        return b""


def state_and_parent(pid):
    """Returns e.g. ('S', 1); ("", 0) without a process. The name in front may hold any text."""
    fields = read_proc(pid, "stat").rpartition(b") ")[2].split()
    return (fields[0].decode(), int(fields[1])) if fields else ("", 0)


def pids():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def send(pid, number):
    """Sends a signal; returns False if the process has ended."""
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
        self.mark = uuid.uuid4().hex
        self.started = time.monotonic()
        self.words = [*prefix, *(str(word) for word in words)]
        self.directory = self.home / (option(self.words, "--run-dir") or "run")
        events = option(self.words, "--events")
        events = self.home / events if events else self.directory / "events.jsonl"
        # Launchers append: what is there already is of an earlier run.
        self.event_file = EventFile(events, events.stat().st_size if events.is_file() else 0)
        environment = dict(os.environ, TMPDIR=str(self.temporary), HOME=str(self.home))
        environment[MARK] = self.mark
        with open(self.home / "out", "wb") as out, open(self.home / "err", "wb") as err:
            self.launcher = subprocess.Popen(
                self.words, stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=self.home,
                env=environment, start_new_session=True)

    # -- its output --

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

    @property
    def events(self):
        """Returns the events that the launcher wrote so far, the oldest first."""
        return self.event_file.read()

    def told(self, *kinds, **fields):
        """Returns the events of these kinds that have these fields, as matching() does."""
        return matching(self.events, *kinds, **fields)

    def members_of(self, *kinds, **fields):
        """Returns the members of such events, in order."""
        return [x["member"] for x in self.told(*kinds, **fields)]

    def await_true(self, what, within, message):
        """Waits for `what()` to be true and returns its value. It is an error if the launcher ends
        before.
        """
        def look():
            ended = self.launcher.poll()  # First: what it wrote at its end counts.
            found = what()
            if not found and ended is not None:
                raise AssertionError(f"ended with {ended} before {message}")
            return found
        return poll(look, within, message)

    def await_event(self, kind, within=20, count=1, **fields):
        """Waits for so many events of a kind that have these fields, at most `within` seconds.
        Returns the last of them.
        """
        def enough():
            found = self.told(kind, **fields)
            return found if len(found) >= count else []
        return self.await_true(enough, within, f"{count} events {kind} {fields}")[count - 1]

    def await_epoch(self, epoch, within=20):
        """Waits until training has come so far; 0.5 is half of the first epoch."""
        self.await_event("progress", within, epoch=lambda x: x >= epoch)

    # -- its processes --

    def processes(self):
        """Returns {("worker", 1): pid} of the launcher's living children."""
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
        """Returns the living processes of this run, also orphans."""
        wanted = f"{MARK}={self.mark}".encode()
        return [pid for pid in pids()
                if wanted in read_proc(pid, "environ").split(b"\0")
                and state_and_parent(pid)[0] not in ("Z", "")]

    def kill(self, role, index):
        """Sends SIGKILL to a process; returns False if it does not run."""
        return self.kill_together([(role, index)])

    def kill_together(self, members):
        """Sends SIGKILL to processes, one right after the other; returns False if one of them does
        not run."""
        running = self.processes()
        pids = [running.get(each) for each in members]
        return None not in pids and all([send(pid, signal.SIGKILL) for pid in pids])

    def signal(self, number):
        self.launcher.send_signal(number)

    def wait(self, seconds=HANGS):
        """Returns the exit status. Fails `seconds` after the start, or if a process is left."""
        try:
            status = self.launcher.wait(max(0.1, seconds - (time.monotonic() - self.started)))
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still running after {seconds} s") from None
        poll(lambda: not self.alive(), 10, "end of all processes of the run")
        return status

    def end(self):
        """Kills the launcher and all processes of the run."""
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
        """Returns a description of the run for the reader of a failure."""
        parts = [f"$ {' '.join(self.words)}\nstatus {self.launcher.poll()}",
                 "out: " + self.out[-2500:], "err: " + self.err[-2000:]]
        parts += [f"log of {name}: {text[-400:]}" for name, text in self.logs.items()]
        return "\n".join(parts)


def processor_seconds():
    """Returns what all processes used that this one started and that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Result(unittest.TextTestResult):
    """Prints how long each test took, and the output of runs of failed tests."""

    def startTest(self, test):
        self.began = time.monotonic(), processor_seconds()
        super().startTest(test)

    def addSuccess(self, test):
        super().addSuccess(test)
        seconds = time.monotonic() - self.began[0]
        used = processor_seconds() - self.began[1]
        self.stream.writeln(f"  {seconds:.1f} s, {used:.1f} s of processors")

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.tell(test)

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
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

    def finish(self, *options, seconds=HANGS, status=0, **more):
        """Runs to the end; the exit status must be `status`."""
        run = self.start(*options, **more)
        self.assertEqual(run.wait(seconds), status)
        return run

    def assert_refused(self, inputs):
        """Checks for each (words, exit status, pattern) that a run with these words ends with one
        line. {home} is the test's directory."""
        for words, status, pattern in inputs:
            with self.subTest(words):
                run = self.finish(*words.format(home=self.home).split(), status=status)
                self.assertRegex(run.err, pattern)
                self.assertEqual(run.err.count("\n"), 1, run.err)
                self.assertEqual(run.out, "")

    def accuracy(self, run):
        return run.report["test_accuracy"]

    def assert_untold(self, run, *kinds, **fields):
        """Checks that a run wrote events, and none of these kinds with these fields."""
        self.assertTrue(run.told("run_started"), "it wrote no events")
        self.assertEqual(run.told(*kinds, **fields), [])

    def assert_exact(self, run, elements):
        """Of count_batches: every batch counts once in all of its sums."""
        self.assertTrue(is_exact(run.events, elements), run.out[-1000:])
        self.assertEqual(run.report["test_accuracy"], 1.0)

    def survive_kills(self, run, kills, elements, dice, pause_s, draw, deaths_max=None):
        """Sends a SIGKILL to process `draw()` after each pause, `deaths_max` at most to each.
        Checks that every batch counts once nevertheless. Returns the report.
        """
        run.await_event("training_started")
        killed = collections.Counter()
        while killed.total() < kills and run.launcher.poll() is None:
            time.sleep(dice.uniform(*pause_s))
            who = draw()
            if deaths_max is None or killed[who] < deaths_max:
                killed[who] += run.kill(*who)
        self.assertEqual(run.wait(HANGS + 6 * kills), 0)
        self.assertGreaterEqual(len(run.report["recoveries"]), 2 * kills // 3)
        self.assert_exact(run, elements)
        self.assertEqual(unrecovered(run.report), [])
        return run.report

    def assert_recovered(self, run, *expected):
        """Checks that each of these (role, index) was lost once, and that all came back."""
        recoveries = run.report["recoveries"]
        self.assertEqual(sorted((x["role"], x["index"]) for x in recoveries), sorted(expected))
        self.assertEqual(unrecovered(run.report), [])


def unrecovered(report):
    """Returns losses without recovery, except in the last second, when none is needed."""
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
    print(f"{processor_seconds():.1f} s of processors")
    for test, why in result.skipped:
        print(f"SKIPPED: {test}: {why}")
    if not result.wasSuccessful():
        sys.exit(1)
    sys.exit(SKIPPED if len(result.skipped) == result.testsRun else 0)

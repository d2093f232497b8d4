"""Checks `troupe chaos`: real processes keep their promises under kills and stops, and violations
are reported.
"""
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

import cluster


class ChaosTest(unittest.TestCase):
    seconds = 120

    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="troupe-")
        self.addCleanup(directory.cleanup)
        self.temporary = pathlib.Path(directory.name)

    def start(self, *words):
        return subprocess.Popen(
            [cluster.arguments.programs / "troupe", "chaos", *map(str, words)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=dict(os.environ, TMPDIR=str(self.temporary)))

    def chaos(self, *words, seconds=150):
        """Returns the exit status and the output."""
        process = self.start(*words)
        try:
            out, err = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
            raise
        return process.returncode, out + err

    def processes(self):
        """Returns the living processes that use files in our directory."""
        wanted = str(self.temporary).encode()
        return [pid for pid in cluster.pids() if wanted in cluster.read_proc(pid, "cmdline")
                and cluster.state_and_parent(pid)[0] not in ("Z", "")]

    def assert_clean(self):
        cluster.poll(lambda: not self.processes(), 20, "end of all processes")

    def test_kills_and_stops(self):
        status, said = self.chaos("--seconds", cluster.count(20, 39), "--seed", 5, "--kill", "--stop")
        self.assertEqual(status, 0, said)
        for text in ("C1 exactly once        holds", "C3 conservation        holds",
                     "durability             holds", "C9 evictions           holds",
                     "C10 liveness           holds",
                     "C12 resources          holds", "C13 vacuity            holds",
                     "C8 no bad checkpoint   n/a because no bit was flipped"):
            self.assertIn(text, said)
        self.assertRegex(said, r"kill server +[1-9]")
        self.assertRegex(said, r"stop longer than silence \(1.3 s\) +[1-9]")
        self.assertRegex(said, r"members back +[1-9]")
        self.assertEqual(list(self.temporary.iterdir()), [])
        self.assert_clean()

    def test_an_own_store(self):
        status, said = self.chaos("--graph", "own-store", "--seconds", 15, "--seed", 7, "--kill",
                                  "--flip")
        self.assertEqual(status, 0, said)
        for text in ("C1 exactly once        holds", "C8 no bad checkpoint   holds",
                     "C13 vacuity            holds"):
            self.assertIn(text, said)
        for words, text in ((("--servers", 3), "an own store is one server"),
                            (("--sync", "bsp"), "an own store is asp")):
            status, said = self.chaos("--graph", "own-store", "--kill", *words)
            self.assertEqual(status, 2, said)
            self.assertIn(text, said)

    def test_cuts_flips_and_a_full_disk(self):
        if os.geteuid() != 0:
            self.skipTest("network namespaces need root")
        status, said = self.chaos("--seconds", cluster.count(24, 39), "--seed", 3, "--partition",
                                  "--flip", "--full-disk")
        if "needs root" in said:
            self.skipTest(said)
        self.assertEqual(status, 0, said)
        for name in ("C1 exactly once", "durability", "C8 no bad checkpoint", "C10 liveness",
                     "full disk"):
            self.assertRegex(said, rf"\n{name} +holds")
        self.assertRegex(said, r"cut one way out +[1-9]")
        self.assertEqual(list(self.temporary.iterdir()), [])
        self.assert_clean()

    def test_too_few_faults_and_too_little_memory_are_violations(self):
        # The program writes no checkpoint, so there is none to damage.
        program = self.temporary / "count batches"
        program.write_text("#!/bin/bash\n"
                           f"exec '{cluster.arguments.programs}/count_batches' \"${{@/#1s/1000s}}\"\n")
        program.chmod(0o755)
        status, said = self.chaos("--seconds", 4, "--flip", "--rss-limit", 2, "--program", program,
                                  "--seed", 7)
        self.assertEqual(status, 1, said)
        self.assertIn("\ntroupe chaos: violated: C12 resources, C13 vacuity; repeat with troupe chaos "
                      f"--seconds 4 --flip --program '{program}' --rss-limit 2 --seed 7; logs",
                      said)
        self.assertIn("'flipped bit' came 0 times, not once or more", said)
        self.assertRegex(said, r"no more faults, waiting for the end of the job: \d+ % of the")
        self.assertRegex(said, r"C1 exactly once +holds")
        self.assert_clean()

    def test_a_job_that_does_not_begin_is_told(self):
        status, said = self.chaos("--kill", "--program", "/bin/false")
        self.assertEqual(status, 1, said)
        self.assertRegex(said, r"C10 liveness +VIOLATED +the job ended with status 1")

    def test_a_program_that_is_not_there_is_told_before_anything_starts(self):
        alone = self.temporary / "troupe"
        shutil.copy(cluster.arguments.programs / "troupe", alone)
        for words, line in (
                ((alone, "chaos", "--kill"),
                 f"no program count_batches beside {alone}: give --program"),
                ((alone, "chaos", "--kill", "--program", "/etc/passwd"),
                 "cannot run /etc/passwd: Permission denied; give another --program")):
            done = subprocess.run(list(map(str, words)), capture_output=True, text=True, timeout=10)
            self.assertEqual((done.returncode, done.stdout, done.stderr),
                             (1, "", f"troupe chaos: {line}\n"))

    def test_an_unknown_command_is_named(self):
        done = subprocess.run([cluster.arguments.programs / "troupe", "status"],
                              capture_output=True, text=True, timeout=10)
        self.assertEqual((done.returncode, done.stderr),
                         (2, "troupe: no command 'status' (see troupe --help)\n"))

    def test_an_interrupt_leaves_nothing(self):
        process = self.start("--kill")
        cluster.poll(self.processes, 10, "a cluster")
        time.sleep(1)  # Its processes start too.
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=10)
        self.assertEqual(process.returncode, -signal.SIGINT)
        self.assert_clean()
        self.assertEqual(list(self.temporary.iterdir()), [])

    def test_bad_input_gets_one_line(self):
        for words, line in (
                ((), "one of --kill, --stop, --partition, --full-disk, --flip is required"),
                (("--kill", "--replicas", 4), "4 replicas need as many --servers, not 3"),
                (("--kill", "--sync", "hogwild"), "hogwild is one process"),
                (("--kill", "--sync", "typo"), "typo"),
                (("--kill", "--sync", "bsp", "--workers", 3), "1, 2, 4, 8"),
                (("--kill", "--seconds", 0), "--seconds: '0' is not a number in 1..100000"),
                (("--kill", "--rss-limit", "nan"), "--rss-limit: 'nan' is not a number in 1.."),
                (("--kill", "--program", "/none"), "/none"),
                (("--kill", "--stop", "--seconds", 10), "10 s are too short for 6 kinds of faults, "
                 "each once or more: give --seconds 14 or more"),
                (("--kill", "--minimum", 1000), "each 1000 times or more: give --seconds 4650"),
                (("--nonsense",), "--nonsense")):
            status, said = self.chaos(*words)
            with self.subTest(words=words):
                self.assertEqual(status, 2, said)
                self.assertEqual(len(said.splitlines()), 1, said)
                self.assertIn(line, said)


if __name__ == "__main__":
    cluster.main(__doc__)

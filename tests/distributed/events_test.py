"""events.jsonl: the reference lists all kinds with their fields, and real runs write no others."""
import json
import os
import re
import signal
import subprocess
import time

import cluster

EVERYWHERE = {"time", "unix", "event"}
TEXTS = {"address", "command", "figures", "host", "measure", "member", "other", "phase", "reason", "text"}
ROW = re.compile(r"^\| `(\w+)` \| ((?:`\w+\??`(?:, )?)*) \| (.*)\|$", re.MULTILINE)


def reference_rows():
    """Returns [(kind, {field: whether each such event has it}, sentence)] of the reference."""
    text = (cluster.ROOT / "docs/reference/events.md").read_text()
    return [(kind, {name: not optional for name, optional in re.findall(r"`(\w+)(\??)`", fields)},
             sentence) for kind, fields, sentence in ROW.findall(text)]


def placeholders(sentence):
    """Returns the names of the fields that a sentence shows."""
    return set(re.findall(r"\{(\w+)(?::\w+)?\}", sentence))


def is_text(kind, name):
    return name in TEXTS or (kind, name) == ("members_missing", "members")


class Reference(cluster.ClusterTest):
    def test_kinds_are_those_of_the_source(self):
        kinds = [kind for kind, _, _ in reference_rows()]
        self.assertEqual(sorted(kinds), sorted(cluster.event_sentences()))

    def test_fields_are_those_of_sentences(self):
        sentences = cluster.event_sentences()
        for kind, fields, meaning in reference_rows():
            with self.subTest(kind):
                self.assertLessEqual(placeholders(meaning), fields.keys())
                shown = placeholders(sentences[kind])
                self.assertLessEqual(shown, fields.keys())
                # What is in brackets is left out where its field is missing.
                always = placeholders(re.sub(r"\[.*?\]", "", sentences[kind]))
                self.assertEqual({name for name in shown if fields[name]}, always)


class Written(cluster.ClusterTest):
    program = "count_batches"
    common = ("--elements", 1000, "--batch", 1, "--epochs", 1)

    def setUp(self):
        super().setUp()
        self.fields = {kind: fields for kind, fields, _ in reference_rows()}
        self.began = time.time()

    def check_event(self, event):
        """Compares an event with its row of the reference."""
        kind = event["event"]
        self.assertIn(kind, self.fields)
        fields = self.fields[kind]
        always = EVERYWHERE | {name for name, is_always in fields.items() if is_always}
        if cluster.event_sentences()[kind]:
            always.add("text")
        self.assertLessEqual(always, event.keys(), event)
        self.assertLessEqual(event.keys(), always | fields.keys(), event)
        for name in ("time", "unix"):
            self.assertIsInstance(event[name], (int, float), event)
        self.assertGreaterEqual(event["time"], 0)
        self.assertTrue(self.began - 1 < event["unix"] < time.time() + 1, event)
        for name in event.keys() - EVERYWHERE:
            if is_text(kind, name):
                self.assertIsInstance(event[name], str, event)
            else:  # A number that is not finite is null.
                self.assertIsInstance(event[name], (int, float, type(None)), event)
        if "text" in event:
            self.assertTrue(event["text"], event)

    def check_run(self, run, status=0, reason=""):
        """Compares all events of a run that has ended with the reference; returns their kinds."""
        for event in run.events:
            self.check_event(event)
        kinds = [x["event"] for x in run.events]
        self.assertEqual((kinds[0], kinds[-1]), ("run_started", "run_ended"))
        self.assertEqual((kinds.count("run_started"), kinds.count("run_ended")), (1, 1))
        self.assertIn(f"/{self.program} ", run.events[0]["command"])
        self.assertTrue(run.told("run_ended", status=status, reason=reason), run.events[-1])
        return set(kinds)

    def test_a_worker_and_a_server_killed(self):
        run = self.finish("--samples", 2000, "--workers", 2, "--servers", 2, "--checkpoint-every",
                          "300ms", *cluster.slow([4] * 2), "--kill", "worker:1@0.5",
                          "--kill", "server:0@1")
        self.assertGreater(self.check_run(run), {"member_joined", "progress", "note",
                                                 "checkpoint_committed"})
        for member in "worker 1", "server 0":
            for kind in "kill_injected", "process_ended", "member_rejoined":
                self.assertTrue(run.told(kind, member=member), f"{kind} {member}")
        self.assertTrue(run.told(*cluster.ROLLBACKS))
        self.assertTrue(run.told("training_started", workers=2))
        self.assertTrue(run.told("batches_applied", batches=2000))
        self.assertTrue(run.told("evaluated", epoch=1, accuracy=1))
        self.assert_exact(run, 1000)

    def test_all_reduce(self):
        run = self.finish("--sync", "allreduce", "--workers", 4, "--samples", 40000, "--epochs", 2,
                          "--kill", "worker:2@0.2", common=self.common[:4])
        self.assertGreater(self.check_run(run), {"progress", "note"})
        for kind in "kill_injected", "process_ended":
            self.assertEqual(run.members_of(kind), ["worker 2"])
        self.assertTrue(run.told("evaluated", epoch=2, accuracy=1))

    def test_stopped(self):
        file = self.home / "events.jsonl"
        run = self.start("--samples", 20000, "--workers", 2, "--events", file,
                         *cluster.slow([4] * 2))
        run.await_event("training_started")
        run.signal(signal.SIGINT)
        self.assertEqual(run.wait(), 128 + signal.SIGINT)
        kinds = self.check_run(run, 128 + signal.SIGINT)
        self.assertGreater(kinds, {"stopping", "stop_requested", "checkpoint_committed"})
        self.assertFalse((run.directory / "events.jsonl").exists())  # They are in the named file.

    def test_threads(self):
        """Without a run directory there is a file only where one is named; it is appended to."""
        file = self.home / "events.jsonl"
        words = ("--samples", 200, "--workers", 2, "--threads")
        count = 0
        for _ in range(2):
            run = self.finish(*words, "--events", file, processes=False)
            self.assertGreater(self.check_run(run), {"training_started", "evaluated"})
            count += len(run.events)
        self.assertEqual(len(cluster.read_events(file)), count)
        silent = self.finish(*words, processes=False)
        self.assertEqual(list(silent.home.rglob("*.jsonl")), [])

    def test_files_that_cannot_be_written(self):
        """Each mode refuses them at its start, with one line."""
        (self.home / "folder").mkdir()
        (self.home / "link").symlink_to("missing/file")
        for mode in (), ("--threads",), ("--sync", "allreduce"):
            for name, why in (("folder", "folder: it is a directory$"),
                              ("link", "link, a link to .*missing/file: No such file or directory$"),
                              ("missing/file", "missing/file: No such file or directory$")):
                with self.subTest(mode=mode, name=name):
                    self.refused(f"cannot write .*{why}", *mode, "--events", self.home / name)
        report = self.home / "both" / "report.json"
        self.refused("--report and --events are both .*report.json: choose two names$",
                     "--events", report, name="both", status=2)

    def test_outputs_behind_links(self):
        """Each mode follows links, and its last event comes through a pipe."""
        for mode in (), ("--threads",), ("--sync", "allreduce"):
            with self.subTest(mode=mode):
                home = self.home / "-".join(("outputs", *mode))
                home.mkdir()
                os.mkfifo(home / "pipe")
                (home / "report.json").symlink_to("real.json")
                (home / "latest.npz").symlink_to("real.npz")
                (home / "real.npz").touch(0o640)
                words = ("--samples", 40, "--workers", 2, *mode, "--report", "report.json",
                         "--export", "latest.npz", "--events", "pipe")
                with subprocess.Popen(["timeout", "60", "cat", home / "pipe"],
                                      stdout=subprocess.PIPE) as reader:
                    subprocess.run([cluster.arguments.programs / self.program, *map(str, words)],
                                   cwd=home, stdout=subprocess.DEVNULL, timeout=60, check=True)
                    lines = reader.communicate(timeout=20)[0].splitlines()
                self.assertEqual(json.loads(lines[-1])["event"], "run_ended")
                self.assertTrue((home / "latest.npz").is_symlink())
                self.assertEqual((home / "real.npz").stat().st_mode & 0o777, 0o640)
                self.assertGreater((home / "real.npz").stat().st_size, 0)
                self.assertTrue((home / "report.json").is_symlink())
                self.assertIn("seconds", json.loads((home / "real.json").read_text()))

    def refused(self, pattern, *words, status=1, **more):
        run = self.start("--samples", 40, "--workers", 2, *words, processes=False, **more)
        self.assertEqual(run.wait(20), status)
        self.assertEqual(len(run.err.splitlines()), 1, run.err)
        self.assertRegex(run.err, f"^count_batches: {pattern}")
        self.assertFalse((run.home / "runs").exists())  # It did not begin.


if __name__ == "__main__":
    cluster.main(__doc__)

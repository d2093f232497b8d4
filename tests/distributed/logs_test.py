"""Checks the logs of a job's processes: their lines, levels and size."""
import json
import os
import re

import cluster

LIMIT = 16 << 20  # log_file_bytes_max of base/log.hpp.
LINE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3} (trace|debug|info|warn|error|fatal) "
                  r"(launcher|coordinator|(server|worker) \d): .")
EVERYONE = {"console", "coordinator", "server-0", "worker-0", "worker-1"}


class Logs(cluster.ClusterTest):
    common = ("--model", "softmax", "--epochs", 1, "--workers", 2, "--servers", 1)

    def levels(self, *options):
        """Runs a job; returns the levels of the lines in each log."""
        logs = self.finish(*options).logs
        self.assertEqual({"console", *logs}, EVERYONE)  # Without a line, it has no file.
        found = {}
        for name, text in logs.items():
            matches = [LINE.match(line) for line in text.splitlines()]
            self.assertTrue(all(matches), text)
            found[name] = {match[1] for match in matches}
        return found

    def test_lines(self):
        run = self.finish()
        for name, text in run.logs.items():
            for line in text.splitlines():
                self.assertRegex(line, LINE)
            if name != "console":
                node = {"w": " as learners:", "s": " as model:", "c": ""}[name[0]]
                index = name.partition("-")[2] if node else ""
                self.assertRegex(text, f" info {name.replace('-', ' ')}: starts{node}{index}, "
                                 r"pid \d+\n")
                self.assertTrue(text.endswith(": ends\n"), text)
        console = run.logs["console"].splitlines()
        self.assertIn(" info launcher: ", console[0])
        self.assertIn(" --report ", console[0])
        self.assertTrue(any("launcher: test accuracy" in line for line in console), console)

    def test_levels(self):
        self.assertEqual(set().union(*self.levels("--log-level", "info").values()), {"info"})
        for name, levels in self.levels("--log-level", "debug").items():
            self.assertLessEqual(levels, {"debug", "info"}, name)
            self.assertEqual("debug" in levels, name != "console", name)
        for level in "error", "off":
            self.assertEqual(set().union(*self.levels("--log-level", level).values()), set())

    def test_what_debug_tells(self):
        logs = self.finish("--log-level", "debug", "--checkpoint-every", "100ms").logs
        self.assertRegex(logs["coordinator"], r"debug coordinator: lease \d+ for worker 1: first batch \d+, ")
        self.assertRegex(logs["coordinator"], r"debug coordinator: commits checkpoint \d+\n")
        self.assertRegex(logs["server-0"], r"debug server 0: .*wrote its part of checkpoint \d+\n")
        self.assertRegex(logs["worker-0"], r"debug worker 0: link \d+ to server 0 is open\n")

    def test_size(self):
        """A log that is full at the start moves aside, and replaces one that was moved before."""
        directory = self.home / "run" / "logs"
        directory.mkdir(parents=True)
        (directory / "worker-1.log.1").write_text("old")
        with open(directory / "worker-1.log", "wb") as full:
            full.truncate(LIMIT)
        run = self.finish("--run-dir", self.home / "run", processes=False)
        self.assertEqual((directory / "worker-1.log.1").stat().st_size, LIMIT)
        self.assertRegex(run.logs["worker-1"], "^2.* info worker 1: starts as learners:1, pid ")
        self.assertLess((directory / "worker-1.log").stat().st_size, 10_000)

    def test_a_pipe_in_the_place_of_a_log(self):
        logs = self.home / "run/logs"
        logs.mkdir(parents=True)
        os.mkfifo(logs / "worker-0.log")
        run = self.start("--run-dir", self.home / "run", processes=False)
        status = run.wait(10)
        (logs / "worker-0.log").unlink()  # A reader of all logs would wait for a writer.
        self.assertEqual(status, 1, run.story())
        self.assertRegex(run.err, "cannot write .*/worker-0.log: No such device or address")

    def test_a_process_that_cannot_go_on_tells_why(self):
        for level in "info", "off":
            home = self.home / level
            run = self.start("--model", "softmax", "--epochs", 1000, "--run-dir", home,
                             "--log-level", level, common=(), processes=False)
            run.await_epoch(0.1)
            file = home / "cluster.json"
            file.write_text("{")
            run.kill("worker", 1)
            self.assertEqual(run.wait(30), 1, run.story())
            self.assertRegex(run.err, "worker 1: .*cluster.json")
            self.assertRegex(run.logs["worker-1"].splitlines()[-1],
                             r"\d fatal worker 1: .*cluster.json")

    def test_a_process_that_the_cluster_file_leaves_out_tells_why(self):
        run = self.start("--model", "softmax", "--epochs", 1000, "--run-dir", self.home / "run",
                         common=(), processes=False)
        run.await_epoch(0.1)
        file = self.home / "run" / "cluster.json"
        content = json.loads(file.read_text())
        content["fields"]["worker"]["--here"] = "worker:0"
        file.write_text(json.dumps(content))
        run.kill("worker", 1)
        self.assertEqual(run.wait(30), 1, run.story())
        self.assertRegex(run.err, "worker 1: .*cluster.json is damaged")
        self.assertNotRegex(run.logs["worker-1"], "signal 11")


if __name__ == "__main__":
    cluster.main(__doc__)

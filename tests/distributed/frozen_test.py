"""Checks frozen tables in processes: their values are those of a file to the last byte, despite
kills, and each start of a worker pulls them once. Other files are refused in one line.

The sums of count_batches --factors multiply each term by a frozen value, so one wrong value in one
batch shows.
"""
import array
import json
import random
import re
import struct
import subprocess

import cluster

ELEMENTS = 100_000
TABLE_BYTES = 4 * ELEMENTS
KILLS = cluster.count(3, 4)


def write_factors(path, period, name="factors"):
    """Writes the factors 1 .. period, again and again, as a .safetensors; returns their bytes."""
    values = array.array("f", (1 + i % period for i in range(ELEMENTS))).tobytes()
    head = json.dumps({name: {"dtype": "F32", "shape": [ELEMENTS],
                              "data_offsets": [0, len(values)]}}).encode()
    head += b" " * (-len(head) % 8)
    path.write_bytes(struct.pack("<Q", len(head)) + head + values)
    return values


def read_table(path, name):
    """Returns the bytes of an array in a .safetensors."""
    content = path.read_bytes()
    size = struct.unpack_from("<Q", content)[0]
    first, last = json.loads(content[8:8 + size])[name]["data_offsets"]
    return content[8 + size + first:8 + size + last]


class Frozen(cluster.ClusterTest):
    seconds = 70
    program = "count_batches"
    common = ("--elements", ELEMENTS, "--batch", 1, "--epochs", 1, "--workers", 4,
              "--checkpoint-every", "300ms")

    def setUp(self):
        super().setUp()
        self.file = self.home / "factors.safetensors"
        self.values = write_factors(self.file, 3)

    def check_values(self, run):
        """Checks the frozen table that the servers had at the end."""
        self.assertEqual(read_table(run.home / "end.safetensors", "factors"), self.values)

    def frozen_pulls(self, report):
        """Returns how often workers received the frozen table."""
        traffic = report["bytes"]
        return (traffic["received"] - traffic["sent"]) / TABLE_BYTES

    def survive(self, samples, *options, workers=(0, 1, 2, 3), servers=3):
        """Kills workers and servers; `samples` are those of a run with four kills."""
        print(f"seed {cluster.arguments.seed}", end=" ", flush=True)
        dice = random.Random(cluster.arguments.seed)
        run = self.start("--samples", samples * KILLS // 4, "--servers", servers,
                         *cluster.slow([6] * 4), "--factors", self.file, "--export",
                         "end.safetensors", *options)
        run.await_event("training_started")
        self.file.unlink()  # Only the launcher reads it.
        targets = [*(("worker", i) for i in workers), *(("server", i) for i in range(servers))]
        self.survive_kills(run, KILLS, ELEMENTS, dice, (0.3, 1.3), lambda: dice.choice(targets), 4)
        self.check_values(run)
        return run

    def test_each_worker_pulls_the_table_once(self):
        for options in ((), ("--sync", "bsp"), ("--pull-ahead", 2), ("--delta-pulls",),
                        ("--sync", "ssp:2"), ("--sparse",)):
            with self.subTest(options):
                run = self.finish("--samples", 400, "--factors", self.file, *options,
                                  name="-".join(map(str, ("once", *options))).strip("-"))
                self.assert_exact(run, ELEMENTS)
                report = run.report
                self.assertLess(report["staleness_versions"]["max"], 400)
                if "--sparse" not in options:  # Rows are sent with their keys.
                    pulls = self.frozen_pulls(report)
                    if "--delta-pulls" in options:  # A pull that finds no change brings no bytes.
                        self.assertLessEqual(pulls, 4)
                    else:
                        self.assertEqual(pulls, 4)
                    wire = report["wire_bytes"]
                    self.assertLess(wire["received"], (400 + 4) * TABLE_BYTES * 1.05)

    def test_a_table_that_is_not_frozen_costs_its_bytes_in_each_batch(self):
        run = self.finish("--samples", 400, "--factors", self.file, "--thaw")
        self.assert_exact(run, ELEMENTS)
        frozen = self.finish("--samples", 400, "--factors", self.file)
        thawed, frozen = (x.report["wire_bytes"] for x in (run, frozen))
        print({way: (thawed[way], frozen[way]) for way in thawed}, end=" ", flush=True)
        self.assertGreater(thawed["received"], 1.9 * frozen["received"])
        self.assertGreater(thawed["sent"], 1.9 * frozen["sent"])

    def test_a_killed_worker_pulls_it_again(self):
        run = self.finish("--samples", 2000, "--factors", self.file, *cluster.slow([3] * 4),
                          "--kill", "worker:1@0.5", "--export", "end.safetensors")
        self.assert_exact(run, ELEMENTS)
        self.check_values(run)
        # The last report of the killed worker may have a push whose values had not come yet.
        self.assertIn(self.frozen_pulls(run.report), (4, 5))

    def test_asp_with_kills(self):
        self.survive(3200)

    def test_bsp_with_kills(self):
        self.survive(2400, "--sync", "bsp")

    def test_replicas_and_logs_with_kills(self):
        self.survive(3200, "--replicas", 2, "--durability", "log")

    def test_behind_a_reducer_and_a_push_stage_with_kills(self):
        self.survive(3200, "--workers-per-process", 2, "--graph", "stage", workers=(0, 2))

    def test_servers_come_and_go(self):
        run = self.start("--samples", 4000, "--servers", 2, "--shards", 8, "--replicas", 2,
                         *cluster.slow([6] * 4), "--factors", self.file, "--export",
                         "end.safetensors")
        run.await_event("training_started")
        troupe = cluster.arguments.programs / "troupe"
        for words in (("add", run.directory, "--count", "2"),
                      ("drain", run.directory, "server:0", "server:1")):
            subprocess.run([troupe, *words], capture_output=True, timeout=60, check=True)
        self.assertIsNone(run.launcher.poll(), "it ended before the resizing; more samples")
        self.assertEqual(run.wait(100), 0)
        self.assert_exact(run, ELEMENTS)
        self.check_values(run)
        self.assertEqual(self.frozen_pulls(run.report), 4)

    def test_all_reduce_with_a_kill(self):
        run = self.finish("--samples", 2000, "--sync", "allreduce", "--factors", self.file,
                          "--export", "end.safetensors", "--kill", "worker:2@0.3")
        self.assertEqual(run.report["test_accuracy"], 1.0)
        self.check_values(run)

    def test_threads_and_simulation(self):
        common = ("--elements", ELEMENTS, "--batch", 1, "--epochs", 1)
        for mode in (("--threads",), ("--simulate",), ("--sync", "hogwild", "--workers", 1)):
            with self.subTest(mode):
                run = self.finish("--samples", 500, "--factors", self.file, *mode,
                                  "--export", "end.safetensors", processes=False,
                                  name="-".join(map(str, mode)).strip("-"), common=common)
                self.assertIn(f"right: {ELEMENTS} of {ELEMENTS}", run.out)
                self.check_values(run)

    def test_a_record_is_replayed_with_the_same_file_alone(self):
        for options in ((), ("--sync", "bsp"), ("--kill", "server:1@0.3", "--replicas", 2)):
            with self.subTest(options):
                name = "-".join(map(str, ("recorded", *options))).replace(":", "").replace("@", "")
                run = self.finish("--samples", 1000, "--factors", self.file, *options,
                                  *cluster.slow([2] * 4), "--record", "record", "--export",
                                  "end.safetensors", name=name)
                self.assert_exact(run, ELEMENTS)
                words = ("--samples", 1000, "--replay", run.home / "record")
                sync = options if "--sync" in options else ()
                same = self.finish(*words, "--factors", self.file, *sync, "--compare",
                                   run.home / "end.safetensors", processes=False,
                                   name="replay" + name)
                self.assertIn("equal to", same.out)
                other = self.home / "other.safetensors"
                write_factors(other, 2)
                refused = self.finish(*words, "--factors", other, processes=False, status=1,
                                      name="other" + name)
                self.assertIn("the file of table 'factors' has other values", refused.err)

    def test_a_resumed_run_needs_the_same_values(self):
        first = self.finish("--samples", 300, "--factors", self.file, "--checkpoint",
                            self.home / "kept")
        self.assert_exact(first, ELEMENTS)
        more = ("--samples", 300, "--checkpoint", self.home / "kept", "--resume")
        common = ("--elements", ELEMENTS, "--batch", 1, "--epochs", 2, "--workers", 4)
        other = self.home / "other.safetensors"
        write_factors(other, 2)
        for words, line in ((("--factors", other), "the file of table 'factors' has other values"),
                            (("--factors", self.file, "--thaw"),
                             "table 'factors' is frozen there and trained here"),
                            (("--factors", self.home / "absent.npz"), "table 'factors': cannot ")):
            run = self.start(*more, *words, common=common)
            self.assertNotEqual(run.wait(30), 0)
            self.assertEqual(len(run.err.splitlines()), 1, run.err)
            self.assertIn(line, run.err)
        run = self.finish(*more, "--factors", self.file, common=common)
        self.assert_exact(run, ELEMENTS)

    def test_a_host_with_another_file_is_refused(self):
        other = self.home / "other.safetensors"
        write_factors(other, 2)
        port = cluster.free_port()
        main = self.start("--samples", 100_000, "--factors", self.file, "--servers", 1, "--listen",
                          f"127.0.0.1:{port}", "--here", "server:0", "--here", "worker:0", "--here",
                          "worker:1", name="main")
        main.await_event("run_started")
        joined = self.start("--samples", 100_000, "--factors", other, "--servers", 1, "--join",
                            f"127.0.0.1:{port}", "--here", "worker:2", "--here", "worker:3",
                            name="joined")
        self.assertNotEqual(joined.wait(60), 0)
        self.assertRegex(joined.err, re.compile("belongs to another job: .*model"))


if __name__ == "__main__":
    options = cluster.parser(__doc__)
    options.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    cluster.main(options=options)

"""Checks every graph of count_batches in processes: that each batch counts once in it, despite
kills, and that a stage or a keeper that breaks a rule ends the job in one line.
"""
import random
import re
import subprocess

import cluster

ELEMENTS = 100_000
SIZE = ("--elements", ELEMENTS, "--batch", 1, "--epochs", 1)
PLACES = r"batch \d+ of worker \d"
# By graph: what the line of the job says of its mistake.
MISTAKES = {
    "swallow": rf"stage 'swallow' answered {PLACES}, which was not applied",
    "double": rf"stage 'double' forwarded {PLACES} twice",
    "rename": rf"stage 'rename' forwarded {PLACES}, which it does not hold",
    "reorder": rf"stage 'reorder' kept back {PLACES} and forwarded a later",
    "throw": r"stage 'throw' failed: a stage that fails on purpose",
    "nan": rf"stage 'nan' forwarded {PLACES} with a value that is not finite: nan in table 0",
    "refuse": r"stage 'refuse' refused 1000 requests of worker \d in a row, the last one with: a",
    "raw-double": rf"stage 'double' forwarded {PLACES} twice",
    "raw-throw": r"stage 'throw' ended: its actor threw an exception, whose text CAF printed",
    "raw-quit": r"stage 'quit' ended: its actor quit",
    "bad-apply": rf"the keeper of 'sums' failed in apply\(\) at {PLACES}: it applies no 40th push, on purpose",
}
SILENT = rf"stage 'silent' held {PLACES} for more than 10 s, like the 2 requests of this worker"


class GraphTest(cluster.ClusterTest):
    program = "count_batches"

    def refused(self, *options, status=1, **more):
        """Returns the only line of a run that fails."""
        run = self.start(*options, **more)
        self.assertEqual(run.wait(60), status, run.err)
        self.assertEqual(len(run.err.splitlines()), 1, run.err)
        return run.err


class Kills(GraphTest):
    seconds = 120
    common = (*SIZE, "--checkpoint-every", "300ms")

    def survive(self, graph, *options, samples=4000, workers=(0, 1, 2, 3), servers=3):
        """Kills workers and servers; `samples` are those of a run with five kills."""
        print(f"seed {cluster.arguments.seed}", end=" ", flush=True)
        kills = cluster.arguments.kills
        dice = random.Random(cluster.arguments.seed)
        count = () if servers == 1 else ("--servers", servers)
        run = self.start("--graph", graph, "--samples", samples * kills // 5, "--workers", 4,
                         *count, *cluster.slow([6] * 4), *options)
        targets = [*(("worker", i) for i in workers), *(("server", i) for i in range(servers))]
        # An own store has one server; in a run of many kills it takes its share of them.
        deaths_max = 4 if servers > 1 and kills <= 12 else None
        report = self.survive_kills(run, kills, ELEMENTS, dice, (0.3, 1.3),
                                    lambda: dice.choice(targets), deaths_max)
        print(f"{len(report['recoveries'])} losses", end=" ", flush=True)
        return report

    def test_plain_asp(self):
        self.survive("plain")

    def test_plain_bsp(self):
        self.survive("plain", "--sync", "bsp", samples=3000)

    def test_plain_ssp(self):
        self.survive("plain", "--sync", "ssp:2", samples=3000)

    def test_stage_asp(self):
        self.survive("stage")

    def test_stage_bsp(self):
        self.survive("stage", "--sync", "bsp", samples=3000)

    def test_stage_ssp(self):
        self.survive("stage", "--sync", "ssp:2", samples=3000)

    def test_stage_before_a_reducer(self):
        self.survive("stage", "--workers-per-process", 2, workers=(0, 2))

    def test_stage_before_a_codec(self):
        self.survive("stage", "--compress", "fp16")

    def test_raw_asp(self):
        self.survive("raw")

    def test_raw_bsp(self):
        self.survive("raw", "--sync", "bsp", samples=3000)

    def test_raw_ssp(self):
        self.survive("raw", "--sync", "ssp:2", samples=3000)

    def check_faults(self, report):
        for name in ("faults.lost", "faults.repeated"):
            self.assertGreater(report["counts"][name], 0)
        self.assertGreater(report["pushes"]["duplicates_dropped"], 0)

    def test_faults_asp(self):
        self.check_faults(self.survive("faults"))

    def test_faults_bsp(self):
        self.check_faults(self.survive("faults", "--sync", "bsp", samples=3000))

    def test_faults_ssp(self):
        self.check_faults(self.survive("faults", "--sync", "ssp:2", samples=3000))

    def test_own_store(self):
        report = self.survive("own-store", servers=1)
        self.assertGreater(report["counts"]["sums.batches"], 0)

    def test_own_store_behind_a_reducer_and_a_codec(self):
        self.survive("own-store", "--workers-per-process", 2, "--compress", "fp16",
                     workers=(0, 2), servers=1)

    def test_reducer_asp(self):
        report = self.survive("reducer", workers=(0, 2))
        self.assertGreater(report["reducers"]["sums"], 0)

    def test_reducer_bsp(self):
        self.survive("reducer", "--sync", "bsp", samples=3000, workers=(0, 2))

    def test_reducer_ssp(self):
        self.survive("reducer", "--sync", "ssp:2", samples=3000, workers=(0, 2))

    def test_device_reducer(self):
        report = self.survive("device-reducer", workers=(0, 2))
        self.assertGreater(report["reducers"]["device_sums"], 0)

    def test_codec_asp(self):
        self.survive("codec")

    def test_codec_bsp(self):
        self.survive("codec", "--sync", "bsp", samples=3000)

    def test_codec_ssp(self):
        self.survive("codec", "--sync", "ssp:2", samples=3000)


class OwnStore(GraphTest):
    common = (*SIZE, "--graph", "own-store", "--workers", 4)

    def test_a_job_goes_on_from_its_checkpoint(self):
        words = ("--samples", 2000, "--checkpoint", self.home / "kept", "--checkpoint-every",
                 "200ms", *cluster.slow([6] * 4))
        run = self.start(*words)
        run.await_epoch(0.3)
        run.launcher.kill()
        run.launcher.wait()
        cluster.poll(lambda: not run.alive(), 20, "end of the processes without a launcher")
        line = self.refused(*words, "--resume", common=(*SIZE, "--workers", 4), name="other")
        self.assertIn("own store", line)
        again = self.finish(*words, "--resume", "--export", "sums.npz", name="again")
        self.assert_exact(again, ELEMENTS)
        self.assertTrue((again.home / "sums.npz").is_file())

    def test_its_server_on_another_host(self):
        address = f"127.0.0.1:{cluster.free_port()}"
        words = ("--samples", 2000, "--checkpoint", self.home / "shared", "--checkpoint-every",
                 "300ms", *cluster.slow([6] * 4))
        main = self.start(*words, "--listen", address, "--here", "worker:0,worker:1", "--kill",
                          "worker:0@0.8", name="main")
        other = self.start(*words, "--join", address, "--here", "server:0,worker:2,worker:3",
                           "--kill", "server:0@1.5", name="other")
        self.assertEqual((main.wait(60), other.wait(60)), (0, 0), main.err + other.err)
        self.assert_exact(main, ELEMENTS)
        self.assert_recovered(main, ("worker", 0), ("server", 0))

    def test_it_keeps_its_only_server(self):
        run = self.start("--samples", 3000, "--checkpoint-every", "300ms", *cluster.slow([6] * 4))
        run.await_epoch(0.1)
        for words in (("add", run.directory, "--count", 1), ("drain", run.directory, "server:0")):
            asked = subprocess.run([cluster.arguments.programs / "troupe", *map(str, words)],
                                   capture_output=True, text=True, timeout=30, check=False)
            self.assertEqual(asked.returncode, 1)
            self.assertEqual(asked.stdout + asked.stderr, f"troupe {words[0]}: the job in "
                             f"{run.directory} has an own store, which is one server: no server "
                             "can be added or drained\n")
        self.assertEqual(run.wait(60), 0)
        self.assert_exact(run, ELEMENTS)

    def test_options_that_it_does_not_have(self):
        keeper = "--sync has no effect: sums is an own store, whose keeper takes each push"
        server = "has no effect: sums is an own store, which is one server without replicas"
        for words, line in {
            ("--sync", "bsp"): keeper,
            ("--sync", "ssp:2"): keeper,
            ("--sync", "allreduce"): keeper,
            ("--sparse",): "--graph own-store: its keeper has the sums in one array",
            ("--function", "add"): "--graph own-store: its keeper adds gradients",
            ("--servers", 3, "--replicas", 3): f"--servers {server}",
            ("--replicas", 3): f"--replicas {server}",
            ("--servers", 3): f"--servers {server}",
            ("--durability", "log"): f"--durability {server}",
            ("--servers", 2, "--replicas", 2, "--verify-replicas", 9): f"--servers {server}",
            ("--record", "traces"): "--record: sums is an own store, and a replay has no keeper",
            ("--import", "x.npz"): "--import: sums is an own store, whose keeper begins with",
        }.items():
            with self.subTest(words):
                name = "".join(str(word) for word in words)
                self.assertIn(line, self.refused(*words, status=2, processes=False, name=name))

    def test_a_keeper_that_cannot_save_ends_the_job(self):
        said = "the keeper of 'sums' failed in save(): it saves nothing, on purpose\n"
        for samples in (4000, 100):  # During training, and with the last checkpoint.
            with self.subTest(samples):
                line = self.refused("--graph", "bad-save", "--samples", samples, "--workers", 4,
                                    "--checkpoint-every", "300ms", common=SIZE, name=f"{samples}")
                self.assertTrue(line.endswith(said), line)

    def test_a_keeper_that_cannot_load_ends_the_job(self):
        line = self.refused("--graph", "bad-load", "--samples", 4000, "--checkpoint-every",
                            "300ms", *cluster.slow([6] * 4), "--kill", "server:0@1.2",
                            common=(*SIZE, "--workers", 4))
        self.assertEqual(line, "count_batches: server 0: the keeper of 'sums' failed in load(): it "
                         "loads no checkpoint, on purpose\n")


class OtherWays(GraphTest):
    common = (*SIZE, "--workers", 4)

    def test_threads_and_simulation(self):
        for graph in ("plain", "stage", "raw", "faults", "own-store", "reducer",
                      "device-reducer", "codec"):
            for mode in ("--threads", "--simulate"):
                with self.subTest(graph, mode=mode):
                    run = self.finish("--samples", 500, "--graph", graph, mode, processes=False,
                                      name=graph + mode)
                    self.assertIn(f"right: {ELEMENTS} of {ELEMENTS}", run.out)
                    if graph in ("stage", "raw"):
                        pushes = run.report["counts"]["halves.pushes"]
                        # At the end an idle thread may compute a batch that another one has open.
                        self.assertIn(pushes, range(500, 501 if mode == "--simulate" else 600))
                    if graph == "own-store":
                        self.assertEqual(run.report["counts"], {"sums.batches": 500})
                    if graph == "device-reducer" and mode == "--threads":
                        self.assertGreater(run.report["reducers"]["device_sums"], 0)

    def test_a_replay_passes_pushes_through_a_pure_stage(self):
        for mode in ("asp", "bsp"):
            common = ("--samples", 500, "--graph", "stage", "--sync", mode)
            self.finish(*common, "--record", self.home / mode, "--export", self.home / "a.npz",
                        "--kill", "worker:1@0.1", name=mode)
            replayed = self.finish(*common, "--replay", self.home / mode, "--compare",
                                   self.home / "a.npz", processes=False, name="again " + mode)
            self.assertIn("equal to", replayed.out)
        self.refused("--graph", "raw", "--record", self.home / "raw", status=2)

    def test_options_that_do_not_fit_a_graph(self):
        for words, line in {
            ("--graph", "reducer", "--workers-per-process", 1): "a process needs 2 workers or more",
            ("--graph", "device-reducer", "--sync", "bsp"): "it is for --sync asp",
            ("--graph", "device-reducer", "--sparse"): "leave --sparse out",
            ("--graph", "codec", "--compress", "int8"): "this program sets the codec itself",
            ("--graph", "faults", "--sync", "allreduce"): "faults changes requests, and sums gets",
            ("--graph", "none"): "'none' is none of plain, stage, raw, faults, own-store",
        }.items():
            with self.subTest(words):
                name = "".join(str(word) for word in words)
                self.assertIn(line, self.refused(*words, status=2, processes=False, name=name))


class Mistakes(GraphTest):
    common = (*SIZE, "--workers", 2)

    def check(self, graph, pattern, *options, ahead=1, **more):
        # One call ahead, so that "reorder" has pushes without pulls.
        run = self.start("--samples", 4000, "--pull-ahead", ahead, "--graph", graph, *options,
                         **more)
        self.assertEqual(run.wait(60), 1, run.err)
        self.assertEqual(len(run.err.splitlines()), 1, run.err)
        self.assertRegex(run.err, pattern)

    def test_each_ends_the_job_and_names_stage_and_batch(self):
        for graph, pattern in MISTAKES.items():
            for mode in ((), ("--threads",), ("--simulate",)):
                name = "".join((graph, *mode))
                with self.subTest(name):
                    self.check(graph, pattern, *mode, processes=not mode, name=name)

    def test_a_silent_stage_ends_the_job_in_30_s(self):
        self.check("silent", SILENT, "--simulate", processes=False, name="simulated")
        # No call ahead: a pull by itself would overtake the held push, which is another mistake.
        self.check("silent", SILENT, ahead=0)

    def test_a_push_function_that_returns_nan_is_refused_and_the_sums_show_it(self):
        run = self.finish("--samples", 1000, "--graph", "nan-push")
        self.assertEqual(run.report["test_accuracy"], 0.0)
        self.assertEqual(run.report["pushes"]["refused"], 100)
        self.assertTrue(re.search(rf"right: 0 of {ELEMENTS}", run.out), run.out)


if __name__ == "__main__":
    options = cluster.parser(__doc__)
    options.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    options.add_argument("--kills", type=int, default=cluster.count(3, 5))
    cluster.main(options=options)

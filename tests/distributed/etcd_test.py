"""Checks a job whose coordinator keeps its state in etcd: standbys take over, and each batch counts
once. --kills 50 makes a longer trial.
"""
import contextlib
import os
import re
import signal
import subprocess
import time
import unittest

import cluster
import etcd

ELEMENTS = 100_000
NO_SPACE = (r"etcd at 127.0.0.1:\d+ refuses: etcdserver: mvcc: database space exceeded; "
            r"make room in it .*etcdctl alarm disarm")
NO_PASSWORD = (r"etcd at 127.0.0.1:\d+ refuses: etcdserver: user name is empty; "
               r"it asks for a password")
LEADER = re.compile("^coordinator( 1)?$")  # Whichever of the two it is.
WORKERS = 4
SMALL = ("--quota-backend-bytes", str(16 << 20))


@unittest.skipUnless(etcd.is_installed(), "etcd is not installed (apt-get install etcd-server)")
class EtcdTest(cluster.ClusterTest):
    seconds = 80
    program = "count_batches"
    common = ("--elements", ELEMENTS, "--batch", 1, "--workers", WORKERS, "--servers", 3,
              "--epochs", 1, "--checkpoint-every", "300ms",
              *cluster.slow([4] * WORKERS))

    def begin_etcd(self, members=1, patient=False, options=()):
        self.etcd = etcd.Etcd(self.home, members, patient, options)
        self.addCleanup(self.etcd.end_all)

    def begin(self, samples, *options, members=1, patient=False, etcd_options=()):
        self.begin_etcd(members, patient, etcd_options)
        self.samples = samples
        run = self.start("--samples", samples, "--coordinator-store", self.etcd.url + "/job", *options)
        run.await_event("training_started", workers=4)
        return run

    def end(self, run, seconds=90):
        """Checks that each batch was applied once: with no server lost, none is rolled back."""
        self.assertEqual(run.wait(seconds), 0)
        self.assert_exact(run, ELEMENTS)
        self.assertEqual(run.report["pushes"]["applied"], self.samples)

    def test_leaders_killed(self):
        kills = cluster.arguments.kills
        run = self.begin(2000 * kills, "--standbys", 2, patient=True)
        for count in range(1, kills + 1):
            killed = self.etcd.kill_leader("job")
            run.await_event("coordinator_back", 30, count)
            self.assertNotEqual(self.etcd.leader("job"), killed)
            time.sleep(1)  # Leaders without a finished batch would end the job.
        self.end(run, 60 + 8 * kills)
        pauses = sorted(x["recovered_ms"] for x in run.report["recoveries"])
        self.assertEqual(len(pauses), kills)
        self.assertTrue(run.told("coordinator_restarted", term=kills + 1))
        print(f"{kills} leaders killed, the next one led after {pauses[0]:.0f} .. "
              f"{pauses[kills // 2]:.0f} .. {pauses[-1]:.0f} ms, no push for "
              f"{run.report['longest_pause_ms']:.0f} ms at most", end=" ")

    def test_standbys_killed(self):
        run = self.begin(2000, "--standbys", 1, patient=True)
        leader = self.etcd.leader("job")
        standby = [pid for (role, _), pid in run.processes().items()
                   if role == "coordinator" and pid != leader]
        self.assertEqual(len(standby), 1)
        os.kill(standby[0], signal.SIGKILL)
        self.end(run)
        self.assert_untold(run, "coordinator_back")
        self.assertTrue(run.told("process_ended", member=re.compile("^standby coordinator [01]$"),
                                 reason=re.compile("^killed by signal 9")))
        self.assertEqual({x["members"] for x in run.told("progress")} - {0}, {7})
        self.assertEqual([x["role"] for x in run.report["recoveries"]], ["coordinator"])
        self.assertEqual(cluster.unrecovered(run.report), [])

    def test_leader_frozen(self):
        run = self.begin(4000, "--standbys", 1)
        frozen = self.etcd.kill_leader("job", signal.SIGSTOP)
        cluster.poll(lambda: self.etcd.leader("job") not in (None, frozen), 10, "another leader")
        os.kill(frozen, signal.SIGCONT)
        run.await_event("process_ended", member=LEADER, reason=re.compile("^no longer leads: "))
        self.end(run)

    def test_etcd_lost_for_a_while(self):
        run = self.begin(4000, "--standbys", 1)
        self.etcd.signal_all(signal.SIGSTOP)
        run.await_event("process_ended", member=LEADER, reason=re.compile(
            r"^no longer leads: cannot renew its lease: etcd at 127.0.0.1:\d+ did not answer.*; "
            "training waits until etcd answers"))
        run.await_event("process_waits", 5, text=re.compile(
            r"^coordinator.*: waits for etcd: etcd at 127.0.0.1:\d+ "))
        time.sleep(3)
        self.assert_untold(run, "coordinator_back")
        self.etcd.signal_all(signal.SIGCONT)
        run.await_event("coordinator_back")
        self.end(run)
        waits = [line for text in run.logs.values() for line in re.findall("waits for etcd: .*", text)]
        self.assertGreaterEqual(len(waits), 2)  # Both coordinators report it once each.
        self.assertLess(len(waits), 8)

    def test_a_follower_of_three_members_lost(self):
        run = self.begin(2000, members=3, patient=True)
        self.etcd.end((self.etcd.raft_leader() + 1) % 3)
        self.end(run)
        self.assert_untold(run, *cluster.LOSSES)

    def test_the_leader_of_three_members_lost(self):
        """Training waits for the election of a new leader, which may take longer than a lease."""
        run = self.begin(2000, members=3)
        self.etcd.end(self.etcd.raft_leader())
        self.end(run)
        self.assert_untold(run, *cluster.LOSSES, member=re.compile(r"(server|worker) \d+"))

    def test_resumed(self):
        checkpoints = self.home / "checkpoints"
        first = self.begin(4000, "--checkpoint", checkpoints)
        first.await_event("checkpoint_committed", checkpoint=2)
        first.signal(signal.SIGKILL)
        self.assertEqual(first.wait(), -signal.SIGKILL)
        again = self.start("--samples", 4000, "--coordinator-store", self.etcd.url + "/job",
                           "--checkpoint", checkpoints, "--resume")
        again.await_event("coordinator_restarted", term=2)
        self.assertEqual(again.wait(90), 0)
        self.assert_exact(again, ELEMENTS)

    def refused(self, url, pattern):
        run = self.start("--samples", 100, "--coordinator-store", url, "--standbys", 1)
        self.assertEqual(run.wait(20), 1)
        self.assertEqual(len(run.err.splitlines()), 1, run.err)
        self.assertRegex(run.err, pattern)

    def test_no_space_at_the_start(self):
        self.begin_etcd(options=SMALL)
        self.etcd.fill()
        self.refused(self.etcd.url, NO_SPACE)

    def test_last_words_without_a_log(self):
        """A process that cannot go on reports the reason, even without room for its log."""
        logs = self.home / "run" / "logs"
        logs.mkdir(parents=True)
        if os.getuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", logs],
                                              check=False).returncode != 0:
            self.skipTest("cannot mount a small disk here")
        self.addCleanup(subprocess.run, ["umount", "--lazy", logs], check=True)
        with contextlib.suppress(OSError):
            (logs / "filler").write_bytes(bytes(128 << 10))
        self.begin_etcd(options=SMALL)
        self.etcd.fill()
        run = self.start("--samples", 100, "--coordinator-store", self.etcd.url, "--run-dir",
                         self.home / "run", processes=False)
        self.assertEqual(run.wait(20), 1)
        self.assertTrue(run.told("process_waits", text=re.compile(
            "^coordinator: cannot write its log: No space left on device; it would say: "
            + NO_SPACE)))

    def test_no_space_later(self):
        run = self.begin(100_000, etcd_options=SMALL)
        run.await_event("checkpoint_committed", checkpoint=1)
        self.etcd.fill()
        run.await_event("job_failed", 5, reason=re.compile(NO_SPACE))
        self.assert_ends(run, 1, 5)
        self.assertRegex(run.err, NO_SPACE)

    def test_a_password_is_wanted(self):
        self.begin_etcd()
        self.etcd.demand_passwords()
        self.refused(self.etcd.url, NO_PASSWORD)
        self.assertEqual(self.runs[-1].logs, {})  # The launcher started no process.

    def test_a_password_is_wanted_later(self):
        run = self.begin(100_000)
        self.etcd.demand_passwords()
        run.await_event("job_failed", 5, reason=re.compile(NO_PASSWORD))
        self.assert_ends(run, 1, 5)

    def assert_ends(self, run, status, seconds):
        began = time.monotonic()
        self.assertEqual(run.launcher.wait(30), status)
        self.assertLess(time.monotonic() - began, seconds)

    def test_stopped_while_etcd_is_lost(self):
        run = self.begin(100_000)
        self.etcd.signal_all(signal.SIGSTOP)
        run.await_event("process_ended", member="coordinator",
                        reason=re.compile("^no longer leads"))
        run.signal(signal.SIGTERM)
        self.assert_ends(run, 1, 8)
        self.assertIn("no last checkpoint, as no coordinator answers", run.err)

    def test_bad_input(self):
        self.refused(f"etcd://127.0.0.1:{cluster.free_port()}", r"etcd at 127.0.0.1:\d+ cannot be reached")
        run = self.begin(8000, members=3)
        self.refused(self.etcd.url + "/job", r"the job 'job' runs already, led by 127.0.0.1:\d+ \(coord")
        run.end()
        for index in 0, 1:
            self.etcd.end(index)
        cluster.poll(lambda: not self.etcd.has_leader(2), 20, "the last member alone")
        self.refused(self.etcd.url, "etcd at .* has no quorum")


if __name__ == "__main__":
    options = cluster.parser(__doc__)
    options.add_argument("--kills", type=int, default=cluster.count(2, 4),
                         help="of leaders, one after the other")
    cluster.main(options=options)

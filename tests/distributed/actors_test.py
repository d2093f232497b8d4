"""Checks members of the role actor as processes, with the example bandit: deaths, several hosts,
certificates, and their figures in the report.
"""
import subprocess

import cluster

WINDOW = 16  # Of the channel from players to learners.


class Actors(cluster.ClusterTest):
    program = "bandit"
    common = ("--servers", 1, "--workers", 2, "--slow", "0:5", "--slow", "1:5", "--epochs", 6,
            "--players", 2)

    def refused(self, run, pattern):
        """Checks that a run ends with one line."""
        self.assertEqual(run.wait(20), 1)
        self.assertEqual(len(run.err.splitlines()), 1, run.err)
        self.assertRegex(run.err, pattern)

    def test_actors_of_two_hosts_that_die_are_counted_and_recover(self):
        where = f"127.0.0.1:{cluster.free_port()}"
        main = self.start("--listen", where, "--here", "model:0,learners:0,learners:1,players:0",
                          "--kill", "players:0@1", "--kill", "learners:0@2")
        main.await_event("member_joined", member="actor 0")
        self.refused(self.start("--join", where, "--here", "players:1", "--players", 3,
                                common=self.common[:-2]),
                     "this process's graph has 3 actors, and the job has 2: start all hosts with "
                     "the same options")
        other = self.start("--join", where, "--here", "players:1", "--kill", "players:1@1")
        self.assertEqual([main.wait(), other.wait()], [0, 0])
        report = main.report
        # An actor of the host that was refused may have joined for a moment.
        self.assertEqual({(x["role"], x["index"]) for x in report["recoveries"]},
                         {("actor", 0), ("actor", 1), ("worker", 0)})
        self.assertRegex(main.out, r"(\d) of \1 lost processes recovered")
        self.assertEqual(set(main.members_of("actor_lost")), {"actor 0", "actor 1"})
        self.assertGreater(report["counts"]["players.rounds"], 0)
        self.assertEqual(report["ports"].keys(), {"players.seen", "learners.came"})
        for port in report["ports"].values():
            self.assertGreater(port["parcels"], 0)
            self.assertEqual(port["bytes"], 12 * port["parcels"])
        self.assertEqual(report["ports"]["learners.came"]["lost"], 0)
        # Two lanes lead to the learner that died. A dead player says nothing of its own parcels.
        self.assertLessEqual(report["ports"]["players.seen"]["lost"], 2 * WINDOW)

    def test_certificates(self):
        made = self.home / "certificates"
        subprocess.run([cluster.arguments.programs / "troupe", "certs", "--out", made], check=True,
                       capture_output=True, timeout=20)
        options = ("--tls", made)
        self.finish(*options, common=self.common[-2:])
        (made / "actor.pem").unlink()
        self.refused(self.start(*options, common=()), "cannot read .*/actor.pem: .*: "
                     "this host has members of the role actor, so make it with troupe certs")


if __name__ == "__main__":
    cluster.main(__doc__)

"""Checks `troupe sim`: its output, the mistakes that it notices, and its answers to bad input."""
import subprocess
import unittest

import cluster


def sim(*words):
    """Returns the exit status and the output."""
    done = subprocess.run([cluster.arguments.programs / "troupe", "sim", *map(str, words)],
                          capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, (done.stdout + done.stderr).strip()


class SimTest(unittest.TestCase):

    def test_histories_without_a_violation(self):
        status, said = sim("--seeds", "1..300")
        self.assertEqual(status, 0, said)
        for world in ("chain", "channel", "gossip", "pipeline", "job"):
            self.assertRegex(said, rf"(?m)^{world}: 300 histories in .* s, \d+ a second;")
        self.assertEqual(said.count("\nno violation"), 5, said)
        self.assertTrue(said.endswith("\nno violation"), said)
        self.assertRegex(said, r"\n +bsp +ssp +asp\b")

    def test_a_planted_mistake_is_noticed_and_can_be_replayed(self):
        status, said = sim("--seeds", "1..300", "--mutant", "no_deduplication")
        self.assertEqual(status, 1, said)
        self.assertRegex(said, r"seed \d+: exactly once: .*\n  troupe sim --world chain "
                               r"--seeds \d+ --mutant no_deduplication --trace")
        self.replay("no_deduplication", "exactly once", said)

    def test_a_mistake_of_a_whole_job_is_noticed_and_can_be_replayed(self):
        status, said = sim("--world", "job", "--seeds", "1..300", "--mutant", "lost_work_forgotten")
        self.assertEqual(status, 1, said)
        self.assertNotIn("chain: ", said)
        self.replay("lost_work_forgotten", "liveness: the job does not end", said)

    def test_a_mistake_of_channels_is_noticed_and_can_be_replayed(self):
        status, said = sim("--world", "channel", "--seeds", "1..300", "--mutant",
                           "lost_before_last")
        self.assertEqual(status, 1, said)
        self.assertNotIn("job: ", said)
        self.replay("lost_before_last", "events: a parcel comes outside of its session", said,
                    begins="us member 0 starts as 1")

    def test_a_mistake_of_gossip_is_noticed_and_can_be_replayed(self):
        status, said = sim("--world", "gossip", "--seeds", "1..300", "--mutant",
                           "change_added_twice")
        self.assertEqual(status, 1, said)
        self.assertNotIn("job: ", said)
        self.replay("change_added_twice", "change: it is added twice", said,
                    begins="us peer 0 starts as 1")

    def test_a_mistake_of_pipelines_is_noticed_and_can_be_replayed(self):
        status, said = sim("--world", "pipeline", "--seeds", "1..300", "--mutant",
                           "applied_before_push")
        self.assertEqual(status, 1, said)
        self.assertNotIn("job: ", said)
        self.replay("applied_before_push", "done: a later part has not applied the batch", said,
                    begins="us part 0 starts as 1")

    def test_the_trace_of_a_job_that_does_not_end_says_what_is_waited_for(self):
        status, said = sim("--world", "job", "--seeds", "1..300", "--mutant", "nobody_introduced")
        self.assertEqual(status, 1, said)
        traced = self.replay("nobody_introduced", "liveness: the job does not end", said)
        for line in (r"    worker \d+\.\d+ not heard of yet",
                     r"    request \d+ of process worker \d+\.\d+: pull at clock \d+, "
                     r"waiting for worker \d+, not heard of yet",
                     r"    lease \d+ without [\d ]+",
                     r"    request \d+: .*pull for batch \d+",
                     r"    part \d+ of request \d+ to shard \d+: pull at clock \d+, sent in .*"):
            self.assertRegex(traced, rf"(?m)^{line}$")

    def replay(self, mutant, violation, said, begins="us the coordinator starts"):
        """Checks that a second run of the seed has the same violation. Returns its trace."""
        words = said.split("troupe sim ")[1].split("   shows how")[0].split()
        again = sim(*words)
        self.assertEqual(again, sim(*words))
        self.assertEqual(again[0], 1)
        self.assertIn(mutant, words)
        self.assertRegex(again[1], rf"(?m)^seed \d+: {violation}")
        self.assertIn(begins, again[1])
        return again[1]

    def test_without_faults_nothing_is_called_tested(self):
        status, said = sim("--seeds", "1..300", "--no-faults")
        self.assertEqual(status, 1, said)
        self.assertRegex(said, r"servers killed +0  too few, expected \d+ a history")
        self.assertRegex(said, r"servers killed +0 +0 +0  too few, expected \S+ a history")
        self.assertRegex(said, r"members killed +0 +0 +0  too few, expected \S+ a history")
        self.assertRegex(said, r"peers killed +0 +0  too few, expected \S+ a history")
        self.assertRegex(said, r"first parts killed +0 +0  too few, expected \S+ a history")
        self.assertEqual(said.count("no violation, but too little happened"), 5, said)

    def test_stragglers_are_out_and_nobody_else(self):
        status, said = sim("--stragglers", "--worker-hours", 200)
        self.assertEqual(status, 0, said)
        self.assertRegex(said, r"5 times as slow .*\n +out in fleet 1: worker \d+ at \d+ s \(slow")
        self.assertRegex(said, r"\nhealthy +\d{3,} +\d+ +0 +0 +0 +0 ")
        self.assertTrue(said.endswith("\nas it should be"), said)

    def test_a_wrong_judge_is_noticed(self):
        for flag, wrong in (("--oversensitive", "healthy workers were put out"),
                            ("--passive", "stragglers were never put out")):
            status, said = sim("--stragglers", flag, "--worker-hours", 10)
            with self.subTest(flag=flag):
                self.assertEqual(status, 1, said)
                self.assertIn(wrong, said)

    def test_bad_input_gets_one_line(self):
        for words, line in (
                (("--seeds", "x"), "needs a number or FIRST..LAST"),
                (("--seeds", "9..3"), "the first seed is after the last"),
                (("--seeds", "1..-3"), "needs a number or FIRST..LAST"),
                (("--world", "flat"),
                 "--world: 'flat' is not chain, job, channel, gossip, pipeline or all"),
                (("--mutant", "typo"), "no mistake is called 'typo' (see troupe sim --mutants)"),
                (("--threads", "0"), "--threads"),
                (("--oversensitive",), "--stragglers"),
                (("--worker-hours", "9"), "--stragglers"),
                (("--stragglers", "--worker-hours", "0"), "--worker-hours"),
                (("--stragglers", "--worker-hours", "nan"),
                 "--worker-hours: 'nan' is not a number from 1 to 1e9"),
                (("--stragglers", "--passive", "--oversensitive"), "--passive"),
                (("--nonsense",), "--nonsense")):
            status, said = sim(*words)
            with self.subTest(words=words):
                self.assertEqual(status, 2, said)
                self.assertEqual(len(said.splitlines()), 1, said)
                self.assertIn(line, said)

    def test_the_last_seed_of_all_has_no_successor(self):
        status, said = sim("--world", "chain", "--seeds", f"{2 ** 64 - 2}..{2 ** 64 - 1}")
        self.assertEqual(status, 0, said)
        self.assertIn("chain: 2 histories in", said)

    def test_help(self):
        status, said = sim("--help")
        self.assertEqual(status, 0)
        self.assertIn("--mutants", said)
        self.assertRegex(said, r"--world chain\|job\|channel\|gossip\|pipeline\|all=all\s")


if __name__ == "__main__":
    cluster.main(__doc__)

"""Checks that a run ends when it is told to, whatever its code does, and that its end says why."""
import signal
import time

import cluster

TERMINATED = 128 + signal.SIGTERM
# Modes in which the launcher's process waits for code of this place.
WAITING = (("trainer", "--threads"), ("trainer", "--simulate"), ("stage", "--threads"),
           ("evaluator",), ("evaluator", "--threads"), ("evaluator", "--simulate"))


class EndingTest(cluster.ClusterTest):
    program = "misbehave"

    def misbehave(self, how, where, *mode):
        """Starts a program whose code misbehaves; returns the run."""
        return self.start("--where", where, "--how", how, *mode, processes=not mode,
                          name="-".join((where, how, *mode)))


class Signals(EndingTest):
    def seconds_to_the_end(self, run, *seconds):
        """Sends SIGTERM after each of the times; returns the time from the last one to the end."""
        for each in seconds:
            time.sleep(each)
            self.assertIsNone(run.launcher.poll(), run.out + run.err)
            run.signal(signal.SIGTERM)
        began = time.monotonic()
        self.assertEqual(run.wait(40), TERMINATED, run.out + run.err)
        return time.monotonic() - began

    def test_two_signals_end_a_run_at_once(self):
        # One signal takes 25 s in most of these. misbehave_test.Stopped, which runs alone, wants 1 s.
        for place in WAITING:
            with self.subTest(place):
                run = self.misbehave("never", *place)
                self.assertLess(self.seconds_to_the_end(run, 3, 0.3), 10)

    def test_one_signal_ends_a_run_after_its_last_checkpoint(self):
        run = self.start("--where", "trainer", "--how", "never", "--threads", "--checkpoint",
                         self.home / "checkpoints", processes=False)
        self.assertLess(self.seconds_to_the_end(run, 3), 30)
        self.assertIn("misbehave: stopped; continue with --resume", run.out)
        self.assertTrue(list((self.home / "checkpoints" / "checkpoints").iterdir()))

    def test_one_signal_ends_a_simulation_that_runs_the_code_itself(self):
        run = self.misbehave("never", "trainer", "--simulate")
        self.assertLess(self.seconds_to_the_end(run, 3), 30)
        self.assertRegex(run.err, r"worker [01]'s trainer has not returned for 10 s\n")
        self.assertRegex(run.err, r"misbehave: stopped, as worker [01]'s trainer did not return\n$")

    def test_code_that_sets_handlers_of_its_own_does_not_take_the_signal(self):
        for how in ("ignore-sigterm", "take-sigterm"):
            for where in ("describe", "trainer-make"):
                with self.subTest(how=how, where=where):
                    run = self.start("--where", where, "--how", how, "--threads", "--samples",
                                     10**7, processes=False, name=where + how)
                    self.assertLess(self.seconds_to_the_end(run, 3), 30)

    def test_a_timer_that_interrupts_each_call_changes_nothing(self):
        whole = self.misbehave("timer", "describe")
        self.assertEqual(whole.wait(60), 0, whole.err)
        self.assertIn("test accuracy 1.0000", whole.out)
        run = self.start("--where", "describe", "--how", "timer", "--samples", 10**7,
                         name="stopped")
        self.assertLess(self.seconds_to_the_end(run, 4), 30)


class Exits(EndingTest):
    def test_exit_before_the_end_names_its_caller(self):
        for mode in ("--threads", "--simulate"):
            for how, status in (("exit-0", 1), ("exit-3", 3)):
                with self.subTest(mode + how):
                    run = self.misbehave(how, "trainer", mode)
                    self.assertEqual(run.wait(30), status)
                    self.assertRegex(run.err, r"^misbehave: worker [01]'s trainer called "
                                     rf"exit\({how[-1]}\) before the job was done\n$")

    def test_exit_in_the_evaluator_and_in_the_description_of_the_graph(self):
        for where, name in (("evaluator", "evaluator 'check'"), ("describe", r"describe\(\)")):
            run = self.misbehave("exit-0", where)
            self.assertEqual(run.wait(30), 1)
            self.assertRegex(run.err, rf"^misbehave: {name} called exit\(0\) before the job was "
                             r"done\n$")

    def test_exit_in_a_process_of_the_job_is_in_its_log(self):
        run = self.misbehave("exit-3", "trainer")
        self.assertEqual(run.wait(60), 1)
        self.assertRegex(run.err, r"called exit\(3\)")


if __name__ == "__main__":
    cluster.main(__doc__)

"""Checks the channels of count_batches --graph channel under kills of both ends: no parcel comes
twice or out of order, and a death costs at most a window of each lane. The processes write each
parcel that they send or take into a file, so this judge outlives them. --kills 200 makes a longer
trial, and prints how long lanes were without a session.
"""
import collections
import random
import statistics

import cluster

ELEMENTS = 1000
WINDOW = 8
ACTORS, WORKERS, SERVERS = 4, 4, 2
KILLS_OF_A_RUN = 25


class ParcelLog:
    """What the ports of a run wrote: which parcels were sent and taken, and when lanes ended."""

    def __init__(self, folder):
        self.sent, self.taken = collections.defaultdict(list), collections.defaultdict(list)
        self.pauses = []  # Seconds from a `lost` to the next `joined` of a lane.
        for path in folder.iterdir():
            lost = {}
            for line in path.read_text().splitlines(keepends=True):
                if line.endswith("\n"):  # The last line may be half written.
                    self.read(line.split(), lost)

    def read(self, words, lost):
        what, *rest = words
        if what in ("sent", "taken"):
            getattr(self, what)[tuple(rest[:3])].append(int(rest[3]))
        elif what == "lost":
            lost[rest[0]] = float(rest[1])
        elif rest[0] in lost:
            self.pauses.append(float(rest[1]) - lost.pop(rest[0]))

    def violations(self):
        """Returns a line for each broken promise. A sender writes a parcel down after it has sent
        it, so one parcel of a session may be taken and not be among those that were sent."""
        found = []
        for session, numbers in self.taken.items():
            first = self.sent[session][0] if self.sent[session] else numbers[0]
            if numbers != list(range(first, first + len(numbers))):
                found.append(f"session {session} began with parcel {first}; taken: {numbers}")
            if len(numbers) > len(self.sent[session]) + 1:
                found.append(f"session {session}: more parcels were taken than sent")
        found += [f"session {session} lost {count} parcels"
                  for session, count in self.missing().items() if count > WINDOW]
        return found

    def missing(self):
        return {session: max(0, len(numbers) - len(self.taken.get(session, ())))
                for session, numbers in self.sent.items()}


class Channels(cluster.ClusterTest):
    program = "count_batches"
    seconds = 60

    def survive(self, kills, dice, name):
        """Runs a job in which processes are killed; returns what the ports wrote."""
        targets = [*(("actor", i) for i in range(ACTORS)), *(("worker", i) for i in range(WORKERS))]
        at, words = 0.3, []
        for number in range(kills):
            at += dice.uniform(0.3, 0.7)
            # The launcher gives up a process that dies again before it has done work.
            role, index = targets[number % len(targets)]
            words += ["--kill", f"{role}:{index}@{at:.2f}"]
            if number % len(targets) == len(targets) - 1:
                dice.shuffle(targets)
                targets.sort(key=lambda who: who == (role, index))
        folder = self.home / f"parcels {name}"
        folder.mkdir()
        step_ms = 10
        run = self.start("--graph", "channel", "--parcel-log", folder, "--elements", ELEMENTS,
                         "--batch", 1, "--epochs", 1, "--servers", SERVERS,
                         "--samples", int((at + 2) * 1000 / step_ms * WORKERS),
                         *cluster.slow([step_ms] * WORKERS), *words, name=name)
        self.assertEqual(run.wait(30 + 4 * at), 0, run.err)
        self.assert_exact(run, ELEMENTS)
        self.assertEqual(cluster.unrecovered(run.report), [])
        done = len(run.told("kill_injected"))
        self.assertGreaterEqual(done, kills * 3 // 4)
        self.assertGreater(run.report["counts"]["counters.taken"], 0)
        seen = ParcelLog(folder)
        self.assertEqual(seen.violations(), [])
        return done, seen

    def test_kills_of_both_ends(self):
        seed = cluster.arguments.seed
        print(f"seed {seed}", end=" ", flush=True)
        dice = random.Random(seed)
        killed, parcels, worst, pauses = 0, 0, 0, []
        while killed < cluster.arguments.kills:
            wanted = min(KILLS_OF_A_RUN, cluster.arguments.kills - killed)
            done, seen = self.survive(wanted, dice, f"after {killed} kills")
            killed += done
            parcels += sum(map(len, seen.taken.values()))
            worst = max(worst, *seen.missing().values())
            pauses += seen.pauses
        print(f"{killed} kills, {parcels} parcels taken, at most {worst} missing of a lane at a "
              f"death, none twice or out of order; lanes without a session: "
              f"{statistics.median(pauses):.3f} s (median), {max(pauses):.3f} s (longest of "
              f"{len(pauses)})", end=" ", flush=True)
        self.assertGreater(parcels, 100 * killed)

    def test_other_ways(self):
        for mode in ("--threads", "--simulate"):
            with self.subTest(mode):
                run = self.finish("--graph", "channel", "--elements", ELEMENTS, "--samples", 500,
                                  "--batch", 1, "--epochs", 1, *cluster.slow([4] * WORKERS), mode,
                                  processes=False, name=mode)
                self.assertIn(f"right: {ELEMENTS} of {ELEMENTS}", run.out)
                self.assertGreater(run.report["counts"]["counters.taken"], 0)
                self.assertEqual(run.report["counts"]["counters.missing"], 0)


if __name__ == "__main__":
    options = cluster.parser(__doc__)
    options.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    options.add_argument("--kills", type=int, default=cluster.count(12, 25))
    cluster.main(options=options)

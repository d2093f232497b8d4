"""Checks runs whose user code misbehaves: each place where Troupe calls user code, times each way
to misbehave, in each mode. No run hangs, no run ends with status 0 that is not done, and each
failure names its cause.

--table prints the outcome of each cell as Markdown.
"""
import concurrent.futures
import json
import pathlib
import re
import signal
import subprocess
import tempfile
import time
import typing

import cluster

PLACES = ("trainer", "evaluator", "push", "stage", "keeper", "function", "describe", "actor",
          "take")
IN_LAUNCHER = ("evaluator", "evaluator-make", "describe")  # Also where members are processes.
ACTS = ("throw", "throw-empty", "throw-42", "nan", "exit-0", "exit-3", "exit-4", "abort", "assert",
        "segv", "stdout")
FEW_ACTS = ("throw-empty", "throw-42", "nan", "exit-0", "assert")  # And `never`.
# The acts of further places, where members are processes or threads.
BESIDE = {"trainer-make": ("throw-empty", "exit-0", "segv"),
          "evaluator-make": ("throw-empty", "exit-0", "segv"),
          "keeper-make": ("throw-empty", "exit-0", "segv"),
          "keeper-read": ("throw-empty", "exit-0", "segv", "nan"),
          "keeper-save": ("throw-empty", "exit-0", "segv"),
          "describe-child": ("throw-empty", "exit-0", "segv"),
          "actor-make": ("throw-empty", "exit-0", "segv"),
          "actor-stop": ("throw-empty", "exit-0", "segv", "never"),
          "port-make": ("throw-empty", "exit-0", "segv"),
          "loss": ("nan",)}
# A program of its own mode, and two in which another program's main calls run().
MODES = {"processes": (), "threads": ("--threads",), "simulate": ("--simulate",),
         "run() with threads": ("inside", "threads"),
         "run() in virtual time": ("inside", "simulation")}
# Without --long only these run.
PLAIN = {("trainer", "throw-empty"), ("evaluator", "exit-0"), ("push", "throw-42"),
         ("stage", "nan"), ("keeper", "assert"), ("function", "nan"), ("describe", "throw-empty"),
         ("actor", "assert"), ("take", "throw-42"), ("port-make", "throw-empty")}
PLAIN_STOPS = {("nowhere", "simulate", 1), ("trainer", "threads", 2)}
HANG_S = 40  # A cell that has not ended by then hangs.
NAMED_S = 15  # A callback that does not return is named by then.
DONE = "test accuracy 1.0000"


class Cell(typing.NamedTuple):
    where: str
    how: str
    mode: str
    signals: int = 0  # How many SIGTERM it gets.

    def is_inside(self):
        return self.mode.startswith("run()")

    def words(self, programs, home):
        if self.is_inside():
            return [programs / "misbehave", *MODES[self.mode], self.where, self.how]
        words = [programs / "misbehave", "--where", self.where, "--how", self.how,
                 *MODES[self.mode]]
        if self.mode == "processes":
            words += ["--run-dir", home / "run"]
        # A job may be done before the restart rules give up a process that ends again and again.
        goes_on = self.where in ("actor", "actor-make", "take") and self.how in STATUSES
        if self.how == "nothing" or goes_on and self.mode == "processes":
            words += ["--samples", 10_000_000]
        return words


class Outcome(typing.NamedTuple):
    status: int | None  # None: it did not end in time.
    seconds: float      # From the start to the end; with signals, from the last signal.
    text: str           # Its standard output, then its standard error.
    left: int           # Processes that it left behind.

    def lines(self):
        return [x for x in re.split(r"[\r\n]+", self.text) if x.strip()]


def send_signals(run, cell):
    """Sends SIGTERM once the run has named the callback, or has had the time for it."""
    count = cell.signals
    wait_s = 2 if cell.how == "nothing" else NAMED_S if count == 1 else 4
    until = time.monotonic() + wait_s
    while time.monotonic() < until and run.launcher.poll() is None:
        if "not returned for" in run.out + run.err:
            break
        time.sleep(0.1)
    for i in range(count):
        time.sleep(0.3 if i else 0)
        if run.launcher.poll() is None:
            run.signal(signal.SIGTERM)


def carry_out(cell, programs):
    """Runs a cell and returns its outcome."""
    with tempfile.TemporaryDirectory(prefix="troupe-") as directory:
        home = pathlib.Path(directory)
        run = cluster.Run(home, "cell", cell.words(programs, home / "cell"))
        began, status, left = run.started, None, 0
        try:
            if cell.signals:
                send_signals(run, cell)
                began = time.monotonic()
            status = run.launcher.wait(max(1, HANG_S - (time.monotonic() - run.started)))
            seconds = time.monotonic() - began
            for _ in range(100):  # Processes without a launcher end within 5 s.
                left = len(run.alive())
                if not left:
                    break
                time.sleep(0.05)
        except subprocess.TimeoutExpired:
            seconds = time.monotonic() - began
        run.end()
        return Outcome(status, seconds, run.out + run.err, left)


# -- right outcomes --

class Right(typing.NamedTuple):
    statuses: tuple
    pattern: str = ""  # Some line matches it.
    within: float = 20


STATUSES = {"exit-0": 0, "exit-3": 3, "exit-4": 4, "abort": -signal.SIGABRT,
            "assert": -signal.SIGABRT, "segv": -signal.SIGSEGV}
TEXTS = {"throw": "made to fail", "throw-empty": "std::runtime_error without a text",
         "throw-42": r"\bint\b"}
# How the line of a failure calls each place.
CALLED = {"trainer": "worker [01]", "trainer-make": "worker [01]", "describe-child": "worker [01]",
          "port-make": "worker [01]", "take": "worker [01]", "actor": "actor 0",
          "actor-make": "actor 0", "actor-stop": "actor 0",
          "push": "worker [01]", "stage": "stage 'stage'", "function": "function 'add'",
          "keeper": r"the keeper of 'sums' failed in apply\(\)",
          "keeper-read": r"the keeper of 'sums' failed in read\(\)",
          "keeper-save": r"the keeper of 'sums' failed in save\(\)",
          "keeper-make": "the keeper of 'sums'", "evaluator": "evaluat",
          "evaluator-make": "evaluat", "describe": "misbehave: "}
# How the line about a call that does not return, or that ends the process, calls each place.
CALLS = {"trainer": "worker [01].* trainer", "trainer-make": "worker [01].* trainer",
         "port-make": "worker [01].* trainer", "take": ".*port 'came'", "actor": "senders:0's actor",
         "actor-make": "senders:0's actor", "actor-stop": "senders:0's actor",
         "push": "worker [01].* push function 'push'", "stage": "stage 'stage'",
         "function": "server function 'add'", "evaluator": "evaluator 'check'",
         "evaluator-make": "evaluator 'check'", "describe": r"describe\(\)",
         "describe-child": r"describe\(\)", "keeper": "keeper 'sums'",
         "keeper-make": "keeper 'sums'", "keeper-read": "keeper 'sums'",
         "keeper-save": "keeper 'sums'"}
NAN = {"trainer": Right((1,), "worker [01].*training diverged"),
       "push": Right((1,), "worker [01].*training diverged"),
       "stage": Right((1,), "stage 'stage' .*not finite"),
       "keeper": Right((1,), CALLED["keeper-read"] + ": .*not finite"),
       "keeper-read": Right((1,), CALLED["keeper-read"] + ": .*not finite"),
       "function": Right((1,), "function 'add' gave a value that is not finite"),
       "describe": Right((1, 2), "(?i)learning.rate|--lr"),
       "actor": Right((0,), DONE), "take": Right((0,), DONE),
       "evaluator": Right((0,), DONE), "loss": Right((0,), DONE)}


def right_of_end(cell):
    """Returns the right outcome of a cell whose code ends its process."""
    status = STATUSES[cell.how]
    told = "Assertion .*made to fail" if cell.how == "assert" else ""
    if cell.mode == "processes" and cell.where == "actor-stop":  # The batches are applied.
        return Right((0,), DONE)
    if cell.mode == "processes" and cell.where not in IN_LAUNCHER:
        member = ("server [01]" if cell.where.startswith(("keeper", "function")) else
                  "actor 0" if cell.where.startswith("actor") else "worker [01]")
        how = f"exit status {status}" if status >= 0 else f"signal {-status}"
        return Right((1,), f"{member} ended .*{how}.*{told}")
    if status >= 0 and not cell.is_inside():
        return Right((status or 1,), CALLS[cell.where] + rf" called exit\({status}\) before")
    if cell.how == "abort" and not cell.is_inside():
        told = f"aborted in {CALLS[cell.where]}"
    return Right((status,), told)  # As without Troupe.


def right_of_stop(cell):
    """Returns the right outcome of a cell that gets SIGTERM."""
    within = 30 if cell.signals == 1 else 1
    if cell.is_inside():  # run() handles no signals.
        return Right((-signal.SIGTERM,), within=within)
    if cell.where == "describe":  # Nothing has started yet.
        within = 1
    is_named = cell.how == "never" and cell.signals == 1
    line = CALLS[cell.where] + r" has not returned for \d+ s" if is_named else ""
    return Right((128 + signal.SIGTERM,), line, within)


def right_of(cell):
    """Returns the right outcome of a cell."""
    if cell.signals:
        return right_of_stop(cell)
    if cell.how in TEXTS:
        return Right((1,), f"(?i){CALLED[cell.where]}.*{TEXTS[cell.how]}")
    if cell.how == "nan":
        return NAN[cell.where]
    if cell.how in STATUSES:
        return right_of_end(cell)
    return Right((0,), DONE)


def mistake_of(cell, found):
    """Returns why an outcome is wrong; empty: it is right."""
    right = right_of(cell)
    if found.status is None:
        return f"no end after {found.seconds:.0f} s"
    if found.left:
        return f"{found.left} processes are left"
    if found.status == 0 and DONE not in found.text and not cell.is_inside():
        return "status 0, and it is not done"
    if found.status not in right.statuses:
        return f"status is not {' or '.join(map(str, right.statuses))}"
    if found.seconds > right.within:
        return f"not within {right.within} s"
    if not any(re.search(right.pattern, line) for line in found.lines() or [""]):
        return f"no line matches {right.pattern}"
    return ""


# -- the cells --

def cells_of(mode, place):
    """Returns the cells of a place in a mode, without signals."""
    is_short = mode not in ("processes", "threads")
    if place in BESIDE:
        acts = () if is_short else BESIDE[place]
    else:
        acts = FEW_ACTS if is_short else ACTS
    # In other modes the graph is described once, and run() gets one that is described already.
    # Without processes there are checkpoints only if they are asked for.
    if (place in ("describe-child", "keeper-save") and mode != "processes"
            or place == "describe" and "run()" in mode):
        acts = ()
    return [Cell(place, how, mode) for how in acts]


def stopped_cells(mode, count):
    """Returns the cells of a mode that get so many SIGTERM."""
    places = [("nowhere", "nothing"), *((x, "never") for x in PLACES), ("describe-child", "never")]
    if mode != "processes":
        places.pop()
    if "run()" in mode:
        places = [x for x in places if x[0] not in ("nowhere", "describe")]
    return [Cell(where, how, mode, count) for where, how in places]


def run_all(cells, programs, jobs):
    """Yields each cell with its outcome, in the order in which they end."""
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        made = {pool.submit(carry_out, x, programs): x for x in cells}
        for each in concurrent.futures.as_completed(made):
            yield made[each], each.result()


class Cells:
    """Checks cells, two at a time."""

    def check(self, cells, jobs=2):
        self.assertTrue(cells)
        for cell, found in run_all(cells, cluster.arguments.programs, jobs):
            with self.subTest(cell):
                self.assertEqual(mistake_of(cell, found), "", found.text[-2000:])


class Places(Cells):
    """A test for each place."""
    modes = ()

    def check_places(self, *places):
        cells = [x for mode in self.modes for place in places for x in cells_of(mode, place)]
        self.check(cells if cluster.IS_LONG else [x for x in cells if (x.where, x.how) in PLAIN])

    def test_trainer(self):
        self.check_places("trainer", "trainer-make", "loss")

    def test_evaluator(self):
        self.check_places("evaluator", "evaluator-make")

    def test_push(self):
        self.check_places("push")

    def test_stage(self):
        self.check_places("stage")

    def test_keeper(self):
        self.check_places("keeper", "keeper-make", "keeper-read", "keeper-save")

    def test_function(self):
        self.check_places("function")

    def test_describe(self):
        self.check_places("describe", "describe-child")

    def test_actor(self):
        self.check_places("actor", "actor-make", "actor-stop")

    def test_port(self):
        self.check_places("take", "port-make")


class Processes(Places, cluster.ClusterTest):
    modes = ("processes",)


class Threads(Places, cluster.ClusterTest):
    modes = ("threads",)


class Simulated(Places, cluster.ClusterTest):
    modes = ("simulate",)


class Inside(Places, cluster.ClusterTest):
    modes = ("run() with threads", "run() in virtual time")
    test_describe = None  # run() gets a graph that is described already.


class Stopped(Cells, cluster.ClusterTest):
    alone = "two SIGTERM end a run within 1 s"

    def check_modes(self, count):
        for mode in MODES:
            cells = stopped_cells(mode, count)
            if not cluster.IS_LONG:
                cells = [x for x in cells if (x.where, mode, count) in PLAIN_STOPS]
            if cells:
                self.check(cells, 9 if count == 1 else 2)

    def test_one_signal(self):
        self.check_modes(1)

    def test_two_signals(self):
        self.check_modes(2)


# -- the table --

def row_of(cell, found):
    """Returns the line of a cell in the table."""
    act = cell.how + (f", SIGTERM x{cell.signals}" if cell.signals else "")
    last = (found.lines() or ["(nothing)"])[-1].replace("|", "\\|").replace("`", "'")[:150]
    status = "none" if found.status is None else found.status
    return (f"| {cell.where} | {act} | {status} | {found.seconds:.1f} | `{last}` | "
            f"{mistake_of(cell, found)} |")


def print_table(programs, jobs, saved):
    """Prints all cells. `saved`: a file of outcomes, which are not computed again; or None."""
    quick = [x for mode in MODES for place in (*PLACES, *BESIDE) for x in cells_of(mode, place)]
    slow = [x for mode in MODES for count in (1, 2) for x in stopped_cells(mode, count)]
    found = {}
    if saved and saved.exists():
        found = {Cell(*cell): Outcome(*rest) for cell, rest in json.loads(saved.read_text())}
    for cells, at_a_time in ((quick, jobs), (slow, 3 * jobs)):
        for cell, outcome in run_all([x for x in cells if x not in found], programs, at_a_time):
            found[cell] = outcome._replace(text=outcome.text[-4000:])
            if saved:
                saved.write_text(json.dumps(list(found.items())))
    for mode in MODES:
        print(f"\n## {mode}\n\n| place | act | status | seconds | last line | wrong |\n"
              "|---|---|---|---|---|---|")
        for cell in (*quick, *slow):
            if cell.mode == mode:
                print(row_of(cell, found[cell]))
    wrong = sum(bool(mistake_of(x, found[x])) for x in (*quick, *slow))
    print(f"\n{wrong} of {len(quick) + len(slow)} are wrong")


if __name__ == "__main__":
    options = cluster.parser(__doc__)
    options.add_argument("--table", action="store_true", help="print all cells as Markdown")
    options.add_argument("--jobs", type=int, default=2, help="--table: cells at a time")
    options.add_argument("--saved", type=pathlib.Path, help="--table: file of outcomes")
    given = options.parse_args()
    if given.table:
        print_table(given.programs.resolve(), given.jobs, given.saved)
    else:
        cluster.main(options=options)

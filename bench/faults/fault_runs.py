"""Runs real jobs under faults for fault_matrix.py, and checks that each property still holds."""
import collections
import contextlib
import json
import os
import pathlib
import random
import re
import signal
import socket
import struct
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/distributed"), str(ROOT / "bench")]
import cluster  # noqa: E402

import bad_link  # noqa: E402
from damaged_checkpoints import committed, flip, tear  # noqa: E402

WORKERS, SERVERS, ELEMENTS = 5, 3, 10_000  # Fewer workers are not compared with each other.
STALENESS = 3
RSS_LIMIT, DESCRIPTORS_LIMIT = 512e6, 512
DEATH_S = 10  # A death is reported within this time.
NOTICE_S = 1.0  # Then the active members are counted anew within this time.
DURABLE_S = 20  # A server makes a file durable within this time, however slow the machine is.
OTHER_VERSIONS = (0, 1, 2, 3, 4, 99)
PROTOCOL_MAGIC = b"TROUPE\r\n"


class Violation(Exception):
    """Arguments: the checker, and the observation that violates it."""


def require(holds, checker, why):
    if not holds:
        raise Violation(checker, why)


class Job:
    """A job on one or two hosts, counts of its faults, and members that may be lost for them."""

    def __init__(self, home, programs, name, program, words, link=None, seed=1):
        self.home, self.programs, self.name = home / name, programs, name
        self.home.mkdir()
        self.dice = random.Random(seed)
        self.counts = collections.Counter()
        self.victims = set()
        self.descriptors = 0
        self.link = link
        self.words = [programs / program, *words]
        self.runs = []

    def start(self, *options, host=0, prefix=()):
        prefix = (*(self.link.prefixes[host] if self.link else ()), *prefix)
        name = f"run{len(self.runs)}"
        words = [*self.words, *options, "--run-dir", self.home / name / "run"]
        if "--join" not in options:
            words += ["--report", self.home / name / "report.json"]
        self.runs.append(cluster.Run(self.home, name, words, prefix))
        return self.runs[-1]

    @property
    def run(self):
        return self.runs[0]

    def processes(self):
        return {who: pid for run in self.runs for who, pid in run.processes().items()}

    def pick(self, role):
        """Returns name and pid of a running process of this role, drawn at random."""
        found = [(who, pid) for who, pid in sorted(self.processes().items()) if who[0] == role]
        require(found, "C10 liveness", f"no {role} runs")
        who, pid = self.dice.choice(found)
        name = "coordinator" if role == "coordinator" else f"{role} {who[1]}"
        self.victims.add(name)
        return name, pid

    def heal(self, seconds=30, lost=(), since=0):
        """Waits until fresh progress shows all members active, and the loss of each of `lost` is
        among the events from number `since` on.
        """
        def whole():
            require(self.run.launcher.poll() is None, "C13 vacuity", "it ended among the faults")
            found = cluster.matching(self.run.events[before:], "progress")
            return found and found[-1]["active"] >= SERVERS + WORKERS
        for who in lost:
            cluster.poll(lambda: cluster.matching(self.run.events[since:], *cluster.LOSSES,
                                                  member=who), DEATH_S, f"the loss of {who}")
        time.sleep(NOTICE_S)
        before = len(self.run.events)
        try:
            cluster.poll(whole, seconds, "all members active")
        except AssertionError as why:
            raise Violation("C10 liveness", str(why)) from None
        self.measure()

    def measure(self):
        for pid in self.processes().values():
            try:
                self.descriptors = max(self.descriptors, len(os.listdir(f"/proc/{pid}/fd")))
            except OSError:  # The process ended meanwhile.
                pass

    def finish(self, seconds=120):
        """Waits for the end of all runs and checks the properties that hold for every run."""
        for run in self.runs:
            try:
                status = run.wait(time.monotonic() - run.started + seconds)
            except AssertionError as why:
                raise Violation("C10 liveness", str(why)) from None
            require(status == 0, "C10 liveness", f"status {status}: {run.err.strip()[-300:]}")
        lost = [x for x in self.run.report["recoveries"] if x["recovered_ms"] is None]
        require(not lost, "C10 liveness", f"not recovered: {lost}")
        given_up = set(self.run.members_of(*cluster.LOSSES, "worker_evicted"))
        require(given_up <= self.victims, "C9 evictions", f"{given_up - self.victims} had no fault")
        peak = max(self.run.report["peak_rss_bytes"].values())
        require(peak < RSS_LIMIT, "C12 resources", f"{peak / 1e6:.0f} MB")
        require(0 < self.descriptors < DESCRIPTORS_LIMIT, "C12 resources",
                f"{self.descriptors} descriptors")
        return {"C9", "C10", "C12", "C13"}

    def end(self):
        for run in self.runs:
            run.end()


# -- faults: each function returns when the fault is over and all members are active again --

def kill(role):
    def fault(job):
        who, pid = job.pick(role)
        since = len(job.run.events)
        os.kill(pid, signal.SIGKILL)
        job.counts["F1"] += 1
        job.counts["F13"] += role == "coordinator"
        job.heal(lost=[who], since=since)
    return fault


def kill_all_servers(job):
    servers = [f"server {index}" for index in range(SERVERS)]
    job.victims.update(servers)
    since = len(job.run.events)
    for (role, _), pid in job.processes().items():
        if role == "server":
            os.kill(pid, signal.SIGKILL)
            job.counts["F1"] += 1
    job.counts["F14"] += 1
    job.heal(lost=servers, since=since)


def stop(role, seconds):
    def fault(job):
        _, pid = job.pick(role)
        os.kill(pid, signal.SIGSTOP)
        time.sleep(seconds)
        os.kill(pid, signal.SIGCONT)
        job.counts["F3"] += 1
        job.counts["F13"] += role == "coordinator"
        job.heal()
    return fault


def tamper(how, seconds, number):
    """Tampers with all servers' calls that make files durable; only heads of chains need them."""
    def fault(job):
        servers = [x for (role, _), pid in job.processes().items() if role == "server"
                   for x in ("-p", str(pid))]
        said = job.home / "strace"
        calls = "fsync,fdatasync"
        tracer = subprocess.Popen(["strace", "-f", "-qq", "-o", said, "-e", f"trace={calls}", "-e",
                                   f"inject={calls}:{how}", *servers],
                                  stderr=subprocess.PIPE, text=True)

        def count():
            text = said.read_text() if said.exists() else ""
            return len(re.findall(r"\((?:DELAYED|INJECTED)\)", text))
        time.sleep(seconds)
        end = time.monotonic() + DURABLE_S
        while count() == 0 and tracer.poll() is None and time.monotonic() < end:
            time.sleep(0.1)
        tracer.terminate()
        why = tracer.communicate()[1].strip()
        require(count() > 0, "C13 vacuity", f"no call of {calls} {why}")
        job.counts[number] += count()
        job.heal()
    return fault


slow_disk = tamper("delay_exit=200000", 2.5, "F9")
failed_sync = tamper("error=EIO", 2.5, "F10")


def full_disk(job):
    """Fills the disk until a checkpoint fails for lack of space."""
    where = job.home / "disk"
    since = len(job.run.events)

    def failed():
        with open(where / "fill", "ab", buffering=0) as file, contextlib.suppress(OSError):
            while True:  # Servers remove files meanwhile.
                file.write(bytes(4096))
        return cluster.matching(job.run.events[since:], "checkpoint_failed")
    try:
        cluster.poll(failed, DURABLE_S, "a checkpoint that fails")
    except AssertionError as why:
        raise Violation("C13 vacuity", str(why)) from None
    job.counts["F10"] += 1
    (where / "fill").unlink()
    job.heal()


def doors(pid):
    """Returns the ports of loopback on which a process listens."""
    inodes = set()
    for name in os.listdir(f"/proc/{pid}/fd"):
        try:
            inodes.add(os.readlink(f"/proc/{pid}/fd/{name}")[8:-1])
        except OSError:
            pass
    lines = pathlib.Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]
    return [int(x[1].partition(":")[2], 16) for x in map(str.split, lines)
            if x[3] == "0A" and x[9] in inodes]


def strangers(job):
    """Sends nonsense, a huge frame, silence and other protocol versions to every open port."""
    secret = job.dice.randbytes(16)
    said = {"nonsense": job.dice.randbytes(3000),
            "a huge frame": PROTOCOL_MAGIC + struct.pack("<8I", *[0xFFFFFFFF] * 8),
            "silence": b""}
    for version in OTHER_VERSIONS:
        said[version] = PROTOCOL_MAGIC + struct.pack("<II", version, 0) + secret
    with contextlib.ExitStack() as silent:  # Connections stay open until the job was whole.
        for pid in job.processes().values():
            for port in doors(pid):
                for what, words in said.items():
                    peer = silent.enter_context(
                        socket.create_connection(("127.0.0.1", port), timeout=5))
                    job.counts["F16"] += not isinstance(what, int)
                    if words:
                        peer.sendall(words)
                        peer.close()
        job.heal()
    refused = re.findall(r"speaks protocol version (\d+), not", "".join(job.run.logs.values()))
    job.counts["F19"] += sum(int(x) in OTHER_VERSIONS for x in refused)
    passed = set(OTHER_VERSIONS) - set(map(int, refused))
    require(not passed, "C13 vacuity", f"no log says that these versions were refused: {passed}")


def resize(job):
    """Adds a server while a worker is killed, and drains it while a server is stopped."""
    def troupe(*words):
        return subprocess.Popen([job.programs / "troupe", *words], stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True)

    def done(what):
        said = what.communicate(timeout=60)[0]
        require(what.returncode == 0, "C10 liveness", f"troupe: {said}")
        job.counts["F18"] += 1
    coming = troupe("add", job.run.directory)
    kill("worker")(job)
    done(coming)
    job.victims.add(f"server {SERVERS}")
    going = troupe("drain", job.run.directory, f"server:{SERVERS}")
    stop("server", 0.7)(job)
    done(going)
    job.heal()


def cut(*directions):
    def fault(job):
        before = job.link.counts["cut"]
        job.victims |= {"server 2", "worker 2", "worker 3", "worker 4"}
        job.link.cut = set(directions)
        time.sleep(2)
        job.link.cut = set()
        require(job.link.counts["cut"] > before, "C13 vacuity", "the link was idle")
        job.counts["F4" if len(directions) == 2 else "F5"] += 1
        job.heal()
    return fault


def slow_link(job):
    before = job.link.counts["delayed"]
    job.link.delay_s, job.link.jitter_s, job.link.bytes_per_s = 0.02, 0.004, 4e6
    time.sleep(4)
    job.link.delay_s, job.link.jitter_s, job.link.bytes_per_s = 0.0, 0.0, 1e12
    require(job.link.counts["delayed"] > before, "C13 vacuity", "the link was idle")
    job.counts["F7"] += 1
    job.heal()


def unreliable_link(job):
    before = job.link.counts.copy()
    job.link.loss, job.link.repetition, job.link.jitter_s = 0.01, 0.02, 0.002
    time.sleep(4)
    job.link.loss = job.link.repetition = job.link.jitter_s = 0.0
    for kind in "lost", "doubled", "overtaken":
        count = job.link.counts[kind] - before[kind]
        require(count > 0, "C13 vacuity", f"no packet was {kind}")
        job.counts["F6"] += count
    job.heal()


# -- jobs --

def check_sums(run):
    require(cluster.is_exact(run.events, ELEMENTS), "C1 exactly once", "a sum is wrong")
    require(run.report["test_accuracy"] == 1.0, "C3 conservation", "a sum is wrong")
    return {"C1", "C3"}


def straggling(step_ms):
    """Returns options that make the last worker 5 times as slow as the others. It is not evicted,
    as jobs have to be whole again. Detection takes a quarter of its usual times, as jobs are short.
    """
    return ["--stragglers", "demote", "--straggler-time-scale", 4,
            *cluster.slow([step_ms] * (WORKERS - 1) + [5 * step_ms])]


def check_straggler(job):
    seen = job.run.told("worker_demoted", member=f"worker {WORKERS - 1}")
    require(seen, "C13 vacuity", "the detector did not see the straggler")
    job.counts["F15"] += 1
    return set()


@contextlib.contextmanager
def small_disk(job):
    """Mounts a file system of 192 MB for the job until it ends."""
    where = job.home / "disk"
    where.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=192m", "tmpfs", where], check=True)
    try:
        yield where
    finally:
        job.end()
        subprocess.run(["umount", "-l", where], check=False)


def counting(home, programs, name, seconds, faults, replicas=2, link=None, seed=1):
    """Runs count_batches under ssp, whose sums prove that each batch counts once. With replicas its
    trace is replayed. Then its two newest checkpoints are damaged, and it goes on from an older one
    on another number of servers.
    """
    samples = 60 * WORKERS * seconds  # A step takes 15 ms and more.
    words = ["--elements", ELEMENTS, "--batch", 1, "--samples", samples, "--epochs", 1, "--sync",
             f"ssp:{STALENESS}", "--workers", WORKERS, *straggling(15)]
    job = Job(home, programs, name, "count_batches", words, link, seed)
    with small_disk(job) as disk:
        checkpoints = disk / "checkpoints"
        cluster_words = ["--servers", SERVERS, "--replicas", replicas, "--checkpoint", checkpoints,
                         "--checkpoint-every", "400ms", "--checkpoint-keep", 3]
        if replicas > 1:
            cluster_words += ["--record", job.home / "record"]
        start_on_hosts(job, cluster_words)
        job.run.await_event("training_started", workers=WORKERS)
        job.run.await_event("checkpoint_committed", checkpoint=1)
        for fault in faults:
            fault(job)
        job.measure()
        judged = job.finish() | check_sums(job.run) | check_straggler(job) | {"C4"}
        found = job.run.report["staleness_clocks"]["max"]
        require(found <= STALENESS, "C4 staleness", f"{found} clocks")
        if replicas > 1:
            judged |= replay(job, checkpoints)
        counts, job.counts = job.counts, collections.Counter()
        afterwards = go_on(job, checkpoints)
        return [(counts, judged | {"C7", "C8"}), (job.counts, afterwards)]


def start_on_hosts(job, words):
    if not job.link:
        job.start(*words)
        return
    where = f"{bad_link.ADDRESSES[0]}:7777"
    plain = "--allow-plaintext-on-network"
    job.start(*words, "--listen", where, plain, "--here", "server:0,server:1,worker:0,worker:1")
    job.run.await_event("note", text=re.compile("without encryption"))
    # The two hosts' clocks differ by a day.
    job.start(*words, "--join", where, plain, "--here", "server:2,worker:2,worker:3,worker:4",
              host=1, prefix=("unshare", "-T", "--boottime", "100000", "--monotonic", "100000"))
    job.counts["F8"] += 1


def tool(job, *words):
    """Runs the job's program with more options and without the link. Returns status and output."""
    done = subprocess.run([*map(str, job.words), *map(str, words)], capture_output=True, text=True,
                          timeout=120, cwd=job.home, check=False)
    return done.returncode, done.stdout + done.stderr


def replay(job, checkpoints):
    """Replays the trace, which fails if replicas recorded different histories."""
    status, said = tool(job, "--replay", job.home / "record", "--compare", checkpoints)
    checker = "C6 replica equality" if "differ" in said else "C11 training equality"
    require(status == 0 and "equal to" in said, checker, said[-300:])
    return {"C6", "C11"}


def go_on(job, checkpoints):
    newest = committed(checkpoints)
    flip(job, newest[-1])
    tear(job, newest[-2])
    file = job.home / "again.json"
    status, said = tool(job, "--resume", "--checkpoint", checkpoints, "--servers", SERVERS + 1,
                        "--run-dir", job.home / "again", "--report", file)
    events = cluster.read_events(job.home / "again/events.jsonl")
    damaged = cluster.matching(events, "note", "checkpoint_damaged", "checkpoint_skipped",
                               text=re.compile("is damaged"))
    refused = {number for x in damaged
               for number in re.findall(r"checkpoint (\d+) in .* is damaged", x["text"])}
    require(refused == {str(int(x.name)) for x in newest[-2:]}, "C8 no bad checkpoint", said[-300:])
    require(status == 0, "C10 liveness", said[-300:])
    require(cluster.is_exact(events, ELEMENTS), "C7 checkpoint consistency", said[-300:])
    report = json.loads(file.read_text())
    require(report["test_accuracy"] == 1.0, "C3 conservation", "a sum is wrong")
    require(report["staleness_clocks"]["max"] <= STALENESS, "C4 staleness", "after --resume")
    require(not report["recoveries"], "C9 evictions", str(report["recoveries"]))
    require(max(report["peak_rss_bytes"].values()) < RSS_LIMIT, "C12 resources", "after --resume")
    return {"C1", "C3", "C4", "C7", "C8", "C9", "C10", "C12", "C13"}


def bsp_job(home, programs, name, epochs, data="digits", seed=1):
    """Returns a job on real numbers, whose result is the same to the last bit under any fault. Runs
    it once without faults, as the reference.
    """
    words = ["--sync", "bsp", "--model", "mlp:16", "--batch", 256, "--workers", WORKERS, "--data",
             data, "--epochs", epochs, "--seed", 7]
    job = Job(home, programs, name, "async_sgd", words, seed=seed)
    status, said = tool(job, "--threads", "--export", job.home / "calm.npz")
    require(status == 0, "C11 training equality", said[-300:])
    return job


def same_bytes(job):
    same = (job.home / "hurt.npz").read_bytes() == (job.home / "calm.npz").read_bytes()
    require(same, "C11 training equality", "the parameters differ")
    return {"C11"}


def training(home, programs, name, epochs, faults, data="digits", seed=1):
    job = bsp_job(home, programs, name, epochs, data, seed)
    with small_disk(job) as disk:
        job.start("--servers", SERVERS, "--checkpoint", disk / "checkpoints",
                  "--checkpoint-every", "300ms", "--export", job.home / "hurt.npz",
                  *straggling(20))
        job.run.await_event("training_started", workers=WORKERS)
        if faults:
            job.run.await_event("checkpoint_committed", checkpoint=1)
        for fault in faults:
            fault(job)
        job.measure()
        judged = job.finish() | same_bytes(job) | check_straggler(job)
        job.counts["F17"] += round(job.run.report["pushes"]["refused"])
        return [(job.counts, judged)]


def resumed(home, programs, name, epochs, damages, seed=1):
    """Repeatedly kills all processes, damages the newest checkpoint, and resumes the job."""
    job = bsp_job(home, programs, name, epochs, seed=seed)
    checkpoints = job.home / "checkpoints"
    words = ["--servers", SERVERS, "--checkpoint", checkpoints, "--checkpoint-every", "300ms",
             "--export", job.home / "hurt.npz", *cluster.slow([20] * WORKERS)]
    try:
        job.start(*words)
        for damage in damages:
            last = job.runs[-1]
            cluster.poll(lambda: len(last.told("checkpoint_committed")) > 2, 60, "checkpoints")
            last.signal(signal.SIGKILL)
            last.wait()
            job.counts["F1"] += 1 + SERVERS + WORKERS
            job.counts["F14"] += 1
            damage(job, committed(checkpoints)[-1])
            again = job.start(*words, "--resume")
            again.await_event("training_started")
            refused = again.told("note", text=re.compile("is damaged"))
            require(refused, "C8 no bad checkpoint", again.out[-300:])
        job.runs = job.runs[-1:]
        job.measure()
        judged = job.finish() | same_bytes(job)
        return [(job.counts, judged | {"C7", "C8"})]
    finally:
        job.end()


def not_finite(home, programs, name):
    """Trains with one sample in each pass whose gradient is not finite."""
    dice = random.Random(1)
    columns = range(1, 9)
    rows = [f"{i % 2} " + " ".join(f"{j}:{dice.random()}" for j in columns) for i in range(20_000)]
    (home / "good.svm").write_text("\n".join(rows) + "\n")
    rows[777] = "1 " + " ".join(f"{j}:3.4e38" for j in columns)  # The hidden layer overflows.
    (home / "huge.svm").write_text("\n".join(rows) + "\n")
    return training(home, programs, name, 8, [], data=f"libsvm:{home}/huge.svm,{home}/good.svm")

"""Makes two hosts on a link of a given rate: network namespaces, a pair of virtual cards, and a
token bucket in each direction. Needs root. Runs jobs on the two hosts.
"""
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests/distributed"))
import cluster  # noqa: E402

ADDRESSES = ("10.203.79.1", "10.203.79.2")
PORT = 7777
LATENCY = "50ms"  # Longest wait of a packet: long enough that a few connections lose no packet.
RUN_SECONDS_MAX = 3600
PLAINTEXT = ("--allow-plaintext-on-network",)


def run(*words):
    done = subprocess.run(words, capture_output=True, text=True, timeout=20, check=False)
    if done.returncode != 0:
        raise OSError(f"{' '.join(words)}: {done.stderr.strip()}")


class ThrottledLink:
    """Holds the hosts until close(). `rate` is as tc writes it: "1gbit". `burst`: the bucket, which
    passes at any rate after a pause. Commands that begin with `prefixes[i]` run on host i.
    """

    def __init__(self, rate, burst="256kb"):
        self.names = [f"troupe-{os.getpid()}-{host}" for host in "ab"]
        self.prefixes = [("ip", "netns", "exec", name) for name in self.names]
        try:
            self.make_hosts(rate, burst)
        except BaseException:
            self.close()
            raise

    def make_hosts(self, rate, burst):
        cards = [f"thr{os.getpid()}{host}" for host in "ab"]
        for name in self.names:
            run("ip", "netns", "add", name)
        run("ip", "link", "add", cards[0], "netns", self.names[0], "type", "veth",
            "peer", "name", cards[1], "netns", self.names[1])
        for name, card, address in zip(self.names, cards, ADDRESSES):
            run("ip", "-n", name, "addr", "add", f"{address}/24", "dev", card)
            run("ip", "-n", name, "link", "set", card, "up")
            run("ip", "-n", name, "link", "set", "lo", "up")
            run("tc", "-n", name, "qdisc", "add", "dev", card, "root", "tbf", "rate", rate,
                "burst", burst, "latency", LATENCY)

    def close(self):
        for name in self.names:
            if os.path.exists(f"/run/netns/{name}"):
                run("ip", "netns", "del", name)

    def train(self, words, here, there, protection=PLAINTEXT):
        """Runs a job whose processes `here` are on the first host and `there` on the second, as in
        --here. Returns its report.
        """
        where = f"{ADDRESSES[0]}:{PORT}"
        runs = []

        def start(home, name, *more):
            runs.append(cluster.Run(home, name, [*words, *protection, *more, "--run-dir", "run"],
                                    self.prefixes[len(runs)]))
            return runs[-1]

        with tempfile.TemporaryDirectory(prefix="throttled-") as folder:
            home = pathlib.Path(folder)
            try:
                first = start(home, "here", "--listen", where, "--here", here,
                              "--report", "report.json")
                first.await_event("member_joined")  # So the host listens.
                start(home, "there", "--join", where, "--here", there)
                # The second host's run ends if the first one's fails.
                if any([run.wait(RUN_SECONDS_MAX) for run in reversed(runs)]):
                    raise AssertionError("a run on two hosts failed")
                return first.report
            except AssertionError as why:
                raise RuntimeError("\n".join([str(why), *(run.story() for run in runs)])) from None
            finally:
                for run in runs:
                    run.end()

"""Makes two hosts on a line of a given rate: network namespaces, a pair of virtual cards, and a
token bucket in each direction. Needs root.
"""
import os
import subprocess

ADDRESSES = ("10.203.79.1", "10.203.79.2")
LATENCY = "50ms"  # Longest wait of a packet: long enough that a few connections lose no packet.


def run(*words):
    done = subprocess.run(words, capture_output=True, text=True, timeout=20, check=False)
    if done.returncode != 0:
        raise OSError(f"{' '.join(words)}: {done.stderr.strip()}")


class ThrottledLine:
    """Holds the hosts until close(). `rate` is as tc writes it: "1gbit". Commands that begin with
    `prefixes[i]` run on host i.
    """

    def __init__(self, rate):
        self.names = [f"troupe-{os.getpid()}-{host}" for host in "ab"]
        self.prefixes = [("ip", "netns", "exec", name) for name in self.names]
        try:
            self.make_hosts(rate)
        except BaseException:
            self.close()
            raise

    def make_hosts(self, rate):
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
                "burst", "256kb", "latency", LATENCY)

    def close(self):
        for name in self.names:
            if os.path.exists(f"/run/netns/{name}"):
                run("ip", "netns", "del", name)

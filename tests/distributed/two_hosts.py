"""Makes hosts: network namespaces with their own addresses. TwoHosts joins two of them by a pair of
virtual cards. Needs root.
"""
import os
import pathlib
import subprocess

import cluster

HOSTS = {"a": "10.203.77.1", "b": "10.203.77.2"}
PORT = 7777
DIRECTORY_OF_NAMES = pathlib.Path("/run/netns")


def ip(*words):
    done = subprocess.run(["ip", *words], capture_output=True, text=True, timeout=20, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"ip {' '.join(words)}: {done.stderr.strip()}")


class Hosts(cluster.ClusterTest):
    """Makes namespaces. Derived classes have `addresses`, {host: address}, and make_network()."""

    def setUp(self):
        super().setUp()
        self.names = {host: f"troupe-{os.getpid()}-{host}" for host in self.addresses}
        try:
            for name in self.names.values():
                self.addCleanup(self.remove, name)  # First: `name` may be half made.
                ip("netns", "add", name)
            self.make_network()
        except (OSError, RuntimeError) as why:
            self.skipTest(f"no network namespaces here: {why}")
        self.on = {host: ("ip", "netns", "exec", name) for host, name in self.names.items()}

    def remove(self, name):
        self.end_runs()
        if (DIRECTORY_OF_NAMES / name).exists():
            ip("netns", "del", name)


class TwoHosts(Hosts):
    addresses = HOSTS
    where = f"{HOSTS['a']}:{PORT}"

    def make_network(self):
        card = {host: f"tr{os.getpid()}{host}" for host in HOSTS}
        ip("link", "add", card["a"], "netns", self.names["a"], "type", "veth",
           "peer", "name", card["b"], "netns", self.names["b"])
        for host, address in HOSTS.items():
            ip("-n", self.names[host], "addr", "add", f"{address}/24", "dev", card[host])
            ip("-n", self.names[host], "link", "set", card[host], "up")
            ip("-n", self.names[host], "link", "set", "lo", "up")

    def cut(self, state):
        """Sets the line between the hosts to "down" or "up"."""
        ip("-n", self.names["b"], "link", "set", f"tr{os.getpid()}b", state)

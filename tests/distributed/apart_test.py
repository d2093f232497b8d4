"""Checks that a chain goes on if two of its servers reach all hosts except each other: one of them
leaves, and a third server joins. Needs root.
"""
import re

import cluster
import two_hosts

HOSTS = {"a": "10.203.80.1", "b": "10.203.80.2", "c": "10.203.80.3", "d": "10.203.80.4"}


class Apart(two_hosts.Hosts):
    program = "count_batches"
    addresses = HOSTS

    def make_network(self):
        """Connects all hosts by a bridge on host a."""
        center = self.names["a"]
        for host, name in self.names.items():
            two_hosts.ip("-n", name, "link", "set", "lo", "up")
            if host == "a":
                two_hosts.ip("-n", name, "link", "add", "card", "type", "bridge")
            else:
                two_hosts.ip("-n", center, "link", "add", f"to-{host}", "type", "veth",
                             "peer", "name", "card", "netns", name)
                two_hosts.ip("-n", center, "link", "set", f"to-{host}", "master", "card", "up")
            two_hosts.ip("-n", name, "addr", "add", f"{HOSTS[host]}/24", "dev", "card")
            two_hosts.ip("-n", name, "link", "set", "card", "up")

    def separate(self, one, other):
        two_hosts.ip("-n", self.names[one], "route", "add", "blackhole", f"{HOSTS[other]}/32")

    def test_a_chain_goes_on_without_one_of_two_that_cannot_talk(self):
        common = ("--elements", 1000, "--batch", 1, "--samples", 6000, "--epochs", 1,
                  "--servers", 3, "--replicas", 2, "--shards", 1, "--workers", 2, "--slow", "0:2",
                  "--slow", "1:2", "--checkpoint", self.home / "checkpoints",
                  "--allow-plaintext-on-network")
        here = self.start(*common, "--listen", f"{HOSTS['a']}:{two_hosts.PORT}", "--here",
                          "worker:0,worker:1", prefix=self.on["a"], name="a")
        here.await_event("note", text=re.compile("without encryption"))
        others = [self.start(*common, "--join", f"{HOSTS['a']}:{two_hosts.PORT}", "--here",
                             f"server:{index}", prefix=self.on[host], name=host)
                  for index, host in enumerate("bcd")]
        here.await_event("training_started", workers=2)
        self.separate("b", "c")
        here.await_event("servers_disconnected", member="server 1", other="server 0", shard=0)
        self.assertEqual([each.wait(90) for each in (here, *others)], [0] * 4)
        self.assert_exact(here, 1000)
        self.assert_untold(here, *cluster.ROLLBACKS)


if __name__ == "__main__":
    cluster.main()

"""Two servers of one chain that cannot talk to each other, while both can to everyone else: one of
them leaves the chain, which goes on with a third. Needs root.
"""
import cluster
import two_hosts

HOSTS = {"a": "10.203.80.1", "b": "10.203.80.2", "c": "10.203.80.3", "d": "10.203.80.4"}


class Apart(two_hosts.Hosts):
    program = "count_batches"
    addresses = HOSTS

    def make_network(self):
        """Host a is the bridge between all of them."""
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
        here.await_text("without encryption")
        others = [self.start(*common, "--join", f"{HOSTS['a']}:{two_hosts.PORT}", "--here",
                             f"server:{index}", prefix=self.on[host], name=host)
                  for index, host in enumerate("bcd")]
        here.await_text("training with 2 workers")
        self.separate("b", "c")
        here.await_text("server 1 and server 0 cannot talk to each other: chain 0 goes on without")
        self.assertEqual([each.wait(90) for each in (here, *others)], [0] * 4)
        self.assert_exact(here, 1000)
        self.assertNotIn("rolled back", here.out)


if __name__ == "__main__":
    cluster.main()

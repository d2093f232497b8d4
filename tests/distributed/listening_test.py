"""Checks that the processes of a job listen at no more sockets than their roles need."""
import collections
import os
import pathlib
import re
import socket
import subprocess
import sys

import cluster

ONE_LINK_END = {"tcp": 1, "unix": 1}  # Each TCP listener has a Unix socket beside it.


def sockets_that_listen():
    """Returns {inode: "tcp" or "unix"} of this host's listening sockets."""
    found = {}
    for name in ("tcp", "tcp6"):
        for line in pathlib.Path(f"/proc/net/{name}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A":  # TCP_LISTEN
                found[fields[9]] = "tcp"
    for line in pathlib.Path("/proc/net/unix").read_text().splitlines()[1:]:
        fields = line.split()
        if int(fields[3], 16) & 0x10000:  # __SO_ACCEPTCON
            found[fields[6]] = "unix"
    return found


def listening(pid):
    """Returns the inodes of the sockets at which a process listens, by kind."""
    inodes = set()
    for name in os.listdir(f"/proc/{pid}/fd"):
        try:
            link = os.readlink(f"/proc/{pid}/fd/{name}")
        except OSError:  # It was closed.
            continue
        inodes.update(re.findall(r"^socket:\[(\d+)\]$", link))
    found = sockets_that_listen()
    kinds = collections.defaultdict(set)
    for inode in inodes & found.keys():
        kinds[found[inode]].add(inode)
    return kinds


def ports(pid):
    """Returns the TCP ports at which a process listens."""
    inodes = listening(pid)["tcp"]
    found = set()
    for name in ("tcp", "tcp6"):
        for line in pathlib.Path(f"/proc/net/{name}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[9] in inodes:
                found.add(int(fields[1].rpartition(":")[2], 16))
    return found


def counts(pid):
    """Returns how many sockets of each kind a process listens at."""
    return {kind: len(inodes) for kind, inodes in listening(pid).items()}


class Counting(cluster.ClusterTest):
    def test_listening_sockets_of_another_process_are_seen(self):
        opens = ("import socket, sys\n"
                 "made = [socket.create_server(('127.0.0.1', 0)),"
                 " socket.create_server(('::1', 0), family=socket.AF_INET6),"
                 " socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)]\n"
                 "made[2].bind('\\0troupe-test-' + sys.argv[1]); made[2].listen()\n"
                 "client = socket.create_connection(made[0].getsockname())\n"
                 "print('open', flush=True); sys.stdin.read()\n")
        with subprocess.Popen([sys.executable, "-c", opens, str(os.getpid())],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
            self.assertEqual(other.stdout.readline(), b"open\n")
            self.assertEqual(counts(other.pid), {"tcp": 2, "unix": 1})


class Roles(cluster.ClusterTest):
    program = "count_batches"
    common = ("--elements", 1000, "--batch", 1, "--samples", 400_000)

    def running(self, *options, **more):
        run = self.start("--workers", 2, *options, **more)
        run.await_event("progress", phase="training", done=lambda x: x > 0)
        return run

    def test_members_that_listen_open_one_socket_of_each_kind_others_none(self):
        for options in (("--servers", 2), ("--servers", 3, "--replicas", 2),
                        ("--servers", 2, "--workers-per-process", 2)):
            with self.subTest(options=options):
                run = self.running(*options)
                found = {who: counts(pid) for who, pid in run.processes().items()}
                servers = options[1]
                workers = 1 if "--workers-per-process" in options else 2
                self.assertEqual(found, {("coordinator", 0): ONE_LINK_END}
                                 | {("server", i): ONE_LINK_END for i in range(servers)}
                                 | {("worker", i): {} for i in range(workers)})
                # The launcher keeps the coordinator's port open, for the next coordinator.
                kept = listening(run.launcher.pid)
                self.assertEqual(kept, {"tcp": listening(run.processes()["coordinator", 0])["tcp"]})
                run.end()

    def test_jobs_in_one_process_open_none(self):
        for options in (("--threads", "--servers", 2), ("--threads", "--sync", "hogwild")):
            with self.subTest(options=options):
                run = self.running(*options, "--events", "events.jsonl", processes=False)
                self.assertEqual(run.processes(), {})
                self.assertEqual(counts(run.launcher.pid), {})
                run.end()

    def test_ranks_of_one_host_open_none(self):
        run = self.running("--sync", "allreduce")
        found = {who: counts(pid) for who, pid in run.processes().items()}
        self.assertEqual(found, {("worker", 0): {}, ("worker", 1): {}})
        self.assertEqual(counts(run.launcher.pid), {})


class Ports(cluster.ClusterTest):
    """Bounds of ports, on two hosts at one address: the second one has ports of its own."""
    program = "misbehave"
    common = ("--where", "take", "--samples", 10_000_000)  # Channels lead to its workers.

    def free_ports(self, count):
        """Returns the first of some ports that are free, below those that systems draw."""
        for first in range(20_000 + os.getpid() % 10_000, 32_000, count):
            sockets = []
            try:
                for port in range(first, first + count):
                    sockets.append(socket.create_server(("127.0.0.1", port)))
                return first
            except OSError:
                continue
            finally:
                for each in sockets:
                    each.close()
        raise AssertionError("no ports are free")

    def run_with(self, mine, here, *words, name):
        return self.start(*words, "--ports", f"{mine[0]}-{mine[-1]}", "--here", here, "--servers",
                          1, name=name)

    def test_all_processes_of_a_host_listen_at_its_ports_also_after_a_death(self):
        first = self.free_ports(7)
        own, others = range(first, first + 5), range(first + 5, first + 7)
        where = f"127.0.0.1:{cluster.free_port()}"
        run = self.run_with(own, "server:0,worker:0,senders:0", "--listen", where, name="a")
        joined = self.run_with(others, "worker:1", "--join", where, name="b")
        run.await_event("progress", phase="training", done=lambda x: x > 0)
        self.assertTrue(run.kill("worker", 0))
        run.await_event("member_rejoined", member="worker 0")
        for each, bounds, count in ((run, own, 2), (joined, others, 1)):
            found = [ports(pid) for who, pid in each.processes().items() if who[0] != "coordinator"]
            self.assertEqual(sum(map(len, found)), count, found)
            self.assertLessEqual(set.union(*found), set(bounds))

    def test_a_host_without_a_free_port_says_so(self):
        first = self.free_ports(1)
        run = self.start("--ports", first, "--servers", 2)
        self.assertEqual(run.wait(20), 1)
        self.assertRegex(run.err, rf"misbehave: .* cannot listen on 127.0.0.1: all ports of --ports "
                         rf"{first}-{first} are in use; give more")


class Channels(cluster.ClusterTest):
    program = "bandit"

    def test_members_that_a_channel_leads_to_open_one_socket_of_each_kind(self):
        """Players send to learners, and no channel leads to players."""
        run = self.start("--players", 2, "--workers", 2, "--servers", 1, "--epochs", 10_000)
        run.await_event("progress", phase="training", done=lambda x: x > 0)
        for i in range(2):
            run.await_event("member_joined", member=f"actor {i}")
        found = {who: counts(pid) for who, pid in run.processes().items()}
        self.assertEqual(found, {(role, 0): ONE_LINK_END for role in ("coordinator", "server")}
                         | {("worker", i): ONE_LINK_END for i in range(2)}
                         | {("actor", i): {} for i in range(2)})
        run.end()


if __name__ == "__main__":
    cluster.main(__doc__)

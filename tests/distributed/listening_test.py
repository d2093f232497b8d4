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


if __name__ == "__main__":
    cluster.main(__doc__)

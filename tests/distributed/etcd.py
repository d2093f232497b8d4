"""Runs a real etcd for one test, on free ports of loopback and in its own directory."""
import base64
import json
import os
import pathlib
import shutil
import signal
import subprocess
import urllib.error
import urllib.request

import cluster


def is_installed():
    return shutil.which("etcd") is not None


def in_base64(text):
    return base64.b64encode(text.encode()).decode()


class Etcd:
    """A cluster of etcd. `patient`: leases last 8 s, not 2, so that no lease ends while the machine
    stalls. `options`: further options of etcd."""

    def __init__(self, home: pathlib.Path, members=1, patient=False, options=()):
        self.home = home
        self.options = options
        self.times = ["--heartbeat-interval", "500", "--election-timeout", "5000"] if patient else []
        self.ports = [(cluster.free_port(), cluster.free_port()) for _ in range(members)]
        self.processes = [None] * members
        for index in range(members):
            self.start(index)
        cluster.poll(self.answers, 60, "an answer of etcd")

    @property
    def url(self):
        return "etcd://" + ",".join(f"127.0.0.1:{client}" for client, _ in self.ports)

    def start(self, index):
        client, peer = (f"http://127.0.0.1:{port}" for port in self.ports[index])
        everyone = ",".join(f"m{i}=http://127.0.0.1:{port}"
                            for i, (_, port) in enumerate(self.ports))
        self.processes[index] = subprocess.Popen(
            ["etcd", "--name", f"m{index}", "--data-dir", self.home / f"etcd-{index}",
             "--listen-client-urls", client, "--advertise-client-urls", client,
             "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
             "--initial-cluster", everyone, "--logger", "zap", "--log-level", "error",
             "--unsafe-no-fsync", *self.times, *self.options],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def signal_all(self, number):
        for process in self.processes:
            process.send_signal(number)

    def end(self, index):
        process = self.processes[index]
        process.kill()
        process.wait()

    def end_all(self):
        for index in range(len(self.processes)):
            self.end(index)

    def answers(self):
        try:
            return self.get("any") is None
        except (urllib.error.URLError, OSError):
            return False

    def has_leader(self, index):
        """Returns whether that member sees a leader."""
        return int(self.status(index).get("leader", 0)) != 0

    def status(self, index):
        return self.ask("/v3/maintenance/status", {}, index)

    def ask(self, path, question, index=0):
        where = f"http://127.0.0.1:{self.ports[index][0]}{path}"
        with urllib.request.urlopen(where, json.dumps(question).encode(), timeout=5) as answer:
            return json.load(answer)

    def raft_leader(self):
        """Returns the index of etcd's leader."""
        return cluster.poll(lambda: [index for index in range(len(self.ports)) if self.leads(index)],
                            10, "a member that leads")[0]

    def leads(self, index):
        status = self.status(index)
        return status["header"]["member_id"] == status.get("leader")

    def get(self, key):
        found = self.ask("/v3/kv/range", {"key": in_base64(key)}).get("kvs")
        return base64.b64decode(found[0]["value"]) if found else None

    def fill(self):
        """Fills etcd until it refuses for lack of space; needs a small --quota-backend-bytes."""
        for number in range(1000):
            try:
                self.ask("/v3/kv/put", {"key": in_base64(f"k{number}"), "value": "A" * 1_000_000})
            except urllib.error.HTTPError:
                return
        raise AssertionError("etcd has room for everything")

    def demand_passwords(self):
        for path, question in (("user/add", {"name": "root", "password": "secret"}),
                               ("role/add", {"name": "root"}),
                               ("user/grant", {"user": "root", "role": "root"}), ("enable", {})):
            self.ask("/v3/auth/" + path, question)

    def leader(self, job):
        """Returns the pid of the leading coordinator; None if no coordinator leads."""
        value = self.get(f"/troupe/{job}/leader")
        return int(value.decode().rpartition("pid ")[2].rstrip(")")) if value else None

    def kill_leader(self, job, number=signal.SIGKILL):
        """Sends the signal to the leading coordinator; returns its pid."""
        pid = cluster.poll(lambda: self.leader(job), 10, "a coordinator that leads")
        os.kill(pid, number)
        return pid

"""Checks encrypted jobs: which peers are admitted, and the messages of both sides about refused
peers. --table prints them.
"""
import json
import shutil
import socket
import ssl
import struct
import subprocess

import cluster
import two_hosts

SECRET = 16  # Its offset in the first bytes of a link: behind magic and version.

table = []


def certs(*words):
    """Runs `troupe certs`; returns its exit status and output."""
    done = subprocess.run([cluster.arguments.programs / "troupe", "certs", *map(str, words)],
                          capture_output=True, text=True, timeout=20, check=False)
    return done.returncode, (done.stdout + done.stderr).strip()


class Tls:
    """Gives a ClusterTest certificates of the job, of another job, and expired ones."""

    def make_certificates(self, *hosts):
        for name, *words in (("good", "--ca", self.home / "authority.pem"), ("other",),
                             ("old", "--days", 0, "--ca", self.home / "authority.pem"),
                             ("elsewhere", "--hosts", "10.99.0.1", "--ca",
                              self.home / "authority.pem")):
            if name == "good" and hosts:
                words += ["--hosts", ",".join(hosts)]
            status, said = certs("--out", self.home / name, *words)
            self.assertEqual(status, 0, said)

    def log_of(self, run, pattern):
        """Waits for a line with `pattern` in the coordinator's log; returns the last one."""
        def found():
            lines = run.logs.get("coordinator", "").splitlines()
            return [line for line in lines if pattern in line]
        return cluster.poll(found, 10, f"'{pattern}' in the coordinator's log")[-1]

    def note(self, case, one, other):
        texts = [str(x).replace(str(self.home), "DIR") for x in (case, one, other)]
        table.append(texts)


class Hosts(Tls, two_hosts.TwoHosts):
    common = ("--model", "softmax", "--epochs", 1, "--servers", 1, "--workers", 2,
              "--slow", "0:10", "--slow", "1:10")

    def setUp(self):
        super().setUp()
        self.make_certificates(*two_hosts.HOSTS.values())

    def listen(self, certificates="good"):
        run = self.start("--listen", self.where, *self.tls(certificates), "--here",
                         "server:0,worker:0", prefix=self.on["a"], name="a")
        run.await_event("member_joined", member="worker 0")
        return run

    def tls(self, certificates):
        plain = ("--allow-plaintext-on-network",)
        return ("--tls", self.home / certificates) if certificates else plain

    def join(self, certificates, name="b"):
        return self.start("--join", self.where, *self.tls(certificates), "--here", "worker:1",
                          prefix=self.on["b"], name=name)

    def refused(self, case, certificates, pattern, log=None, listening="good"):
        """Checks that the joining host ends with one line, and the job logs a line and goes on."""
        here = self.listen(listening)
        there = self.join(certificates)
        self.assertEqual(there.wait(20), 1)
        lines = there.err.splitlines()
        self.assertEqual(len(lines), 1, there.err)
        self.assertRegex(lines[0], pattern)
        self.note(case, lines[0], self.log_of(here, log) if log else "-")
        self.assertIsNone(here.launcher.poll())
        return here

    def test_a_job_of_two_hosts_with_certificates_of_their_own(self):
        for host, *roles in ("a",), ("b", "--roles", "worker,observer"):
            status, said = certs("--out", self.home / f"certs-{host}", "--ca", self.home /
                                 "authority.pem", "--hosts", two_hosts.HOSTS[host], *roles)
            self.assertEqual(status, 0, said)
        here = self.listen("certs-a")
        there = self.join("certs-b")
        self.assertEqual([here.wait(), there.wait()], [0, 0])
        self.assertTrue(here.told("note", text=f"listening on {self.where}, encrypted"))
        self.assertGreater(self.accuracy(here), 0.7)

    def test_kills(self):
        here = self.start("--listen", self.where, *self.tls("good"), "--here", "server:0,worker:0",
                          "--checkpoint", self.home / "checkpoints", "--checkpoint-every", "200ms",
                          "--epochs", 2, prefix=self.on["a"], name="a",
                          common=(*self.common[:2], *self.common[4:]))
        there = self.start("--join", self.where, *self.tls("good"), "--here", "worker:1",
                           "--epochs", 2, prefix=self.on["b"], name="b",
                           common=(*self.common[:2], *self.common[4:]))
        here.await_event("checkpoint_committed", checkpoint=1)
        self.assertTrue(here.kill("server", 0))
        here.await_event("member_rejoined", member="server 0")
        self.assertTrue(here.kill("coordinator", 0))
        here.await_event("coordinator_back")
        self.assertEqual([here.wait(), there.wait()], [0, 0])

    def test_another_authority(self):
        here = self.refused("another authority", "other",
                            "showed a certificate that is of another authority than ca.pem",
                            "does not accept our certificate: it is of another authority")
        there = self.join("good", "right")  # The job is unharmed.
        self.assertEqual([here.wait(), there.wait()], [0, 0])

    def test_no_certificate(self):
        self.refused("--tls there, plain text here", None, "speaks TLS.*--tls DIR",
                     "does not speak TLS 1.3")

    def test_plain_listener(self):
        self.refused("plain text there, --tls here", "good", "does not speak TLS 1.3",
                     "speaks TLS", listening=None)

    def test_an_address_that_the_certificate_lacks(self):
        run = self.start("--listen", self.where, *self.tls("elsewhere"), prefix=self.on["a"])
        self.assertEqual(run.wait(10), 1)
        self.assertEqual(len(run.err.splitlines()), 1, run.err)
        self.assertRegex(run.err, "coordinator.pem is for 10.99.0.1, .*not for 10.203.77.1")
        self.note("--tls elsewhere --listen " + self.where, run.err.strip(), "-")


class Peers(Tls, cluster.ClusterTest):
    """A job on this host, whose port gets bytes that no process of Troupe would send."""
    common = ("--model", "softmax", "--epochs", 1)

    def setUp(self):
        super().setUp()
        self.make_certificates()

    def begin(self):
        run = self.start("--tls", self.home / "good", "--listen", "127.0.0.1:0",
                         *cluster.slow([20] * 4))
        run.await_event("training_started")
        where = json.loads((run.directory / "cluster.json").read_text())["coordinator"]
        return run, int(where.rpartition(":")[2])

    def context(self, protocol, certificates, role="observer"):
        made = ssl.SSLContext(protocol)
        made.check_hostname = False
        made.verify_mode = ssl.CERT_REQUIRED
        made.load_verify_locations(self.home / "good/ca.pem")
        if certificates:
            files = [self.home / certificates / f"{role}.{kind}" for kind in ("pem", "key")]
            made.load_cert_chain(*files)
        return made

    def knock(self, port, certificates, said=b"", role="observer"):
        """Connects as such a peer; returns the answer and the text of the error, if any."""
        context = self.context(ssl.PROTOCOL_TLS_CLIENT, certificates, role)
        heard = b""
        with socket.create_connection(("127.0.0.1", port), timeout=10) as bare:
            try:
                with context.wrap_socket(bare) as peer:
                    if said:
                        peer.sendall(said)
                    while True:
                        part = peer.recv(4096)
                        if not part:
                            return heard
                        heard += part
            except OSError as why:
                return heard + str(why).encode()

    def capture(self):
        """Returns the first bytes that a process of a joining host sends."""
        with socket.create_server(("127.0.0.1", 0)) as door:
            door.settimeout(10)
            run = self.start("--join", f"127.0.0.1:{door.getsockname()[1]}", "--here", "worker:0")
            peer, _ = door.accept()
            with peer:
                peer.settimeout(10)
                said = peer.recv(4096)
        run.end()
        return said

    def test_strange_peers(self):
        said = self.capture()
        other_secret = bytearray(said)
        struct.pack_into("<Q", other_secret, SECRET, 12345)
        run, port = self.begin()
        cases = [
            ("an expired certificate", "old", b"", "observer",
             "showed a certificate that expired on", b"expired"),
            ("no certificate", None, b"", "observer", "showed no certificate", b"certificate"),
            ("a certificate of another authority", "other", b"", "observer",
             "showed a certificate that is of another authority than ca.pem", b"unknown ca"),
            ("a certificate for another role", "good", said, "server",
             "with a certificate for server", b"with a certificate for server"),
            ("another secret of the job", "good", bytes(other_secret), "observer",
             "belongs to another job, or to another run", b"or to another run of this one"),
        ]
        for case, certificates, words, role, log, there in cases:
            with self.subTest(case):
                heard = self.knock(port, certificates, words, role)
                self.assertIn(there, heard)
                text = "".join(chr(x) if 32 <= x < 127 else " " for x in heard)
                self.note(case, " ".join(text.split()), self.log_of(run, log))
        self.assertEqual(run.wait(), 0)
        self.assert_untold(run, *cluster.LOSSES)

    def test_an_expired_acceptor(self):
        """A joining host meets a coordinator whose certificate has expired."""
        context = self.context(ssl.PROTOCOL_TLS_SERVER, "old", "coordinator")
        with socket.create_server(("127.0.0.1", 0)) as door:
            door.settimeout(10)
            run = self.start("--tls", self.home / "good", "--join",
                             f"127.0.0.1:{door.getsockname()[1]}", "--here", "worker:0")
            bare, _ = door.accept()
            with self.assertRaises(ssl.SSLError) as said:
                context.wrap_socket(bare, server_side=True).recv(4096)
            bare.close()
            other, _ = door.accept()  # The connection of the worker or of the launcher.
            with self.assertRaises(ssl.SSLError):
                context.wrap_socket(other, server_side=True).recv(4096)
            other.close()
        self.assertEqual(run.wait(20), 1)
        self.assertRegex(run.err, "showed a certificate that expired on")
        self.assertEqual(len(run.err.splitlines()), 1, run.err)
        self.note("an expired certificate of the coordinator", run.err.strip(), said.exception)

    # -- errors in a process's own certificates --

    def refused(self, directory, pattern, *words, status=1):
        run = self.start("--tls", directory, *words)
        self.assertEqual(run.wait(10), status)
        self.assertEqual(len(run.err.splitlines()), 1, run.err)
        self.assertRegex(run.err, pattern)
        self.note(f"--tls {directory.name} {' '.join(words)}", run.err.strip(), "-")

    def test_own_certificates(self):
        self.refused(self.home / "missing", "cannot read .*missing/ca.pem: No such file")
        self.refused(self.home / "old", "old/.*pem expired on ")
        mixed = self.home / "mixed"
        shutil.copytree(self.home / "good", mixed)
        shutil.copy(self.home / "good/server.pem", mixed / "worker.pem")
        shutil.copy(self.home / "good/server.key", mixed / "worker.key")
        self.refused(mixed, "worker.pem is a certificate for server, not for worker")
        shutil.copy(self.home / "other/worker.pem", mixed / "worker.pem")
        self.refused(mixed, "worker.key is not the key of .*worker.pem")
        shutil.copy(self.home / "other/worker.key", mixed / "worker.key")
        self.refused(mixed, "worker.pem is of another authority than ca.pem")
        (mixed / "worker.key").unlink()
        self.refused(mixed, "cannot read .*worker.key: No such file")
        (mixed / "coordinator.key").unlink()  # A host that joins needs no coordinator key.
        self.refused(mixed, "cannot read .*worker.key: No such file", "--join", "127.0.0.1:1",
                     "--here", "worker:0")

    def test_plain_text_on_the_network_is_refused(self):
        for words in ("--listen 203.0.113.9:4000", "--join 203.0.113.9:4000 --here worker:0"):
            run = self.start(*words.split())
            self.assertEqual(run.wait(10), 2)
            self.assertRegex(run.err, "needs --tls DIR .*or --allow-plaintext-on-network")
            self.note(words, run.err.strip(), "-")


def tearDownModule():
    if cluster.arguments.table:
        print("\n| case | this side said | the other side said |\n|---|---|---|")
        for row in table:
            print("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |")


if __name__ == "__main__":
    options = cluster.parser(__doc__)
    options.add_argument("--table", action="store_true", help="also print all as a table")
    cluster.main(options=options)

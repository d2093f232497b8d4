"""Checks that bad command lines, files and peers get one helpful line, and neither crash nor harm
a job. --table prints each input with its answer.
"""
import gzip
import json
import os
import pathlib
import pickle
import random
import re
import shutil
import signal
import socket
import struct
import subprocess
import time
import unittest
import zipfile

import cluster

LONG = "d" * 300  # Longer than the name of a file may be.

# (words, exit status, pattern of the single line). {home} is the test's directory.
COMMAND_LINES = [
    ("--nonsense", 2, "--nonsense"),
    ("--epoch 2", 2, "no option '--epoch'; did you mean '--epochs'"),
    ("surplus", 2, "surplus"),
    ("--workers 0", 2, "--workers"),
    ("--workers many", 2, "--workers"),
    ("--workers", 2, "--workers"),
    ("--servers 0", 2, "--servers"),
    ("--servers 1000", 2, "--servers"),
    ("--sync fast", 2, "bsp, ssp:S"),
    ("--sync ssp", 2, "bsp, ssp:S"),
    ("--sync ssp:-1", 2, "bsp, ssp:S"),
    ("--sync ssp:2000000", 2, "bsp, ssp:S"),
    ("--optimizer rmsprop", 2, "sgd, momentum, adagrad"),
    ("--epochs 3 --epochs 4", 2, "--epochs is given 2 times: give it once"),
    ("--sync bsp --push-memory 3", 2, "--push-memory has no effect: model goes by clocks"),
    ("--lr 0", 2, "--lr: '0' is not a number above 0"),
    ("--lr nan", 2, "--lr"),
    ("--lr fast", 2, "--lr"),
    ("--momentum 1", 2, "--momentum"),
    ("--weight-decay -1", 2, "--weight-decay"),
    ("--clip-norm -1", 2, "--clip-norm"),
    ("--clip-value x", 2, "--clip-value"),
    ("--compress gzip", 2, "'gzip' is none of f32, fp16, bf16, int8, onebit, topk:FRACTION"),
    ("--compress topk:0", 2, "topk needs the fraction of elements to send, above 0 and at most 1"),
    ("--compress topk:2", 2, "topk needs the fraction of elements to send"),
    ("--compress nosuch=int8", 2, "--compress: the job has no table 'nosuch'"),
    ("--threads --compress nosuch=int8", 2, "--compress: the job has no table 'nosuch'"),
    ("--compress-pulls topk:0.1", 2, "'topk:0.1' is none of fp16, bf16 and int8"),
    ("--sync hogwild --compress fp16", 2, "sends nothing: leave out --compress"),
    ("--compress fp16 --record {home}/x", 2, "leave out --compress"),
    ("--batch 0", 2, "--batch"),
    ("--epochs 0", 2, "--epochs"),
    ("--seed -1", 2, "--seed"),
    ("--partitions 0", 2, "--partitions"),
    ("--partitions 3", 2, "power of two"),
    ("--checkpoint-every 2h", 2, "ms, s or m"),
    ("--checkpoint-every 0s", 2, "ms, s or m"),
    ("--checkpoint-keep 0", 2, "--checkpoint-keep"),
    ("--epochs 1 --epochs 2", 2, "--epochs"),
    ("--model forest", 2, "softmax, mlp"),
    ("--model mlp:0", 2, "softmax, mlp"),
    ("--model mlp:16,x", 2, "softmax, mlp"),
    ("--sparse", 2, "--sparse needs sparse data, libsvm:TRAIN,TEST, not 'digits'"),
    ("--listen here", 2, "host:port"),
    ("--listen 127.0.0.1:70000", 2, "--listen"),
    ("--listen 203.0.113.9:4000", 2, "--listen 203.0.113.9:4000 needs --tls DIR"),
    ("--listen 203.0.113.9:4000 --allow-plaintext-on-network", 1,
     "cannot listen on 203.0.113.9:4000"),
    ("--listen 0:4000 --allow-plaintext-on-network", 2, "--listen needs the address"),
    ("--listen [0::0]:4000 --allow-plaintext-on-network", 2, "--listen needs the address"),
    ("--join host-a:4000 --here worker:0", 2, "--join host-a:4000 needs --tls DIR"),
    ("--tls {home}/missing", 1, "cannot read .*missing/ca.pem: No such file"),
    ("--tls {home}/" + LONG, 1, "cannot read .*d/ca.pem: File name too long$"),
    ("--resume --checkpoint {home}/" + LONG, 1, "no checkpoint to resume .* there is no .*d$"),
    ("--tls {home}/empty --allow-plaintext-on-network", 2, "choose one"),
    ("--threads --tls {home}/empty", 2, "no links to encrypt"),
    ("--join 127.0.0.1:4000", 2, "--join needs --here"),
    ("--here worker", 2, "NAME:INDEX"),
    ("--here coordinator:0", 2, "--here"),
    ("--here server:7", 2, "no server 7"),
    ("--here worker:0,worker:0", 2, "twice"),
    ("--processes --sync hogwild", 2, "use --threads"),
    ("--processes --threads", 2, "--threads"),
    ("--sync hogwild --checkpoint {home}/x", 2, "leave out"),
    ("--threads --kill worker:0@1", 2, "--threads is one process: leave out --kill"),
    ("--threads --listen 127.0.0.1:0", 2, "--listen"),
    ("--threads --run-dir {home}/x", 2, "leave out --run-dir"),
    ("--threads --checkpoint-every 1s", 2, "without --checkpoint DIR: leave out --checkpoint-every"),
    ("--threads --checkpoint-keep 2", 2, "without --checkpoint DIR: leave out --checkpoint-keep"),
    ("--sync hogwild --servers 3", 2, "leave out --servers"),
    ("--sync hogwild --kill worker:0@1", 2, "--sync hogwild is one process: leave out --kill"),
    ("--sync hogwild --listen 127.0.0.1:0", 2, "--sync hogwild is one process"),
    ("--sync hogwild --apply-batch 4", 2, "has no effect: model is shared memory"),
    ("--sync bsp --apply-batch 4", 2, "leave out --apply-batch"),
    ("--sync ssp:3 --pull-ahead 1", 2, "--sync ssp:3 waits .*leave out --pull-ahead"),
    ("--listen 127.0.0.1:0 --here worker:9", 2, "no worker 9, only 0 to 3"),
    ("--join 127.0.0.1:1 --here worker:0 --report {home}/r.json", 2,
     "another host started: leave out --report"),
    ("--join 127.0.0.1:1 --here worker:0 --export {home}/p.npz", 2,
     "another host started: leave out --export"),
    ("--join 127.0.0.1:1 --here worker:0 --import {home}/p.npz", 2,
     "another host started: leave out --import"),
    ("--join 127.0.0.1:1 --here worker:0 --resume --checkpoint {home}/x", 2,
     "another host started: leave out --resume"),
    ("--kill worker:0", 2, "NAME:INDEX@SECONDS"),
    ("--kill worker:9@1", 2, "only workers 0 to 3"),
    ("--workers 2 --", 2, "-- is not used"),
    ("--threads --import {home}/x.npz", 1, "cannot open .*x.npz"),
    ("--slow 0", 2, "WORKER:MILLISECONDS"),
    ("--slow 9:5", 2, "no worker 9"),
    ("--stragglers shoot", 2, "'shoot' is none of off, warn, rebalance, demote, evict"),
    ("--threads --stragglers evict", 2, "cannot start a worker again: use --stragglers demote"),
    ("--sync hogwild --stragglers rebalance", 2, "use --stragglers warn or off"),
    ("--straggler-time-scale 0", 2, "--straggler-time-scale"),
    ("--straggler-time-scale nan", 2, "--straggler-time-scale"),
    ("--replicas 3", 2, "--replicas 3 needs as many --servers, not 2"),
    ("--durability disk", 2, "memory or log, not 'disk'"),
    ("--threads --durability log", 2, "leave out --durability"),
    ("--log-level loud", 2,
     "the log level is trace, debug, info, warn, error or off, not 'loud'"),
    ("--until 3", 2, "--until requires --replay"),
    ("--replay {home}/missing", 1, "no record of a run: .*missing"),
    ("--replay {home}/empty --until -1", 2, "--until: '-1' is not a number from 0 on "),
    ("--backup-workers 1", 2, "--backup-workers needs --sync bsp"),
    ("--sync ssp:3 --backup-workers 1", 2, "--backup-workers needs --sync bsp"),
    ("--sync bsp --workers 2 --backup-workers 3", 2, "at most --workers .2., not 3"),
    ("--sync bsp --backup-workers -1", 2, "--backup-workers"),
    ("--sync bsp --backup-workers 1 --slow 5:5", 2, "no worker 5, only 0 to 4"),
    ("--resume", 2, "--resume needs --run-dir DIR or --checkpoint"),
    ("--resume --threads", 2, "--resume needs --checkpoint DIR"),
    ("--resume --checkpoint {home}/x --import {home}/p.npz", 2, "choose one"),
    ("--resume --checkpoint {home}/missing", 1, "there is no .*missing"),
    ("--resume --checkpoint {home}/empty", 1, "no usable checkpoint in .*empty"),
    ("--import {home}/missing.npz", 1, "cannot open .*missing.npz"),
    ("--import {home}/bad.csv", 2, "wanted .npy, .npz or .safetensors"),
    ("--report {home}/missing/r.json", 1, "cannot write .*missing/r.json: No such"),
    ("--report {home}/empty", 1, "it is a directory"),
    ("--export {home}/missing/p.npz", 1, "cannot write .*missing/p.npz.*: No such"),
    ("--export {home}/p.txt", 2, "wanted .npy, .npz or .safetensors"),
    ("--export {home}/s.npz --report {home}/s.npz", 2, "--report and --export are both .*s.npz"),
    ("--export {home}/s.npz --report {home}/s.npz --dry-run", 2, "--report and --export are both"),
    ("--export {home}/one.npz --report {home}/other", 2, "--report and --export are both .*one.npz"),
    ("--threads --events {home}/one.npz --report {home}/other", 2, "--report and --events are both"),
    ("--export {home}/s.npz --report {home}/s.npz --sync allreduce", 2, "--report and --export are"),
    ("--replay {home}/empty --export {home}/ok.csv", 2, "wanted .npy, .npz or .safetensors"),
    ("--data csv:{home}/ok.csv,{home}/ok.csv --report {home}/ok.csv", 2,
     "--report .*ok.csv would overwrite a file that is read"),
    ("--export {home}/" + "q" * 300 + ".npz", 1, "cannot write .*File name too long"),
    ("--listen 224.0.0.1:0 --allow-plaintext-on-network", 2, "--listen needs the address"),
    ("--export {home}/p.npy", 2, "a .npy file holds one tensor and the model has 4: use .npz"),
    ("--threads --export {home}/p.npy", 2, "a .npy file holds one tensor and the model has 4"),
    ("--checkpoint {home}/bad.csv/x", 1, "cannot write to the directory"),
    ("--checkpoint /proc/x", 1, "cannot write to the directory"),
    ("--run-dir {home}/bad.csv/x", 1, "cannot write to the directory"),
    ("--data stars", 2, "known: digits, mnist"),
    ("--data mnist:{home}/missing", 1, "no such file: .*missing"),
    ("--data mnist:{home}/cut", 1, "end too early in .*train-images-idx3-ubyte.gz"),
    ("--data mnist:{home}/garbage", 1, "magic number"),
    ("--data mnist:{home}/pages", 1, "train-labels-idx1-ubyte.gz is an HTML page, not the file"),
    ("--data csv:{home}/page.npz,{home}/ok.csv", 1, "page.npz is an HTML page, not the file itself"),
    ("--data libsvm:{home}/list.npz,{home}/list.npz", 1, "list.npz is a JSON text"),
    ("--data csv:{home}/old.safetensors,{home}/ok.csv", 1, "is a pickle of Python .*: load it in"),
    ("--data libsvm:{home}/bad.svm,{home}/bad.svm", 1, "bad.svm line 2"),
    ("--data csv:{home}/bad.csv,{home}/bad.csv", 1, "2 columns instead of 3 .*bad.csv line 2"),
    ("--data csv:{home}/bad.csv", 2, "TRAIN,TEST"),
    ("--data csv:/dev/stdin,/dev/stdin", 1, "cannot read /dev/stdin: it is .*every process"),
    ("--data libsvm:{home}/pipe,{home}/pipe", 1, "cannot read .*pipe: it is a pipe"),
    ("--data csv:{home}/data.zst,{home}/data.zst", 1, "data.zst is zstd: unpack it first"),
    ("--data csv:{home}/lfs,{home}/lfs", 1, "lfs is a git-lfs pointer, not the file itself: fetch"),
    ("--data libsvm:{home}/lfs,{home}/lfs", 1, "lfs is a git-lfs pointer"),
    ("--data mnist:{home}/pointers", 1, "train-labels-idx1-ubyte is a git-lfs pointer"),
    ("--import {home}/lfs.npz", 1, "lfs.npz is a git-lfs pointer"),
    ("--import {home}/lfs.safetensors", 1, "lfs.safetensors is a git-lfs pointer"),
    ("--import {home}/page.npz", 1, "page.npz is an HTML page, not the file itself: download"),
    ("--import {home}/list.npz", 1, "list.npz is a JSON text$"),
    ("--import {home}/none.safetensors", 1, "none.safetensors is empty$"),
    ("--import {home}/packed.safetensors", 1, "packed.safetensors is gzip: unpack it first$"),
    ("--import {home}/old.safetensors", 1, "is a pickle of Python .*: load it in Python and save"),
    ("--import {home}/torch.npz", 1, "torch.npz is a zip with a pickle of Python, as torch.save"),
    ("--import {home}/pipe.npz", 1, "cannot read .*pipe.npz: it is a pipe"),
    ("--label kind", 2, "--label needs CSV data, csv:TRAIN,TEST, not 'digits'"),
    ("--zero-based", 2, "--zero-based needs LIBSVM data, libsvm:TRAIN,TEST, not 'digits'"),
    ("--coordinator-store http://127.0.0.1:1", 2, "is not etcd://HOST:PORT"),
    ("--coordinator-store etcd://127.0.0.1:1", 1, "etcd at 127.0.0.1:1 cannot be reached"),
    ("--standbys 1", 2, "--standbys needs --coordinator-store"),
    ("--join nowhere.invalid:1 --here worker:0 --allow-plaintext-on-network", 1,
     "cannot resolve 'nowhere.invalid'"),
    ("--join 127.0.0.1:1 --here worker:0", 1, "no job answers at 127.0.0.1:1"),
    ("--join 127.0.0.1:0 --here worker:0", 2, "--join needs the port"),
]

table = []


def idx(magic, *sizes):
    return struct.pack(f">{1 + len(sizes)}I", magic, *sizes)


class BadInput(cluster.ClusterTest):
    seconds = 60
    small = ("--model", "softmax", "--epochs", 1)
    joint = (*small, "--workers", 2, "--servers", 2)

    def note(self, words, run, line):
        table.append((str(words).replace(str(self.home), "DIR"), run.launcher.poll(),
                      line.replace(str(self.home), "DIR")))

    def refused(self, words, status, pattern, seconds=40):
        """Checks that the program ends soon, with one line and this status."""
        words = words.split() if isinstance(words, str) else [str(word) for word in words]
        home = f"run{len(self.runs)}"
        run = cluster.Run(self.home, home, [cluster.arguments.programs / self.program, *words])
        self.runs.append(run)
        self.assertEqual(run.wait(seconds), status)
        lines = run.err.splitlines()
        self.assertEqual(len(lines), 1, run.err)
        self.assertRegex(lines[0], pattern)
        self.assertLess(len(lines[0]), 500)
        self.note(" ".join(words), run, lines[0])
        return run

    def cluster_text(self, run):
        file = run.directory / "cluster.json"
        return cluster.poll(lambda: file.exists() and file.read_text(), 20, "cluster.json")

    def write_bad_files(self):
        (self.home / "empty").mkdir()
        (self.home / "bad.csv").write_text("1,2,a\n1,b\n")
        (self.home / "ok.csv").write_text("1,2,a\n1,3,b\n2,3,a\n")
        (self.home / "bad.svm").write_text("1 1:0.5\n-1 2:x\n")
        (self.home / "data.zst").write_bytes(b"\x28\xb5\x2f\xfd" + bytes(9))
        for name in "pipe", "pipe.npz":
            os.mkfifo(self.home / name)
        for name in "cut", "garbage", "pages", "pointers":
            (self.home / name).mkdir()
        for name in "lfs", "lfs.npz", "lfs.safetensors", "pointers/train-labels-idx1-ubyte":
            (self.home / name).write_text("version https://git-lfs.github.com/spec/v1\n"
                                          f"oid sha256:{'4d7a' * 16}\nsize 12345\n")
        labels = idx(2049, 100) + bytes(100)
        images = gzip.compress(idx(2051, 100, 28, 28) + random.Random(1).randbytes(78400))
        (self.home / "cut/train-labels-idx1-ubyte.gz").write_bytes(gzip.compress(labels))
        (self.home / "cut/train-images-idx3-ubyte.gz").write_bytes(images[:len(images) // 2])
        (self.home / "garbage/train-labels-idx1-ubyte").write_bytes(b"GIF89a" * 40)
        (self.home / "one.npz").write_bytes(b"")
        os.link(self.home / "one.npz", self.home / "other")
        page = b"<!DOCTYPE html>\n<html><title>Not found</title></html>\n"
        (self.home / "pages/train-labels-idx1-ubyte.gz").write_bytes(page)
        (self.home / "page.npz").write_bytes(page)
        (self.home / "list.npz").write_text('{"error": "Unauthorized"}\n')
        (self.home / "none.safetensors").write_bytes(b"")
        (self.home / "packed.safetensors").write_bytes(gzip.compress(bytes(100)))
        (self.home / "old.safetensors").write_bytes(pickle.dumps({"w": [1.0]}, protocol=2))
        with zipfile.ZipFile(self.home / "torch.npz", "w") as archive:
            archive.writestr("archive/data.pkl", pickle.dumps({"w": [1.0]}, protocol=2))
            archive.writestr("archive/data/0", bytes(4))

    def test_command_lines(self):
        self.write_bad_files()
        for words, status, pattern in COMMAND_LINES:
            with self.subTest(words):
                refused = self.refused_traceless if "--export" in words else self.refused
                refused(words.format(home=self.home), status, pattern)

    def test_empty_names_of_files(self):
        for option in "--report", "--export", "--events", "--import", "--checkpoint", "--run-dir":
            with self.subTest(option):
                self.refused([option, ""], 2, f"{option}: the name of the file or directory is empty")

    def test_words_without_a_value(self):
        for words, fault in ((["", "--threads"], "an argument is empty"),
                             (["--threads", ""], "an argument is empty"),
                             (["--seed", "1", ""], "an argument is empty"),
                             (["--checkpoint=", "--resume"], "--checkpoint= has no value")):
            with self.subTest(words):
                self.refused(words, 2, fault)

    def test_the_version(self):
        wanted = re.search(r"VERSION ([\d.]+) ", (cluster.ROOT / "CMakeLists.txt").read_text()
                           .partition("project(")[2])[1]
        for name in "async_sgd", "fit_line", "troupe":
            done = subprocess.run([cluster.arguments.programs / name, "--version"], text=True,
                                  capture_output=True, timeout=30, check=False)
            self.assertEqual((done.returncode, done.stdout, done.stderr),
                             (0, f"{name} (Troupe {wanted})\n", ""))

    def test_unusual_but_right(self):
        for words in "--batch 70000 --workers 2", "--batch 20000 --workers 8":
            run = self.finish(*words.split(), common=self.small)
            self.assertEqual(run.err, "")
            self.note(words, run, run.out.splitlines()[-1])

    def test_output_that_cannot_be_written(self):
        export = self.home / "p.npz"
        words = [cluster.arguments.programs / self.program, *map(str, self.small), "--processes",
                 "--run-dir", self.home / "run", "--export", export]
        with open("/dev/full", "w") as full:
            done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True,
                                  check=False, timeout=60)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr,
                         "^async_sgd: cannot write its output: No space left on device\n$")
        self.assertTrue(export.exists())  # The job itself succeeded.

    def test_port_in_use(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            self.refused(f"--listen 127.0.0.1:{port}", 1, "Address already in use")

    def test_more_members_than_full_partitions(self):
        """A model of few values leaves most partitions empty, yet each chain gets a full one."""
        for words in ("--servers 4 --partitions 4", "--servers 4 --partitions 4 --threads",
                      "--servers 4 --partitions 4 --simulate", "--shards 62",
                      "--servers 64 --threads", "--servers 16"):
            with self.subTest(words):
                run = self.finish(*words.split(), common=self.small, processes=False)
                self.assertIn("after 1 of 1 epochs", run.out)
                self.note(words, run, run.out.splitlines()[-1])

    def test_an_address_that_no_other_host_reaches_is_told(self):
        run = self.finish("--listen", "127.0.1.1:0", common=self.small)
        told = re.compile(r"^listening on 127\.0\.1\.1:\d+, which no other host can reach")
        self.assertTrue(run.told("note", text=told))
        right = self.finish("--listen", "127.0.0.1:0", common=self.small)
        self.assert_untold(right, "note", text=re.compile("can reach"))

    def test_parameters_for_threads_need_no_directory(self):
        parameters = self.home / "p.npz"
        self.finish("--threads", "--export", parameters, common=self.small, processes=False)
        words = ("--threads", "--import", parameters, "--events", "events.jsonl")
        run = self.finish(*words, common=self.small, processes=False)
        told = [x["text"].removeprefix("checkpoints in ")
                for x in run.told("note", text=re.compile(r"^checkpoints in runs/\S+$"))]
        self.assertTrue(told and (run.home / told[0]).is_dir(), run.out)
        named = self.finish(*words, "--run-dir", self.home / "named", common=self.small,
                            processes=False)
        where = self.home / "named/checkpoints"
        self.assertTrue(named.told("note", text=f"checkpoints in {where}"))
        self.refused(f"--threads --import {parameters} --checkpoint {self.home / 'c'} "
                     f"--run-dir {self.home / 'r'}", 2, "leave out --run-dir")

    def test_a_server_joins_with_another_checkpoint_directory(self):
        main = self.start("--listen", "127.0.0.1:0", "--here", "worker:0,worker:1,server:0",
                          "--checkpoint", self.home / "shared", common=self.joint)
        where = re.search(r'"coordinator":"([^"]+)"', self.cluster_text(main))[1]
        join = ("--join", where, "--here", "server:1", "--checkpoint")
        self.refused([*self.joint, *join, self.home / "mine"], 1,
                     "--checkpoint .*mine is not the directory of the main host")
        self.assertIsNone(main.launcher.poll())
        right = self.start(*join, self.home / "shared", common=self.joint)
        self.assertEqual([main.wait(60), right.wait(60)], [0, 0])
        self.assertIn("after 1 of 1 epochs", main.out)

    # -- checkpoints --

    def write_checkpoints(self):
        where = self.home / "checkpoints"
        self.finish("--checkpoint", where, "--checkpoint-every", "300ms", "--slow", "0:20",
                    "--slow", "1:20", "--slow", "2:20", "--slow", "3:20", common=self.small)
        numbers = sorted(path.name for path in (where / "checkpoints").iterdir())
        self.assertGreaterEqual(len(numbers), 2)
        return where, numbers

    def flip_a_bit(self, checkpoint, bit=1):
        path = max(checkpoint.glob("chain-*/*.sst"), key=lambda file: file.stat().st_size)
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= bit
        path.chmod(0o600)
        path.write_bytes(data)

    def refused_traceless(self, words, status, pattern):
        run = self.refused(words, status, pattern)
        self.assertEqual([path.name for path in run.home.glob("runs/*")], [])

    def test_checkpoints(self):
        where, numbers = self.write_checkpoints()
        small = " ".join(map(str, self.small))
        self.refused_traceless(f"{small} --checkpoint {where}", 1, "holds checkpoints .* --resume")
        self.refused_traceless(f"--model mlp:8 --epochs 1 --checkpoint {where} --resume", 1,
                               "belongs to another model: .* 784x10 there and 784x8 here")
        self.flip_a_bit(where / "checkpoints" / numbers[-1])
        run = self.finish("--checkpoint", where, "--resume", common=self.small)
        told = run.told("note", text=re.compile("is damaged"))
        self.assertTrue(told)
        self.assertIn(f"checkpoint {int(numbers[-1])} ", told[0]["text"])
        self.note("--resume, a bit flipped in the newest checkpoint", run, told[0]["text"])
        for path in (where / "checkpoints").iterdir():
            self.flip_a_bit(path, 2)
        self.refused_traceless(f"{small} --checkpoint {where} --resume", 1, "no usable checkpoint")
        for path in (where / "checkpoints").iterdir():
            shutil.rmtree(path)
            path.write_text("not even a folder")
        self.refused_traceless(f"{small} --checkpoint {where} --resume", 1, "no usable checkpoint")

    def test_what_an_earlier_run_left_without_a_checkpoint(self):
        """A coordinator that resumed from these files would wait 10 s for its members."""
        where = self.home / "checkpoints"
        run = self.start("--checkpoint", where, "--checkpoint-every", "60s", "--slow", "0:50",
                         common=self.small)
        run.await_event("training_started")
        run.end()
        self.assertTrue((where / "coordinator").exists())
        shutil.rmtree(where / "checkpoints", ignore_errors=True)
        again = self.finish("--checkpoint", where, common=self.small)
        self.assert_untold(again, "coordinator_restarted")

    def test_directory_in_use(self):
        where = self.home / "checkpoints"
        run = self.start("--checkpoint", where, *cluster.slow([50] * 4), common=())
        run.await_event("training_started")
        self.refused(["--checkpoint", where], 1, "in use|another")
        self.refused(["--checkpoint", where, "--resume"], 1, "in use|another")
        self.refused(["--run-dir", run.directory, "--checkpoint", self.home / "other"], 1,
                     "another process uses the directory: .*/run, pid")
        run.signal(signal.SIGINT)
        self.assertEqual(run.wait(), 130)

    def mount(self, size, name):
        """Mounts a disk that is soon full; skips the test if that is not permitted."""
        if os.geteuid() != 0:
            self.skipTest("mounts a file system: needs root")
        where = self.home / name
        where.mkdir(parents=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", where], check=True)
        self.addCleanup(subprocess.run, ["umount", "-l", where], check=True)
        self.addCleanup(self.end_runs)
        return where

    def test_full_disk(self):
        checkpoints, log = self.mount("3m", "checkpoints"), self.mount("24m", "log")
        for words, pattern in (
                (("--checkpoint", checkpoints / "c", "--checkpoint-every", "200ms"),
                 "the last checkpoint cannot be written: .*No space left"),
                (("--durability", "log", "--checkpoint", log / "c", "--checkpoint-every", "300s"),
                 r"server \d: cannot write .*/log-\d+: No space left")):
            run = self.start("--model", "mlp:256", "--epochs", 1, *words, common=())
            self.assertEqual(run.wait(), 1)
            lines = run.err.splitlines()
            self.assertEqual(len(lines), 1, run.err)
            self.assertRegex(lines[0], pattern)
            self.note("a full disk: " + words[0], run, lines[0])

    def test_full_disk_of_one_server(self):
        """The other server holds the same data."""
        self.mount("12m", "c/servers/1")
        run = self.finish("--model", "mlp:256", "--epochs", 1, "--replicas", 2, "--durability",
                          "log", "--checkpoint", self.home / "c", "--checkpoint-every", "300s",
                          common=())
        told = run.told("server_removed", member="server 1", reason=re.compile("^cannot write "))
        self.assertEqual(len(told), 1, run.out)
        self.assertRegex(told[0]["reason"], r"/servers/1/chain-\d/log-\d+: No space left")
        self.assertTrue(run.told("batches_applied"))
        self.note("a full disk of one of two servers", run, told[0]["text"])

    def test_full_disk_for_what_is_not_needed(self):
        """A run goes on without its record, and completes before its report fails."""
        record, report = self.mount("128k", "record"), self.mount("64k", "report")
        run = self.finish("--epochs", 10, "--record", record / "r", common=("--model", "softmax"))
        self.assertTrue(run.told("note", text=re.compile(
            r"^server \d: the record of this run ends here: cannot write .*: No space left")))
        self.refused(["--model", "softmax", "--replay", record / "r"], 1, "no record names")
        (report / "fill").write_bytes(bytes(64 << 10))
        run = self.refused([*self.small, "--report", report / "r.json",
                            "--events", self.home / "events.jsonl"], 1,
                           r"cannot write .*r.json: No space left on device$", seconds=30)
        self.assertTrue(run.told("batches_applied"))

    def test_inputs_that_a_dry_run_cannot_read(self):
        for words, line in (
                (("--import", "none.npz"), "cannot read none.npz: No such file or directory"),
                (("--replay", "none"), "cannot read none/job: No such file or directory"),
                (("--resume", "--checkpoint", LONG),
                 f"no checkpoint to resume from: there is no {LONG}"),
                (("--resume", "--run-dir", "none"),
                 "no checkpoint to resume from: there is no none/checkpoints")):
            done = subprocess.run([cluster.arguments.programs / "async_sgd", "--dry-run", *words],
                                  cwd=self.home, capture_output=True, text=True, timeout=30,
                                  check=False)
            self.assertEqual((done.returncode, done.stderr), (1, f"async_sgd: {line}\n"))

    def test_events_that_cannot_be_written(self):
        run = self.start(*self.small, "--events", "/dev/full", processes=False)
        self.assertEqual(run.wait(), 0, run.err)
        self.assertEqual(run.out.count("cannot write /dev/full: No space left on device; events "
                                       "are missing in this file\n"), 1, run.out)

    def test_store_of_the_coordinator(self):
        where, _ = self.write_checkpoints()
        for path in (where / "coordinator/db").glob("*.log"):
            data = bytearray(path.read_bytes())
            data[len(data) // 2] ^= 255
            path.write_bytes(data)
        words = " ".join(map(str, (*self.small, "--resume", "--checkpoint", where)))
        self.refused(words, 1, "coordinator: .*; once it is removed --resume begins with the check")
        shutil.rmtree(where / "coordinator")
        self.finish("--resume", "--checkpoint", where, common=self.small)

    # -- records --

    def test_records(self):
        whole = self.home / "whole"
        self.finish("--record", whole, common=self.small)
        names = sorted(path.name for path in whole.glob("*.pushes"))
        self.assertEqual(len(names), 2)
        half = (whole / names[0]).stat().st_size // 2

        def flipped(at):
            return lambda data: data[:at] + bytes([data[at] ^ 16]) + data[at + 1:]
        for damage, change, pattern in (
                ("a newer format", flipped(8), f"{names[0]}: format 17 of records is unknown"),
                ("a flipped bit", flipped(half), f"{names[0]}: record .* is damaged"),
                ("half of it", lambda data: data[:half], "version of shard 0 that no record names"),
                ("another file", lambda data: b"GIF89a" * 999, f"{names[0]}: no record of pushes"),
                ("nothing", lambda data: b"", "no server.s record has shard 0")):
            with self.subTest(damage):
                where = self.home / damage.replace(" ", "-")
                shutil.copytree(whole, where)
                (where / names[0]).write_bytes(change((whole / names[0]).read_bytes()))
                self.refused([*self.small, "--replay", where], 1, pattern)
        small = " ".join(map(str, self.small))
        self.refused(f"--model mlp:8 --epochs 1 --replay {whole}", 1, "another model")
        self.refused(f"{small} --replay {whole} --compare {self.home}/x.npz", 1,
                     "cannot read .*x.npz")
        self.refused(f"{small} --record {whole}", 1, "holds the record of another run")

    # -- peers --

    def capture_hello(self):
        """Returns the first bytes that a process of another job sends to its coordinator."""
        with socket.create_server(("127.0.0.1", 0)) as door:
            door.settimeout(10)
            run = self.start("--join", f"127.0.0.1:{door.getsockname()[1]}", "--here", "worker:0",
                             "--model", "mlp:8", common=())
            peer, _ = door.accept()
            peer.settimeout(10)
            hello = peer.recv(4096)
            peer.close()
        run.end()
        return hello

    def knock(self, port, *pieces):
        """Sends the pieces as a peer; returns the answer, empty if there is none."""
        with socket.create_connection(("127.0.0.1", port), timeout=10) as peer:
            try:
                for piece in pieces:
                    peer.sendall(piece)
                peer.shutdown(socket.SHUT_WR)
                return peer.recv(4096)
            except ConnectionError:
                return b""

    def test_strange_peers(self):
        hello = self.capture_hello()
        version = 8  # The offset behind the preamble's magic.
        header = pathlib.Path(__file__).parents[2] / "serialization/wire.hpp"
        present = re.search(r"protocol_version = (\d+);", header.read_text()).group(1)
        self.assertEqual(struct.unpack_from("<I", hello, version)[0], int(present))
        newer = bytearray(hello)
        struct.pack_into("<I", newer, version, 99)
        run = self.start(*cluster.slow([60] * 4), common=self.small)
        run.await_event("training_started")
        where = json.loads((run.directory / "cluster.json").read_text())["coordinator"]
        port = int(where.rpartition(":")[2])
        knocks = {
            "random bytes": random.Random(2).randbytes(3000),
            "GET / HTTP/1.1": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
            "a frame of 1 GiB": hello[:24] + struct.pack("<IIIIII", 16, 0, 1, 1 << 27, 1 << 27, 0),
            "another protocol version": bytes(newer),
            "another job": hello,
        }
        for name, said in knocks.items():
            with self.subTest(name):
                before = len(run.logs["coordinator"].splitlines())
                self.knock(port, said)

                def fresh():
                    return [line for line in run.logs["coordinator"].splitlines()[before:]
                            if "127.0.0.1:" in line]
                cluster.poll(fresh, 20, f"a log line about {name}")
                time.sleep(0.2)
                self.assertEqual(len(fresh()), 1, fresh())
                table.append((f"peer: {name}", "-", fresh()[0]))
        with socket.create_connection(("127.0.0.1", port), timeout=10):  # A silent peer.
            self.assertEqual(run.wait(), 0)
        self.assert_untold(run, *cluster.LOSSES)

    def test_join_with_another_model(self):
        where = f"127.0.0.1:{cluster.free_port()}"
        run = self.start("--listen", where, "--here",
                         "server:0,server:1,worker:0,worker:1,worker:2", common=self.small)
        run.await_event("member_joined", member="worker 2")
        self.refused(f"--model mlp:8 --epochs 1 --join {where} --here worker:3", 1, "another job")
        self.assertIsNone(run.launcher.poll())
        right = self.start("--join", where, "--here", "worker:3", common=self.small)
        self.assertEqual([run.wait(), right.wait()], [0, 0])

    def test_join_by_name_and_over_ipv6(self):
        port = cluster.free_port()
        ways = [(f"127.0.0.1:{port}", f"localhost:{port}")]
        if pathlib.Path("/proc/net/if_inet6").exists():
            ways.append((f"[::1]:{port}", f"[::1]:{port}"))
        for listen, join in ways:
            with self.subTest(join):
                main = self.start("--listen", listen, "--servers", 1, "--workers", 2,
                                  "--here", "worker:0", common=self.small)
                other = self.start("--join", join, "--servers", 1, "--workers", 2, "--here",
                                   "server:0,worker:1", "--checkpoint", main.directory /
                                   "checkpoints", common=self.small)
                self.assertEqual([main.wait(), other.wait()], [0, 0])

    def test_join_with_a_worker_that_runs_elsewhere(self):
        where = f"127.0.0.1:{cluster.free_port()}"
        run = self.start("--listen", where, "--slow", "0:20", "--slow", "1:20", "--slow", "2:20",
                         "--slow", "3:20", common=self.small)
        run.await_event("training_started")
        self.refused([*self.small, "--join", where, "--here", "worker:0"], 1,
                     ": worker 0 is already running elsewhere$", seconds=20)
        self.assertEqual(run.wait(), 0)


def tearDownModule():
    if cluster.arguments.table:
        print("\n| typed | status | came back |\n|---|---|---|")
        for row in table:
            print("| " + " | ".join(str(cell).replace("|", "\\|") for cell in row) + " |")


if __name__ == "__main__":
    options = cluster.parser(__doc__)
    options.add_argument("--table", action="store_true", help="also print all as a table")
    cluster.main(options=options)

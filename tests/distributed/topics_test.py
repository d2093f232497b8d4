"""Runs the example lda on real documents and compares its perplexity with a known one."""
import gzip
import os
import pathlib

import cluster

DATA = pathlib.Path(os.environ.get("TROUPE_DATA", cluster.ROOT.parent / "shared/data")).resolve()


class Topics(cluster.ClusterTest):
    program = "lda"

    def test_topics_of_daily_kos(self):
        """A plain loop of EM on the same split has 841 after 60 sweeps."""
        data = DATA / "kos/doc_word_count.tsv.gz"
        if not data.exists():
            self.skipTest(f"no {data}")
        run = self.finish("--data", f"uci-bow:{data}", "--epochs", 20, "--replicas", 2,
                          "--verify-replicas", 50, "--kill", "worker:1@0.5", "--kill",
                          "server:0@1.5")
        self.assertLess(run.report["perplexity"], 1.03 * 841)
        self.assertIsNone(run.report["test_accuracy"])

    def write_documents(self, name, front="60\n40\n{lines}\n", keep=1.0, least=1, more=0,
                        times=1):
        """Writes 60 documents of 40 words, of which `keep` remains, and returns the path."""
        lines = [f"{d + least} {w + least} {times * (1 + (d * w + more) % 5)}\n"
                 for d in range(60) for w in range(d % 5, 40, 5)]
        front = front.format(lines=len(lines))
        (self.home / name).write_text(front + "".join(lines[:int(keep * len(lines))]))
        return self.home / name

    def perplexity(self, path):
        run = self.finish("--data", f"uci-bow:{path}", "--threads", "--sync", "bsp", "--epochs", 1,
                          processes=False)
        return run.report["perplexity"]

    def test_sizes_in_front(self):
        """Three sizes are on three lines or on one, and ids then count from 1."""
        wanted = self.perplexity(self.write_documents("none", front="", least=0))
        self.assertEqual(self.perplexity(self.write_documents("three")), wanted)
        self.assertEqual(self.perplexity(self.write_documents("one", "60 40 {lines}\n")), wanted)
        market = "%%MatrixMarket matrix coordinate integer general\n% of docs\n60 40 {lines}\n"
        self.assertEqual(self.perplexity(self.write_documents("market", market)), wanted)
        packed = self.home / "packed"
        packed.write_bytes(gzip.compress((self.home / "three").read_bytes()))
        self.assertEqual(self.perplexity(packed), wanted)

    def test_counts_of_one_document_and_word_add_up(self):
        """The halves of each count are apart: one half of the file, then the other half."""
        double = self.write_documents("double", front="", least=0, times=2)
        lines = self.write_documents("once", front="", least=0).read_text()
        (self.home / "twice").write_text(lines + lines)
        self.assertEqual(self.perplexity(self.home / "twice"), self.perplexity(double))

    def test_sizes_that_the_file_does_not_have(self):
        for front, keep, why in (
                ("60\n40\n{lines}\n", 0.5, "has 240 lines of counts, and 480 by its sizes"),
                ("60 40 {lines}\n", 0.5, "`60 40 480` is no count, and as sizes it is wrong: 240 "),
                ("5\n40\n{lines}\n", 1, "document 6, and by its sizes the file has 5 .* line 44"),
                ("60\n4\n{lines}\n", 1, "word 6, and by its sizes the file has 4 .* line 5"),
                ("60 4 {lines}\n", 1, "`60 4 480` is no count, and as sizes it is wrong"),
                ("60\n40\n", 1, "sizes in front are three lines"),
                ("60 40\n{lines}\n", 1, "sizes in front are three lines or one: .* line 1"),
                ("60\n40 {lines}\n", 1, "sizes in front are three lines or one: .* line 2"),
                ("%%MatrixMarket matrix coordinate integer general\n60 40 {lines}\n", 0.5,
                 "has 240 lines of counts, and 480 by its sizes"),
                ("%%MatrixMarket matrix array real general\n60 40\n", 1,
                 "a MatrixMarket file must begin with `%%MatrixMarket matrix coordinate integer"),
                ("% a comment\n60 40 {lines}\n", 1, "a line must be `document word count`")):
            with self.subTest(front=front, keep=keep):
                self.refused(why, "--data", f"uci-bow:{self.write_documents('bad', front, keep)}")

    def test_numbers_above_their_limits(self):
        bad = self.home / "bad"
        for line, why in (("1 2 10000001", "count '10000001' is above the limit of 10000000"),
                          ("1 99999999999999999999 3", "word '9+' is above the limit"),
                          ("10000001 2 3", "document '10000001' is above the limit")):
            bad.write_text(f"1 1 1\n{line}\n")
            self.refused(why + r" .*bad line 2", "--data", f"uci-bow:{bad}")

    def test_other_documents_are_another_job(self):
        good, other = self.write_documents("good"), self.write_documents("other", more=1)
        run = self.start("--data", f"uci-bow:{good}", "--epochs", 1, "--record", "record")
        self.assertEqual(run.wait(60), 0)
        why = "another data set: the files that the program reads have other bytes"
        self.refused(why, "--data", f"uci-bow:{other}", "--replay", run.home / "record")
        self.refused(why, "--data", f"uci-bow:{other}", "--epochs", 2, "--resume", "--checkpoint",
                     run.directory / "checkpoints")
        same = self.write_documents("copy")
        self.finish("--data", f"uci-bow:{same}", "--epochs", 2, "--resume", "--checkpoint",
                    run.directory / "checkpoints", common=())

    def test_documents_that_cannot_be_read(self):
        bad = self.home / "bad"
        for text in ("1 2\n", "1 x 3\n", "1 2 0\n", "1 2 3 4\n", "-1 2 3\n"):
            bad.write_text(text)
            self.refused("a line must be `document word count`.*bad line 1", "--data",
                         f"uci-bow:{bad}")
        bad.write_text("1 2 3\n")
        self.refused("a corpus needs documents to train and", "--data", f"uci-bow:{bad}")

    def refused(self, why, *words):
        run = self.start(*words, processes=False)
        self.assertEqual(run.wait(20), 1)
        self.assertRegex(run.err, f"^lda: .*{why}")
        self.assertEqual(len(run.err.splitlines()), 1, run.err)


if __name__ == "__main__":
    cluster.main(__doc__)

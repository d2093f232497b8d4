"""Runs the example lda on real documents and compares its perplexity with a known one."""
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

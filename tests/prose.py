"""Measures the English of comments and documents: sentences that begin as fragments, and pronouns
that leave the subject of a sentence unnamed."""
import re

FRAGMENT = re.compile(r"(?:Of|Who|Whoever|Whom|That of|Those|The same[,.;: ]|But for|What|Where|And|"
                      r"Or|With what|Whether|None|One that|Not )\b")
PRONOUN = re.compile(r"\b(?:who|what|nobody|nothing|whoever|whom)\b", re.IGNORECASE)
COMMENT = re.compile(r"\s*///?<?\s?(.*)$")


def comment_blocks(lines):
    """Yields the text of each comment; successive comment lines are one text."""
    block = []
    for line in [*lines, ""]:
        found = COMMENT.match(line)
        if found:
            block.append(found[1])
        elif block:
            yield " ".join(block)
            block = []


def markdown_text(text):
    """Returns the running text of a document, without code, tables and headings."""
    text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    lines = [x for x in text.splitlines() if not x.startswith(("|", "#", "    "))]
    return re.sub(r"[`*\[\]]", "", "\n".join(lines))


class Prose:
    """Counts over any number of files."""

    def __init__(self):
        self.sentences = self.fragments = self.words = self.pronouns = 0
        self.found = []  # The fragments, for a person.

    def add(self, path, text):
        markdown = path.suffix == ".md"
        for block in [markdown_text(text)] if markdown else comment_blocks(text.splitlines()):
            self.words += len(re.findall(r"\w+", block))
            self.pronouns += len(PRONOUN.findall(block))
            for sentence in re.split(r"(?<=[.;:!?])\s+", block):
                sentence = sentence.strip()
                if len(sentence) < 8 or not sentence[0].isupper():
                    continue
                self.sentences += 1
                if FRAGMENT.match(sentence):
                    self.fragments += 1
                    self.found.append(f"{path}: {sentence[:60]}")

    def percent(self):
        return 100 * self.fragments / max(self.sentences, 1)

    def per_thousand(self):
        return 1000 * self.pronouns / max(self.words, 1)

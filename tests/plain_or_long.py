"""Runs a command with one of two values: plain_or_long.py PLAIN LONG PROGRAM WORD...

`{}` in a word becomes LONG if TROUPE_LONG_TESTS is 1, as in `scripts/test --long`, else PLAIN.
"""
import os
import sys

plain, long, *words = sys.argv[1:]
value = long if os.environ.get("TROUPE_LONG_TESTS") == "1" else plain
words = [word.replace("{}", value) for word in words]
os.execv(words[0], words)

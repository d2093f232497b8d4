"""Runs the commands of an example's README and compares what they print with what is written there.

usage: readme_test.py PROGRAMS README

In a ```console block a line `$ words` is a command and what follows is its output; it may print
other lines in between, which `...` tells the reader. Times (`[   2.1 s] ...`) and samples/s may be
any; other whole numbers must be equal, fractions, such as an accuracy, nearly.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

TOLERANCE = 0.02
NUMBER = re.compile(r"\d+(?:\.\d+)?")
VARIES = re.compile(r"^\[.*?\]|\d+ +samples/s")


def commands(text):
    """[(command, its lines)] of all console blocks."""
    found = []
    for block in re.findall(r"^```console\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            else:
                found[-1][1].append(line)
    return found


def equal_numbers(expected, printed):
    if "." in expected and "." in printed:
        return abs(float(expected) - float(printed)) <= TOLERANCE
    return expected == printed


def equal(expected, printed):
    expected, printed = (" ".join(VARIES.sub("", x).split()) for x in (expected, printed))
    return NUMBER.sub("#", expected) == NUMBER.sub("#", printed) and all(
        map(equal_numbers, NUMBER.findall(expected), NUMBER.findall(printed)))


def missing(expected, printed):
    """The first line of `expected` that is not in `printed`, behind the one before it; or None."""
    rest = iter(printed)
    for line in expected:
        if line != "..." and not any(equal(line, x) for x in rest):
            return line
    return None


def main():
    programs, readme = (pathlib.Path(x).resolve() for x in sys.argv[1:])
    path = f"{programs}:{os.environ['PATH']}"
    found = commands(readme.read_text())
    failed = not found
    for command, expected in found:
        with tempfile.TemporaryDirectory(prefix="readme-") as home:
            run = subprocess.run(command, shell=True, cwd=home, env=dict(os.environ, PATH=path),
                                 capture_output=True, text=True, timeout=50, check=False)
        absent = missing(expected, run.stdout.splitlines())
        if run.returncode != 0 or absent is not None:
            failed = True
            print(f"$ {command}\n{run.stdout}{run.stderr}status {run.returncode}")
            print(f"{readme}: not printed, or not behind the line above it: {absent}")
    if not found:
        print(f"{readme}: no run is shown, add a ```console block")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

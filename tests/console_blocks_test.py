"""Runs the console blocks of a page and compares what they print with what the page shows.

usage: console_blocks_test.py PROGRAMS PAGE
       console_blocks_test.py --self-test

In a ```console block a line `$ words` is a command, continued on the next line after a backslash.
The lines below a command are its output, in this order. The command may print more lines than the
page shows; a line `...` says so to the reader. `...` within a line stands for any text.

* All commands of a block run in one empty directory, with the programs on PATH. Each must end with
  status 0; `|| echo "status $?"` shows another one.
* A command that ends with `&` runs beside the next ones, which start when its lines were printed.
* Times (`[   2.1 s] ...`) and samples/s may be any. Whole numbers must be equal, fractions nearly.
* `<!-- numbers vary -->` in the line above a block: its numbers may be any, except the index of a
  member (`server 0`) and fractions of four digits (an accuracy), which must be equal nearly.
  On a busy machine events of different members change places, so only the lines of one member (the
  first that a line names), and those that name none, must be in the order of the page.
* `<!-- not run: REASON -->` in the line above a block: the block is for readers alone.

A `$ words` line in a fence of another kind is an error, because nothing would run it.
"""
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

TOLERANCE = 0.02
BLOCK_SECONDS = 150  # On an idle machine a block takes at most 30 s; other tests run beside it.
NUMBER = re.compile(r"\d+(?:\.\d+)?")
VARIES = re.compile(r"^\[.*?\]|\d+ +samples/s")
OF_A_MEMBER = re.compile(r"(?:worker|server|shard|chain|rank)[ :-]$")
MEMBER = re.compile(r"(worker|server|actor|rank|shard|chain)[ :-](\d+)")
REMARK = re.compile(r"<!-- (numbers vary|not run: \S.*) -->$")


class Command:
    def __init__(self, line, words):
        self.line = line  # Of the page, from 1.
        self.words = words
        self.shown = []  # (line of the page, text)

    def in_background(self):
        return self.words.endswith("&")


class Block:
    def __init__(self, remark):
        self.vary = remark == "numbers vary"
        self.is_run = not remark.startswith("not run")
        self.commands = []


def read_page(text):
    """(blocks, problems) of a page."""
    blocks, problems = [], []
    fence, block, above, continued = None, None, "", False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            if fence is None:
                fence = line.lstrip()[3:].strip() or "plain"
                remark = REMARK.match(above)
                if fence == "console":
                    if above.startswith("<!--") and not remark:
                        problems.append(f"{number - 1}: neither `numbers vary` nor `not run: WHY`")
                    block = Block(remark[1] if remark else "")
                    blocks.append(block)
                    start = number
            else:
                if block and block.is_run and not block.commands:
                    problems.append(f"{start}: no command, add one or `<!-- not run: WHY -->`")
                fence, block, continued = None, None, False
        elif fence == "console":
            if continued:
                block.commands[-1].words += "\n" + line
            elif line.startswith("$ "):
                block.commands.append(Command(number, line[2:]))
            elif block.commands:
                block.commands[-1].shown.append((number, line))
            elif block.is_run:
                problems.append(f"{number}: output above the first command")
            continued = bool(block.commands) and line.endswith("\\")
        elif fence and line.startswith("$ "):
            problems.append(f"{number}: a command that is not run, use a console block")
        above = line
    if fence:
        problems.append(f"{number}: a fence without an end")
    if not blocks:
        problems.append("1: no run is shown, add a console block")
    return blocks, problems


def equal_numbers(before, shown, printed, vary):
    if vary and not OF_A_MEMBER.search(before) and not re.fullmatch(r"\d+\.\d{4}", shown):
        return True
    if "." in shown and "." in printed:
        return abs(float(shown) - float(printed)) <= TOLERANCE
    return shown == printed


def equal(shown, printed, vary=False):
    shown, printed = (" ".join(VARIES.sub("", x).split()) for x in (shown, printed))
    parts = re.split(r"(\d+(?:\.\d+)?|\.\.\.)", shown)
    pattern, numbers, before = "", [], ""
    for part in parts:
        if NUMBER.fullmatch(part):
            pattern += r"(\d+(?:\.\d+)?)"
            numbers.append((before, part))
        else:
            pattern += ".*" if part == "..." else re.escape(part)
        before = part
    found = re.fullmatch(pattern, printed)
    return bool(found) and all(equal_numbers(*pair, text, vary)
                               for pair, text in zip(numbers, found.groups()))


def missing(shown, printed, vary=False):
    """The first line of `shown` that is not in `printed` behind the one before it; or None. With
    `vary`, only lines of one member keep their order, and so do lines without a member."""
    rests = {}
    for number, line in shown:
        if line.strip() in ("...", ""):
            continue
        member = MEMBER.search(line) if vary else None
        rest = rests.setdefault(member and member.groups(), iter(printed))
        if not any(equal(line, x, vary) for x in rest):
            return number, line
    return None


class Failed(Exception):
    """What is wrong with a block."""


class Session:
    """Runs the commands of one block in a directory of their own."""

    def __init__(self, programs, home, vary):
        self.environment = dict(os.environ, PATH=f"{programs}:{os.environ['PATH']}")
        self.home, self.vary = home, vary
        self.deadline = time.monotonic() + BLOCK_SECONDS
        self.started = []  # (command, process, its output file)

    def start(self, command):
        output = tempfile.TemporaryFile("w+")
        process = subprocess.Popen(["bash", "-c", command.words.removesuffix("&")], cwd=self.home,
                                   env=self.environment, stdout=output, stderr=subprocess.STDOUT,
                                   stdin=subprocess.DEVNULL, start_new_session=True)
        self.started.append((command, process, output))
        return process, output

    def absent(self, command, output):
        output.seek(0)
        printed = output.read()
        return missing(command.shown, printed.splitlines(), self.vary), printed

    def wait_for_lines(self, command, process, output):
        while process.poll() is None and time.monotonic() < self.deadline:
            if not self.absent(command, output)[0]:
                return
            time.sleep(0.05)

    def end(self, command, process, output):
        try:
            status = process.wait(max(0.1, self.deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            status = f"none: still running after {BLOCK_SECONDS} s"
        absent, printed = self.absent(command, output)
        if absent or status != 0:
            why = f"line {absent[0]} is not printed, or not behind the one above it: {absent[1]}" \
                if absent else f"line {command.line}: the command failed"
            raise Failed(f"$ {command.words}\n{printed}status {status}\n{why}")

    def run(self, commands):
        for command in commands:
            process, output = self.start(command)
            if command.in_background():
                self.wait_for_lines(command, process, output)
            else:
                self.end(command, process, output)
        for started in self.started:
            if started[0].in_background():
                self.end(*started)

    def close(self):
        """Ends what is left of a block that failed."""
        for _, process, output in self.started:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            output.close()


def run_block(programs, block):
    """What is wrong, or None."""
    with tempfile.TemporaryDirectory(prefix="console-") as home:
        session = Session(programs, home, block.vary)
        try:
            session.run(block.commands)
        except Failed as failed:
            return str(failed)
        finally:
            session.close()
    return None


def check_page(programs, text):
    """Yields what is wrong with a page."""
    blocks, problems = read_page(text)
    yield from problems
    for block in blocks:
        begin = time.monotonic()
        failed = run_block(programs, block) if block.is_run else None
        if failed:
            yield failed
        if block.is_run and block.commands:
            print(f"line {block.commands[0].line}: {time.monotonic() - begin:.1f} s", flush=True)


def fenced(lines, kind="console", above=""):
    return f"{above}\n```{kind}\n{lines}\n```\n"


PROGRAM = 'echo "server 1 has 12 of 30 rows"; echo "accuracy 0.9712 in 3.5 s"'
EVENTS = 'for x in "killing server 0" "killing server 1" "server 0 rejoined" done; do echo $x; done'
GOOD = [
    fenced(f"$ {PROGRAM}\n...\naccuracy 0.9650 in 3.5 s"),
    fenced(f"$ {PROGRAM}\nserver 1 has 12 of ... rows"),
    fenced(f"$ {PROGRAM}\nserver 1 has 99 of 3 rows\naccuracy 0.9650 in 9.9 s",
           above="<!-- numbers vary -->"),
    fenced(f"$ {EVENTS}\nkilling server 0\nserver 0 rejoined\nkilling server 1\ndone",
           above="<!-- numbers vary -->"),
    fenced("$ echo one > file\n$ cat \\\n    file\none"),
    fenced("$ echo '[   9.9 s] ends'\n[   0.1 s] ends"),
    fenced("$ false || echo \"status $?\"\nstatus 1"),
    fenced("$ (echo begun; until test -f done; do sleep 0.05; done; echo over) &\nbegun\n"
           "$ touch done"),
    fenced("$ ssh host-b false", above="<!-- not run: needs two hosts -->"),
    fenced("host-a$ false", above="<!-- not run: needs two hosts -->"),
    fenced("x = $1", kind="text") + fenced("$ true"),
]
BAD = [
    (fenced(f"$ {PROGRAM}\naccuracy 0.9412 in 3.5 s"), "line 4 is not printed"),
    (fenced(f"$ {PROGRAM}\nserver 1 has 12 of 31 rows"), "line 4 is not printed"),
    (fenced(f"$ {PROGRAM}\nserver 1 had 12 of 30 rows"), "line 4 is not printed"),
    (fenced(f"$ {PROGRAM}\naccuracy 0.9712 in 3.5 s\nserver 1 has 12 of 30 rows"),
     "line 5 is not printed"),
    (fenced(f"$ {PROGRAM}\nserver 2 has 12 of 30 rows", above="<!-- numbers vary -->"),
     "line 4 is not printed"),
    (fenced(f"$ {PROGRAM}\naccuracy 0.9412 in 3.5 s", above="<!-- numbers vary -->"),
     "line 4 is not printed"),
    (fenced(f"$ {EVENTS}\nserver 0 rejoined\nkilling server 0", above="<!-- numbers vary -->"),
     "line 5 is not printed"),
    (fenced(f"$ {EVENTS}\nkilling server 0\nserver 0 rejoined\nkilling server 1"),
     "line 6 is not printed"),
    (fenced("$ echo one; false\none"), "the command failed"),
    (fenced("$ (echo one; false) &\none\n$ true"), "the command failed"),
    (fenced("$ ls", kind="text"), "a command that is not run"),
    (fenced("host-a$ ls"), "no command"),
    (fenced("$ ls", above="<!-- not run: -->"), "neither `numbers vary` nor"),
    (fenced("one\n$ true"), "output above the first command"),
    (fenced("x = $1", kind="text"), "no run is shown"),
    ("```console\n$ true\n", "a fence without an end"),
]


def self_test():
    failed = 0
    for text in GOOD:
        found = list(check_page(".", text))
        if found:
            print(f"self-test: expected nothing, got {found} for:\n{text}")
            failed += 1
    for text, expected in BAD:
        found = list(check_page(".", text))
        if not any(expected in problem for problem in found):
            print(f"self-test: expected '{expected}', got {found} for:\n{text}")
            failed += 1
    return 1 if failed else 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    programs, page = (pathlib.Path(x).resolve() for x in sys.argv[1:])
    found = list(check_page(programs, page.read_text()))
    for problem in found:
        print(f"{page}: {problem}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

"""Runs a benchmark small and checks that each contestant has a row of figures.

smoke_test.py PROGRAM --rows NAME... [--below KEY=LIMIT] --arguments WORD...
"""
import argparse
import json
import subprocess
import sys

SKIPPED = 77
# Each row has at least one of these keys.
FIGURES = ("gb_s", "messages_s", "samples_s", "us_p50", "resident_mb",
           "window_mb")


def problems(name, rows, key, limit):
    if not rows:
        yield f"no row of {name}"
    for row in rows:
        figures = {key: row[key] for key in FIGURES if key in row}
        if not figures or not all(value > 0 for value in figures.values()):
            yield f"{name}: not above 0: {figures or row}"
        if key and not row[key] < float(limit):
            yield f"{name}: {key} is {row[key]}, expected below {limit}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--rows", nargs="+", required=True)
    parser.add_argument("--below", default="=")
    parser.add_argument("--arguments", nargs=argparse.REMAINDER, default=[])
    asked = parser.parse_args()
    command = [sys.executable] if asked.program.endswith(".py") else []
    run = subprocess.run([*command, asked.program, "--json", *asked.arguments],
                         stdout=subprocess.PIPE, text=True)
    if run.returncode == SKIPPED:
        print("SKIPPED:", run.stdout)
        return SKIPPED
    print(run.stdout, end="")
    if run.returncode != 0:
        print(f"exit status {run.returncode}")
        return 1
    rows = [json.loads(line) for line in run.stdout.splitlines()]
    found = [x for name in asked.rows
             for x in problems(name, [row for row in rows if row.get("contestant") == name],
                               *asked.below.split("=")[:2])]
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

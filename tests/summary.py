"""Prints how a run of all tests went, and how long it took beside the recorded times.

usage: summary.py --kind KIND --build TIMES --tests TIMES [--record] JUNIT RECORDED
       summary.py --self-test

TIMES is a file with the line `SECONDS USER SYSTEM`: seconds by the clock and by the processors.
RECORDED is a JSON file, {kind: {"build": {"minutes": .., "processor_seconds": ..}, "tests": ..}}.
The exit status is 1 if a test failed. A slow run does not fail.
"""
import argparse
import json
import pathlib
import sys
import xml.etree.ElementTree as tree

SLOWER = 1.2  # From this ratio on, the summary says that a part was slower.
SLOWEST = 5


def read_times(path):
    # The shell writes them as its locale does.
    seconds, user, system = map(float, path.read_text().replace(",", ".").split())
    return {"minutes": round(seconds / 60, 1), "processor_seconds": round(user + system)}


def time_lines(measured, recorded):
    """Yields a line for each part of the run, and one for each figure that is much larger."""
    for part, now in measured.items():
        before = recorded.get(part)
        said = f"{part}: {now['minutes']} minutes, {now['processor_seconds']} processor seconds"
        if before:
            said += f" (recorded: {before['minutes']}, {before['processor_seconds']})"
        yield said
        for what, unit in (("minutes", "minutes"), ("processor_seconds", "processor seconds")):
            if before and now[what] >= SLOWER * before[what] > 0:
                yield (f"slower than recorded: {part}, {now[what]} {unit} instead of "
                       f"{before[what]}")


def slowest_lines(suite):
    """Yields the tests that took the longest, with their seconds."""
    times = sorted(((float(x.get("time")), x.get("name")) for x in suite.iter("testcase")),
                   reverse=True)
    for seconds, name in times[:SLOWEST]:
        yield f"{seconds:6.1f} s  {name}"


def count_line(suite):
    """Returns the counts of a run, and whether a test failed."""
    tests, failed, skipped = (int(suite.get(key)) for key in ("tests", "failures", "skipped"))
    off = int(suite.get("disabled", 0))
    passed = tests - failed - skipped - off
    return f"{passed} tests passed, {failed} failed, {skipped + off} skipped", failed > 0


def self_test():
    record = {"build": {"minutes": 5.0, "processor_seconds": 600},
              "tests": {"minutes": 10.0, "processor_seconds": 1000}}
    now = {"build": {"minutes": 5.9, "processor_seconds": 719},
           "tests": {"minutes": 9.0, "processor_seconds": 1200}}
    assert list(time_lines(now, record)) == [
        "build: 5.9 minutes, 719 processor seconds (recorded: 5.0, 600)",
        "tests: 9.0 minutes, 1200 processor seconds (recorded: 10.0, 1000)",
        "slower than recorded: tests, 1200 processor seconds instead of 1000"]
    assert list(time_lines({"build": now["build"]}, {})) == [
        "build: 5.9 minutes, 719 processor seconds"]
    cases = "".join(f'<testcase name="t{i}" time="{i}"/>' for i in range(7))
    suite = tree.fromstring(f'<testsuite tests="7" failures="1" skipped="2">{cases}</testsuite>')
    assert [line.split()[-1] for line in slowest_lines(suite)] == ["t6", "t5", "t4", "t3", "t2"]
    assert count_line(suite) == ("4 tests passed, 1 failed, 2 skipped", True)


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kind", required=True, help="of the run, such as plain or fast")
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--tests", type=pathlib.Path, required=True)
    parser.add_argument("--record", action="store_true", help="write the times to RECORDED")
    parser.add_argument("junit", type=pathlib.Path)
    parser.add_argument("recorded", type=pathlib.Path)
    return parser.parse_args()


def main():
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        return 0
    words = parse()
    suite = tree.parse(words.junit).getroot()
    recorded = json.loads(words.recorded.read_text()) if words.recorded.exists() else {}
    measured = {"build": read_times(words.build), "tests": read_times(words.tests)}
    print("The slowest tests:", *slowest_lines(suite), sep="\n")
    print(*time_lines(measured, recorded.get(words.kind, {})), sep="\n")
    line, failed = count_line(suite)
    print(line)
    if words.record and not failed:
        recorded[words.kind] = measured
        words.recorded.write_text(json.dumps(recorded, indent=2, sort_keys=True) + "\n")
    return failed


if __name__ == "__main__":
    sys.exit(main())

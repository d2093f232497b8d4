"""Writes the add_test() of the test cases of a doctest program. Run after it was linked.

list_test_cases.py PROGRAM PREFIX FILE_TO_WRITE [LABEL]

All test cases of a file are one entry, because starting a process costs more than most cases do.
The suite "slow" of a file is an entry of its own. Each case is an entry if its file prints
"SKIPPED:", because a skipped case would hide those that passed.
"""
import collections
import pathlib
import re
import subprocess
import sys
import xml.etree.ElementTree as tree


def cases(program, *options):
    """Returns {name: file} of the test cases, in the order of the program."""
    output = subprocess.run([program, "--list-test-cases", "--reporters=xml", "--no-version",
                             *options], check=True, capture_output=True, text=True).stdout
    listed = tree.fromstring(output)
    found = [(case.get("name"), case.get("filename")) for case in listed.iter("TestCase")]
    counted = int(listed.find("OverallResultsTestCases").get("unskipped"))
    if counted != len(found) or len(dict(found)) != len(found):
        sys.exit(f"{program}: {counted} test cases, but {len(dict(found))} different names")
    return dict(found)


def may_skip(path):
    """Returns whether a file, or a header of tests/ that it includes, prints "SKIPPED:"."""
    text = path.read_text(encoding="utf-8")
    root = next(folder for folder in path.parents if folder.name == "tests").parent
    headers = re.findall(r'#include "(tests/[^"]+)"', text)
    return any("SKIPPED:" in part.read_text(encoding="utf-8")
               for part in [path, *(root / header for header in headers)])


def pattern(name):
    """Returns a filter of doctest that matches a name alone."""
    return name.replace("\\", "\\\\").replace(",", "\\,")


def entries(program):
    """Yields (name, words that select its cases, whether it is slow) of each entry."""
    slow = cases(program, "--test-suite=slow")
    files = collections.defaultdict(list)
    for name, file in cases(program).items():
        files[file].append(name)
    for file, names in files.items():
        path = pathlib.Path(file)
        stem = path.stem.removesuffix("_test")
        if may_skip(path):
            for name in names:
                yield f"{stem}: {name}", [f"--test-case={pattern(name)}"], name in slow
            continue
        of_file = f"--source-file={pattern(file)}"
        if set(names) - slow.keys():
            yield stem, [of_file, "--test-suite-exclude=slow"], False
        if set(names) & slow.keys():
            yield f"{stem}.slow", [of_file, "--test-suite=slow"], True


def main():
    program, prefix, path, *labels = sys.argv[1:]
    seen = set()
    with open(path, "w", encoding="utf-8") as file:
        for name, words, is_slow in entries(program):
            if name in seen:
                sys.exit(f"{program}: two test files are called {name}_test.cpp, rename one")
            seen.add(name)
            test = f"[==[{prefix}.{name}]==]"
            quoted = " ".join(f"[==[{word}]==]" for word in words)
            # A filter that matches no test would pass in silence.
            file.write(f"add_test({test} [==[{program}]==] {quoted} --duration=true)\n"
                       f"set_tests_properties({test} PROPERTIES TIMEOUT 900\n"
                       f"  SKIP_REGULAR_EXPRESSION SKIPPED:\n"
                       f"  FAIL_REGULAR_EXPRESSION [==[test cases: +0 ]==]"
                       f"  LABELS \"{';'.join(labels + ['slow'] * is_slow)}\")\n")


if __name__ == "__main__":
    main()

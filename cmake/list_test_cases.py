"""Writes one add_test() for each test case of a doctest program. Run after it was linked.

list_test_cases.py PROGRAM PREFIX FILE_TO_WRITE [LABEL]
"""
import re
import subprocess
import sys


def cases(program, *options):
    output = subprocess.run([program, "--list-test-cases", "--no-version", *options],
                            check=True, capture_output=True, text=True).stdout
    names = [line for line in output.splitlines()
             if line and not line.startswith("[doctest]") and line.strip("=")]
    counted = int(re.search(r"passing the current filters: (\d+)", output).group(1))
    if counted != len(names) or len(set(names)) != len(names):
        sys.exit(f"{program}: {counted} test cases, but {len(set(names))} different names")
    return names


def main():
    program, prefix, path, *labels = sys.argv[1:]
    slow = set(cases(program, "--test-suite=slow"))
    with open(path, "w", encoding="utf-8") as file:
        for name in cases(program):
            all_labels = labels + ["slow"] * (name in slow)
            test = f"[==[{prefix}.{name}]==]"
            # A filter that matches no test would pass in silence.
            pattern = name.replace("\\", "\\\\").replace(",", "\\,")
            file.write(f"add_test({test} [==[{program}]==] [==[--test-case={pattern}]==])\n"
                       f"set_tests_properties({test} PROPERTIES TIMEOUT 300\n"
                       f"  SKIP_REGULAR_EXPRESSION SKIPPED:\n"
                       f"  FAIL_REGULAR_EXPRESSION [==[test cases: +0 ]==]"
                       f"  LABELS \"{';'.join(all_labels)}\")\n")


if __name__ == "__main__":
    main()

"""Writes one add_test() for each unittest class of tests/distributed/*_test.py.

list_test_classes.py PROGRAMS FILE_TO_WRITE SCRIPT...

An entry is called distributed.<script>.<class>. Entries run beside each other. A class with
`alone = "reason"` runs with no other entry; a class with `seconds = N` begins before the shorter
ones, so that no long entry runs at the end by itself.
"""
import importlib
import pathlib
import sys
import unittest


def classes(module):
    """Returns the test classes of a module that have tests, in the order of their lines."""
    loader = unittest.TestLoader()
    return [value for value in vars(module).values()
            if isinstance(value, type) and issubclass(value, unittest.TestCase)
            and value.__module__ == module.__name__
            and loader.getTestCaseNames(value)]


def entry(programs, script, test_class):
    name = f"distributed.{script.stem}.{test_class.__name__}"
    properties = ["TIMEOUT 900", "LABELS slow", "SKIP_RETURN_CODE 77",
                  f"COST {getattr(test_class, 'seconds', 20)}"]
    if getattr(test_class, "alone", None):
        properties.append("RUN_SERIAL ON")
    return (f"add_test({name} {sys.executable} {script} {programs} --only {test_class.__name__})\n"
            f"set_tests_properties({name} PROPERTIES {' '.join(properties)})\n")


def main():
    programs, path, *scripts = sys.argv[1:]
    sys.dont_write_bytecode = True
    entries = []
    for script in map(pathlib.Path, scripts):
        sys.path.insert(0, str(script.parent))
        entries += [entry(programs, script, x) for x in classes(importlib.import_module(script.stem))]
    pathlib.Path(path).write_text("".join(entries))


if __name__ == "__main__":
    main()

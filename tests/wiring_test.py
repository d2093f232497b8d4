"""Compiles programs whose graphs are wired wrongly, and compares the first error of the compiler.

wiring_test.py COMPILER FLAG...
"""
import re
import subprocess
import sys

PROGRAM = """#include "troupe/troupe.hpp"
using namespace troupe;
graph wire(const run_options& options) {{
  graph g;
  auto model = g.add("model", options.store({{{{.name = "w", .shape = {{2}}}}}}));
  auto learners = g.add("learners", options.workers_of(10, trainer_factory{{}}));
  auto test = g.add("test", evaluate{{}});
  const auto same = [](const push_info&, mutable_tensors) {{}};
  (void)learners, (void)test, (void)same;
  {}
  return g;
}}
"""

# (statement, text that the first error must have; empty: the statement compiles)
CASES = [
    ('learners.into(map_push("a", same), options.stages(), model); test.into(model);', ""),
    ("model.into(model);", "a store asks no other node: call into() of workers or evaluate"),
    ("learners.into();", "the path ends in no store: give the node of a store last"),
    ('learners.into(map_push("a", same));', "the path ends in no store"),
    ("learners.into(options.stages());", "the path ends in no store"),
    ("learners.into(test);", "workers and evaluate ask stores: a path cannot lead to them"),
    ("learners.into(learners, model);", "workers and evaluate ask stores"),
    ("learners.into(model, options.stages());", "a store ends a path: give its node last"),
    ("learners.into(model, model);", "a path has one store"),
    ("learners.into(42, model);", "a path has stages, lists of stages, and the node of a store"),
    ("test.into(options.stages(), model);", "an evaluator reads the values of a store"),
]


def first_error(command, statement):
    done = subprocess.run([*command, "-fsyntax-only", "-x", "c++", "-"], text=True,
                          input=PROGRAM.format(statement), capture_output=True, check=False)
    found = re.search(r" error: (.*)", done.stderr)
    return found.group(1) if found else ""


def main():
    failed = 0
    for statement, wanted in CASES:
        found = first_error(sys.argv[1:], statement)
        right = wanted in found if wanted else not found
        failed += not right
        print(f"{'' if right else 'WRONG '}{statement}\n  {found or 'compiles'}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()

"""Compiles programs whose graphs are wired wrongly, and compares the first error of the compiler.

wiring_test.py COMPILER FLAG...
"""
import pathlib
import re
import subprocess
import sys
import tempfile

HEADERS = """#include "troupe/own_actors.hpp"
#include "troupe/troupe.hpp"
"""
PROGRAM = """#include "headers.hpp"
using namespace troupe;
struct experience {{ std::uint32_t episode; float reward; }};
struct player : own_actor {{
  out<experience> seen{{"seen"}};
  out<float> rate{{"rate"}};
  in<experience> heard{{"heard"}};
  pulls model{{"model"}};
  int score = 0;
}};
struct other : own_actor {{}};
struct learner : trainer {{
  in<experience> came{{"came"}};
  double gradient(const batch&, const_tensors, mutable_tensors) override {{ return 0; }}
}};
struct texts {{ std::string text; }};
struct large {{ float values[1025]; }};
graph wire(const run_options& options) {{
  graph g;
  auto model = g.add("model", options.store({{{{.name = "w", .shape = {{2}}}}}}));
  auto learners = g.add("learners", options.workers_of(10, trainer_factory{{}}));
  auto test = g.add("test", evaluate{{}});
  auto players = g.add("players", actors<player>{{.count = 4}});
  auto others = g.add("others", actors<other>{{}});
  (void)players, (void)others;
  const auto same = [](const push_info&, mutable_tensors) {{}};
  (void)learners, (void)test, (void)same;
  {}
  return g;
}}
"""

# (statement, text that the first error must have; empty: the statement compiles)
CASES = [
    ('learners.into(map_push("a", same), options.stages(), model); test.into(model);', ""),
    ("model.into(model);", "a store asks no other node: call into() of workers, actors or evaluate"),
    ("learners.into();", "the path ends in no store: give the node of a store last"),
    ('learners.into(map_push("a", same));', "the path ends in no store"),
    ("learners.into(options.stages());", "the path ends in no store"),
    ("learners.into(test);", "workers, actors and evaluate ask stores: a path cannot lead to them"),
    ("learners.into(learners, model);", "workers, actors and evaluate ask stores"),
    ("learners.into(model, options.stages());", "a store ends a path: give its node last"),
    ("learners.into(model, model);", "a path has one store"),
    ("learners.into(42, model);", "a path has stages, lists of stages, and the node of a store"),
    ("test.into(options.stages(), model);", "an evaluator reads the values of a store"),
    ("players.into(model);", ""),
    ("players.into(options.stages(), model);", "actors read the values of a store"),
    ("learners.into(players, model);", "workers, actors and evaluate ask stores"),
    ("g.join(players, &player::seen, learners, &learner::came, join_shape::spread, 8);", ""),
    ("g.join(players, &player::seen, players, &player::heard, join_shape::circle);", ""),
    ("g.join(players, &player::rate, learners, &learner::came);",
     "both ports of a channel have the same type of head"),
    ("g.join(players, &player::seen, players, &player::rate);",
     "a channel leads from a port troupe::out of the first node"),
    ("g.join(players, &player::heard, learners, &learner::came);",
     "a channel leads from a port troupe::out of the first node"),
    ("g.join(players, &player::seen, players, &player::model);",
     "a channel joins a port troupe::out with a port troupe::in; a port troupe::pulls needs into()"),
    ("g.join(players, &player::score, learners, &learner::came);",
     "a channel joins a port troupe::out with a port troupe::in"),
    ("g.join(others, &player::seen, learners, &learner::came);",
     "the actors of this node are of another class than the one that has the port"),
    ("g.join(players, &player::seen, test, &learner::came);",
     "a channel joins nodes of actors or workers"),
    ('g.add("strange", actors<learner>{});',
     "an actor of a program is a class that derives from troupe::own_actor"),
    ('out<texts> wrong{"wrong"};', "make it trivially copyable"),
    ('in<large> wrong{"wrong"};', "the head of a parcel has at most 4096 bytes"),
    ('out<const char*> wrong{"wrong"};', "a pointer means nothing to its receiver"),
]


def first_error(command, statement):
    done = subprocess.run([*command, "-fsyntax-only", "-x", "c++", "-"], text=True,
                          input=PROGRAM.format(statement), capture_output=True, check=False)
    found = re.search(r" error: (.*)", done.stderr)
    return found.group(1) if found else ""


def main():
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        headers = pathlib.Path(folder) / "headers.hpp"
        headers.write_text(HEADERS, encoding="utf-8")
        # Compiles the headers once, as they take longer than all statements together.
        subprocess.run([*sys.argv[1:], "-x", "c++-header", headers, "-o", f"{headers}.gch"],
                       check=True)
        for statement, wanted in CASES:
            found = first_error([*sys.argv[1:], "-I", folder], statement)
            right = wanted in found if wanted else not found
            failed += not right
            print(f"{'' if right else 'WRONG '}{statement}\n  {found or 'compiles'}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()

"""Fails when the tree breaks a house rule that a compiler cannot see. Run by ctest as `tidy`.

Each rule is a function of a path and its lines that yields (line number, message). A message says
"what is wrong, what to do instead"; a rule without a fix is not a rule. With --self-test, checks
that every rule fails on VIOLATIONS and passes CLEAN.
"""
import collections
import pathlib
import re
import sys

from prose import Prose

ROOT = pathlib.Path(__file__).resolve().parent.parent
# The rooms of the tree, bottom to top. A room may include itself and the rooms listed for it.
MAY_INCLUDE = {
    "base": [],
    "serialization": ["base"],
    "kernels": ["base"],
    "storage": ["base", "serialization"],
    "actors/transport": ["base", "serialization"],
    "actors/protocol": ["base", "serialization"],
    "actors/tables": ["base", "serialization", "kernels", "storage", "actors/protocol"],
    "actors/training": ["base", "serialization", "kernels", "storage", "actors/protocol",
                        "actors/tables"],
    "actors": ["base", "serialization", "kernels", "storage", "actors/transport",
               "actors/protocol", "actors/tables", "actors/training"],
    "actors/roles": ["base", "serialization", "kernels", "storage", "actors/transport",
                     "actors/protocol", "actors/tables", "actors/training", "actors"],
    "actors/graph": ["base", "serialization", "kernels", "storage", "actors/transport",
                     "actors/protocol", "actors/tables", "actors/training", "actors",
                     "actors/roles"],
}
MAY_INCLUDE["troupe"] = list(MAY_INCLUDE)
MAY_INCLUDE["cli"] = MAY_INCLUDE["examples"] = list(MAY_INCLUDE)
# Order of folders in a room, bottom to top. Without an order, they may include one another.
INNER = {
    "actors/transport": ["streams", "frames", ""],
    "actors/graph": ["nodes", "options", "", "stores", "report", "replay", "processes", "launch",
                     "ranks"],
}
# Rooms whose folders may not include each other: a header that two need is in the room itself.
APART = ["actors/protocol", "actors/roles"]
# Third-party headers that only some rooms, their tests and bench/ may include.
AT_HOME = {"caf": ["actors", "actors/roles", "actors/graph"], "capnp": ["serialization"],
           "kj": ["serialization"], "rocksdb": ["storage"], "openssl": ["actors/transport", "base"],
           "hwy": ["kernels"]}
# System headers that actors/protocol may not include.
IMPURE = {"fstream", "filesystem", "thread", "mutex"}
FILES_MAX = 40  # The most files in one folder.
FUNCTION_LINES_MAX = 70
# Files with longer functions, and the length of the longest. Only lower these numbers.
LONG_FUNCTIONS = {
    "examples/02_async_sgd/data/digits.cpp": 124,
}
# The most sentences that begin as fragments (%), and pronouns without a subject (in 1,000 words), by
# room. Only lower these numbers.
PROSE_MAX = {}
PROSE_USUAL = (1.5, 2.5)
LINES_MAX = 800
TEST_LINES_MAX = 800
COLUMNS_MAX = 100
SLEEPING = (re.compile(r"\bsleep_(for|until)\b|\busleep\("),
            "sleeping is banned, wait for an event")
# Programs whose purpose is to wait.
MAY_SLEEP = {"bench/training/pipeline_bench.cpp"}
BANNED = [
    (re.compile(r"\bFIXME\b|TODO\(now\)"), "unfinished work, finish it or open an issue"),
    SLEEPING,
    (re.compile(r"caf/all\.hpp"), "caf/all.hpp is banned, include the headers you use"),
    (re.compile(r"caf::infinite|\brequest\(.*\binfinite\b"),
     "a request without an end is banned, name a timeout"),
]
# An empty text must not mean that nothing failed: an exception of a user's code may have one.
FAILURE = r"\b(?:failed|failure|fault)_?"
TEXT_AS_FAILURE = [
    re.compile(rf"\bstd::string[\s&]+{FAILURE}\b"),
    re.compile(rf"{FAILURE}(?:\(\))?\.(?:empty|clear)\(\)"),
    re.compile(rf"{FAILURE}(?:\(\))? ?[!=]= ?(?:\"\"|std::string)"),
    re.compile(r"\b(?:error\(\)|broken_|failed_?|failure_?)(?:\.|->)text\.empty\(\)"),
    re.compile(r"//.*\bNot empty:"),
]
NAMESPACE = re.compile(r"namespace ([\w:]+) \{")
INLINE_CONSTANT = re.compile(r"inline const(?:expr)? .*?(\w+)(?:\[\w*\])?(?: =|\{)")
INCLUDE = re.compile(r'\s*#\s*include\s*[<"]([^>"]+)[>"]')
JOURNEYS = "docs/design/journeys.md"
STEP = re.compile(r"^\d+\. .*(?:\n   .*)*", re.MULTILINE)


def check_shape(path, lines):
    lines_max = TEST_LINES_MAX if path.parts[0] == "tests" else LINES_MAX
    if len(lines) > lines_max:
        yield len(lines), f"longer than {lines_max} lines, split it by concept"
    for number, line in enumerate(lines, 1):
        if len(line) > COLUMNS_MAX:
            yield number, f"longer than {COLUMNS_MAX} columns, wrap it"
        if line != line.rstrip() or "\t" in line:
            yield number, "tab or space at the end, run clang-format"


def check_words(path, lines):
    if path.parts[0] == "tests":
        return
    may_sleep = str(path) in MAY_SLEEP
    for number, line in enumerate(lines, 1):
        for pattern, message in BANNED:
            if pattern.search(line) and not (may_sleep and pattern is SLEEPING[0]):
                yield number, message


def check_failures(path, lines):
    if path.parts[0] in ("tests", "bench"):
        return
    for number, line in enumerate(lines, 1):
        if any(pattern.search(line) for pattern in TEXT_AS_FAILURE):
            yield number, "a text stands for a failure, use std::optional<failure> or result<void>"


def check_decider(path, lines):
    if path.parts[:2] != ("actors", "protocol"):
        return
    for number, line in enumerate(lines, 1):
        if "steady_now(" in line or "_clock::now(" in line:
            yield number, "a decider has no clock, pass the time as an argument"


def check_header(path, lines):
    if path.suffix != ".hpp":
        return
    if not lines or not lines[0].startswith("// "):
        yield 1, "headers start with a sentence that says what they are for, add it"
    per_target = any("defined(HWY_TARGET_TOGGLE)" in line for line in lines)
    if "#pragma once" not in lines and not per_target:
        yield 1, "no include guard, add #pragma once"


def room_of(path):
    """Returns the innermost room of a file, or of the code that a test file tests."""
    parts = path.parts[1:] if path.parts[0] == "tests" else path.parts
    for length in range(len(parts) - 1, 0, -1):
        if "/".join(parts[:length]) in MAY_INCLUDE:
            return "/".join(parts[:length])
    return path.parts[0]


def inner_of(path, room):
    """Returns the folder within the room; empty: the room itself."""
    rest = path.parts[room.count("/") + 1:]
    return rest[0] if len(rest) > 1 else ""


def check_layers(path, lines):
    room = room_of(path)
    is_source = path.parts[0] != "tests" and path.parts[0] != "bench"
    for number, line in enumerate(lines, 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        target = pathlib.PurePath(match.group(1))
        if is_source and (target.parts[0] in ("tests", "bench", "..") or '"' in line
                          and len(target.parts) == 1 and target.suffix == ".hpp"):
            yield number, "not a file of a room, name it from the top and turn it around"
            continue
        if target.name.endswith(".capnp.h") and room != "serialization" and is_source:
            yield number, "only serialization/ may know its schemas, take plain values instead"
        owners = AT_HOME.get(target.parts[0])
        if owners and room not in owners and path.parts[0] != "bench":
            yield number, f"only {owners[0]}/ may know {target.parts[0]}, take plain values instead"
        if room == "actors/protocol" and is_source and match.group(1) in IMPURE:
            yield number, "a decider has no clock, file or socket, pass it as an event"
        there = room_of(target) if len(target.parts) > 1 else None
        if not is_source or there not in MAY_INCLUDE or room not in MAY_INCLUDE:
            continue
        if there != room:
            if there not in MAY_INCLUDE[room]:
                yield number, f"{room}/ is below {there}/, turn the dependency around"
            continue
        here, other = inner_of(path, room), inner_of(target, room)
        order = INNER.get(room, [])
        if here in order and other in order and order.index(other) > order.index(here):
            if str(path) != "actors/graph/program.cpp":  # It chooses among these folders.
                yield number, f"{here or room}/ is below {other}/, turn the dependency around"
        if room in APART and here != other and other:
            yield number, f"{room}/{here}/ may not know {other}/, move what both need to {room}/"


LONE = ("//", "#i", "#p", "#e", "#d")  # No statement begins with these.
NO_FUNCTION = re.compile(r"\s*(namespace|class|struct|enum|union|extern \"C\" \{|TEST_CASE)\b")


def functions(lines):
    """Yields (first line, number of lines) of each function, as clang-format lays them out."""
    first, begin = 1, None  # Of the current statement; of the function around it.
    for number, line in enumerate(lines, 1):
        indent = len(line) - len(line.lstrip())
        if begin and line == " " * begin[1] + "}":
            yield begin[0], number - begin[0] + 1
            begin = None
        elif not begin and line.split(" //")[0].endswith("{"):
            text = "".join(lines[first - 1:number])
            head = len(text) - len(text.lstrip())
            if head in (0, 2) and "(" in text and not NO_FUNCTION.match(text):
                begin = (first, head)
        if line.endswith((";", "{", "}", ":")) or not line.strip() or line.lstrip()[:2] in LONE:
            first = number + 1


def check_functions(path, lines):
    if path.parts[0] == "tests":
        return
    longest = max(functions(lines), key=lambda found: found[1], default=(1, 0))
    known = LONG_FUNCTIONS.get(str(path))
    if longest[1] > max(FUNCTION_LINES_MAX, known or 0):
        yield longest[0], f"a function of {longest[1]} lines, cut it by concept"
    if known and longest[1] < known:
        yield longest[0], f"the longest function has {longest[1]} lines, lower LONG_FUNCTIONS"


INVARIANT = re.compile(r"\s*/// \((\d)\) (.*)")
INVARIANT_MORE = re.compile(r"\s*///     (\S.*)")
CLASS = re.compile(r"\s*(?:class|struct) (\w+)")
HELD = re.compile(r"(asserts? in )?((?:(?:\w+::)?\w+\(\),? ?)+)(?:in (cli/sim/(?:\w+/)?\w+\.cpp))?$")


def invariants(lines):
    """Yields (line number, class, text) of each numbered invariant of a header."""
    found, listed = [], False
    for number, line in enumerate(lines, 1):
        begin, more, owner = (x.match(line) for x in (INVARIANT, INVARIANT_MORE, CLASS))
        if re.match(r"\s*/// Invariants", line):
            listed = True
        elif listed and begin:
            found.append([number, begin[2]])
        elif listed and found and more:
            found[-1][1] += " " + more[1]
        else:
            listed = False
        if found and owner:
            yield from ((number, owner[1], text) for number, text in found)
            found = []


def defines(name, lines, holds):
    """Returns whether a function of this name is defined here, and whether one holds `holds`."""
    is_named = re.compile(rf"(?:^|[\s&*(!]){re.escape(name)}\(")
    bodies = []
    for first, count in functions(lines):
        text = "\n".join(lines[first - 1:first - 1 + count])
        if is_named.search(text.split("{")[0]):
            bodies.append(text)
    return bool(bodies), any(holds.search(body) for body in bodies)


def unheld(owner, text, deciders, checkers):
    """Yields why an invariant is not held. `deciders`, `checkers`: lines of the files."""
    text, _, items = text.partition(" Held by: ")
    if not items.endswith("."):
        yield "an invariant without 'Held by: assert in f().' or 'Held by: check_f() in FILE.'"
        return
    for item in items[:-1].split("; "):
        match = HELD.match(item)
        if not match or bool(match[1]) == bool(match[3]):
            yield f"'{item}' is not 'assert in f(), g()' or 'check_f() in cli/sim/FILE.cpp'"
            continue
        for name in re.findall(r"((?:\w+::)?\w+)\(\)", match[2]):
            if match[3]:
                scoped, holds = f"job_world::{name}", re.compile(r"require\(|throw violation\(")
                for world in ("chain", "channel", "gossip", "pipeline"):
                    scoped = f"{world}_world::{name}" if f"/{world}_" in match[3] else scoped
                files = [checkers.get(match[3], [])]
            else:
                scoped = name if "::" in name else f"{owner}::{name}"
                files, holds = deciders, re.compile(r"\bassert\(")
            found = [defines(each, lines, holds) for lines in files for each in {scoped, name}]
            if not any(there for there, _ in found):
                yield f"names {name}(), which is not defined in {match[3] or 'actors/protocol'}"
            elif not any(held for _, held in found):
                yield f"names {name}(), which has no {'check' if match[3] else 'assert'}"


def check_invariants(files):
    """Checks all files, (path, lines): each invariant of a decider is held by an assert or a
    checker of the simulator."""
    of = {str(path): lines for path, lines in files}
    deciders = [lines for name, lines in of.items()
                if name.startswith("actors/protocol/") and name.endswith(".cpp")]
    for name, lines in of.items():
        if not name.startswith("actors/protocol/") or not name.endswith(".hpp"):
            continue
        for number, owner, text in invariants(lines):
            for problem in unheld(owner, text, deciders, of):
                yield f"{name}:{number}: {problem}"


def check_private(path, lines):
    for number, line in enumerate(lines, 1):
        match = INCLUDE.match(line)
        if match and "/detail/" in match.group(1):
            owner = match.group(1).split("/detail/")[0]
            if not str(path).startswith((f"{owner}/", f"tests/{owner}/")) and owner in MAY_INCLUDE:
                yield number, f"private to {owner}/, include a public header"


def check_test_namespace(path, lines):
    """Tests are compiled in batches, so names of two files must not clash."""
    if path.parts[0] != "tests" or not path.name.endswith("_test.cpp"):
        return
    # The plural is for names that the code under test already has.
    own = re.compile(rf"namespace (\w+::)*{path.stem}s? \{{")
    if not any(own.match(line) for line in lines):
        yield 1, f"not in a namespace of its own, put all behind the includes into {path.stem}"


def unindented(lines):
    return "\n".join(line.strip() for line in lines)


def check_quotes(path, lines):
    """Checks that code in a README is a region of an example, which compiles and is run."""
    start = None
    for number, line in enumerate(lines, 1):
        if line == "```cpp":
            start = number
        elif line == "```" and start:
            code = unindented(lines[start:number - 1])
            if not any(code in example for example in EXAMPLES):
                yield start, "code that is in no example, quote lines of one"
            start = None


def code_of(path):
    """Returns the text of a source file without comments; empty: there is no such file."""
    file = ROOT / path
    return re.sub(r"//.*", "", file.read_text()) if file.is_file() else ""


def missing_in_code(name, path):
    """Returns the part of a function's name, such as a::b, that a file lacks, or None."""
    *classes, function = name.split("::")
    code = code_of(path)
    around = code + code_of(pathlib.PurePath(path).with_suffix(".hpp"))
    if not re.search(rf"\b{re.escape(function)}\(", code):
        return f"{function}()"
    return next((x for x in classes if not re.search(rf"\b{re.escape(x)}\b", around)), None)


def problems_of_step(step):
    """Yields what is wrong with a step's names: files, and behind each one its functions."""
    file, has_function = None, False
    for name in re.findall(r"`([^`]+)`", step):
        if "/" in name:
            file = name
            if not (ROOT / file).is_file():
                yield f"no file {file}, name the one that has the step now"
                return
        elif file:
            has_function = True
            if lost := missing_in_code(name, file):
                yield f"{file} has no {lost}, name the function that has the step now"
    if not has_function:
        yield "a step without a file and a function, name both"


def check_journeys(path, lines):
    """Checks that each step names files that exist, and functions that these have."""
    if str(path) != JOURNEYS:
        return
    text = "\n".join(lines)
    steps = list(STEP.finditer(text))
    if not steps:
        yield 1, "no step, number them as 1., 2."
    for step in steps:
        for message in problems_of_step(step[0]):
            yield text.count("\n", 0, step.start()) + 1, message


RULES = [check_shape, check_words, check_header, check_failures, check_decider, check_layers,
         check_private, check_functions, check_test_namespace]
EXAMPLES = [unindented(path.read_text().splitlines())
            for path in (ROOT / "examples").glob("*/*.cpp")]

ROUTER = "actors/protocol/worker/router.cpp"

# (path, text, part of the message) for each way to fail.
VIOLATIONS = [
    ("kernels/a.cpp", "x\n" * (LINES_MAX + 1), "split it by concept"),
    ("tests/kernels/a.cpp", "x\n" * (TEST_LINES_MAX + 1), "split it by concept"),
    ("kernels/a.cpp", "// " + "x" * COLUMNS_MAX, "wrap it"),
    ("kernels/a.cpp", "int x; ", "run clang-format"),
    ("storage/a.cpp", "// FIXME: later", "unfinished work"),
    ("actors/a.cpp", "std::this_thread::sleep_for(1s);", "sleeping is banned"),
    ("bench/training/a.cpp", "std::this_thread::sleep_for(1s);", "sleeping is banned"),
    ("actors/a.cpp", '#include "caf/all.hpp"', "include the headers you use"),
    ("actors/a.cpp", "self->request(x, caf::infinite, y);", "name a timeout"),
    ("actors/a.cpp", "self->request(x, infinite, y);", "name a timeout"),
    *((f"{room}/a.cpp", code, "a text stands for a failure")
      for room, code in [("actors", "  std::string failed;"),
                         ("serialization", "std::string failed = {};"),
                         ("actors/protocol/server", "  std::string failed_;"),
                         ("actors/graph/launch", "  const std::string& failed() const;"),
                         ("actors/graph/launch", "bool on_evaluated(const std::string& failed);"),
                         ("actors", "const std::string& failure() const { return failure_; }"),
                         ("storage", "  std::string fault{};"),
                         ("actors", "if (!what.failed.empty())"),
                         ("actors", "if (supervisor_->failed().empty())"),
                         ("base", "failure_.clear();"),
                         ("actors", 'return watch.failure() == "";'),
                         ("storage", "return failed != std::string{};"),
                         ("actors", "return broken_.text.empty();"),
                         ("actors", "return done.error().text.empty();"),
                         ("actors", "  std::string end; ///< Not empty: the job must stop."),
                         ("cli/sim", "if (by.failed.empty())")]),
    ("actors/a.hpp", "#pragma once", "start with a sentence"),
    ("actors/a.hpp", "// What it is for.", "no include guard"),
    ("kernels/a.cpp", '#include "caf/actor.hpp"', "only actors/ may know caf"),
    ("actors/protocol/server/a.cpp", '#include "caf/actor.hpp"', "only actors/ may know caf"),
    ("examples/01_x/a.cpp", '#include "caf/actor.hpp"', "only actors/ may know caf"),
    ("tests/storage/a.cpp", '#include "caf/actor.hpp"', "only actors/ may know caf"),
    ("actors/a.cpp", "#include <rocksdb/db.h>", "only storage/ may know rocksdb"),
    ("storage/a.cpp", "#include <capnp/message.h>", "only serialization/ may know capnp"),
    ("cli/a.cpp", "#include <openssl/ssl.h>", "only actors/transport/ may know openssl"),
    ("actors/a.cpp", '#include "hwy/highway.h"', "only kernels/ may know hwy"),
    ("base/a.cpp", '#include "serialization/b.hpp"', "base/ is below serialization/"),
    ("serialization/a.cpp", '#include "storage/b.hpp"', "serialization/ is below storage/"),
    ("kernels/a.cpp", '#include "serialization/b.hpp"', "kernels/ is below serialization/"),
    ("storage/a.cpp", '#include "actors/kv.hpp"', "storage/ is below actors/"),
    ("actors/a.cpp", '#include "examples/01_x/b.hpp"', "actors/ is below examples/"),
    ("actors/kv.hpp", '// X.\n#pragma once\n#include "actors/roles/links/b.hpp"',
     "below actors/roles/"),
    ("actors/tables/a.cpp", '#include "actors/graph/launch/b.hpp"', "below actors/graph/"),
    ("actors/protocol/server/a.cpp", '#include "kernels/b.hpp"', "below kernels/"),
    ("actors/transport/streams/a.cpp", '#include "actors/transport/frames/b.hpp"',
     "streams/ is below frames/"),
    ("actors/graph/launch/a.cpp", '#include "actors/graph/ranks/b.hpp"',
     "launch/ is below ranks/"),
    ("actors/roles/server/a.cpp", '#include "actors/roles/worker/b.hpp"', "move what both need"),
    ("actors/graph/launch/program.cpp", '#include "actors/graph/ranks/b.hpp"',
     "launch/ is below ranks/"),
    ("actors/graph/replay/a.cpp", '#include "actors/graph/launch/b.hpp"',
     "replay/ is below launch/"),
    ("actors/protocol/server/a.cpp", "#include <fstream>", "pass it as an event"),
    ("actors/protocol/server/a.cpp", "auto now = steady_now();", "pass the time"),
    ("storage/a.cpp", '#include "tests/storage/b.hpp"', "not a file of a room"),
    ("kernels/a.cpp", '#include "b.hpp"', "not a file of a room"),
    ("storage/a.cpp", '#include "serialization/job.capnp.h"', "may know its schemas"),
    ("actors/a.cpp", "void f() { // why\n" + "  x();\n" * FUNCTION_LINES_MAX + "}",
     "cut it by concept"),
    ("actors/a.cpp", "void f() {\n" + "  x();\n" * FUNCTION_LINES_MAX + "}", "cut it by concept"),
    ("actors/a.hpp", "// X.\n#pragma once\nclass x {\n  void f() {\n"
     + "    x();\n" * FUNCTION_LINES_MAX + "  }\n};", "cut it by concept"),
    ("actors/tables/a.cpp", '#include "serialization/detail/b.hpp"', "private to serialization/"),
    ("tests/actors/a_test.cpp", "namespace b_test {", "not in a namespace of its own"),
    ("docs/a.md", "```\n" + "x" * 101 + "\n```\n" + "x" * 101, "columns, wrap it"),
    ("README.md", "```cpp\n  int in_no_example = 0;\n```", "quote lines of one"),
    *((JOURNEYS, step, message)
      for step, message in [
          ("1. It splits.\n   `tests/none.cpp` `router::split`", "no file tests/none.cpp"),
          (f"1. It splits.\n   `{ROUTER}`", "without a file and a function"),
          ("1. It returns `not_ready`.", "without a file and a function"),
          (f"1. It splits.\n   `{ROUTER}` `router::ask`,\n   `router::gone`", "has no gone()"),
          (f"1. It splits.\n   `{ROUTER}` `gone::split`", "has no gone,"),
          (f"1. It splits.\n   `{ROUTER}` `view_`", "has no view_()"),
          ("* It splits.", "no step")]),
]
CLEAN = [
    ("kernels/a.cpp", '#include "base/error.hpp"'),
    ("actors/graph/a.hpp", '// What for.\n#pragma once\n#include "actors/tables/b.hpp"'),
    ("actors/roles/server/a.cpp",
     '#include "actors/kv.hpp"\n#include "caf/actor.hpp"\n// NaN or infinite'),
    ("actors/protocol/server/a.cpp", '#include "actors/protocol/b.hpp"'),
    ("actors/transport/frames/a.cpp", '#include "actors/transport/streams/b.hpp"'),
    ("tests/actors/roles/a.cpp", '#include "caf/actor.hpp"\nstd::this_thread::sleep_for(1ms);'),
    (min(MAY_SLEEP), "std::this_thread::sleep_for(1ms);"),
    ("tests/actors/a_test.cpp", "namespace troupe::a_test {"),
    ("serialization/a.cpp", '#include "serialization/detail/b.hpp"\n#include <capnp/message.h>'),
    ("kernels/a.hpp", "// What for.\n#if defined(X) == defined(HWY_TARGET_TOGGLE)"),
    ("actors/a.cpp", "std::optional<failure> failed;\nresult<std::string> failed(int x);\n"
     "std::optional<std::string> fault;\nif (failed || names.empty())\n  return failed->text;"),
    ("tests/actors/a.cpp", "std::string failed;"),
    ("actors/a.cpp", "namespace x {\n" + "int i;\n" * FUNCTION_LINES_MAX + "}"),
    (JOURNEYS, f"# Steps\n\n1. `not_ready`.\n   `{ROUTER}` `router::split`, `router::ask`"),
    ("README.md", "```cpp\ntroupe::graph g;\n```\n```console\n$ ls\n```\nint x; "),
]


def problems(path, text):
    lines = text.splitlines()
    for rule in [check_quotes, check_columns, check_journeys] if path.suffix == ".md" else RULES:
        for number, message in rule(path, lines):
            yield f"{path}:{number}: {message}"


def check_columns(path, lines):
    """Checks the lines of a document; code in it is not wrapped."""
    in_code = False
    for number, line in enumerate(lines, 1):
        in_code = in_code != line.startswith("```")
        if len(line) > COLUMNS_MAX and not in_code:
            yield number, f"longer than {COLUMNS_MAX} columns, wrap it"


def check_constants(files):
    """Checks all files, (path, lines): two inline constants of one name are one to the linker."""
    seen = {}
    for path, lines in files:
        namespace = next((m[1] for m in map(NAMESPACE.match, lines) if m), "")
        for number, line in enumerate(lines, 1):
            found = INLINE_CONSTANT.match(line)
            if found and path.suffix == ".hpp":
                other = seen.setdefault((namespace, found[1]), path)
                if other != path:
                    yield f"{path}:{number}: {found[1]} is in {other} too, rename one of them"


def check_folders(paths):
    """Yields what is wrong with the list of all files."""
    headers = {}
    for path in paths:
        if path.suffix == ".hpp" and path.parts[0] in TOPS - {"examples"}:
            other = headers.setdefault(path.name, path)
            if other != path:
                yield f"{path}:1: {other} has that name too, rename one of them"
    for folder, count in collections.Counter(path.parent for path in paths).items():
        if count > FILES_MAX:
            yield f"{folder}: {count} files, cut it into rooms of at most {FILES_MAX}"


def check_prose(files):
    """Checks the comments and documents of each room, (path, text) of all files."""
    rooms = collections.defaultdict(Prose)
    for path, text in files:
        room = room_of(path) or (path.parts[0] if len(path.parts) > 1 else str(path))
        rooms[room].add(path, text)
    for room, prose in sorted(rooms.items()):
        fragments_max, pronouns_max = PROSE_MAX.get(room, PROSE_USUAL)
        if prose.percent() > fragments_max:
            yield (f"{room}: {prose.percent():.1f} % of the sentences begin as fragments, at most "
                   f"{fragments_max} may; name their subjects, as in {prose.found[-1]}")
        if prose.per_thousand() > pronouns_max:
            yield (f"{room}: {prose.per_thousand():.1f} of 1,000 words are who, what or nobody, at "
                   f"most {pronouns_max} may be; name the thing")


TOPS = {room.split("/")[0] for room in MAY_INCLUDE}


def sources():
    yield from sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
    for folder in [*sorted(TOPS), "bench", "tests"]:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in {".hpp", ".cpp", ".cu", ".cuh", ".md"}:
                yield path


HELD_INVARIANTS = {
    "actors/protocol/server/a.hpp": [
        "/// Invariants:", "/// (1) it holds. Held by: assert in f(),", "///     b::g().",
        "/// (2) it holds too. Held by: assert in f(); check_a() in cli/sim/job_checks.cpp.",
        "class a {"],
    "actors/protocol/server/a.cpp": [
        "void a::f(int x) {", "  assert(x > 0);", "}", "void a::h() {", "  f(1);", "}",
        "void b::g() {", "  assert(true);", "}"],
    "cli/sim/job_checks.cpp": [
        "void job_world::check_a() {", "  require(true, \"\");", "}",
        "void job_world::check_b() {", "}"],
}
# (line of the header, the same line with a fault, part of the message).
UNHELD_INVARIANTS = [
    (3, "/// (2) it holds too.", "without 'Held by"),
    (3, "/// (2) it holds too. Held by: [assert].", "is not 'assert in f(), g()'"),
    (3, "/// (2) it holds too. Held by: assert in h().", "h(), which has no assert"),
    (3, "/// (2) it holds too. Held by: assert in gone().", "gone(), which is not defined in actors"),
    (3, "/// (2) it holds too. Held by: check_a() in cli/sim/gone.cpp.", "defined in cli/sim/gone"),
    (3, "/// (2) it holds too. Held by: check_c() in cli/sim/job_checks.cpp.", "is not defined in"),
    (3, "/// (2) it holds too. Held by: check_b() in cli/sim/job_checks.cpp.", "has no check"),
    (2, "///     g().", "g(), which is not defined in actors/protocol"),
]


def self_test_invariants():
    failed = 0
    for row, line, expected in [(0, "/// Invariants:", None), *UNHELD_INVARIANTS]:
        files = {name: list(lines) for name, lines in HELD_INVARIANTS.items()}
        files["actors/protocol/server/a.hpp"][row] = line
        found = list(check_invariants((pathlib.PurePath(name), x) for name, x in files.items()))
        if len(found) != (expected is not None) or expected and expected not in found[0]:
            print(f"self-test: expected '{expected}' for {line}, got {found}")
            failed += 1
    return failed


def self_test():
    failed = 0
    for path, text, expected in VIOLATIONS:
        found = list(problems(pathlib.PurePath(path), text))
        if len(found) != 1 or expected not in found[0]:
            print(f"self-test: expected one '{expected}' for {path}, got {found}")
            failed += 1
    for path, text in CLEAN:
        found = list(problems(pathlib.PurePath(path), text))
        if found:
            print(f"self-test: expected nothing for {path}, got {found}")
            failed += 1
    texts = [("a.hpp", "inline constexpr int max = 1;"), ("b.hpp", "inline constexpr int min = 1;"),
             ("c.hpp", "inline constexpr float max{2};"), ("d.cpp", "inline const int max = 3;")]
    found = list(check_constants([(pathlib.PurePath(name), ["namespace x {", text])
                                  for name, text in texts]))
    if found != ["c.hpp:2: max is in a.hpp too, rename one of them"]:
        print(f"self-test: expected one constant of two headers, got {found}")
        failed += 1
    failed += self_test_invariants()
    many = [pathlib.PurePath(f"kernels/x{i}.cpp") for i in range(FILES_MAX + 1)]
    two = [pathlib.PurePath("base/a.hpp"), pathlib.PurePath("storage/a.hpp")]
    found = list(check_folders(many + two))
    if len(found) != 2 or "rename one" not in found[0] or "cut it into rooms" not in found[1]:
        print(f"self-test: expected two headers of one name and a full folder, got {found}")
        failed += 1
    for text, expected in [("// Of a worker.", "begin as fragments"),
                           ("// Returns what there is.", "of 1,000 words")]:
        found = list(check_prose([(pathlib.PurePath("base/a.hpp"), text)]))
        if len(found) != 1 or expected not in found[0]:
            print(f"self-test: expected one '{expected}' for {text}, got {found}")
            failed += 1
    return failed


def main():
    if "--self-test" in sys.argv[1:]:
        return 1 if self_test() else 0
    texts = [(path.relative_to(ROOT), path.read_text()) for path in sources()]
    found = [problem for path, text in texts for problem in problems(path, text)]
    found += check_constants((path, text.splitlines()) for path, text in texts)
    found += check_invariants((path, text.splitlines()) for path, text in texts)
    found += check_folders([path for path, _ in texts])
    found += check_prose(texts)
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

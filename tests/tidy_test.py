"""Fails when the tree breaks a house rule that a compiler cannot see. Run by ctest as `tidy`.

Each rule is a function of a path and its lines that yields (line number, message). A message says
"what is wrong, what to do instead"; a rule without a fix is not a rule. With --self-test, shows
that every rule can fail (VIOLATIONS) and does not fail on clean text.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Bottom to top. A folder may include itself and those listed for it.
MAY_INCLUDE = {
    "serialization": [],
    "kernels": [],
    "storage": ["serialization"],
    "actors": ["serialization", "kernels", "storage"],
    "examples": ["serialization", "kernels", "storage", "actors"],
    "cli": ["serialization", "kernels", "storage", "actors"],
}
# What no folder is below of: how to say that something failed.
EVERYWHERE = "serialization/error.hpp"
# Folders of actors/, bottom to top; files of actors/ itself are below all of them.
ACTOR_FOLDERS = ["store", "links", "cluster", "training", "graph"]
# Third-party headers that only one folder (and its tests and benchmarks) may know.
AT_HOME = {"caf": "actors", "capnp": "serialization", "kj": "serialization", "rocksdb": "storage",
           "openssl": "actors", "hwy": "kernels"}
LINES_MAX = 800
TEST_LINES_MAX = 800
COLUMNS_MAX = 100
BANNED = [
    (re.compile(r"\bFIXME\b|TODO\(now\)"), "unfinished work, finish it or open an issue"),
    (re.compile(r"\bsleep_(for|until)\b|\busleep\("), "sleeping is banned, wait for an event"),
    (re.compile(r"caf/all\.hpp"), "caf/all.hpp is banned, include the headers you use"),
    (re.compile(r"caf::infinite|\brequest\(.*\binfinite\b"),
     "a request without an end is banned, name a timeout"),
]
NAMESPACE = re.compile(r"namespace ([\w:]+) \{")
INLINE_CONSTANT = re.compile(r"inline const(?:expr)? .*?(\w+)(?:\[\w*\])?(?: =|\{)")
INCLUDE = re.compile(r'\s*#\s*include\s*[<"]([^>"]+)[>"]')


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
    for number, line in enumerate(lines, 1):
        for pattern, message in BANNED:
            if pattern.search(line):
                yield number, message


def check_header(path, lines):
    if path.suffix != ".hpp":
        return
    if not lines or not lines[0].startswith("// "):
        yield 1, "headers start with a sentence that says what they are for, add it"
    per_target = any("defined(HWY_TARGET_TOGGLE)" in line for line in lines)
    if "#pragma once" not in lines and not per_target:
        yield 1, "no include guard, add #pragma once"


def check_layers(path, lines):
    folder = path.parts[0]
    home = path.parts[1] if folder in ("tests", "bench") and len(path.parts) > 2 else folder
    for number, line in enumerate(lines, 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        target = match.group(1).split("/")
        if len(target) < 2 or match.group(1) == EVERYWHERE:
            continue
        owner = AT_HOME.get(target[0])
        if owner and home not in (owner, "bench", "tests"):
            yield number, f"only {owner}/ may know {target[0]}, take plain values instead"
        if folder in MAY_INCLUDE and target[0] in MAY_INCLUDE and target[0] != folder:
            if target[0] not in MAY_INCLUDE[folder]:
                yield number, f"{folder}/ is below {target[0]}/, turn the dependency around"
        if folder == "actors" == target[0] and len(target) > 2:
            inner = path.parts[1] if len(path.parts) > 2 else None
            rank = ACTOR_FOLDERS.index(inner) if inner in ACTOR_FOLDERS else -1
            if target[1] not in ACTOR_FOLDERS or ACTOR_FOLDERS.index(target[1]) > rank:
                below = "/".join(path.parts[:-1])
                yield number, f"{below}/ is below actors/{target[1]}/, turn the dependency around"


def check_private(path, lines):
    for number, line in enumerate(lines, 1):
        match = INCLUDE.match(line)
        if match and "/detail/" in match.group(1):
            owner = match.group(1).split("/detail/")[0]
            if not str(path).startswith((f"{owner}/", f"tests/{owner}/")) and owner in FOLDERS:
                yield number, f"private to {owner}/, include a public header"


def check_test_namespace(path, lines):
    """Tests are compiled in batches: a name of one file may not meet that of another."""
    if path.parts[0] != "tests" or not path.name.endswith("_test.cpp"):
        return
    # A plural, where the code under test has that name already.
    own = re.compile(rf"namespace (\w+::)*{path.stem}s? \{{")
    if not any(own.match(line) for line in lines):
        yield 1, f"not in a namespace of its own, put all behind the includes into {path.stem}"


def unindented(lines):
    return "\n".join(line.strip() for line in lines)


def check_quotes(path, lines):
    """Code in a README is a region of an example, which compiles and is run."""
    start = None
    for number, line in enumerate(lines, 1):
        if line == "```cpp":
            start = number
        elif line == "```" and start:
            code = unindented(lines[start:number - 1])
            if not any(code in example for example in EXAMPLES):
                yield start, "code that is in no example, quote lines of one"
            start = None


RULES = [check_shape, check_words, check_header, check_layers, check_private,
         check_test_namespace]
EXAMPLES = [unindented(path.read_text().splitlines())
            for path in [*(ROOT / "examples").glob("*/main.cpp"), ROOT / "tests/consumer/main.cpp"]]
FOLDERS = set(MAY_INCLUDE) | {f"actors/{folder}" for folder in ACTOR_FOLDERS}

# (path, text, part of the message) for each way to fail.
VIOLATIONS = [
    ("kernels/a.cpp", "x\n" * (LINES_MAX + 1), "split it by concept"),
    ("tests/kernels/a.cpp", "x\n" * (TEST_LINES_MAX + 1), "split it by concept"),
    ("kernels/a.cpp", "// " + "x" * COLUMNS_MAX, "wrap it"),
    ("kernels/a.cpp", "int x; ", "run clang-format"),
    ("storage/a.cpp", "// FIXME: later", "unfinished work"),
    ("actors/a.cpp", "std::this_thread::sleep_for(1s);", "sleeping is banned"),
    ("actors/a.cpp", '#include "caf/all.hpp"', "include the headers you use"),
    ("actors/a.cpp", "self->request(x, caf::infinite, y);", "name a timeout"),
    ("actors/a.cpp", "self->request(x, infinite, y);", "name a timeout"),
    ("actors/a.hpp", "#pragma once", "start with a sentence"),
    ("actors/a.hpp", "// What it is for.", "no include guard"),
    ("kernels/a.cpp", '#include "caf/actor.hpp"', "only actors/ may know caf"),
    ("examples/01_x/a.cpp", '#include "caf/actor.hpp"', "only actors/ may know caf"),
    ("tests/storage/a.cpp", '#include "caf/actor.hpp"', "only actors/ may know caf"),
    ("actors/a.cpp", "#include <rocksdb/db.h>", "only storage/ may know rocksdb"),
    ("storage/a.cpp", "#include <capnp/message.h>", "only serialization/ may know capnp"),
    ("cli/a.cpp", "#include <openssl/ssl.h>", "only actors/ may know openssl"),
    ("actors/a.cpp", '#include "hwy/highway.h"', "only kernels/ may know hwy"),
    ("serialization/a.cpp", '#include "storage/b.hpp"', "serialization/ is below storage/"),
    ("kernels/a.cpp", '#include "serialization/b.hpp"', "kernels/ is below serialization/"),
    ("storage/a.cpp", '#include "actors/kv.hpp"', "storage/ is below actors/"),
    ("actors/a.cpp", '#include "examples/01_x/b.hpp"', "actors/ is below examples/"),
    ("actors/kv.hpp", '// X.\n#pragma once\n#include "actors/store/b.hpp"', "below actors/store/"),
    ("actors/store/a.cpp", '#include "actors/graph/b.hpp"', "below actors/graph/"),
    ("actors/store/a.cpp", '#include "serialization/detail/b.hpp"', "private to serialization/"),
    ("tests/actors/a_test.cpp", "namespace b_test {", "not in a namespace of its own"),
    ("README.md", "```cpp\n  int in_no_example = 0;\n```", "quote lines of one"),
]
CLEAN = [
    ("kernels/a.cpp", '#include "serialization/error.hpp"'),
    ("actors/graph/a.hpp", '// What for.\n#pragma once\n#include "actors/store/b.hpp"'),
    ("actors/store/a.cpp", '#include "actors/kv.hpp"\n#include "caf/actor.hpp"\n// NaN or infinite'),
    ("tests/actors/a.cpp", '#include "caf/actor.hpp"\nstd::this_thread::sleep_for(1ms);'),
    ("tests/actors/a_test.cpp", "namespace troupe::a_test {"),
    ("serialization/a.cpp", '#include "serialization/detail/b.hpp"\n#include <capnp/message.h>'),
    ("kernels/a.hpp", "// What for.\n#if defined(X) == defined(HWY_TARGET_TOGGLE)"),
    ("README.md", "```cpp\ntroupe::graph g;\n```\n```console\n$ ls\n```\nint x; "),
]


def problems(path, text):
    lines = text.splitlines()
    for rule in [check_quotes] if path.suffix == ".md" else RULES:
        for number, message in rule(path, lines):
            yield f"{path}:{number}: {message}"


def check_constants(files):
    """Of all files at once: (path, lines). Two inline constants of one name are one to the linker."""
    seen = {}
    for path, lines in files:
        namespace = next((m[1] for m in map(NAMESPACE.match, lines) if m), "")
        for number, line in enumerate(lines, 1):
            found = INLINE_CONSTANT.match(line)
            if found and path.suffix == ".hpp":
                other = seen.setdefault((namespace, found[1]), path)
                if other != path:
                    yield f"{path}:{number}: {found[1]} is in {other} too, rename one of them"


def sources():
    yield from sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])
    for folder in [*MAY_INCLUDE, "bench", "tests"]:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in {".hpp", ".cpp", ".cu", ".cuh", ".md"}:
                yield path


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
    return failed


def main():
    if "--self-test" in sys.argv[1:]:
        return 1 if self_test() else 0
    texts = [(path.relative_to(ROOT), path.read_text()) for path in sources()]
    found = [problem for path, text in texts for problem in problems(path, text)]
    found += check_constants((path, text.splitlines()) for path, text in texts)
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

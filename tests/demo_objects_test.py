"""Fails when the target `demo` has more objects than its first build can take.

demo_objects_test.py NINJA BUILD_FOLDER [LIMIT]

A newcomer waits for each of them. If a change must raise OBJECTS, its commit message gives the
reason and the new duration of the demo's first build.
"""
import subprocess
import sys

OBJECTS = 50  # The number of objects when the limit was set.
LIMIT = int(OBJECTS * 1.05)


def main():
    ninja, folder, *given = sys.argv[1:]
    limit = int(given[0]) if given else LIMIT
    inputs = subprocess.run([ninja, "-C", folder, "-t", "inputs", "demo"],
                            check=True, capture_output=True, text=True).stdout.splitlines()
    objects = sorted({name for name in inputs if name.endswith(".o")})
    print(f"the demo is built from {len(objects)} objects, at most {limit} are allowed")
    if not objects:
        sys.exit("target demo has no objects: it is gone, or ninja lists them otherwise")
    if len(objects) > limit:
        print("\n".join(objects))
        sys.exit("put sources into existing unity batches (cmake/troupe_component.cmake)")


if __name__ == "__main__":
    main()

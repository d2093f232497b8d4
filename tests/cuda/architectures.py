"""Fails unless a program holds machine code for each architecture that it was built for, and PTX of
the newest one. Drivers compile this PTX for later architectures.

architectures.py PROGRAM ARCHITECTURE...

Reads nvcc's "fat binaries" out of the program: a header (magic, u16 version, u16 its size, u64 size
of what follows), then entries (u16 kind: 1 PTX, 2 machine code; u16, u32 size of the entry's header,
u64 size of its content, ..., u32 architecture at offset 28).
"""
import collections
import struct
import sys

MAGIC = struct.pack("<I", 0xBA55ED50)
PTX, CODE = 1, 2


def entries(data):
    """Yields (number of the fat binary, kind, architecture)."""
    at, number = data.find(MAGIC), 0
    while at >= 0:
        header, size = struct.unpack_from("<HQ", data, at + 6)
        entry, end = at + header, at + header + size
        while size and entry < end <= len(data):
            kind, _, entry_header, content = struct.unpack_from("<HHIQ", data, entry)
            if kind not in (PTX, CODE) or entry_header < 32:
                break
            yield number, kind, struct.unpack_from("<I", data, entry + 28)[0]
            entry += entry_header + content
        at, number = data.find(MAGIC, at + 4), number + 1


def main():
    program, *wanted = sys.argv[1:]
    wanted = sorted(map(int, wanted))
    found = collections.defaultdict(set)
    with open(program, "rb") as file:
        for number, kind, architecture in entries(file.read()):
            found[number].add((kind, architecture))
    complete = {(CODE, architecture) for architecture in wanted} | {(PTX, wanted[-1])}
    if not found:
        sys.exit(f"{program} holds no kernels")
    for kinds in found.values():
        if kinds != complete:
            sys.exit(f"kernels of {program} are there as {sorted(kinds)}, not {sorted(complete)}")
    print(f"{len(found)} fat binaries hold code for {wanted} and PTX of {wanted[-1]}")


if __name__ == "__main__":
    main()

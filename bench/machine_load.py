"""Measures what else a machine does, as machine_load.hpp does: figures beside a peer are only fair
on a quiet one.
"""
import os
import sys
import time

LOAD_MAX = 0.2
LOOK_S = 0.25


def worked_seconds():
    """Returns the seconds that all processors have worked since the system's start."""
    with open("/proc/stat") as file:
        user, nice, system, _, _, interrupts, soft, stolen = map(int, file.readline().split()[1:9])
    return (user + nice + system + interrupts + soft + stolen) / os.sysconf("SC_CLK_TCK")


def busy_processors():
    """Returns the number of processors that were busy, measured for a quarter of a second."""
    begin, before = time.monotonic(), worked_seconds()
    time.sleep(LOOK_S)
    # A virtual machine may count the work of a longer time at once.
    return min((worked_seconds() - before) / (time.monotonic() - begin), os.cpu_count())


def declare(parser):
    parser.add_argument("--any-load", action="store_true",
                        help=f"measure even if more than {LOAD_MAX} processors are busy")


def text(load):
    """Returns the load before and after a case, for a person."""
    return f"busy processors {load['load_before']:.2f} before, {load['load_after']:.2f} after"


def require_quiet_machine(any_load):
    """Ends the program if more than LOAD_MAX processors are busy, unless `any_load`."""
    load = 0 if any_load else busy_processors()
    if load > LOAD_MAX:
        sys.exit(f"{load:.2f} processors are busy, and figures beside a peer need {LOAD_MAX} or "
                 "less: end other work, or give --any-load")

"""Damages checkpoints of a job that has ended, for fault_runs.py."""


def committed(directory):
    return sorted(x for x in (directory / "checkpoints").iterdir() if (x / "COMMIT").exists())


def largest(checkpoint):
    return max(checkpoint.glob("chain-*/*.sst"), key=lambda x: x.stat().st_size)


def flip(job, checkpoint):
    file = largest(checkpoint)
    data = bytearray(file.read_bytes())
    data[job.dice.randrange(len(data))] ^= 1 << job.dice.randrange(8)
    replace(file, data)
    job.counts["F12"] += 1


def tear(job, checkpoint):
    """Cuts off a file's end, as a power cut does before the last pages are written."""
    file = largest(checkpoint)
    replace(file, file.read_bytes()[:job.dice.randrange(file.stat().st_size)])
    job.counts["F11"] += 1


def replace(file, data):
    file.unlink()  # Other checkpoints may share the file.
    file.write_bytes(data)

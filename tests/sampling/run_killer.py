"""Kill runs: at one operation on files, after some time, or one of several processes of a run.

Prints how many kills or races there were.

It forks from a process that has imported torch, so that a kill costs milliseconds.
"""

import os
import random
import shutil
import signal
import sys
import time
from pathlib import Path

import torch
from run_tasks import files, sample

OPERATIONS = ("open", "fsync", "link", "unlink", "replace", "mkdir", "listdir")


class Torn:
    """A file whose process is killed in the middle of a write."""

    def __init__(self, stream, kill):
        self.stream, self.kill = stream, kill

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.stream.__exit__(*error)

    def __getattr__(self, name):
        return getattr(self.stream, name)

    def write(self, data):
        data = memoryview(data).cast("B")
        half = len(data) // 2
        self.stream.write(data[:half])
        self.stream.flush()
        self.kill()
        return half + self.stream.write(data[half:])


def arm(fatal):
    """Let this process be killed at the moment of this number; return how many there were."""
    moments = [0]

    def moment():
        moments[0] += 1
        if moments[0] == fatal:
            os.kill(os.getpid(), signal.SIGKILL)

    def around(operation):
        def armed(*args, **options):
            moment()
            result = operation(*args, **options)
            moment()
            return result

        return armed

    for name in OPERATIONS:
        setattr(os, name, around(getattr(os, name)))
    fdopen = os.fdopen
    os.fdopen = lambda *args, **options: Torn(fdopen(*args, **options), moment)
    return moments


def forked(function):
    """Run a function in a process of its own and return its process id."""
    process = os.fork()
    if process == 0:
        function()
        os._exit(0)
    return process


def status_of(process):
    return os.waitpid(process, 0)[1]


def finish(folder, expected):
    """Continue a run that was killed, and compare all its files."""
    assert status_of(forked(lambda: sample(folder))) == 0
    assert files(folder) == expected, (sorted(files(folder)), sorted(expected))
    shutil.rmtree(folder)


def at_operations(root, expected, step):
    fatal, kills = 1, 0
    while True:
        folder = root / f"killed-{fatal}"

        def killed(folder=folder, fatal=fatal):
            arm(fatal)
            sample(folder)

        if status_of(forked(killed)) == 0:  # it ended before that moment
            finish(folder, expected)
            return kills
        finish(folder, expected)
        kills, fatal = kills + 1, fatal + step


def at_random(root, expected, times):
    started = time.perf_counter()
    status_of(forked(lambda: sample(root / "whole")))
    usual = time.perf_counter() - started
    choice = random.Random(0)
    for i in range(times):
        folder = root / f"killed-{i}"
        for _ in range(3):
            process = forked(lambda folder=folder: sample(folder))
            time.sleep(choice.uniform(0, usual))
            os.kill(process, signal.SIGKILL)
            status_of(process)
        finish(folder, expected)
    return 3 * times


def at_once(root, expected, rounds):
    """Let three processes make the same parts, kill some, damage a part, and begin again."""
    choice = random.Random(0)
    for i in range(rounds):
        folder = root / f"raced-{i}"
        for n_killed in (choice.randrange(4), choice.randrange(4), 0):
            processes = [forked(lambda folder=folder: sample(folder)) for _ in range(3)]
            if n_killed:
                time.sleep(choice.uniform(0, 0.05))
            for process in processes[:n_killed]:
                os.kill(process, signal.SIGKILL)
            statuses = [status_of(process) for process in processes]
            assert statuses[n_killed:] == [0] * (3 - n_killed), statuses
            if n_killed and (parts := sorted(folder.glob("0*.npz"))):
                damage(choice.choice(parts), choice)
        assert files(folder) == expected, (sorted(files(folder)), sorted(expected))
        shutil.rmtree(folder)
    return rounds


def damage(path, choice):
    """Flip a bit of a file."""
    data = bytearray(path.read_bytes())
    data[choice.randrange(len(data))] ^= 1 << choice.randrange(8)
    path.write_bytes(data)


def main():
    torch.set_num_threads(1)  # no other threads: the forked processes must not wait for their locks
    root, how, number = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    assert status_of(forked(lambda: sample(root / "expected"))) == 0
    kill = {"operations": at_operations, "random": at_random, "race": at_once}[how]
    print(kill(root, files(root / "expected"), number))


if __name__ == "__main__":
    main()

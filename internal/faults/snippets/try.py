"""Runs the snippets of this folder with the Python that runs this script, and prints the state of each fault of MLX.

    python internal/faults/snippets/try.py [NAME...]

Each snippet has a process of its own. The states are
    gone     the snippet ends normally
    present  the snippet fails with an AssertionError, whose text follows
    crash    a signal or the time limit ends the process
    error    anything else: the snippet does not fit this MLX
A snippet that begins with "# Happens in some processes only" runs up to 10 times. The exit status is 1 after an error,
else 0. The device is the CPU.
"""

import pathlib
import signal
import subprocess
import sys

SECONDS = 10
START = "import runpy, sys, mlx.core as mx; mx.set_default_device(mx.cpu); runpy.run_path(sys.argv[1])"


def state(path):
    for _ in range(10 if path.read_text().startswith("# Happens in some processes only") else 1):
        word, text = run(path)
        if word != "gone":
            break
    return word, text


def run(path):
    try:
        done = subprocess.run([sys.executable, "-c", START, path], capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return "crash", f"no end after {SECONDS} s"
    if done.returncode == 0:
        return "gone", ""
    if done.returncode < 0:
        return "crash", signal.Signals(-done.returncode).name
    text = done.stderr.rpartition("AssertionError")
    if text[1]:
        return "present", " ".join(text[2].lstrip(": ").split())
    return "error", done.stderr.strip().rpartition("\n")[2]


def main():
    folder, failed = pathlib.Path(__file__).parent, False
    names = sys.argv[1:] or sorted(p.stem for p in folder.glob("*.py") if p.name != "try.py")
    for name in names:
        word, text = state(folder / f"{name}.py")
        failed = failed or word == "error"
        print(f"{name}\t{word}\t{text[:160]}".rstrip(), flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())

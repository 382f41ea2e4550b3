#!/usr/bin/env python3
"""Times PyTorch's gradients in cases of "mlxgrad bench", and writes CSV with its columns.

    python3 bench_torch.py --op rmsnorm,attention --dtype float16 --shape '^8192x4096$|causal' > torch.csv
    python3 bench_torch.py --op gated-delta-rule,ssm-scan --dtype float16,bfloat16 > fla.csv
    taskset -c 0,1 python3 bench_torch.py --device cpu --threads 2 > torch-cpu.csv

Like mlxgrad bench, it makes random, contiguous inputs and cotangents in advance, in several equal sets that are
together larger than the caches. A repetition is about 10 ms of evaluations. On a CPU there are as many sets as
mlxgrad bench makes, each evaluation of a backward pass has its own forward outputs, computed before the repetition,
and the results are kept until the repetition ends. The C library keeps freed memory, as MLX does, so the system
clears no pages for results. On a GPU, a delay holds the evaluations back until the host has submitted all of them,
and attention has a line for each of PyTorch's kernels; if a kernel refuses the case, the line has the reason. The
memory is measured on a GPU only.

The lines "fla" time the Triton kernels of flash-linear-attention (package fla-core), if Python finds it. Its
first evaluation of a case compiles and tunes kernels for up to a minute. Its kernel for ssm-scan has no groups:
B and C are repeated for each head in advance, and x is multiplied by dt in the timed function.
"""

import argparse
import contextlib
import csv
import ctypes
import importlib.util
import math
import re
import statistics
import sys
import time
import warnings

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

COLUMNS = (
    "device,tf32,op,case,dtype,pass,side,median_us,q1_us,q3_us,wall_us,submit_us,build_us,copies,repetitions_us,"
    "bytes,flops,rate,unit,extra_memory,mlx_over_ours,over_limit,message,"
    "limit_gb_per_s,limit_tflop_per_s"
).split(",")
MAX_COPIES = 64
M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4  # of glibc's malloc.h
CPU_SETS, CPU_BYTES_OF_SETS = 16, 128 << 20  # as in compare/bench/inputs.go
BACKENDS = {
    "torch flash": SDPBackend.FLASH_ATTENTION,
    "torch cudnn": SDPBackend.CUDNN_ATTENTION,
    "torch efficient": SDPBackend.EFFICIENT_ATTENTION,
}


class Case:
    """A function f of inputs with these shapes. moved is the number of elements that the pass must at least move.

    targets, if set, is the number of classes of an additional input, the targets of a loss. deviations, if set, are
    the standard deviations of the inputs.
    """

    def __init__(self, op, name, kind, shapes, f, moved=0, flops=0, sides=("torch",), targets=None, deviations=None):
        self.op, self.name, self.kind, self.shapes, self.f = op, name, kind, shapes, f
        self.moved, self.flops, self.sides, self.targets = moved, flops, sides, targets
        self.deviations = deviations or [1] * len(shapes)


def cases(device):
    cpu = device == "cpu"
    for n, d in ((256, 1024), (1024, 4096)) if cpu else ((8192, d) for d in (1024, 4096, 8192)):
        yield Case("rmsnorm", f"{n}x{d}", "backward", [(n, d), (d,)],
                   lambda x, w: F.rms_norm(x, w.shape, w, 1e-5), 3 * n * d + 2 * d)
        yield Case("layernorm", f"{n}x{d}", "backward", [(n, d), (d,), (d,)],
                   lambda x, w, b: F.layer_norm(x, w.shape, w, b, 1e-5), 3 * n * d + 3 * d)
    rows, widths = (256, (1024, 32768)) if cpu else (8192, (1024, 4096, 8192, 32768, 128256))
    for d in widths:
        yield Case("softmax", f"{rows}x{d}", "backward", [(rows, d)], lambda x: F.softmax(x, -1), 3 * rows * d)
    for d in (1024, 32768) if cpu else (32768, 128256):
        yield Case("cross-entropy", f"{rows}x{d}, none", "step", [(rows, d)],
                   lambda x, t: F.cross_entropy(x, t, reduction="none"), 2 * rows * d + 3 * rows, targets=d)
    sizes = ((1, 2, 2, 512, 64, True), (1, 1, 1, 512, 64, True), (1, 1, 1, 1024, 64, True), (1, 1, 1, 2048, 64, True),
             (1, 1, 1, 4096, 64, True)) if cpu else (
        (4, 32, 32, 2048, 128, True), (4, 32, 8, 4096, 128, True), (4, 32, 32, 2048, 64, False),
        (4, 32, 32, 2048, 64, True), (1, 16, 16, 4096, 256, True), (1, 32, 8, 16384, 128, True),
        (4, 32, 32, 2000, 128, True))
    for b, h, kv, length, d, causal in sizes:
        pairs = length * (length + 1) // 2 if causal else length * length
        heads = str(h) if h == kv else f"{h}/{kv}"
        yield Case("attention", f"{b}x{heads}x{length}x{d}" + ", causal" * causal, "step",
                   [(b, h, length, d), (b, kv, length, d), (b, kv, length, d)],
                   lambda q, k, v, causal=causal, grouped=h != kv: F.scaled_dot_product_attention(
                       q, k, v, is_causal=causal, enable_gqa=grouped),
                   flops=7 * 2 * b * h * pairs * d, sides=("torch",) if cpu else tuple(BACKENDS))
    if not cpu and importlib.util.find_spec("fla"):
        yield from fla_cases()


def fla_cases():
    from fla.ops.gated_delta_rule import chunk_gated_delta_rule
    from fla.ops.simple_gla import chunk_simple_gla

    for b, h, kv, length, d in ((1, 4, 4, 4096, 128), (1, 32, 16, 2048, 128), (8, 16, 16, 512, 64)):
        heads = str(h) if h == kv else f"{h}/{kv}"
        keys, values, steps = (b, length, kv, d), (b, length, h, d), (b, length, h)
        yield Case("gated-delta-rule", f"{b}x{heads}x{length}x{d}", "step", [keys, keys, values, steps, steps],
                   lambda *x: chunk_gated_delta_rule(*x, output_final_state=True), flops=20 * b * h * length * d * d,
                   sides=("fla",), deviations=(1, d**-0.5, 1, 0.001, 0.3))
    for b, length, h, p, n in ((4, 1024, 64, 64, 128), (1, 4096, 16, 64, 128)):
        # The decays are the products of dt and A in the cases of mlxgrad bench.
        yield Case("ssm-scan", f"{b}x{length}x{h}/1x{p}x{n}, D", "step",
                   [(b, length, h, p), (b, length, h), (b, length, h), (b, length, h, n), (b, length, h, n), (h, 1)],
                   ssm_scan(chunk_simple_gla), b * length * (4 * h * p + 2 * h + 4 * n), sides=("fla",),
                   deviations=(0.1, 0.1, 0.01, 1, 1, 1))


def ssm_scan(chunk_simple_gla):
    def f(x, dt, decays, b, c, d):
        y, state = chunk_simple_gla(c, b, x * dt.unsqueeze(-1), decays, scale=1, output_final_state=True)
        return y + d * x, state

    return f


def evaluation(case, side, dtype, device):
    """Returns two functions. prepare(n) computes the forward outputs for evaluate(0) to evaluate(n - 1).

    On a GPU, prepare computes one forward output for each set of operands, which all evaluations with the set share.
    """
    random = [deviation * torch.randn(s, device=device, dtype=dtype) for s, deviation in zip(case.shapes, case.deviations)]
    extra = [torch.randint(case.targets, case.shapes[0][:1], device=device)] if case.targets else []

    def forward(inputs):
        with sdpa_kernel(BACKENDS[side]) if side in BACKENDS else contextlib.nullcontext():
            return case.f(*inputs, *extra)

    y = forward(random)
    cotangents = [torch.randn_like(o) for o in (y if isinstance(y, tuple) else (y,))]
    size = sum(r.nbytes for r in random)
    count = max(1, min(8, (400 << 20) // size + 1))
    if device == "cpu":
        size += sum(c.nbytes for c in cotangents)
        count = min(CPU_SETS, -(-CPU_BYTES_OF_SETS // size))
    sets = [([r.clone().requires_grad_() for r in random], [c.clone() for c in cotangents]) for _ in range(count)]
    outputs = []

    def prepare(n):
        if case.kind == "backward":
            outputs[:] = [forward(sets[i % count][0]) for i in range(n if device == "cpu" else count)]

    def evaluate(i):
        inputs, dy = sets[i % count]
        y = outputs[i % len(outputs)] if outputs else forward(inputs)
        return torch.autograd.grad(y, inputs, dy, retain_graph=bool(outputs))

    return prepare, evaluate


def timed(evaluate, copies, wait):
    """Returns the GPU's time and the host's time for submitting, both in µs per evaluation.

    The GPU waits for `wait` cycles before the first evaluation.
    """
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda.synchronize()
    torch.cuda._sleep(wait)
    begin.record()
    start = time.perf_counter()
    for i in range(copies):
        evaluate(i)
    submitted = time.perf_counter() - start
    end.record()
    torch.cuda.synchronize()
    return 1e3 * begin.elapsed_time(end) / copies, 1e6 * submitted / copies


def timed_on_cpu(prepare, evaluate, copies):
    prepare(copies)
    start = time.perf_counter()
    results = [evaluate(i) for i in range(copies)]
    elapsed = time.perf_counter() - start
    del results
    return 1e6 * elapsed / copies


def measure_on_cpu(case, side, dtype, repeat):
    prepare, evaluate = evaluation(case, side, dtype, "cpu")
    copies = 1
    for _ in range(4):
        copies = max(1, min(MAX_COPIES, int(10_000 / timed_on_cpu(prepare, evaluate, copies))))
    times = [timed_on_cpu(prepare, evaluate, copies) for _ in range(repeat)]
    return times, statistics.median(times), 0, copies, ""


def measure(case, side, dtype, repeat):
    prepare, evaluate = evaluation(case, side, dtype, "cuda")
    prepare(MAX_COPIES)
    torch.cuda.synchronize()
    active = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    results = evaluate(0)
    torch.cuda.synchronize()
    extra = torch.cuda.max_memory_allocated() - active - sum(r.nbytes for r in results)
    del results
    copies = 1
    for _ in range(3):
        device, submit = timed(evaluate, copies, 0)
        copies = max(1, min(MAX_COPIES, int(10_000 / device)))
    cycles = int(2 * copies * submit * 2000)  # Twice as long as it takes to submit, at 2 GHz.
    times = [timed(evaluate, copies, cycles) for _ in range(repeat)]
    device = [t[0] for t in times]
    wall = [timed(evaluate, copies, 0)[0] for _ in range(repeat)]
    return device, statistics.median(wall), statistics.median(t[1] for t in times), copies, extra


def line(case, side, dtype, repeat, tf32, cpu):
    row = dict.fromkeys(COLUMNS, "")
    name = "cpu" if cpu else torch.cuda.get_device_name()
    row.update({"device": name, "tf32": "on" if tf32 and not cpu else "off", "op": case.op, "case": case.name,
                "dtype": str(dtype).removeprefix("torch."), "pass": case.kind, "side": side,
                "bytes": case.moved * dtype.itemsize, "flops": case.flops or 0})
    try:
        device, wall, submit, copies, extra = (measure_on_cpu if cpu else measure)(case, side, dtype, repeat)
    except RuntimeError as err:
        row["message"] = str(err).split("\n")[0]
        return row
    median = statistics.median(device)
    q1, _, q3 = statistics.quantiles(device, n=4, method="inclusive")
    row.update({"median_us": f"{median:.6g}", "q1_us": f"{q1:.6g}", "q3_us": f"{q3:.6g}", "wall_us": f"{wall:.6g}",
                "submit_us": f"{submit:.6g}", "copies": copies, "repetitions_us": " ".join(f"{t:.6g}" for t in device),
                "extra_memory": extra})
    if case.flops:
        row.update({"rate": f"{case.flops / median / 1e6:.6g}", "unit": "TFLOP/s"})
    else:
        row.update({"rate": f"{row['bytes'] / median / 1e3:.6g}", "unit": "GB/s"})
    return row


def main():
    names = list(dict.fromkeys(c.op for c in cases("cuda")))
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--op", default=",".join(names), help="only these operations: " + ", ".join(names))
    p.add_argument("--dtype", default="float32,float16,bfloat16", help="only these dtypes")
    p.add_argument("--shape", default="", help="only cases whose names match this regular expression")
    p.add_argument("--repeat", type=int, default=9, help="number of repetitions")
    p.add_argument("--no-tf32", action="store_true", help="multiply float32 matrices without TF32")
    p.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    p.add_argument("--threads", type=int, help="number of threads on a CPU")
    a = p.parse_args()
    cpu = a.device == "cpu"
    if a.threads:
        torch.set_num_threads(a.threads)
    if cpu:
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(M_MMAP_MAX, 0)
        mallopt(M_TRIM_THRESHOLD, 2**31 - 1)
    warnings.simplefilter("ignore")  # A kernel warns when it refuses a case; the line of the case has the error.
    torch.backends.cuda.matmul.allow_tf32 = not a.no_tf32
    torch.backends.cudnn.allow_tf32 = not a.no_tf32
    torch.manual_seed(1)
    out = csv.DictWriter(sys.stdout, COLUMNS, lineterminator="\n")
    out.writeheader()
    for case in cases(a.device):
        if case.op not in a.op.split(",") or not re.search(a.shape, case.name):
            continue
        for dtype in a.dtype.split(","):
            for side in case.sides:
                out.writerow(line(case, side, getattr(torch, dtype), a.repeat, not a.no_tf32, cpu))
                sys.stdout.flush()
                if not cpu:
                    torch.cuda.empty_cache()


if __name__ == "__main__":
    main()

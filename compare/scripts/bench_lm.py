#!/usr/bin/env python3
"""Times a training step of the model of examples/lm in PyTorch or in MLX's Python package, on a CPU.

    OMP_NUM_THREADS=2 taskset -c 0,1 python3 bench_lm.py torch --width 128 --profile
    taskset -c 0,1 python3 bench_lm.py mlx --width 64

The step is that of "lm -gradients ours -width WIDTH": 8 passages of 64 letters, 2 layers, 4 heads, float32, AdamW,
and gradients clipped to a norm of 1. It prints the median, the smallest and the largest time of a step in ms.
With --profile, PyTorch's profiler adds the processor time of a step by operation, which covers the first thread only.
"""

import argparse
import statistics
import time

BATCH, LENGTH, LAYERS, HEADS, LETTERS = 8, 64, 2, 4, 80
DECAY = {"lr": 3e-3, "betas": (0.9, 0.99), "weight_decay": 0.1}


def shapes(width):
    """The shapes of the parameters in order: embedding, layers, norm, head."""
    hidden = 8 * width // 3
    layer = [(width,), (width, 3 * width), (width, width), (width,), (width, hidden), (width, hidden), (hidden, width)]
    return [(LETTERS, width), *(LAYERS * layer), (width,), (width, LETTERS)]


def logits(p, ids, take, norm, rope_and_attend, sigmoid):
    """The model of examples/lm/model.go on the parameters p."""
    p = iter(p)
    x = take(next(p), ids)
    for _ in range(LAYERS):
        attention_norm, qkv, out, mlp_norm, gate, up, down = (next(p) for _ in range(7))
        x = x + rope_and_attend(norm(x, attention_norm) @ qkv).reshape(x.shape) @ out
        h = norm(x, mlp_norm)
        g = h @ gate
        x = x + (g * sigmoid(g) * (h @ up)) @ down
    return norm(x, next(p)) @ next(p)


def torch_step(width):
    """Returns a training step of PyTorch."""
    import torch
    import torch.nn.functional as F

    torch.set_num_threads(2)
    torch.manual_seed(1)
    size = width // HEADS
    p = [(torch.randn(s) * s[0] ** -0.5 if len(s) == 2 else torch.ones(s)).requires_grad_() for s in shapes(width)]
    matrices, norms = ([t for t in p if t.dim() == d] for d in (2, 1))
    optimizer = torch.optim.AdamW([{"params": matrices}, {"params": norms, "weight_decay": 0}], **DECAY)
    ids = torch.randint(LETTERS, (BATCH, LENGTH + 1))
    angles = torch.outer(torch.arange(LENGTH), 1e4 ** (-torch.arange(0, size, 2) / size))
    cos, sin = angles.cos(), angles.sin()

    def rope(x):
        a, b = x.chunk(2, -1)
        return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)

    def attend(qkv):
        q, k, v = (t.view(BATCH, LENGTH, HEADS, size).transpose(1, 2) for t in qkv.chunk(3, -1))
        return F.scaled_dot_product_attention(rope(q), rope(k), v, is_causal=True).transpose(1, 2)

    def step():
        optimizer.zero_grad()
        out = logits(p, ids[:, :-1], lambda w, i: F.embedding(i, w), lambda x, w: F.rms_norm(x, w.shape, w, 1e-5),
                     attend, torch.sigmoid)
        loss = F.cross_entropy(out.flatten(0, 1), ids[:, 1:].flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(p, 1)
        optimizer.step()
        return loss.item()

    return step


def mlx_step(width):
    """Returns a compiled training step of MLX, as mlx.optimizers has it."""
    import mlx.core as mx
    import mlx.nn as nn
    import mlx.optimizers as optim

    mx.set_default_device(mx.cpu)
    mx.random.seed(1)
    size = width // HEADS
    p = [mx.random.normal(s) * s[0] ** -0.5 if len(s) == 2 else mx.ones(s) for s in shapes(width)]
    ids = mx.random.randint(0, LETTERS, (BATCH, LENGTH + 1))

    def rope(x):
        return mx.fast.rope(x, size, traditional=False, base=1e4, scale=1, offset=0)

    def attend(qkv):
        q, k, v = (t.reshape(BATCH, LENGTH, HEADS, size).transpose(0, 2, 1, 3) for t in mx.split(qkv, 3, -1))
        out = mx.fast.scaled_dot_product_attention(rope(q), rope(k), v, scale=size ** -0.5, mask="causal")
        return out.transpose(0, 2, 1, 3)

    def loss(p):
        out = logits(p, ids[:, :-1], lambda w, i: w[i], lambda x, w: mx.fast.rms_norm(x, w, 1e-5), attend, mx.sigmoid)
        return nn.losses.cross_entropy(out, ids[:, 1:], reduction="mean")

    optimizer = optim.AdamW(DECAY["lr"], betas=list(DECAY["betas"]), weight_decay=DECAY["weight_decay"])
    parameters = {str(i): t for i, t in enumerate(p)}
    optimizer.init(parameters)
    value_and_grad = mx.value_and_grad(lambda d: loss(list(d.values())))

    def update(parameters, state):
        optimizer.state = state
        value, gradients = value_and_grad(parameters)
        gradients, _ = optim.clip_grad_norm(gradients, 1)
        return value, optimizer.apply_gradients(gradients, parameters), optimizer.state

    update = mx.compile(update)
    state = [parameters, optimizer.state]

    def step():
        value, *state[:] = update(*state)
        mx.eval(value, state)
        return value.item()

    return step


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("framework", choices=("torch", "mlx"))
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--steps", type=int, default=200, help="timed steps, after a quarter as many others")
    parser.add_argument("--profile", action="store_true", help="PyTorch: print the processor time by operation")
    options = parser.parse_args()
    step = {"torch": torch_step, "mlx": mlx_step}[options.framework](options.width)
    losses, times = [], []
    for _ in range(options.steps + options.steps // 4):
        start = time.perf_counter()
        losses.append(step())
        times.append((time.perf_counter() - start) * 1e3)
    times = sorted(times[options.steps // 4:])
    print(f"{options.framework}, width {options.width}: {statistics.median(times):.2f} ms a step "
          f"({times[0]:.2f} to {times[-1]:.2f}), loss {losses[0]:.3f} to {losses[-1]:.3f}")
    if options.profile:
        from torch.profiler import ProfilerActivity, profile

        with profile(activities=[ProfilerActivity.CPU]) as trace:
            for _ in range(20):
                step()
        for event in sorted(trace.key_averages(), key=lambda e: -e.self_cpu_time_total)[:16]:
            print(f"{event.self_cpu_time_total / 20e3:8.3f} ms  {event.count // 20:4d} calls  {event.key}")


main()

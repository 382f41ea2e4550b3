"""Prints the logits of a model, computed by mlx-lm or transformers, for comparison with this program.

usage: echo '[[0, 5, 9]]' | python reference.py mlx-lm|transformers MODEL [ADAPTER]

MODEL and ADAPTER are folders. The input is a JSON list of rows of token ids, and the output a list of rows of lists of
logits, one for each token. transformers takes no adapter.
"""

import json
import sys


def by_mlx_lm(ids, model, adapter=None):
    import mlx.core as mx
    import mlx_lm

    loaded, _ = mlx_lm.load(model, adapter_path=adapter)
    return loaded(mx.array(ids)).astype(mx.float32).tolist()


def by_transformers(ids, model):
    import torch
    from transformers import AutoModelForCausalLM

    with torch.no_grad():
        return AutoModelForCausalLM.from_pretrained(model)(torch.tensor(ids)).logits.float().tolist()


if __name__ == "__main__":
    compute = {"mlx-lm": by_mlx_lm, "transformers": by_transformers}[sys.argv[1]]
    print(json.dumps(compute(json.load(sys.stdin), *sys.argv[2:])))

"""The GPT block of kernels/cuda/layer_speed in PyTorch, and attention alone, for the same run.

  python3 torch_layers.py OUT.json

bfloat16, LayerNorm before attention and MLP, causal attention by scaled_dot_product_attention, tanh GELU;
median of ten runs by CUDA events, after three that are not counted; the peak is PyTorch's own product of
8192^3. Flops count all scores, as layer_speed does.
"""

import json
import statistics
import sys

import torch
import torch.nn.functional as F

HIDDEN, HEADS = 8192, 64


def seconds(work):
    times = []
    for i in range(13):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        begin.record()
        work()
        end.record()
        torch.cuda.synchronize()
        if i >= 3:
            times.append(begin.elapsed_time(end) * 1e-3)
    return statistics.median(times)


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = torch.nn.LayerNorm(HIDDEN), torch.nn.LayerNorm(HIDDEN)
        self.qkv, self.out = torch.nn.Linear(HIDDEN, 3 * HIDDEN), torch.nn.Linear(HIDDEN, HIDDEN)
        self.up, self.down = torch.nn.Linear(HIDDEN, 4 * HIDDEN), torch.nn.Linear(4 * HIDDEN, HIDDEN)

    def forward(self, x):
        samples, tokens, _ = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(samples, tokens, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        mix = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mix.transpose(1, 2).reshape(samples, tokens, HIDDEN))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


def attention(samples, tokens, options):
    """Of 64 heads of 128 as operation_speed has them, and its gradient."""
    q, k, v = (torch.randn(samples, HEADS, tokens, 128, requires_grad=True, **options) for _ in range(3))
    forward = seconds(lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True))
    out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    dout = torch.randn_like(out)
    backward = seconds(lambda: torch.autograd.grad(out, (q, k, v), dout, retain_graph=True))
    print("PyTorch: attention of %d x %d tokens: forward %.1f us, backward %.1f us" %
          (samples, tokens, forward * 1e6, backward * 1e6))
    return dict(samples=samples, tokens=tokens, forward_us=forward * 1e6, backward_us=backward * 1e6)


def main():
    options = dict(device="cuda", dtype=torch.bfloat16)
    a, b = torch.rand(8192, 8192, **options) - 0.5, torch.rand(8192, 8192, **options) - 0.5
    peak = 2 * 8192**3 / seconds(lambda: a @ b)
    block = Block().to(**options)
    rows = []
    for tokens in (1024, 2048):
        for samples in (1, 2, 4):
            x = torch.randn(samples, tokens, HIDDEN, requires_grad=True, **options)
            dy = torch.randn_like(x)
            forward = seconds(lambda: block(x))
            y = block(x)
            backward = seconds(lambda: torch.autograd.backward(y, dy, retain_graph=True))
            m = samples * tokens
            flops = 24 * m * HIDDEN**2 + 4 * m * tokens * HIDDEN
            rows.append(dict(tokens=tokens, samples=samples, forward_ms=forward * 1e3,
                             forward_share=flops / forward / peak, backward_ms=backward * 1e3,
                             backward_share=2 * flops / backward / peak))
            print("PyTorch %s: %5d tokens, %d samples: forward %.3f ms (%.0f%%), backward %.3f ms (%.0f%%)" %
                  (torch.__version__, tokens, samples, forward * 1e3, 100 * rows[-1]["forward_share"],
                   backward * 1e3, 100 * rows[-1]["backward_share"]))
    sizes = ((1, 1024), (1, 2048), (4, 2048), (1, 8192))
    alone = [attention(samples, tokens, options) for samples, tokens in sizes]
    with open(sys.argv[1], "w") as out:
        json.dump(dict(version=torch.__version__, matmul_peak_tflops=peak * 1e-12, layers=rows,
                       attention=alone), out)


if __name__ == "__main__":
    main()

"""The networks of pipelab's zoo in PyTorch, written from the layers' specifications (models/specs/*_spec.h).

Each function takes the weights (by pipelab's parameter names), one micro-batch and the network's settings,
and returns the sum of the losses over the micro-batch's targets. Arithmetic is torch.nn.functional's.

Weights are in PyTorch's layouts: matrices [out, in], convolutions [out, in, height, width].
"""
from __future__ import annotations

import functools
import json
import math
import struct
from typing import Callable

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

Weights = dict[str, Tensor]
Batch = dict[str, Tensor]
Settings = dict[str, float]


# --- files ---


def read_safetensors(path: str) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Arrays and metadata of a safetensors file: 8 bytes of header length, JSON, raw little-endian data."""
    with open(path, "rb") as file:
        content = file.read()
    (length,) = struct.unpack_from("<Q", content)
    header = json.loads(content[8:8 + length])
    metadata = header.pop("__metadata__", {})
    types = {"F32": "<f4", "I32": "<i4", "I64": "<i8"}
    arrays = {}
    for name, entry in header.items():
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        arrays[name] = np.frombuffer(content[begin:end],
                                     types[entry["dtype"]]).reshape(entry["shape"])
    return arrays, metadata


def to_pytorch_layout(name: str, value: np.ndarray) -> np.ndarray:
    """pipelab has [in, out] and [height, width, in, out]; tables of embeddings are [rows, width] in both."""
    if value.ndim == 4:
        return value.transpose(3, 2, 0, 1)
    if value.ndim == 2 and name.rsplit("/", 1)[-1].startswith("w"):
        return value.T
    return value


# --- parts ---


def linear(w: Weights, name: str, x: Tensor, suffix: str = "") -> Tensor:
    return F.linear(x, w[f"{name}/w{suffix}"], w[f"{name}/b{suffix}"])


def layer_norm(w: Weights, name: str, x: Tensor) -> Tensor:
    return F.layer_norm(x, x.shape[-1:], w[f"{name}/gamma"], w[f"{name}/beta"], eps=1e-5)


def gelu(x: Tensor) -> Tensor:
    return F.gelu(x, approximate="tanh")


def key_padding(lengths: Tensor, keys: int) -> Tensor:
    """True where a key is padding: [samples, 1, 1, keys], for scores [samples, heads, queries, keys]."""
    return (torch.arange(keys) >= lengths.view(-1, 1)).view(-1, 1, 1, keys)


@functools.lru_cache(maxsize=None)
def causal(tokens: int) -> Tensor:
    return torch.ones(tokens, tokens, dtype=torch.bool).triu(1)


def attend(q: Tensor, k: Tensor, v: Tensor, heads: int, hidden_keys: Tensor | None) -> Tensor:
    """Softmax attention of [samples, tokens, width]; `hidden_keys` is True for pairs that do not count."""
    split = lambda t: t.view(t.shape[0], t.shape[1], heads, -1).transpose(1, 2)
    q, k, v = split(q), split(k), split(v)
    scores = (q * (1 / math.sqrt(q.shape[-1]))) @ k.transpose(-2, -1)
    if hidden_keys is not None:
        scores = scores.masked_fill(hidden_keys, float("-inf"))
    return (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)


def self_attention(w: Weights, name: str, x: Tensor, heads: int,
                   hidden_keys: Tensor | None) -> Tensor:
    q, k, v = linear(w, name, layer_norm(w, name, x), "qkv").chunk(3, dim=-1)
    return x + linear(w, name, attend(q, k, v, heads, hidden_keys), "o")


def cross_attention(w: Weights, name: str, x: Tensor, memory: Tensor, heads: int,
                    hidden_keys: Tensor) -> Tensor:
    q = linear(w, name, layer_norm(w, name, x), "q")
    k, v = linear(w, name, memory, "kv").chunk(2, dim=-1)
    return x + linear(w, name, attend(q, k, v, heads, hidden_keys), "o")


def mlp(w: Weights, name: str, x: Tensor) -> Tensor:
    return x + linear(w, name, gelu(linear(w, name, layer_norm(w, name, x), "1")), "2")


def embedding(w: Weights, name: str, tokens: Tensor, table: str = "") -> Tensor:
    """A token table's rows plus learned positions."""
    return F.embedding(tokens, w[table or f"{name}/tokens"]) + w[f"{name}/positions"]


def patch_embedding(w: Weights, name: str, image: Tensor) -> Tensor:
    """Patches of [samples, height, width, channels] through one matrix: a convolution as wide as its stride."""
    weight, channels = w[f"{name}/w"], image.shape[3]
    patch = math.isqrt(weight.shape[1] // channels)
    kernel = weight.view(-1, patch, patch, channels).permute(0, 3, 1, 2)
    x = F.conv2d(image.permute(0, 3, 1, 2), kernel, w[f"{name}/b"], stride=patch)
    x = x.flatten(2).transpose(1, 2)
    if f"{name}/class" in w:
        x = torch.cat([w[f"{name}/class"].expand(x.shape[0], 1, -1), x], dim=1)
    return x + w[f"{name}/positions"]


@functools.lru_cache(maxsize=None)
def sinusoids(tokens: int, hidden: int, dtype: torch.dtype) -> Tensor:
    """Vaswani et al. 2017: sines in the even columns, cosines in the odd ones."""
    column = torch.arange(hidden, dtype=torch.float64)
    frequency = 10000.0 ** (-2 * torch.div(column, 2, rounding_mode="floor") / hidden)
    angle = torch.arange(tokens, dtype=torch.float64).view(-1, 1) * frequency
    return torch.where(column % 2 == 0, angle.sin(), angle.cos()).to(dtype)


def cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """Summed; targets of -1 are not asked for."""
    return F.cross_entropy(logits.flatten(0, -2), targets.flatten(), ignore_index=-1, reduction="sum")


def head(w: Weights, x: Tensor, targets: Tensor, table: str = "head/table") -> Tensor:
    return cross_entropy(F.linear(layer_norm(w, "head", x), w[table]), targets)


def conv(w: Weights, name: str, x: Tensor, stride=1, relu: bool = False, norm: bool = True) -> Tensor:
    """The zoo's unit: ReLU in front, norm behind, zeros around the image that keep its size at stride 1."""
    weight = w[f"{name}/w"]
    padding = ((weight.shape[2] - 1) // 2, (weight.shape[3] - 1) // 2)
    x = F.conv2d(F.relu(x) if relu else x, weight, w.get(f"{name}/b"), stride, padding)
    return batch_norm(w, name, x) if norm else x


def batch_norm(w: Weights, name: str, x: Tensor) -> Tensor:
    return F.batch_norm(x, None, None, w[f"{name}/gamma"], w[f"{name}/beta"], training=True, eps=1e-5)


def average3(x: Tensor, stride: int) -> Tensor:
    return F.avg_pool2d(x, 3, stride, padding=1, count_include_pad=False)


def classifier(w: Weights, x: Tensor, targets: Tensor) -> Tensor:
    """Of rows of channels, [samples, (rows,) channels]."""
    return cross_entropy(linear(w, "classifier", x), targets)


def dense_chain(w: Weights, prefix: str, x: Tensor, layers: int) -> Tensor:
    for i in range(layers):
        x = F.relu(linear(w, f"{prefix}/dense{i}", x))
    return x


# --- networks ---


def gpt(w: Weights, batch: Batch, s: Settings, table: str = "") -> Tensor:
    x = embedding(w, "embedding", batch["tokens"], table)
    hidden_keys = causal(x.shape[1])
    for i in range(s["layers"]):
        x = self_attention(w, f"block{i}/attention", x, s["heads"], hidden_keys)
        x = mlp(w, f"block{i}/mlp", x)
    return head(w, x, batch["targets"], table or "head/table")


def gpt_tied(w: Weights, batch: Batch, s: Settings) -> Tensor:
    return gpt(w, batch, s, table="embedding")


def rms_norm(w: Weights, name: str, x: Tensor) -> Tensor:
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * w[f"{name}/gamma"]


def rotate(x: Tensor, heads: int) -> Tensor:
    """Rotary positions: [samples, tokens, hidden] whose heads turn by their token, pairs half a head apart."""
    samples, tokens, hidden = x.shape
    half = hidden // heads // 2
    pair, token = (torch.arange(n, dtype=torch.float64) for n in (half, tokens))
    angle = token.view(-1, 1, 1) * 10000.0 ** (-pair / half)  # [tokens, 1, pairs]
    cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    a, b = x.view(samples, tokens, heads, 2, half).unbind(3)
    return torch.stack([a * cos - b * sin, a * sin + b * cos], 3).view(samples, tokens, hidden)


def repeated(x: Tensor, heads: int, times: int) -> Tensor:
    """Heads of k or v, each as often as heads of q share it."""
    samples, tokens, width = x.shape
    return x.view(samples, tokens, heads, -1).repeat_interleave(times, 2).view(samples, tokens, times * width)


def experts(w: Weights, name: str, x: Tensor, s: Settings) -> Tensor:
    """A mixture of gated feed-forwards, and one more of which every token takes all: the shared ones."""
    h = rms_norm(w, name, x)
    logits, w1, w2 = h @ w[f"{name}/router"], w[f"{name}/w1"], w[f"{name}/w2"]
    scores = logits.sigmoid() if s["sigmoid"] else logits.softmax(-1)
    open_logits = logits
    if s.get("nodes", 0) > 0:  # of the nodes with the largest sums of two scores
        nodes = scores.unflatten(-1, (s["nodes"], -1)).topk(2).values.sum(-1).topk(
            s["most_nodes"]).indices
        closed = torch.ones_like(scores).unflatten(-1, (s["nodes"], -1))
        closed = closed.scatter(-2, nodes.unsqueeze(-1).expand(*nodes.shape, closed.shape[-1]), 0.0)
        open_logits = logits.masked_fill(closed.flatten(-2).bool(), float("-inf"))
    chosen = open_logits.topk(s["chosen"]).indices
    taken = torch.zeros_like(scores).scatter(-1, chosen, scores.gather(-1, chosen))
    weights = s["scale"] * taken / taken.sum(-1, keepdim=True)
    for e in range(len(w1)):
        gate, value = (h @ w1[e]).chunk(2, dim=-1)
        y = (F.silu(gate) * value) @ w2[e]
        x = x + weights[..., e:e + 1] * y
    if f"{name}/w1_shared" in w:
        gate, value = F.linear(h, w[f"{name}/w1_shared"]).chunk(2, dim=-1)
        x = x + F.linear(F.silu(gate) * value, w[f"{name}/w2_shared"])
    return x


def head_norms(w: Weights, name: str, x: Tensor) -> Tensor:
    gamma = w.get(name)
    if gamma is None:
        return x
    heads = x.unflatten(-1, (-1, len(gamma)))
    return (heads * torch.rsqrt(heads.pow(2).mean(-1, keepdim=True) + 1e-5) * gamma).flatten(-2)


def latent_attention(w: Weights, name: str, x: Tensor, s: Settings) -> Tensor:
    """DeepSeek-V2's and V3's: keys and values of all heads from one narrow row, and one key that turns for all."""
    heads, rope, h = s["heads"], s["rope_size"], rms_norm(w, name, x)
    q = head_norms(w, f"{name}/qgamma", F.linear(h, w[f"{name}/wqa"])) if f"{name}/wqa" in w else h
    q = F.linear(q, w[f"{name}/wqb"]).unflatten(-1, (heads, -1))
    turned = rotate(q[..., :rope].flatten(2), heads).unflatten(-1, (heads, rope))
    q = torch.cat([turned, q[..., rope:]], dim=-1)
    latent = head_norms(w, f"{name}/kgamma", F.linear(h, w[f"{name}/wkva"]))
    own = F.linear(latent, w[f"{name}/wkvb"]).unflatten(-1, (heads, -1))
    shared = rotate(F.linear(h, w[f"{name}/wkr"]), 1).unsqueeze(2).expand(-1, -1, heads, -1)
    nope = q.shape[-1] - rope
    k, v = torch.cat([shared, own[..., :nope]], dim=-1), own[..., nope:]
    mix = attend(q.flatten(2), k.flatten(2), v.flatten(2), heads, causal(x.shape[1]))
    return x + F.linear(mix, w[f"{name}/wo"])


def grouped_attention(w: Weights, name: str, x: Tensor, s: Settings, hidden_keys: Tensor) -> Tensor:
    heads, kv_heads = s["heads"], s.get("kv_heads", s["heads"])
    qkv = F.linear(rms_norm(w, name, x), w[f"{name}/wqkv"], w.get(f"{name}/bqkv"))
    head_size = qkv.shape[-1] // (heads + 2 * kv_heads)
    q, k, v = qkv.split([heads * head_size] + 2 * [kv_heads * head_size], dim=-1)
    q, k = head_norms(w, f"{name}/qgamma", q), head_norms(w, f"{name}/kgamma", k)
    q, k = rotate(q, heads), rotate(k, kv_heads)
    k, v = repeated(k, kv_heads, heads // kv_heads), repeated(v, kv_heads, heads // kv_heads)
    return x + F.linear(attend(q, k, v, heads, hidden_keys), w[f"{name}/wo"])


def llama(w: Weights, batch: Batch, s: Settings, table: str = "") -> Tensor:
    x = F.embedding(batch["tokens"], w[table or "embedding/tokens"])
    for i in range(s["layers"]):
        name = f"block{i}/attention"
        if f"{name}/wkva" in w:
            x = latent_attention(w, name, x, s)
        else:  # with windows in every other block, from the first on
            hidden_keys = causal(x.shape[1])
            if s.get("window", 0) > 0 and i % 2 == 0:
                hidden_keys = hidden_keys | ~hidden_keys.new_ones(
                    hidden_keys.shape).triu(1 - s["window"])
            x = grouped_attention(w, name, x, s, hidden_keys)
        if f"block{i}/experts/router" in w:
            x = experts(w, f"block{i}/experts", x, s)
            continue
        name = f"block{i}/mlp"
        gate, value = F.linear(rms_norm(w, name, x), w[f"{name}/w1"]).chunk(2, dim=-1)
        x = x + F.linear(F.silu(gate) * value, w[f"{name}/w2"])
    return cross_entropy(F.linear(rms_norm(w, "head", x), w[table or "head/table"]),
                         batch["targets"])


def qwen2(w: Weights, batch: Batch, s: Settings) -> Tensor:
    return llama(w, batch, s, table="embedding")


def mixtral(w: Weights, batch: Batch, s: Settings) -> Tensor:
    return llama(w, batch, s)


def shared_experts(w: Weights, batch: Batch, s: Settings) -> Tensor:
    return llama(w, batch, s)


def deepseek(w: Weights, batch: Batch, s: Settings) -> Tensor:
    return llama(w, batch, s)


def windows(w: Weights, batch: Batch, s: Settings) -> Tensor:
    return llama(w, batch, s)


def bert(w: Weights, batch: Batch, s: Settings) -> Tensor:
    x = embedding(w, "embedding", batch["tokens"])
    hidden_keys = key_padding(batch["tokens_length"], x.shape[1])
    for i in range(s["layers"]):
        x = self_attention(w, f"block{i}/attention", x, s["heads"], hidden_keys)
        x = mlp(w, f"block{i}/mlp", x)
    x = gelu(linear(w, "dense", layer_norm(w, "norm", x)))
    return cross_entropy(linear(w, "head", layer_norm(w, "head", x)), batch["targets"])


def vit(w: Weights, batch: Batch, s: Settings) -> Tensor:
    """Judged by the class token, which is in front of the patches."""
    x = patch_embedding(w, "patches", batch["image"].permute(0, 2, 3, 1))
    for block in range(s["layers"]):
        x = self_attention(w, f"block{block}/attention", x, s["heads"], None)
        x = mlp(w, f"block{block}/mlp", x)
    return classifier(w, layer_norm(w, "norm", x)[:, 0], batch["targets"])


def transformer(w: Weights, batch: Batch, s: Settings) -> Tensor:
    table, heads = w["embedding"], s["heads"]
    source, tokens = batch["source"], batch["tokens"]
    padding = key_padding(batch["source_length"], source.shape[1])
    x = F.embedding(source, table) + sinusoids(source.shape[1], table.shape[1], table.dtype)
    for i in range(s["layers"]):
        x = self_attention(w, f"encoder/block{i}/attention", x, heads, padding)
        x = mlp(w, f"encoder/block{i}/mlp", x)
    memory = layer_norm(w, "encoder/norm", x)
    x = F.embedding(tokens, table) + sinusoids(tokens.shape[1], table.shape[1], table.dtype)
    hidden_keys = causal(tokens.shape[1])
    for i in range(s["layers"]):
        x = self_attention(w, f"decoder/block{i}/attention", x, heads, hidden_keys)
        x = cross_attention(w, f"decoder/block{i}/cross", x, memory, heads, padding)
        x = mlp(w, f"decoder/block{i}/mlp", x)
    return head(w, x, batch["targets"])


def mmt(w: Weights, batch: Batch, s: Settings) -> Tensor:
    ends = []
    hidden_keys = causal(batch["tokens"].shape[1])
    for b in range(s["branches"]):
        x = embedding(w, f"branch{b}/embedding", batch["tokens"])
        for i in range(s["layers"]):
            x = self_attention(w, f"branch{b}/block{i}/attention", x, s["heads"], hidden_keys)
            x = mlp(w, f"branch{b}/block{i}/mlp", x)
        ends.append(x)
    return head(w, linear(w, "join/dense", torch.cat(ends, dim=-1)), batch["targets"])


def mmt_modalities(w: Weights, batch: Batch, s: Settings) -> Tensor:
    """A text and a picture; attention over all tokens, the mean of a branch's tokens, a class of the sample."""
    text = embedding(w, "branch0/embedding", batch["text"])
    picture = patch_embedding(w, "branch1/embedding", batch["picture"])
    hidden_keys = (key_padding(batch["text_length"], text.shape[1]), None)
    ends = []
    for b, x in enumerate((text, picture)):
        for i in range(s["layers"]):
            x = self_attention(w, f"branch{b}/block{i}/attention", x, s["heads"], hidden_keys[b])
            x = mlp(w, f"branch{b}/block{i}/mlp", x)
        ends.append(layer_norm(w, f"branch{b}/norm", x).mean(1))
    x = linear(w, "join/dense", torch.cat(ends, dim=1))
    return cross_entropy(linear(w, "head", x), batch["targets"])


def case_study(w: Weights, batch: Batch, s: Settings) -> Tensor:
    hidden_keys = causal(batch["tokens"].shape[1])
    total = 0
    for b in range(s["branches"]):
        x = embedding(w, f"branch{b}/embedding", batch["tokens"])
        for i in range(s["layers"]):
            name = f"branch{b}/repeat{i}"
            x = self_attention(w, f"{name}/attention", x, s["heads"], hidden_keys)
            x = linear(w, f"{name}/linear1", gelu(linear(w, f"{name}/linear0", x)))
        total = total + x
    return head(w, total, batch["targets"])


def dense_branches(w: Weights, batch: Batch, layers: int) -> list[Tensor]:
    """Branches are named "branch<index of their first layer>/<field>", in the order of their layers."""
    names = {name.rsplit("/dense", 1)[0] for name in w if name.startswith("branch")}
    names = sorted(names, key=lambda name: int(name.split("/")[0][len("branch"):]))
    return [dense_chain(w, name, batch[name.split("/")[1]], layers) for name in names]


def bags(w: Weights, batch: Batch) -> list[Tensor]:
    """Sums of a table's rows; places of -1 hold no id."""
    names = [name.rsplit("/", 1)[0] for name in w if name.startswith("bag")]
    ends = []
    for name in sorted(names, key=lambda name: int(name.split("/")[0][len("bag"):])):
        ids = batch[name.split("/")[1]]
        there = ids >= 0
        offsets = F.pad(there.sum(1).cumsum(0), (1, 0))[:-1]
        ends.append(F.embedding_bag(ids[there], w[f"{name}/table"], offsets, mode="sum"))
    return ends


def join(w: Weights, ends: list[Tensor], layers: int) -> Tensor:
    return linear(w, "join/out", dense_chain(w, "join", torch.cat(ends, dim=1), layers))


def dlrm(w: Weights, batch: Batch, s: Settings) -> Tensor:
    ends = dense_branches(w, batch, s["dense_layers"]) + bags(w, batch)
    logits = join(w, ends, s["join_layers"])
    return F.binary_cross_entropy_with_logits(logits, batch["targets"], reduction="sum")


def candle_uno(w: Weights, batch: Batch, s: Settings) -> Tensor:
    y = join(w, dense_branches(w, batch, s["layers"]), s["join_layers"])
    return F.mse_loss(y, batch["targets"], reduction="sum")


def factorized_reduction(w: Weights, name: str, x: Tensor) -> Tensor:
    """Half of the channels see the even pixels, the others the odd ones."""
    even = conv(w, f"{name}/even_conv", x[:, :, ::2, ::2], relu=True, norm=False)
    odd = conv(w, f"{name}/odd_conv", x[:, :, 1::2, 1::2], relu=True, norm=False)
    return batch_norm(w, f"{name}/norm", torch.cat([even, odd], dim=1))


def narrow_conv(w: Weights, name: str, x: Tensor, kernels: list[str], strides: list) -> Tensor:
    """Down to a quarter of the channels, through the kernels, and up again."""
    x = conv(w, f"{name}/down", x, relu=True)
    for kernel, stride in zip(kernels, strides):
        x = conv(w, f"{name}/{kernel}", x, stride, relu=True)
    return conv(w, f"{name}/up", x, relu=True)


def normal_cell(w: Weights, name: str, h: list[Tensor]) -> Tensor:
    """Sums of two operations each, of earlier states; h[0] and h[1] are the cell's reduced inputs."""
    seven = lambda part, x: narrow_conv(w, f"{name}/{part}", x, ["1x7", "7x1"], [1, 1])
    h.append(conv(w, f"{name}/state2a/conv", h[1], relu=True) + F.max_pool2d(h[1], 3, 1, 1))
    h.append(h[1] + seven("state3b", h[0]))
    h.append(conv(w, f"{name}/state4a/conv", h[0], relu=True) + seven("state4b", h[0]))
    h.append(F.max_pool2d(h[2], 3, 1, 1) + h[2])
    h.append(average3(h[1], 1) + conv(w, f"{name}/state6b/conv", h[5], relu=True))
    return torch.cat([h[0], h[3], h[4], h[6]], dim=1)


def reduction_cell(w: Weights, name: str, h: list[Tensor]) -> Tensor:
    h.append(F.max_pool2d(h[0], 2, 2) + F.max_pool2d(h[0], 3, 2, 1))
    h.append(h[2] + narrow_conv(w, f"{name}/state3b", h[1], ["conv"], [2]))
    h.append(narrow_conv(w, f"{name}/state4a", h[2], ["1x7", "7x1"], [1, 1]) + F.max_pool2d(h[2], 3, 1, 1))
    h.append(h[3] + F.max_pool2d(h[1], 2, 2))
    h.append(average3(h[2], 1) + conv(w, f"{name}/state6b/conv", h[3], relu=True))
    return torch.cat([h[4], h[5], h[6]], dim=1)


def amoebanet_d(w: Weights, batch: Batch, s: Settings) -> Tensor:
    third = s["layers"] // 3
    cells = ["reduction"] * s["stem_reductions"] + ["normal"] * third
    cells += 2 * (["reduction"] + ["normal"] * third)
    last = before = conv(w, "stem", batch["image"], s["stem_stride"])
    after_reduction = False
    for i, kind in enumerate(cells):
        name = f"cell{i + 1}_{kind}"
        reduced = conv(w, f"{name}/reduce1", last, relu=True)
        if after_reduction:
            before = factorized_reduction(w, f"{name}/reduce2", before)
        elif f"{name}/reduce2/w" in w:
            before = conv(w, f"{name}/reduce2", before, relu=True)
        cell = reduction_cell if kind == "reduction" else normal_cell
        last, before = cell(w, name, [before, reduced]), last
        after_reduction = kind == "reduction"
    return classifier(w, last.mean((2, 3)), batch["targets"])


def resnet(w: Weights, batch: Batch, s: Settings) -> Tensor:
    x = F.max_pool2d(F.relu(conv(w, "stem/conv", batch["image"], 2)), 3, 2, 1)
    for part in range(1, s["parts"] + 1):
        for i in range(1, s[f"blocks{part}"] + 1):
            name = f"part{part}/block{i}"
            stride = 2 if part > 1 and i == 1 else 1
            y = conv(w, f"{name}/conv1", x)
            y = conv(w, f"{name}/conv2", y, stride, relu=True)
            y = conv(w, f"{name}/conv3", y, relu=True)
            if f"{name}/shortcut/w" in w:
                x = conv(w, f"{name}/shortcut", x, stride)
            x = F.relu(y + x)
    return classifier(w, x.mean((2, 3)), batch["targets"])


def unet(w: Weights, batch: Batch, s: Settings) -> Tensor:
    def level(name: str, x: Tensor) -> Tensor:
        return F.relu(conv(w, f"{name}/conv2", conv(w, f"{name}/conv1", x), relu=True))

    x, skips = batch["image"], []
    for i in range(1, s["levels"] + 1):
        skips.append(level(f"down{i}", x))
        x = F.max_pool2d(skips[-1], 2, 2)
    x = level("bottom", x)
    for i in range(s["levels"], 0, -1):
        up = F.conv_transpose2d(x, w[f"up{i}/up/w"], stride=2)
        x = level(f"up{i}", torch.cat([skips[i - 1], up], dim=1))
    return classifier(w, x.permute(0, 2, 3, 1).flatten(1, 2), batch["targets"])


def vgg16(w: Weights, batch: Batch, s: Settings) -> Tensor:
    x = batch["image"]
    for part, convolutions in enumerate([2, 2, 3, 3, 3], start=1):
        for i in range(1, convolutions + 1):
            x = F.relu(conv(w, f"conv{part}_{i}", x, norm=False))
        x = F.max_pool2d(x, 2, 2)
    x = x.permute(0, 2, 3, 1).flatten(1)  # pipelab's pixels are rows of channels
    x = F.relu(linear(w, "dense2", F.relu(linear(w, "dense1", x))))
    return classifier(w, x, batch["targets"])


NETWORKS: dict[str, Callable[[Weights, Batch, Settings], Tensor]] = {
    f.__name__: f for f in (gpt, gpt_tied, bert, vit, transformer, mmt, mmt_modalities, case_study,
                            dlrm, candle_uno, amoebanet_d, resnet, unet, vgg16, llama, qwen2,
                            mixtral, shared_experts, deepseek, windows)
}
# The same networks with other optimizers.
NETWORKS |= {"gpt_adamw": gpt, "gpt_sgd": gpt_tied, "mmt_rmsprop": mmt}


# --- training ---


def make_optimizer(w: Weights, s: Settings, foreach: bool) -> torch.optim.Optimizer:
    common = {"params": list(w.values()), "lr": s["learning_rate"], "weight_decay": s["weight_decay"],
              "foreach": foreach}
    if s["optimizer"] == "sgd":
        return torch.optim.SGD(**common, momentum=s["momentum"], nesterov=s["nesterov"])
    if s["optimizer"] == "rmsprop":
        return torch.optim.RMSprop(**common, alpha=s["decay"], momentum=s["momentum"], eps=s["epsilon"])
    return torch.optim.AdamW(**common, betas=(s["beta1"], s["beta2"]), eps=s["epsilon"])


def rate_factor(s: Settings, step: int) -> float:
    """What the learning rate of a step, from 1 on, is multiplied by."""
    warmup = s["warmup_steps"]
    if step <= warmup:
        return step / warmup
    if s["rate_decay"] == "inverse_sqrt":
        return math.sqrt(max(warmup, 1) / step)
    if s["rate_decay"] == "cosine":
        part = (step - 1 - warmup) / (s["total_steps"] - warmup)
        return 0.5 * (1 + math.cos(math.pi * part)) if part < 1 else 0.0
    return 1.0


class Training:
    """A network with its exported weights and batches, as PyTorch trains it."""

    def __init__(self, arrays: dict[str, np.ndarray], metadata: dict[str, str], name: str, dtype: torch.dtype,
                 channels_last: bool = False, foreach: bool = False):
        self.network = NETWORKS[name]
        self.settings = json.loads(metadata[name])
        self.data = {}
        for key, value in arrays.items():
            if key.startswith(f"{name}/data/"):
                tensor = torch.from_numpy(value.copy())
                self.data[key.split("/")[-1]] = tensor.to(
                    dtype if tensor.is_floating_point() else torch.int64)
        if "image" in self.data:  # channels are last in the file
            self.data["image"] = self.data["image"].permute(0, 1, 4, 2, 3)
            if not channels_last:
                self.data["image"] = self.data["image"].contiguous()
        self.weights = {}
        prefix = f"{name}/parameter/"
        for key, value in arrays.items():
            if key.startswith(prefix):
                value = torch.from_numpy(to_pytorch_layout(key, value).copy()).to(dtype)
                if channels_last and value.ndim == 4:
                    value = value.contiguous(memory_format=torch.channels_last)
                self.weights[key[len(prefix):]] = value.requires_grad_()
        self.optimizer = make_optimizer(self.weights, self.settings, foreach)
        self.schedule = torch.optim.lr_scheduler.LambdaLR(
            self.optimizer, lambda i: rate_factor(self.settings, i + 1))

    def gradients(self, step: int, order: int = 1) -> float:
        """Adds the gradients of the step's mean loss up over its micro-batches, and returns that loss.

        `order` of -1 takes the samples of each micro-batch in the opposite order.
        """
        self.optimizer.zero_grad(set_to_none=True)
        micro_batches = self.settings["micro_batches"]
        targets = self.data["targets"][step].numel()
        total = 0.0
        for m in range(micro_batches):
            batch = {}
            for name, data in self.data.items():
                size = data.shape[1] // micro_batches
                rows = data[step, m * size:(m + 1) * size]
                batch[name] = rows if order == 1 else rows.flip(0)
            loss = self.network(self.weights, batch, self.settings)
            (loss / targets).backward()
            total += float(loss.detach())
        return total / targets

    def gradient_norm(self) -> float:
        squares = sum(float(w.grad.double().square().sum()) for w in self.weights.values())
        return math.sqrt(squares)

    def update(self) -> None:
        clip_norm = self.settings["clip_norm"]
        if clip_norm > 0:
            torch.nn.utils.clip_grad_norm_(self.weights.values(), clip_norm)
        self.optimizer.step()
        self.schedule.step()

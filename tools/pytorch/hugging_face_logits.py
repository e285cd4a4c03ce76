"""Logits that Hugging Face's transformers computes, for tests/pytorch/hugging_face_test.cc.

    tools/dev/python_venv.sh venv tools/pytorch/transformers_requirements.txt
    venv/bin/python tools/pytorch/hugging_face_logits.py            # to tests/pytorch/hugging_face.json
    venv/bin/python tools/pytorch/hugging_face_logits.py --check    # compares with that file
    venv/bin/python tools/pytorch/hugging_face_logits.py --save=DIR # and saves models for pipelab

One small model of each family, whose weights are a formula of the tensor's name and the number's
index (weights_of below, WeightOf in the test), so that the file holds sizes and logits alone. The
numbers are multiples of 1/256, which float16 and bfloat16 have too. Logits are float64's; the
difference of float32's is printed. The norms' epsilon is large, so that a wrong one is seen.
"""

import argparse
import json
import os
import sys

import numpy as np
import torch
import transformers

FILE = os.path.join(os.path.dirname(__file__), "../../tests/pytorch/hugging_face.json")

LLAMA = dict(
    vocab_size=19, hidden_size=24, intermediate_size=20, num_hidden_layers=2,
    num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=16,
    rms_norm_eps=0.01, rope_theta=100.0, tie_word_embeddings=False, sliding_window=None,
    bos_token_id=None, eos_token_id=None, pad_token_id=None)


def llama(**changes):
    return {k: v for k, v in dict(LLAMA, **changes).items() if v is not ...}


CONFIGS = {
    "gpt2": ("gpt2", dict(
        vocab_size=19, n_embd=24, n_layer=2, n_head=4, n_inner=20, n_positions=16,
        layer_norm_epsilon=0.01, bos_token_id=None, eos_token_id=None)),
    "llama": ("llama", llama(sliding_window=...)),
    "llama_biases": ("llama", llama(sliding_window=..., attention_bias=True, mlp_bias=True,
                                    tie_word_embeddings=True)),
    "mistral": ("mistral", llama(head_dim=8)),
    "mistral_windows": ("mistral", llama(head_dim=8, sliding_window=4)),
    "mixtral": ("mixtral", llama(num_local_experts=4, num_experts_per_tok=2)),
    "qwen2": ("qwen2", llama(tie_word_embeddings=True)),
    "qwen3": ("qwen3", llama(tie_word_embeddings=True, head_dim=8)),
    "qwen3_moe": ("qwen3_moe", llama(
        head_dim=8, num_experts=5, num_experts_per_tok=2, moe_intermediate_size=12,
        norm_topk_prob=False)),
    "gemma": ("gemma", llama(sliding_window=..., head_dim=8, num_key_value_heads=1,
                             hidden_activation="gelu_pytorch_tanh", tie_word_embeddings=True)),
    "gemma2": ("gemma2", llama(
        head_dim=8, hidden_activation="gelu_pytorch_tanh", tie_word_embeddings=True,
        query_pre_attn_scalar=11, sliding_window=4, attn_logit_softcapping=None,
        final_logit_softcapping=None)),
    "gemma3_text": ("gemma3_text", llama(
        head_dim=8, hidden_activation="gelu_pytorch_tanh", tie_word_embeddings=True,
        query_pre_attn_scalar=11, sliding_window=4, sliding_window_pattern=2, num_hidden_layers=3,
        rope_local_base_freq=7.0, attn_logit_softcapping=None, final_logit_softcapping=None)),
    "deepseek_v3": ("deepseek_v3", llama(
        sliding_window=..., num_key_value_heads=4, q_lora_rank=12, kv_lora_rank=10,
        qk_nope_head_dim=6, qk_rope_head_dim=4, v_head_dim=5, n_routed_experts=6,
        num_experts_per_tok=2, n_shared_experts=2, moe_intermediate_size=7,
        first_k_dense_replace=1, n_group=1, topk_group=1, routed_scaling_factor=2.5,
        norm_topk_prob=True)),
    "deepseek_v3_groups": ("deepseek_v3", llama(
        sliding_window=..., num_key_value_heads=4, q_lora_rank=12, kv_lora_rank=10,
        qk_nope_head_dim=6, qk_rope_head_dim=4, v_head_dim=5, n_routed_experts=8,
        num_experts_per_tok=3, n_shared_experts=1, moe_intermediate_size=7,
        first_k_dense_replace=0, n_group=4, topk_group=2, routed_scaling_factor=2.5,
        norm_topk_prob=True)),
    "deepseek_v3_wide": ("deepseek_v3", llama(
        sliding_window=..., num_key_value_heads=4, q_lora_rank=None, kv_lora_rank=10,
        qk_nope_head_dim=4, qk_rope_head_dim=6, v_head_dim=8, n_routed_experts=4,
        num_experts_per_tok=3, n_shared_experts=1, moe_intermediate_size=9,
        first_k_dense_replace=0, n_group=1, topk_group=1, routed_scaling_factor=1.0,
        norm_topk_prob=False)),
    "bert": ("bert", dict(
        vocab_size=19, hidden_size=24, intermediate_size=20, num_hidden_layers=2,
        num_attention_heads=4, max_position_embeddings=16, type_vocab_size=2,
        layer_norm_eps=0.01, hidden_act="gelu", pad_token_id=0)),
    "bert_tanh_gelu": ("bert", dict(
        vocab_size=19, hidden_size=24, intermediate_size=30, num_hidden_layers=3,
        num_attention_heads=3, max_position_embeddings=11, type_vocab_size=3,
        layer_norm_eps=1e-12, hidden_act="gelu_new", pad_token_id=0,
        tie_word_embeddings=False)),
    "vit": ("vit", dict(
        hidden_size=24, intermediate_size=20, num_hidden_layers=2, num_attention_heads=4,
        image_size=8, patch_size=4, num_channels=3, num_labels=5, layer_norm_eps=0.01,
        hidden_act="gelu_pytorch_tanh")),
    "vit_exact_gelu": ("vit", dict(
        hidden_size=24, intermediate_size=20, num_hidden_layers=2, num_attention_heads=4,
        image_size=8, patch_size=4, num_channels=3, num_labels=5, layer_norm_eps=0.01,
        hidden_act="gelu")),
}


def stream_of(name):
    """FNV-1a of the name."""
    h = 0xCBF29CE484222325
    for byte in name.encode():
        h = (h ^ byte) * 0x100000001B3 % 2**64
    return h


def weights_of(name, shape):
    """k / 256 with k from -127 to 127: splitmix64 of the name's stream and the index. Biases that choose experts are 0."""
    if name.endswith("e_score_correction_bias"):
        return np.zeros(shape)
    with np.errstate(over="ignore"):
        z = np.arange(1, int(np.prod(shape)) + 1, dtype=np.uint64)
        z = np.uint64(stream_of(name)) + z * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
    k = (z >> np.uint64(32)) % np.uint64(255)
    return ((k.astype(np.float64) - 127) / 256).reshape(shape)


def stored(model):
    """The tensors that save_pretrained writes: names and shapes."""
    tied = set(getattr(model, "_tied_weights_keys", None) or [])
    if not getattr(model.config, "tie_word_embeddings", False):
        tied = set()
    names = {}  # the first of those that share memory
    for k, v in model.state_dict().items():
        if k not in tied:
            names.setdefault(v.data_ptr(), k)
    return {k: v for k, v in model.state_dict().items() if k in names.values()}


def deepseek_experts_of_any_type():
    """Its routers are float32 whatever the model is of, and so are the sums of its experts."""
    experts = transformers.models.deepseek_v3.modeling_deepseek_v3.DeepseekV3MoE
    moe = experts.moe
    experts.moe = lambda self, x, chosen, weights: moe(self, x, chosen, weights.to(x.dtype))


def make(kind, sizes):
    config = transformers.AutoConfig.for_model(kind, **sizes)
    config._attn_implementation = "eager"
    auto = {"vit": transformers.AutoModelForImageClassification,
            "bert": transformers.AutoModelForMaskedLM}.get(kind, transformers.AutoModelForCausalLM)
    model = auto.from_config(config).eval()
    with torch.no_grad():
        for name, tensor in stored(model).items():
            tensor.copy_(torch.from_numpy(weights_of(name, tuple(tensor.shape))))
    model.tie_weights()
    return model


def golden(name, save):
    kind, sizes = CONFIGS[name]
    model = make(kind, sizes)
    if kind == "vit":  # a sample: numbers of the formula, channels first
        side, channels = sizes["image_size"], sizes["num_channels"]
        sample = {"image": [channels, side, side]}
        given = torch.from_numpy(weights_of("image", (1, channels, side, side))).float()
    else:
        sample = {"tokens": [(7 * i + 3) % 19 for i in range(11)]}
        given = torch.tensor([sample["tokens"]])
    with torch.no_grad():
        narrow = model(given).logits.double()
        if save:
            model.save_pretrained(os.path.join(save, name))
        shapes = {k: list(v.shape) for k, v in stored(model).items()}
        model = model.double()
        logits = model(given.double() if kind == "vit" else given).logits
    if kind != "vit":
        narrow, logits = narrow[0], logits[0]
    print(f"{name}: {sum(p.numel() for p in model.parameters())} parameters, logits up to "
          f"{logits.abs().max():.3f}, float32 differs by {(narrow - logits).abs().max():.2e}")
    config = dict(json.loads(model.config.to_json_string(use_diff=False)))
    kept = {k: config.get(k, sizes[k]) for k in sorted(sizes)}
    kept = {k: v for k, v in kept.items() if v is not None or k.endswith("softcapping")}
    return {
        "config": dict(kept, model_type=kind),
        "parameters": sum(p.numel() for p in model.parameters()),
        "tensors": shapes,
        **sample,
        "logits": [[float(f"{x:.9g}") for x in row] for row in logits.tolist()],
    }


def as_text(goldens):
    """One line for each value of a model."""
    models = []
    for name, g in goldens.items():
        lines = ",\n  ".join(f'"{k}": {json.dumps(v)}' for k, v in g.items())
        models.append(f'"{name}": {{\n  {lines}}}')
    return "{\n" + ",\n".join(models) + "\n}\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true", help="compare, and write nothing")
    parser.add_argument("--save", default="", help="a folder for the models")
    args = parser.parse_args()
    deepseek_experts_of_any_type()
    goldens = {name: golden(name, args.save) for name in CONFIGS}
    if not args.check:
        with open(FILE, "w") as f:
            f.write(as_text(goldens))
        return 0
    with open(FILE) as f:
        known = json.load(f)
    worst = 0.0
    for name, g in goldens.items():
        if {k: v for k, v in known[name].items() if k != "logits"} != json.loads(
                json.dumps({k: v for k, v in g.items() if k != "logits"})):
            print(f"{name}: sizes or names are not those of {FILE}")
            return 1
        worst = max(worst, np.abs(np.array(known[name]["logits"]) - np.array(g["logits"])).max())
    print(f"largest difference from the file: {worst:.2e}")
    return 0 if worst < 1e-7 else 1


if __name__ == "__main__":
    sys.exit(main())

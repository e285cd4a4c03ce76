# shellcheck shell=bash
# tiny_llama FOLDER: a model as transformers saves it, of one block and 8192 words, all of whose weights are zero: each
# word is as likely as another, and the loss log(8192) = 9.010913.
tiny_llama() {
  mkdir -p "$1"
  cat >"$1/config.json" <<'JSON'
{"model_type": "llama", "hidden_size": 2, "num_hidden_layers": 1, "num_attention_heads": 1, "num_key_value_heads": 1,
 "head_dim": 2, "intermediate_size": 3, "vocab_size": 8192, "max_position_embeddings": 64, "rms_norm_eps": 1e-05,
 "tie_word_embeddings": true}
JSON
  local header='{' end=0 name rows columns bytes layer=model.layers.0
  while read -r name rows columns; do
    bytes=$((2 * rows * ${columns:-1}))
    header+="\"$name\":{\"dtype\":\"BF16\",\"shape\":[$rows${columns:+,$columns}],\"data_offsets\":[$end,$((end + bytes))]},"
    end=$((end + bytes))
  done <<TENSORS
model.embed_tokens.weight 8192 2
$layer.input_layernorm.weight 2
$layer.post_attention_layernorm.weight 2
$layer.self_attn.q_proj.weight 2 2
$layer.self_attn.k_proj.weight 2 2
$layer.self_attn.v_proj.weight 2 2
$layer.self_attn.o_proj.weight 2 2
$layer.mlp.gate_proj.weight 3 2
$layer.mlp.up_proj.weight 3 2
$layer.mlp.down_proj.weight 2 3
model.norm.weight 2
TENSORS
  header="${header%,}}"
  printf -v bytes '\\x%02x\\x%02x\\0\\0\\0\\0\\0\\0' $((${#header} % 256)) $((${#header} / 256))
  {
    # shellcheck disable=SC2059
    printf "$bytes"
    printf '%s' "$header"
    head -c "$end" /dev/zero
  } >"$1/model.safetensors"
}

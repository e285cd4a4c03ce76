// Megatron-LM's options of latent attention, windows and norms of heads.
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "models/zoo/size_check.h"
#include "pipelines/recipes/layer_pattern.h"
#include "pipelines/recipes/megatron_parts.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr char kLatent[] = "multi-latent-attention";
constexpr int64_t kMostWindow = int64_t{1} << 30;

absl::Status TakeLatent(const MegatronOptions& o, Recipe* r) {
  GptConfig& m = r->model;
  if (o.Has("group-query-attention")) {
    return o.Error("group-query-attention", "not with --", kLatent, "; give one of them");
  }
  if (m.feed_forward_kind == FeedForwardKind::kGelu) {
    return o.Error(kLatent,
                   "blocks with a GELU have biases here, and latent attention has none; "
                   "nearest: --swiglu --disable-bias-linear");
  }
  if (m.biases != Biases::kNone) {
    return o.Error(kLatent, "latent attention has no biases here; nearest: ",
                   m.biases == Biases::kAll ? "--disable-bias-linear" : "without --add-qkv-bias");
  }
  LatentHeads& l = m.latent;
  const int64_t most = kMostHidden / m.heads;
  PIPELAB_ASSIGN_OR_RETURN(l.query_rank, o.Integer("q-lora-rank", 1, kMostHidden, 0));
  PIPELAB_ASSIGN_OR_RETURN(l.rank, o.Integer("kv-lora-rank", 1, kMostHidden, 32));
  PIPELAB_ASSIGN_OR_RETURN(l.nope_size, o.Integer("qk-head-dim", 1, most, 128));
  PIPELAB_ASSIGN_OR_RETURN(l.rope_size, o.Integer("qk-pos-emb-head-dim", 1, most, 64));
  PIPELAB_ASSIGN_OR_RETURN(l.value_size, o.Integer("v-head-dim", 1, most, 128));
  if (l.rope_size % 2 != 0) {
    return o.Error("qk-pos-emb-head-dim",
                   "rotary positions take an even number; nearest: ", l.rope_size + 1);
  }
  // These heads are no others', and turn whatever positions the embedding has.
  m.kv_heads = m.head_size = 0;
  PIPELAB_ASSIGN_OR_RETURN(const int64_t base,
                           o.Integer("rotary-base", 1, int64_t{1000000000000}, 10000));
  m.rotary_base = static_cast<double>(base);
  if (!o.Has("qk-layernorm")) {
    r->assumptions.push_back("without --qk-layernorm: latent rows have RMS norms all the same");
  }
  if (r->attention == AttentionImplementation::kUnfused) {
    r->assumptions.push_back("--attention-backend unfused: latent attention is fused");
  }
  return absl::OkStatus();
}

// Tokens to the left of a token, which sees itself besides; -1: all.
absl::StatusOr<int64_t> LeftOfWindow(const MegatronOptions& o) {
  constexpr char kWindow[] = "window-size";
  PIPELAB_ASSIGN_OR_RETURN(const std::string text, o.Text(kWindow));
  absl::string_view inner = text;
  if (inner.size() > 1 && inner.front() == '(' && inner.back() == ')') {
    inner = inner.substr(1, inner.size() - 2);
  }
  const std::vector<absl::string_view> sides = absl::StrSplit(inner, ',');
  int64_t left = 0, right = 0;
  if (sides.size() != 2 || !absl::SimpleAtoi(sides[0], &left) ||
      !absl::SimpleAtoi(sides[1], &right) || left < -1 || left >= kMostWindow) {
    return o.Error(kWindow, "must be tokens to the left and to the right, such as 4095,0");
  }
  if (right == 0) return left;
  return o.Error(kWindow, "a causal token sees none to its right; nearest: --window-size ", left,
                 ",0");
}

absl::Status TakeWindows(const MegatronOptions& o, Recipe* r) {
  constexpr char kSkip[] = "window-attn-skip-freq";
  GptConfig& m = r->model;
  if (!o.Has("window-size")) {
    return o.Has(kSkip) ? o.Error(kSkip, "requires --window-size; such as 4095,0")
                        : absl::OkStatus();
  }
  PIPELAB_ASSIGN_OR_RETURN(const int64_t left, LeftOfWindow(o));
  if (m.latent.rank > 0) {
    return o.Error("window-size", "latent attention has no windows here; nearest: without it");
  }
  if (left < 0) return absl::OkStatus();
  m.windows = {left + 1};
  if (!o.Has(kSkip)) return absl::OkStatus();
  PIPELAB_ASSIGN_OR_RETURN(const std::string text, o.Text(kSkip));
  int64_t every = 0;
  if (absl::SimpleAtoi(text, &every)) {
    if (every < 1 || every > kMostLayers) {
      return o.Error(kSkip, "must be from 1 to ", kMostLayers,
                     ", every how many layers one sees all, or a list such as ([1]*5+[0]*1)");
    }
    m.windows.assign(every, left + 1);
    m.windows.back() = 0;
    return absl::OkStatus();
  }
  const absl::StatusOr<std::vector<bool>> layers = ParseLayerPattern(text, m.layers);
  if (!layers.ok()) return o.Error(kSkip, layers.status().message());
  m.windows.clear();
  for (const bool window : *layers) m.windows.push_back(window ? left + 1 : 0);
  return absl::OkStatus();
}

}  // namespace

absl::Status TakeMegatronAttention(const MegatronOptions& o, Recipe* r) {
  if (o.Has(kLatent)) {
    PIPELAB_RETURN_IF_ERROR(TakeLatent(o, r));
  } else if (o.Has("qk-layernorm")) {
    r->model.query_key_norms = true;
    if (r->model.norm != NormKind::kRms) {
      r->assumptions.push_back("--qk-layernorm: norms of queries and keys are RMS norms");
    }
  }
  constexpr char kSoftmax[] = "softmax-type";
  PIPELAB_ASSIGN_OR_RETURN(const std::string softmax,
                           o.Word(kSoftmax, {"vanilla", "off-by-one", "learnable"}, "vanilla"));
  r->model.sinks = softmax == "learnable";
  if (r->model.sinks && o.Has(kLatent)) {
    return o.Error(kSoftmax, "latent attention has no sinks here; nearest: vanilla");
  }
  if (softmax == "off-by-one") {
    r->assumptions.push_back("--softmax-type off-by-one: costs what vanilla does");
  }
  return TakeWindows(o, r);
}

}  // namespace pipelab

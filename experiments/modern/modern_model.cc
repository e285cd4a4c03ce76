#include "experiments/modern/modern_model.h"

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace pipelab {
namespace {

// Tokens that one sees where samples of SQuAD are packed: half a sample. Assumed from paragraphs of
// some 120 words and questions of 10; attention over 50 or 200 takes 1 % of a step less or more.
constexpr int64_t kSeenInPack = 100;

bool Says(const ModernModel& m, absl::string_view words) {
  return absl::StrContains(m.attention, words);
}

template <typename... Parts>
absl::Status NoModel(const Parts&... why) {
  return absl::FailedPreconditionError(absl::StrCat(why...));
}

// The number behind "kv_lora " in "mla: q_lora 1536 kv_lora 512 nope 128"; 0: none.
int64_t NumberBehind(absl::string_view words, absl::string_view name) {
  const size_t at = words.find(absl::StrCat(" ", name, " "));
  if (at == absl::string_view::npos) return 0;
  words.remove_prefix(at + name.size() + 2);
  int64_t number = 0;
  return absl::SimpleAtoi(words.substr(0, words.find_first_not_of("0123456789")), &number) ? number
                                                                                           : 0;
}

void TakeSizes(const ModernModel& m, const ModernRow& row, GptConfig* c) {
  c->layers = m.layers;
  c->hidden = m.hidden;
  c->heads = m.heads;
  c->tokens = row.tokens;
  c->feed_forward = m.feed_forward;
  // Each device of a tensor-parallel group has as many words.
  c->vocabulary = (m.vocabulary + row.tensor - 1) / row.tensor * row.tensor;
  c->tied_embeddings = m.tied;
}

void TakeExperts(const ModernModel& m, const ModernRow& row, GptConfig* c) {
  c->experts.experts = m.experts;
  c->experts.chosen = m.chosen_experts;
  c->experts.shared = m.shared_experts;
  c->expert_feed_forward = m.expert_width;
  c->dense_blocks = m.dense_layers;
  if (Says(m, "MTP layer") && !absl::StrContains(row.notes, "w/o MTP")) c->further_tokens = 1;
}

}  // namespace

absl::StatusOr<GptConfig> ModelOf(const ModernModel& m, const ModernRow& row) {
  if (Says(m, "hybrid") || Says(m, "nemotron-3")) return NoModel("Mamba layers");
  if (Says(m, "compressed sparse")) return NoModel("compressed sparse attention");
  if (Says(m, "delta net")) return NoModel("gated delta nets");
  const bool latent = absl::StartsWith(m.attention, "mla: ");
  const bool gated = latent || Says(m, "swiglu") || Says(m, "geglu") || Says(m, "sinks");
  if (!gated && !Says(m, "gelu") && !Says(m, "squared ReLU")) {
    return NoModel("attention \"", m.attention.substr(0, m.attention.find(':')), "\"");
  }
  GptConfig c;
  if (gated) c = LlamaConfig(m.layers, m.hidden, m.heads, m.feed_forward, row.tokens, m.vocabulary);
  TakeSizes(m, row, &c);
  if (Says(m, "geglu")) c.feed_forward_kind = FeedForwardKind::kGeGlu;
  if (m.experts > 0) TakeExperts(m, row, &c);
  if (latent) {
    c.latent = {NumberBehind(m.attention, "q_lora"), NumberBehind(m.attention, "kv_lora"),
                NumberBehind(m.attention, "nope"), NumberBehind(m.attention, "rope"),
                NumberBehind(m.attention, "v")};
    if (absl::StrContains(m.attention, "no q_lora")) c.latent.query_rank = 0;
    return c;
  }
  if (row.packs_samples()) c.windows = {kSeenInPack};
  if (const int64_t window = NumberBehind(m.attention, "window"); window > 0) {
    c.windows = {window};
    if (Says(m, "every other")) c.windows.push_back(0);
  }
  c.query_key_norms = Says(m, "qk norm");
  if (Says(m, "qkv bias") || Says(m, "; biases")) c.biases = Biases::kQueryKeyValue;
  c.kv_heads = m.kv_heads;
  c.head_size = m.head_size;
  return c;
}

absl::optional<double> SecondsFromFlops(const ModernModel& m, const ModernRow& row) {
  const bool full = row.group == "mlm";
  if (!row.tflops.has_value() || m.experts > 0 || row.gpus == 0) return absl::nullopt;
  if (!full && row.group != "mbridge") return absl::nullopt;
  const auto d = [](int64_t number) { return static_cast<double>(number); };
  const double width = d(m.heads * m.head_size), keys = d(2 * m.kv_heads * m.head_size);
  const double matrices = Says(m, "swiglu") ? 3 : 2;
  const double block = d(m.hidden) * (2 * width + keys + matrices * d(m.feed_forward));
  const double pairs = (full ? 2 : 1) * width * d(row.tokens);  // q k^T, and times v
  const double of_token = 6 * (d(m.layers) * (block + pairs) + d(m.hidden) * d(m.vocabulary));
  return of_token * d(row.batch * row.tokens) / (*row.tflops * 1e12 * d(row.gpus));
}

}  // namespace pipelab

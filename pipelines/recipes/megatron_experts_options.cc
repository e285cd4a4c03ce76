// Megatron-LM's options of experts.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "models/zoo/size_check.h"
#include "pipelines/recipes/layer_pattern.h"
#include "pipelines/recipes/megatron_parts.h"
#include "tools/base/nearest.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr int64_t kMostExperts = 1 << 12;

class ExpertReader {
 public:
  ExpertReader(const MegatronOptions& options, Recipe* recipe)
      : o_(options), r_(*recipe), m_(recipe->model), e_(recipe->model.experts) {}

  absl::Status Take() {
    PIPELAB_ASSIGN_OR_RETURN(e_.experts, o_.Integer("num-experts", 0, kMostExperts, 0));
    if (e_.experts == 0) return absl::OkStatus();
    if (m_.feed_forward_kind == FeedForwardKind::kGelu) {
      return o_.Error("num-experts", "experts have gates here; nearest: --swiglu");
    }
    PIPELAB_RETURN_IF_ERROR(TakeSizes());
    PIPELAB_RETURN_IF_ERROR(TakeLayers());
    PIPELAB_RETURN_IF_ERROR(TakeScores());
    PIPELAB_RETURN_IF_ERROR(TakeGroups());
    if (!o_.Has("moe-grouped-gemm")) {
      Assume("without --moe-grouped-gemm: experts' products are grouped all the same");
    }
    return TakeBalance();
  }

 private:
  void Assume(std::string what) { r_.assumptions.push_back(std::move(what)); }

  absl::Status TakeSizes() {
    PIPELAB_ASSIGN_OR_RETURN(
        e_.chosen, o_.Integer("moe-router-topk", 1, e_.experts, std::min<int64_t>(2, e_.experts)));
    PIPELAB_ASSIGN_OR_RETURN(m_.expert_feed_forward, o_.Integer("moe-ffn-hidden-size", 1,
                                                                64 * kMostHidden, m_.feed_forward));
    constexpr char kShared[] = "moe-shared-expert-intermediate-size";
    const int64_t width = m_.expert_feed_forward;
    PIPELAB_ASSIGN_OR_RETURN(const int64_t shared, o_.Integer(kShared, 0, kMostExperts * width, 0));
    e_.shared = shared / width;
    if (shared > 0 && m_.biases == Biases::kAll) {
      return o_.Error(kShared, "shared experts have no biases; nearest: --disable-bias-linear");
    }
    if (shared % width == 0) return absl::OkStatus();
    return o_.Error(kShared, "shared experts are as wide as others here, ", width, "; nearest: --",
                    kShared, " ", NearestMultiple(shared, width));
  }

  absl::Status TakeLayers() {
    constexpr char kFrequency[] = "moe-layer-freq";
    if (!o_.Has(kFrequency)) return absl::OkStatus();
    PIPELAB_ASSIGN_OR_RETURN(const std::string text, o_.Text(kFrequency));
    int64_t every = 0;
    std::vector<bool> layers;
    if (absl::SimpleAtoi(text, &every)) {
      if (every < 1) return o_.Error(kFrequency, "must be at least 1");
      for (int64_t i = 0; i < m_.layers; ++i) layers.push_back(i % every == 0);
    } else {
      absl::StatusOr<std::vector<bool>> listed = ParseLayerPattern(text, m_.layers);
      if (!listed.ok()) return o_.Error(kFrequency, listed.status().message());
      layers = *std::move(listed);
    }
    if (std::find(layers.begin(), layers.end(), true) == layers.end()) {
      return o_.Error(kFrequency, "no layer has experts; nearest: without --num-experts");
    }
    m_.SetExpertBlocks(layers);
    return absl::OkStatus();
  }

  // Shares of the chosen scores: the softmax of the chosen, or sigmoids over their sum.
  absl::Status TakeScores() {
    constexpr char kBefore[] = "moe-router-pre-softmax";
    PIPELAB_ASSIGN_OR_RETURN(const std::string scores, o_.Word("moe-router-score-function",
                                                               {"softmax", "sigmoid"}, "softmax"));
    e_.sigmoid = scores == "sigmoid";
    e_.normalized = e_.sigmoid ? e_.chosen > 1 : !o_.Has(kBefore);
    if (!e_.sigmoid && e_.normalized && e_.chosen == 1) {
      return o_.Error("moe-router-topk", "one expert of a softmax requires --", kBefore);
    }
    PIPELAB_ASSIGN_OR_RETURN(e_.scale, o_.Number("moe-router-topk-scaling-factor", 1e-6, 1e6, 1));
    return absl::OkStatus();
  }

  absl::Status TakeGroups() {
    constexpr char kGroups[] = "moe-router-num-groups", kChosen[] = "moe-router-group-topk";
    if (!o_.Has(kGroups) && !o_.Has(kChosen)) return absl::OkStatus();
    for (const auto& [given, other] :
         {std::make_pair(kGroups, kChosen), std::make_pair(kChosen, kGroups)}) {
      if (!o_.Has(other)) return o_.Error(given, "requires --", other);
    }
    PIPELAB_ASSIGN_OR_RETURN(e_.nodes, o_.Integer(kGroups, 1, 64));
    PIPELAB_ASSIGN_OR_RETURN(e_.most_nodes, o_.Integer(kChosen, 1, e_.nodes));
    if (e_.experts % e_.nodes != 0) {
      return o_.Error(kGroups, "must divide --num-experts ", e_.experts, "; nearest: --", kGroups,
                      " ", NearestDivisor(e_.nodes, e_.experts));
    }
    if (HasRoomOnNodes(e_)) return absl::OkStatus();
    const int64_t of_group = e_.experts / e_.nodes;
    return o_.Error(kChosen, e_.most_nodes * of_group, " experts are fewer than --moe-router-topk ",
                    e_.chosen, "; nearest: --", kChosen, " ",
                    (e_.chosen + of_group - 1) / of_group);
  }

  absl::Status TakeBalance() {
    constexpr char kType[] = "moe-router-load-balancing-type";
    PIPELAB_ASSIGN_OR_RETURN(
        const std::string type,
        o_.Word(kType, {"aux_loss", "seq_aux_loss", "global_aux_loss", "sinkhorn", "none"},
                "aux_loss"));
    if (type == "sinkhorn") {
      return o_.Error(kType, "routers choose the largest scores here; nearest: seq_aux_loss");
    }
    PIPELAB_ASSIGN_OR_RETURN(const double factor, o_.Number("moe-aux-loss-coeff", 0, 1e6, 0));
    if (type != "none") e_.balance = factor;
    if (e_.balance > 0 && type != "seq_aux_loss") {
      Assume(absl::StrCat("--", kType, " ", type,
                          ": the balancing loss is one for each sample (seq_aux_loss)"));
    }
    PIPELAB_ASSIGN_OR_RETURN(e_.capacity_factor,
                             o_.Number("moe-expert-capacity-factor", 0, 1e6, 0));
    if (e_.capacity_factor > 0) {
      Assume("--moe-expert-capacity-factor: rows are those of an even load, none dropped");
    }
    return absl::OkStatus();
  }

  const MegatronOptions& o_;
  Recipe& r_;
  GptConfig& m_;
  ExpertChoice& e_;
};

// The flexible dispatcher sends a token once to a node, whichever library it calls.
absl::Status TakeDispatch(const MegatronOptions& o, Recipe* r) {
  constexpr char kType[] = "moe-token-dispatcher-type";
  PIPELAB_ASSIGN_OR_RETURN(const std::string dispatcher,
                           o.Word(kType, {"allgather", "alltoall", "flex"}, "allgather"));
  PIPELAB_ASSIGN_OR_RETURN(const std::string library,
                           o.Word("moe-flex-dispatcher-backend", {"deepep", "hybridep"}, "deepep"));
  if (dispatcher == "flex") {
    if (o.Has("moe-enable-deepep") && library != "deepep") {
      return o.Error("moe-enable-deepep",
                     "not with --moe-flex-dispatcher-backend hybridep; give one of them");
    }
    if (r->config.experts > 1) r->config.dispatch = Dispatch::kOncePerNode;
    return absl::OkStatus();
  }
  for (const char* of_flex : {"moe-enable-deepep", "moe-flex-dispatcher-backend"}) {
    if (o.Has(of_flex)) return o.Error(of_flex, "requires --", kType, " flex");
  }
  if (dispatcher == "allgather" && r->config.experts > 1) {
    r->not_priced.push_back(absl::StrCat(o.Has(kType) ? "" : "without ", "--", kType,
                                         o.Has(kType) ? " allgather" : "",
                                         ": rows of experts are exchanged by all-to-all"));
  }
  return absl::OkStatus();
}

// What Megatron-Core asks of a step whose micro-batches run beside each other's exchanges.
absl::Status CheckOverlap(const MegatronOptions& o, const Recipe& r, absl::string_view overlap) {
  const StepConfig& c = r.config;
  if (c.experts == 1) {
    return o.Error(overlap, "requires experts over several devices; nearest: without it, or ",
                   "--expert-model-parallel-size 2");
  }
  if (c.pipeline > 1 && c.scheme != "interleaved") {
    return o.Error(overlap, "with a pipeline requires virtual stages; nearest: ",
                   "--num-virtual-stages-per-pipeline-rank 2");
  }
  if (c.recompute == Recompute::kBlocks) {
    return o.Error(overlap, "not with --recompute-granularity full; nearest: selective");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status TakeMegatronExchanges(const MegatronOptions& o, Recipe* r) {
  constexpr char kOverlap[] = "overlap-moe-expert-parallel-comm", kDelay[] = "delay-wgrad-compute";
  if (HasExperts(r->model)) PIPELAB_RETURN_IF_ERROR(TakeDispatch(o, r));
  if (!o.Has(kOverlap)) {
    if (o.Has(kDelay)) {
      r->not_priced.push_back(
          absl::StrCat("--", kDelay, ": without --", kOverlap, " no weight gradient is delayed"));
    }
    return absl::OkStatus();
  }
  PIPELAB_RETURN_IF_ERROR(CheckOverlap(o, *r, kOverlap));
  r->config.exchanges = o.Has(kDelay) ? Exchanges::kBesideDelayed : Exchanges::kBeside;
  return absl::OkStatus();
}

absl::Status TakeMegatronExperts(const MegatronOptions& o, Recipe* r) {
  return ExpertReader(o, r).Take();
}

absl::Status TakeMegatronExpertDegrees(const MegatronOptions& o, Recipe* r) {
  constexpr char kExperts[] = "expert-model-parallel-size";
  constexpr char kTensor[] = "expert-tensor-parallel-size";
  StepConfig& c = r->config;
  const GptConfig& m = r->model;
  PIPELAB_ASSIGN_OR_RETURN(const int64_t experts, o.Integer(kExperts, 1, kMostMegatronDegree, 1));
  PIPELAB_ASSIGN_OR_RETURN(const int64_t tensor,
                           o.Integer(kTensor, 1, kMostMegatronDegree, c.tensor));
  if (m.experts.experts == 0) {
    return experts == 1 ? absl::OkStatus()
                        : o.Error(kExperts, "requires --num-experts; nearest: --", kExperts, " 1");
  }
  if (c.tensor > 1 && !c.sequence_parallel) {
    return o.Error("tensor-model-parallel-size", "with experts requires --sequence-parallel");
  }
  if (tensor != c.tensor && tensor != 1) {
    return o.Error(kTensor, "must be 1 or --tensor-model-parallel-size ", c.tensor, "; nearest: --",
                   kTensor, " ", 2 * tensor > c.tensor + 1 ? c.tensor : 1);
  }
  if (m.expert_feed_forward % tensor != 0) {
    return o.Error("moe-ffn-hidden-size", "--", kTensor, " ", tensor,
                   " must divide it; nearest: --moe-ffn-hidden-size ",
                   NearestMultiple(m.expert_feed_forward, tensor));
  }
  c.whole_experts = tensor < c.tensor;
  if (m.experts.experts % experts != 0) {
    return o.Error(kExperts, "must divide --num-experts ", m.experts.experts, "; nearest: --",
                   kExperts, " ", NearestDivisor(experts, m.experts.experts));
  }
  const int64_t ranks = int64_t{c.copies()} * (c.whole_experts ? c.tensor : 1);
  if (ranks % experts != 0) {
    return o.Error(kExperts, "must divide the ", ranks, " devices of a pipeline stage that have ",
                   c.whole_experts ? "whole experts" : "the same part of them", "; nearest: --",
                   kExperts, " ", NearestDivisor(experts, ranks));
  }
  if (c.whole_experts && experts % c.tensor != 0) {
    return o.Error(kExperts, "with --", kTensor, " 1 must be a multiple of ",
                   "--tensor-model-parallel-size here; nearest: --", kExperts, " ",
                   NearestMultiple(experts, c.tensor));
  }
  c.experts = static_cast<int>(experts);
  return absl::OkStatus();
}

}  // namespace pipelab

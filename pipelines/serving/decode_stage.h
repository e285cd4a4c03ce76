// A stage of a model that decodes: for each pass of a plan (pipelines/serving/pass_plan.h) it runs
// its layers on the tokens of the pass's runs, with keys and values of earlier tokens in caches.
// The first stage looks tokens up, the prompts' or those that the last stage made in an earlier
// pass and the edge from there carries; the last stage chooses tokens.
//
//   PIPELAB_ASSIGN_OR_RETURN(std::unique_ptr<DecodeStage> stage,
//                            DecodeStage::Create(graph, partition, 0, &backend, options));
//   setup.modules[0][0] = stage.get();                      // of an Executor (generate.h)
//
// Caches of all slots are allocated by the first pass and stay: of each layer with attention
// groups x slots x cache_tokens rows of CacheNumbers (models/specs/token_cache.h).
#ifndef PIPELAB_PIPELINES_SERVING_DECODE_STAGE_H_
#define PIPELAB_PIPELINES_SERVING_DECODE_STAGE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/backend.h"
#include "models/graph/layer_spec.h"
#include "models/layers/layer.h"
#include "pipelines/cost/model_partition.h"
#include "pipelines/runtime/layer_stage.h"
#include "pipelines/runtime/stage_module.h"
#include "pipelines/serving/pass_plan.h"
#include "tools/base/units.h"

namespace pipelab {

struct DecodeOptions {
  const PassPlan* plan = nullptr;                              // must outlive the stage
  const std::vector<std::vector<int32_t>>* prompts = nullptr;  // [request] ids; must outlive it
  // The token that follows `position` of a request, from its logits. A pure function, so that
  // tokens do not depend on schedules.
  std::function<int32_t(int request, int64_t position, absl::Span<const float> logits)> choose;
};

class DecodeStage final : public StageModule {
 public:
  // InvalidArgument names a layer that has no cache, or a prompt that is not of the plan's length.
  static absl::StatusOr<std::unique_ptr<DecodeStage>> Create(const ModelGraph& graph,
                                                             const ModelPartition& partition,
                                                             int stage, Backend* backend,
                                                             const DecodeOptions& options);

  absl::StatusOr<std::vector<Tensor>> Forward(const Action& a, std::vector<Tensor> inputs,
                                              bool drop) override;
  // A pass's rows, or the tokens that an edge carries; `pass` is the micro-batch.
  TensorSpec InputSpec(int in_edge, int pass) const override;
  TensorSpec OutputSpec(int out_edge, int pass) const override;
  int64_t library_ns() const override { return stage_->library_ns(); }

  absl::Status Recompute(const Action&) override { return ForwardsAlone(); }
  absl::StatusOr<std::vector<Tensor>> Backward(const Action&, std::vector<Tensor>) override {
    return ForwardsAlone();
  }
  absl::Status BackwardWeight(const Action&) override { return ForwardsAlone(); }
  absl::Status Step(const Action&) override { return ForwardsAlone(); }
  absl::StatusOr<Tensor> Gradients(absl::string_view) override { return ForwardsAlone(); }

  // [request] The tokens that the last stage has chosen so far; empty in other stages.
  const std::vector<std::vector<int32_t>>& chosen() const { return chosen_; }
  StageParameters& parameters() { return stage_->parameters(); }
  Bytes CacheBytes() const;

 private:
  DecodeStage(std::unique_ptr<LayerStage> stage, bool first, bool last, Backend* backend,
              const DecodeOptions& options);
  static absl::Status ForwardsAlone() {
    return absl::UnimplementedError("a stage that decodes has forwards alone");
  }
  // The tokens of a pass in the order of its rows; the carried ones are of its source.
  absl::StatusOr<std::vector<int32_t>> TokensOf(const Pass& pass, const Tensor& carried);
  // What the runs that predict give, in their order.
  Tensor Choose(const Pass& pass, absl::Span<const float> logits);

  const std::unique_ptr<LayerStage> stage_;
  const bool first_, last_;
  Backend* const backend_;
  const DecodeOptions options_;
  std::vector<LayerStash> caches_;            // [place]
  std::vector<int32_t> newest_;               // [request] the first stage's: its last token
  std::vector<std::vector<int32_t>> chosen_;  // [request]
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SERVING_DECODE_STAGE_H_

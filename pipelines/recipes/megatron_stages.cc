// Megatron-LM's options of stages and their schedule.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "models/zoo/size_check.h"
#include "pipelines/recipes/megatron_flags.h"
#include "pipelines/recipes/megatron_parts.h"
#include "tools/base/nearest.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr char kMtp[] = "mtp-num-layers";

class StageReader {
 public:
  StageReader(const MegatronOptions& options, Recipe* recipe) : o_(options), r_(*recipe) {}

  absl::Status TakeStages() {
    StepConfig& c = r_.config;
    const int64_t layers = r_.model.layers;
    std::vector<MegatronStage> stages;
    int64_t each = 1;
    if (o_.Has("pipeline-model-parallel-layout")) {
      PIPELAB_RETURN_IF_ERROR(VirtualStages(layers).status());
      PIPELAB_ASSIGN_OR_RETURN(stages, StagesOfLayout());
      each = static_cast<int64_t>(stages.size()) / c.pipeline;
    } else {
      const int64_t extra = int64_t{o_.Has("account-for-embedding-in-pipeline-split")} +
                            int64_t{o_.Has("account-for-loss-in-pipeline-split")};
      PIPELAB_ASSIGN_OR_RETURN(each, VirtualStages(layers + extra));
      PIPELAB_ASSIGN_OR_RETURN(stages, DividedStages(each));
    }
    const absl::Status set = SetStages(std::move(stages), &r_);
    if (!set.ok()) return o_.Error("pipeline-model-parallel-layout", set.message());
    return TakeSchedule(each);
  }

 private:
  // Stages of one device, in order; 1 without interleaving.
  absl::StatusOr<int64_t> VirtualStages(int64_t counted_layers) {
    const char* each = "num-layers-per-virtual-pipeline-stage";
    const char* number = "num-virtual-stages-per-pipeline-rank";
    const char* layout = "pipeline-model-parallel-layout";
    for (const auto& [a, b] : {std::make_pair(each, number), std::make_pair(each, layout),
                               std::make_pair(number, layout)}) {
      if (o_.Has(a) && o_.Has(b)) return o_.Error(a, "not with --", b, "; give one of them");
    }
    if (!o_.Has(each)) return o_.Integer(number, 1, kMostLayers, 1);
    PIPELAB_ASSIGN_OR_RETURN(const int64_t layers, o_.Integer(each, 1, kMostLayers));
    for (const char* uneven :
         {"decoder-first-pipeline-num-layers", "decoder-last-pipeline-num-layers"}) {
      if (o_.Has(uneven)) return o_.Error(each, "not with --", uneven, "; nearest: --", number);
    }
    const int64_t on_device = counted_layers / r_.config.pipeline;
    if (on_device % layers == 0 && on_device > 0) return on_device / layers;
    return o_.Error(each, "must divide the ", on_device,
                    " layers of a pipeline device; nearest: --", each, " ",
                    NearestDivisor(layers, std::max<int64_t>(on_device, 1)));
  }

  absl::StatusOr<std::vector<MegatronStage>> StagesOfLayout() {
    constexpr char kLayout[] = "pipeline-model-parallel-layout";
    PIPELAB_ASSIGN_OR_RETURN(const std::string text, o_.Text(kLayout));
    absl::StatusOr<std::vector<MegatronStage>> stages = ParseMegatronLayout(text);
    if (!stages.ok()) return o_.Error(kLayout, stages.status().message());
    int64_t layers = 0, heads = 0;
    for (const MegatronStage& s : *stages) {
      layers += s.transformers;
      heads += s.token_heads;
    }
    if (heads != r_.model.further_tokens) {
      return o_.Error(kLayout, "has ", heads, " heads for further tokens (m); nearest: ",
                      heads == 0 ? "with m in front of L" : absl::StrCat("--", kMtp, " ", heads));
    }
    if (layers != r_.model.layers) {
      return o_.Error(kLayout, "has ", layers, " layers; nearest: --num-layers ", layers);
    }
    if (stages->size() % r_.config.pipeline == 0) return stages;
    return o_.Error(kLayout, stages->size(), " stages on ", r_.config.pipeline,
                    " pipeline devices; nearest: --pipeline-model-parallel-size ",
                    NearestDivisor(r_.config.pipeline, static_cast<int64_t>(stages->size())));
  }

  // For all layers that there are: a layout, and what must go for it; or fewer stages.
  std::string NearestStages(int64_t stages) const {
    const int64_t layers = r_.model.layers, most = layers + 2;  // the ends need none
    const int64_t pipeline = r_.config.pipeline, each = stages / pipeline;
    if (stages > most) {
      if (each > 1 && pipeline <= most) {
        return absl::StrCat("--num-virtual-stages-per-pipeline-rank ", most / pipeline);
      }
      int64_t fewer = std::min(most, pipeline);
      while (pipeline % fewer != 0) --fewer;
      return absl::StrCat("--pipeline-model-parallel-size ", fewer);
    }
    std::vector<int64_t> counts(stages, layers / stages);
    for (int64_t s = 1, left = layers % stages; left > 0; ++s, --left) {
      // Middle stages first, then the one with the embedding.
      ++counts[s == stages - 1 ? 0 : s];
    }
    std::vector<std::string> without;
    for (const char* other :
         {"num-layers-per-virtual-pipeline-stage", "num-virtual-stages-per-pipeline-rank",
          "decoder-first-pipeline-num-layers", "decoder-last-pipeline-num-layers",
          "account-for-embedding-in-pipeline-split", "account-for-loss-in-pipeline-split"}) {
      if (o_.Has(other)) without.push_back(absl::StrCat("--", other));
    }
    return absl::StrCat("--pipeline-model-parallel-layout '",
                        FormatMegatronLayout(StagesOfTransformers(counts)), "'",
                        without.empty() ? "" : ", without ", absl::StrJoin(without, " and "));
  }

  // Equal numbers, but for what is said of the two ends.
  absl::StatusOr<std::vector<MegatronStage>> DividedStages(int64_t each) {
    const int64_t pipeline = r_.config.pipeline, layers = r_.model.layers;
    const bool embedding = o_.Has("account-for-embedding-in-pipeline-split");
    const bool loss = o_.Has("account-for-loss-in-pipeline-split");
    PIPELAB_ASSIGN_OR_RETURN(const int64_t first,
                             o_.Integer("decoder-first-pipeline-num-layers", 1, layers, 0));
    PIPELAB_ASSIGN_OR_RETURN(const int64_t last,
                             o_.Integer("decoder-last-pipeline-num-layers", 1, layers, 0));
    if ((first > 0 || last > 0) && (embedding || loss)) {
      return o_.Error(
          first > 0 ? "decoder-first-pipeline-num-layers" : "decoder-last-pipeline-num-layers",
          "not with --account-for-", embedding ? "embedding" : "loss",
          "-in-pipeline-split; nearest: --pipeline-model-parallel-layout");
    }
    const int64_t rest = layers + embedding + loss - first - last;
    const int64_t others = pipeline - (first > 0) - (last > 0);
    if (others < 0 || rest < 0 ||
        (others == 0 ? rest != 0 : rest == 0 || rest % (others * each) != 0)) {
      return o_.Error("num-layers", rest, " layers do not divide among ",
                      std::max<int64_t>(others, 0) * each,
                      " stages; nearest: ", NearestStages(pipeline * each));
    }
    for (const int64_t of_end : {first, last}) {
      if (of_end % each == 0) continue;
      return o_.Error(
          "num-virtual-stages-per-pipeline-rank", "must divide the ", of_end,
          " layers of the first or last device; nearest: ", NearestDivisor(each, of_end));
    }
    std::vector<int64_t> counts;
    for (int64_t s = 0; s < pipeline * each; ++s) {
      const int64_t device = s % pipeline;
      counts.push_back(device == 0 && first > 0             ? first / each
                       : device == pipeline - 1 && last > 0 ? last / each
                                                            : rest / (others * each));
    }
    counts.front() -= embedding;
    counts.back() -= loss;
    return StagesOfTransformers(counts);
  }

  absl::Status TakeSchedule(int64_t each) {
    StepConfig& c = r_.config;
    c.scheme = each > 1 ? "interleaved" : "1f1b";
    c.virtual_stages = each > 1 ? static_cast<int>(each) : 0;
    const bool blocking = o_.Has("no-overlap-p2p-communication");
    c.overlap_pipeline = each > 1 && !blocking;
    c.steady_overlap = c.overlap_pipeline && !o_.Has("overlap-p2p-communication-warmup-flush");
    const int least = blocking ? 3 : 2;
    if (each > 1 && c.pipeline < least) {
      return o_.Error("pipeline-model-parallel-size", "interleaved stages ask for at least ", least,
                      " devices", blocking ? " with --no-overlap-p2p-communication" : "",
                      "; nearest: --pipeline-model-parallel-size ", least);
    }
    if (each == 1) return absl::OkStatus();
    const char* group = "microbatch-group-size-per-virtual-pipeline-stage";
    PIPELAB_ASSIGN_OR_RETURN(const int64_t size,
                             o_.Integer(group, 1, kMostMegatronBatch, c.pipeline));
    if (size < c.pipeline) {
      return o_.Error(group, "must be at least --pipeline-model-parallel-size; nearest: --", group,
                      " ", c.pipeline);
    }
    if (size != c.pipeline) c.group_size = static_cast<int>(size);
    return absl::OkStatus();
  }

  const MegatronOptions& o_;
  Recipe& r_;
};

}  // namespace

absl::Status TakeMegatronStages(const MegatronOptions& options, Recipe* recipe) {
  return StageReader(options, recipe).TakeStages();
}

absl::StatusOr<std::vector<MegatronStage>> EvenStages(int64_t layers, int64_t stages) {
  if (stages < 1 || layers % stages != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(stages, " stages do not divide ", layers, " layers"));
  }
  return StagesOfTransformers(std::vector<int64_t>(stages, layers / stages));
}

}  // namespace pipelab

#include "pipelines/search/search_space.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "models/graph/context_parallel.h"
#include "models/graph/expert_parallel.h"
#include "models/graph/layer_spec.h"
#include "pipelines/schedules/catalog.h"
#include "pipelines/schedules/variants.h"
#include "pipelines/schedules/vocabulary.h"
#include "pipelines/step/step.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

// More actions than any schedule here needs: such configurations are left to those with larger
// micro-batches.
constexpr int64_t kMostActions = int64_t{1} << 20;

class SearchSpace {
 public:
  SearchSpace(const StepModel& model, const SearchRequest& search, const SearchMethod& method,
              SearchRefusals* refusals, absl::FunctionRef<absl::Status(const StepConfig&)> look)
      : model_(model), search_(search), method_(method), refusals_(*refusals), look_(look) {}

  absl::Status Run() {
    for (int64_t tensor = 1; tensor <= search_.devices; tensor *= 2) {
      if (search_.devices % tensor != 0) continue;
      if (tensor > search_.max_tensor || !Divides(static_cast<int>(tensor))) {
        ++refusals_.considered;
        ++refusals_.tensor;
        continue;
      }
      const int64_t rest = search_.devices / tensor;
      for (int64_t pipeline = 1; pipeline <= rest; ++pipeline) {
        if (rest % pipeline != 0 || (pipeline == 1) == method_.pipeline) continue;
        for (int64_t context = 1; context <= search_.max_context; context *= 2) {
          if (rest / pipeline % context != 0) break;
          for (int64_t experts = 1; experts <= search_.max_expert; experts *= 2) {
            const int64_t ranks = search_.whole_experts ? rest * tensor : rest;
            if (ranks / pipeline % experts != 0) break;
            PIPELAB_RETURN_IF_ERROR(Grids(static_cast<int>(pipeline), static_cast<int>(tensor),
                                          static_cast<int>(context), static_cast<int>(experts)));
          }
        }
      }
    }
    return absl::OkStatus();
  }

 private:
  bool Divides(int tensor) const {
    return CheckTensorParallel(model_.model->graph, {tensor, false}).ok();
  }

  absl::Status Grids(int pipeline, int tensor, int context, int experts) {
    StepConfig c;
    c.pipeline = pipeline;
    c.tensor = tensor;
    c.context = context;
    if (context > 1) c.context_exchange = search_.exchange;
    c.experts = experts;
    c.whole_experts = search_.whole_experts && tensor > 1 && experts > 1;
    c.data = static_cast<int>(search_.devices / pipeline / tensor / context);
    c.residency = method_.residency;
    c.overlap_pipeline = method_.overlap_pipeline;
    c.steady_overlap = method_.steady_overlap;
    c.state = method_.state;
    c.overlap_data = method_.overlap_data;
    c.whole_messages = method_.whole_messages;
    c.execution = method_.execution;
    if (search_.batch % c.data != 0) {
      ++refusals_.considered;
      ++refusals_.batch;
      return absl::OkStatus();
    }
    for (const bool sequence : search_.sequence) {
      if (sequence && tensor == 1) continue;
      c.sequence_parallel = sequence;
      c.overlap_tensor = sequence && method_.overlap_tensor;
      if (!CheckTensorParallel(model_.model->graph, c.split()).ok()) continue;
      if (!CheckContextParallel(model_.model->graph, c.split()).ok()) continue;
      if (!CheckExpertParallel(model_.model->graph, c.split(), c.copies()).ok()) continue;
      for (const Dispatch dispatch : search_.dispatch) {
        c.dispatch = experts > 1 ? dispatch : Dispatch::kRows;
        PIPELAB_RETURN_IF_ERROR(Batches(c));
        if (experts == 1) break;
      }
    }
    return absl::OkStatus();
  }

  absl::Status Batches(StepConfig c) {
    const int64_t samples = search_.batch / c.data;
    for (int64_t b = 1; b <= samples; b *= 2) {
      if (samples % b != 0) break;
      c.micro_batch_size = b;
      c.micro_batches = static_cast<int>(samples / b);
      if (method_.whole_groups && c.micro_batches % c.pipeline != 0) continue;
      PIPELAB_RETURN_IF_ERROR(Schedules(c));
    }
    return absl::OkStatus();
  }

  absl::Status Schedules(StepConfig c) {
    for (const std::string& scheme : method_.schemes) {
      c.scheme = scheme;
      PIPELAB_ASSIGN_OR_RETURN(const std::vector<StepConfig> variants, VariantsOf(c));
      for (StepConfig variant : variants) {
        const int64_t stages = int64_t{c.pipeline} * std::max(variant.virtual_stages, 1);
        if (stages > model_.model->num_groups() || stages * c.micro_batches * 2 > kMostActions) {
          continue;
        }
        for (const Recompute recompute : search_.recompute) {
          variant.recompute = recompute;
          for (const int rebuilt : search_.rebuilt_blocks) {
            const bool some =
                recompute == Recompute::kBlocks && rebuilt * stages < model_.model->num_groups();
            if (rebuilt > 0 && !some) continue;
            variant.rebuilt_blocks = rebuilt;
            PIPELAB_RETURN_IF_ERROR(Shardings(variant));
          }
        }
      }
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<StepConfig>> VariantsOf(const StepConfig& c) {
    std::vector<StepConfig> variants;
    if (!method_.virtual_stages.empty() || c.has_schedule_file()) {
      for (const int virtual_stages : method_.virtual_stages) {
        variants.push_back(c);
        variants.back().virtual_stages = virtual_stages;
      }
      if (c.has_schedule_file()) variants = {c};
      return variants;
    }
    PIPELAB_ASSIGN_OR_RETURN(const Scheme* scheme, FindScheme(c.scheme));
    if (TakesVocabularyParts(*scheme)) return WithVocabularyParts(*scheme, c);
    VariantLimits limits;
    limits.max_stages = model_.model->num_groups();
    limits.whole_groups = method_.whole_groups;
    for (const SchemeParams& params : Variants(*scheme, SchemeSizes(c), limits)) {
      StepConfig& variant = variants.emplace_back(c);
      variant.virtual_stages = params.virtual_stages;
      variant.group_size = params.group_size;
      variant.replicas = params.replicas;
      variant.concatenation = params.concatenation;
      variant.slices = params.slices;
    }
    if (variants.empty()) RefuseSizes(c, NumStages(c.scheme, SchemeSizes(c)));
    return variants;
  }

  // With one barrier and with two. None where parts would be divided again.
  std::vector<StepConfig> WithVocabularyParts(const Scheme& scheme, const StepConfig& c) {
    if (c.tensor > 1 || c.context > 1) return {};
    const int chain = c.pipeline * scheme.default_virtual_stages;
    if (chain > model_.model->num_groups()) {
      RefuseSizes(c, chain);
      return {};
    }
    std::vector<StepConfig> variants(2, c);
    for (int barriers = 1; barriers <= 2; ++barriers) {
      variants[barriers - 1].vocabulary_barriers = barriers;
    }
    return variants;
  }

  void RefuseSizes(const StepConfig& c, const absl::StatusOr<int>& stages) {
    ++refusals_.considered;
    ++refusals_.scheme;
    refusals_.scheme_reason = absl::StrCat(
        c.ToString(), ": ",
        !stages.ok() ? std::string(stages.status().message())
                     : absl::StrCat(*stages, " stages, but the model has ",
                                    model_.model->num_groups(), " blocks to cut between"));
  }

  absl::Status Shardings(StepConfig c) {
    for (const Sharding sharding : method_.shardings) {
      if (c.copies() == 1 && sharding != Sharding::kReplicated && method_.shardings.size() > 1) {
        continue;  // nothing to shard: the same as replicated
      }
      c.sharding = sharding;
      if (search_.accept && !search_.accept(c)) {
        ++refusals_.accept;
        continue;
      }
      ++refusals_.considered;
      PIPELAB_RETURN_IF_ERROR(look_(c));
    }
    return absl::OkStatus();
  }

  const StepModel& model_;
  const SearchRequest& search_;
  const SearchMethod& method_;
  SearchRefusals& refusals_;
  const absl::FunctionRef<absl::Status(const StepConfig&)> look_;
};

}  // namespace

absl::Status ForEachConfig(const StepModel& model, const SearchRequest& search,
                           const SearchMethod& method, SearchRefusals* refusals,
                           absl::FunctionRef<absl::Status(const StepConfig&)> look) {
  return SearchSpace(model, search, method, refusals, look).Run();
}

}  // namespace pipelab

// Models whose stages are unequal, and devices that are.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "experiments/synthesis/synthesis_study.h"
#include "pipelines/step/step.h"
#include "pipelines/step/step_config.h"
#include "pipelines/step/step_model.h"
#include "pipelines/synthesis/step_synthesis.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

struct UnequalCase {
  std::string model, cluster, config;
  int slow = -1;  // a device at half speed
};

// What it takes for some schedule of the catalogue to fit.
std::vector<UnequalCase> Cases() {
  struct Sizes {
    const char *model, *cluster;
    std::vector<const char*> configs;
  };
  const std::vector<Sizes> models = {
      {"llama-3-8b",
       "dgx-h100",
       {"1f1b:P=4,T=2,M=8", "1f1b:P=4,T=2,M=16", "1f1b:P=8,M=16", "1f1b:P=8,M=32"}},
      {"llama-3-70b", "dgx-h100", {"1f1b:P=4,T=8,M=8", "1f1b:P=8,T=8,M=16", "1f1b:P=8,T=8,M=32"}},
      {"deepseek-v3",
       "dgx-b200",
       {"1f1b:P=4,D=64,E=64,M=8,recompute=blocks", "1f1b:P=8,D=32,E=32,M=16,recompute=blocks",
        "1f1b:P=8,D=32,E=32,M=32,recompute=blocks"}}};
  std::vector<UnequalCase> cases;
  for (const int slow : {-1, 1}) {
    for (const Sizes& sizes : models) {
      for (const char* config : sizes.configs) {
        cases.push_back({sizes.model, sizes.cluster, config, slow});
      }
    }
  }
  return cases;
}

absl::StatusOr<UnequalRow> Run(const UnequalCase& c, const SynthesisStudySize& size) {
  PIPELAB_ASSIGN_OR_RETURN(const auto on, ModelOnCluster::Load(c.model, c.cluster, "bf16"));
  PIPELAB_ASSIGN_OR_RETURN(const StepConfig config, ParseStepConfig("", c.config));
  StepCache cache(on->step());
  StepSynthesisOptions options;
  options.search.rounds = size.rounds;
  options.search.widest = size.widest;
  options.search.time_limit = absl::Seconds(size.unequal_limit_s);
  if (c.slow >= 0) {
    options.limits.speeds.assign(config.pipeline, 1);
    options.limits.speeds[c.slow] = 0.5;
  }
  PIPELAB_ASSIGN_OR_RETURN(const StepSynthesis found, SynthesizeStep(&cache, config, options));
  UnequalRow row;
  row.name = absl::StrCat(c.model, " ", c.config.substr(c.config.find(':') + 1),
                          c.slow < 0 ? "" : absl::StrCat(", device ", c.slow, " at half speed"));
  row.placement = found.best().placement;
  row.scheme = found.catalogue.scheme;
  row.step_ms = ToMs(found.best().prediction.step_time);
  row.passes_ms = ToMs(Nanoseconds(found.best().synthesis.proof.makespan));
  row.bound_ms = ToMs(Nanoseconds(found.best().synthesis.proof.lower_bound()));
  if (!row.scheme.empty()) row.catalogue_ms = ToMs(found.catalogue.prediction.step_time);
  return row;
}

}  // namespace

absl::StatusOr<std::vector<UnequalRow>> RunUnequalCases(const SynthesisStudySize& size) {
  std::vector<UnequalRow> rows;
  const std::vector<UnequalCase> all = Cases();
  for (size_t i = 0; i < all.size() && static_cast<int>(i) < size.cases; ++i) {
    absl::StatusOr<UnequalRow> row = Run(all[i], size);
    if (!row.ok()) {
      return absl::Status(row.status().code(), absl::StrCat(all[i].model, " ", all[i].config, ": ",
                                                            row.status().message()));
    }
    rows.push_back(*std::move(row));
  }
  return rows;
}

}  // namespace pipelab

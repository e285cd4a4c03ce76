// Steps of models on machines: what a user reads off a configuration, and the program behind it.
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "pipelines/step/model_on_cluster.h"
#include "pipelines/step/step.h"
#include "tests/priced_configs.h"
#include "tests/program_digests.h"
#include "tests/program_text.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

// A model on a machine, with what configurations share.
struct PricedModel {
  explicit PricedModel(const PricedPlace& place)
      : on(ModelOnCluster::Load(place.model, place.cluster, place.dtype).value()),
        cache(on->step()) {}

  const std::unique_ptr<ModelOnCluster> on;
  StepCache cache;
};

absl::StatusOr<CaseTexts> Priced(StepCache* cache, const StepConfig& config) {
  PIPELAB_ASSIGN_OR_RETURN(const StepPrediction p, PredictStep(cache, config));
  CaseTexts texts;
  texts.lists = ListsText(p.step.program);
  texts.spans = absl::StrCat("step ", p.step_time.value(), "\n");
  texts.memory = absl::StrCat("largest ", p.largest_device.value(), "\n", PeaksText(p.trace));
  texts.traffic = TrafficText(p.trace);
  return texts;
}

}  // namespace

std::vector<DigestLine> PricedLines() {
  std::vector<DigestLine> lines;
  for (const PricedPlace& place : kPricedPlaces) {
    const auto model = std::make_shared<PricedModel>(place);
    std::map<std::string, std::vector<DigestCase>> of_scheme;
    for (const StepConfig& config : ConfigsOf(place, model->on->model().num_groups())) {
      const std::string line =
          absl::StrCat("price/", place.model, " on ", place.cluster, "/", config.scheme);
      of_scheme[line].push_back(
          {absl::StrCat("price/", place.model, "/", place.cluster, "/", config.ToString()),
           [model, config] { return Priced(&model->cache, config); }});
    }
    for (auto& [name, cases] : of_scheme) lines.push_back({name, std::move(cases)});
  }
  return lines;
}

}  // namespace pipelab

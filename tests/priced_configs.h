// What tests price: every scheme's ways on several grids, on machines and models of every kind.
//
//   for (const PricedPlace& place : kPricedPlaces) {
//     auto on = ModelOnCluster::Load(place.model, place.cluster, place.dtype).value();
//     for (const StepConfig& c : ConfigsOf(place, on->model().num_groups())) ...
//   }
#ifndef PIPELAB_TESTS_PRICED_CONFIGS_H_
#define PIPELAB_TESTS_PRICED_CONFIGS_H_

#include <vector>

#include "pipelines/step/step_config.h"

namespace pipelab {

inline constexpr int kAllConfigs = 2;

struct PricedPlace {
  int half;   // of all configurations, 0 or 1; kAllConfigs
  int least;  // configurations that it prices
  const char* model;
  const char* cluster;
  const char* dtype;
};

inline constexpr PricedPlace kPricedPlaces[] = {
    {0, 1200, "gpt-6.6b", "dgx-a100", "bf16"},
    {1, 1200, "gpt-6.6b", "dgx1-v100", "fp16"},
    {0, 1000, "bert-64", "p3.16xlarge", "fp16"},
    {1, 1000, "gpt-52b", "summit", "fp32"},
    {kAllConfigs, 150, "resnet-small", "dgx-a100", "fp32"},
    {1, 150, "mixtral-8x7b", "dgx-h100", "bf16"}};

// The place's configurations, in the order of schemes: some are refused.
std::vector<StepConfig> ConfigsOf(const PricedPlace& place, int max_stages);

}  // namespace pipelab

#endif  // PIPELAB_TESTS_PRICED_CONFIGS_H_

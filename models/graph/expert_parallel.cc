#include "models/graph/expert_parallel.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "absl/strings/str_cat.h"
#include "tools/base/nearest.h"

namespace pipelab {

int64_t RoutedExperts(const LayerSpec& layer) {
  int64_t experts = 0;
  for (const ParameterSpec& p : layer.parameters) experts = std::max(experts, p.experts);
  return experts;
}

absl::Status CheckExpertParallel(const ModelGraph& graph, TensorParallel split, int64_t copies,
                                 absl::string_view option) {
  const std::string given = absl::StrCat(option, "=", split.experts);
  const auto error = [&](const auto&... words) {
    return absl::InvalidArgumentError(absl::StrCat(given, ": ", words...));
  };
  if (split.experts < 1) return error("must be at least 1");
  const int64_t tensor = split.degree;
  if (split.whole_experts && tensor > 1) {
    if (!split.sequence) {
      return absl::InvalidArgumentError(absl::StrCat(
          "whole_experts: with T=", tensor, " it needs sequence parallelism, so that the devices ",
          "of a group have different tokens"));
    }
    if (split.experts % tensor != 0) {
      return error("with whole_experts it must be a multiple of T=", tensor);
    }
  }
  if (split.experts == 1) return absl::OkStatus();
  int64_t common = 0;
  for (const LayerSpec& layer : graph.layers) common = std::gcd(common, RoutedExperts(layer));
  if (common == 0) return error(graph.name, " has no layer with experts; ", option, " must be 1");
  for (const LayerSpec& layer : graph.layers) {
    if (RoutedExperts(layer) % split.experts == 0) continue;
    return error("must divide the ", RoutedExperts(layer), " experts of layer \"", layer.name,
                 "\"; the nearest that does is ", NearestDivisor(split.experts, common));
  }
  if (copies % split.expert_copies() != 0) {
    const int64_t devices = split.whole_experts ? copies * tensor : copies;
    return error("must divide the ", devices,
                 split.whole_experts && tensor > 1 ? " devices of T x C x D" : " devices of C x D",
                 "; the nearest that does is ", NearestDivisor(split.experts, devices));
  }
  return absl::OkStatus();
}

}  // namespace pipelab

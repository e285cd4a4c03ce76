#include "pipelines/plan/partition.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace pipelab {
namespace {

absl::Status CheckCosts(absl::Span<const double> costs, int num_stages) {
  const int layers = static_cast<int>(costs.size());
  if (num_stages < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(num_stages, " stages: there must be at least 1"));
  }
  if (num_stages > layers) {
    return absl::InvalidArgumentError(
        absl::StrCat(num_stages, " stages, but the model has ", layers,
                     " layers: a stage would be without layers; at most ", layers));
  }
  for (int i = 0; i < layers; ++i) {
    if (!std::isfinite(costs[i]) || costs[i] < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("layer ", i, " costs ", costs[i], ": must be finite and not negative"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<int>> PartitionChain(absl::Span<const double> layer_costs,
                                                int num_stages) {
  if (absl::Status s = CheckCosts(layer_costs, num_stages); !s.ok()) return s;
  const int layers = static_cast<int>(layer_costs.size());
  std::vector<double> sum(layers + 1, 0);
  for (int i = 0; i < layers; ++i) sum[i + 1] = sum[i] + layer_costs[i];
  // best[k][n]: the smallest largest stage of the first n layers in k stages; begin[k][n]: where
  // its last stage begins.
  const double infinity = std::numeric_limits<double>::infinity();
  std::vector<std::vector<double>> best(num_stages + 1, std::vector<double>(layers + 1, infinity));
  std::vector<std::vector<int>> begin(num_stages + 1, std::vector<int>(layers + 1, 0));
  best[0][0] = 0;
  for (int k = 1; k <= num_stages; ++k) {
    for (int n = k; n <= layers; ++n) {
      for (int b = k - 1; b < n; ++b) {
        const double largest = std::max(best[k - 1][b], sum[n] - sum[b]);
        if (largest < best[k][n]) {
          best[k][n] = largest;
          begin[k][n] = b;
        }
      }
    }
  }
  std::vector<int> first(num_stages);
  for (int k = num_stages, n = layers; k > 0; --k) n = first[k - 1] = begin[k][n];
  return first;
}

absl::StatusOr<std::vector<int>> ParseLayout(absl::string_view layout, int num_layers) {
  std::vector<int> first;
  int64_t total = 0;
  for (absl::string_view word : absl::StrSplit(layout, ',')) {
    int layers = 0;
    if (!absl::SimpleAtoi(word, &layers) || layers < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("--layout=", layout, ": '", word,
                       "' is not a number of layers; give one number a stage, "
                       "such as 3,2,2,3"));
    }
    if (layers == 0) {
      return absl::InvalidArgumentError(absl::StrCat("--layout=", layout, ": stage ", first.size(),
                                                     " is without layers; at least 1 each"));
    }
    if (total + layers > num_layers) {
      return absl::InvalidArgumentError(
          absl::StrCat("--layout=", layout, ": more layers than the model's ", num_layers));
    }
    first.push_back(static_cast<int>(total));
    total += layers;
  }
  if (total != num_layers) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--layout=", layout, ": ", total, " layers in all, but the model has ", num_layers));
  }
  return first;
}

}  // namespace pipelab

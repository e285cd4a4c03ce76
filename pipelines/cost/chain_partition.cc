#include "pipelines/cost/chain_partition.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
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

// Minimises what `join` makes of the stages' costs, one after the other from 0. It must not fall
// as either argument grows. A stage that begins later costs less, so the last begin of a range and
// the least before any of its begins bound what the range has, which passes over most ranges.
template <typename Join>
absl::StatusOr<std::vector<int>> Minimise(absl::Span<const double> layer_costs, int num_stages,
                                          absl::Span<const StageEnd> ends, Join join) {
  if (absl::Status s = CheckCosts(layer_costs, num_stages); !s.ok()) return s;
  const int layers = static_cast<int>(layer_costs.size());
  std::vector<double> sum(layers + 1, 0);
  for (int i = 0; i < layers; ++i) sum[i + 1] = sum[i] + layer_costs[i];
  // best[n]: the least of the first n layers in k stages; before[n]: in k - 1; begin[k][n]: where
  // the last of k stages begins.
  const double infinity = std::numeric_limits<double>::infinity();
  std::vector<double> best(layers + 1, infinity), before, least_from(layers + 1);
  std::vector<std::vector<int>> begin(num_stages + 1, std::vector<int>(layers + 1, 0));
  best[0] = 0;
  for (int k = 1; k <= num_stages; ++k) {
    before = std::exchange(best, std::vector<double>(layers + 1, infinity));
    least_from[layers] = before[layers];
    for (int b = layers; b-- > 0;) least_from[b] = std::min(before[b], least_from[b + 1]);
    for (int n = k; n <= layers; ++n) {
      const StageEnd end = ends.empty() || n == layers ? StageEnd() : ends[n - 1];
      const auto stage = [&](int b) { return sum[n] - sum[b] + end.cost; };
      const int earliest = std::max(k - 1, end.earliest);
      if (earliest >= n) continue;
      const int guess = std::max(earliest, begin[k][n - 1]);
      const double enough = join(before[guess], stage(guess));
      // Takes the first of the best in [first, last].
      const auto search = [&](const auto& self, int first, int last) -> void {
        const double bound = join(least_from[first], stage(last));
        if (bound > enough || bound >= best[n]) return;
        if (first < last) {
          const int middle = first + (last - first) / 2;
          self(self, first, middle);
          self(self, middle + 1, last);
          return;
        }
        const double joined = join(before[first], stage(first));
        if (joined >= best[n]) return;
        best[n] = joined;
        begin[k][n] = first;
      };
      search(search, earliest, n - 1);
    }
  }
  if (best[layers] == infinity) {
    return absl::NotFoundError(absl::StrCat("no cuts into ", num_stages, " stages are allowed"));
  }
  std::vector<int> first(num_stages);
  for (int k = num_stages, n = layers; k > 0; --k) n = first[k - 1] = begin[k][n];
  return first;
}

// Minimise with the larger of two costs, where stages end anywhere. The least of the first layers
// grows with their number, and the cost of the layers behind falls, so that the best begin of a
// last stage is where these cross, and moves on with the number of layers.
std::vector<int> MinimiseLargest(absl::Span<const double> layer_costs, int num_stages) {
  const int layers = static_cast<int>(layer_costs.size());
  std::vector<double> sum(layers + 1, 0);
  for (int i = 0; i < layers; ++i) sum[i + 1] = sum[i] + layer_costs[i];
  std::vector<double> before = sum, best(layers + 1, 0);  // `before`: of one stage
  // [stages][layers] Where the last stage begins, in one piece of memory.
  std::vector<int> begins(static_cast<size_t>(num_stages + 1) * (layers + 1));
  const auto begins_of = [&](int k) { return &begins[static_cast<size_t>(k) * (layers + 1)]; };
  for (int k = 2; k <= num_stages; ++k) {
    int crossing = k - 1;
    int* const begin = begins_of(k);
    for (int n = k; n <= layers; ++n) {
      const auto behind = [&](int b) { return sum[n] - sum[b]; };
      while (crossing + 1 < n && before[crossing] < behind(crossing)) ++crossing;
      best[n] = std::max(before[crossing], behind(crossing));
      begin[n] = crossing;
      // The first of those that are as good.
      for (int b = crossing - 1; b >= k - 1 && behind(b) <= best[n]; --b) {
        best[n] = behind(b);
        begin[n] = b;
      }
    }
    std::swap(before, best);
  }
  std::vector<int> first(num_stages);
  for (int k = num_stages, n = layers; k > 0; --k) n = first[k - 1] = begins_of(k)[n];
  return first;
}

// Minimises the sum of the stages' squared costs, where stages end anywhere. The first of the best
// begins of a last stage never moves back as layers are added, so those of the layers in the middle
// bound those on either side.
class LeastSquares {
 public:
  LeastSquares(absl::Span<const double> layer_costs, int num_stages)
      : layers_(static_cast<int>(layer_costs.size())),
        sum_(layers_ + 1, 0),
        best_(layers_ + 1, 0),
        begins_(num_stages + 1, std::vector<int>(layers_ + 1, 0)) {
    for (int i = 0; i < layers_; ++i) sum_[i + 1] = sum_[i] + layer_costs[i];
    for (int n = 1; n <= layers_; ++n) best_[n] = sum_[n] * sum_[n];
    for (int k = 2; k <= num_stages; ++k) {
      before_ = best_;
      Fill(k, k, layers_, k - 1, layers_ - 1);
    }
  }

  std::vector<int> FirstLayers() const {
    std::vector<int> first(begins_.size() - 1);
    for (int k = static_cast<int>(first.size()), n = layers_; k > 0; --k) {
      n = first[k - 1] = begins_[k][n];
    }
    return first;
  }

 private:
  // Finds the best k stages that have the first n layers, for n of `from` to `to`, and whose last
  // stage begins at `earliest` to `latest`.
  void Fill(int k, int from, int to, int earliest, int latest) {
    if (from > to) return;
    const int n = from + (to - from) / 2;
    int begin = earliest;
    for (int b = earliest; b <= std::min(latest, n - 1); ++b) {
      const double stage = sum_[n] - sum_[b], squares = before_[b] + stage * stage;
      if (b > earliest && squares >= best_[n]) continue;
      best_[n] = squares;
      begin = b;
    }
    begins_[k][n] = begin;
    Fill(k, from, n - 1, earliest, begin);
    Fill(k, n + 1, to, begin, latest);
  }

  const int layers_;
  std::vector<double> sum_, best_, before_;  // as in Minimise
  std::vector<std::vector<int>> begins_;     // [stages][layers]
};

}  // namespace

absl::StatusOr<std::vector<int>> PartitionChain(absl::Span<const double> layer_costs,
                                                int num_stages, absl::Span<const StageEnd> ends) {
  if (ends.empty()) {
    if (absl::Status s = CheckCosts(layer_costs, num_stages); !s.ok()) return s;
    return MinimiseLargest(layer_costs, num_stages);
  }
  return Minimise(layer_costs, num_stages, ends,
                  [](double largest, double stage) { return std::max(largest, stage); });
}

absl::StatusOr<std::vector<int>> PartitionChainByVariance(absl::Span<const double> layer_costs,
                                                          int num_stages,
                                                          absl::Span<const StageEnd> ends) {
  // The mean is that of all partitions, so the sum of squares decides.
  if (ends.empty()) {
    if (absl::Status s = CheckCosts(layer_costs, num_stages); !s.ok()) return s;
    return LeastSquares(layer_costs, num_stages).FirstLayers();
  }
  return Minimise(layer_costs, num_stages, ends,
                  [](double squares, double stage) { return squares + stage * stage; });
}

std::vector<int> StageSizes(const std::vector<int>& first_layers, int num_layers) {
  std::vector<int> sizes;
  for (size_t s = 0; s < first_layers.size(); ++s) {
    const int end = s + 1 < first_layers.size() ? first_layers[s + 1] : num_layers;
    sizes.push_back(end - first_layers[s]);
  }
  return sizes;
}

absl::StatusOr<std::vector<int>> ParseLayout(absl::string_view layout, int num_layers) {
  std::vector<int> first;
  int64_t total = 0;
  for (absl::string_view word : absl::StrSplit(layout, ',')) {
    int layers = 0;
    if (!absl::SimpleAtoi(word, &layers) || layers < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("--layout=", layout, ": '", word,
                       "' is not a number of layers; give one number per stage, "
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

absl::StatusOr<std::vector<int>> ParseStages(absl::string_view layout, int num_layers) {
  std::vector<int> stage_of_layer(num_layers, -1);
  if (!absl::StrContains(layout, ';')) {
    absl::StatusOr<std::vector<int>> first_layers = ParseLayout(layout, num_layers);
    if (!first_layers.ok()) return first_layers.status();
    for (int layer = 0, stage = -1; layer < num_layers; ++layer) {
      if (std::binary_search(first_layers->begin(), first_layers->end(), layer)) ++stage;
      stage_of_layer[layer] = stage;
    }
    return stage_of_layer;
  }
  const auto error = [&](const auto&... parts) {
    return absl::InvalidArgumentError(absl::StrCat("--layout=", layout, ": ", parts...));
  };
  int stage = 0;
  for (absl::string_view part : absl::StrSplit(layout, ';')) {
    for (absl::string_view word : absl::StrSplit(part, ',')) {
      const std::vector<absl::string_view> ends = absl::StrSplit(word, '-');
      int first = 0, last = 0;
      if (ends.size() > 2 || !absl::SimpleAtoi(ends[0], &first) ||
          !absl::SimpleAtoi(ends.back(), &last) || first < 0 || last < first) {
        return error("'", word, "' of stage ", stage,
                     " is neither a layer nor a range of layers; write 0-3;4,5,9;6-8");
      }
      if (last >= num_layers) {
        return error("layer ", last, " of stage ", stage, ", but the model's ", num_layers,
                     " layers count from 0");
      }
      for (int layer = first; layer <= last; ++layer) {
        if (stage_of_layer[layer] >= 0) {
          return error("layer ", layer, " is in stage ", stage_of_layer[layer], " and in stage ",
                       stage);
        }
        stage_of_layer[layer] = stage;
      }
    }
    ++stage;
  }
  const auto missing = std::find(stage_of_layer.begin(), stage_of_layer.end(), -1);
  if (missing != stage_of_layer.end()) {
    return error("layer ", missing - stage_of_layer.begin(), " is in no stage");
  }
  return stage_of_layer;
}

std::string StagesText(const std::vector<int>& stage_of_layer) {
  std::vector<std::string> stages;
  const auto layers = static_cast<int>(stage_of_layer.size());
  for (int first = 0, end = 0; first < layers; first = end) {
    const size_t stage = stage_of_layer[first];
    while (end < layers && stage_of_layer[end] == stage_of_layer[first]) ++end;
    if (stages.size() <= stage) stages.resize(stage + 1);
    absl::StrAppend(&stages[stage], stages[stage].empty() ? "" : ",", first, "-", end - 1);
  }
  return stages.size() == 1 ? absl::StrCat(layers) : absl::StrJoin(stages, ";");
}

}  // namespace pipelab

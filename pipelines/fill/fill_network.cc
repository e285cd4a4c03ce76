#include "pipelines/fill/fill_network.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "pipelines/cluster/device.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr int kSteps = 2;              // over which a device's gaps are filled
constexpr int64_t kNumbersOfAdam = 7;  // read and written of each parameter

class NetworkPieces {
 public:
  NetworkPieces(const ModelGraph& graph, const Machine& machine, const FillNetworkOptions& options,
                int64_t samples)
      : graph_(graph), machine_(machine), options_(options), samples_(samples) {}

  absl::StatusOr<FillNetwork> Make() {
    made_.job.name = graph_.name;
    made_.samples = samples_;
    for (const LayerSpec& layer : graph_.layers) {
      PIPELAB_ASSIGN_OR_RETURN(const LayerTimes times, TimesOf(layer, machine_, samples_));
      times_.push_back(times);
    }
    if (options_.training) {
      PIPELAB_RETURN_IF_ERROR(AddTraining());
    } else {
      AddInference();
    }
    FillJob& job = made_.job;
    Bytes most;
    for (const FillPiece& piece : job.pieces) {
      made_.time += piece.time;
      most = std::max(most, piece.bytes);
    }
    made_.memory = job.state + most;
    job.switch_time = LaunchGap(machine_.device);
    if (options_.host_link.value() > 0) {  // in, and out again
      const double seconds =
          2.0 * static_cast<double>(job.state.value()) / options_.host_link.value();
      job.load_time = Nanoseconds(static_cast<int64_t>(seconds * 1e9));
    }
    return std::move(made_);
  }

 private:
  Bytes Narrow(Bytes bytes) const { return Bytes(bytes.value() / 4 * BytesOf(machine_.type)); }
  LayerCosts CostsOf(size_t layer) const { return graph_.layers[layer].costs(samples_); }

  void AddInference() {
    const std::vector<std::vector<int>> consumers = Consumers(graph_);
    Bytes live, most_live;
    for (size_t n = 0; n < graph_.layers.size(); ++n) {
      const LayerCosts costs = CostsOf(n);
      made_.flops += costs.forward;
      made_.job.pieces.push_back({times_[n].forward, Narrow(costs.forward_peak)});
      live += Narrow(costs.output);
      for (const int input : graph_.layers[n].inputs) {
        if (consumers[input].back() == static_cast<int>(n)) live -= Narrow(CostsOf(input).output);
      }
      most_live = std::max(most_live, live);
    }
    made_.job.state = Bytes(graph_.num_parameters() * BytesOf(machine_.type)) + most_live;
  }

  absl::Status AddTraining() {
    FillJob& job = made_.job;
    job.state = Bytes(graph_.num_parameters() * 16);
    for (size_t n = 0; n < graph_.layers.size(); ++n) {
      const LayerCosts costs = CostsOf(n);
      made_.flops += costs.forward + costs.backward_input + costs.backward_weight;
      job.state += Narrow(costs.output + costs.kept);
      job.pieces.push_back({times_[n].forward, Narrow(costs.forward_peak)});
    }
    for (size_t n = graph_.layers.size(); n-- > 0;) {
      job.pieces.push_back(
          {times_[n].backward_input + times_[n].backward_weight, Narrow(CostsOf(n).backward_peak)});
    }
    PIPELAB_ASSIGN_OR_RETURN(const Nanoseconds step,
                             StepTime(machine_, graph_.num_parameters(), kNumbersOfAdam));
    job.pieces.push_back({step, Bytes(0)});
    return absl::OkStatus();
  }

  const ModelGraph& graph_;
  const Machine& machine_;
  const FillNetworkOptions& options_;
  const int64_t samples_;
  std::vector<LayerTimes> times_;
  FillNetwork made_;
};

FilledGaps Filled(const FillNetwork& network, const DeviceGaps& gaps, Nanoseconds slack) {
  FillProblem problem{gaps.gaps, gaps.always_free, {network.job}};
  problem.slack = slack;
  problem.iterations = kSteps;
  // More than all steps can do.
  problem.jobs[0].rounds = kSteps * (gaps.idle.value() / network.time.value() + 1) + 1;
  FilledGaps filled;
  filled.work = Nanoseconds(PlannedWork(problem, GreedyFill(problem)).value() / kSteps);
  filled.flops = Flops(network.flops.value() * (filled.work / network.time));
  filled.samples = filled.work > Nanoseconds(0) ? network.samples : 0;
  const FillRules rules(problem);
  const int64_t pieces = static_cast<int64_t>(network.job.pieces.size());
  for (const Gap& gap : gaps.gaps) {
    bool fits = true;
    for (int64_t n = 0; n < pieces && fits; ++n) fits = rules.Needed(0, n) <= gap.free;
    if (fits) filled.fits += gap.length();
  }
  return filled;
}

}  // namespace

absl::StatusOr<std::vector<FillNetwork>> FillNetworks(const ModelGraph& graph,
                                                      const Machine& machine,
                                                      const FillNetworkOptions& options) {
  std::vector<FillNetwork> sizes;
  for (int64_t samples = 1; samples <= options.most_samples; samples *= 2) {
    PIPELAB_ASSIGN_OR_RETURN(FillNetwork n, NetworkPieces(graph, machine, options, samples).Make());
    if (n.memory > machine.device.memory.value) break;
    sizes.push_back(std::move(n));
  }
  if (!sizes.empty()) return sizes;
  return absl::ResourceExhaustedError(absl::StrCat(
      "fill job ", graph.name, ": one sample does not fit into ", machine.device.name));
}

const FillNetwork& FastestAlone(const std::vector<FillNetwork>& sizes) {
  return *std::max_element(
      sizes.begin(), sizes.end(),
      [](const FillNetwork& a, const FillNetwork& b) { return a.rate() < b.rate(); });
}

FilledGaps FillWithNetwork(const std::vector<FillNetwork>& sizes, const DeviceGaps& gaps,
                           Nanoseconds slack) {
  FilledGaps best;
  for (const FillNetwork& network : sizes) {
    const FilledGaps filled = Filled(network, gaps, slack);
    if (best.samples == 0 || filled.flops > best.flops) best = filled;
  }
  return best;
}

}  // namespace pipelab

// Bubble rates that papers print for measured times of passes and messages.
#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "experiments/formulas/published_formulas.h"
#include "experiments/simulate/simulated_run.h"
#include "pipelines/schedules/catalog.h"
#include "pipelines/schedules/zero_bubble.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

// megatron/core/pipeline_parallel/efficiency.py of sail-sg/zero-bubble-pipeline-parallelism at
// f68d387: GPTs of 1.5B, 6.2B, 14.6B and 28.3B. Times in us; rates of 1F1B, ZB-H1, ZB-H2, ZB-1p
// and ZB-2p.
struct PublishedRates {
  int devices, micro_batches;
  int64_t forward, input, weight, hop;
  int64_t hidden, heads;
  double rates[5];
};
constexpr PublishedRates kRates[] = {
    {8, 24, 18522, 18086, 9337, 601, 2304, 24, {0.2431, 0.1585, 0.1083, 0.1585, 0.0433}},
    {8, 32, 18513, 18086, 9331, 626, 2304, 24, {0.1985, 0.1242, 0.0837, 0.1242, 0.0039}},
    {8, 64, 18546, 18097, 9321, 762, 2304, 24, {0.1240, 0.0674, 0.0444, 0.0674, 0.0026}},
    {8, 24, 29718, 29444, 19927, 527, 4096, 32, {0.2347, 0.1323, 0.0698, 0.1323, 0.0029}},
    {8, 32, 29802, 29428, 19530, 577, 4096, 32, {0.1898, 0.1045, 0.0559, 0.1045, 0.0022}},
    {8, 64, 29935, 29621, 19388, 535, 4096, 32, {0.1091, 0.0554, 0.0294, 0.0554, 0.0010}},
    {16, 48, 11347, 11248, 8132, 377, 5120, 40, {0.2552, 0.1397, 0.0672, 0.1397, 0.0066}},
    {16, 64, 11307, 11254, 8101, 379, 5120, 40, {0.2082, 0.1088, 0.0516, 0.1088, 0.0054}},
    {16, 128, 11325, 11308, 8109, 378, 5120, 40, {0.1251, 0.0576, 0.0266, 0.0576, 0.0028}},
    {32, 96, 10419, 10207, 7715, 408, 6144, 48, {0.2646, 0.1421, 0.0641, 0.1421, 0.0038}},
    {32, 128, 10408, 10204, 7703, 408, 6144, 48, {0.2168, 0.1106, 0.0490, 0.1106, 0.0029}},
    {32, 256, 10402, 10248, 7698, 460, 6144, 48, {0.1352, 0.0594, 0.0257, 0.0594, 0.0018}},
};

// The automatic scheduler's, as they ask it: a token keeps 34 h + 5 a s bytes from F to I and 32 h
// of them to W (s = 1024), and a device has room for so many F.
absl::StatusOr<Schedule> Automatic(const PublishedRates& r, int activations) {
  ZeroBubbleStage stage;
  stage.forward = Nanoseconds(r.forward);
  stage.backward_input = Nanoseconds(r.input);
  stage.backward_weight = Nanoseconds(r.weight);
  stage.hop = Nanoseconds(r.hop);
  stage.kept = Bytes(34 * r.hidden + 5 * r.heads * 1024);
  stage.kept_for_weight = Bytes(32 * r.hidden);
  stage.memory_limit = stage.kept * activations;
  ZeroBubbleCosts costs;
  costs.stages.assign(r.devices, stage);
  return MakeZeroBubble(costs, r.micro_batches);
}

// The rate of the device that takes longest from the begin of its first pass to the end of its last
// one.
absl::StatusOr<double> RateOf(Schedule schedule, const PublishedRates& r) {
  SimulatedTimes times;
  times.forward = absl::StrCat(r.forward);
  times.backward_input = absl::StrCat(r.input);
  times.backward_weight = absl::StrCat(r.weight);
  times.hop = absl::StrCat(r.hop);
  PIPELAB_ASSIGN_OR_RETURN(const SimulatedRun run, RunSimulated(std::move(schedule), times));
  double span = 0;
  for (const DeviceFigures& d : FiguresOf(run).devices) span = std::max(span, d.span);
  return 1 - static_cast<double>(r.micro_batches * (r.forward + r.input + r.weight)) / span;
}

absl::Status AddRates(const PublishedRates& r, FormulaGroup* group) {
  SchemeParams sizes;
  sizes.devices = r.devices;
  sizes.micro_batches = r.micro_batches;
  std::vector<std::pair<const char*, absl::StatusOr<Schedule>>> schedules;
  for (const char* scheme : {"1f1b", "zb_h1", "zb_h2"}) {
    schedules.emplace_back(scheme, MakeSchedule(scheme, sizes));
  }
  schedules.emplace_back("zb1p", Automatic(r, r.devices));
  schedules.emplace_back("zb2p", Automatic(r, 2 * r.devices));
  for (size_t i = 0; i < schedules.size(); ++i) {
    auto& [scheme, schedule] = schedules[i];
    PIPELAB_RETURN_IF_ERROR(schedule.status());
    FormulaCell cell;
    cell.scheme = scheme;
    cell.sizes = absl::StrCat("P=", r.devices, " M=", r.micro_batches, " h=", r.hidden);
    cell.low = cell.high = r.rates[i];
    PIPELAB_ASSIGN_OR_RETURN(cell.ours, RateOf(*std::move(schedule), r));
    group->cells.push_back(std::move(cell));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<FormulaGroup>> BubbleRates() {
  FormulaGroup g;
  g.id = "formulas.zero_bubble_rates";
  g.text =
      "bubble rate 1 - m (TF + TB + TW) / (longest span of a device) of 1F1B, ZB-H1, ZB-H2, ZB-1p "
      "and ZB-2p with the authors' measured times";
  g.source = "Zero bubble (arXiv 2401.10241), authors' repository";
  g.tag = "read";
  g.differences = true;
  g.limit = 0.005;
  g.reason = "the scheduler finds another order under the same memory limit";
  for (const PublishedRates& rates : kRates) PIPELAB_RETURN_IF_ERROR(AddRates(rates, &g));
  return std::vector<FormulaGroup>{std::move(g)};
}

}  // namespace pipelab

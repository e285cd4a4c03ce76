#include "experiments/graph_split/split_steps.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "models/data/neighbour_sampler.h"
#include "models/data/split_sampler.h"
#include "models/layers/graph_peers.h"
#include "pipelines/graphs/graph_partition.h"
#include "pipelines/graphs/graph_training.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr uint64_t kStepsSeed = 1;

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// The slowest member's time in one step, from the sample to the end, in ms. Sums of gradients make
// members end together.
double LoadAndCompute(const Program& program, const Trace& trace) {
  int64_t longest = 0;
  for (size_t d = 0; d < trace.devices.size(); ++d) {
    for (const ExecutedInstruction& span : SpansOf(program, trace, d)) {
      if (span.op != OpCode::kCompute || span.action.stage != PreparationStage::kSample) continue;
      longest = std::max(longest, trace.devices[d].spans.back().end_ns - span.end_ns);
    }
  }
  return static_cast<double>(longest) * 1e-6;
}

// Members are copies in line, a thread each, and a step is an epoch.
absl::StatusOr<StepTimes> MeasureWidth(const GraphData& data, const VertexOwners& owners,
                                       const StepSize& size) {
  GraphTrainingOptions options;
  options.sizes.workers = 0;
  options.sizes.copies = size.members;
  options.batches.batch = size.batch;
  options.batches.fanouts = size.fanouts;
  options.batches.seed = kStepsSeed;
  options.model.hidden = size.hidden;
  options.steps_of_epoch = 1;
  options.wait_limit = absl::Minutes(2);
  PIPELAB_ASSIGN_OR_RETURN(const auto by_data, GraphTraining::Create(&data, options));
  options.owners = &owners;
  PIPELAB_ASSIGN_OR_RETURN(const auto split, GraphTraining::Create(&data, options));
  std::vector<SplitMember> members =
      MakeSplitMembers(&data.graph, &owners, size.members, size.fanouts, kStepsSeed);
  NeighbourSampler sampler(&data.graph, size.fanouts, kStepsSeed);
  StepTimes result;
  result.width = data.width;
  int64_t split_rows = 0, data_rows = 0;
  Bytes exchanged;
  for (int step = 0; step <= size.steps; ++step) {
    PIPELAB_ASSIGN_OR_RETURN(const GraphEpoch by_split, split->RunEpoch());
    PIPELAB_ASSIGN_OR_RETURN(const GraphEpoch of_data, by_data->RunEpoch());
    const auto batch = split->batches().Targets(step, 0);
    for (const SplitSample& sample : SampleOfAll(step, batch, &members)) {
      split_rows += static_cast<int64_t>(sample.inputs.size());
      for (size_t b = 0; b < sample.blocks.size(); ++b) {
        const RowShuffle& shuffle = sample.blocks[b].shuffle;
        exchanged += GoBytes(shuffle, b == 0 ? data.width : size.hidden);
        if (b > 0) exchanged += ReturnBytes(shuffle, size.hidden);
      }
    }
    for (int m = 0; m < size.members; ++m) {
      const auto targets = by_data->batches().Targets(step, m);
      data_rows += sampler.Sample(step, targets).blocks[0].num_sources();
    }
    if (step == 0) continue;  // warms up
    result.split.push_back(LoadAndCompute(split->program(), by_split.trace));
    result.data.push_back(LoadAndCompute(by_data->program(), of_data.trace));
  }
  result.exchanged_mib = static_cast<double>(exchanged.value()) / (1 << 20) / (size.steps + 1);
  result.rows = static_cast<double>(data_rows) / static_cast<double>(split_rows);
  return result;
}

}  // namespace

double StepTimes::ratio() const { return Median(split) / Median(data); }

absl::StatusOr<std::vector<StepTimes>> MeasureSteps(const TextGraph& text, const StepSize& size) {
  std::vector<StepTimes> times;
  VertexOwners owners;
  for (int64_t width : size.widths) {
    const GraphData data = ToGraphData(text, static_cast<int>(width));
    if (owners.empty()) {
      PreSampling sampling;
      sampling.train = data.train;
      sampling.fanouts = size.fanouts;
      sampling.batch = size.batch;
      PIPELAB_ASSIGN_OR_RETURN(const PreSamples samples, SampleBefore(data.graph, sampling));
      PIPELAB_ASSIGN_OR_RETURN(owners, MakePartition(PartitionMethod::kPreSamples, data.graph,
                                                     samples, size.members, kStepsSeed));
    }
    PIPELAB_ASSIGN_OR_RETURN(StepTimes of, MeasureWidth(data, owners, size));
    times.push_back(std::move(of));
  }
  return times;
}

Table StepTable(const std::vector<StepTimes>& times, const StepSize& size) {
  Table t("steps", absl::StrCat("Steps of GraphSAGE on the theorem graph, batch ", size.batch,
                                ", on ", size.members, " threads: loading and computing"));
  t.AddKey("width");
  t.AddColumn({"data", "data-parallel", "", "ms", Origin::kMeasured, 1});
  t.AddColumn({"split", "split", "", "ms", Origin::kMeasured, 1});
  t.AddColumn({"ratio", "split over data-parallel", "", "x", Origin::kMeasured, 3});
  t.AddColumn({"rows", "rows data-parallel loads, over split", "", "x", Origin::kComputed, 2});
  t.AddColumn({"exchanged", "rows that split exchanges", "", "MiB", Origin::kComputed, 1});
  for (const StepTimes& of : times) {
    t.AddRow({Label(static_cast<double>(of.width)), Measured(Median(of.data)).WithSamples(of.data),
              Measured(Median(of.split)).WithSamples(of.split), Measured(of.ratio()),
              Computed(of.rows), Computed(of.exchanged_mib)});
  }
  return t;
}

std::vector<Claim> StepClaims(const std::vector<StepTimes>& times) {
  std::vector<Claim> claims;
  Claim step = OwnClaim("gsplit.real_step",
                        "loading and computing, split over data-parallel, rows 512 wide");
  step.unit = "x";
  for (const StepTimes& of : times) {
    if (of.width != 512) continue;
    Found(&step, Origin::kMeasured, of.ratio());
    MetIf(&step, of.ratio() <= 0.75, "at most 0.75 x",
          "two members have few vertices in common, and products of the same rows rule");
  }
  if (step.value.has_value()) claims.push_back(std::move(step));

  Claim even = OwnClaim("gsplit.break_even", "width of rows from which on split is the faster one");
  even.unit = "numbers";
  auto from = times.end();
  while (from != times.begin() && (from - 1)->ratio() < 1) --from;
  if (from == times.end()) {
    NotMade(&even, absl::StrFormat("split takes %.3f x at the widest, %d numbers",
                                   times.back().ratio(), times.back().width));
  } else {
    const bool narrowest = from == times.begin();
    Found(&even, Origin::kMeasured, static_cast<double>(from->width),
          absl::StrCat(narrowest ? "below " : "", from->width));
    MetIf(&even, from->width <= 512, "at most 512", "exchanges take longer than what is saved");
  }
  claims.push_back(std::move(even));
  return claims;
}

}  // namespace pipelab

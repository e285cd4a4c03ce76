#include "experiments/token_slices/slice_gains.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "models/graph/tensor_member.h"
#include "models/zoo/published.h"
#include "pipelines/cluster/rank_network.h"
#include "pipelines/planners/model_problem.h"
#include "pipelines/planners/planners.h"
#include "pipelines/step/step_model.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr double kGainOff = 0.25;  // of a row's gain

// Powers of two up to the samples of one pipeline.
std::vector<int64_t> SampleSizes(int64_t samples) {
  std::vector<int64_t> sizes;
  for (int64_t size = 1; size <= samples; size *= 2) sizes.push_back(size);
  return sizes;
}

// A tensor-parallel group on the cluster.
struct TensorGroup {
  TensorParallel split;
  PathCost hop;
  Nanoseconds overhead;        // of a collective, beside its ring
  double bytes_of_number = 4;  // on the device

  double TimeOf(const std::vector<TensorCollective>& collectives) const {
    double seconds = 0;
    for (const TensorCollective& c : collectives) {
      const double bytes = static_cast<double>(c.bytes.value()) * bytes_of_number / sizeof(float);
      seconds += ToSeconds(overhead +
                           RingTime(hop, split.degree, c.kind, Bytes(static_cast<int64_t>(bytes))));
    }
    return seconds;
  }
};

// What the group sums within layers is part of their slices' times.
void AddCollectives(const ModelGraph& whole, const TensorGroup& group, PlanProblem* problem) {
  const int units = static_cast<int>(problem->tokens / problem->token_step);
  for (PlanOperator& op : problem->operators) {
    for (const int i : op.layers) {
      const LayerSpec& layer = whole.layers[i];
      if (layer.split.empty() || !layer.split.collectives) continue;
      for (size_t size = 0; size < problem->micro_batch_sizes.size(); ++size) {
        for (int length = 1; length <= units; ++length) {
          const TokenSlice slice{0, length * problem->token_step};
          const TensorCollectives c =
              layer.split.collectives(problem->micro_batch_sizes[size], slice, group.split);
          const double forward = group.TimeOf(c.forward);
          const double both =
              forward + group.TimeOf(c.backward_input) + group.TimeOf(c.backward_weight);
          for (PlanTimes& times : op.slice_times[size][length - 1]) {
            times.forward += forward;
            times.time += both;
          }
        }
      }
    }
  }
}

// The plan's seconds, and the plan.
absl::StatusOr<Plan> PlanOf(const PublishedTeraPipeRow& row, const ClusterSpec& cluster,
                            const ModelGraph& whole, int64_t token_step) {
  TensorParallel split;
  split.degree = static_cast<int>(row.tensor);
  PIPELAB_RETURN_IF_ERROR(CheckTensorParallel(whole, split));
  const ModelGraph mine = split.degree > 1 ? MemberGraph(whole, split, 0) : whole;
  ModelProblemOptions options;
  options.type = NarrowestType(cluster.device);
  options.devices = row.pipeline;
  options.micro_batch_size = 1;
  options.batch_samples = row.batch / row.data;
  options.micro_batch_sizes = SampleSizes(options.batch_samples);
  options.token_step = token_step;
  PIPELAB_ASSIGN_OR_RETURN(PlanProblem problem, ModelProblem(mine, cluster, options));
  if (split.degree > 1) {
    TensorGroup group;
    group.split = split;
    group.hop = RingStep(cluster, {row.tensor, 1});
    const auto& overhead = cluster.device.collective_overhead;
    if (overhead.has_value()) group.overhead = overhead->value;
    group.bytes_of_number = static_cast<double>(BytesOf(options.type));
    AddCollectives(whole, group, &problem);
  }
  PIPELAB_RETURN_IF_ERROR(FinishProblem(&problem, absl::StrCat("row ", row.row)));
  PlannerOptions planner;
  planner.stages = static_cast<int>(row.pipeline);
  return MakePlan("terapipe", problem, planner);
}

// The largest stage's gradients, over the pipelines.
double SumSeconds(const PublishedTeraPipeRow& row, const ClusterSpec& cluster,
                  const ModelGraph& whole, const Plan& plan) {
  if (row.data == 1) return 0;
  TensorParallel split;
  split.degree = static_cast<int>(row.tensor);
  const ModelGraph mine = split.degree > 1 ? MemberGraph(whole, split, 0) : whole;
  int64_t largest = 0;
  for (const PlanStage& stage : plan.stages) {
    int64_t numbers = 0;
    for (const int op : stage.layers) {
      for (const ParameterSpec& p : mine.layers[op].parameters) {
        int64_t size = 1;
        for (const int64_t n : p.shape) size *= n;
        numbers += size;
      }
    }
    largest = std::max(largest, numbers);
  }
  return ToSeconds(RingTime(RingStep(cluster, {row.data, row.tensor}), row.data,
                            Collective::kAllReduce,
                            Bytes(largest * BytesOf(NarrowestType(cluster.device)))));
}

std::string SlicesText(const Plan& plan) {
  std::map<std::string, int> count;
  for (const PlanSlices& s : plan.slices) {
    ++count[absl::StrCat(s.micro_batch_size, s.micro_batch_size == 1 ? " sample" : " samples",
                         " in ", absl::StrJoin(s.tokens, "+"))];
  }
  return absl::StrJoin(count, "; ", [](std::string* out, const auto& entry) {
    absl::StrAppend(out, entry.second, " x ", entry.first);
  });
}

}  // namespace

absl::StatusOr<SliceGain> GainOfSlices(const PublishedTeraPipeRow& row, const ClusterSpec& cluster,
                                       const SliceOptions& options) {
  if (row.gpus > cluster.max_devices()) {
    return absl::InvalidArgumentError(absl::StrCat("--cluster: row ", row.row, " has ", row.gpus,
                                                   " GPUs, ", cluster.name, " ",
                                                   cluster.max_devices()));
  }
  PIPELAB_ASSIGN_OR_RETURN(const ModelGraph graph, BuildPublished(row.model));
  const int64_t tokens = graph.layers[0].output_shape[0];
  PIPELAB_ASSIGN_OR_RETURN(const Plan whole, PlanOf(row, cluster, graph, tokens));
  PIPELAB_ASSIGN_OR_RETURN(const Plan sliced, PlanOf(row, cluster, graph, options.token_step));
  if (!whole.has_plan() || !sliced.has_plan()) {
    return absl::FailedPreconditionError(
        absl::StrCat("row ", row.row, " does not fit into the memory of ", cluster.name));
  }
  SliceGain gain;
  gain.published = row;
  gain.sum_seconds = SumSeconds(row, cluster, graph, sliced);
  gain.whole_seconds = whole.value + gain.sum_seconds;
  gain.sliced_seconds = sliced.value + gain.sum_seconds;
  gain.slices = SlicesText(sliced);
  return gain;
}

Table SliceTable(const std::vector<SliceGain>& gains) {
  Table t("rows", "TeraPipe's rows: seconds of an iteration without and with slices of tokens");
  t.AddKey("row");
  t.AddKey("model");
  t.AddKey("grid");
  const Origin published = Origin::kPublished, simulated = Origin::kSimulated;
  t.AddColumn({"without_published", "without", "", "s", published, 3});
  t.AddColumn({"with_published", "with", "", "s", published, 3});
  t.AddColumn({"gain_published", "gain", "", "x", published, 2});
  t.AddColumn({"without_slices", "without", "", "s", simulated, 3});
  t.AddColumn({"with_slices", "with", "", "s", simulated, 3});
  t.AddColumn({"sum", "of it gradients' sum", "sum", "s", simulated, 3});
  t.AddColumn({"gain", "gain", "", "x", Origin::kComputed, 2});
  t.AddColumn({"gain_error", "error of the gain", "error", "%", Origin::kComputed, 1});
  t.AddColumn({"slices", "slices", "", "", Origin::kComputed, 0});
  for (const SliceGain& g : gains) {
    const PublishedTeraPipeRow& p = g.published;
    const auto seconds = [&](double value) {
      return value > 0 ? Published(value, p.tag) : Missing("the source has the gain alone");
    };
    t.AddRow({Label(static_cast<double>(p.row)), Label(p.model),
              Label(absl::StrFormat("B=%d D=%d P=%d T=%d", p.batch, p.data, p.pipeline, p.tensor)),
              seconds(p.without_slices), seconds(p.with_slices), Published(p.gain, p.tag),
              Simulated(g.whole_seconds), Simulated(g.sliced_seconds), Simulated(g.sum_seconds),
              Computed(g.gain()), Computed(ToPercent(g.gain() / p.gain - 1)), Computed(g.slices)});
  }
  return t;
}

std::vector<Claim> SliceClaims(const std::vector<SliceGain>& gains) {
  std::vector<ComparedCell> cells, whole, sliced;
  bool never_slower = !gains.empty();
  for (const SliceGain& g : gains) {
    const std::string name = absl::StrCat("row ", g.published.row);
    cells.push_back({name, g.published.gain, g.gain()});
    never_slower = never_slower && g.gain() >= 1;
    if (g.published.without_slices == 0) continue;
    whole.push_back({name, g.published.without_slices, g.whole_seconds});
    sliced.push_back({name, g.published.with_slices, g.sliced_seconds});
  }
  const std::string source = "TeraPipe (arXiv 2102.07988), table of iterations";
  const std::string reason =
      "messages between stages are left out, and how fast V100s compute small slices under the "
      "paper's framework is assumed (the cluster's specification), not measured";
  Claim gain = PaperClaim("terapipe.gains", "gain of slices of tokens: rows 1, 8, 9 and 10", source,
                          "read-2nd");
  gain.origin = Origin::kSimulated;
  const CellErrors errors = ErrorsOf(cells);
  MetWithinErrors(&gain, errors, kGainOff, reason);

  Claim order =
      PaperClaim("terapipe.order", "rows in the order of their gains", source, "read-2nd");
  order.published = "row 1 least, row 9 most";
  order.unit = "pairs";
  Found(&order, Origin::kSimulated, errors.alike,
        absl::StrCat(errors.alike, " of ", errors.pairs, " pairs of rows alike"));
  MetIf(&order, errors.alike == errors.pairs, "all pairs", reason);

  Claim program = PaperClaim("terapipe.program",
                             "slices that the program chooses are never slower than whole samples",
                             "TeraPipe (arXiv 2102.07988), section 3", "read-2nd");
  program.published = "T* = min of sum t_i + (K - 1) max t_j";
  program.origin = Origin::kSimulated;
  program.ours = never_slower ? "never slower" : "slower somewhere";
  MetIf(&program, never_slower, "no row is slower", "the program is not exact");

  Claim seconds = PaperClaim(
      "terapipe.seconds", "seconds of an iteration with slices: rows 1, 8, 9", source, "read-2nd");
  seconds.origin = Origin::kSimulated;
  MetWithinErrors(&seconds, ErrorsOf(sliced), kGainOff, reason);
  Claim without =
      PaperClaim("terapipe.seconds_without", "seconds of an iteration without slices: rows 1, 8, 9",
                 source, "read-2nd");
  without.origin = Origin::kSimulated;
  MetWithinErrors(&without, ErrorsOf(whole), kGainOff, reason);
  return {gain, order, program, seconds, without};
}

}  // namespace pipelab

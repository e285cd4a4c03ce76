#include "experiments/token_slices/slice_gains.h"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "models/zoo/layer_groups.h"
#include "models/zoo/published.h"
#include "pipelines/cluster/rank_network.h"
#include "pipelines/step/step.h"
#include "pipelines/step/step_cache.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr double kErrorOff = 0.25;  // of a row's seconds or gain

double FormulaSeconds(const Step& step) {
  const CostTable& costs = step.costs;
  const int slices = step.program.schedule.num_slices;
  const bool recompute = step.config.recompute == Recompute::kFull;
  Nanoseconds sum, longest;
  for (int i = 0; i < slices; ++i) {
    Nanoseconds slowest;
    for (int s = 0; s < step.partition.num_stages(); ++s) {
      const StageCost& c = costs.slices.empty() ? costs.stages[s] : costs.slices[i].stages[s];
      const Nanoseconds pass = c.forward + c.backward_input + c.backward_weight;
      slowest = std::max(slowest, recompute ? pass + c.recompute : pass);
    }
    sum += slowest;
    longest = std::max(longest, slowest);
  }
  return ToSeconds(sum * step.config.micro_batches + longest * (step.config.pipeline - 1));
}

// The fastest of those that fit, or of all where none does.
absl::StatusOr<SlicedStep> Fastest(StepCache* cache, const std::vector<StepConfig>& configs) {
  SlicedStep best;
  for (const StepConfig& config : configs) {
    PIPELAB_ASSIGN_OR_RETURN(Step step, BuildStep(cache, config));
    PIPELAB_ASSIGN_OR_RETURN(const StepPrediction p, SimulateStep(std::move(step)));
    const double seconds = ToSeconds(p.step_time);
    const bool better = best.seconds == 0 || (p.fits && !best.fits) ||
                        (p.fits == best.fits && seconds < best.seconds);
    if (better) best = {config, seconds, FormulaSeconds(p.step), p.largest_device, p.fits};
  }
  return best;
}

// All micro-batch sizes with each number of slices.
std::vector<StepConfig> Variants(const StepConfig& base, int64_t samples,
                                 const std::vector<int>& slices) {
  std::vector<StepConfig> configs;
  for (int64_t b = 1; b <= samples; b *= 2) {
    if (samples % b != 0) continue;
    for (const int n : slices) {
      StepConfig c = base;
      c.scheme = n == 1 ? "gpipe" : "terapipe";
      c.slices = n == 1 ? 0 : n;
      c.micro_batch_size = b;
      c.micro_batches = static_cast<int>(samples / b);
      configs.push_back(c);
    }
  }
  return configs;
}

absl::StatusOr<SliceGain> GainOf(StepCache* cache, const PublishedTeraPipeRow& row, RankOrder order,
                                 const std::vector<int>& slices) {
  StepConfig base;
  base.pipeline = static_cast<int>(row.pipeline);
  base.tensor = static_cast<int>(row.tensor);
  base.data = static_cast<int>(row.data);
  base.ranks = order;
  const int64_t samples = row.batch / row.data;
  SliceGain gain{row, {}, {}};
  for (const auto& [numbers, step] :
       {std::make_pair(std::vector<int>{1}, &gain.whole), std::make_pair(slices, &gain.sliced)}) {
    for (const Recompute recompute : {Recompute::kNone, Recompute::kFull}) {
      base.recompute = recompute;
      PIPELAB_ASSIGN_OR_RETURN(*step, Fastest(cache, Variants(base, samples, numbers)));
      if (step->fits) break;
    }
  }
  return gain;
}

std::string Choice(const SlicedStep& step) {
  const StepConfig& c = step.config;
  std::string text = absl::StrCat("b=", c.micro_batch_size, " M=", c.micro_batches);
  if (c.slices > 0) absl::StrAppend(&text, " slices=", c.slices);
  if (c.recompute == Recompute::kFull) absl::StrAppend(&text, ", recomputed");
  if (!step.fits) absl::StrAppend(&text, ", does not fit");
  return text;
}

// Without slices and with them, each in the order of ranks in which it is faster.
std::vector<SliceGain> BestOfEachRow(const std::vector<SliceGain>& gains) {
  std::vector<SliceGain> best;
  for (const SliceGain& g : gains) {
    if (best.empty() || g.published.row != best.back().published.row) {
      best.push_back(g);
      continue;
    }
    if (g.whole.seconds < best.back().whole.seconds) best.back().whole = g.whole;
    if (g.sliced.seconds < best.back().sliced.seconds) best.back().sliced = g.sliced;
  }
  return best;
}

// Cells of the claims.
struct RowCells {
  explicit RowCells(const std::vector<SliceGain>& all) {
    for (const SliceGain& g : BestOfEachRow(all)) {
      const std::string name = absl::StrCat("row ", g.published.row);
      gain.push_back({name, g.published.gain, g.gain()});
      if (g.published.without_slices == 0) continue;
      whole.push_back({name, g.published.without_slices, g.whole.seconds});
      sliced.push_back({name, g.published.with_slices, g.sliced.seconds});
    }
  }
  std::vector<ComparedCell> gain, whole, sliced;
};

constexpr char kReason[] =
    "the paper does not print what TCP reached between nodes: from one flow of a placement group "
    "to the instance's line rate";

// Judged at each bandwidth, by what holds of its rows; without any as `claim` is already.
void MetOverNetworks(Claim* claim, const std::vector<NetworkCase>& cases,
                     const std::function<bool(const RowCells&)>& holds) {
  std::vector<RangeValue> values;
  for (const NetworkCase& c : cases) {
    values.push_back({absl::StrFormat("%.4g Gbit/s", c.gigabits), holds(RowCells(c.gains))});
  }
  if (values.empty()) return;
  MetOverRange(claim, "the bandwidth between nodes", values, claim->accepted, kReason);
}

}  // namespace

absl::StatusOr<std::vector<SliceGain>> GainsOfSlices(const PublishedTeraPipeRow& row,
                                                     const ClusterSpec& cluster,
                                                     const std::vector<int>& slices) {
  if (row.gpus > cluster.max_devices()) {
    return absl::InvalidArgumentError(absl::StrCat("--cluster: row ", row.row, " has ", row.gpus,
                                                   " GPUs, ", cluster.name, " ",
                                                   cluster.max_devices()));
  }
  PIPELAB_ASSIGN_OR_RETURN(ModelGraph graph, BuildPublished(row.model));
  const GroupedModel model = GroupByName(std::move(graph));
  StepModel on;
  on.model = &model;
  on.cluster = &cluster;
  on.type = NarrowestType(cluster.device);
  StepCache cache(on);
  std::vector<SliceGain> gains;
  for (const RankOrder order : {RankOrder::kTensorDataPipeline, RankOrder::kTensorPipelineData}) {
    if (order != RankOrder::kTensorDataPipeline && row.data == 1) continue;  // the same
    PIPELAB_ASSIGN_OR_RETURN(SliceGain gain, GainOf(&cache, row, order, slices));
    gains.push_back(std::move(gain));
  }
  std::stable_sort(gains.begin(), gains.end(), [](const SliceGain& a, const SliceGain& b) {
    return a.sliced.seconds < b.sliced.seconds;
  });
  return gains;
}

Table SliceTable(const std::vector<SliceGain>& gains) {
  Table t("rows", "TeraPipe's rows: seconds of an iteration without and with slices of tokens");
  t.AddKey("row");
  t.AddKey("model");
  t.AddKey("grid");
  t.AddKey("ranks");
  const Origin published = Origin::kPublished, simulated = Origin::kSimulated;
  t.AddColumn({"without_published", "without", "", "s", published, 3});
  t.AddColumn({"with_published", "with", "", "s", published, 3});
  t.AddColumn({"gain_published", "gain", "", "x", published, 2});
  t.AddColumn({"without_slices", "without", "", "s", simulated, 3});
  t.AddColumn({"with_slices", "with", "", "s", simulated, 3});
  t.AddColumn({"gain", "gain", "", "x", Origin::kComputed, 2});
  t.AddColumn({"gain_error", "error of the gain", "error", "%", Origin::kComputed, 1});
  t.AddColumn({"formula", "with, by the paper's formula", "formula", "s", Origin::kComputed, 3});
  t.AddColumn({"whole_choice", "chosen without", "", "", Origin::kComputed, 0});
  t.AddColumn({"choice", "chosen with", "", "", Origin::kComputed, 0});
  for (const SliceGain& g : gains) {
    const PublishedTeraPipeRow& p = g.published;
    const auto seconds = [&](double value) {
      return value > 0 ? Published(value, p.tag) : Missing("the source has the gain alone");
    };
    t.AddRow({Label(static_cast<double>(p.row)), Label(p.model),
              Label(absl::StrFormat("B=%d D=%d P=%d T=%d", p.batch, p.data, p.pipeline, p.tensor)),
              Label(p.data == 1 ? "-" : RankOrderName(g.whole.config.ranks)),
              seconds(p.without_slices), seconds(p.with_slices), Published(p.gain, p.tag),
              Simulated(g.whole.seconds), Simulated(g.sliced.seconds), Computed(g.gain()),
              Computed(ToPercent(g.gain() / p.gain - 1)), Computed(g.sliced.formula_seconds),
              Computed(Choice(g.whole)), Computed(Choice(g.sliced))});
  }
  return t;
}

Table NetworkTable(const std::vector<NetworkCase>& cases) {
  Table t("network", "The same over what TCP may have reached between nodes");
  t.AddKey("bandwidth", "Gbit/s");
  t.AddKey("row");
  t.AddColumn({"without_slices", "without", "", "s", Origin::kSimulated, 3});
  t.AddColumn({"without_error", "error", "", "%", Origin::kComputed, 1});
  t.AddColumn({"with_slices", "with", "", "s", Origin::kSimulated, 3});
  t.AddColumn({"with_error", "error", "", "%", Origin::kComputed, 1});
  for (const NetworkCase& c : cases) {
    for (const SliceGain& g : BestOfEachRow(c.gains)) {
      const auto error = [](double ours, double published) {
        return published > 0 ? Computed(ToPercent(ours / published - 1))
                             : Missing("the source has the gain alone");
      };
      t.AddRow({Label(c.gigabits), Label(static_cast<double>(g.published.row)),
                Simulated(g.whole.seconds), error(g.whole.seconds, g.published.without_slices),
                Simulated(g.sliced.seconds), error(g.sliced.seconds, g.published.with_slices)});
    }
  }
  t.AddNote(
      "10 Gbit/s is what one TCP flow gets within a placement group, 25 the instance's line rate "
      "(Amazon EC2 documentation); NCCL over TCP with 4 to 8 V100s a node was measured at 13.6 of "
      "25 "
      "Gbit/s (NVIDIA/nccl-tests 83) and at 14.5 to 22.9 of 32 (NVIDIA/nccl 209), on other "
      "clouds.");
  return t;
}

ClusterSpec WithSlowerNetwork(ClusterSpec cluster, double share) {
  BytesPerSecond& bandwidth = cluster.levels.back().connection.bandwidth.value;
  bandwidth = BytesPerSecond(bandwidth.value() * share);
  return cluster;
}

std::vector<Claim> SliceClaims(const std::vector<SliceGain>& all,
                               const std::vector<NetworkCase>& cases) {
  const RowCells cells(all);
  bool bounded = !all.empty();
  for (const SliceGain& g : all) {
    bounded = bounded && g.sliced.seconds >= g.sliced.formula_seconds;
  }
  const std::string source = "TeraPipe (arXiv 2102.07988), table of iterations";
  const auto table = [&](const char* id, const char* text,
                         std::vector<ComparedCell> RowCells::*of) {
    Claim c = PaperClaim(id, text, source, "read-2nd");
    c.origin = Origin::kSimulated;
    MetWithinErrors(&c, ErrorsOf(cells.*of), kErrorOff, kReason);
    MetOverNetworks(&c, cases,
                    [of](const RowCells& at) { return ErrorsOf(at.*of).largest <= kErrorOff; });
    return c;
  };
  const Claim gain =
      table("terapipe.gains", "gain of slices of tokens: rows 1, 8, 9 and 10", &RowCells::gain);

  Claim order =
      PaperClaim("terapipe.order", "rows in the order of their gains", source, "read-2nd");
  order.published = "row 1 least, row 9 most";
  order.unit = "pairs";
  const CellErrors& errors = *gain.cells;
  Found(&order, Origin::kSimulated, errors.alike,
        absl::StrCat(errors.alike, " of ", errors.pairs, " pairs of rows alike"));
  MetIf(&order, errors.alike == errors.pairs, "all pairs", kReason);
  MetOverNetworks(&order, cases, [](const RowCells& at) {
    const CellErrors on_it = ErrorsOf(at.gain);
    return on_it.alike == on_it.pairs;
  });

  Claim program = PaperClaim("terapipe.program",
                             "no simulated iteration is faster than the paper's time of its slices",
                             "TeraPipe (arXiv 2102.07988), section 3", "read-2nd");
  program.published = "T* = sum t_i + (K - 1) max t_j";
  program.origin = Origin::kSimulated;
  program.ours = bounded ? "none is faster" : "one is faster";
  MetIf(&program, bounded, "each row takes at least the formula's time",
        "stages are not alike: the formula takes the slowest stage's time for all");
  return {gain, order, program,
          table("terapipe.seconds", "seconds of an iteration with slices: rows 1, 8, 9",
                &RowCells::sliced),
          table("terapipe.seconds_without", "seconds of an iteration without slices: rows 1, 8, 9",
                &RowCells::whole)};
}

}  // namespace pipelab

#include "experiments/scaling/speed_up.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "glog/logging.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr int kMostDevices = 128;

// Cut anywhere: each layer of the graph is a group of its own.
GroupedModel Ungrouped(const GroupedModel& model) {
  GroupedModel every;
  every.graph = model.graph;
  every.group_of_layer.resize(model.graph.layers.size());
  std::iota(every.group_of_layer.begin(), every.group_of_layer.end(), 0);
  return every;
}

double HeaviestShare(const std::vector<double>& costs) {
  return *std::max_element(costs.begin(), costs.end()) /
         std::accumulate(costs.begin(), costs.end(), 0.0);
}

}  // namespace

absl::StatusOr<SpeedUps> MakeSpeedUps(const GpipeFamily& family, int64_t layers, int64_t width,
                                      const ClusterSpec& cluster) {
  PIPELAB_ASSIGN_OR_RETURN(const GroupedModel model, family.build(layers, width));
  const GroupedModel every = Ungrouped(model);
  SpeedUps s;
  s.model = family.ModelName(layers, width);
  s.cluster_title = cluster.title;
  s.layers = model.num_groups();
  PipelineCase c;
  c.model = &model;
  c.cluster = &cluster;
  c.type = TypeOn(cluster);
  c.rule = PartitionRule::kTime;
  c.micro_batch_samples = std::max<int64_t>(family.batch / 32, 1);
  c.sizes.recompute = true;
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<double> costs, GroupCosts(c));
  s.heaviest_layer = HeaviestShare(costs);
  double one = 0;
  for (int devices = 1; devices <= std::min<int>(kMostDevices, every.num_groups()); devices *= 2) {
    LOG(INFO) << "speed-up: " << s.model << " on " << devices << " devices";
    SpeedUp row;
    row.devices = devices;
    row.within_layers = devices > s.layers;
    c.model = row.within_layers ? &every : &model;
    c.sizes.devices = devices;
    c.sizes.micro_batches = 4 * devices;
    PIPELAB_ASSIGN_OR_RETURN(const PipelinePoint point, EvaluatePipeline(c));
    if (devices == 1) one = point.samples_per_second();
    row.speed_up = point.samples_per_second() / one;
    PIPELAB_ASSIGN_OR_RETURN(row.overheads, OverheadsOf(point));
    s.rows.push_back(row);
  }
  return s;
}

std::string ImbalanceSentence(const SpeedUps& s) {
  const std::string heaviest = absl::StrFormat(
      "The heaviest of the %d layers takes %.1f %% of the time, so cuts between layers give at "
      "most "
      "%.1fx on any number of devices.",
      s.layers, ToPercent(s.heaviest_layer), 1 / s.heaviest_layer);
  for (const SpeedUp& row : s.rows) {
    const Overheads& o = row.overheads;
    if (row.devices == 1 || row.within_layers || o.imbalance <= o.bubble) continue;
    return absl::StrFormat(
        "%s From %d devices on, load imbalance and not the bubble limits the speed-up: it costs "
        "%.1f %% of the time, the bubble %.1f %%.",
        heaviest, row.devices, ToPercent(o.imbalance), ToPercent(o.bubble));
  }
  return heaviest + " The bubble costs more than load imbalance on every number of devices.";
}

Table SpeedUpTable(const SpeedUps& s) {
  Table t("speed_up", absl::StrCat("How far it can be cut: ", s.model, " on ", s.cluster_title,
                                   ", GPipe with M = 4 K"));
  t.AddKey("devices", "K");
  const Origin simulated = Origin::kSimulated;
  t.AddColumn({"cut", "cut", "", "", Origin::kComputed, 0});
  t.AddColumn({"speed_up", "speed-up", "", "x", simulated, 2});
  t.AddColumn({"efficiency", "of K", "", "%", simulated, 1});
  t.AddColumn({"bubble", "lost to the bubble and transfers", "bubble", "%", simulated, 1});
  t.AddColumn({"imbalance", "lost to load imbalance", "imbalance", "%", simulated, 1});
  for (const SpeedUp& row : s.rows) {
    t.AddRow({Label(row.devices), Computed(row.within_layers ? "within layers" : "between layers"),
              Simulated(row.speed_up), Simulated(ToPercent(row.speed_up / row.devices)),
              Simulated(ToPercent(row.overheads.bubble)),
              Simulated(ToPercent(row.overheads.imbalance))});
  }
  t.AddNote(ImbalanceSentence(s));
  return t;
}

}  // namespace pipelab

#include "experiments/scaling/speed_up.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "experiments/scaling/memory_fit.h"
#include "glog/logging.h"
#include "pipelines/step/stage_cut.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr int kMostDevices = 128;

double HeaviestShare(const std::vector<UnitTime>& units) {
  std::vector<double> costs;
  for (const UnitTime& u : units) {
    costs.push_back(ToSeconds(u.forward + u.recompute + u.backward_input + u.backward_weight));
  }
  return *std::max_element(costs.begin(), costs.end()) /
         std::accumulate(costs.begin(), costs.end(), 0.0);
}

}  // namespace

absl::StatusOr<SpeedUps> MakeSpeedUps(const GpipeFamily& family, int64_t layers, int64_t width,
                                      const ClusterSpec& cluster) {
  PIPELAB_ASSIGN_OR_RETURN(const GroupedModel model, family.build(layers, width));
  const int num_layers = static_cast<int>(model.graph.layers.size());
  SpeedUps s;
  s.model = family.ModelName(layers, width);
  s.cluster_title = cluster.title;
  s.layers = model.num_groups();
  StepCase c;
  c.on.model = &model;
  c.on.cluster = &cluster;
  c.on.type = TypeOn(cluster);
  c.config.cut = CutRule::kBlocks;
  c.config.micro_batch_size = std::max<int64_t>(family.batch / 32, 1);
  c.config.recompute = Recompute::kFull;
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<UnitTime> units, UnitTimes(c.on, c.config));
  s.heaviest_layer = HeaviestShare(units);
  double one = 0;
  for (int devices = 1; devices <= std::min(kMostDevices, num_layers); devices *= 2) {
    LOG(INFO) << "speed-up: " << s.model << " on " << devices << " devices";
    SpeedUp row;
    row.devices = devices;
    row.within_layers = devices > s.layers;
    c.config.cut = row.within_layers ? CutRule::kLayers : CutRule::kBlocks;
    c.config.pipeline = devices;
    c.config.micro_batches = 4 * devices;
    PIPELAB_ASSIGN_OR_RETURN(const StepPrediction point, PredictStep(c.on, c.config));
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

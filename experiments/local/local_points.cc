#include "experiments/local/local_points.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "models/zoo/resnet.h"
#include "models/zoo/vit.h"
#include "pipelines/step/step.h"
#include "pipelines/step/step_cache.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr int kBatches = 8;  // of a simulated run: enough for its steady state

// [stage] Groups of the model: a quarter of its blocks each, and what stands before and behind
// them. InfoPro has heads behind blocks 12, 26 and 40 of ResNet-110's 54.
std::vector<int> EqualGroups(LocalNetwork network) {
  if (network == LocalNetwork::kVit) return {4, 3, 3, 4};
  return {13, 14, 14, 15};
}

std::string LayoutOf(const GroupedModel& model, const std::vector<int>& groups) {
  std::vector<int64_t> layers;
  int end = 0;
  for (int stage : groups) {
    const int begin = end;
    end += stage;
    layers.push_back(std::count_if(model.group_of_layer.begin(), model.group_of_layer.end(),
                                   [&](int g) { return g >= begin && g < end; }));
  }
  return absl::StrJoin(layers, "+");
}

// Prices steps of one network.
class Prices {
 public:
  Prices(const StepModel& model, const LocalSetting& setting, std::string layout)
      : cache_(model), setting_(setting), layout_(std::move(layout)) {}

  // A batch in the steady state of stages that learn locally.
  absl::StatusOr<Nanoseconds> Local(int devices) {
    PIPELAB_ASSIGN_OR_RETURN(const Nanoseconds few, RunOf(devices, kBatches));
    PIPELAB_ASSIGN_OR_RETURN(const Nanoseconds many, RunOf(devices, 2 * kBatches));
    return Nanoseconds((many - few).value() / kBatches);
  }

  absl::StatusOr<Nanoseconds> Backpropagation(int devices, int micro_batches) {
    StepConfig c;
    c.pipeline = devices;
    c.micro_batches = micro_batches;
    c.micro_batch_size = setting_.batch / micro_batches;
    return TimeOf(c);
  }

 private:
  absl::StatusOr<Nanoseconds> RunOf(int devices, int batches) {
    StepConfig c;
    c.scheme = absl::StrCat("local-steps-", devices, "-", batches);
    cache_.AddSchedule(c.scheme, LocalSteps(devices, kLocalDevices, batches));
    c.pipeline = devices;
    c.micro_batches = batches;
    c.micro_batch_size = setting_.batch;
    c.local_heads = setting_.head;
    c.layout = layout_;
    return TimeOf(c);
  }

  absl::StatusOr<Nanoseconds> TimeOf(const StepConfig& c) {
    PIPELAB_ASSIGN_OR_RETURN(Step step, BuildStep(&cache_, c));
    PIPELAB_ASSIGN_OR_RETURN(const StepPrediction p, SimulateStep(std::move(step)));
    return p.step_time;
  }

  StepCache cache_;
  const LocalSetting setting_;
  const std::string layout_;
};

}  // namespace

const char* LocalNetworkName(LocalNetwork network) {
  return network == LocalNetwork::kVit ? "ViT-S/4" : "ResNet-110";
}

std::string LocalSetting::name() const {
  return absl::StrCat(NumberTypeName(type), ", ", LocalHeadName(head), " heads, batches of ", batch,
                      equal_blocks ? ", equal blocks, " : ", cut by time, ", cluster.name);
}

Schedule LocalSteps(int devices, int stages, int micro_batches, int update) {
  Schedule s;
  s.name = "local_steps";
  s.stages = StageGraph::Chain(stages);
  for (StageGraph::Edge& e : s.stages.edges) e.lag = StageGraph::kNoGradient;
  std::vector<int> device_of_stage;
  for (int stage = 0; stage < stages; ++stage) device_of_stage.push_back(stage % devices);
  s.placement = Placement::Single(device_of_stage, devices, micro_batches);
  s.num_micro_batches = micro_batches;
  s.order.resize(devices);
  for (int m = 0; m < micro_batches; ++m) {
    for (int stage = 0; stage < stages; ++stage) {
      const auto at = static_cast<int16_t>(stage), version = static_cast<int16_t>(m / update);
      std::vector<Action>& order = s.order[device_of_stage[stage]];
      order.push_back({ActionKind::kForward, at, m, 0, version});
      order.push_back({ActionKind::kBackward, at, m, 0, version});
      if ((m + 1) % update != 0) continue;
      order.push_back({ActionKind::kStep, at, 0, 0, static_cast<int16_t>(version + 1)});
    }
  }
  return s;
}

absl::StatusOr<LocalPoint> LocalPointOf(const LocalSetting& setting) {
  LocalPoint p;
  p.setting = setting;
  PIPELAB_ASSIGN_OR_RETURN(const GroupedModel model, setting.network == LocalNetwork::kVit
                                                         ? BuildVit(VitS4())
                                                         : BuildCifarResNet(/*depth=*/110));
  StepModel on;
  on.model = &model;
  on.cluster = &setting.cluster;
  on.type = setting.type;
  Prices prices(on, setting,
                setting.equal_blocks ? LayoutOf(model, EqualGroups(setting.network)) : "");
  PIPELAB_ASSIGN_OR_RETURN(p.plain, prices.Backpropagation(1, 1));
  PIPELAB_ASSIGN_OR_RETURN(p.serial, prices.Local(1));
  PIPELAB_ASSIGN_OR_RETURN(p.pipeline, prices.Local(kLocalDevices));
  for (int m : setting.micro_batches) {
    PIPELAB_ASSIGN_OR_RETURN(const Nanoseconds step, prices.Backpropagation(kLocalDevices, m));
    p.one_f_one_b.push_back(step);
  }
  return p;
}

}  // namespace pipelab

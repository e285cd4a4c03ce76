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
    c.scheme = "local";
    c.pipeline = devices;
    c.virtual_stages = kLocalDevices / devices;
    c.update_interval = 1;
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

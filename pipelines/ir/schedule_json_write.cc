// The writing half of schedule_json.h: a line a field and a device, so that files can be read and
// compared.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "nlohmann/json.hpp"
#include "pipelines/ir/schedule_json.h"

namespace pipelab {
namespace {

std::string Group(const std::vector<int>& group) {
  if (group.size() == 1) return absl::StrCat(group[0]);
  return absl::StrCat("[", absl::StrJoin(group, ", "), "]");
}

std::string StageToDevice(const Placement& placement) {
  std::vector<std::string> replicas;
  for (const auto& groups : placement.groups) {
    std::vector<std::string> stages;
    for (const std::vector<int>& group : groups) stages.push_back(Group(group));
    replicas.push_back(absl::StrCat("[", absl::StrJoin(stages, ", "), "]"));
  }
  return absl::StrCat("[", absl::StrJoin(replicas, ", "), "]");
}

void AppendAction(const Schedule& s, const Action& a, std::string* out) {
  // A step is of a stage, in all its replicas on the device. Schedules that are not valid may name
  // micro-batches that do not exist.
  const std::vector<int>& replicas = s.placement.replica_of_micro_batch;
  const bool known = a.stage >= 0 && a.stage < s.num_stages() && a.micro_batch >= 0 &&
                     a.micro_batch < s.MicroBatches(a.stage) &&
                     static_cast<int>(replicas.size()) == s.num_micro_batches;
  const int replica =
      known && a.kind != ActionKind::kStep ? s.ReplicaOf(a.stage, a.micro_batch) : 0;
  const char letter[] = {KindLetter(a.kind), '\0'};
  absl::StrAppend(out, "[\"", letter, "\", ", a.stage, ", ", a.micro_batch, ", ", replica);
  if (a.slice != 0 || a.version != 0) absl::StrAppend(out, ", ", a.slice);
  if (a.version != 0) absl::StrAppend(out, ", ", a.version);
  absl::StrAppend(out, "]");
}

}  // namespace

int VirtualStagesOf(const Schedule& s) {
  int most = 0;
  for (const auto& replica : s.placement.groups) {
    std::map<int, int> held;  // device -> stages
    for (const std::vector<int>& group : replica) {
      for (int d : group) most = std::max(most, ++held[d]);
    }
  }
  return most;
}

std::string ToJson(const Schedule& s) {
  const std::string name =
      nlohmann::json(s.name).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  std::string out = absl::StrCat("{\n  \"scheme\": ", name, ",\n  \"devices\": ", s.num_devices(),
                                 ",\n  \"micro_batches\": ", s.num_micro_batches,
                                 ",\n  \"chunks\": ", VirtualStagesOf(s), ",\n");
  if (!s.micro_batches_of_stage.empty()) {
    absl::StrAppend(&out, "  \"stage_micro_batches\": [",
                    absl::StrJoin(s.micro_batches_of_stage, ", "), "],\n");
  }
  if (s.num_slices > 1) absl::StrAppend(&out, "  \"slices\": ", s.num_slices, ",\n");
  if (s.eager_reductions) absl::StrAppend(&out, "  \"eager_reductions\": true,\n");
  if (s.forward_only) absl::StrAppend(&out, "  \"forward_only\": true,\n");
  if (s.merges_passes) absl::StrAppend(&out, "  \"merges_passes\": true,\n");
  if (s.weights_travel) absl::StrAppend(&out, "  \"weights_travel\": true,\n");
  if (s.weight_group > 1) absl::StrAppend(&out, "  \"weight_group\": ", s.weight_group, ",\n");
  if (!s.prepares.empty()) {
    absl::StrAppend(&out, "  \"prepares\": [", absl::StrJoin(s.prepares, ", "), "],\n");
  }
  if (const int window = s.stages.ReplayWindow(); window > 0) {
    absl::StrAppend(&out, "  \"replay\": ", window, ",\n");
  }
  if (!s.stages.IsPlainChain()) {
    absl::StrAppend(&out, "  \"edges\": [",
                    absl::StrJoin(s.stages.edges, ", ",
                                  [](std::string* to, const StageGraph::Edge& e) {
                                    absl::StrAppend(to, "[", e.from, ", ", e.to);
                                    if (e.gradient.late()) {
                                      absl::StrAppend(to, ", ", e.gradient.number);
                                    }
                                    if (e.gradient.none()) absl::StrAppend(to, ", \"none\"");
                                    if (e.output.list()) absl::StrAppend(to, ", \"carries\"");
                                    absl::StrAppend(to, "]");
                                  }),
                    "],\n");
  }
  if (!s.carried.empty()) {
    absl::StrAppend(&out, "  \"carried\": [", absl::StrJoin(s.carried.sources(), ", "), "],\n");
  }
  absl::StrAppend(&out, "  \"stage_to_device\": ", StageToDevice(s.placement),
                  ",\n  \"order\": [\n");
  for (size_t d = 0; d < s.order.size(); ++d) {
    absl::StrAppend(&out, "    [");
    for (size_t i = 0; i < s.order[d].size(); ++i) {
      if (i > 0) absl::StrAppend(&out, ", ");
      AppendAction(s, s.order[d][i], &out);
    }
    absl::StrAppend(&out, d + 1 < s.order.size() ? "],\n" : "]\n");
  }
  return absl::StrCat(out, "  ]\n}\n");
}

}  // namespace pipelab

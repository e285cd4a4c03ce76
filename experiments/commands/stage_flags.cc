#include "experiments/commands/stage_flags.h"

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tools/base/status_macros.h"

ABSL_FLAG(std::string, edges, "",
          "which stage feeds which, if they are not a chain (graph): 0-1,1-4,2-3,3-4");
ABSL_FLAG(std::string, stage_devices, "",
          "devices of each stage, which share its micro-batches by rows (graph): 1,1,2; empty: one "
          "each");
ABSL_FLAG(std::string, stage_micro_batches, "",
          "micro-batches of each stage, if some run fewer and larger ones (graph) or fewer of one "
          "size (local_replay): 8,8,4; empty: --micro_batches each");

namespace pipelab {
namespace {

absl::Status Wrong(absl::string_view option, const std::string& value, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(option, "=", value, ": ", why));
}

absl::StatusOr<std::vector<int32_t>> Numbers(absl::string_view option, const std::string& value) {
  std::vector<int32_t> numbers;
  if (value.empty()) return numbers;
  for (absl::string_view word : absl::StrSplit(value, ',')) {
    int32_t number = 0;
    if (!absl::SimpleAtoi(word, &number) || number < 1) {
      return Wrong(
          option, value,
          absl::StrCat("'", word, "' is not a number from 1; give one per stage, as in 8,8,4"));
    }
    numbers.push_back(number);
  }
  return numbers;
}

absl::StatusOr<std::vector<StageGraph::Edge>> Edges(const std::string& value, int stages) {
  std::vector<StageGraph::Edge> edges;
  for (absl::string_view word : absl::StrSplit(value, ',')) {
    const std::vector<absl::string_view> ends = absl::StrSplit(word, '-');
    StageGraph::Edge edge;
    if (ends.size() != 2 || !absl::SimpleAtoi(ends[0], &edge.from) ||
        !absl::SimpleAtoi(ends[1], &edge.to)) {
      return Wrong("--edges", value,
                   absl::StrCat("'", word, "' is not an edge; give edges as in 0-1,1-2"));
    }
    for (int stage : {edge.from, edge.to}) {
      if (stage >= 0 && stage < stages) continue;
      return Wrong("--edges", value,
                   absl::StrCat("stage ", stage, " does not exist; stages are 0 to ", stages - 1));
    }
    edges.push_back(edge);
  }
  return edges;
}

}  // namespace

absl::Status ReadStageFlags(SchemeParams* params) {
  if (params->devices < 1 || params->devices > std::numeric_limits<int16_t>::max()) {
    return absl::OkStatus();  // MakeSchedule refuses it
  }
  const std::string devices = absl::GetFlag(FLAGS_stage_devices);
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<int32_t> groups, Numbers("--stage_devices", devices));
  int64_t next = 0;
  for (int32_t size : groups) next += size;
  if (!groups.empty() && next != params->devices) {
    return Wrong("--stage_devices", devices,
                 absl::StrCat("has ", next, " devices, and --devices=", params->devices));
  }
  next = 0;
  for (int32_t size : groups) {
    std::vector<int>& group = params->devices_of_stage.emplace_back();
    for (int32_t i = 0; i < size; ++i) group.push_back(static_cast<int>(next++));
  }
  const int stages = groups.empty() ? params->devices : static_cast<int>(groups.size());
  if (const std::string edges = absl::GetFlag(FLAGS_edges); !edges.empty()) {
    PIPELAB_ASSIGN_OR_RETURN(std::vector<StageGraph::Edge> list, Edges(edges, stages));
    params->stages = StageGraph::FromEdges(stages, std::move(list));
  }
  PIPELAB_ASSIGN_OR_RETURN(
      params->micro_batches_of_stage,
      Numbers("--stage_micro_batches", absl::GetFlag(FLAGS_stage_micro_batches)));
  return absl::OkStatus();
}

}  // namespace pipelab

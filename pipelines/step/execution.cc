#include "pipelines/step/execution.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "pipelines/step/step_config.h"
#include "tools/base/name_table.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr std::array<std::pair<ExecutionParts, const char*>, 5> kParts = {
    {{kGroupedCalls, "calls"},
     {kAllForwardsFirst, "forwards_first"},
     {kInputBroadcasts, "inputs"},
     {kStepChecks, "step_checks"},
     {kStepPasses, "step_passes"}}};
constexpr char kPlain[] = "plain";
constexpr absl::string_view kCalling[] = {"1f1b", "seq1f1b", "interleaved", "interleaved_seq1f1b"};

bool HasCalls(absl::string_view scheme) {
  return std::find(std::begin(kCalling), std::end(kCalling), scheme) != std::end(kCalling);
}

template <typename... Parts>
absl::Status Error(const StepConfig& c, const Parts&... parts) {
  return absl::InvalidArgumentError(
      absl::StrCat("execution=", ExecutionName(c.execution, c.overlap_data), ": ", parts...));
}

}  // namespace

std::string ExecutionName(uint32_t execution, bool overlap_data) {
  if (execution == 0) return kPlain;
  if (execution == kAllExecutionParts && !overlap_data) return kMegatron2022;
  std::vector<absl::string_view> names;
  for (const auto& [part, name] : kParts) {
    if ((execution & part) != 0) names.push_back(name);
  }
  return absl::StrJoin(names, "+");
}

absl::StatusOr<uint32_t> ParseExecution(absl::string_view text) {
  if (text == kPlain) return 0;
  if (text == kMegatron2022) return kAllExecutionParts;
  uint32_t execution = 0;
  for (const absl::string_view word : absl::StrSplit(text, '+')) {
    const absl::StatusOr<ExecutionParts> part = FindInTable(kParts, word);
    if (!part.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("must be ", kPlain, ", ", kMegatron2022,
                       ", or parts of it with + between them: ", part.status().message()));
    }
    execution |= *part;
  }
  return execution;
}

MessageCalls CallsOf(const StepConfig& c) {
  if ((c.execution & kGroupedCalls) == 0) return MessageCalls::kNone;
  const bool one = c.scheme == "1f1b" || c.scheme == "seq1f1b" || c.virtual_stages == 1;
  return one ? MessageCalls::kOneNeighbour : MessageCalls::kBothNeighbours;
}

absl::Status CheckExecution(const StepConfig& c) {
  if (c.steady_overlap && !c.overlap_pipeline) {
    return absl::InvalidArgumentError(
        "steady_overlap and no_pipeline_overlap: messages have one rule; leave out one of them");
  }
  if ((c.execution & kGroupedCalls) == 0) return absl::OkStatus();
  if (!HasCalls(c.scheme)) {
    return Error(c, "its calls are those of ", absl::StrJoin(kCalling, ", "), "; not of ",
                 c.scheme);
  }
  if (!c.overlap_pipeline) {
    return Error(c, "leave out no_pipeline_overlap: calls overlap nothing");
  }
  if (c.steady_overlap) return Error(c, "leave out steady_overlap: calls overlap nothing");
  if (c.overlap_data) {
    return Error(c, "its calls need no_data_overlap: nothing runs beside them");
  }
  if (ShardsGradients(c.sharding)) {
    return Error(c, "sharding=", ShardingName(c.sharding),
                 ": Megatron-LM of 2022 sharded the optimizer alone; give replicated or optimizer");
  }
  if (c.group_size != 0 && c.group_size != c.pipeline) {
    return Error(c, "group=", c.group_size, ": its groups are of P=", c.pipeline, " micro-batches");
  }
  if (CallsOf(c) != MessageCalls::kBothNeighbours) return absl::OkStatus();
  if (c.pipeline < 3) {
    return Error(c, "interleaved needs P of at least 3, not ", c.pipeline,
                 ": with 2, messages to the next and the previous device are alike");
  }
  if (c.micro_batches % c.pipeline == 0) return absl::OkStatus();
  return Error(c, "M=", c.micro_batches, ": interleaved needs a multiple of P=", c.pipeline);
}

}  // namespace pipelab

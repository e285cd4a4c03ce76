#include "pipelines/ir/trace.h"

#include "absl/strings/str_cat.h"
#include "glog/logging.h"

namespace pipelab {
namespace {

const std::vector<Instruction>& ListOf(const Program& program, const Trace& trace, size_t device) {
  const size_t ranks = trace.devices.size() / program.instructions.size();
  CHECK_GT(ranks, 0u) << "a part of a trace";
  const std::vector<Instruction>& list = program.instructions[device / ranks];
  CHECK_LE(trace.devices[device].spans.size(), list.size()) << "of device " << device;
  return list;
}

}  // namespace

void DeviceTrace::AddToTimes(int64_t ns) {
  const auto add = [&](Span& span) {
    span.begin_ns += ns;
    span.end_ns += ns;
  };
  std::for_each(spans.begin(), spans.end(), add);
  std::for_each(host_copies.begin(), host_copies.end(), add);
}

void DeviceTrace::DropTimes() {
  spans.clear();
  order.clear();
  library_ns.clear();
  host_copies.clear();
}

absl::Status CheckBelongs(const Program& program, const Trace& trace) {
  if (trace.devices.size() != program.instructions.size()) {
    return absl::InvalidArgumentError(absl::StrCat("a trace of ", trace.devices.size(),
                                                   " devices does not belong to a program of ",
                                                   program.instructions.size()));
  }
  for (size_t d = 0; d < trace.devices.size(); ++d) {
    const size_t spans = trace.devices[d].spans.size(), list = program.instructions[d].size();
    if (spans == 0 || spans == list) continue;
    return absl::InvalidArgumentError(absl::StrCat("device ", d, ": the trace's ", spans,
                                                   " spans are not the program's ", list,
                                                   " instructions"));
  }
  return absl::OkStatus();
}

DeviceSpans SpansOf(const Program& program, const Trace& trace, size_t device) {
  return DeviceSpans(ListOf(program, trace, device), trace.devices[device]);
}

std::vector<ExecutedInstruction> HostCopiesOf(const Program& program, const Trace& trace,
                                              size_t device) {
  const std::vector<Instruction>& list = ListOf(program, trace, device);
  std::vector<ExecutedInstruction> copies;
  for (const HostCopy& copy : trace.devices[device].host_copies) {
    copies.push_back({list[copy.instruction], copy, static_cast<int32_t>(copy.instruction), 0});
  }
  return copies;
}

}  // namespace pipelab

#include "pipelines/fill/fill_pass.h"

#include <algorithm>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "pipelines/ir/schedule.h"

namespace pipelab {
namespace {

constexpr int kRemembered = 9;  // steps

// Fills in front of the instructions of a device's list, and of its end.
using FillsOfDevice = std::multimap<int32_t, Fill>;

void AddFills(int device, const FillsOfDevice& fills, Program* program) {
  std::vector<Instruction> list;
  auto next = fills.begin();
  std::vector<Instruction>& old = program->instructions[device];
  for (size_t n = 0; n <= old.size(); ++n) {
    for (; next != fills.end() && next->first == static_cast<int32_t>(n); ++next) {
      Instruction fill;
      fill.op = OpCode::kFill;
      fill.action.kind = ActionKind::kStep;
      fill.arg = static_cast<int32_t>(program->fills.size());
      program->fills.push_back(next->second);
      list.push_back(fill);
    }
    if (n < old.size()) list.push_back(old[n]);
  }
  old = std::move(list);
}

}  // namespace

Program WithFills(Program program, const std::vector<DeviceGaps>& gaps) {
  for (size_t d = 0; d < gaps.size(); ++d) {
    FillsOfDevice fills;
    for (const Gap& gap : gaps[d].gaps) {
      Fill fill;
      fill.time = gap.length();
      fill.bytes = gap.free;
      fills.emplace(gap.instruction, fill);
    }
    AddFills(static_cast<int>(d), fills, &program);
  }
  return program;
}

absl::StatusOr<Program> WithFills(Program program, const std::vector<FillProblem>& problems,
                                  const std::vector<FillPlan>& plans, int iteration) {
  for (size_t d = 0; d < plans.size(); ++d) {
    const absl::Status fits = CheckFillPlan(problems[d], plans[d]);
    if (!fits.ok()) {
      return absl::Status(fits.code(), absl::StrCat("device ", d, ": ", fits.message()));
    }
    const FillRules rules(problems[d]);
    FillsOfDevice fills;
    std::map<int, Nanoseconds> taken;  // [gap] by its runs so far
    for (const FillRun& run : plans[d].runs) {
      if (run.iteration != iteration) continue;
      const Gap& gap = problems[d].gaps[run.gap];
      Fill fill;
      fill.time = gap.length() - taken[run.gap];
      fill.bytes = gap.free;
      fill.job = run.job;
      fill.first_piece = run.first_piece;
      fill.pieces = run.pieces;
      fill.work = rules.TimeOf(run);
      taken[run.gap] += fill.work;
      fills.emplace(gap.instruction, fill);
    }
    AddFills(static_cast<int>(d), fills, &program);
  }
  return program;
}

Program WithFillPlaces(Program program) {
  for (int d = 0; d < program.schedule.num_devices(); ++d) {
    const std::vector<Instruction>& list = program.instructions[d];
    FillsOfDevice fills;
    for (size_t n = 0; n < list.size(); ++n) {
      if (list[n].op == OpCode::kWait) fills.emplace(static_cast<int32_t>(n), Fill());
    }
    fills.emplace(static_cast<int32_t>(list.size()), Fill());
    AddFills(d, fills, &program);
  }
  return program;
}

void GapForecast::Add(const std::vector<DeviceGaps>& gaps) {
  std::map<std::pair<int, int32_t>, int64_t> seen;
  for (const DeviceGaps& device : gaps) {
    for (const Gap& gap : device.gaps) {
      const Nanoseconds foreseen = TimeOf(gap.device, gap.instruction);
      const bool late = steps_ >= least_steps_ && gap.filled > foreseen;
      seen[{gap.device, gap.instruction}] = (late ? foreseen : gap.length()).value();
      Place& place = places_[{gap.device, gap.instruction}];
      if (place.times.empty()) place.times.assign(std::min(steps_, kRemembered), 0);
      place.free = gap.free;
    }
  }
  ++steps_;
  for (auto& [at, place] : places_) {
    const auto time = seen.find(at);
    place.times.push_back(time == seen.end() ? 0 : time->second);
    if (place.times.size() > kRemembered) place.times.pop_front();
  }
}

Nanoseconds GapForecast::TimeOf(int device, int32_t instruction) const {
  const auto found = places_.find({device, instruction});
  if (found == places_.end() || steps_ < least_steps_) return Nanoseconds(0);
  std::vector<int64_t> times(found->second.times.begin(), found->second.times.end());
  const auto middle = times.begin() + static_cast<int64_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return Nanoseconds(*middle);
}

std::map<std::pair<int, int32_t>, Nanoseconds> GapForecast::Foreseen() const {
  std::map<std::pair<int, int32_t>, Nanoseconds> foreseen;
  for (const auto& [at, place] : places_) foreseen[at] = TimeOf(at.first, at.second);
  return foreseen;
}

void GapForecast::SetFills(Program* program) const {
  for (size_t d = 0; d < program->instructions.size(); ++d) {
    const int device = static_cast<int>(d);
    for (size_t n = 0; n < program->instructions[d].size(); ++n) {
      const Instruction& i = program->instructions[d][n];
      if (i.op != OpCode::kFill) continue;
      const auto at = static_cast<int32_t>(n);
      const auto found = places_.find({device, at});
      program->fills[i.arg].time = TimeOf(device, at);
      program->fills[i.arg].bytes = found == places_.end() ? Bytes(0) : found->second.free;
    }
  }
}

}  // namespace pipelab

// PPLL (arXiv 2411.12780): a pipeline whose stages learn locally. Each stage has a loss of its own
// and takes what the stage before sends as data, so it runs the backward of a micro-batch right
// after its forward and sends no gradient back.
//
// A device holds one micro-batch at a time (1F1B: P - r). With equal stages of forward f, backward
// b and head a, a step of M micro-batches takes (P - 1) f + V M (f + a + b); with several stages
// per device where P divides M. What a stage sends does not depend on its step, so training is
// bit-equal to the serial local-learning loop, which is this scheme on one device.
//
// With --update_interval the stages' steps are in the order, each behind so many micro-batches, and
// no flush is between them. That changes no bit: a stage computes with its newest weights.
//
// local_replay is the asynchronous form of decoupled greedy learning (Belilovsky et al., ICML
// 2020): each stage runs as many passes as --stage_micro_batches says, a slow one fewer, and takes
// them from a buffer of the last --group_size outputs of the stage before (Reads::kReplay). So a
// slow stage holds up no other: with passes of n_s at stage s, a step takes max n_s (f_s + a_s +
// b_s) and the first passes' way. With equal numbers it is `local`.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "pipelines/schedules/pipedream.h"
#include "tools/base/status_macros.h"

namespace pipelab {

absl::Status CheckLocal(const SchemeParams& params) {
  if (params.update_interval == 0) return absl::OkStatus();  // a step at the end
  if (params.update_interval < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--update_interval=", params.update_interval,
                     ": must be at least 1, or 0 for one step behind all micro-batches"));
  }
  return CheckUpdates(params, params.update_interval);
}

namespace {

// Forward and backward of a micro-batch, and a step behind each `every` of them.
void AddPasses(int stage, int m, int every, std::vector<Action>* order) {
  const auto version = static_cast<int16_t>(every == 0 ? 0 : m / every);
  for (Action a : {Forward(stage, m), Backward(stage, m)}) {
    a.version = version;
    order->push_back(a);
  }
  if (every == 0 || (m + 1) % every != 0) return;
  order->push_back(
      {ActionKind::kStep, static_cast<int16_t>(stage), 0, 0, static_cast<int16_t>(version + 1)});
}

constexpr int kReplay = 4;  // outputs in a buffer

}  // namespace

absl::Status CheckLocalReplay(const SchemeParams& params) {
  const std::vector<int32_t>& passes = params.micro_batches_of_stage;
  const auto error = [&](const auto&... why) {
    return absl::InvalidArgumentError(
        absl::StrCat("--stage_micro_batches=", absl::StrJoin(passes, ","), ": ", why...));
  };
  if (params.data_parallel > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("--data_parallel=", params.data_parallel,
                     ": a buffer is of one device; use --data_parallel=1"));
  }
  if (params.group_size < 0) {
    return absl::InvalidArgumentError(absl::StrCat("--group_size=", params.group_size,
                                                   ": a buffer has at least 1 output, or 0 for ",
                                                   kReplay));
  }
  PIPELAB_RETURN_IF_ERROR(CheckLocal(params));
  if (passes.empty()) return absl::OkStatus();
  if (static_cast<int>(passes.size()) != params.devices) {
    return error(passes.size(), " numbers for ", params.devices, " stages; give one per stage");
  }
  for (int32_t n : passes) {
    if (params.update_interval > 0 && n % params.update_interval != 0) {
      return error(n, " is no multiple of --update_interval=", params.update_interval);
    }
    if (n < 1) return error("a stage runs at least 1 micro-batch");
  }
  const int32_t most = *std::max_element(passes.begin(), passes.end());
  if (most == params.micro_batches) return absl::OkStatus();
  return error("the largest number is ", most, "; use --micro_batches=", most);
}

absl::StatusOr<Schedule> MakeLocalReplay(const SchemeParams& params) {
  Schedule schedule = LoopedPipeline(params);
  for (StageGraph::Edge& e : schedule.stages.edges) e.gradient = Reads::None();
  schedule.stages.SetReplayWindow(
      std::min(params.group_size == 0 ? kReplay : params.group_size, params.micro_batches));
  const std::vector<int32_t>& passes = params.micro_batches_of_stage;
  if (std::count(passes.begin(), passes.end(), params.micro_batches) < params.devices) {
    schedule.micro_batches_of_stage = passes;
  }
  for (int stage = 0; stage < params.devices; ++stage) {
    for (int m = 0; m < schedule.MicroBatches(stage); ++m) {
      AddPasses(stage, m, params.update_interval, &schedule.order[stage]);
    }
  }
  return schedule;
}

absl::StatusOr<Schedule> MakeLocal(const SchemeParams& params) {
  Schedule schedule = LoopedPipeline(params);
  for (StageGraph::Edge& e : schedule.stages.edges) e.gradient = Reads::None();
  const int devices = params.devices;
  // P micro-batches through a stage of each device, then through the next one.
  for (int first = 0; first < params.micro_batches; first += devices) {
    const int end = std::min(first + devices, params.micro_batches);
    for (int stage = 0; stage < devices * params.virtual_stages; ++stage) {
      for (int m = first; m < end; ++m) {
        AddPasses(stage, m, params.update_interval, &schedule.order[stage % devices]);
      }
    }
  }
  return schedule;
}

}  // namespace pipelab

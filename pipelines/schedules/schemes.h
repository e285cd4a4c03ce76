// The functions behind the catalogue, one module each, and what they share. Users call
// MakeSchedule.
//
// Inside: devices, micro_batches and virtual stages are at least 1 and small enough (MakeSchedule
// has checked), and recompute is not theirs: MakeSchedule adds it with InsertRecompute.
#ifndef PIPELAB_PIPELINES_SCHEDULES_SCHEMES_H_
#define PIPELAB_PIPELINES_SCHEDULES_SCHEMES_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "pipelines/ir/schedule.h"
#include "pipelines/schedules/catalog.h"

namespace pipelab {

absl::StatusOr<Schedule> MakeGPipe(const SchemeParams& params);
absl::StatusOr<Schedule> MakeTeraPipe(const SchemeParams& params);
absl::StatusOr<Schedule> Make1F1B(const SchemeParams& params);
absl::StatusOr<Schedule> MakeSeq1F1B(const SchemeParams& params);
absl::StatusOr<Schedule> MakeZbSeq1F1B(const SchemeParams& params);
absl::StatusOr<Schedule> MakeInterleaved(const SchemeParams& params);
absl::StatusOr<Schedule> MakeGis(const SchemeParams& params);
absl::StatusOr<Schedule> MakeGisH(const SchemeParams& params);
absl::StatusOr<Schedule> MakePoH(const SchemeParams& params);
absl::StatusOr<Schedule> MakePoF(const SchemeParams& params);
absl::StatusOr<Schedule> MakeInterleavedMerged(const SchemeParams& params);
absl::StatusOr<Schedule> MakeBreadthFirst(const SchemeParams& params);
absl::StatusOr<Schedule> MakeChimera(const SchemeParams& params);
absl::StatusOr<Schedule> MakeGems(const SchemeParams& params);
absl::StatusOr<Schedule> MakeBitPipe(const SchemeParams& params);
absl::StatusOr<Schedule> MakeHanayo(const SchemeParams& params);
absl::StatusOr<Schedule> MakeWeiPipeNaive(const SchemeParams& params);
absl::StatusOr<Schedule> MakeWeiPipe(const SchemeParams& params);
absl::StatusOr<Schedule> MakeWeiPipeZb1(const SchemeParams& params);
absl::StatusOr<Schedule> MakeWeiPipeZb2(const SchemeParams& params);
absl::StatusOr<Schedule> MakeTawPipe(const SchemeParams& params);
absl::StatusOr<Schedule> MakeZbv(const SchemeParams& params);
absl::StatusOr<Schedule> MakeVHalf(const SchemeParams& params);
absl::StatusOr<Schedule> MakeVMin(const SchemeParams& params);
absl::StatusOr<Schedule> MakeDualPipe(const SchemeParams& params);
absl::StatusOr<Schedule> MakeDualPipeV(const SchemeParams& params);

absl::StatusOr<Schedule> MakeGraph(const SchemeParams& params);

absl::StatusOr<Schedule> MakeZbH1(const SchemeParams& params);
absl::StatusOr<Schedule> MakeZbH2(const SchemeParams& params);
absl::StatusOr<Schedule> MakeZb1p(const SchemeParams& params);
absl::StatusOr<Schedule> MakeZb2p(const SchemeParams& params);
absl::StatusOr<Schedule> MakeInterleavedZb1p(const SchemeParams& params);

absl::StatusOr<Schedule> MakePipeDream(const SchemeParams& params);
absl::StatusOr<Schedule> MakePipeDreamVerticalSync(const SchemeParams& params);
absl::StatusOr<Schedule> MakePipeDream2Bw(const SchemeParams& params);

absl::StatusOr<Schedule> MakeLocal(const SchemeParams& params);
absl::StatusOr<Schedule> MakeLocalReplay(const SchemeParams& params);
absl::StatusOr<Schedule> MakeOverTime(const SchemeParams& params);
absl::StatusOr<Schedule> MakeOverTimeInference(const SchemeParams& params);
absl::StatusOr<Schedule> MakeDecode(const SchemeParams& params);
absl::StatusOr<Schedule> MakePrefillDecode(const SchemeParams& params);

// Scheme::check: OK, or InvalidArgument that names the option. The functions above are called with
// what these have passed.
absl::Status CheckGroups(const SchemeParams& params);  // interleaved schemes
absl::Status CheckGis(const SchemeParams& params);
absl::Status CheckSlicedGroups(const SchemeParams& params);
absl::Status CheckBothWays(const SchemeParams& params);  // bitpipe, dualpipe: even numbers
absl::Status CheckChimera(const SchemeParams& params);
absl::Status CheckGems(const SchemeParams& params);
absl::Status CheckHanayo(const SchemeParams& params);
absl::Status CheckWeiPipe(const SchemeParams& params);
absl::Status CheckTawPipe(const SchemeParams& params);
absl::Status CheckGraph(const SchemeParams& params);
absl::Status CheckPipeDream(const SchemeParams& params);
absl::Status CheckPipeDream2Bw(const SchemeParams& params);
absl::Status CheckLocal(const SchemeParams& params);
absl::Status CheckLocalReplay(const SchemeParams& params);
absl::Status CheckOverTime(const SchemeParams& params);
absl::Status CheckDecode(const SchemeParams& params);
absl::Status CheckPrefillDecode(const SchemeParams& params);
absl::Status CheckOverTimeInference(const SchemeParams& params);

// Scheme::most_held.
int HeldInZb1p(const SchemeParams& params);
int HeldInZb2p(const SchemeParams& params);
int HeldInInterleavedZb1p(const SchemeParams& params);
int HeldInZbv(const SchemeParams& params);
int HeldInVHalf(const SchemeParams& params);
int HeldInVMin(const SchemeParams& params);

inline constexpr int kDefaultSlices = 4;  // of a scheme with token slices

// A schedule without actions: a chain of devices * virtual stages stages, stage s on device s %
// devices.
Schedule LoopedPipeline(const SchemeParams& params);

// The same, but the stages run down the devices, then up, then down again. Stages at a turn share a
// device, so that hand-over needs no message.
Schedule ZigZagPipeline(const SchemeParams& params);

// tawpipe's devices of a group.
int WeightGroup(const SchemeParams& params);

// Sizes of the groups of micro-batches that interleaved schemes take through one stage of a device
// after another, each at least P. Fewer than P micro-batches are one group. Without --group_size
// M / P groups as equal as can be, the larger ones first (PyTorch's, where those are equal); with
// it groups of that size, and a last smaller one (Megatron-LM's), which joins the one before when
// it would have fewer than P: its first micro-batch would be waited for at each turn.
// InvalidArgument: --group_size below P, where the device that ran a group through a stage would
// wait for its own results.
absl::StatusOr<std::vector<int>> MicroBatchGroups(const SchemeParams& params);
// The largest of them; of sizes that it takes.
int LargestGroup(int devices, int micro_batches, int group_size);

// The same where passes are slices of micro-batches: a group has at least P slices together.
absl::StatusOr<std::vector<int>> SlicedGroups(const SchemeParams& params);

// What an interleaved device does of a kind of pass, group by group: its stages in order (or from
// the last one on), each with the group's micro-batches.
std::vector<Action> DepthFirst(const SchemeParams& params, const std::vector<int>& groups,
                               ActionKind kind, int device);

// Merges a device's forwards and backwards, each in its own order: `warm_up` forwards, then one
// forward and one backward in turn, then the backwards that are left.
std::vector<Action> OneForwardOneBackward(const std::vector<Action>& forwards,
                                          const std::vector<Action>& backwards, int warm_up);

// The same with split backwards: `inputs` are I, and the W of each follows in the same order, `lag`
// micro-batches later. A device then holds up to warm_up + 1 + lag activations (released at W).
std::vector<Action> SplitOneForwardOneBackward(const std::vector<Action>& forwards,
                                               const std::vector<Action>& inputs, int warm_up,
                                               int lag);

// Re-materialisation: an R right before each B or I, of these stages; empty: of all.
void InsertRecompute(Schedule* schedule, const std::vector<bool>& stages = {});

// Data parallelism: device d becomes the devices d * size to d * size + size - 1, which run its
// list on equal shares of its rows.
void ReplaceDevicesByGroups(int size, Schedule* schedule);

inline Action Forward(int stage, int micro_batch) {
  return {ActionKind::kForward, static_cast<int16_t>(stage), micro_batch, 0, 0};
}
inline Action Backward(int stage, int micro_batch) {
  return {ActionKind::kBackward, static_cast<int16_t>(stage), micro_batch, 0, 0};
}
inline Action BackwardInput(int stage, int micro_batch) {
  return {ActionKind::kBackwardInput, static_cast<int16_t>(stage), micro_batch, 0, 0};
}
inline Action BackwardWeight(int stage, int micro_batch) {
  return {ActionKind::kBackwardWeight, static_cast<int16_t>(stage), micro_batch, 0, 0};
}

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SCHEDULES_SCHEMES_H_

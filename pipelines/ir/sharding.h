// Parameters divided among the devices that share a stage: what is divided, and for how long it is
// put together.
//
//   LoweringOptions options;
//   options.sharding = Sharding::kFully;
//   PIPELAB_ASSIGN_OR_RETURN(Program program, Lower(schedule, options));
//   Shard shard = ShardOf(program, {device, replica, stage});     // what the device's module keeps
#ifndef PIPELAB_PIPELINES_IR_SHARDING_H_
#define PIPELAB_PIPELINES_IR_SHARDING_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "pipelines/ir/schedule.h"

namespace pipelab {

// What of a stage's untied parameters is cut into parts, one per device, instead of kept by each
// (Rajbhandari et al., "ZeRO", SC 2020; Zhao et al., "PyTorch FSDP", VLDB 2023). Tied parameters,
// of which other stages have copies, are always whole.
enum class Sharding : uint8_t {
  kReplicated,  // nothing: gradients are all-reduced
  // the optimizer's state (ZeRO-1). Gradients are reduce-scattered, each device steps its part, and
  // the new values are all-gathered. Parts are of all copies, group members and replicas, or of the
  // members of a set (SharingSets).
  kOptimizer,
  kGradients,  // also gradients (ZeRO-2), among the members of a group
  kFully,      // also values (ZeRO-3, FSDP), among the members of a group
};

// Whether a stage's gradients, and maybe its values, are put together in a run and let go after it.
inline bool ShardsGradients(Sharding sharding) {
  return sharding == Sharding::kGradients || sharding == Sharding::kFully;
}

const char* ShardingName(Sharding sharding);  // "replicated", "optimizer", "gradients", "fully"
// InvalidArgument that names the option and lists the names.
absl::StatusOr<Sharding> ParseSharding(absl::string_view name,
                                       absl::string_view option = "--sharding");

// The devices of a stage's group, ascending, in sets of `shards` that follow one another: a set
// divides what is sharded, and each set has all of it. Gradients are summed within sets, then parts
// between those that have the same (hybrid sharding: Zhao et al. 2023, section 3.2.2). 0: one set.
// Divides the group.
std::vector<std::vector<int>> SharingSets(std::vector<int> group, int shards);
// InvalidArgument naming the key where sets of so many cannot shard a group of `copies`.
absl::Status CheckShards(Sharding sharding, int shards, int64_t copies, int64_t expert_copies = 1);

// How long what is put together stays, where gradients or values are sharded. A device's actions
// fall into three passes: forward (F), backward (B, I, R), weight gradient (W). It keeps the
// weights of one stage a pass: those of a stage are gathered before its first action of a run and
// released after the last, a run being consecutive actions of one pass on one stage, whatever the
// other passes do in between; runs of a stage that overlap, or follow one another without another
// stage's action in between, are one. So a device with one stage gathers once a step, a breadth-
// first device once a stage and pass, a depth-first one once a stage, pass and group of P
// micro-batches. Gradients are reduced after a run of weight gradients (B, W) in the same way.
enum class Residency : uint8_t {
  kRun,
  kMicroBatch,  // a run is one micro-batch's consecutive actions: once a micro-batch and pass
};

// Which part of a stage's untied parameters a copy has.
struct Shard {
  Sharding sharding = Sharding::kReplicated;
  int parts = 1;
  int index = 0;  // -1: none, another copy has it: on the device, or (travels) the owner's
  // So many of these copies that follow one another have different experts
  // (Program::expert_copies): each shares its own with parts / expert_copies of them.
  int expert_copies = 1;
  // Weights that travel (weight_ring.h): one copy, the owner's, has the whole; with kFully.
  bool travels = false;

  // Whether a copy may have less than all of something.
  bool divides() const { return parts > 1 || travels; }
  Shard OfExperts() const {
    const int copies = parts / expert_copies;  // of replicated ones less than 1
    if (copies <= 1) return {sharding, 1, 0, 1};
    return {sharding, copies, index < 0 ? index : index / expert_copies, 1};
  }
  // Elements of a part, of `elements` in all: the last parts may be padded.
  int64_t PartOf(int64_t elements) const {
    if (travels) return index < 0 ? 0 : Padded(elements);
    return (elements + parts - 1) / parts;
  }
  // Elements of the whole with its padding. Each stage travels, and has something to send.
  int64_t Padded(int64_t elements) const {
    return travels ? std::max<int64_t>(1, elements) : PartOf(elements) * parts;
  }
};

// The device that has the stage's weights between steps, where weights travel, and steps them. Each
// of `devices` has one stage, so that stage 0 is at once where the first pass needs it, and the
// others come there in turn. In groups of `group` devices (Schedule::weight_group) stages that
// follow one another are in different groups, and in them at different places, so that all links
// between groups work at one time.
inline int OwnerOf(int stage, int devices, int group = 1) {
  if (group == 1) return (devices - stage) % devices;
  const int groups = devices / group, in_group = stage / groups, of_group = stage % groups;
  return of_group * group + (in_group + of_group) % group;
}

// A stretch of a device's list during which it needs a stage's weights, or a buffer of its
// gradients.
struct StageRun {
  int replica = 0, stage = 0;
  int32_t begin = 0, end = 0;  // positions in the device's order: of the first and the last action
};

// In the order of `begin`. Weights: of F, B, I, R and W.
std::vector<StageRun> WeightRuns(const Schedule& schedule, int device, Residency residency);
// The same for gradients: the runs of B and W.
std::vector<StageRun> GradientRuns(const Schedule& schedule, int device, Residency residency);
// The runs when each is begun where the one before begins: what would be gathered again while it is
// still there stays.
std::vector<StageRun> JoinForPrefetch(std::vector<StageRun> runs);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_IR_SHARDING_H_

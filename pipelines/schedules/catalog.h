// The catalogue of schemes: names, what they are, and the function that makes each one's schedule.
//
//   PIPELAB_ASSIGN_OR_RETURN(Schedule s,
//                            MakeSchedule("chimera", {.devices = 4, .micro_batches = 8}));
//
// A scheme is a pure function from sizes, and for some the times of passes, to an order. A new one
// is a file, a line in catalog.cc and a test.
#ifndef PIPELAB_PIPELINES_SCHEDULES_CATALOG_H_
#define PIPELAB_PIPELINES_SCHEDULES_CATALOG_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "pipelines/ir/schedule.h"
#include "tools/base/units.h"

namespace pipelab {

// chimera's ways to more micro-batches than its unit has (chimera.cc).
enum class Concatenation { kDirect, kForwardDoubling, kBackwardHalving };
// "direct", "forward_doubling", "backward_halving".
absl::string_view ConcatenationName(Concatenation concatenation);
// InvalidArgument that names --concatenation and lists the names.
absl::StatusOr<Concatenation> ParseConcatenation(absl::string_view name);

// What passes take, for schemes that make their order for it (kPassTimes): zb1p, zb2p,
// interleaved_zb1p, zbv, v_half, v_min. Never a longer step than the published order takes in these
// times, in as many activations.
//
//   params.times.forward = params.times.backward_input = {Nanoseconds(20), Nanoseconds(40)};
//   params.times.backward_weight = {Nanoseconds(9), Nanoseconds(18)};
//   params.times.hop = {Nanoseconds(1)};
struct PassTimes {
  // [stage] Of one micro-batch. Empty: equal times of all passes, for which the published orders
  // are made.
  std::vector<Nanoseconds> forward, backward_input, backward_weight;
  std::vector<Nanoseconds> recompute;  // [stage] counts with SchemeParams::recompute; empty: none
  // [edge] From the end of a pass to the arrival of its result on the next stage's device, or one
  // for all edges; empty: none. Between two stages of one device it does not count.
  std::vector<Nanoseconds> hop;
};

// Limits to what a scheme with PassTimes may make. Where the order that it would choose is beyond
// one, it makes none, and says so before it has tried everything: ResourceExhausted for memory,
// OutOfRange for time, either of them where both are limited.
struct OrderLimits {
  struct Use {
    Bytes peak;    // above what there was, while the pass runs
    Bytes change;  // of what there is, once it is over
  };
  // [stage] Of one micro-batch; a recompute is part of the backward. Without messages.
  std::vector<Use> forward, backward_input, backward_weight;
  std::vector<Bytes> free;  // [device] for activations; empty: no limit
  // An order that takes so long is too long, even if messages take no longer than `hop`; 0: none
  // is.
  Nanoseconds too_long, hop;
};

struct SchemeParams {
  int devices = 1;         // P
  int micro_batches = 1;   // M, over all replicas
  int virtual_stages = 0;  // stages that a device holds of one replica (V); 0: the scheme's default
  // Re-materialisation: backward passes rebuild activations from stage inputs.
  bool recompute = false;
  // Each device of the pipeline becomes a group of so many, which divide every micro-batch by rows;
  // device d becomes d * data_parallel and those after it.
  int data_parallel = 1;
  // What only some schemes have (Scheme::options); the others refuse it.
  // Micro-batches of a group. Interleaved schemes: at least P; 0: P, or a little more if M needs
  // it. gis: P/2 to P; 0: P. tawpipe: devices of a node; 0: the most that leave two nodes. graph:
  // forwards, then as many backwards, in turn; 0: 1. local_replay: outputs in a buffer between two
  // stages; 0: 4. decode, prefill_decode: groups of requests; 0: P, or fewer where there is no room
  // for their prompts.
  int group_size = 0;
  int replicas = 0;  // 2f copies of the model, f pipelines each way; 0: two
  // With kBackwardHalving the schedule has 2 M micro-batches: halves of the M asked for.
  Concatenation concatenation = Concatenation::kDirect;
  int update_interval = 0;  // micro-batches of an update, at least P; 0: P
  // Token slices of a micro-batch, or chunks of a prompt (prefill_decode); 0: the scheme's default.
  int slices = 0;
  // All forwards before the first backward (interleaved): Megatron-LM's order where M = P.
  bool forwards_first = false;
  // Stages that are not a chain; none: a chain of one stage a device.
  StageGraph stages = {};
  // For such stages: [stage] -> the devices that share its micro-batches by rows, no device in two;
  // empty: stage s on device s.
  std::vector<std::vector<int>> devices_of_stage = {};
  // [stage] Micro-batches (Schedule::micro_batches_of_stage); empty: micro_batches each.
  // local_replay: passes, of micro-batches of one size.
  std::vector<int32_t> micro_batches_of_stage = {};
  PassTimes times = {};  // other schemes have one order for all times
  // With times: the scheme's schedule without, of the same sizes and without recompute, where the
  // caller has it; else it is made again.
  const Schedule* for_equal_times = nullptr;
  OrderLimits limits = {};  // with times
};

// Bits of Scheme::options.
enum SchemeOption : uint32_t {
  kGroupSize = 1,
  kReplicas = 2,
  kConcatenation = 4,
  kUpdateEvery = 8,
  kStageGraph = 16,
  kTokenSlices = 32,
  kForwardsFirst = 512,
  kVirtualStages = 64,  // any number of stages a device; the others have default_virtual_stages
  // No options, but what callers have to know.
  kSplitBackward = 128,  // passes are F, I and W
  kPassTimes = 256,      // the order depends on SchemeParams::times
  // Edges bring no gradient: for models with a loss in every stage (models/zoo/local_heads.h).
  kNoGradients = 1024,
  kLateGradients = 2048,  // edges bring gradients of earlier micro-batches
  kForwardOnly = 4096,    // inference: Schedule::forward_only
  kStageMicroBatches = 8192,
  kTokenPasses = 16384,  // micro-batches are passes of tokens (Schedule::carried), not of samples
  kOffloads = 32768,     // to the host's memory: for clusters with a host link
  // Steps cost less than a search's bounds on placed stages say: weights travel, or passes merge.
  kBeyondBounds = 65536,
};

struct Scheme {
  absl::string_view name;     // "1f1b"
  absl::string_view summary;  // one line
  absl::string_view paper;    // where it is from
  int default_virtual_stages;
  absl::StatusOr<Schedule> (*make)(const SchemeParams&);  // of sizes that passed all checks
  // Steps within the schedule, on gradients of older weights (ir/versions.h): such a scheme does
  // not train as serial training does, but as its paper's staleness rule says.
  bool asynchronous = false;
  uint32_t options = 0;  // of SchemeOption
  // What the scheme asks of sizes, options included, beyond what all do; none: nothing.
  absl::Status (*check)(const SchemeParams&) = nullptr;
  // Stage activations that a device holds at most, from F to W, whatever passes take; none:
  // unknown.
  int (*most_held)(const SchemeParams&) = nullptr;
  // With kPassTimes, for any passes' times: its order is never longer than this scheme's for equal
  // times, and holds no more weight gradients back where it recomputes.
  absl::string_view never_longer_than = {};
};

// Whether training under the scheme has the losses of serial training from end to end, but for the
// order of sums: no older weights, no losses of the stages' own, and no inference.
inline bool TrainsAsSerial(const Scheme& scheme) {
  return !scheme.asynchronous && (scheme.options & (kNoGradients | kForwardOnly)) == 0;
}

// All schemes, in the order in which tables show them.
absl::Span<const Scheme> Catalog();
// InvalidArgument that names `option` and lists the known names.
absl::StatusOr<const Scheme*> FindScheme(absl::string_view name,
                                         absl::string_view option = "--scheme");
// False for other names, such as a schedule file's.
bool HasOption(absl::string_view name, SchemeOption option);
// The stages of the model that the schedule would have, without making it; fails as MakeSchedule
// does.
absl::StatusOr<int> NumStages(absl::string_view name, SchemeParams params,
                              absl::string_view option = "--scheme");
// Scheme::most_held of sizes that the scheme serves; those of all micro-batches where it is
// unknown.
int64_t MostHeld(const Scheme& scheme, SchemeParams params);
// InvalidArgument naming the sizes when a schedule of them, its program and a trace of it are more
// than so much memory (and than 256 MiB, which is always there).
absl::Status CheckMemory(const SchemeParams& params, Bytes available);
// InvalidArgument with the option's name, its value and what would be right, when the scheme cannot
// serve the sizes, or the machine's free memory cannot; `option` is where the user named the
// scheme that is not there. Every returned schedule is valid (Validate).
absl::StatusOr<Schedule> MakeSchedule(absl::string_view name, SchemeParams params,
                                      absl::string_view option = "--scheme");

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SCHEDULES_CATALOG_H_

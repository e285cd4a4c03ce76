#include "pipelines/schedules/catalog.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "pipelines/schedules/guided_order.h"
#include "pipelines/schedules/schemes.h"
#include "pipelines/schedules/vocabulary.h"
#include "tools/base/did_you_mean.h"
#include "tools/base/memory.h"
#include "tools/base/status_macros.h"
#include "tools/base/units.h"

namespace pipelab {
namespace {

// Name, summary, paper, default virtual stages, function; asynchronous, options, check, most held,
// never longer than.
constexpr Scheme kCatalog[] = {
    {"gpipe", "all forwards, then all backwards", "Huang et al., NeurIPS 2019", 1, &MakeGPipe},
    {"1f1b", "one forward, one backward, with a flush",
     "Narayanan et al., ICML 2021; Fan et al., PPoPP 2021", 1, &Make1F1B},
    {"terapipe", "GPipe over slices of the tokens: causal attention looks back only",
     "Li et al., ICML 2021", 1, &MakeTeraPipe, false, kTokenSlices},
    {"seq1f1b", "1F1B over slices of the tokens: memory of slices, not of micro-batches",
     "Sun et al., 2024; SlimPipe, SC 2025", 1, &MakeSeq1F1B, false, kTokenSlices},
    {"interleaved_seq1f1b", "Seq1F1B over several stages per device, depth first",
     "Sun et al., 2024; SlimPipe, SC 2025", 2, &MakeSeq1F1B, false,
     kTokenSlices | kGroupSize | kVirtualStages, &CheckSlicedGroups},
    {"zb_seq1f1b", "Seq1F1B with split backwards, weight gradients in the drain",
     "Sun et al., 2024", 1, &MakeZbSeq1F1B, false, kTokenSlices | kSplitBackward},
    {"interleaved", "1F1B over several stages per device, depth first", "Narayanan et al., SC 2021",
     2, &MakeInterleaved, false, kGroupSize | kVirtualStages | kForwardsFirst, &CheckGroups},
    {"gis", "interleaved with split backwards, short lives: memory no more than 1F1B's",
     "PipeOffload, Wan et al., ICML 2025", 2, &MakeGis, false,
     kGroupSize | kVirtualStages | kSplitBackward, &CheckGis},
    {"gis_h", "gis in groups of half the devices: half of its memory",
     "PipeOffload, Wan et al., ICML 2025", 2, &MakeGisH, false, kVirtualStages | kSplitBackward},
    {"po_h", "half of a device's stages keep their activations at the host between F and B",
     "PipeOffload, Wan et al., ICML 2025", 2, &MakePoH, false,
     kVirtualStages | kSplitBackward | kOffloads},
    {"po_f",
     "all stages keep their activations at the host: three on a device, however many stages",
     "PipeOffload, Wan et al., ICML 2025", 2, &MakePoF, false,
     kVirtualStages | kSplitBackward | kOffloads},
    {"interleaved_merged",
     "interleaved, each steady forward merged with a backward: experts' exchanges hide",
     "Megatron-Core, 2025", 2, &MakeInterleavedMerged, false,
     kGroupSize | kVirtualStages | kBeyondBounds, &CheckGroups},
    {"breadth_first", "several stages per device, all micro-batches through one before the next",
     "Lamy-Poirier, MLSys 2023", 2, &MakeBreadthFirst, false, kVirtualStages},
    {"chimera", "two pipelines in opposite directions", "Li and Hoefler, SC 2021", 1, &MakeChimera,
     false, kReplicas | kConcatenation, &CheckChimera},
    {"gems", "two pipelines in opposite directions, in turn: activations of one micro-batch",
     "Jain et al., SC 2020", 1, &MakeGems, false, 0, &CheckGems},
    {"zb_h1", "1F1B with split backwards, weight gradients in the drain, same memory",
     "Qi et al., ICLR 2024", 1, &MakeZbH1, false, kSplitBackward},
    {"zb_h2", "split backwards and a longer warm-up: no gaps, twice the memory",
     "Qi et al., ICLR 2024", 1, &MakeZbH2, false, kSplitBackward},
    {"zb1p", "the automatic zero-bubble scheduler at 1F1B's memory", "Qi et al., ICLR 2024", 1,
     &MakeZb1p, false, kSplitBackward | kPassTimes, nullptr, &HeldInZb1p, "zb_h1"},
    {"zb2p", "the automatic zero-bubble scheduler at twice 1F1B's memory", "Qi et al., ICLR 2024",
     1, &MakeZb2p, false, kSplitBackward | kPassTimes, nullptr, &HeldInZb2p, "zb_h2"},
    {"interleaved_zb1p", "interleaved 1F1B with split backwards", "Qi et al., ICLR 2024", 2,
     &MakeInterleavedZb1p, false, kGroupSize | kVirtualStages | kSplitBackward | kPassTimes,
     &CheckGroups, &HeldInInterleavedZb1p, "interleaved_zb1p"},
    {"pipedream", "1F1B that never flushes: an update per micro-batch, stashed weights",
     "Narayanan et al., SOSP 2019", 1, &MakePipeDream, true, 0, &CheckPipeDream},
    {"pipedream_vertical_sync", "PipeDream with one weight version per micro-batch in all stages",
     "Narayanan et al., SOSP 2019", 1, &MakePipeDreamVerticalSync, true, 0, &CheckPipeDream},
    {"pipedream_2bw", "1F1B that never flushes: an update every P micro-batches, two versions",
     "Narayanan et al., ICML 2021", 1, &MakePipeDream2Bw, true, kUpdateEvery, &CheckPipeDream2Bw},
    {"zbv", "a V of two stages per device, split backwards: no gaps in 1F1B's memory",
     "Qi et al., ICLR 2024", 2, &MakeZbv, false, kSplitBackward | kPassTimes, nullptr, &HeldInZbv,
     "zbv"},
    {"v_half", "a V in half of 1F1B's memory", "Qi et al., NeurIPS 2024", 2, &MakeVHalf, false,
     kSplitBackward | kPassTimes, nullptr, &HeldInVHalf, "v_half"},
    {"v_min", "a V in a third of 1F1B's memory", "Qi et al., NeurIPS 2024", 2, &MakeVMin, false,
     kSplitBackward | kPassTimes, nullptr, &HeldInVMin, "v_min"},
    {"dualpipe", "two pipelines in opposite directions, forwards paired with backwards",
     "DeepSeek-AI, 2024", 1, &MakeDualPipe, false, kSplitBackward, &CheckBothWays},
    {"dualpipev", "DualPipe folded into a V: one copy of the weights", "DeepSeek-AI, 2025", 2,
     &MakeDualPipeV, false, kSplitBackward},
    {"bitpipe", "two Vs in opposite directions", "Wu et al., 2024", 2, &MakeBitPipe, false, 0,
     &CheckBothWays},
    {"hanayo", "waves down and up the devices", "Liu et al., SC 2023", 2, &MakeHanayo, false,
     kVirtualStages, &CheckHanayo},
    {"weipipe_naive", "weights travel round the devices, a round of forwards, then its backwards",
     "Lin et al., PPoPP 2025", 1, &MakeWeiPipeNaive, false, kBeyondBounds, &CheckWeiPipe},
    {"weipipe", "weights travel round the devices, a round's forwards beside the last's backwards",
     "Lin et al., PPoPP 2025", 1, &MakeWeiPipe, false, kBeyondBounds, &CheckWeiPipe},
    {"weipipe_zb1", "weipipe with split backwards, some weight parts a round later",
     "Lin et al., PPoPP 2025", 1, &MakeWeiPipeZb1, false, kBeyondBounds | kSplitBackward,
     &CheckWeiPipe},
    {"weipipe_zb2", "weipipe_naive with split backwards, weight parts beside the other passes",
     "Lin et al., PPoPP 2025", 1, &MakeWeiPipeZb2, false, kBeyondBounds | kSplitBackward,
     &CheckWeiPipe},
    {"tawpipe", "weipipe by groups of devices: weights come to each once and are shared in it",
     "Wu et al., AAAI 2026", 1, &MakeTawPipe, false, kBeyondBounds | kGroupSize, &CheckTawPipe},
    {"graph", "1F1B on a graph of stages: branches run in parallel", "Jeon et al., ASPLOS 2025", 1,
     &MakeGraph, false, kGroupSize | kStageGraph | kStageMicroBatches, &CheckGraph},
    {"vocab_1f1b",
     "1F1B; passes of vocabulary parts on all devices, where the stage graph has them",
     "Yeung et al., MLSys 2025", 1, &MakeVocab1F1B, false, kStageGraph, &CheckVocabulary},
    {"vocab_interlaced",
     "all devices stop for the passes of vocabulary parts, where the stage graph has them",
     "nnScaler, Lin et al., OSDI 2024", 1, &MakeVocabInterlaced, false, kStageGraph,
     &CheckVocabulary},
    {"vocab_v_half", "V-Half; passes of vocabulary parts, where the stage graph has them",
     "Yeung et al., MLSys 2025", 2, &MakeVocabVHalf, false, kStageGraph | kSplitBackward,
     &CheckVocabulary, &HeldInVHalf},
    {"local", "stages learn locally: a backward right after its forward, no gradient messages",
     "PPLL, arXiv 2411.12780", 1, &MakeLocal, false, kNoGradients | kUpdateEvery | kVirtualStages,
     &CheckLocal},
    {"local_replay", "local, each stage at its own pace, from a buffer of the last outputs",
     "DGL, Belilovsky et al., ICML 2020", 1, &MakeLocalReplay, false,
     kNoGradients | kUpdateEvery | kGroupSize | kStageMicroBatches, &CheckLocalReplay},
    {"over_time", "a stream: each tick a forward, a backward and a step, gradients 2 samples late",
     "PARTIME, ICMLA 2022", 1, &MakeOverTime, true, kLateGradients, &CheckOverTime},
    {"over_time_inference", "a stream: each tick a forward, and nothing is learned",
     "PARTIME, ICMLA 2022", 1, &MakeOverTimeInference, false, kForwardOnly,
     &CheckOverTimeInference},
    {"decode", "token by token: groups of requests take turns, tokens go back to the first stage",
     "FasterTransformer; MARLIN, PPoPP 2025", 1, &MakeDecode, false,
     kForwardOnly | kTokenPasses | kGroupSize, &CheckDecode},
    {"prefill_decode", "prompts in chunks, one after the other, then token by token",
     "Sarathi-Serve, Agrawal et al., OSDI 2024", 1, &MakePrefillDecode, false,
     kForwardOnly | kTokenPasses | kGroupSize | kTokenSlices, &CheckPrefillDecode},
};

constexpr int64_t kMaxStages = std::numeric_limits<int16_t>::max();
constexpr int kMaxSlices = std::numeric_limits<int16_t>::max();
constexpr int64_t kMaxActions = int64_t{1} << 28;  // 3 GiB of actions

absl::Status CheckSizes(const SchemeParams& p) {
  if (p.devices < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("--devices=", p.devices, ": a pipeline needs at least 1 device"));
  }
  const int64_t devices = int64_t{p.devices} * p.data_parallel;
  if (p.data_parallel < 1 || (p.data_parallel > 1 && devices > kMaxStages)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--data_parallel=", p.data_parallel, ": must be from 1 to ",
                     std::max<int64_t>(1, kMaxStages / p.devices), " with --devices=", p.devices));
  }
  if (p.micro_batches < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("--micro_batches=", p.micro_batches, ": a step needs at least 1 micro-batch"));
  }
  if (p.virtual_stages < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("--virtual_stages=", p.virtual_stages,
                     ": a device holds at least 1 stage (0 means the scheme's default)"));
  }
  const int64_t stages = int64_t{p.devices} * p.virtual_stages;
  if (stages > kMaxStages) {
    return absl::InvalidArgumentError(absl::StrCat("--devices=", p.devices,
                                                   " --virtual_stages=", p.virtual_stages, ": ",
                                                   stages, " stages; at most ", kMaxStages));
  }
  if (p.slices < 0 || p.slices > kMaxSlices) {
    return absl::InvalidArgumentError(absl::StrCat("--slices=", p.slices,
                                                   ": a micro-batch has 1 to ", kMaxSlices,
                                                   " token slices (0 means the scheme's default)"));
  }
  const int64_t slices = std::max(1, p.slices);
  if (2 * stages * slices * p.micro_batches > kMaxActions) {
    return absl::InvalidArgumentError(
        absl::StrCat("--micro_batches=", p.micro_batches, ": too many for ", stages, " stages",
                     slices > 1 ? absl::StrCat(" and ", slices, " slices") : "", "; at most ",
                     kMaxActions / (2 * stages * slices)));
  }
  return absl::OkStatus();
}

// Bytes of schedule, program and simulated trace, for each action: most is its instructions and
// their spans, of which a message has three.
constexpr int64_t kBytesPerAction = 260;
constexpr Bytes kAlwaysThere(256 << 20);  // not asked for

// An option that the scheme does not have is never ignored in silence.
absl::Status CheckOptions(const Scheme& scheme, const SchemeParams& p) {
  const struct {
    SchemeOption option;
    bool given;
    std::string text;
  } options[] = {
      {kGroupSize, p.group_size != 0, absl::StrCat("--group_size=", p.group_size)},
      {kReplicas, p.replicas != 0, absl::StrCat("--replicas=", p.replicas)},
      {kConcatenation, p.concatenation != Concatenation::kDirect,
       absl::StrCat("--concatenation=", ConcatenationName(p.concatenation))},
      {kStageGraph, p.stages.num_stages() > 0, "--edges"},
      {kStageGraph, !p.devices_of_stage.empty(), "--stage_devices"},
      {kStageMicroBatches, !p.micro_batches_of_stage.empty(),
       absl::StrCat("--stage_micro_batches=", absl::StrJoin(p.micro_batches_of_stage, ","))},
      {kForwardsFirst, p.forwards_first, "execution=forwards_first"},
      {kTokenSlices, p.slices != 0, absl::StrCat("--slices=", p.slices)},
      {kUpdateEvery, p.update_interval != 0, absl::StrCat("--update_interval=", p.update_interval)},
  };
  for (const auto& o : options) {
    if (!o.given || (scheme.options & o.option) != 0) continue;
    std::string owners;
    for (const Scheme& s : kCatalog) {
      if ((s.options & o.option) != 0) absl::StrAppend(&owners, owners.empty() ? "" : ", ", s.name);
    }
    return absl::InvalidArgumentError(
        absl::StrCat(scheme.name, " ", o.text, ": only for ", owners));
  }
  return absl::OkStatus();
}

// OK, or InvalidArgument naming --virtual_stages: the scheme has a number of stages of its own.
absl::Status CheckVirtualStages(const Scheme& scheme, const SchemeParams& p) {
  if ((scheme.options & kVirtualStages) != 0 || p.virtual_stages == scheme.default_virtual_stages) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "--virtual_stages=", p.virtual_stages, ": this scheme holds ",
      scheme.default_virtual_stages == 1 ? "one stage per device" : "two stages per device, a V",
      "; use --virtual_stages=", scheme.default_virtual_stages));
}

// OK, or InvalidArgument: times of other stages than the schedule's, or negative ones.
absl::Status CheckTimes(const PassTimes& times, size_t stages) {
  const struct {
    const char* name;
    const std::vector<Nanoseconds>& values;
    std::vector<size_t> sizes;
  } lists[] = {
      {"forward", times.forward, {stages}},
      {"backward_input", times.backward_input, {stages}},
      {"backward_weight", times.backward_weight, {stages}},
      {"recompute", times.recompute, {0, stages}},
      {"hop", times.hop, {0, 1, stages - 1}},
  };
  for (const auto& list : lists) {
    if (std::find(list.sizes.begin(), list.sizes.end(), list.values.size()) == list.sizes.end()) {
      return absl::InvalidArgumentError(absl::StrCat("pass times: ", list.values.size(), " of ",
                                                     list.name, "; the schedule has ", stages,
                                                     " stages"));
    }
    for (Nanoseconds value : list.values) {
      if (value >= Nanoseconds(0)) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("pass times: ", list.name, " has ", value.value(), " ns; at least 0"));
    }
  }
  return absl::OkStatus();
}

int NumStagesOf(const SchemeParams& p) {
  if (p.stages.num_stages() > 0) return p.stages.num_stages();
  if (!p.devices_of_stage.empty()) return static_cast<int>(p.devices_of_stage.size());
  return p.devices * p.virtual_stages;
}

// Sets what has a default, and holds sizes and options against all that the scheme asks of them.
absl::Status Prepare(const Scheme& scheme, SchemeParams* params) {
  if (params->virtual_stages == 0) params->virtual_stages = scheme.default_virtual_stages;
  PIPELAB_RETURN_IF_ERROR(CheckSizes(*params));
  PIPELAB_RETURN_IF_ERROR(CheckOptions(scheme, *params));
  absl::Status status = CheckVirtualStages(scheme, *params);
  if (status.ok() && params->recompute && (scheme.options & kOffloads) != 0) {
    status = absl::InvalidArgumentError("--recompute: its activations are at the host");
  }
  if (status.ok() && scheme.check != nullptr) status = scheme.check(*params);
  const PassTimes& times = params->times;
  if (status.ok() &&
      times.forward.size() + times.backward_input.size() + times.backward_weight.size() > 0) {
    status = CheckTimes(times, NumStagesOf(*params));
    // Published orders are the best for equal times.
    if (status.ok() && PassLengths::Of(*params).AreEqual()) params->times = {};
  }
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat(scheme.name, " ", status.message()));
}

constexpr std::pair<Concatenation, absl::string_view> kConcatenations[] = {
    {Concatenation::kDirect, "direct"},
    {Concatenation::kForwardDoubling, "forward_doubling"},
    {Concatenation::kBackwardHalving, "backward_halving"},
};

}  // namespace

absl::string_view ConcatenationName(Concatenation concatenation) {
  for (const auto& [value, name] : kConcatenations) {
    if (value == concatenation) return name;
  }
  return "?";
}

absl::StatusOr<Concatenation> ParseConcatenation(absl::string_view name) {
  for (const auto& [value, known] : kConcatenations) {
    if (known == name) return value;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "--concatenation=", name, ": must be one of ",
      absl::StrJoin(kConcatenations, ", ",
                    [](std::string* out, const auto& c) { absl::StrAppend(out, c.second); })));
}

absl::Span<const Scheme> Catalog() { return kCatalog; }

absl::StatusOr<const Scheme*> FindScheme(absl::string_view name, absl::string_view option) {
  for (const Scheme& scheme : kCatalog) {
    if (scheme.name == name) return &scheme;
  }
  std::vector<absl::string_view> names;
  for (const Scheme& scheme : kCatalog) names.push_back(scheme.name);
  return absl::InvalidArgumentError(
      absl::StrCat(option, "=", name, ": no such scheme", NearestOrAll(name, names)));
}

bool HasOption(absl::string_view name, SchemeOption option) {
  for (const Scheme& scheme : kCatalog) {
    if (scheme.name == name) return (scheme.options & option) != 0;
  }
  return false;
}

absl::StatusOr<int> NumStages(absl::string_view name, SchemeParams params,
                              absl::string_view option) {
  PIPELAB_ASSIGN_OR_RETURN(const Scheme* scheme, FindScheme(name, option));
  PIPELAB_RETURN_IF_ERROR(Prepare(*scheme, &params));
  return NumStagesOf(params);
}

absl::Status CheckMemory(const SchemeParams& p, Bytes available) {
  const int64_t actions = (p.recompute ? 3 : 2) * int64_t{p.devices} *
                          std::max(1, p.virtual_stages) * std::max(1, p.slices) * p.micro_batches *
                          p.data_parallel;
  const Bytes needed(actions * kBytesPerAction);
  if (needed <= std::max(available, kAlwaysThere)) return absl::OkStatus();
  std::string options = absl::StrCat("--devices=", p.devices);
  if (p.virtual_stages > 1) absl::StrAppend(&options, " --virtual_stages=", p.virtual_stages);
  if (p.slices > 1) absl::StrAppend(&options, " --slices=", p.slices);
  if (p.data_parallel > 1) absl::StrAppend(&options, " --data_parallel=", p.data_parallel);
  return absl::InvalidArgumentError(
      absl::StrCat(options, " --micro_batches=", p.micro_batches, ": ", actions,
                   " actions need about ", ToString(needed), " of memory, and ",
                   ToString(available), " are free; fewer micro-batches show the same pattern"));
}

int64_t MostHeld(const Scheme& scheme, SchemeParams params) {
  if (params.virtual_stages == 0) params.virtual_stages = scheme.default_virtual_stages;
  if (scheme.most_held == nullptr) return int64_t{params.virtual_stages} * params.micro_batches;
  return scheme.most_held(params);
}

absl::StatusOr<Schedule> MakeSchedule(absl::string_view name, SchemeParams params,
                                      absl::string_view option) {
  PIPELAB_ASSIGN_OR_RETURN(const Scheme* scheme, FindScheme(name, option));
  PIPELAB_RETURN_IF_ERROR(Prepare(*scheme, &params));
  if (!CheckMemory(params, kAlwaysThere).ok()) {
    PIPELAB_RETURN_IF_ERROR(CheckMemory(params, AvailableMemory()));
  }
  Schedule for_equal_times;
  const bool timed = (scheme->options & kPassTimes) != 0 && !params.times.forward.empty();
  if (timed && params.for_equal_times == nullptr) {
    SchemeParams equal = params;
    equal.times = {};
    PIPELAB_ASSIGN_OR_RETURN(for_equal_times, scheme->make(equal));
    params.for_equal_times = &for_equal_times;
  }
  PIPELAB_ASSIGN_OR_RETURN(Schedule schedule, scheme->make(params));
  schedule.name = std::string(name);
  if (params.recompute) InsertRecompute(&schedule);
  ReplaceDevicesByGroups(params.data_parallel, &schedule);
  return schedule;
}

}  // namespace pipelab

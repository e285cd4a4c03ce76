// What other jobs gain in the bubbles of one training: the study of PipeFill (MLSys 2025), from a
// cost model and the jobs' own rooflines.
//
//   PIPELAB_ASSIGN_OR_RETURN(const FillSet set, FillSetOn(cluster, NumberType::kFp16));
//   PIPELAB_ASSIGN_OR_RETURN(const MainRun run,
//                            EqualStages(MainModel(), cluster, "1f1b", /*gpus=*/8192, 8));
//   const std::vector<FillGain> gains = GainsOf(set, run);
//   gains[0].gain;        // products of the first job over those of the training
//
// The gain is fill flops over main flops, both of the networks' own products, recomputation not
// counted; a job's retained speed is its flop rate in the gaps over that on a GPU of its own.
// Nothing is fitted to a published figure.
#ifndef PIPELAB_EXPERIMENTS_FILL_BUBBLE_GAIN_H_
#define PIPELAB_EXPERIMENTS_FILL_BUBBLE_GAIN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "pipelines/cluster/cluster.h"
#include "pipelines/fill/fill_network.h"
#include "pipelines/fill/gaps.h"
#include "tools/base/units.h"

namespace pipelab {

// A fill network, training or inference, at all sizes of a round.
struct FillKind {
  std::string name;  // "BERT-large, inference"
  std::vector<FillNetwork> sizes;

  FlopsPerSecond rate() const { return FastestAlone(sizes).rate(); }  // on a GPU of its own
};

struct FillSet {
  std::string name;
  std::vector<FillKind> kinds;
  Nanoseconds slack;  // of each gap
};

// The networks that PipeFill fills with and whose sizes are known here, on the cluster's device.
absl::StatusOr<FillSet> FillSetOn(const ClusterSpec& cluster, NumberType type);

// One step of the training.
struct MainRun {
  std::string scheme;
  int64_t gpus = 0;
  int micro_batches = 0;
  double bubble = 0;  // 0 to 1
  Nanoseconds step;
  Flops flops;                   // of a GPU and step
  Bytes largest_device, memory;  // what the fullest needs, what it has
  std::vector<DeviceGaps> gaps;  // [pipeline device]

  // Idle time of all devices over the step.
  double idle_share() const;
};

// The training that the tables are of: a GPT of 48 blocks of 8192 in 16 stages, 39.7 B parameters.
struct MainModel {
  int blocks = 48, pipeline = 16, tensor = 8;
  int64_t micro_batch_size = 2;
};

// `gpus` over whole copies of `model.pipeline * model.tensor`.
//
// Every stage takes what one inside takes, messages are free and there are no reductions: bubbles
// are those of the closed forms.
absl::StatusOr<MainRun> EqualStages(const MainModel& model, const ClusterSpec& cluster,
                                    const std::string& scheme, int64_t gpus, int micro_batches);
// Embedding and head, messages over the cluster's links, sums of gradients, the optimizer.
absl::StatusOr<MainRun> WholeStep(const MainModel& model, const ClusterSpec& cluster,
                                  const std::string& scheme, int64_t gpus, int micro_batches);

struct FillGain {
  double gain = 0;          // fill flops over main flops
  double time_share = 0;    // of the gaps, in which pieces run
  double memory_share = 0;  // of the gaps, which have the memory
  double retained = 0;      // flop rate over all gaps, by that on a GPU of its own
  double gpus_worth = 0;    // GPUs of its own that do as much
  int64_t least_samples = 0, most_samples = 0;  // of a round, over devices
  // [pipeline device] Seconds of a GPU of its own that its gaps do in a second.
  std::vector<double> speeds;

  bool fits() const { return most_samples > 0; }  // some gap holds it
};
// [kind]
std::vector<FillGain> GainsOf(const FillSet& set, const MainRun& run);
// The mean of the kinds that fit, each as often as the others; zeros where none does.
FillGain MeanOf(const std::vector<FillGain>& gains);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_FILL_BUBBLE_GAIN_H_

// What local learning gains on one machine, on paper: PPLL's headline (arXiv 2411.12780). A
// pipeline of four blocks that learn locally, without a flush, against the same blocks one after
// another on one device, and against 1F1B without heads.
//
//   PIPELAB_ASSIGN_OR_RETURN(const LocalPoint p, LocalPointOf(setting));
//   p.speedup();             // over serial local learning
//   p.over_1f1b(/*m=*/0);
//
// Simulated from the machine's specification. Times are of a batch.
#ifndef PIPELAB_EXPERIMENTS_LOCAL_LOCAL_POINTS_H_
#define PIPELAB_EXPERIMENTS_LOCAL_LOCAL_POINTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/zoo/local_heads.h"
#include "pipelines/cluster/cluster.h"
#include "tools/base/units.h"

namespace pipelab {

inline constexpr int kLocalDevices = 4;

enum class LocalNetwork : uint8_t { kResNet110, kVit };
const char* LocalNetworkName(LocalNetwork network);

// One way to read what the paper's sources at hand leave open.
struct LocalSetting {
  LocalNetwork network = LocalNetwork::kResNet110;
  ClusterSpec cluster;
  NumberType type = NumberType::kFp32;
  LocalHead head = LocalHead::kLinear;
  // As many blocks a stage, as InfoPro cuts ResNet-110; false: the longest stage is as short as can
  // be, heads included.
  bool equal_blocks = false;
  int64_t batch = 1024;                         // samples
  std::vector<int> micro_batches = {4, 8, 16};  // of 1F1B

  std::string name() const;  // "fp32, linear heads, batches of 1024, cut by time"
};

struct LocalPoint {
  LocalSetting setting;
  Nanoseconds plain;                     // backpropagation on one device, no heads
  Nanoseconds serial;                    // all blocks with heads on one device
  Nanoseconds pipeline;                  // steady state, no flush
  std::vector<Nanoseconds> one_f_one_b;  // [i] with micro_batches[i], flushed

  double speedup() const { return serial / pipeline; }
  double over_1f1b(size_t i) const { return one_f_one_b[i] / pipeline; }
  double head_share() const { return 1 - plain / serial; }
  double balance() const { return speedup() / kLocalDevices; }  // mean stage over the longest
};

absl::StatusOr<LocalPoint> LocalPointOf(const LocalSetting& setting);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_LOCAL_LOCAL_POINTS_H_

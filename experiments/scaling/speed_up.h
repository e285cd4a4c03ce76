// How far a model can be cut: GPipe on up to 128 devices, and what is lost on the way to the bubble
// and to unequal stages.
//
//   PIPELAB_ASSIGN_OR_RETURN(SpeedUps s, MakeSpeedUps(family, 18, 256, cluster));
//   report.AddTable(SpeedUpTable(s));
//
// M = 4 K micro-batches of the size of Table 1's batch over 32, as the paper advises (M >= 4 K).
// Stages are cut for the shortest longest stage: between the paper's layers as long as there are
// enough, then anywhere in the graph. Memory is not looked at.
#ifndef PIPELAB_EXPERIMENTS_SCALING_SPEED_UP_H_
#define PIPELAB_EXPERIMENTS_SCALING_SPEED_UP_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "experiments/report/table.h"
#include "experiments/scaling/gpipe_family.h"
#include "experiments/scaling/overheads.h"

namespace pipelab {

struct SpeedUp {
  int devices = 0;
  bool within_layers = false;  // cut inside of what the paper calls a layer
  double speed_up = 0;         // against one device
  Overheads overheads;
};

struct SpeedUps {
  std::string model, cluster_title;
  int layers = 0;             // that the paper cuts between
  double heaviest_layer = 0;  // share of the time of all, 0 to 1
  std::vector<SpeedUp> rows;
};

absl::StatusOr<SpeedUps> MakeSpeedUps(const GpipeFamily& family, int64_t layers, int64_t width,
                                      const ClusterSpec& cluster);

// In one sentence: where imbalance, and not the bubble, limits the speed-up.
std::string ImbalanceSentence(const SpeedUps& s);

Table SpeedUpTable(const SpeedUps& s);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_SCALING_SPEED_UP_H_

// One slow device among four whose stages learn locally: `local`, which waits for it, beside
// `local_replay`, where its stage runs half the passes (Belilovsky et al., "Decoupled greedy
// learning of CNNs", ICML 2020), in the same time.
//
//   PIPELAB_ASSIGN_OR_RETURN(std::vector<Pace> paces, PricedPaces(cluster));
//   PIPELAB_RETURN_IF_ERROR(TrainPaces(images, /*batches=*/1024, &paces));
//   report.AddTable(PaceTable(paces, 1024));
//
// A ResNet for CIFAR on Fashion-MNIST: a stage reads one other, as replay needs. Times are
// simulated on a cluster, accuracies measured.
#ifndef PIPELAB_EXPERIMENTS_LOCAL_PACES_H_
#define PIPELAB_EXPERIMENTS_LOCAL_PACES_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "experiments/report/claim.h"
#include "experiments/report/table.h"
#include "models/data/images.h"
#include "pipelines/cluster/cluster.h"
#include "tools/base/units.h"

namespace pipelab {

struct Pace {
  int slow = -1;   // the device of half the speed; -1: none
  int window = 0;  // outputs in a buffer; 0: `local`
  Nanoseconds step;
  double idle = 0;                 // of the devices' time, 0 to 1
  int stale = 0;                   // micro-batches: Lateness
  std::vector<double> accuracies;  // of each loss, the network's own last; empty: not trained
};

// Paces of a step of kMethodSamples on paper.
absl::StatusOr<std::vector<Pace>> PricedPaces(const ClusterSpec& cluster);
// Trains each for as long as four equal devices need for so many batches. InvalidArgument names
// --train_batches.
absl::Status TrainPaces(const ImageData& images, int64_t batches, std::vector<Pace>* paces);

Table PaceTable(const std::vector<Pace>& paces, int64_t batches);
std::vector<Claim> PaceClaims(const std::vector<Pace>& paces);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_LOCAL_PACES_H_

// Pipelines whose weights travel (WeiPipe, PPoPP 2025; TawPipe, AAAI 2026) beside those whose
// activations do, and beside fully sharded data parallelism: steps of GPTs, simulated.
//
//   PIPELAB_ASSIGN_OR_RETURN(std::vector<TravelCell> cells,
//                            SimulateTravel(TravelPlace::kPcie, /*devices=*/32, cluster));
//   report.AddTable(TravelTable(cells));
//
// WeiPipe's abstract is known, not its tables: how many GPUs, which links, and the gains. So width,
// tokens and samples of a micro-batch are a grid, and a claim counts over all of it. TawPipe's
// sizes are known (tawpipe_table.h).
#ifndef PIPELAB_EXPERIMENTS_TRAVEL_TRAVEL_TABLE_H_
#define PIPELAB_EXPERIMENTS_TRAVEL_TRAVEL_TABLE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "experiments/report/claim.h"
#include "experiments/report/table.h"
#include "pipelines/cluster/cluster.h"

namespace pipelab {

// The links: the cluster's own (NVLink, a network card each); PCIe, and one card a node.
enum class TravelPlace : uint8_t { kNvlink, kPcie };
const char* TravelPlaceName(TravelPlace place);

// A cluster with nodes of 8 devices: `cluster` with the place's links.
ClusterSpec PlacedIn(TravelPlace place, ClusterSpec cluster);

enum TravelScheme : uint8_t {
  k1F1B,
  kZb1p,
  kFsdp,
  kWeiPipeNaive,
  kWeiPipe,
  kWeiPipeZb1,
  kWeiPipeZb2,
  kTawPipe,
  kTravelSchemes
};

struct TravelStep {
  double samples_per_second = 0;
  double sent = 0;    // bytes in messages, all devices, a step
  double memory = 0;  // bytes of the fullest device
  bool fits = true;
};

struct TravelCell {
  TravelPlace place = TravelPlace::kNvlink;
  int devices = 0;
  int64_t hidden = 0, tokens = 0, samples = 0;  // of a micro-batch
  std::array<TravelStep, kTravelSchemes> steps;

  // s b / h: tokens of a micro-batch over the width.
  double tokens_per_width() const {
    return static_cast<double>(tokens * samples) / static_cast<double>(hidden);
  }
  // Throughput of the best of the schemes that fits; 0 where none does.
  double Best(const std::vector<TravelScheme>& schemes) const;
  std::string ToString() const;  // "PCIe h=1024 s=4096 b=4"
};

// The grid, a block a stage, 4 rounds of micro-batches, recomputed as the papers do.
absl::StatusOr<std::vector<TravelCell>> SimulateTravel(TravelPlace place, int devices,
                                                       const ClusterSpec& cluster);

Table TravelTable(const std::vector<TravelCell>& cells);
std::vector<Claim> TravelClaims(const std::vector<TravelCell>& cells);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_TRAVEL_TRAVEL_TABLE_H_

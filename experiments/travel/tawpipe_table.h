// TawPipe's own table (arXiv 2511.09741, quoted by a secondary source) at its sizes: Llamas of 48
// blocks on 3 nodes of 8 GPUs, 1536 samples a step. Throughput of TawPipe, WeiPipe, 1F1B and fully
// sharded data parallelism, published beside simulated.
//
//   PIPELAB_ASSIGN_OR_RETURN(const auto rows, SimulateTawPipe(cluster));
//   rows[0].methods[kTaw].tokens_per_second;      // a GPU
//
// The authors' code (github.com/wuhouming/TawPipe) says what the table does not: 32 heads, products
// of 8/3 h, tied tables of 32000 words, fp16, sockets in the place of InfiniBand, DeepSpeed's third
// stage with a gather for each micro-batch. The nodes have 10 Gbit/s Ethernet. Micro-batches are as
// the memory allows: here each method has the fastest that fits. The GPUs are taken to be A100s.
#ifndef PIPELAB_EXPERIMENTS_TRAVEL_TAWPIPE_TABLE_H_
#define PIPELAB_EXPERIMENTS_TRAVEL_TAWPIPE_TABLE_H_

#include <array>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "experiments/report/claim.h"
#include "experiments/report/table.h"
#include "pipelines/cluster/cluster.h"

namespace pipelab {

enum TawPipeMethod : uint8_t { kTaw, kWei, kOneFOneB, kSharded, kTawPipeMethods };

struct TawPipeStep {
  double published = 0, tokens_per_second = 0;  // a GPU; 0: nothing fits
  double published_memory = 0, memory = 0;      // GB; published 0: not printed
  int64_t samples = 0;                          // of a micro-batch
};

struct TawPipeRow {
  int64_t hidden = 0, tokens = 0;
  std::array<TawPipeStep, kTawPipeMethods> methods;
};

// The nodes' own links, and a card of 10 Gbit/s for each node.
ClusterSpec WithEthernet(ClusterSpec cluster);

// A test's may leave out smaller micro-batches, and rows of more tokens.
absl::StatusOr<std::vector<TawPipeRow>> SimulateTawPipe(const ClusterSpec& cluster,
                                                        int64_t least_samples = 1,
                                                        int64_t most_tokens = 16384);
Table TawPipeTable(const std::vector<TawPipeRow>& rows);
std::vector<Claim> TawPipeClaims(const std::vector<TawPipeRow>& rows);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_TRAVEL_TAWPIPE_TABLE_H_

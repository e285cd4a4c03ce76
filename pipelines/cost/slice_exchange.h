// SlimPipe's context exchange: attention of token slices, spread evenly over the pipeline.
//
//   SliceExchange e = ExchangesAt(/*devices=*/4, /*slices=*/8, /*first=*/7)[0];
//   e.chunks;    // 6 chunks of keys and values that device 0 attends to; its slice 7 has 7
//   e.given;     // 1: its queries, and 1 chunk of its keys, go to another
//
// With slices of equal lengths slice i attends to itself and to the i chunks of keys and values
// before it, so passes of one stage are unequal. Devices of a pipeline have consecutive slices at
// a time. Where device d computes slice i, device d' computes slice i + d - d', forwards and
// backwards alike. Where micro-batches follow one another this is modulo the number of slices.
//
// So devices with much attention give chunks to those with little. The queries of the slice and
// some of its earlier chunks go there. An output and its log-sum-exp come back, and are merged with
// what was attended to at home (context_attention_spec.h has the same merge). Backward the output's
// gradient goes along, and gradients of queries, keys and values come back. A device keeps its
// slice's own chunk. As chunks are whole, devices differ by one at most.
//
// The assignment is greedy: the device with most gives one chunk at a time to the one with least.
// Each pair of devices exchanges queries once for all the chunks between them.
//
// What is simulated of it (ComputeStageCosts): a pass takes as long as that of the slice which has
// as many chunks. What it sends or receives, whichever is more, runs beside its attention, over the
// way between the pipeline's ends. It counts where it is longer. Helpers hold what they received,
// of one layer at a time. Blocks are taken to be alike in all stages. In warm-up and drain, where
// some devices wait, passes are charged as in the steady state. It is computed, not executed: no
// instruction of a program lets a pass of one stage compute a part of another stage's.
//
// Li et al., "SlimPipe: Memory-Thrifty and Efficient Pipeline Parallelism for Long-Context LLM
// Training", SC 2025, arXiv 2504.14519.
#ifndef PIPELAB_PIPELINES_COST_SLICE_EXCHANGE_H_
#define PIPELAB_PIPELINES_COST_SLICE_EXCHANGE_H_

#include <cstdint>
#include <vector>

#include "models/graph/layer_spec.h"
#include "pipelines/cost/cost_table.h"
#include "pipelines/cost/layer_times.h"

namespace pipelab {

// Of a device, while it has one slice.
struct SliceExchange {
  int chunks = 0;               // that it attends to, its slice's own chunk not counted
  int given = 0, received = 0;  // chunks of keys and values; one of these is 0
  int partners = 0;             // devices that it exchanges with
};

// [device] Of devices with `chunks` each. Sums stay, and differ by one at most afterwards.
std::vector<SliceExchange> SpreadChunks(const std::vector<int>& chunks);
// [device] Of so many devices in line while the first of them has the slice `first`.
// 0 <= first < slices.
std::vector<SliceExchange> ExchangesAt(int devices, int slices, int first);

// What one layer of a stage exchanges, in numbers of a token and in all.
struct AttentionRow {
  int64_t query = 0, keys = 0;  // keys: with values
  int64_t sums = 0;             // 4 bytes each: a log-sum-exp a head
};

// What a pass of one layer sends and receives: the larger of the two.
Bytes ExchangeBytes(const SliceExchange& exchange, const AttentionRow& row, int64_t tokens,
                    int64_t bytes_of_number, bool backward);

// Spreads the attention of a table's equal slices. `layers`: [stage] the model's layers of it.
void SpreadAttention(const ModelGraph& graph, const std::vector<std::vector<int>>& layers,
                     int64_t tokens, int64_t bytes_of_number, const TensorGroup& group,
                     CostTable* table);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_COST_SLICE_EXCHANGE_H_

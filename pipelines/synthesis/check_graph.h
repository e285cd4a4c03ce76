// What must come before what in any order of a problem, as a graph, with the earliest begin of each
// pass and what comes after it at least. Private to check_proof; written apart from heads.h.
//
//   const ProofGraph graph(problem, /*memory=*/true);
//   graph.head(node) + graph.length(node) + graph.tail(node)   // no order is shorter
#ifndef PIPELAB_PIPELINES_SYNTHESIS_CHECK_GRAPH_H_
#define PIPELAB_PIPELINES_SYNTHESIS_CHECK_GRAPH_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "pipelines/synthesis/problem.h"

namespace pipelab {

struct CheckedHolding {
  int64_t head = 0, work = 0, tail = 0;  // ns
};

class ProofGraph {
 public:
  using Edge = std::pair<int, int64_t>;  // node, and what passes between the two (ns)

  ProofGraph(const SynthesisProblem& problem, bool memory);

  int size() const { return static_cast<int>(length_.size()); }
  // -1: there is no such pass.
  int NodeOf(Symbol symbol, int unit) const;
  int device(int node) const { return device_[node]; }
  Symbol symbol(int node) const { return symbol_[node / units_]; }
  OrderLimits::Use use(int node) const { return p_.Use(symbol(node), slice_[node]); }
  int64_t length(int node) const { return length_[node]; }
  int64_t head(int node) const { return head_[node]; }
  int64_t tail(int node) const { return tail_[node]; }
  const std::vector<Edge>& before(int node) const { return before_[node]; }
  const std::vector<int>& order() const { return order_; }  // each behind what is before it
  // How long the device's room and what micro-batches hold of it keep it at work.
  CheckedHolding Holding(int device) const;

 private:
  void Join(Symbol from, int n_from, Symbol to, int n_to, int64_t delay);
  void AddPasses(int stage);
  void AddMemory(int stage);
  std::vector<int64_t> Earliest(const std::vector<std::vector<Edge>>& before,
                                const std::vector<int>& order) const;

  const SynthesisProblem& p_;
  const int units_;                                  // micro-batches x slices
  std::vector<int> device_, order_, slice_, first_;  // first_: [symbol] node of unit 0, or -1
  std::vector<Symbol> symbol_;                       // [node / units]
  std::vector<int64_t> length_, head_, tail_;
  std::vector<std::vector<Edge>> before_, after_;
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SYNTHESIS_CHECK_GRAPH_H_

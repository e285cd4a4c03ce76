// What must come before what in any order of a problem, as a graph, with the earliest begin of each
// pass and what comes after it at least. Private to check_proof; written apart from heads.h.
//
//   const CheckGraph graph(problem, /*memory=*/true);
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

class CheckGraph {
 public:
  using Edge = std::pair<int, int64_t>;  // node, and what passes between the two (ns)

  CheckGraph(const SynthesisProblem& problem, bool memory);

  int size() const { return static_cast<int>(length_.size()); }
  // -1: there is no such pass.
  int NodeOf(Symbol symbol, int micro_batch) const;
  // D + device of copies: the link.
  int device(int node) const { return device_[node]; }
  Symbol symbol(int node) const { return symbol_[node / p_.micro_batches]; }
  int64_t length(int node) const { return length_[node]; }
  int64_t head(int node) const { return head_[node]; }
  int64_t tail(int node) const { return tail_[node]; }
  const std::vector<Edge>& before(int node) const { return before_[node]; }
  const std::vector<int>& order() const { return order_; }  // each behind what is before it
  // How long the device's room and what micro-batches hold of it keep it at work.
  CheckedHolding Holding(int device) const;

 private:
  void Join(Symbol from, int m_from, Symbol to, int m_to, int64_t delay);
  void AddMemory(int stage);
  void AddCopies(int stage);
  std::vector<int64_t> Earliest(const std::vector<std::vector<Edge>>& before,
                                const std::vector<int>& order) const;

  const SynthesisProblem& p_;
  std::vector<int> device_, order_, first_;  // first_: [symbol] node of micro-batch 0, or -1
  std::vector<Symbol> symbol_;               // [node / M]
  std::vector<int64_t> length_, head_, tail_;
  std::vector<std::vector<Edge>> before_, after_;
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SYNTHESIS_CHECK_GRAPH_H_

// What a device can do next in an order that is half made, and how long what becomes of it takes at
// the least. Private to check_proof; written apart from partial.h.
//
//   const ProofRules rules(problem, graph);
//   CheckedBeginning b = rules.Start();
//   const int64_t begin = rules.BeginOf(b, device, symbol);
//   if (begin < kOpen) rules.Run(device, symbol, begin, &b);
#ifndef PIPELAB_PIPELINES_SYNTHESIS_CHECK_RULES_H_
#define PIPELAB_PIPELINES_SYNTHESIS_CHECK_RULES_H_

#include <cstdint>
#include <set>
#include <vector>

#include "pipelines/schedules/guided_order.h"
#include "pipelines/synthesis/check_graph.h"
#include "pipelines/synthesis/problem.h"

namespace pipelab {

constexpr int64_t kOpen = int64_t{1} << 61;  // not as things are

// A beginning of an order: the passes that have run, in order of time.
struct CheckedBeginning {
  std::vector<int64_t> end;                 // [node]; -1: it has not run
  std::vector<int> done;                    // [symbol]
  std::vector<int64_t> free, level, until;  // [device]; it must go on before `until`
  std::vector<int64_t> link;                // [device] when its host link is free
  std::vector<int> leaving;                 // [device] part of the last copy out, or -1
  std::vector<int64_t> out;                 // [device] when that copy is over
  std::vector<std::vector<int>> sent;       // [stage] forwards, to the host
  std::vector<std::vector<int64_t>> back;   // [stage][copy back] when it is there again
  std::vector<std::set<Symbol>> barred;     // [device] what it waited past
};

class ProofRules {
 public:
  ProofRules(const SynthesisProblem& problem, const ProofGraph& graph)
      : p_(problem), graph_(graph) {}

  CheckedBeginning Start() const;
  // When the next of the kind can begin.
  int64_t BeginOf(const CheckedBeginning& b, int device, Symbol symbol) const;
  void Run(int device, Symbol symbol, int64_t begin, CheckedBeginning* b) const;
  // Whether in front of what begins after its end the n-th pass would be in no one's way.
  bool IsFree(Symbol symbol, int n) const;
  // Whether the edge to the symbol's pass is about memory: an F waits for no I or W else.
  bool IsRoom(Symbol symbol, int other) const {
    return KindOf(symbol) == kPassF && KindOf(graph_.symbol(other)) != kPassF;
  }
  int64_t LeastMakespan(const CheckedBeginning& b) const;
  // The backward of a forward, and the other way round.
  int MateOf(int n) const { return n - n % p_.slices + p_.slices - 1 - n % p_.slices; }
  // Backwards whose forwards were sent, in order: so many micro-batches' forwards are all over. The
  // n-th copy back is of the n-th.
  std::vector<int> SentBackwards(const CheckedBeginning& b, int stage) const;

 private:
  int64_t CopyBegin(const CheckedBeginning& b, int device, Symbol symbol) const;
  void Copy(int device, Symbol symbol, int64_t begin, CheckedBeginning* b) const;
  bool HasRoom(int device, int64_t level, OrderLimits::Use use) const;
  // That a copy moves; a part is a stage's slice.
  int64_t BytesOf(int part) const { return p_.Moved(part / p_.slices, part % p_.slices).value(); }
  int PartOf(int stage, int forward) const { return stage * p_.slices + forward % p_.slices; }
  int64_t LeastBack(const CheckedBeginning& b, int node) const;
  int64_t LeastOfLinks(const CheckedBeginning& b) const;

  const SynthesisProblem& p_;
  const ProofGraph& graph_;
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SYNTHESIS_CHECK_RULES_H_

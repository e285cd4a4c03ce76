// Judges the hops of weights that travel: a program's instructions in an order in which they may
// run. Each pass must have its stage's weights, and each owner steps on the gradients of every
// micro-batch, each once.
//
//   HopChecker hops(program);
//   error = hops.Run(device, instruction);     // "": fine so far
//   error = hops.End();
#ifndef PIPELAB_TESTS_SUPPORT_HOP_CHECKER_H_
#define PIPELAB_TESTS_SUPPORT_HOP_CHECKER_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "pipelines/ir/program.h"

namespace pipelab {

class HopChecker {
 public:
  explicit HopChecker(const Program& program) : p_(program) {}
  std::string Run(int device, const Instruction& i);
  std::string End();  // once all lists are over, also where nothing steps

 private:
  using Place = std::pair<int, int>;  // device, stage
  std::string Compute(int device, const Action& a);
  bool IsSettled(int device, int stage);
  bool HasWeights(const Place& place) const;

  const Program& p_;
  std::map<Place, int32_t> weights_;               // the message that brought them
  std::map<Place, std::vector<int>> sums_;         // micro-batches in the order of adding
  std::map<int32_t, std::vector<int>> under_way_;  // [message]
  std::set<Place> stepped_;
};

}  // namespace pipelab

#endif  // PIPELAB_TESTS_SUPPORT_HOP_CHECKER_H_

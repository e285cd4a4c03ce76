#include "pipelines/cost/state_numbers.h"

#include <initializer_list>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace pipelab {

std::string StateNumbersName(StateNumbers n) {
  return absl::StrCat(n.weights, "+", n.gradients, n.cast ? "+cast" : "");
}

absl::StatusOr<StateNumbers> FindStateNumbers(absl::string_view name) {
  for (const StateNumbers n :
       std::initializer_list<StateNumbers>{{4, 4}, {2, 2}, {2, 4}, {1, 2}, {1, 4}}) {
    for (const bool cast : {false, true}) {
      const StateNumbers one = {n.weights, n.gradients, cast && n.narrow()};
      if (StateNumbersName(one) == name) return one;
    }
  }
  return absl::InvalidArgumentError(
      "must be bytes of a weight and of a gradient, 4+4, 2+4, 2+2, 1+4 or 1+2, the narrow ones "
      "with "
      "+cast or without");
}

}  // namespace pipelab

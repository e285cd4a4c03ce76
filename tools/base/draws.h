// Random choices one after the other, for tests over random cases.
//
//   Draws draws(seed, "whole_space_test");
//   const int devices = draws.Of<int>({4, 6, 8});
#ifndef PIPELAB_TOOLS_BASE_DRAWS_H_
#define PIPELAB_TOOLS_BASE_DRAWS_H_

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "tools/base/rng.h"

namespace pipelab {

class Draws {
 public:
  Draws(uint64_t seed, absl::string_view name) : rng_(seed, name) {}

  // [0, n), n >= 1.
  int64_t Below(int64_t n) {
    return static_cast<int64_t>(rng_.Below(draws_++, static_cast<uint64_t>(n)));
  }
  float Uniform() { return rng_.Uniform(draws_++); }
  bool OneIn(int64_t n) { return Below(n) == 0; }
  template <typename T>
  T Of(const std::vector<T>& values) {
    return values[Below(static_cast<int64_t>(values.size()))];
  }

 private:
  const CounterRng rng_;
  uint64_t draws_ = 0;
};

}  // namespace pipelab

#endif  // PIPELAB_TOOLS_BASE_DRAWS_H_

// The list that kernels to measure are noted in: what kernel_probe.cc (products, convolutions,
// attention) and pass_probe.cc (the rest) have in common.
#ifndef PIPELAB_EXPERIMENTS_CALIBRATION_PROBE_LIST_H_
#define PIPELAB_EXPERIMENTS_CALIBRATION_PROBE_LIST_H_

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "experiments/calibration/kernel_probe.h"

namespace pipelab {

class ProbeList {
 public:
  using Prepare = std::function<std::function<void()>(ProbeTensors*)>;

  explicit ProbeList(ProbeSizes sizes) : quick_(sizes == ProbeSizes::kQuick) {}

  // The sizes of a grid; for a quick look the first and the middle one.
  std::vector<int64_t> Sizes(std::vector<int64_t> all) const {
    if (!quick_ || all.size() < 2) return all;
    return {all.front(), all[all.size() / 2]};
  }

  void Add(std::string name, Operation operation, int64_t numbers, Prepare prepare,
           int64_t copied = 0) {
    probes_.push_back({std::move(name), operation, copied, 4 * numbers, std::move(prepare)});
  }

  std::vector<KernelProbe> Take() { return std::move(probes_); }

 private:
  const bool quick_;
  std::vector<KernelProbe> probes_;
};

// Whatever moves more than it computes.
void AddPasses(ProbeList* list);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_CALIBRATION_PROBE_LIST_H_

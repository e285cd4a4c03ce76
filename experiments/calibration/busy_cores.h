// Keeps every core busy while it lives, so that kernels are measured as they run when every core
// has a device.
//
//   const BusyCores busy;
//   ... measure ...
//
// A core is slower while its neighbours work: they share memory, caches and power, and what a
// virtual machine calls a core may be half of one. Where some measurements leave the other cores
// idle and others do not, the two do not compare: a pipeline's devices work at a time or one after
// the other as its schedule says. One thread a core computes products and sums at the lowest
// priority there is, so it takes what nobody else wants.
#ifndef PIPELAB_EXPERIMENTS_CALIBRATION_BUSY_CORES_H_
#define PIPELAB_EXPERIMENTS_CALIBRATION_BUSY_CORES_H_

#include <atomic>
#include <thread>
#include <vector>

namespace pipelab {

class BusyCores {
 public:
  BusyCores();
  ~BusyCores();
  BusyCores(const BusyCores&) = delete;
  BusyCores& operator=(const BusyCores&) = delete;

 private:
  std::atomic<bool> done_{false};
  std::vector<std::thread> threads_;
};

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_CALIBRATION_BUSY_CORES_H_

#include "experiments/calibration/busy_cores.h"

#include <sched.h>

#include <algorithm>
#include <memory>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/tensor/arena.h"

namespace pipelab {
namespace {

// About what a layer of a small network does, on a megabyte or two.
void Work(const std::atomic<bool>& done) {
  const sched_param none{};
  sched_setscheduler(0, SCHED_IDLE, &none);  // of this thread; refused nowhere that we know of
  Arena arena;
  const std::unique_ptr<Backend> backend = MakeCpuBackend(&arena);
  const auto zeros = [&arena](Shape shape) {
    return arena.Zeros(DataType::kFloat32, std::move(shape), MemoryKind::kActivation);
  };
  const Tensor x = zeros({256, 256}), w = zeros({256, 512}), y = zeros({256, 512});
  while (!done.load(std::memory_order_relaxed)) {
    backend->Linear(x, w, Tensor(), y);
    backend->Add(y, y, y);
  }
}

}  // namespace

BusyCores::BusyCores() {
  const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  for (unsigned i = 0; i < cores; ++i) threads_.emplace_back([this] { Work(done_); });
}

BusyCores::~BusyCores() {
  done_.store(true);
  for (std::thread& thread : threads_) thread.join();
}

}  // namespace pipelab

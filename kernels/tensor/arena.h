// Memory of one device: who holds how much, and the most it ever was.
//
//   Arena arena;
//   Tensor t = arena.Allocate(DataType::kFloat32, {64, 128}, MemoryKind::kActivation);
//   arena.peak_transient();
//
// An arena counts *charges*. A tensor carries the charge of the arena that pays for it, and moving
// a tensor between devices moves the charge and not the data (zero-copy hand-over). Counting is by
// the requested bytes, so that predictions can be exact; the blocks behind it are rounded up and
// reused.
//
// Thread-compatible: an arena belongs to its device's thread. Blocks may be freed by any thread.
#ifndef PIPELAB_KERNELS_TENSOR_ARENA_H_
#define PIPELAB_KERNELS_TENSOR_ARENA_H_

#include <array>
#include <cstdint>
#include <memory>

#include "kernels/tensor/memory.h"
#include "kernels/tensor/tensor.h"
#include "tools/base/units.h"

namespace pipelab {

enum class MemoryKind : uint8_t {
  kActivation,  // activations and their gradients, messages included
  kWorkspace,   // scratch of a kernel
  kParameter,
  kGradient,
  kOptimizer,
};
inline constexpr int kNumMemoryKinds = 5;

class Arena {
 public:
  // Tensors lie in `memory`; null: the host's.
  explicit Arena(Memory::Shared memory = nullptr);
  ~Arena();  // every tensor charged to it must be gone: CHECK
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // Contents are undefined; Zeros() clears them.
  Tensor Allocate(DataType type, Shape shape, MemoryKind kind);
  Tensor Zeros(DataType type, Shape shape, MemoryKind kind);

  const Memory::Shared& memory() const { return memory_; }

  // A charge without memory: what a posted receive costs. Adopt() joins it to the tensor that
  // arrived.
  std::shared_ptr<Charge> Reserve(Bytes bytes, MemoryKind kind);

  Bytes current(MemoryKind kind) const;
  Bytes peak(MemoryKind kind) const;
  // Activations + workspace, the most that they were together.
  Bytes current_transient() const;
  Bytes peak_transient() const;
  // Parameters + gradients + optimizer.
  Bytes peak_state() const;
  // Starts new peaks from the current level.
  void ResetPeaks();

 private:
  friend class Charge;
  void Add(MemoryKind kind, int64_t bytes);

  const Memory::Shared memory_;
  std::array<int64_t, kNumMemoryKinds> current_{}, peak_{};
  int64_t peak_transient_ = 0, peak_state_ = 0;
  int64_t live_charges_ = 0;
};

// Bytes that one arena counts, until the last tensor that shares it is gone.
class Charge {
 public:
  Charge(Arena* arena, MemoryKind kind, int64_t bytes);
  ~Charge();
  Charge(const Charge&) = delete;
  Charge& operator=(const Charge&) = delete;

  const Memory::Shared& memory() const { return arena_->memory(); }

 private:
  Arena* arena_;
  MemoryKind kind_;
  int64_t bytes_;
};

// A tensor that arrived from another device, paid by `charge` from now on: what its arena's device
// does with the memory comes before the memory is reused. The data stays where the sender has put
// it, in the host's memory or another GPU's, and the receiver works on it there: both are the
// host's, or devices that reach each other's memory (CHECK; which GPUs do is checked where devices
// are made).
Tensor HandOver(Tensor tensor, std::shared_ptr<Charge> charge);

}  // namespace pipelab

#endif  // PIPELAB_KERNELS_TENSOR_ARENA_H_

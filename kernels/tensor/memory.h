// Memory other than the host's: what tensors need of a device whose bytes the host cannot touch.
//
//   class MyDevice : public Memory { ... };
//   Arena arena(device);                      // its tensors lie there
//   SetHostValues(x, values);                 // host_values.h: the way in and out
//
// A Memory is one device's (a stream of a GPU). Work on it is queued: blocks are taken, cleared,
// copied and given back in the order of the calls, and so is what kernels do. Calls are the
// device's thread's, except Give and the copies to and from the host, which any thread may make.
// Faults do not return here: a device that failed does nothing more and says so in Finish().
//
// A null Memory stands for the host's (storage.h).
#ifndef PIPELAB_KERNELS_TENSOR_MEMORY_H_
#define PIPELAB_KERNELS_TENSOR_MEMORY_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace pipelab {

enum class DataType : uint8_t;

enum class MemoryReduction : uint8_t { kSum, kMax };

class Memory {
 public:
  using Shared = std::shared_ptr<Memory>;
  virtual ~Memory() = default;

  // Contents are undefined; null where it failed.
  virtual void* Take(int64_t bytes) = 0;
  // Back, once what this device and `others` have queued so far is done.
  virtual void Give(void* block, int64_t bytes, absl::Span<const Shared> others) = 0;

  virtual void Clear(void* to, int64_t bytes) = 0;
  // Within the device, or from another one of the same kind whose work is finished. No overlap.
  virtual void Copy(const void* from, void* to, int64_t bytes) = 0;
  // out[k][i] = in[0][i] + in[1][i] + ..., or the largest of them, for `count` elements from
  // `begin`, in the order and with the roundings of kernels/comm/sum.h.
  virtual void Reduce(MemoryReduction reduction, absl::Span<const void* const> inputs,
                      absl::Span<void* const> outputs, DataType type, int64_t begin,
                      int64_t count) = 0;

  // The host's memory is free again, or has the values, when these return.
  virtual void FromHost(const void* from, void* to, int64_t bytes) = 0;
  virtual void ToHost(const void* from, void* to, int64_t bytes) = 0;

  // Waits for everything queued; the first fault.
  virtual absl::Status Finish() = 0;
};

}  // namespace pipelab

#endif  // PIPELAB_KERNELS_TENSOR_MEMORY_H_

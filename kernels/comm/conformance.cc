#include "kernels/comm/conformance.h"

#include <cstring>
#include <utility>

namespace pipelab {
namespace {

// bfloat16 is the upper half of float32; the test values have few bits.
uint16_t Upper(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return static_cast<uint16_t>(bits >> 16);
}

}  // namespace

int64_t TestValue(int64_t name, int64_t i) { return (name * 31 + i * 7 + i / 64) % 127; }

Tensor TestTensor(Arena& arena, const TensorSpec& spec, int64_t name) {
  Tensor t = arena.Allocate(spec.type, spec.shape, MemoryKind::kActivation);
  for (int64_t i = 0; i < t.size(); ++i) {
    switch (spec.type) {
      case DataType::kFloat32:
        t.f32()[i] = static_cast<float>(TestValue(name, i));
        break;
      case DataType::kInt32:
        t.i32()[i] = static_cast<int32_t>(TestValue(name, i));
        break;
      case DataType::kBFloat16:
        static_cast<uint16_t*>(t.data())[i] = Upper(static_cast<float>(TestValue(name, i)));
        break;
    }
  }
  return t;
}

int64_t FirstDifference(const Tensor& t, int64_t name) {
  for (int64_t i = 0; i < t.size(); ++i) {
    const int64_t want = TestValue(name, i);
    const bool same = t.type() == DataType::kFloat32 ? t.f32()[i] == static_cast<float>(want)
                      : t.type() == DataType::kInt32 ? t.i32()[i] == want
                                                     : static_cast<const uint16_t*>(t.data())[i] ==
                                                           Upper(static_cast<float>(want));
    if (!same) return i;
  }
  return -1;
}

absl::StatusOr<Ticket> Post(Communicator& comm, Arena& arena, const TensorSpec& spec, int from,
                            uint64_t tag) {
  const Bytes bytes(NumElements(spec.shape) * SizeOf(spec.type));
  return comm.Receive(spec, from, tag, arena.Reserve(bytes, MemoryKind::kActivation));
}

std::vector<ConformanceCase> ConformanceCases() {
  std::vector<ConformanceCase> all;
  for (auto& part : {MessageCases(), CollectiveCases(), FaultCases()}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

}  // namespace pipelab

#include "kernels/comm/conformance.h"

#include <cstring>
#include <utility>
#include <vector>

#include "kernels/tensor/host_values.h"

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
  std::vector<int64_t> values(t.size());
  for (int64_t i = 0; i < t.size(); ++i) values[i] = TestValue(name, i);
  switch (spec.type) {
    case DataType::kFloat32:
      SetHostValues(t, std::vector<float>(values.begin(), values.end()));
      break;
    case DataType::kInt32:
      SetHostIds(t, std::vector<int32_t>(values.begin(), values.end()));
      break;
    case DataType::kBFloat16: {
      std::vector<uint16_t> halves;
      for (int64_t v : values) halves.push_back(Upper(static_cast<float>(v)));
      SetHostHalves(t, halves);
      break;
    }
  }
  return t;
}

int64_t FirstDifference(const Tensor& t, int64_t name) {
  const auto first = [&](const auto& values, const auto& wanted) -> int64_t {
    for (size_t i = 0; i < values.size(); ++i) {
      if (values[i] != wanted(TestValue(name, static_cast<int64_t>(i)))) {
        return static_cast<int64_t>(i);
      }
    }
    return -1;
  };
  switch (t.type()) {
    case DataType::kFloat32:
      return first(HostValues(t), [](int64_t v) { return static_cast<float>(v); });
    case DataType::kInt32:
      return first(HostIds(t), [](int64_t v) { return static_cast<int32_t>(v); });
    case DataType::kBFloat16:
      return first(HostHalves(t), [](int64_t v) { return Upper(static_cast<float>(v)); });
  }
  return 0;
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

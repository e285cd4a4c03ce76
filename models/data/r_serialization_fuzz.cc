// Entry point for libFuzzer (how to run it: tools/build_defs/package.bzl), and for the seeded test
// beside it. The first byte picks the reader.
#include <cstddef>
#include <cstdint>
#include <string>

#include "models/data/r_serialization.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  pipelab::RLimits limits;  // small: a find should be a fault, not a slow or large input
  limits.bytes = 1 << 20;
  limits.values = 1 << 14;
  limits.sequence = 1 << 14;
  const absl::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 3) {
    case 0:
      (void)pipelab::ReadRSerialized(bytes, "fuzz", limits);
      break;
    case 1:
      (void)pipelab::ReadRData(bytes, "fuzz", limits);
      break;
    default: {  // an index and a store in one
      const auto store = pipelab::RLazyLoad::Parse("fuzz", bytes, std::string(bytes), limits);
      if (!store.ok()) break;
      for (const std::string& name : store->Names()) (void)store->Read(name);
    }
  }
  return 0;
}

// 20,000 damaged inputs from one seed: none may crash. Sums are made right where the file can still
// be read, so that damage comes to what checks sizes.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "kernels/int4_weights.h"
#include "models/checkpoint/safetensors.h"
#include "models/layers/quantize/int4_network.h"
#include "models/layers/quantize/quantizer.h"
#include "tools/base/fuzz_mutations.h"
#include "tools/base/rng.h"

namespace pipelab {
namespace {

std::string Sample() {
  Int4Network network;
  network.model = "net";
  QuantizeOptions options;
  options.group = 32;
  std::vector<float> w(40 * 3);
  for (size_t i = 0; i < w.size(); ++i) w[i] = static_cast<float>(i % 7) - 3.0f;
  network.matrices["fc/w"] = RoundToNearest(w, 40, 3, options);
  network.rest["fc/b/value"] = {{3}, std::vector<float>{1, 2, 3}};
  return SerializeInt4Network(network);
}

TEST(Int4NetworkFuzz, TwentyThousandMutations) {
  ASSERT_TRUE(ParseInt4Network(Sample(), "f").ok());
  RunMutations({Sample()}, 20000);
}

TEST(Int4NetworkFuzz, WrongSizesWithARightSum) {
  int refused = 0;
  for (uint64_t round = 0; round < 5000; ++round) {
    auto file = ParseSafetensors(Mutate(Sample(), round), "f");
    if (!file.ok()) continue;
    const CounterRng rng(7, absl::StrCat(round));
    const char* const sizes[] = {"0", "1", "40", "64", "1099511627776", "9223372036854775807",
                                 "-1"};
    const auto size = [&](uint64_t draw) { return sizes[rng.Below(draw, 7)]; };
    if (rng.Below(0, 2) == 0) file->metadata["fc/w/shape"] = absl::StrCat(size(1), ",", size(2));
    if (rng.Below(3, 2) == 0) file->metadata["fc/w/group"] = size(4);
    file->metadata["checksum"] = ChecksumOf(file->tensors);
    const std::string bytes = SerializeSafetensors(*file);
    refused += !ParseInt4Network(bytes, "f").ok();
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  }
  EXPECT_GT(refused, 100);
}

}  // namespace
}  // namespace pipelab

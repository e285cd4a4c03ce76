// Damaged sums and 8-bit messages from one seed.
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/messages/int8_blocks.h"
#include "kernels/messages/order_free_sum.h"
#include "tools/base/fuzz_mutations.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

TEST(MessagesFuzz, Mutations) {
  std::vector<std::string> samples;
  for (const int values : {1, 3, 70}) {
    const std::string expected(1, static_cast<char>(values));
    std::vector<float> x(values, 1e-3f);
    x[0] = -2e9f;
    samples.push_back(expected + *ToInt8Message(x, 16));
    OrderFreeSum sum(values);
    ASSERT_THAT(sum.Add(x), IsOk());
    samples.push_back(expected + sum.ToBytes());
    x[0] = std::numeric_limits<float>::infinity();
    ASSERT_THAT(sum.Add(x), IsOk());
    samples.push_back(expected + sum.ToBytes());
  }
  RunMutations(samples, 100000);
}

}  // namespace
}  // namespace pipelab

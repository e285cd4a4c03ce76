// Damaged inputs from one seed.
#include "gtest/gtest.h"
#include "tools/base/fuzz_mutations.h"

namespace pipelab {
namespace {

TEST(TextReadersFuzz, Json) {
  RunMutations({R"({"a": 1, "b": [true, null, -0.5e300, "\u00e9\ud83d\ude00\n"], "c": {"d": {}}})",
                R"({"a": 9223372036854775807, "e": 18446744073709551615, "f": "x"})",
                R"([[[[[[[[[[[[[[[[[[[[1.7976931348623157e308]]]]]]]]]]]]]]]]]]]])"},
               30000);
}

TEST(TextReadersFuzz, Toml) {
  RunMutations({"a = 1_000 # b\n[c.d]\ne = [\"x\\n\", 'y', {f = 1e3, g = inf}]\n[[h]]\ni = true\n",
                "d = 2024-05-01T07:32:00.5Z\nt = 07:32:00\n\"k e\".y = \"\"\"\nm\"\"\"\n"},
               30000);
}

TEST(TextReadersFuzz, Csv) {
  RunMutations({"a,b,c\n1,2,3\n\"x,\"\"y\"\"\",\"two\nlines\",\n", "b,a\r\n1,2\r\n\r\n3,4"}, 30000);
}

TEST(TextReadersFuzz, Quantities) {
  RunMutations({"125 Tflop/s", "16 GiB", "1.5e3 kflop", "300 GB/s", "25 Gbit/s", "213.75 us",
                "9223372036854775807 ns", "0.000000001 PiB"},
               30000);
}

}  // namespace
}  // namespace pipelab

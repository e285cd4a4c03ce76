// Damaged inputs from one seed.
#include "gtest/gtest.h"
#include "tools/base/fuzz_mutations.h"

namespace pipelab {
namespace {

TEST(LinksFileFuzz, Files) {
  RunMutations(
      {R"({"links": [{"name": "uplink", "latency": 0.1, "bandwidth": "10GB"}, {"name": "x"}],
 "paths": [{"from": [0, 1], "to": [2, 3], "links": ["uplink", "x"]},
           {"from": "all", "to": 1, "links": []}]})",
       R"({"links": [{"name": "n", "latency": 1e9, "bandwidth": 1e300}], "paths": []})"},
      20000);
}

TEST(LinksFileFuzz, Numbers) {
  RunMutations({"1,2.5,1000000", "123456.789012345", "64MiB", "1.5GB", "999999999999999"}, 20000);
}

}  // namespace
}  // namespace pipelab

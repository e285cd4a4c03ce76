// 20,000 damaged inputs from one seed: none may crash.
#include <string>

#include "gtest/gtest.h"
#include "models/files/network_json.h"
#include "tools/base/fuzz_mutations.h"

namespace pipelab {
namespace {

TEST(NetworkJsonFuzz, TwentyThousandMutations) {
  const std::string table =
      R"({"name":"n","layers":[{"name":"i","kind":"data_input","field":"f","shape":[8]},)"
      R"({"name":"d","kind":"dense","out":16,"activation":"relu"},)"
      R"({"name":"l","kind":"element_loss","loss":"squared_error"}]})";
  const std::string images =
      R"({"name":"n","layers":[{"name":"c","kind":"image_conv","shape":[9,9,1],"out":2},)"
      R"({"name":"p","kind":"pool","pool":"max","kernel":3},)"
      R"({"name":"h","kind":"classifier","classes":3}]})";
  ASSERT_TRUE(ParseNetwork(table, "f").ok());
  ASSERT_TRUE(ParseNetwork(images, "f").ok());
  RunMutations({table, images}, 20000);
}

}  // namespace
}  // namespace pipelab

// Damaged inputs from one seed: none may crash, and none that is read may be written differently.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tools/base/fuzz_mutations.h"

namespace pipelab {
namespace {

TEST(MeasuredRowsFuzz, Mutations) {
  const std::string header =
      "# GPUs,global batch,micro batch,hidden size,attention heads,# layers,sequence length,"
      "tensor parallelism,data parallelism,pipeline parallelism,iteration time (ms)\n";
  const std::string rows =
      "2,16,8,1024,16,24,1024,1,1,2,372.160408\n8,4,1,1024,16,16,1024,1,2,4,77.216619\n";
  RunMutations({absl::StrCat(header, rows),
                absl::StrCat("parameters,", header, "1.3,", "8,64,4,2048,16,24,1024,4,2,1,\r\n")},
               20000);
}

}  // namespace
}  // namespace pipelab

// Damaged inputs from one seed: none may crash, and none that is read may be written differently.
#include <string>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "models/files/example_files.h"
#include "tools/base/fuzz_mutations.h"

namespace pipelab {
namespace {

TEST(PlacementJsonFuzz, Mutations) {
  std::string sample;
  for (const EmbeddedText& file : ExampleFiles()) {
    if (absl::StartsWith(file.name, "placement")) sample = std::string(file.text);
  }
  ASSERT_FALSE(sample.empty());
  RunMutations({sample}, 5000);
}

}  // namespace
}  // namespace pipelab

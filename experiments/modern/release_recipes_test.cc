#include "experiments/modern/release_recipes.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

ModernRow Row(const std::string& system) {
  ModernRow row;
  row.id = "mbridge-x-pretrain-qwen3-30b-a3b-gb200";
  row.group = "mbridge";
  row.system = system;
  row.model = "qwen3-30b-a3b";
  row.gpu = "GB200";
  row.precision = "MXFP8";
  row.gpus = 8;
  row.expert = 8;
  row.micro_batch = 4;
  row.kernels = "its own";
  return row;
}

TEST(ReleaseRecipes, ReleaseIsInTheSystemsName) {
  const auto release = [](const std::string& system) { return ReleaseOf(Row(system)); };
  EXPECT_EQ(release("Megatron-Bridge, NeMo container 26.04.01"), "26.04.01");
  EXPECT_EQ(release("Megatron-Bridge @ 2026-08-14"), "26.08");
  EXPECT_EQ(release("Megatron-Bridge @0480586879 2026-08-19"), "26.08");
  EXPECT_EQ(release("Megatron-Bridge @600d069b82"), "");
  EXPECT_EQ(release("Megatron-Bridge @ 2026-03-14"), "");
  ModernRow other = Row("x, NeMo container 26.04");
  other.group = "dgxc";
  EXPECT_EQ(ReleaseOf(other), "");
}

// One layout, whose recipe changed from one release to the next.
TEST(ReleaseRecipes, KernelsAreThoseOfTheRelease) {
  std::vector<ModernRow> rows = {
      Row("Megatron-Bridge, NeMo container 26.04.01"), Row("Megatron-Bridge, NeMo container 26.06"),
      Row("Megatron-Bridge, NeMo container 25.09"), Row("Megatron-Bridge, NeMo container 26.06")};
  rows[3].id = "mbridge-26.06-sft-qwen3-30b-a3b-gb200";
  ASSERT_THAT(TakeReleases(&rows), IsOk());
  EXPECT_EQ(rows[0].kernels,
            "dispatcher=hybridep;cuda_graph=transformer_engine(moe_router,moe_preprocess);"
            "fused_router");
  EXPECT_EQ(rows[1].kernels,
            "dispatcher=hybridep;cuda_graph=full_iteration;ep_overlap=on-delay-wgrad;fused_router;"
            "fused_experts;fp8_attention");
  EXPECT_EQ(rows[2].kernels, "its own");
  EXPECT_EQ(rows[3].kernels, "its own");
}

}  // namespace
}  // namespace pipelab

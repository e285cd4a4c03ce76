#include "models/specs/product_depth.h"

#include <vector>

#include "gtest/gtest.h"
#include "models/specs/launched_kernels.h"
#include "models/specs/megatron_kernels.h"
#include "models/zoo/gpt.h"

namespace pipelab {
namespace {

ModelGraph Fp8Llama() {
  const GptConfig c = LlamaConfig(/*layers=*/1, /*hidden=*/64, /*heads=*/4, /*feed_forward=*/128,
                                  /*tokens=*/32, /*vocabulary=*/96);
  return WithFp8Casts(WithMegatronKernels(BuildGpt(c).value(), AttentionImplementation::kFused));
}

// Under fp8, where the head's products have 2 bytes.
TEST(ProductDepth, FlopsOfProductsAlone) {
  const ModelGraph plain = Fp8Llama(), deep = WithProductDepth(Fp8Llama(), {16, 32});
  int products = 0;
  for (size_t i = 0; i < plain.layers.size(); ++i) {
    const auto of = [i](const ModelGraph& graph) {
      return ShareOf(graph.layers[i], 1, TokenSlice(), TensorParallel());
    };
    const TensorShare before = of(plain), after = of(deep);
    EXPECT_EQ(before.costs.forward, after.costs.forward);  // the model's flops
    const std::vector<Operation>&a = before.operations.forward, &b = after.operations.forward;
    ASSERT_EQ(a.size(), b.size());
    for (size_t o = 0; o < a.size(); ++o) {
      EXPECT_EQ(a[o].numbers, b[o].numbers);
      const bool product = a[o].kind == OperationKind::kMatmul;
      const double more = product ? (a[o].half ? 16.0 : 32.0) / static_cast<double>(a[o].k) : 0;
      EXPECT_DOUBLE_EQ(b[o].flops.value(), (1 + more) * a[o].flops.value());
      products += product;
    }
  }
  EXPECT_EQ(products, 5);
}

}  // namespace
}  // namespace pipelab

// Attention of bfloat16 numbers by tile products, on the emulated device: slices of the queries.
// What it computes is held to the reference by the cases (emulated_parity_test).
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/backend.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/tile_product.h"
#include "kernels/tensor/arena.h"
#include "kernels/tensor/bfloat16.h"
#include "kernels/tensor/host_values.h"
#include "kernels/tensor/tensor.h"
#include "tools/base/rng.h"

namespace pipelab {
namespace {

constexpr int64_t kTokens = 200, kHeads = 2, kHeadSize = 20, kWidth = kHeads * kHeadSize;

class SlicesTest : public testing::TestWithParam<std::vector<int64_t>> {
 protected:
  Tensor New(Shape shape, DataType type = DataType::kBFloat16) {
    return arena_.Zeros(type, std::move(shape), MemoryKind::kActivation);
  }
  Tensor Random(Shape shape, const std::string& name) {
    const Tensor t = New(std::move(shape));
    std::vector<float> values(t.size());
    const CounterRng rng(1, name);
    for (size_t i = 0; i < values.size(); ++i) values[i] = rng.Normal(i);
    SetHostValues(t, values);
    return t;
  }

  const std::shared_ptr<gpu::Device> device_ = gpu::MakeEmulatedDevice();
  Arena arena_{device_};
  const std::unique_ptr<Backend> backend_ = MakeCudaBackend(&arena_, device_, DataType::kBFloat16);
};

// Slices of whole tiles have the bits of the whole, but for the gradients of keys and values: each
// of these rounds its sum once a slice that adds to it, by up to 2^-8 of it.
TEST_P(SlicesTest, OfWholeTilesAreTheWhole) {
  const std::vector<int64_t>& begins = GetParam();
  const AttentionShape whole{1, kTokens, kHeads, kHeadSize, true};
  const Tensor qkv = Random({kTokens, 3 * kWidth}, "qkv"), dout = Random({kTokens, kWidth}, "dout");
  const Tensor out = New({kTokens, kWidth}), lse = New({1, kHeads, kTokens}, DataType::kFloat32);
  const Tensor dqkv = New({kTokens, 3 * kWidth}), sliced_dqkv = New({kTokens, 3 * kWidth});
  backend_->attention().Forward(whole, qkv, out, lse);
  backend_->attention().Gradient(whole, dout, qkv, out, lse, dqkv);
  const std::vector<float> lse_whole = HostValues(lse), out_whole = HostValues(out);
  for (size_t i = begins.size(); i-- > 0;) {
    AttentionShape slice = whole;
    slice.first_query = begins[i];
    slice.queries = (i + 1 < begins.size() ? begins[i + 1] : kTokens) - begins[i];
    const int64_t n = slice.queries, first = begins[i];
    const Tensor slice_out = New({n, kWidth}), slice_lse = New({1, kHeads, n}, DataType::kFloat32);
    backend_->attention().Forward(slice, qkv, slice_out, slice_lse);
    backend_->attention().Gradient(slice, dout.Rows(first, first + n), qkv, slice_out, slice_lse,
                                   sliced_dqkv);
    EXPECT_EQ(HostValues(slice_out), HostValues(out.Rows(first, first + n))) << "slice " << i;
    const std::vector<float> lse_slice = HostValues(slice_lse);
    for (int64_t h = 0; h < kHeads; ++h) {
      EXPECT_TRUE(std::equal(lse_slice.begin() + h * n, lse_slice.begin() + (h + 1) * n,
                             lse_whole.begin() + h * kTokens + first))
          << "slice " << i;
    }
  }
  ASSERT_EQ(backend_->Finish(), absl::OkStatus());
  const std::vector<float> want = HostValues(dqkv), got = HostValues(sliced_dqkv);
  double largest = 0;
  for (const float x : want) largest = std::max(largest, std::abs(double{x}));
  for (size_t i = 0; i < want.size(); ++i) {
    if (i % (3 * kWidth) < kWidth) {
      EXPECT_EQ(got[i], want[i]) << "of a query, " << i;
    } else {
      EXPECT_NEAR(got[i], want[i], 0x1.0p-8 * static_cast<double>(begins.size()) * largest) << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Begins, SlicesTest,
                         testing::Values(std::vector<int64_t>{0, 64, 128},
                                         std::vector<int64_t>{0, 128, 192},
                                         std::vector<int64_t>{0, 64, 128, 192}));

TEST(TileProductDeathTest, TilesLieWhereTensorCoresTakeThem) {
  alignas(32) BFloat16 memory[16 * 24] = {};
  gpu::LeftTile tile;
  tile.Load(memory, 24);
  EXPECT_DEATH(tile.Load(memory + 8, 24), "tensor cores take none such");
  EXPECT_DEATH(tile.Load(memory, 20), "tensor cores take none such");
}

}  // namespace
}  // namespace pipelab

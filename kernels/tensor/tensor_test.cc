// Tensors, arenas and the pool behind them.
#include "kernels/tensor/tensor.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/tensor/arena.h"
#include "kernels/tensor/bfloat16.h"
#include "kernels/tensor/host_values.h"
#include "kernels/tensor/storage.h"

namespace pipelab {
namespace {

constexpr MemoryKind kAct = MemoryKind::kActivation;

TEST(Tensor, KnowsItsShape) {
  Arena arena;
  const Tensor x = arena.Allocate(DataType::kFloat32, {4, 3}, kAct);
  EXPECT_FALSE(x.empty());
  EXPECT_EQ(x.size(), 12);
  EXPECT_EQ(x.bytes(), 48);
  EXPECT_EQ(x.f32().size(), 12u);
  EXPECT_EQ(ShapeToString(x.shape()), "[4, 3]");
  EXPECT_EQ(arena.Allocate(DataType::kBFloat16, {5}, kAct).bytes(), 10);
  EXPECT_TRUE(Tensor().empty());
  const Tensor scalar = arena.Allocate(DataType::kInt32, {}, kAct);
  EXPECT_EQ(scalar.size(), 1);
  const Tensor none = arena.Allocate(DataType::kFloat32, {0, 7}, kAct);
  EXPECT_FALSE(none.empty());
  EXPECT_EQ(none.size(), 0);
  EXPECT_EQ(none.Rows(0, 0).size(), 0);
}

TEST(Tensor, ViewsShareMemory) {
  Arena arena;
  Tensor x = arena.Allocate(DataType::kInt32, {4, 3}, kAct);
  for (int i = 0; i < 12; ++i) x.i32()[i] = i;
  const Tensor rows = x.Rows(1, 3);
  EXPECT_EQ(rows.shape(), (Shape{2, 3}));
  EXPECT_EQ(rows.i32()[0], 3);
  EXPECT_EQ(rows.i32()[5], 8);
  EXPECT_EQ(rows.Rows(1, 2).i32()[0], 6);
  const Tensor flat = rows.Reshape({6});
  flat.i32()[0] = -1;
  EXPECT_EQ(x.i32()[3], -1);
  EXPECT_EQ(arena.current(kAct), Bytes(48));
  x = Tensor();
  EXPECT_EQ(arena.current(kAct), Bytes(48)) << "a view still pays";
  EXPECT_EQ(flat.i32()[1], 4) << "a view keeps the memory alive";
}

TEST(TensorDeathTest, BrokenInvariants) {
  Arena arena;
  const Tensor x = arena.Allocate(DataType::kFloat32, {4, 3}, kAct);
  EXPECT_DEATH(x.i32(), "int32 tensor is needed, not float32");
  EXPECT_DEATH(x.Rows(2, 5), "rows 2 to 5 of \\[4, 3\\]");
  EXPECT_DEATH(x.Reshape({5, 2}), "\\[4, 3\\] reshaped to \\[5, 2\\]");
  EXPECT_DEATH(arena.Allocate(DataType::kFloat32, {-1}, kAct), "shape \\[-1\\]");
  EXPECT_DEATH(arena.Allocate(DataType::kFloat32, {int64_t{1} << 40, int64_t{1} << 40}, kAct),
               "shape");
  EXPECT_DEATH(
      {
        Tensor survivor;
        Arena gone;
        survivor = gone.Allocate(DataType::kFloat32, {1}, kAct);
      },
      "ends before the tensors");
}

TEST(Arena, CountsRequestedBytesAndPeaks) {
  Arena arena;
  Tensor a = arena.Allocate(DataType::kFloat32, {25}, kAct);  // 100
  {
    const Tensor b = arena.Allocate(DataType::kFloat32, {50}, kAct);                   // 200
    const Tensor s = arena.Allocate(DataType::kFloat32, {5}, MemoryKind::kWorkspace);  // 20
    EXPECT_EQ(arena.current_transient(), Bytes(320));
  }
  const Tensor s = arena.Allocate(DataType::kFloat32, {40}, MemoryKind::kWorkspace);  // 160
  EXPECT_EQ(arena.current(kAct), Bytes(100));
  EXPECT_EQ(arena.peak(kAct), Bytes(300));
  EXPECT_EQ(arena.peak(MemoryKind::kWorkspace), Bytes(160));
  EXPECT_EQ(arena.peak_transient(), Bytes(320)) << "of the sum, not the sum of the peaks";
  EXPECT_EQ(arena.peak_state(), Bytes(0));

  const Tensor w = arena.Zeros(DataType::kFloat32, {10}, MemoryKind::kParameter);
  Tensor g = arena.Zeros(DataType::kFloat32, {10}, MemoryKind::kGradient);
  g = Tensor();
  const Tensor m = arena.Zeros(DataType::kFloat32, {5}, MemoryKind::kOptimizer);
  EXPECT_EQ(arena.peak_state(), Bytes(80));
  EXPECT_EQ(arena.peak_transient(), Bytes(320));
  EXPECT_EQ(std::count(w.f32().begin(), w.f32().end(), 0.0f), 10);

  arena.ResetPeaks();
  EXPECT_EQ(arena.peak_transient(), Bytes(260));
  EXPECT_EQ(arena.peak_state(), Bytes(60));
  EXPECT_EQ(arena.peak(MemoryKind::kGradient), Bytes(0));
}

TEST(Arena, HandOverMovesTheChargeAndNotTheData) {
  Arena sender, receiver;
  Tensor x = sender.Allocate(DataType::kFloat32, {8}, kAct);
  const void* address = x.data();
  const Tensor view = x;  // NOLINT(performance-unnecessary-copy-initialization): it pays too
  std::shared_ptr<Charge> reserved = receiver.Reserve(Bytes(x.bytes()), kAct);
  EXPECT_EQ(receiver.current(kAct), Bytes(32));
  Tensor y = std::move(x).Adopt(std::move(reserved));
  EXPECT_TRUE(x.empty());  // NOLINT(bugprone-use-after-move): the promise under test
  EXPECT_EQ(x.size(), 0);
  EXPECT_EQ(y.data(), address);
  EXPECT_EQ(sender.current(kAct), Bytes(32)) << "the sender's other view still pays";
  EXPECT_EQ(receiver.current(kAct), Bytes(32)) << "not counted twice";
  y = std::move(y).Adopt(nullptr);  // in flight: nobody pays
  EXPECT_EQ(receiver.current(kAct), Bytes(0));
  EXPECT_EQ(y.size(), 8);
}

TEST(Storage, BlocksAreAlignedAndRoundedUpByAtMostAQuarter) {
  for (int64_t bytes : {1, 63, 64, 65, 500, 513, 4097, 1000000, 123456789}) {
    const int64_t capacity = StorageCapacity(bytes);
    EXPECT_GE(capacity, bytes);
    EXPECT_LE(capacity, std::max<int64_t>(bytes + 63, bytes + bytes / 4)) << bytes;
    EXPECT_EQ(capacity % kStorageAlignment, 0);
  }
  EXPECT_EQ(StorageCapacity(0), 0);
  for (int64_t bytes : {1, 100, 70000, 5 << 20}) {
    const Storage block(bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block.data()) % kStorageAlignment, 0u);
    std::memset(block.data(), 1, bytes);
  }
}

#if !defined(__SANITIZE_ADDRESS__)
TEST(Storage, SteadyStateTakesNothingFromTheSystem) {
  const auto step = [] {
    Arena arena;
    std::vector<Tensor> live;
    for (int i = 1; i < 20; ++i) live.push_back(arena.Allocate(DataType::kFloat32, {997, i}, kAct));
  };
  step();
  const Bytes warm = StorageFromSystem();
  for (int i = 0; i < 5; ++i) step();
  EXPECT_EQ(StorageFromSystem(), warm);
}
#endif

// To the nearest, ties to even, over the edge of each exponent; NaNs stay NaNs.
TEST(BFloat16, RoundsToNearest) {
  for (const auto& [from, to] : std::vector<std::pair<float, float>>{
           {0.0f, 0.0f},
           {-0.0f, -0.0f},
           {1.0f, 1.0f},
           {1 + 0x1.0p-8f, 1.0f},           // a tie
           {1 + 0x1.8p-7f, 1 + 0x1.0p-6f},  // a tie
           {1 + 0x1.02p-8f, 1 + 0x1.0p-7f},
           {-(2 - 0x1.0p-8f), -2.0f},
           {0x1.0p-126f * (1 + 0x1.8p-8f), 0x1.0p-126f * (1 + 0x1.0p-7f)},
           {0x1.8p-134f, 0x1.0p-133f},  // below the smallest normal number
           {std::numeric_limits<float>::max(), INFINITY},
           {-INFINITY, -INFINITY}}) {
    const float rounded = BFloat16(from);
    EXPECT_EQ(rounded, to) << from;
    EXPECT_EQ(std::signbit(rounded), std::signbit(to)) << from;
  }
  for (const uint32_t bits : {0x7f800001u, 0xffffffffu, 0x7fc00000u}) {
    float nan;
    std::memcpy(&nan, &bits, sizeof(nan));
    EXPECT_TRUE(std::isnan(static_cast<float>(BFloat16(nan)))) << bits;
  }
}

TEST(HostValues, OfBFloat16AreFloats) {
  Arena arena;
  const Tensor x = arena.Allocate(DataType::kBFloat16, {3}, kAct);
  SetHostValues(x, {1 + 0x1.0p-10f, -2.5f, 3});
  EXPECT_EQ(HostValues(x), std::vector<float>({1, -2.5f, 3}));
  EXPECT_EQ(HostHalves(x), std::vector<uint16_t>({0x3f80, 0xc020, 0x4040}));
  FillOnHost<float>(x, [](absl::Span<float> all) {
    for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<float>(i);
  });
  EXPECT_EQ(HostValues(x), std::vector<float>({0, 1, 2}));
}

TEST(Storage, ThreadsFreeWhatOthersTook) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      std::vector<std::unique_ptr<Storage>> blocks;
      for (int i = 0; i < 200; ++i) {
        blocks.push_back(std::make_unique<Storage>(1000 + i % 7));
        std::memset(blocks.back()->data(), t, 1000);
        if (blocks.size() > 8) {
          const char* front = static_cast<char*>(blocks.front()->data());
          EXPECT_EQ(std::count(front, front + 1000, static_cast<char>(t)), 1000);
          std::thread([block = std::move(blocks.front())] {}).join();
          blocks.erase(blocks.begin());
        }
      }
    });
  }
  for (std::thread& t : threads) t.join();
}

}  // namespace
}  // namespace pipelab

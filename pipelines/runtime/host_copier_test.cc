#include "pipelines/runtime/host_copier.h"

#include <cstdint>
#include <numeric>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/tensor/arena.h"
#include "kernels/tensor/tensor.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

Tensor Ramp(Arena* arena, int64_t rows) {
  Tensor t = arena->Allocate(DataType::kFloat32, {rows, 4}, MemoryKind::kActivation);
  std::iota(t.f32().begin(), t.f32().end(), static_cast<float>(rows));
  return t;
}

std::vector<float> Values(const Tensor& t) { return {t.f32().begin(), t.f32().end()}; }

TEST(HostCopier, MovesThereAndBack) {
  Arena device;
  HostCopier copier(&device, BytesPerSecond(0));
  Tensor a = Ramp(&device, 8), b = Ramp(&device, 2), none;
  const std::vector<float> a_values = Values(a), b_values = Values(b);
  for (int round = 0; round < 3; ++round) {
    ASSERT_THAT(copier.Begin(false, {&a, &none, &b}), IsOk());
    copier.Wait(2 * round);
    EXPECT_EQ(device.current_transient(), Bytes(0));
    EXPECT_EQ(copier.peak_host(), Bytes(160));
    ASSERT_THAT(copier.Begin(true, {&a, &none, &b}), IsOk());
    EXPECT_EQ(device.current_transient(), Bytes(160));  // from the begin on
    copier.Wait(2 * round + 1);
    EXPECT_EQ(device.current_transient(), Bytes(160));
    EXPECT_EQ(Values(a), a_values);
    EXPECT_EQ(Values(b), b_values);
  }
  EXPECT_EQ(copier.bytes(), Bytes(6 * 160));
  copier.Reset();
  EXPECT_EQ(copier.bytes(), Bytes(0));
  EXPECT_EQ(copier.peak_host(), Bytes(0));
}

// One memory under two shapes is copied once, and is one memory again.
TEST(HostCopier, KeepsWhatIsShared) {
  Arena device;
  HostCopier copier(&device, BytesPerSecond(0));
  Tensor a = Ramp(&device, 8);
  Tensor flat = a.Reshape({32});
  ASSERT_THAT(copier.Begin(false, {&a, &flat}), IsOk());
  copier.Wait(0);
  EXPECT_EQ(copier.bytes(), Bytes(128));
  EXPECT_EQ(device.current_transient(), Bytes(0));
  ASSERT_THAT(copier.Begin(true, {&a, &flat}), IsOk());
  copier.Wait(1);
  EXPECT_EQ(a.data(), flat.data());
  EXPECT_EQ(flat.shape(), Shape({32}));
  EXPECT_EQ(device.current_transient(), Bytes(128));
  Tensor part = a.Rows(0, 2);
  EXPECT_EQ(copier.Begin(false, {&a, &part}).code(), absl::StatusCode::kUnimplemented);
}

// In their order, each for at least as long as the bandwidth says.
TEST(HostCopier, KeepsTheBandwidth) {
  Arena device;
  HostCopier copier(&device, BytesPerSecond(128e3));  // 1 ms for 128 bytes
  Tensor a = Ramp(&device, 8), b = Ramp(&device, 16);
  ASSERT_THAT(copier.Begin(false, {&a}), IsOk());
  ASSERT_THAT(copier.Begin(false, {&b}), IsOk());
  copier.Wait(1);
  copier.Wait(0);
  const HostCopier::Times first = copier.TimesOf(0), second = copier.TimesOf(1);
  EXPECT_GE(first.end_ns - first.begin_ns, 1000000);
  EXPECT_GE(second.end_ns - second.begin_ns, 2000000);
  EXPECT_GE(second.begin_ns, first.end_ns);
}

// An owner that goes while a copy is under way, or something is at the host.
TEST(HostCopier, LetsGo) {
  Arena device;
  Tensor a = Ramp(&device, 8), b = Ramp(&device, 8);
  {
    HostCopier copier(&device, BytesPerSecond(0));
    ASSERT_THAT(copier.Begin(false, {&a}), IsOk());
    copier.Wait(0);
    copier.Reset();
  }
  EXPECT_TRUE(a.empty());
  {
    HostCopier copier(&device, BytesPerSecond(1));  // 128 s
    ASSERT_THAT(copier.Begin(false, {&b}), IsOk());
  }
  EXPECT_FALSE(b.empty());
}

}  // namespace
}  // namespace pipelab

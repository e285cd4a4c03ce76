// The in-process communicator between devices: conformance on emulated ones, whose work waits until
// somebody waits for it, without and with graphs.
#include <deque>
#include <memory>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/comm/conformance.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/functions.h"
#include "kernels/tensor/arena.h"
#include "kernels/tensor/host_values.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

void RunOnDevices(bool graphs, int size, const RankBody& body) {
  InProcessOptions options;
  gpu::EmulatedOptions emulated;
  emulated.graphs = graphs;
  emulated.graph_limits.fewest_pieces = 1;
  std::deque<Arena> arenas;
  for (int r = 0; r < size; ++r) {
    options.devices.push_back(gpu::MakeEmulatedDevice(emulated));
    arenas.emplace_back(options.devices.back());
  }
  auto ranks = MakeInProcessCommunicators(size, options);
  std::vector<std::thread> threads;
  for (int r = 0; r < size; ++r) {
    threads.emplace_back([&, r] { body(*ranks[r], arenas[r]); });
  }
  for (std::thread& t : threads) t.join();
  ranks.clear();
}

class EmulatedConformance : public testing::TestWithParam<ConformanceCase> {};

TEST_P(EmulatedConformance, Holds) {
  for (const bool graphs : {false, true}) {
    GetParam().run([graphs](int size, const RankBody& body) { RunOnDevices(graphs, size, body); });
  }
}

INSTANTIATE_TEST_SUITE_P(All, EmulatedConformance, testing::ValuesIn(ConformanceCases()),
                         [](const testing::TestParamInfo<ConformanceCase>& info) {
                           return info.param.name;
                         });

// What is still queued when a tensor is sent is done before the receiver sees it, and a block is
// not reused before the receiver's work on it.
class EmulatedDevices : public testing::TestWithParam<bool> {};

INSTANTIATE_TEST_SUITE_P(Graphs, EmulatedDevices, testing::Bool());

TEST_P(EmulatedDevices, WorkGoesAheadOfItsMessage) {
  RunOnDevices(GetParam(), 2, [](Communicator& comm, Arena& arena) {
    const auto device = std::static_pointer_cast<gpu::Device>(arena.memory());
    for (int i = 0; i < 50; ++i) {
      device->BeginStep();  // earlier messages' memory comes again
      if (comm.rank() == 0) {
        Tensor x = arena.Zeros(DataType::kFloat32, {1000}, MemoryKind::kActivation);
        float* const values = static_cast<float*>(x.data());
        gpu::Fill(*device, static_cast<float>(i), 1, values + 999);
        PIPELAB_ASSERT_OK_AND_ASSIGN(Ticket t, comm.Send(std::move(x), 1, i));
        ASSERT_THAT(comm.Wait(t, kPatience), IsOk());
        continue;
      }
      PIPELAB_ASSERT_OK_AND_ASSIGN(Ticket t, Post(comm, arena, {DataType::kFloat32, {1000}}, 0, i));
      PIPELAB_ASSERT_OK_AND_ASSIGN(Tensor x, comm.Wait(t, kPatience));
      const Tensor copy = arena.Allocate(DataType::kFloat32, {1000}, MemoryKind::kActivation);
      CopyTensor(x, copy);
      x = Tensor();  // given back while the copy is still queued
      EXPECT_EQ(HostValues(copy)[999], static_cast<float>(i));
    }
  });
}

// A receiver works on a tensor where the sender has put it: what only one of them reaches is no
// message.
TEST(EmulatedDevicesDeathTest, HostMemoryIsNotHandedToADevice) {
  Arena host, device(gpu::MakeEmulatedDevice());
  const auto hand_over = [](Arena& from, Arena& to) {
    const Tensor x = from.Allocate(DataType::kFloat32, {4}, MemoryKind::kActivation);
    HandOver(x, to.Reserve(Bytes(16), MemoryKind::kActivation));
  };
  EXPECT_DEATH(hand_over(host, device), "a tensor of the host handed over to a device");
  EXPECT_DEATH(hand_over(device, host), "a tensor of a device handed over to the host");
  hand_over(host, host);
  hand_over(device, device);
}

}  // namespace
}  // namespace pipelab

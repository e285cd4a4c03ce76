// Cost of the in-process communicator.
//
//   bazel run //kernels/comm:in_process_benchmark
//
// HandOver is the hot path alone: one thread is sender and receiver, nobody waits. PingPong adds
// the wake-ups of two threads. AllReduce is what a gradient reduction costs per rank.
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "benchmark/benchmark.h"
#include "kernels/comm/communicator.h"
#include "kernels/tensor/arena.h"

namespace pipelab {
namespace {

constexpr absl::Duration kLimit = absl::Seconds(60);
const TensorSpec kSpec{DataType::kFloat32, {16}};

void BM_HandOver(benchmark::State& state) {
  auto ranks = MakeInProcessCommunicators(1, {});
  Communicator& comm = *ranks[0];
  Arena arena;
  Tensor x = arena.Allocate(kSpec.type, kSpec.shape, MemoryKind::kActivation);
  for (auto _ : state) {
    const Ticket r = *comm.Receive(kSpec, 0, 1, arena.Reserve(Bytes(64), MemoryKind::kActivation));
    const Ticket s = *comm.Send(std::move(x), 0, 1);
    x = *comm.Wait(r, kLimit);
    benchmark::DoNotOptimize(comm.Wait(s, kLimit));
  }
}
BENCHMARK(BM_HandOver);

void BM_PingPong(benchmark::State& state) {
  auto ranks = MakeInProcessCommunicators(2, {});
  const auto turn = [](Communicator& comm, Arena& arena, Tensor x) -> absl::StatusOr<Tensor> {
    const int peer = 1 - comm.rank();
    auto r = comm.Receive(kSpec, peer, 1, arena.Reserve(Bytes(64), MemoryKind::kActivation));
    if (!r.ok()) return r.status();
    if (!x.empty()) {
      auto s = comm.Send(std::move(x), peer, 1);
      if (!s.ok()) return s.status();
      if (auto done = comm.Wait(*s, kLimit); !done.ok()) return done;
    }
    return comm.Wait(*r, kLimit);
  };
  std::thread other([&] {
    Arena arena;
    for (auto x = turn(*ranks[1], arena, Tensor()); x.ok();) {
      x = turn(*ranks[1], arena, *std::move(x));
    }
    ranks[1] = nullptr;  // its last receive is charged to the arena
  });
  {
    Arena arena;
    Tensor x = arena.Allocate(kSpec.type, kSpec.shape, MemoryKind::kActivation);
    for (auto _ : state) x = *turn(*ranks[0], arena, std::move(x));
    ranks[0]->Abort(absl::CancelledError("done"));
  }
  other.join();
}
BENCHMARK(BM_PingPong)->UseRealTime();

void BM_AllReduce(benchmark::State& state) {
  const int64_t n = state.range(0);
  auto ranks = MakeInProcessCommunicators(2, {});
  const std::vector<int> group = {0, 1};
  std::thread other([&] {
    Arena arena;
    const Tensor x = arena.Zeros(DataType::kFloat32, {n}, MemoryKind::kGradient);
    while (ranks[1]->AllReduce(x, group, kLimit).ok()) {
    }
  });
  Arena arena;
  const Tensor x = arena.Zeros(DataType::kFloat32, {n}, MemoryKind::kGradient);
  for (auto _ : state) benchmark::DoNotOptimize(ranks[0]->AllReduce(x, group, kLimit));
  ranks[0]->Abort(absl::CancelledError("done"));
  other.join();
  state.SetBytesProcessed(state.iterations() * n * 4);
}
BENCHMARK(BM_AllReduce)->Arg(1)->Arg(1 << 16)->Arg(1 << 22)->UseRealTime();

}  // namespace
}  // namespace pipelab

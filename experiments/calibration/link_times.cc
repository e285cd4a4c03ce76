#include "experiments/calibration/link_times.h"

#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "experiments/calibration/kernel_times.h"
#include "kernels/comm/communicator.h"
#include "kernels/tensor/arena.h"
#include "tools/base/clocks.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr absl::Duration kWaitLimit = absl::Seconds(30);
constexpr int kWarmUp = 20;

// Receives from the peer and, where it has something, sends first.
absl::StatusOr<Tensor> Turn(Communicator* comm, Arena* arena, const TensorSpec& spec, Tensor x) {
  const int peer = 1 - comm->rank();
  PIPELAB_ASSIGN_OR_RETURN(
      const Ticket receive,
      comm->Receive(spec, peer, /*tag=*/1,
                    arena->Reserve(Bytes(4) * NumElements(spec.shape), MemoryKind::kActivation)));
  if (!x.empty()) {
    PIPELAB_ASSIGN_OR_RETURN(const Ticket send, comm->Send(std::move(x), peer, 1));
    PIPELAB_RETURN_IF_ERROR(comm->Wait(send, kWaitLimit).status());
  }
  return comm->Wait(receive, kWaitLimit);
}

// Seconds of one way, the median.
absl::StatusOr<double> OneWay(int64_t bytes, int round_trips) {
  const TensorSpec spec{DataType::kFloat32, {bytes / 4}};
  auto ranks = MakeInProcessCommunicators(2, {});
  std::thread other([&ranks, &spec] {
    Arena arena;
    for (auto x = Turn(ranks[1].get(), &arena, spec, Tensor()); x.ok();) {
      x = Turn(ranks[1].get(), &arena, spec, *std::move(x));
    }
    ranks[1] = nullptr;  // its last receive is charged to the arena
  });
  absl::Status status;
  std::vector<double> seconds;
  {
    Arena arena;
    Tensor x = arena.Zeros(spec.type, spec.shape, MemoryKind::kActivation);
    for (int i = 0; i < kWarmUp + round_trips && status.ok(); ++i) {
      const int64_t begin = WallNs();
      // NOLINTNEXTLINE(bugprone-use-after-move): x is what came back, or this is the last turn.
      absl::StatusOr<Tensor> back = Turn(ranks[0].get(), &arena, spec, std::move(x));
      if (i >= kWarmUp) seconds.push_back(static_cast<double>(WallNs() - begin) * 1e-9 / 2);
      status = back.status();
      if (status.ok()) x = *std::move(back);
    }
    ranks[0]->Abort(absl::CancelledError("done"));
  }
  other.join();
  PIPELAB_RETURN_IF_ERROR(status);
  return Median(std::move(seconds));
}

}  // namespace

absl::StatusOr<LinkTimes> MeasureLink(const LinkTimesOptions& options) {
  LinkTimes times;
  times.round_trips = options.round_trips;
  PIPELAB_ASSIGN_OR_RETURN(times.latency_seconds, OneWay(64, options.round_trips));
  if (options.large_bytes == 0) return times;
  PIPELAB_ASSIGN_OR_RETURN(const double large, OneWay(options.large_bytes, options.round_trips));
  times.bytes_per_second = static_cast<double>(options.large_bytes) / large;
  return times;
}

}  // namespace pipelab

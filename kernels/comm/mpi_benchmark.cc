// Bandwidth of messages between processes, beside the MPI library's own ping-pong in the same run.
//
//   tools/bazel build --config=mpi -c opt //kernels/comm:mpi_benchmark
//   mpirun -n 4 bazel-bin/kernels/comm/mpi_benchmark [SECONDS]
//
// Processes 2 i and 2 i + 1 are a pair, and all pairs send at once: a message goes and one of the
// same size comes back. "MPI" is MPI_Send and MPI_Recv on buffers that stay, one for each, as in
// OSU's; "pipelab" is Send, Receive and Wait of a Communicator. The two take turns in short rounds,
// so that what else the machine does falls on both; the figures are medians of the rounds. Every
// process waits for the others between rounds.
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "glog/logging.h"
#include "kernels/comm/byte_codec.h"
#include "kernels/comm/mpi.h"
#include "kernels/comm/transport.h"
#include "kernels/tensor/arena.h"

namespace pipelab {
namespace {

constexpr absl::Duration kLimit = absl::Seconds(60);
constexpr int kRounds = 15;

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// `turns` messages there and back, as MPI itself has it.
void PlainTurns(int rank, int64_t bytes, int turns, std::vector<char>* out, std::vector<char>* in) {
  const int peer = rank ^ 1, count = static_cast<int>(bytes);
  for (int i = 0; i < turns; ++i) {
    if (rank % 2 == 0) {
      CHECK_EQ(MPI_Send(out->data(), count, MPI_BYTE, peer, 1, MPI_COMM_WORLD), MPI_SUCCESS);
    }
    CHECK_EQ(MPI_Recv(in->data(), count, MPI_BYTE, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE),
             MPI_SUCCESS);
    if (rank % 2 == 1) {
      CHECK_EQ(MPI_Send(out->data(), count, MPI_BYTE, peer, 1, MPI_COMM_WORLD), MPI_SUCCESS);
    }
  }
}

// The same by a Communicator, as the executor calls it: receives are posted ahead, and what comes
// is new memory.
void OwnTurns(Communicator& comm, Arena& arena, int64_t bytes, int turns, Tensor* x) {
  const TensorSpec spec{DataType::kFloat32, {bytes / 4}};
  const int peer = comm.rank() ^ 1;
  const auto post = [&] {
    auto r = comm.Receive(spec, peer, 1, arena.Reserve(Bytes(bytes), MemoryKind::kActivation));
    CHECK(r.ok()) << r.status();
    return *r;
  };
  const auto send = [&] {
    auto s = comm.Send(std::move(*x), peer, 1);
    CHECK(s.ok()) << s.status();
    return *s;
  };
  const auto wait = [&](Ticket ticket) {
    auto done = comm.Wait(ticket, kLimit);
    CHECK(done.ok()) << done.status();
    return *std::move(done);
  };
  for (int i = 0; i < turns; ++i) {
    const Ticket receive = post();
    Ticket sent = 0;
    if (comm.rank() % 2 == 0) sent = send();
    *x = wait(receive);
    if (comm.rank() % 2 == 1) sent = send();
    wait(sent);
  }
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Seconds of the slowest pair, the same in every process.
double Slowest(ProcessGroup& group, double own) {
  std::string mine;
  ByteWriter(&mine).Double(own);
  auto all = group.ToAll(mine, kLimit);
  CHECK(all.ok()) << all.status();
  double most = 0;
  for (const std::string& bytes : *all) most = std::max(most, ByteReader(bytes).Double());
  return most;
}

double TimeOf(ProcessGroup& group, const std::function<void()>& work) {
  CHECK(group.Meet(kLimit).ok());
  const Clock::time_point begin = Clock::now();
  work();
  return Slowest(group, SecondsSince(begin));
}

struct Speeds {
  double plain = 0, own = 0;  // bytes in a second, one way, of the slowest pair
  double ratio = 0;           // the median of the rounds'
};

Speeds Measure(Transport& transport, Communicator& comm, int64_t bytes, double seconds) {
  ProcessGroup& group = *transport.processes();
  const int rank = group.rank();
  Arena arena;
  Tensor x = arena.Zeros(DataType::kFloat32, {bytes / 4}, MemoryKind::kActivation);
  std::vector<char> out(static_cast<size_t>(bytes)), in(static_cast<size_t>(bytes));
  const auto plain = [&](int turns) {
    return TimeOf(group, [&] { PlainTurns(rank, bytes, turns, &out, &in); });
  };
  const auto own = [&](int turns) {
    return TimeOf(group, [&] { OwnTurns(comm, arena, bytes, turns, &x); });
  };
  // Pages are touched and speeds known roughly.
  const double once = (plain(2) + own(2)) / 4;
  const int turns = std::max(1, static_cast<int>(seconds / (2 * kRounds) / once));
  std::vector<double> plains, owns, ratios;
  for (int round = 0; round < kRounds; ++round) {
    // In turns also which of the two is first.
    const double a = round % 2 == 0 ? plain(turns) : 0;
    const double b = own(turns);
    const double c = round % 2 == 0 ? a : plain(turns);
    plains.push_back(2.0 * bytes * turns / c);
    owns.push_back(2.0 * bytes * turns / b);
    ratios.push_back(c / b);
  }
  return {Median(plains), Median(owns), Median(ratios)};
}

int Main(double seconds) {
  auto transport = JoinMpi({});
  CHECK(transport.ok()) << transport.status();
  ProcessGroup& group = *(*transport)->processes();
  if (group.size() % 2 != 0) {
    if (group.rank() == 0) {
      std::fprintf(stderr, "%d processes are no pairs; start an even number\n", group.size());
    }
    return 2;
  }
  {
    auto own = (*transport)->Connect(group.size());
    CHECK(own.ok()) << own.status();
    if (group.rank() == 0) {
      std::printf("%d processes, pairs at once; one way [GB/s], the slowest pair's\n",
                  group.size());
      std::printf("%10s  %8s  %8s  %6s\n", "bytes", "MPI", "pipelab", "ratio");
    }
    for (const int64_t bytes :
         {int64_t{4} << 10, int64_t{64} << 10, int64_t{1} << 20, int64_t{16} << 20}) {
      const Speeds s = Measure(**transport, *(*own)[0], bytes, seconds);
      if (group.rank() == 0) {
        std::printf("%10lld  %8.3f  %8.3f  %6.2f\n", static_cast<long long>(bytes), s.plain / 1e9,
                    s.own / 1e9, s.ratio);
        std::fflush(stdout);
      }
    }
  }
  CHECK(group.Meet(kLimit).ok());
  return 0;
}

}  // namespace
}  // namespace pipelab

int main(int argc, char** argv) { return pipelab::Main(argc > 1 ? std::atof(argv[1]) : 10); }

// Conformance: collectives.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/comm/conformance.h"
#include "kernels/tensor/host_values.h"
#include "tools/base/rng.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

// Groups of 6 ranks that a case uses one after the other; those in a row are disjoint, so that
// their collectives run at the same time.
const std::vector<std::vector<int>>& Groups() {
  static const auto& groups = *new std::vector<std::vector<int>>{
      {0, 1, 2, 3, 4, 5}, {0, 2, 3}, {1, 5}, {4}, {1, 2, 3, 4, 5}, {0, 5}, {2, 4}};
  return groups;
}

// Calls fn(group, index of this rank in it) for each group that this rank is in.
template <typename Fn>
void ForMyGroups(const Communicator& comm, Fn fn) {
  for (const std::vector<int>& group : Groups()) {
    const auto at = std::find(group.begin(), group.end(), comm.rank());
    if (at != group.end()) fn(group, static_cast<int>(at - group.begin()));
  }
}

Tensor Floats(Arena& arena, int64_t n) {
  return arena.Allocate(DataType::kFloat32, {n}, MemoryKind::kGradient);
}

// Values of many magnitudes: another order of summation would give other bits.
float Rough(int rank, int64_t i) {
  const CounterRng rng(3, 100 + rank);
  return std::ldexp(rng.Normal(i), static_cast<int>(rng.Below(i + (1 << 20), 24)));
}

float SumInGroupOrder(const std::vector<int>& group, int64_t i) {
  float sum = Rough(group[0], i);
  for (size_t k = 1; k < group.size(); ++k) sum += Rough(group[k], i);
  return sum;
}

// Element i becomes Rough(rank, i).
void FillRough(const Tensor& x, int64_t rank) {
  FillOnHost<float>(x, [&](absl::Span<float> all) {
    for (size_t i = 0; i < all.size(); ++i) all[i] = Rough(rank, static_cast<int64_t>(i));
  });
}

void FillAll(const Tensor& x, float value) {
  FillOnHost<float>(x, [&](absl::Span<float> all) { std::fill(all.begin(), all.end(), value); });
}

void AllReduceInGroupOrder(const RankRunner& run) {
  run(6, [&](Communicator& comm, Arena& arena) {
    for (int64_t n : {0, 1, 2, 7, 33, 1000, 4097}) {
      ForMyGroups(comm, [&](const std::vector<int>& group, int) {
        Tensor x = Floats(arena, n);
        FillRough(x, comm.rank());
        ASSERT_THAT(comm.AllReduce(x, group, kPatience), IsOk());
        const std::vector<float> sums = HostValues(x);
        for (int64_t i = 0; i < n; ++i) {
          ASSERT_EQ(sums[i], SumInGroupOrder(group, i)) << "of " << n << ": " << i;
        }
      });
    }
  });
}

void LargestOfAll(const RankRunner& run) {
  run(6, [&](Communicator& comm, Arena& arena) {
    for (int64_t n : {1, 33, 1025}) {
      ForMyGroups(comm, [&](const std::vector<int>& group, int) {
        Tensor x = Floats(arena, n), ints = TestTensor(arena, {DataType::kInt32, {n}}, 0);
        FillRough(x, comm.rank());
        std::vector<float> floats = HostValues(x);
        SetHostIds(ints, std::vector<int32_t>(floats.begin(), floats.end()));
        // A NaN of one member is the group's, wherever the member stands.
        const int one = group[static_cast<size_t>(n) % group.size()];
        if (comm.rank() == one) floats[n - 1] = std::nanf("");
        SetHostValues(x, floats);
        ASSERT_THAT(comm.AllReduce(x, group, kPatience, ReduceOp::kMax), IsOk());
        ASSERT_THAT(comm.AllReduce(ints, group, kPatience, ReduceOp::kMax), IsOk());
        floats = HostValues(x);
        const std::vector<int32_t> whole = HostIds(ints);
        for (int64_t i = 0; i < n; ++i) {
          float most = Rough(group[0], i);
          for (int r : group) most = std::max(most, Rough(r, i));
          ASSERT_EQ(whole[i], static_cast<int32_t>(most)) << i;
          if (i + 1 < n) {
            ASSERT_EQ(floats[i], most) << i;
          }
        }
        ASSERT_TRUE(std::isnan(floats[n - 1]));
      });
    }
  });
}

// Sums of the test values fit each type: at most 6 * 126, but bfloat16 has 8 bits, hence its own
// rule.
void AllReduceOtherTypes(const RankRunner& run) {
  run(3, [&](Communicator& comm, Arena& arena) {
    const std::vector<int> group = {0, 1, 2};
    Tensor ints = TestTensor(arena, {DataType::kInt32, {5, 21}}, comm.rank());
    ASSERT_THAT(comm.AllReduce(ints, group, kPatience), IsOk());
    const std::vector<int32_t> sums = HostIds(ints);
    for (int64_t i = 0; i < ints.size(); ++i) {
      ASSERT_EQ(sums[i], TestValue(0, i) + TestValue(1, i) + TestValue(2, i)) << i;
    }
    // 1 + 2^-8 + 2^-8: in float32 and rounded once this is the bfloat16 after 1; rounded after each
    // addition it would stay 1.
    Tensor halves = arena.Allocate(DataType::kBFloat16, {77}, MemoryKind::kGradient);
    SetHostHalves(halves, std::vector<uint16_t>(77, comm.rank() == 0 ? 0x3f80 : 0x3b80));
    ASSERT_THAT(comm.AllReduce(halves, group, kPatience), IsOk());
    EXPECT_EQ(HostHalves(halves), std::vector<uint16_t>(77, 0x3f81));
  });
}

void ReduceScatterParts(const RankRunner& run) {
  run(6, [&](Communicator& comm, Arena& arena) {
    for (int64_t n : {0, 1, 5, 1025}) {
      for (bool in_place : {false, true}) {
        ForMyGroups(comm, [&](const std::vector<int>& group, int me) {
          Tensor data = Floats(arena, n * group.size());
          FillRough(data, comm.rank());
          Tensor part = in_place ? data.Rows(me * n, (me + 1) * n) : Floats(arena, n);
          ASSERT_THAT(comm.ReduceScatter(data, part, group, kPatience), IsOk());
          const std::vector<float> sums = HostValues(part);
          for (int64_t i = 0; i < n; ++i) {
            ASSERT_EQ(sums[i], SumInGroupOrder(group, me * n + i)) << "of " << n << ": " << i;
          }
        });
      }
    }
  });
}

void AllGatherParts(const RankRunner& run) {
  run(6, [&](Communicator& comm, Arena& arena) {
    for (int64_t n : {0, 1, 5, 1025}) {
      for (bool in_place : {false, true}) {
        ForMyGroups(comm, [&](const std::vector<int>& group, int me) {
          Tensor data = Floats(arena, n * group.size());
          Tensor part = in_place ? data.Rows(me * n, (me + 1) * n) : Floats(arena, n);
          FillRough(part, comm.rank());
          ASSERT_THAT(comm.AllGather(part, data, group, kPatience), IsOk());
          const std::vector<float> all = HostValues(data);
          for (int64_t i = 0; i < data.size(); ++i) {
            ASSERT_EQ(all[i], Rough(group[i / n], i % n)) << "of " << n << ": " << i;
          }
        });
      }
    }
  });
}

// Elements that `from` sends to `to`: none for some pairs, among them a rank's own part.
int64_t PartSize(int from, int to, int64_t n) { return (from * 5 + to * 3) % 4 * n; }

// Parts of unequal and of no size, in tensors that have room at the end, of each width.
void AllToAllParts(const RankRunner& run) {
  run(6, [&](Communicator& comm, Arena& arena) {
    for (int64_t n : {0, 1, 7, 513}) {
      ForMyGroups(comm, [&](const std::vector<int>& group, int) {
        std::vector<int64_t> to, from;
        int64_t sent = 0, taken = 0;
        for (const int r : group) {
          to.push_back(PartSize(comm.rank(), r, n));
          from.push_back(PartSize(r, comm.rank(), n));
          sent += to.back();
          taken += from.back();
        }
        Tensor data = Floats(arena, sent + 3), result = Floats(arena, taken + 2);
        FillRough(data, comm.rank());
        FillAll(result, -7);
        ASSERT_THAT(comm.AllToAll(data, to, result, from, group, kPatience), IsOk());
        FillAll(data, 0);  // it is the caller's again
        const std::vector<float> all = HostValues(result);
        int64_t at = 0;
        for (size_t i = 0; i < group.size(); ++i) {
          int64_t before = 0;  // in what member i sends
          for (const int r : group) {
            if (r == comm.rank()) break;
            before += PartSize(group[i], r, n);
          }
          for (int64_t k = 0; k < from[i]; ++k, ++at) {
            ASSERT_EQ(all[at], Rough(group[i], before + k)) << "of rank " << group[i] << ": " << k;
          }
        }
        EXPECT_EQ(all[at], -7);
        EXPECT_EQ(all[at + 1], -7);
      });
    }
    const std::vector<int> pair = {comm.rank() / 2 * 2, comm.rank() / 2 * 2 + 1};
    const bool first = comm.rank() % 2 == 0;
    Tensor halves = arena.Allocate(DataType::kBFloat16, {3}, MemoryKind::kGradient);
    Tensor got = arena.Allocate(DataType::kBFloat16, {3}, MemoryKind::kGradient);
    SetHostHalves(halves, std::vector<uint16_t>(3, first ? 0x3f80 : 0x4000));
    const std::vector<int64_t> whole =
        first ? std::vector<int64_t>{0, 3} : std::vector<int64_t>{3, 0};
    ASSERT_THAT(comm.AllToAll(halves, whole, got, whole, pair, kPatience), IsOk());
    EXPECT_EQ(HostHalves(got), std::vector<uint16_t>(3, first ? 0x4000 : 0x3f80));
  });
}

void BroadcastFromEachRoot(const RankRunner& run) {
  run(6, [&](Communicator& comm, Arena& arena) {
    ForMyGroups(comm, [&](const std::vector<int>& group, int) {
      for (int root : group) {
        for (int64_t n : {0, 3, 2000}) {
          const TensorSpec spec{DataType::kFloat32, {n}};
          Tensor x = TestTensor(arena, spec, comm.rank());
          ASSERT_THAT(comm.Broadcast(x, root, group, kPatience), IsOk());
          ASSERT_EQ(FirstDifference(x, root), -1) << "root " << root << ", " << n;
        }
      }
    });
  });
}

// A member may change its tensor as soon as its call is back: nobody still reads the old one.
void MembersMayWriteAtOnce(const RankRunner& run) {
  run(4, [&](Communicator& comm, Arena& arena) {
    const std::vector<int> group = {0, 1, 2, 3};
    const int64_t n = 3000;
    const TensorSpec spec{DataType::kFloat32, {n}};
    Tensor part = Floats(arena, n), all = Floats(arena, 4 * n);
    for (int round = 0; round < 20; ++round) {
      FillAll(part, static_cast<float>(round * 10 + comm.rank()));
      ASSERT_THAT(comm.AllGather(part, all, group, kPatience), IsOk());
      FillAll(part, -1);
      const std::vector<float> gathered = HostValues(all);
      for (int64_t i = 0; i < 4 * n; ++i) ASSERT_EQ(gathered[i], round * 10 + i / n);
      FillAll(part, static_cast<float>(round * 10 + comm.rank()));
      ASSERT_THAT(comm.AllReduce(part, group, kPatience), IsOk());
      const std::vector<float> sums = HostValues(part);
      for (int64_t i = 0; i < n; ++i) ASSERT_EQ(sums[i], round * 40 + 6);
    }
  });
}

// Several collectives under way at once, of one group and of groups that overlap, with messages and
// the caller's own work between begin and wait.
void SeveralUnderWay(const RankRunner& run) {
  run(4, [&](Communicator& comm, Arena& arena) {
    const int64_t n = 700;
    const std::vector<std::vector<int>> groups = {{0, 1, 2, 3}, {0, 1}, {2, 3},      {0, 1, 2, 3},
                                                  {1, 2},       {0, 3}, {0, 1, 2, 3}};
    for (int round = 0; round < 5; ++round) {
      struct Begun {
        Ticket ticket;
        Tensor sum, gathered;
        const std::vector<int>* group;
      };
      std::vector<Begun> begun;
      for (const std::vector<int>& group : groups) {
        if (std::count(group.begin(), group.end(), comm.rank()) == 0) continue;
        Begun b;
        b.group = &group;
        b.sum = Floats(arena, n);
        FillRough(b.sum, comm.rank() + round);
        if (begun.size() % 2 == 0) {
          PIPELAB_ASSERT_OK_AND_ASSIGN(b.ticket, comm.BeginAllReduce(b.sum, group, ReduceOp::kSum));
        } else {
          b.gathered = Floats(arena, n * group.size());
          PIPELAB_ASSERT_OK_AND_ASSIGN(b.ticket, comm.BeginAllGather(b.sum, b.gathered, group));
        }
        begun.push_back(std::move(b));
      }
      const int next = (comm.rank() + 1) % 4, before = (comm.rank() + 3) % 4;
      const TensorSpec spec{DataType::kFloat32, {n}};
      PIPELAB_ASSERT_OK_AND_ASSIGN(Ticket r, Post(comm, arena, spec, before, 1));
      PIPELAB_ASSERT_OK_AND_ASSIGN(Ticket s, comm.Send(TestTensor(arena, spec, round), next, 1));
      ASSERT_THAT(comm.Wait(r, kPatience), IsOk());
      for (size_t k = 0; k < begun.size(); ++k) {
        const Begun& b = begun[k];
        ASSERT_THAT(comm.Wait(b.ticket, kPatience), IsOk());
        const std::vector<float> values = HostValues(k % 2 == 0 ? b.sum : b.gathered);
        for (int64_t i = 0; i < n; ++i) {
          if (k % 2 == 0) {
            float sum = Rough((*b.group)[0] + round, i);
            for (size_t m = 1; m < b.group->size(); ++m) sum += Rough((*b.group)[m] + round, i);
            ASSERT_EQ(values[i], sum) << "collective " << k << ", " << i;
            continue;
          }
          for (size_t m = 0; m < b.group->size(); ++m) {
            ASSERT_EQ(values[m * n + i], Rough((*b.group)[m] + round, i));
          }
        }
      }
      ASSERT_THAT(comm.Wait(s, kPatience), IsOk());
    }
  });
}

}  // namespace

std::vector<ConformanceCase> CollectiveCases() {
  return {{"AllReduceInGroupOrder", AllReduceInGroupOrder},
          {"AllReduceOtherTypes", AllReduceOtherTypes},
          {"LargestOfAll", LargestOfAll},
          {"ReduceScatterParts", ReduceScatterParts},
          {"AllGatherParts", AllGatherParts},
          {"AllToAllParts", AllToAllParts},
          {"BroadcastFromEachRoot", BroadcastFromEachRoot},
          {"MembersMayWriteAtOnce", MembersMayWriteAtOnce},
          {"SeveralUnderWay", SeveralUnderWay}};
}

}  // namespace pipelab

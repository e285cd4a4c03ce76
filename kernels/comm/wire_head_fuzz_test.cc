// Heads that are right, heads that are not, and damaged ones from one seed.
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/comm/wire_head.h"
#include "kernels/tensor/arena.h"
#include "tools/base/fuzz_mutations.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::HasSubstr;

const std::vector<int> kProcessOf = {0, 0, 1, 1};  // [device]

// From device 2 of process 1 to device 1 of process 0.
MpiHead Message() {
  Arena arena;
  MpiHead head;
  EXPECT_THAT(
      SetSpec(arena.Allocate(DataType::kFloat32, {4, 2}, MemoryKind::kActivation), 2, &head),
      IsOk());
  head.from = 2;
  head.to = 1;
  head.bytes = 32;
  return head;
}

MpiHead PartOfCollective() {
  MpiHead head;
  head.from = 3;
  head.number = 5;
  head.bytes = 1 << 20;
  head.bytes_tag = 9;
  head.op = static_cast<int32_t>(CollectiveOp::kBroadcast);
  head.root = 3;
  head.size = 7;
  return head;
}

std::string BytesOf(const MpiHead& head) {
  std::string bytes(reinterpret_cast<const char*>(&head), sizeof(head));
  if (head.bytes_tag < 0) bytes += std::string(32, 'x');
  return bytes;
}

absl::StatusOr<MpiHead> Read(const MpiHead& head) {
  return ReadMpiHead(BytesOf(head), /*process=*/1, /*own=*/0, kProcessOf);
}

auto Bad(const std::string& what) { return StatusIs(absl::StatusCode::kDataLoss, HasSubstr(what)); }

TEST(WireHead, WhatIsSentIsRead) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const MpiHead message, Read(Message()));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const TensorSpec spec, SpecOf(message, message.from));
  EXPECT_EQ(spec.type, DataType::kFloat32);
  EXPECT_EQ(spec.shape, Shape({4, 2}));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const MpiHead part, Read(PartOfCollective()));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const CollectiveClaim claim, ClaimOf(part, part.from));
  EXPECT_TRUE((claim == CollectiveClaim{CollectiveOp::kBroadcast, 3, DataType::kFloat32, 7}));
}

TEST(WireHead, ManyDimensionsAreNotSent) {
  Arena arena;
  WireHead head;
  const Tensor t = arena.Allocate(DataType::kFloat32, Shape(9, 1), MemoryKind::kActivation);
  EXPECT_THAT(SetSpec(t, 4, &head), StatusIs(absl::StatusCode::kInvalidArgument,
                                             "rank 4 sends 9 dimensions; at most 8 can be"));
}

TEST(WireHead, WhatCannotBeIsNamedWithItsSender) {
  const auto spec_with = [](auto change) {
    WireHead head = Message();
    change(head);
    return SpecOf(head, 2).status();
  };
  EXPECT_THAT(spec_with([](WireHead& h) { h.dims = 9; }),
              Bad("rank 2 sent a head with 9 dimensions; at most 8 can be"));
  EXPECT_THAT(spec_with([](WireHead& h) { h.dims = -1; }), Bad("with -1 dimensions"));
  EXPECT_THAT(spec_with([](WireHead& h) { h.dims = std::numeric_limits<int32_t>::max(); }),
              Bad("2147483647 dimensions"));
  EXPECT_THAT(spec_with([](WireHead& h) { h.type = 3; }), Bad("data type 3, which there is not"));
  EXPECT_THAT(spec_with([](WireHead& h) { h.type = 256; }), Bad("data type 256"));
  EXPECT_THAT(spec_with([](WireHead& h) { h.shape[1] = -2; }), Bad("size -2 of dimension 1"));
  EXPECT_THAT(spec_with([](WireHead& h) { h.shape[1] = int64_t{1} << 60; }),
              Bad("of dimension 1, which no tensor has"));
  const auto claim_with = [](auto change) {
    WireHead head = PartOfCollective();
    change(head);
    return ClaimOf(head, 3).status();
  };
  EXPECT_THAT(claim_with([](WireHead& h) { h.op = 7; }),
              Bad("rank 3 sent a head with collective 7"));
  EXPECT_THAT(claim_with([](WireHead& h) { h.op = -1; }), Bad("collective -1"));
  EXPECT_THAT(claim_with([](WireHead& h) { h.size = -1; }), Bad("-1 elements"));
  EXPECT_THAT(claim_with([](WireHead& h) { h.type = -1; }), Bad("data type -1"));
}

TEST(WireHead, AMessageIsFromAndToWhereItCanBe) {
  const auto read_with = [](auto change) {
    MpiHead head = Message();
    change(head);
    return Read(head).status();
  };
  EXPECT_THAT(read_with([](MpiHead&) {}), IsOk());
  for (const int from : {-1, 0, 1, 4, 1 << 30}) {
    EXPECT_THAT(read_with([&](MpiHead& h) { h.from = from; }),
                Bad(absl::StrCat("process 1 sent a head from rank ", from)));
  }
  for (const int to : {-1, 2, 3, 4, 1 << 30}) {
    EXPECT_THAT(read_with([&](MpiHead& h) { h.to = to; }),
                Bad(absl::StrCat("process 1 sent a head to rank ", to)));
  }
  EXPECT_THAT(read_with([](MpiHead& h) { h.bytes = 33; }), Bad("33 bytes with 32 behind it"));
  EXPECT_THAT(read_with([](MpiHead& h) { h.bytes = -1; }), Bad("-1 bytes"));
  EXPECT_THAT(read_with([](MpiHead& h) { h.shape[0] = 5; }), Bad("32 bytes for float32[5, 2]"));
  EXPECT_THAT(read_with([](MpiHead& h) { h.dims = 12; }), Bad("rank 2 sent a head with 12"));
  EXPECT_THAT(ReadMpiHead(std::string(sizeof(MpiHead) - 1, '\0'), 1, 0, kProcessOf),
              Bad("process 1 sent a head of "));
}

TEST(WireHeadFuzz, Mutations) {
  RunMutations({BytesOf(Message()), BytesOf(PartOfCollective())}, 100000);
}

}  // namespace
}  // namespace pipelab

// The cache of graphs with a worker that notes down what it does: what is replayed, changed,
// captured, launched piece by piece, and what makes room.
#include "kernels/cuda/graph_cache.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace gpu {
namespace {

using testing::ElementsAre;

// Pieces are numbers. `kFixed` ones stand for a library's.
struct Number {
  int64_t value;
};

void Entry(void*, KernelLaunch*) {}
void OtherEntry(void*, KernelLaunch*) {}

class NumberList {
 public:
  NumberList& Kernel(int64_t value, KernelWork::Entry entry = &Entry) {
    return Add(WorkKind::kKernel, value, entry);
  }
  NumberList& Product(int64_t value) { return Add(WorkKind::kProduct, value, nullptr); }
  operator const WorkList&() const { return list_; }  // NOLINT(google-explicit-constructor)

 private:
  NumberList& Add(WorkKind kind, int64_t value, KernelWork::Entry entry) {
    Number number{value};
    list_.Add({kind, "number", entry, &number, sizeof(number)});
    return *this;
  }
  WorkList list_;
};

class NotingWorker : public Worker {
 public:
  absl::Status Do(const Work& work) override {
    const int64_t value = ValueOf(work);
    if (value == fails_at) return absl::InternalError("number fails");
    done.push_back(value);
    return absl::OkStatus();
  }
  std::unique_ptr<Graph> MakeGraph(const WorkList& list) override {
    if (refuses) return nullptr;
    return std::make_unique<NumberGraph>(list, this);
  }

  std::vector<int64_t> Take() { return std::exchange(done, {}); }

  static int64_t ValueOf(const Work& work) {
    return static_cast<const Number*>(work.arguments)->value;
  }

  std::vector<int64_t> done;
  int64_t fails_at = -1;
  int launches = 0, graphs = 0;
  bool refuses = false, changes = true;

 private:
  class NumberGraph : public Graph {
   public:
    NumberGraph(const WorkList& list, NotingWorker* worker) : worker_(worker) {
      for (int i = 0; i < list.size(); ++i) values_.push_back(ValueOf(list[i]));
      ++worker_->graphs;
    }
    ~NumberGraph() override { --worker_->graphs; }
    bool Change(int i, const Work& work) override {
      EXPECT_TRUE(work.can_change());
      if (!worker_->changes) return false;
      values_[i] = ValueOf(work);
      return true;
    }
    absl::Status Launch() override {
      ++worker_->launches;
      for (int64_t value : values_) {
        if (value == worker_->fails_at) return absl::InternalError("a graph fails");
        worker_->done.push_back(value);
      }
      return absl::OkStatus();
    }

   private:
    NotingWorker* const worker_;
    std::vector<int64_t> values_;
  };
};

class GraphCacheTest : public testing::Test {
 protected:
  static NumberList Four(int64_t first, int64_t product = 7) {
    return NumberList().Kernel(first).Product(product).Kernel(first + 1).Kernel(first + 2);
  }

  NotingWorker worker_;
  GraphCache cache_{GraphLimits()};
};

TEST_F(GraphCacheTest, TheSecondIsCapturedAndTheThirdReplayed) {
  for (int time = 0; time < 5; ++time) {
    ASSERT_THAT(cache_.Issue(Four(1), &worker_), IsOk());
    EXPECT_THAT(worker_.Take(), ElementsAre(1, 7, 2, 3)) << time;
    EXPECT_EQ(worker_.launches, time);  // all but the first
  }
  const GraphCounts& counts = cache_.counts();
  EXPECT_EQ(counts.plain, 1);
  EXPECT_EQ(counts.captured, 1);
  EXPECT_EQ(counts.replayed, 3);
  EXPECT_EQ(counts.changed, 0);
  EXPECT_EQ(counts.pieces, 20);
  EXPECT_EQ(counts.pieces_in_graphs, 16);
  EXPECT_EQ(cache_.pieces_kept(), 4);
}

TEST_F(GraphCacheTest, OtherArgumentsOfKernelsChangeTheGraph) {
  for (int time = 0; time < 6; ++time) {
    ASSERT_THAT(cache_.Issue(Four(10 * (time / 2)), &worker_), IsOk());
    const int64_t first = 10 * (time / 2);
    EXPECT_THAT(worker_.Take(), ElementsAre(first, 7, first + 1, first + 2)) << time;
  }
  EXPECT_EQ(cache_.counts().captured, 1);
  EXPECT_EQ(cache_.counts().changed, 2);
  EXPECT_EQ(cache_.counts().replayed, 2);
  EXPECT_EQ(worker_.graphs, 1);
}

TEST_F(GraphCacheTest, OtherKernelsSizesAndProductsAreOtherGraphs) {
  const std::vector<NumberList> lists = {
      Four(1), Four(1, /*product=*/8),
      NumberList().Kernel(1, &OtherEntry).Product(7).Kernel(2).Kernel(3),
      NumberList().Kernel(1).Product(7).Kernel(2).Kernel(3).Kernel(4),
      NumberList().Product(7).Kernel(1).Kernel(2).Kernel(3)};
  for (int time = 0; time < 3; ++time) {
    for (const NumberList& list : lists) ASSERT_THAT(cache_.Issue(list, &worker_), IsOk());
  }
  EXPECT_EQ(worker_.graphs, 5);
  EXPECT_EQ(cache_.counts().plain, 5);
  EXPECT_EQ(cache_.counts().captured, 5);
  EXPECT_EQ(cache_.counts().replayed, 5);
  EXPECT_EQ(cache_.counts().changed, 0);
}

TEST_F(GraphCacheTest, ShortListsAreLaunchedAsTheyAre) {
  for (int time = 0; time < 4; ++time) {
    ASSERT_THAT(cache_.Issue(NumberList().Kernel(1).Kernel(2).Kernel(3), &worker_), IsOk());
    EXPECT_THAT(worker_.Take(), ElementsAre(1, 2, 3));
  }
  EXPECT_EQ(worker_.graphs, 0);
  EXPECT_EQ(cache_.counts().plain, 4);
  EXPECT_EQ(cache_.counts().refused, 0);
}

TEST_F(GraphCacheTest, WhatCannotBeCapturedIsNotTriedAgain) {
  worker_.refuses = true;
  for (int time = 0; time < 4; ++time) {
    ASSERT_THAT(cache_.Issue(Four(time), &worker_), IsOk());
    EXPECT_THAT(worker_.Take(), ElementsAre(time, 7, time + 1, time + 2));
    worker_.refuses = time == 0;
  }
  EXPECT_EQ(worker_.graphs, 0);
  EXPECT_EQ(cache_.counts().plain, 4);
  EXPECT_EQ(cache_.counts().refused, 1);
}

TEST_F(GraphCacheTest, WhatCannotBeChangedLosesItsGraph) {
  worker_.changes = false;
  for (int time = 0; time < 5; ++time) {
    const int64_t first = time < 3 ? 1 : time;
    ASSERT_THAT(cache_.Issue(Four(first), &worker_), IsOk());
    EXPECT_THAT(worker_.Take(), ElementsAre(first, 7, first + 1, first + 2));
    EXPECT_EQ(worker_.graphs, time == 1 || time == 2 ? 1 : 0);
  }
  EXPECT_EQ(cache_.counts().replayed, 1);
  EXPECT_EQ(cache_.counts().refused, 1);
  EXPECT_EQ(cache_.pieces_kept(), 0);
}

TEST_F(GraphCacheTest, FaultsComeOutWhereverTheyAre) {
  worker_.fails_at = 2;
  EXPECT_THAT(cache_.Issue(Four(1), &worker_),
              StatusIs(absl::StatusCode::kInternal, "number fails"));
  EXPECT_THAT(worker_.Take(), ElementsAre(1, 7));
  EXPECT_THAT(cache_.Issue(Four(1), &worker_),
              StatusIs(absl::StatusCode::kInternal, "a graph fails"));
  EXPECT_THAT(cache_.Issue(Four(1), &worker_),
              StatusIs(absl::StatusCode::kInternal, "a graph fails"));
}

// Room for three graphs, and a step of six lists: three of them keep theirs. When the step changes
// for good, its lists get the room.
TEST_F(GraphCacheTest, StaysWithinItsLimits) {
  GraphLimits limits;
  limits.most_pieces = 14;
  limits.idle_lists = 50;
  GraphCache cache(limits);
  const auto steps = [&](int number, int64_t product) {
    for (int step = 0; step < number; ++step) {
      for (int64_t list = 0; list < 6; ++list) {
        ASSERT_THAT(cache.Issue(Four(1, product + list), &worker_), IsOk());
        EXPECT_THAT(worker_.Take(), ElementsAre(1, product + list, 2, 3));
        EXPECT_LE(cache.pieces_kept(), limits.most_pieces);
        EXPECT_EQ(4 * worker_.graphs, cache.pieces_kept());
      }
    }
  };
  steps(10, 100);
  EXPECT_EQ(worker_.graphs, 3);
  EXPECT_EQ(cache.counts().captured, 3);
  EXPECT_EQ(cache.counts().replayed, 3 * 8);
  steps(20, 200);
  EXPECT_EQ(cache.counts().captured, 6);
  EXPECT_GE(cache.counts().replayed, 3 * 8 + 3 * 9);
  cache.Clear();
  EXPECT_EQ(worker_.graphs, 0);
  EXPECT_EQ(cache.pieces_kept(), 0);
}

TEST(WorkList, KeepsBytesAlignedAndComparesThem) {
  WorkList list;
  for (int64_t bytes : {1, 16, 17, 40}) {
    std::string text(bytes, static_cast<char>('a' + bytes % 26));
    list.Add({WorkKind::kFill, "text", nullptr, text.data(), bytes});
  }
  ASSERT_EQ(list.size(), 4);
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(list[i].arguments) % 16, 0u);
    EXPECT_EQ(static_cast<const char*>(list[i].arguments)[list[i].bytes - 1],
              static_cast<char>('a' + list[i].bytes % 26));
  }
  WorkList other = list;
  EXPECT_EQ(other.skeleton(), list.skeleton());
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(other.SamePiece(list, i));
  static_cast<char*>(other[2].arguments)[16] = '!';
  EXPECT_FALSE(other.SamePiece(list, 2));
  EXPECT_TRUE(other.SamePiece(list, 1));
  list.TakePiece(other, 2);
  EXPECT_TRUE(other.SamePiece(list, 2));
  list.Clear();
  EXPECT_TRUE(list.empty());
  EXPECT_EQ(list.skeleton(), "");
}

}  // namespace
}  // namespace gpu
}  // namespace pipelab

// Graphs on the emulated device: the same bits as without, whatever repeats and whatever does not.
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cases/kernel_case.h"
#include "kernels/cuda/case_runner.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/functions.h"
#include "kernels/tensor/arena.h"
#include "kernels/tensor/host_values.h"
#include "tools/base/rng.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using gpu::GraphCounts;
using testing::ElementsAre;
using testing::HasSubstr;

std::shared_ptr<gpu::Device> DeviceWithGraphs(int fewest_pieces = 4) {
  gpu::EmulatedOptions options;
  options.graphs = true;
  options.graph_limits.fewest_pieces = fewest_pieces;
  return gpu::MakeEmulatedDevice(options);
}

// Lists that a graph did.
int64_t Served(const GraphCounts& counts) {
  return counts.replayed + counts.changed + counts.captured;
}

// Every kernel, alternating between two addresses.
TEST(EmulatedGraphs, EveryKernelHasItsBitsEachTime) {
  const auto plain = gpu::MakeEmulatedDevice();
  const auto graphs = DeviceWithGraphs(/*fewest_pieces=*/1);
  int cases = 0;
  for (const KernelCase& c : KernelCases(CaseSize::kSmall)) {
    const std::string bits = BitsOnDevice(c, plain, 0);
    for (int time = 0; time < 5; ++time) {
      EXPECT_TRUE(BitsOnDevice(c, graphs, time % 2) == bits) << c.name << ", time " << time;
    }
    ++cases;
  }
  const GraphCounts counts = graphs->graph_counts();
  EXPECT_GT(counts.captured, cases / 4);  // sizes of a kernel share a graph
  EXPECT_GT(counts.replayed + counts.changed, 2 * cases);
  EXPECT_EQ(counts.refused, 0);
  EXPECT_EQ(plain->graph_counts(), GraphCounts());
}

class EmulatedGraphsTest : public testing::Test {
 protected:
  static constexpr int64_t kRows = 6, kColumns = 8;

  GraphCounts Counts() const { return device_->graph_counts(); }
  Tensor Values(float from) {
    const Tensor x = backend_->Allocate({kRows, kColumns});
    std::vector<float> values(x.size());
    std::iota(values.begin(), values.end(), from);
    SetHostValues(x, values);
    return x;
  }

  std::shared_ptr<gpu::Device> device_ = DeviceWithGraphs();
  Arena arena_{device_};
  const std::unique_ptr<Backend> backend_ = MakeCudaBackend(&arena_, device_);
};

// A dropout's offset, a factor and a rate travel in the arguments.
TEST_F(EmulatedGraphsTest, ScalarsThatChangeAreThoseOfTheCall) {
  const Tensor x = Values(1), y = backend_->Allocate({kRows, kColumns});
  const Tensor w = backend_->Allocate({4}), dw = backend_->Allocate({4});
  SetHostValues(dw, {1, 1, 1, 1});
  for (int time = 0; time < 8; ++time) {
    DropoutMask mask;
    mask.rate = 0.5f;
    mask.rng = CounterRng(3, "dropout");
    mask.offset = 1000 * time;
    backend_->Dropout(x, mask, y);
    backend_->optimizer().Scale(y, static_cast<float>(time));
    backend_->Fill(w, 0);
    SgdOptions sgd;
    sgd.learning_rate = 0.5f * static_cast<float>(time);
    sgd.momentum = 0;
    sgd.weight_decay = 0;
    backend_->optimizer().Sgd(sgd, w, dw, Tensor());
    ASSERT_THAT(backend_->Finish(), IsOk());
    const std::vector<float> values = HostValues(y);
    for (int64_t i = 0; i < y.size(); ++i) {
      const bool kept = mask.rng.Uniform(mask.offset + i) >= mask.rate;
      EXPECT_EQ(values[i], kept ? 2.0f * static_cast<float>((1 + i) * time) : 0.0f) << time;
    }
    EXPECT_EQ(HostValues(w)[3], -0.5f * static_cast<float>(time));
  }
  EXPECT_EQ(Counts().captured, 1);
  EXPECT_EQ(Counts().changed, 6);
  EXPECT_EQ(Counts().refused, 0);
}

// The host's numbers come by memory: the same list reads others.
TEST_F(EmulatedGraphsTest, IdsAreReadFromMemory) {
  const Tensor table = Values(0), y = backend_->Allocate({2, kColumns});
  const Tensor positions = backend_->Allocate({1, kColumns});
  backend_->Fill(positions, 0);
  const Tensor ids = arena_.Allocate(DataType::kInt32, {2}, MemoryKind::kActivation);
  for (int32_t time = 0; time < 6; ++time) {
    SetHostIds(ids, {time, 5 - time});
    backend_->embedding().Lookup(ids, table, positions, y);
    for (int n = 0; n < 3; ++n) backend_->Add(y, y, y);
    ASSERT_THAT(backend_->Finish(), IsOk());
    const std::vector<float> values = HostValues(y);
    EXPECT_EQ(values[0], 8.0f * static_cast<float>(kColumns * time));
    EXPECT_EQ(values[kColumns + 1], 8.0f * static_cast<float>(kColumns * (5 - time) + 1));
  }
  EXPECT_EQ(Counts().captured, 1);
  EXPECT_EQ(Counts().replayed, 4);
  EXPECT_EQ(Counts().changed, 0);
}

// Temporaries that come and go have the same addresses each time.
TEST_F(EmulatedGraphsTest, TemporariesComeAtTheSameAddresses) {
  const Tensor w = backend_->Allocate({kColumns, kColumns}), x = Values(1);
  backend_->Fill(w, 0.5f);
  std::vector<float> first;
  for (int time = 0; time < 6; ++time) {
    Tensor y = x;
    for (int layer = 0; layer < 4; ++layer) {
      Tensor next = backend_->Allocate({kRows, kColumns});
      backend_->Linear(y, w, Tensor(), next);
      backend_->Gelu(next, next);
      y = std::move(next);
    }
    const std::vector<float> values = HostValues(y);
    if (first.empty()) first = values;
    EXPECT_EQ(values, first);
  }
  EXPECT_EQ(Counts().captured, 1);
  EXPECT_GE(Counts().replayed, 3);
  EXPECT_EQ(Counts().changed, 0);
}

// Products with other addresses are other lists; kernels with other addresses are changed.
TEST_F(EmulatedGraphsTest, AddressesAreThoseOfTheCall) {
  const Tensor w = backend_->Allocate({kColumns, kColumns});
  backend_->Fill(w, 1);
  std::vector<Tensor> inputs, outputs;
  for (int i = 0; i < 3; ++i) {
    inputs.push_back(Values(static_cast<float>(100 * i)));
    outputs.push_back(backend_->Allocate({kRows, kColumns}));
  }
  ASSERT_THAT(backend_->Finish(), IsOk());
  for (const bool product : {false, true}) {
    const GraphCounts before = Counts();
    for (int time = 0; time < 12; ++time) {
      const Tensor &x = inputs[time % 3], &y = outputs[time % 3];
      product ? backend_->Linear(x, w, Tensor(), y) : backend_->Copy(x, y);
      for (int n = 0; n < 4; ++n) backend_->Add(y, y, y);
      ASSERT_THAT(backend_->Finish(), IsOk());
      const float start = 100.0f * static_cast<float>(time % 3);
      EXPECT_EQ(HostValues(y)[0], 16 * (product ? 8 * start + 28 : start));
      backend_->Fill(y, -1);
      ASSERT_THAT(backend_->Finish(), IsOk());
    }
    const GraphCounts counts = Counts() - before;
    EXPECT_EQ(counts.captured, product ? 3 : 1);
    EXPECT_EQ(counts.replayed, product ? 6 : 0);
    EXPECT_EQ(counts.changed, product ? 0 : 10);
  }
}

// What the host reads or writes in the middle ends a list; the order stays.
TEST_F(EmulatedGraphsTest, WaitsInTheMiddleKeepTheOrder) {
  const Tensor x = backend_->Allocate({4});
  backend_->Fill(x, 1);
  EXPECT_EQ(backend_->optimizer().SumOfSquares(x), 4);  // has its scratch from now on
  for (int time = 0; time < 6; ++time) {
    for (int i = 1; i <= 5; ++i) backend_->Fill(x, static_cast<float>(i * time));
    EXPECT_EQ(backend_->optimizer().SumOfSquares(x), 4.0 * 25 * time * time);
    SetHostValues(x, {1, 2, 3, 4});
    for (int i = 0; i < 5; ++i) backend_->Add(x, x, x);
    EXPECT_THAT(HostValues(x), ElementsAre(32, 64, 96, 128));
  }
  EXPECT_EQ(Counts().captured, 2);
  EXPECT_EQ(Served(Counts()), 10);
}

// A fault ends the work where it is, by whatever it is launched.
TEST(EmulatedGraphFaults, ComeOutOfFinish) {
  for (const int faulty_round : {0, 1, 4}) {
    int round = 0;
    gpu::EmulatedOptions options;
    options.graphs = true;
    options.fault = [&round, faulty_round](absl::string_view work) {
      return round == faulty_round && work == "Gelu" ? absl::InternalError("Gelu: misaligned")
                                                     : absl::OkStatus();
    };
    const auto device = gpu::MakeEmulatedDevice(options);
    Arena arena(device);
    const auto backend = MakeCudaBackend(&arena, device);
    const Tensor x = backend->Allocate({3});
    for (; round < 6; ++round) {
      backend->Fill(x, 1);
      backend->Add(x, x, x);
      backend->Gelu(x, x);
      backend->Add(x, x, x);
      const absl::Status status = backend->Finish();
      if (round < faulty_round) {
        EXPECT_THAT(status, IsOk());
      } else {
        EXPECT_THAT(status, StatusIs(absl::StatusCode::kInternal, HasSubstr("Gelu: misaligned")));
        EXPECT_EQ(static_cast<const float*>(x.data())[0], 2);  // of the faulty round
      }
    }
  }
}

// Kept blocks of other sizes are given up before memory is said to be short.
TEST(EmulatedGraphMemory, KeptBlocksMakeRoom) {
  gpu::EmulatedOptions options;
  options.graphs = true;
  options.memory_limit = 1000;
  const auto device = gpu::MakeEmulatedDevice(options);
  Arena arena(device);
  const auto backend = MakeCudaBackend(&arena, device);
  for (int64_t floats = 130; floats < 240; floats += 10) {
    const Tensor x = backend->Allocate({floats});
    backend->Fill(x, 3);
    EXPECT_EQ(HostValues(x)[floats - 1], 3);
  }
  const Tensor x = backend->Allocate({150}), y = backend->Allocate({150});
  EXPECT_THAT(backend->Finish(), StatusIs(absl::StatusCode::kResourceExhausted,
                                          HasSubstr("no 600 bytes left of 1000")));
}

TEST(EmulatedGraphMemory, GraphsStayWithinTheirLimit) {
  gpu::EmulatedOptions options;
  options.graphs = true;
  options.graph_limits.most_pieces = 40;
  options.graph_limits.idle_lists = 10;
  const auto device = gpu::MakeEmulatedDevice(options);
  Arena arena(device);
  const auto backend = MakeCudaBackend(&arena, device);
  const Tensor x = backend->Allocate({3});
  for (int time = 0; time < 200; ++time) {
    const int pieces = 4 + time / 3 % 30;
    backend->Fill(x, 0.5f);
    for (int i = 1; i < pieces; ++i) backend->Add(x, x, x);
    EXPECT_EQ(HostValues(x)[0], static_cast<float>(int64_t{1} << (pieces - 1)) / 2);
    EXPECT_LE(device->pieces_in_kept_graphs(), 40);
  }
  EXPECT_GT(device->graph_counts().captured, 10);
}

}  // namespace
}  // namespace pipelab

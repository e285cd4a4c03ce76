// Layers that several devices compute together, each a thread with its part of the parameters:
// outputs and gradients of the whole layer, each part's memory as its specification says, to the
// byte, and the group's traffic too.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/comm/communicator.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/reference/reference_backend.h"
#include "models/graph/tensor_member.h"
#include "models/layers/communicator_peers.h"
#include "models/layers/test_layers.h"
#include "models/zoo/gpt.h"
#include "models/zoo/transformer.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::HasSubstr;

using DeviceBackend = std::unique_ptr<Backend> (*)(Arena*);
using Numbers = std::vector<float>;

Numbers NumbersOf(const Tensor& t) {
  return t.empty() ? Numbers() : Numbers(t.f32().begin(), t.f32().end());
}

int64_t NumbersIn(const std::vector<int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<int64_t>());
}

// What one device did: what it computed, what that took, what it sent.
struct DeviceResult {
  double loss = 0;
  Numbers output;
  std::vector<Numbers> input_gradients, gradients;
  std::vector<Bytes> bytes;  // kept, for the weight part, and the peak of each pass; of both fused
  std::vector<Bytes> traffic;  // of each pass
};

std::vector<Bytes> BytesOf(const LayerCosts& c) {
  return {c.kept,
          c.kept_for_weight,
          c.forward_peak,
          c.backward_input_peak,
          c.backward_weight_peak,
          c.backward_peak};
}

// Numbers of samples of this shape, or the device's rows of them.
Tensor RandomRows(const LayerSpec& spec, Backend* backend, const std::vector<int64_t>& shape,
                  int64_t samples, const std::string& name) {
  return RandomTensor(backend, RowsOf(shape, samples), name, 1,
                      {spec.rows.parts, spec.rows.part, NumbersIn(shape)});
}

// Forward and both parts of the backward, fused or not; inputs are paid for by somebody else.
DeviceResult RunDevicePasses(const LayerSpec& spec, int64_t samples, DeviceBackend make,
                             CommunicatorPeers* peers, bool fused) {
  Arena arena;
  const std::unique_ptr<Backend> backend = make(&arena);
  LayerRig rig(spec, backend.get(), samples);
  rig.ctx.peers = peers;
  std::vector<Tensor> inputs;
  for (const std::vector<int64_t>& shape : spec.input_shapes) {
    const std::string name = absl::StrCat("x", inputs.size());
    inputs.push_back(RandomRows(spec, backend.get(), shape, samples, name));
  }
  DeviceResult result;
  const Bytes base = arena.current_transient();
  const auto pass = [&](const std::function<void()>& run) {
    const Bytes before = arena.current_transient();
    const Bytes sent = peers == nullptr ? Bytes(0) : peers->traffic();
    arena.ResetPeaks();
    run();
    if (peers != nullptr) result.traffic.push_back(peers->traffic() - sent);
    return arena.peak_transient() - before;
  };
  Tensor y;
  const Bytes forward = pass([&] { y = rig.layer->Forward(rig.ctx, inputs, &rig.stash); });
  result.loss = rig.loss;
  result.output = NumbersOf(y);
  const Bytes kept = arena.current_transient() - base - Bytes(y.empty() ? 0 : y.bytes());
  Tensor dy;
  if (!y.empty()) dy = RandomRows(spec, backend.get(), spec.output_shape, samples, "dy");
  y = Tensor();
  std::vector<Tensor> dx;
  const auto input_part = [&] {
    dx = rig.layer->BackwardInput(rig.ctx, inputs, std::move(dy), &rig.stash);
  };
  const auto weight_part = [&] { rig.layer->BackwardWeight(rig.ctx, inputs, &rig.stash); };
  Bytes for_weight, backward_input, backward_weight, backward;
  if (fused) {
    backward = pass([&] {
      input_part();
      weight_part();
    });
    dx.clear();
  } else {
    backward_input = pass(input_part);
    for (Tensor& d : dx) result.input_gradients.push_back(NumbersOf(d));
    dx.clear();
    for_weight = arena.current_transient() - base;
    backward_weight = pass(weight_part);
  }
  EXPECT_EQ(arena.current_transient(), base);
  for (const Parameter& p : rig.parameters) result.gradients.push_back(NumbersOf(p.gradient));
  result.bytes = {kept, for_weight, forward, backward_input, backward_weight, backward};
  return result;
}

DeviceResult RunOnDevice(const LayerSpec& spec, int64_t samples, DeviceBackend make,
                         CommunicatorPeers* peers) {
  DeviceResult result = RunDevicePasses(spec, samples, make, peers, /*fused=*/false);
  result.bytes.back() = RunDevicePasses(spec, samples, make, peers, /*fused=*/true).bytes.back();
  return result;
}

std::vector<DeviceResult> RunParts(const LayerSpec& spec, int64_t samples, DeviceBackend make,
                                   TensorParallel split) {
  const int degree = static_cast<int>(split.degree);
  auto ranks = MakeInProcessCommunicators(degree, {});
  std::vector<int> group;
  for (int t = 0; t < degree; ++t) group.push_back(t);
  std::vector<DeviceResult> results(degree);
  std::vector<std::thread> threads;
  for (int t = 0; t < degree; ++t) {
    threads.emplace_back([&, t] {
      CommunicatorPeers peers(ranks[t].get(), group, absl::Seconds(20));
      results[t] = RunOnDevice(MemberLayer(spec, split, t), samples, make, &peers);
      EXPECT_THAT(peers.status(), IsOk());
    });
  }
  for (std::thread& thread : threads) thread.join();
  return results;
}

// Sums of `terms` in another order; terms may be as large as the tensor's largest element, and
// cancel.
void ExpectNearSum(const Numbers& actual, const Numbers& expected, int64_t terms,
                   const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  double largest = 0;
  for (float x : expected) largest = std::max(largest, std::abs(double{x}));
  const double bound = static_cast<double>(terms) * std::numeric_limits<float>::epsilon() * largest;
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_NEAR(actual[i], expected[i], bound) << what << "[" << i << "]";
  }
}

Bytes TrafficOf(const std::vector<TensorCollective>& collectives, int degree) {
  Bytes sum;
  for (const TensorCollective& c : collectives) {
    sum += RingTraffic(c.bytes, degree, c.kind == Collective::kAllReduce);
  }
  return sum;
}

// The longest sum that is taken in parts, by two: a norm's gradient has another one behind it.
int64_t Terms(const LayerSpec& spec) {
  int64_t terms = 1;
  for (const ParameterSpec& p : spec.parameters) {
    if (p.split_dimension >= 0) terms = std::max(terms, p.shape[p.split_dimension]);
  }
  return 2 * terms;
}

// The gradients of the parts, put together. Those of parameters that all have are the same bits; or
// with sequence parallelism each is of the part's rows, and they add up.
void ExpectGradients(const LayerSpec& spec, TensorParallel split, const DeviceResult& whole,
                     const std::vector<DeviceResult>& parts) {
  for (size_t k = 0; k < spec.parameters.size(); ++k) {
    Numbers together(whole.gradients[k].size(), 0.0f);
    for (int t = 0; t < split.degree; ++t) {
      const ParameterSpec p = MemberLayer(spec, split, t).parameters[k];
      const Numbers& part = parts[t].gradients[k];
      ASSERT_EQ(static_cast<int64_t>(part.size()), p.size());
      if (p.cut.whole() && !split.sequence) {
        EXPECT_EQ(part, parts[0].gradients[k]) << p.name << " of " << t;
        together = part;
      } else {
        for (int64_t i = 0; i < p.size(); ++i) together[p.cut.WholeIndex(i)] += part[i];
      }
    }
    ExpectNearSum(together, whole.gradients[k], Terms(spec), spec.parameters[k].name);
  }
}

// What each part has of a tensor, put together: the same on all, or each part's rows.
Numbers Together(const std::vector<Numbers>& parts, const std::vector<int64_t>& sample_shape,
                 TensorParallel split) {
  if (!split.sequence) {
    for (const Numbers& part : parts) EXPECT_EQ(part, parts[0]);
    return parts[0];
  }
  Numbers whole(parts[0].size() * parts.size(), std::nanf(""));
  for (int64_t t = 0; t < split.degree; ++t) {
    const ParameterCut cut = {split.degree, t, NumbersIn(sample_shape) / split.degree};
    for (size_t i = 0; i < parts[t].size(); ++i) {
      whole[cut.WholeIndex(static_cast<int64_t>(i))] = parts[t][i];
    }
  }
  return whole;
}

class TensorLayers : public testing::TestWithParam<DeviceBackend> {
 protected:
  void CheckLayer(const LayerSpec& spec, int64_t samples, TensorParallel split) {
    SCOPED_TRACE(testing::Message() << spec.name << ", samples " << samples << ", T="
                                    << split.degree << (split.sequence ? ", rows split" : ""));
    const DeviceResult whole = RunOnDevice(spec, samples, GetParam(), nullptr);
    const std::vector<DeviceResult> parts = RunParts(spec, samples, GetParam(), split);
    const TensorShare share = ShareOf(spec, samples, TokenSlice(), split);
    const int degree = static_cast<int>(split.degree);
    const std::vector<Bytes> traffic = {TrafficOf(share.forward, degree),
                                        TrafficOf(share.backward_input, degree),
                                        TrafficOf(share.backward_weight, degree)};
    std::vector<Numbers> outputs;
    std::vector<std::vector<Numbers>> dx(spec.inputs.size());
    for (int t = 0; t < degree; ++t) {
      SCOPED_TRACE(testing::Message() << "member " << t);
      const DeviceResult& part = parts[t];
      EXPECT_EQ(part.bytes, BytesOf(share.costs));
      EXPECT_EQ(part.bytes, BytesOf(MemberLayer(spec, split, t).costs(samples)));
      EXPECT_EQ(part.traffic, traffic);
      EXPECT_EQ(part.loss, parts[0].loss);
      outputs.push_back(part.output);
      ASSERT_EQ(part.input_gradients.size(), dx.size());
      for (size_t k = 0; k < dx.size(); ++k) dx[k].push_back(part.input_gradients[k]);
    }
    EXPECT_NEAR(parts[0].loss, whole.loss,
                std::abs(whole.loss) * Terms(spec) * std::numeric_limits<float>::epsilon());
    if (!spec.output_shape.empty()) {
      const Numbers output = Together(outputs, spec.output_shape, split);
      ExpectNearSum(output, whole.output, Terms(spec), "output");
      if (absl::StrContains(spec.kind, "embedding")) {
        EXPECT_EQ(output, whole.output);  // one term that is not 0, and a position
      }
    }
    for (size_t k = 0; k < dx.size(); ++k) {
      ExpectNearSum(Together(dx[k], spec.input_shapes[k], split), whole.input_gradients[k],
                    Terms(spec), "dx");
    }
    ExpectGradients(spec, split, whole, parts);
  }

  void CheckLayers(const ModelGraph& graph) {
    for (const LayerSpec& spec : graph.layers) {
      ASSERT_FALSE(spec.split.empty());
      for (const int64_t samples : {1, 3}) {
        for (const int64_t degree : {2, 4}) {
          for (const bool sequence : {false, true}) CheckLayer(spec, samples, {degree, sequence});
        }
      }
    }
  }
};

GptConfig DividedGpt(double dropout) {
  GptConfig c;
  c.layers = 1;
  c.hidden = 16;
  c.heads = 4;
  c.tokens = 8;
  c.vocabulary = 20;
  c.dropout = dropout;
  return c;
}

TEST_P(TensorLayers, GptLayersAreTheWhole) {
  for (const double dropout : {0.0, 0.2}) CheckLayers(*BuildGpt(DividedGpt(dropout)));
  GptConfig other = DividedGpt(0.1);
  other.positions = Positions::kSinusoidal;
  other.output_bias = true;
  other.vocabulary = 72;
  CheckLayers(*BuildGpt(other));
  GptConfig wide = DividedGpt(0);  // two blocks of attention rows
  wide.tokens = 72;
  wide.heads = 8;
  CheckLayers(*BuildGpt(wide));
}

// Gates and values of each device's columns, RMS norms, rotary positions.
TEST_P(TensorLayers, LlamaLayersAreTheWhole) {
  for (const double dropout : {0.0, 0.2}) {
    GptConfig c = LlamaConfig(/*layers=*/1, /*hidden=*/16, /*heads=*/4, /*feed_forward=*/24,
                              /*tokens=*/8, /*vocabulary=*/20);
    c.dropout = dropout;
    CheckLayers(*BuildGpt(c));
    c.feed_forward_kind = FeedForwardKind::kGeGlu;
    c.biases = Biases::kAll;
    for (const int64_t inner : {4, 160}) {  // memory is fullest elsewhere
      c.feed_forward = inner;
      CheckLayers(*BuildGpt(c));
    }
  }
}

// Keys that heads share: each device has whole groups.
TEST_P(TensorLayers, GroupedQueriesAreTheWhole) {
  for (const Biases biases : {Biases::kNone, Biases::kQueryKeyValue}) {
    GptConfig c = LlamaConfig(/*layers=*/1, /*hidden=*/12, /*heads=*/16, /*feed_forward=*/8,
                              /*tokens=*/8, /*vocabulary=*/20);
    c.biases = biases;
    c.head_size = 2;
    for (const int64_t kv_heads : {4, 8}) {
      c.kv_heads = kv_heads;
      CheckLayers(*BuildGpt(c));
    }
  }
}

TEST_P(TensorLayers, WindowsAreTheWhole) {
  GptConfig c = LlamaConfig(/*layers=*/2, /*hidden=*/16, /*heads=*/4, /*feed_forward=*/8,
                            /*tokens=*/72, /*vocabulary=*/20);
  c.windows = {10, 0};
  CheckLayers(*BuildGpt(c));
}

// Columns of each expert, norms of each device's heads of q and k.
TEST_P(TensorLayers, ExpertsAreTheWhole) {
  for (const double dropout : {0.0, 0.2}) {
    GptConfig c = LlamaConfig(/*layers=*/1, /*hidden=*/16, /*heads=*/8, /*feed_forward=*/8,
                              /*tokens=*/8, /*vocabulary=*/20);
    c.kv_heads = 4;
    c.query_key_norms = true;
    c.experts.experts = 4;
    c.experts.chosen = 2;
    c.dropout = dropout;
    CheckLayers(*BuildGpt(c));
    c.experts.shared = 1;
    c.experts.sigmoid = true;
    c.experts.capacity_factor = 1;
    c.experts.balance = 0.5;
    c.feed_forward = 40;
    CheckLayers(*BuildGpt(c));
  }
}

// Heads of each device, narrow products of each device's rows.
TEST_P(TensorLayers, LatentAttentionIsTheWhole) {
  GptConfig c = LlamaConfig(/*layers=*/1, /*hidden=*/16, /*heads=*/4, /*feed_forward=*/8,
                            /*tokens=*/8, /*vocabulary=*/20);
  for (const LatentHeads& latent : {LatentHeads{12, 6, 4, 2, 3}, LatentHeads{0, 5, 2, 4, 6},
                                    LatentHeads{40, 24, 2, 2, 8}, LatentHeads{0, 40, 6, 2, 2}}) {
    c.latent = latent;
    c.dropout = latent.rank == 6 ? 0.2 : 0;
    CheckLayers(*BuildGpt(c));
  }
}

// Attention over a memory, keys that are padding, targets that are not asked for.
TEST_P(TensorLayers, EncodersAndDecodersAreTheWhole) {
  for (const double dropout : {0.0, 0.2}) {
    TransformerConfig c;
    c.layers = 1;
    c.hidden = 16;
    c.heads = 4;
    c.feed_forward = 24;
    c.source_tokens = 8;
    c.target_tokens = 12;
    c.vocabulary = 28;
    c.dropout = dropout;
    CheckLayers(*BuildTransformer(c));
  }
}

// The first error stays; nothing is waited for after it, and the peer learns of it.
TEST(CommunicatorPeers, KeepTheFirstError) {
  auto ranks = MakeInProcessCommunicators(2, {});
  Arena arena;
  const auto backend = MakeReferenceBackend(&arena);
  const Tensor x = RandomTensor(backend.get(), {5}, "x", 1);
  const Numbers before = NumbersOf(x);
  CommunicatorPeers first(ranks[0].get(), {0, 1}, absl::Milliseconds(20));
  CommunicatorPeers second(ranks[1].get(), {0, 1}, absl::Seconds(20));
  EXPECT_EQ(first.member(), 0);
  EXPECT_EQ(second.member(), 1);
  first.Sum(x);
  const absl::Status error = first.status();
  EXPECT_THAT(error, StatusIs(absl::StatusCode::kDeadlineExceeded,
                              HasSubstr("for rank 1 in the all-reduce of ranks {0, 1}")));
  const Bytes sent = first.traffic();
  first.Largest(x);
  EXPECT_EQ(first.status(), error);
  EXPECT_EQ(first.traffic(), sent);
  EXPECT_EQ(NumbersOf(x), before);
  second.Sum(x);
  EXPECT_TRUE(IsFollowUp(second.status())) << second.status();
}

// Round a ring, either way and straight home, while the sender reads what it has sent.
TEST(CommunicatorPeers, ShiftsGoRound) {
  constexpr int kRanks = 3;
  auto ranks = MakeInProcessCommunicators(kRanks, {});
  std::vector<std::thread> threads;
  for (int r = 0; r < kRanks; ++r) {
    threads.emplace_back([&, r] {
      Arena arena;
      const auto backend = MakeReferenceBackend(&arena);
      CommunicatorPeers peers(ranks[r].get(), {0, 1, 2}, absl::Seconds(20));
      const Tensor own = RandomTensor(backend.get(), {2, 2}, absl::StrCat("x", r), 1);
      for (const int64_t places : {1, -1, 2, -2}) {
        const auto arrival = peers.Shift(own, places, &arena);
        EXPECT_EQ(arena.current_transient(), Bytes(2 * 16));  // what comes is paid for already
        const Tensor other = arrival();
        const int64_t from = (r - places + kRanks) % kRanks;
        EXPECT_EQ(NumbersOf(other),
                  NumbersOf(RandomTensor(backend.get(), {2, 2}, absl::StrCat("x", from), 1)));
      }
      EXPECT_THAT(peers.status(), IsOk());
      EXPECT_EQ(peers.traffic(), Bytes(4 * 16));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// A device that does not come: the first one that waits for it says so, the others follow, and all
// have tensors to go on with to where they are asked.
TEST(CommunicatorPeers, ShiftsEndWithOneError) {
  Arena arena;  // pays for what never comes until its rank is gone
  auto ranks = MakeInProcessCommunicators(3, {});
  const auto backend = MakeReferenceBackend(&arena);
  const Tensor own = RandomTensor(backend.get(), {2, 2}, "x", 1);
  CommunicatorPeers first(ranks[0].get(), {0, 1, 2}, absl::Milliseconds(20));
  CommunicatorPeers second(ranks[1].get(), {0, 1, 2}, absl::Seconds(20));
  const auto from_second = second.Shift(own, 1, &arena), from_first = first.Shift(own, 1, &arena);
  EXPECT_EQ(from_first().size(), 4);
  EXPECT_THAT(first.status(), StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("rank 2")));
  EXPECT_EQ(from_second().size(), 4);
  EXPECT_TRUE(IsFollowUp(second.status())) << second.status();
  EXPECT_EQ(second.Shift(own, 1, &arena)().size(), 4);
}

INSTANTIATE_TEST_SUITE_P(Backends, TensorLayers,
                         testing::Values(&MakeReferenceBackend, &MakeCpuBackend),
                         [](const auto& info) { return info.index == 0 ? "reference" : "cpu"; });

}  // namespace
}  // namespace pipelab

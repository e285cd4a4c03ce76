// Experts divided among devices, each a thread with its own samples and its share of the experts:
// outputs and gradients of the whole layer on each device's samples, the gradients of experts the
// sums over devices, memory and traffic a function of the rows that experts get, to the byte.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/backend.h"
#include "kernels/comm/communicator.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/reference/reference_backend.h"
#include "kernels/tensor/arena.h"
#include "kernels/tensor/host_values.h"
#include "kernels/tensor/tensor.h"
#include "models/graph/collective.h"
#include "models/graph/layer_spec.h"
#include "models/graph/tensor_member.h"
#include "models/layers/communicator_peers.h"
#include "models/layers/tensor_peers.h"
#include "models/layers/test_layers.h"
#include "models/specs/gpt_experts_spec.h"
#include "tools/base/status_matchers.h"
#include "tools/base/units.h"

namespace pipelab {
namespace {

using ExpertNumbers = std::vector<float>;
using ExpertBackend = std::unique_ptr<Backend> (*)(Arena*);

constexpr int64_t kExpertSamples = 2;

// What one rank did: what it computed, what that took, what it sent and got.
struct ExpertResult {
  ExpertNumbers y, dx;
  std::vector<ExpertNumbers> gradients;
  std::vector<Bytes> bytes;    // kept, for the weight part, the peak of each pass, of both fused
  std::vector<Bytes> traffic;  // with those that have other experts, of each pass
  int64_t came = 0, went = 0;  // rows from all, and those for others
};

// Peers with something in front of each exchange, which has its number, from 0.
class HookedPeers final : public TensorPeers {
 public:
  using Hook = std::function<void(int exchange, absl::Span<const int64_t> to,
                                  absl::Span<const int64_t> from)>;

  HookedPeers(CommunicatorPeers* peers, Hook hook) : peers_(peers), hook_(std::move(hook)) {}
  int member() const override { return peers_->member(); }
  int64_t size() const override { return peers_->size(); }
  void Sum(const Tensor& data) override { peers_->Sum(data); }
  void Largest(const Tensor& data) override { peers_->Largest(data); }
  void GatherRows(const Tensor& own, const Tensor& all, int64_t samples) override {
    peers_->GatherRows(own, all, samples);
  }
  void ScatterSums(const Tensor& all, const Tensor& own, int64_t samples) override {
    peers_->ScatterSums(all, own, samples);
  }
  std::function<Tensor()> Shift(Tensor sent, int64_t places, Arena* arena) override {
    return peers_->Shift(std::move(sent), places, arena);
  }
  void Exchange(const Tensor& data, absl::Span<const int64_t> to, const Tensor& result,
                absl::Span<const int64_t> from) override {
    hook_(exchanges_++, to, from);
    peers_->Exchange(data, to, result, from);
  }
  absl::Status status() const override { return peers_->status(); }
  int exchanges() const { return exchanges_; }

 private:
  CommunicatorPeers* const peers_;  // null: not called
  const Hook hook_;
  int exchanges_ = 0;
};

int64_t SumOf(absl::Span<const int64_t> values) {
  return std::accumulate(values.begin(), values.end(), int64_t{0});
}

// Rows of a device: its samples of a batch, or its group's tokens of them.
Tensor Rows(const LayerSpec& spec, Backend* backend, const std::string& name) {
  const int64_t row = spec.output_shape[0] * spec.output_shape[1];
  return RandomTensor(backend, RowsOf(spec.output_shape, kExpertSamples), name, 1,
                      {spec.rows.parts, spec.rows.part, row});
}

// Names of the copy's data.
std::string Name(const char* what, int copy) { return std::string(what) + std::to_string(copy); }

ExpertResult RunExpertPasses(const LayerSpec& spec, int copy, ExpertBackend make,
                             CommunicatorPeers* group, CommunicatorPeers* experts, bool fused) {
  Arena arena;
  const std::unique_ptr<Backend> backend = make(&arena);
  LayerRig rig(spec, backend.get(), kExpertSamples);
  ExpertResult result;
  HookedPeers hooked(experts, [&](int exchange, auto to, auto from) {
    if (exchange != 1) return;  // of weights, one per row
    result.came = SumOf(from);
    result.went = SumOf(to) - to[experts->member()];
  });
  rig.ctx.peers = group;
  if (experts != nullptr) rig.ctx.experts = &hooked;
  rig.ctx.first_sample = copy * kExpertSamples;
  const Tensor x = Rows(spec, backend.get(), Name("x", copy));
  const Bytes base = arena.current_transient();
  const auto pass = [&](const std::function<void()>& run) {
    const Bytes before = arena.current_transient();
    const Bytes sent = experts == nullptr ? Bytes(0) : experts->traffic();
    arena.ResetPeaks();
    run();
    if (experts != nullptr) result.traffic.push_back(experts->traffic() - sent);
    return arena.peak_transient() - before;
  };
  Tensor y;
  const Bytes forward = pass([&] { y = rig.layer->Forward(rig.ctx, {x}, &rig.stash); });
  result.y = HostValues(y);
  const Bytes kept = arena.current_transient() - base - Bytes(y.bytes());
  Tensor dy = Rows(spec, backend.get(), Name("dy", copy));
  y = Tensor();
  std::vector<Tensor> dx;
  const auto input_part = [&] {
    dx = rig.layer->BackwardInput(rig.ctx, {x}, std::move(dy), &rig.stash);
  };
  const auto weight_part = [&] { rig.layer->BackwardWeight(rig.ctx, {x}, &rig.stash); };
  Bytes for_weight, backward_input, backward_weight, backward;
  if (fused) {
    backward = pass([&] {
      input_part();
      weight_part();
    });
  } else {
    backward_input = pass(input_part);
    result.dx = HostValues(dx[0]);
    dx.clear();
    for_weight = arena.current_transient() - base;
    backward_weight = pass(weight_part);
  }
  dx.clear();
  EXPECT_EQ(arena.current_transient(), base);
  for (const Parameter& p : rig.parameters) result.gradients.push_back(HostValues(p.gradient));
  result.bytes = {kept, for_weight, forward, backward_input, backward_weight, backward};
  return result;
}

ExpertResult RunExpertLayer(const LayerSpec& spec, int copy, ExpertBackend make,
                            CommunicatorPeers* group, CommunicatorPeers* experts) {
  ExpertResult result = RunExpertPasses(spec, copy, make, group, experts, /*fused=*/false);
  result.bytes.back() =
      RunExpertPasses(spec, copy, make, group, experts, /*fused=*/true).bytes.back();
  return result;
}

struct ExpertCase {
  int copies;
  TensorParallel split;
};

// [copy * T + t]; E divides them.
std::vector<ExpertResult> RunExpertParts(const LayerSpec& spec, const ExpertCase& c,
                                         ExpertBackend make) {
  const int degree = static_cast<int>(c.split.degree), ranks = c.copies * degree;
  const int together = static_cast<int>(c.split.expert_copies());
  auto communicators = MakeInProcessCommunicators(ranks, {});
  std::vector<ExpertResult> results(ranks);
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r) {
    threads.emplace_back([&, r] {
      const int copy = r / degree, t = r % degree, first = copy / together * together;
      std::vector<int> group, same;
      for (int k = 0; k < degree; ++k) group.push_back(copy * degree + k);
      for (int k = first * degree; k < (first + together) * degree; ++k) {
        if (c.split.whole_experts || k % degree == t) same.push_back(k);
      }
      CommunicatorPeers peers(communicators[r].get(), group, absl::Seconds(20));
      CommunicatorPeers experts(communicators[r].get(), same, absl::Seconds(20));
      const LayerSpec part =
          MemberLayer(spec, c.split, t, ContextPart(), c.split.ShareOfExperts(copy, t));
      results[r] = RunExpertLayer(part, copy, make, degree > 1 ? &peers : nullptr, &experts);
      EXPECT_THAT(experts.status(), IsOk());
    });
  }
  for (std::thread& thread : threads) thread.join();
  return results;
}

void ExpectWithinRounding(const ExpertNumbers& actual, const ExpertNumbers& expected,
                          const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  double largest = 0;
  for (float v : expected) largest = std::max(largest, std::abs(double{v}));
  const double bound = 3e-6 * std::max(largest, 1e-3);  // some gradients are 0 but for rounding
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_NEAR(actual[i], expected[i], bound) << what << "[" << i << "]";
  }
}

void AddTo(const ExpertNumbers& more, ExpertNumbers* sum) {
  sum->resize(more.size());
  for (size_t i = 0; i < more.size(); ++i) (*sum)[i] += more[i];
}

class ExpertLayers : public testing::TestWithParam<ExpertBackend> {
 protected:
  void Check(const GptExpertsSizes& sizes, const ExpertCase& c) {
    SCOPED_TRACE(testing::Message()
                 << "E=" << c.split.experts << " T=" << c.split.degree << " copies " << c.copies
                 << (c.split.whole_experts ? " whole" : "") << " shared " << sizes.choice.shared
                 << " dropout " << sizes.dropout << " capacity " << sizes.choice.capacity_factor);
    const LayerSpec spec = GptExpertsSpec(sizes);
    const std::vector<ExpertResult> parts = RunExpertParts(spec, c, GetParam());
    const int64_t degree = c.split.degree, row = sizes.tokens * sizes.hidden;
    std::vector<ExpertNumbers> whole(spec.parameters.size()), together(spec.parameters.size());
    for (int copy = 0; copy < c.copies; ++copy) {
      const ExpertResult one = RunExpertLayer(spec, copy, GetParam(), nullptr, nullptr);
      for (size_t k = 0; k < whole.size(); ++k) AddTo(one.gradients[k], &whole[k]);
      ExpertNumbers y(one.y.size()), dx(one.dx.size());
      for (int64_t t = 0; t < degree; ++t) {
        const ExpertResult& part = parts[copy * degree + t];
        const ParameterCut cut =
            c.split.sequence ? ParameterCut{degree, t, row / degree} : ParameterCut();
        for (size_t i = 0; i < part.y.size(); ++i) {
          y[cut.WholeIndex(static_cast<int64_t>(i))] = part.y[i];
          dx[cut.WholeIndex(static_cast<int64_t>(i))] = part.dx[i];
        }
        ExpectCosts(sizes, spec, c, part);
        AddGradients(spec, c, copy, t, part, &together);
      }
      ExpectWithinRounding(y, one.y, "y");
      ExpectWithinRounding(dx, one.dx, "dx");
    }
    for (size_t k = 0; k < whole.size(); ++k) {
      ExpectWithinRounding(together[k], whole[k], spec.parameters[k].name);
    }
  }

 private:
  static void ExpectCosts(const GptExpertsSizes& sizes, const LayerSpec& spec, const ExpertCase& c,
                          const ExpertResult& part) {
    const LayerCosts costs = GptExpertsCosts(sizes, kExpertSamples, c.split, part.came);
    EXPECT_EQ(part.bytes, (std::vector<Bytes>{costs.kept, costs.kept_for_weight, costs.forward_peak,
                                              costs.backward_input_peak, costs.backward_weight_peak,
                                              costs.backward_peak}))
        << part.came << " rows";
    // Rows there and back: those that went, forth, and those that came from others, back.
    const int64_t e = c.split.experts, m = kExpertSamples * sizes.tokens * sizes.choice.chosen;
    if (sizes.choice.chosen != sizes.choice.experts) return;
    const int64_t routed = c.split.whole_experts ? m / c.split.degree : m;
    EXPECT_EQ(part.came, routed);
    EXPECT_EQ(part.went, routed / e * (e - 1));
    const TensorShare share = ShareOf(spec, kExpertSamples, TokenSlice(), c.split);
    const auto traffic = [&](const std::vector<TensorCollective>& pass) {
      Bytes sum;
      for (const TensorCollective& one : pass) {
        if (one.kind == Collective::kAllToAll) sum += RingTraffic(one.bytes, e, false);
      }
      return sum;
    };
    EXPECT_EQ(part.traffic, (std::vector<Bytes>{traffic(share.forward),
                                                traffic(share.backward_input), Bytes(0)}));
  }

  // Gradients of whole parameters are the same on all ranks of a group, or with rows split their
  // sum.
  static void AddGradients(const LayerSpec& spec, const ExpertCase& c, int copy, int64_t t,
                           const ExpertResult& part, std::vector<ExpertNumbers>* sums) {
    const LayerSpec own =
        MemberLayer(spec, c.split, t, ContextPart(), c.split.ShareOfExperts(copy, t));
    for (size_t k = 0; k < spec.parameters.size(); ++k) {
      const ParameterSpec& p = own.parameters[k];
      (*sums)[k].resize(spec.parameters[k].size());
      if (p.cut.whole() && t > 0 && !c.split.sequence) continue;
      for (int64_t i = 0; i < p.size(); ++i) {
        (*sums)[k][p.cut.WholeIndex(i)] += part.gradients[k][i];
      }
    }
  }
};

GptExpertsSizes ExpertSizes(int64_t experts, int64_t chosen) {
  GptExpertsSizes s;
  s.name = "layer";
  s.tokens = 6;
  s.hidden = 12;
  s.inner = 8;
  s.choice.experts = experts;
  s.choice.chosen = chosen;
  return s;
}

TensorParallel ExpertSplit(int64_t experts, int64_t tensor = 1, bool sequence = false,
                           bool whole = false) {
  return {tensor, sequence, 1, experts, whole};
}

TEST_P(ExpertLayers, AreTheWholeLayer) {
  for (const int64_t chosen : {1, 2, 4}) {
    for (const int64_t shared : {0, 2}) {
      for (const double dropout : {0.0, 0.2}) {
        GptExpertsSizes s = ExpertSizes(4, chosen);
        s.choice.shared = shared;
        s.dropout = dropout;
        for (const int64_t e : {2, 4}) Check(s, {4, ExpertSplit(e)});
        Check(s, {2, ExpertSplit(2, 2)});
        Check(s, {2, ExpertSplit(2, 2, true)});
        Check(s, {2, ExpertSplit(4, 2, true, true)});
        Check(s, {2, ExpertSplit(2, 2, true, true)});
      }
    }
  }
}

// Rows wider and narrower than experts; all choices on few experts, so that a device may get none.
TEST_P(ExpertLayers, AnyLoad) {
  for (const int64_t inner : {2, 40}) {
    GptExpertsSizes s = ExpertSizes(8, 1);
    s.tokens = 2;
    s.inner = inner;
    Check(s, {8, ExpertSplit(8)});
    s.choice.shared = 1;
    Check(s, {4, ExpertSplit(4)});
    s.hidden = 40;
    Check(s, {2, ExpertSplit(4, 2, true, true)});
  }
}

TEST_P(ExpertLayers, CapacitiesAndBalancingLosses) {
  GptExpertsSizes s = ExpertSizes(4, 2);
  s.choice.balance = 0.5;
  s.choice.sigmoid = true;
  s.kind = FeedForwardKind::kGeGlu;
  s.norm = NormKind::kLayer;
  for (const double capacity : {0.0, 0.6}) {
    s.choice.capacity_factor = capacity;
    for (const int64_t e : {2, 4}) Check(s, {4, ExpertSplit(e)});
    Check(s, {2, ExpertSplit(2, 2)});
  }
}

// One rank gives up in front of an exchange, whichever: all ranks come through all passes, and have
// the error.
TEST_P(ExpertLayers, AnErrorEndsAllRanks) {
  const LayerSpec spec = GptExpertsSpec(ExpertSizes(4, 2));
  const TensorParallel split = ExpertSplit(2);
  constexpr int kExchanges = 7;  // counts, weights, rows there and back; rows, weights, rows back
  for (int fails_at = 0; fails_at <= kExchanges; ++fails_at) {
    SCOPED_TRACE(fails_at);
    auto communicators = MakeInProcessCommunicators(2, {});
    std::vector<absl::Status> status(2);
    std::vector<std::thread> threads;
    for (int r = 0; r < 2; ++r) {
      threads.emplace_back([&, r] {
        CommunicatorPeers peers(communicators[r].get(), {0, 1}, absl::Seconds(20));
        HookedPeers failing(&peers, [&](int exchange, auto, auto) {
          if (r == 0 || exchange != fails_at) return;
          communicators[r]->Abort(absl::InternalError("a broken rank"));
        });
        Arena arena;
        const std::unique_ptr<Backend> backend = GetParam()(&arena);
        LayerRig rig(MemberLayer(spec, split, 0, ContextPart(), r), backend.get(), kExpertSamples);
        rig.ctx.experts = &failing;
        const Tensor x = Rows(rig.spec, backend.get(), Name("x", r));
        rig.layer->Forward(rig.ctx, {x}, &rig.stash);
        rig.layer->BackwardInput(rig.ctx, {x}, Rows(rig.spec, backend.get(), Name("dy", r)),
                                 &rig.stash);
        rig.layer->BackwardWeight(rig.ctx, {x}, &rig.stash);
        EXPECT_EQ(failing.exchanges(), kExchanges);
        status[r] = peers.status();
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const absl::Status& one : status) EXPECT_EQ(one.ok(), fails_at == kExchanges) << one;
    EXPECT_EQ(absl::IsInternal(status[1]), fails_at < kExchanges) << status[1];
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, ExpertLayers,
                         testing::Values(&MakeReferenceBackend, &MakeCpuBackend),
                         [](const auto& info) { return info.index == 0 ? "reference" : "cpu"; });

}  // namespace
}  // namespace pipelab

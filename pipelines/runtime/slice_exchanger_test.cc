// An attention layer on three devices, each with samples of its own in slices, whose passes compute
// chunks of one another's attention: the numbers of whole samples, memory and traffic as the
// specification says, to the byte. Some pass gives to two others, one helps two, and the last slice
// of a sample does both.
#include "pipelines/runtime/slice_exchanger.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/comm/communicator.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/reference/reference_backend.h"
#include "models/graph/layer_spec.h"
#include "models/layers/test_layers.h"
#include "models/zoo/gpt.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

constexpr int kDevices = 3, kSlices = 4;
constexpr int64_t kExchangedSamples = 2;

using MakeBackend = std::unique_ptr<Backend> (*)(Arena*);

Action PassOf(ActionKind kind, int slice) {
  Action a;
  a.kind = kind;
  a.slice = static_cast<int16_t>(slice);
  return a;
}

// Forwards in the order of slices, then backwards.
class Exchanges {
 public:
  Exchanges() {
    for (int d = 0; d < kDevices; ++d) {
      program_.instructions.emplace_back();
      for (int k = 0; k < 2 * kSlices; ++k) {
        Instruction i;
        i.action = k < kSlices ? PassOf(ActionKind::kForward, k)
                               : PassOf(ActionKind::kBackward, 2 * kSlices - 1 - k);
        i.arg = static_cast<int32_t>(program_.exchanges.size());
        program_.instructions[d].push_back(i);
        program_.exchanges.push_back({i.action, 0, {}, {}});
      }
    }
    for (const ActionKind kind : {ActionKind::kForward, ActionKind::kBackward}) {
      const int slot = kind == ActionKind::kForward ? 0 : 2;
      Add(kind, slot, {0, 2}, {2, 1}, {0, 1});
      Add(kind, slot, {1, 2}, {2, 1}, {0, 1});
      Add(kind, slot + 1, {0, 3}, {1, 3}, {0, 2});
      Add(kind, slot + 1, {0, 3}, {2, 2}, {2, 1});
    }
    for (auto& list : program_.instructions) {
      for (Instruction& i : list) {
        const PassExchange& e = program_.exchanges[i.arg];
        if (e.given.empty() && e.received.empty()) i.arg = -1;
      }
    }
  }

  const Program& program() const { return program_; }
  std::vector<int64_t> CountsOf(const Instruction& i, bool received) const {
    std::vector<int64_t> counts;
    if (i.arg < 0) return counts;
    const PassExchange& e = program_.exchanges[i.arg];
    for (const ChunkShare& share : received ? e.received : e.given) counts.push_back(share.count);
    return counts;
  }

 private:
  struct At {
    int device, slice;
  };
  void Add(ActionKind kind, int slot, At giver, At helper, std::pair<int, int> chunks) {
    const auto find = [&](At at) {
      const int place = kind == ActionKind::kForward ? at.slice : 2 * kSlices - 1 - at.slice;
      return &program_.exchanges[at.device * 2 * kSlices + place];
    };
    const auto share = [&](int device) {
      return ChunkShare{static_cast<int16_t>(device), static_cast<int16_t>(chunks.first),
                        static_cast<int16_t>(chunks.second)};
    };
    find(giver)->slot = find(helper)->slot = slot;
    find(giver)->given.push_back(share(helper.device));
    find(helper)->received.push_back(share(giver.device));
  }

  Program program_;
};

// Sums of some hundred products of order 1.
void ExpectNear(const Tensor& got, const Tensor& want, const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  float most = 1e-3f;
  for (const float v : want.f32()) most = std::max(most, std::abs(v));
  for (int64_t i = 0; i < want.size(); ++i) {
    ASSERT_NEAR(got.f32()[i], want.f32()[i], 1e-5 * most) << what << ", element " << i;
  }
}

class OneDevice {
 public:
  OneDevice(const LayerSpec& spec, int64_t tokens, int device, MakeBackend make,
            const Exchanges& exchanges, std::unique_ptr<Communicator> communicator)
      : device_(device),
        tokens_(tokens),
        exchanges_(exchanges),
        backend_(make(&arena_)),
        exchanger_(
            exchanges.program(), device, std::move(communicator), [](int other) { return other; },
            absl::Seconds(20)),
        rig_(spec, backend_.get(), kExchangedSamples) {
    rig_.ctx.sequence = &sequence_;
  }

  void Run() {
    x_ = Random("x");
    dy_ = Random("dy");
    for (const Instruction& i : exchanges_.program().instructions[device_]) Pass(i);
    EXPECT_THAT(exchanger_.status(), IsOk());
  }

  // With whole samples.
  void Compare() {
    LayerRig whole(rig_.spec, backend_.get(), kExchangedSamples);
    const Tensor y = whole.layer->Forward(whole.ctx, {x_}, &whole.stash);
    std::vector<Tensor> dx =
        whole.layer->BackwardInput(whole.ctx, {x_}, Random("dy"), &whole.stash);
    whole.layer->BackwardWeight(whole.ctx, {x_}, &whole.stash);
    for (int k = 0; k < kSlices; ++k) {
      ExpectNear(y_[k], Cut(k, y), absl::StrCat("output of slice ", k));
      ExpectNear(dx_[k], Cut(k, dx[0]), absl::StrCat("input gradient of slice ", k));
    }
    for (size_t p = 0; p < whole.parameters.size(); ++p) {
      ExpectNear(rig_.parameters[p].gradient, whole.parameters[p].gradient,
                 rig_.spec.parameters[p].name);
    }
  }

 private:
  Tensor Random(const char* name) {
    return RandomTensor(backend_.get(), {kExchangedSamples * tokens_, rig_.spec.output_shape[1]},
                        absl::StrCat(name, device_), 1);
  }
  Tensor Cut(int k, const Tensor& whole) {
    const int64_t n = tokens_ / kSlices;
    Tensor part = backend_->Allocate({kExchangedSamples * n, whole.dim(1)});
    for (int64_t s = 0; s < kExchangedSamples; ++s) {
      const int64_t row = s * tokens_ + k * n;
      backend_->Copy(whole.Rows(row, row + n), part.Rows(s * n, (s + 1) * n));
    }
    return part;
  }

  void Pass(const Instruction& i) {
    const int k = i.action.slice;
    const bool forward = i.action.kind == ActionKind::kForward;
    SCOPED_TRACE(absl::StrCat("device ", device_, ", ", ToString(i.action), ".", k));
    const std::vector<int64_t> given = exchanges_.CountsOf(i, false),
                               received = exchanges_.CountsOf(i, true);
    TokenSlice slice = {k * (tokens_ / kSlices), tokens_ / kSlices};
    slice.given = given;
    slice.received = received;
    rig_.ctx.slice = {slice.first, slice.count};
    rig_.ctx.exchange = exchanger_.Of(i.action);
    EXPECT_EQ(rig_.ctx.exchange != nullptr, i.arg >= 0);
    if (forward) {
      xs_.push_back(Cut(k, x_));
      stashes_.emplace_back();
    }
    Tensor dy = forward ? Tensor() : Cut(k, dy_);
    const Bytes before = arena_.current_transient(), sent = exchanger_.traffic();
    arena_.ResetPeaks();
    if (forward) {
      y_.push_back(rig_.layer->Forward(rig_.ctx, {xs_[k]}, &stashes_[k]));
    } else {
      std::vector<Tensor> dx =
          rig_.layer->BackwardInput(rig_.ctx, {xs_[k]}, std::move(dy), &stashes_[k]);
      rig_.layer->BackwardWeight(rig_.ctx, {xs_[k]}, &stashes_[k]);
      dx_.insert(dx_.begin(), std::move(dx[0]));
    }
    const TensorShare costs = ShareOf(rig_.spec, kExchangedSamples, slice, TensorParallel());
    EXPECT_EQ(arena_.peak_transient() - before,
              forward ? costs.costs.forward_peak : costs.costs.backward_peak);
    Bytes messages;
    for (const TensorCollective& c :
         forward ? costs.context.forward : costs.context.backward_input) {
      messages += c.bytes;
    }
    EXPECT_EQ(exchanger_.traffic() - sent, messages);
  }

  const int device_;
  const int64_t tokens_;
  const Exchanges& exchanges_;
  Arena arena_;
  const std::unique_ptr<Backend> backend_;
  SliceExchanger exchanger_;
  LayerRig rig_;
  LayerStash sequence_;
  Tensor x_, dy_;
  std::vector<Tensor> xs_, y_, dx_;
  std::vector<LayerStash> stashes_;
};

// GPT's; Llama's, with groups of queries, rotary positions and tiles of keys.
std::vector<LayerSpec> Attentions(int64_t tokens) {
  GptConfig gpt = SmallGpt(/*dropout=*/0.25, /*tied=*/false);
  gpt.tokens = tokens;
  GptConfig llama = LlamaConfig(/*layers=*/1, /*hidden=*/16, /*heads=*/4, /*feed_forward=*/12,
                                tokens, /*vocabulary=*/11);
  llama.kv_heads = 2;
  llama.key_tile = 50;
  return {BuildGpt(gpt)->layers[1], BuildGpt(llama)->layers[1]};
}

class SliceExchangerTest : public testing::TestWithParam<MakeBackend> {};

TEST_P(SliceExchangerTest, ComputesWhatWholeSamplesDo) {
  const Exchanges exchanges;
  for (const int64_t tokens : {8, 12, 280}) {
    for (const LayerSpec& spec : Attentions(tokens)) {
      SCOPED_TRACE(absl::StrCat(spec.name, ", ", tokens, " tokens"));
      auto communicators = MakeInProcessCommunicators(kDevices, {});
      std::vector<std::unique_ptr<OneDevice>> devices;
      std::vector<std::thread> threads;
      for (int d = 0; d < kDevices; ++d) {
        devices.push_back(std::make_unique<OneDevice>(spec, tokens, d, GetParam(), exchanges,
                                                      std::move(communicators[d])));
        threads.emplace_back([device = devices[d].get()] { device->Run(); });
      }
      for (std::thread& thread : threads) thread.join();
      for (const auto& device : devices) device->Compare();
    }
  }
}

// A device that waits for another's part of its pass does not outlive the run.
TEST(SliceExchanger, AbortFreesWhoWaits) {
  const Exchanges exchanges;
  auto communicators = MakeInProcessCommunicators(kDevices, {});
  std::vector<std::unique_ptr<SliceExchanger>> exchangers;
  for (int d = 0; d < kDevices; ++d) {
    exchangers.push_back(std::make_unique<SliceExchanger>(
        exchanges.program(), d, std::move(communicators[d]), [](int other) { return other; },
        absl::InfiniteDuration()));
  }
  Arena arena;
  ChunkExchange* const waits = exchangers[0]->Of(PassOf(ActionKind::kForward, 2));
  ASSERT_NE(waits, nullptr);
  EXPECT_EQ(exchangers[0]->Of(PassOf(ActionKind::kForward, 1)), nullptr);
  std::thread thread([&] { waits->Receive(DataType::kFloat32, {3}, 2, &arena)(); });
  exchangers[1]->Abort(absl::InternalError("device 1 is gone"));
  thread.join();
  EXPECT_THAT(exchangers[0]->status(),
              StatusIs(absl::StatusCode::kInternal, testing::HasSubstr("device 1 is gone")));
}

INSTANTIATE_TEST_SUITE_P(Backends, SliceExchangerTest,
                         testing::Values(&MakeReferenceBackend, &MakeCpuBackend),
                         [](const auto& info) { return info.index == 0 ? "reference" : "cpu"; });

}  // namespace
}  // namespace pipelab

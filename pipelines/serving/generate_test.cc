#include "pipelines/serving/generate.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/tensor/arena.h"
#include "models/data/batch_source.h"
#include "models/layers/serial_trainer.h"
#include "models/specs/token_cache.h"
#include "models/zoo/gpt.h"
#include "tools/base/rng.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

constexpr int64_t kWords = 50, kContext = 24;

// Nets of every kind that decodes, by name.
std::vector<std::pair<std::string, GptConfig>> Nets() {
  std::vector<std::pair<std::string, GptConfig>> nets;
  GptConfig gpt;
  gpt.layers = 3;
  gpt.hidden = 32;
  gpt.heads = 4;
  gpt.tokens = kContext;
  gpt.vocabulary = kWords;
  nets.emplace_back("learned positions", gpt);
  gpt.tied_embeddings = true;
  gpt.positions = Positions::kSinusoidal;
  gpt.windows = {5, 0};
  nets.emplace_back("tied, sinusoidal, windows", gpt);
  GptConfig llama = LlamaConfig(3, 32, 4, 48, kContext, kWords);
  llama.kv_heads = 2;
  llama.query_key_norms = true;
  llama.key_tile = 4;
  nets.emplace_back("rotary, grouped, norms of heads", llama);
  llama.post_norms = true;
  llama.query_key_norms = false;
  nets.emplace_back("norms behind", llama);
  llama.post_norms = false;
  llama.experts.experts = 4;
  llama.experts.chosen = 2;
  nets.emplace_back("experts", llama);
  return nets;
}

// One sequence, padded to the model's length: what causal attention never looks at.
class Sequence : public BatchSource {
 public:
  explicit Sequence(std::vector<int32_t> ids)
      : BatchSource({{kTokens, FieldType::kId, {kContext}, kWords},
                     {kTargets, FieldType::kId, {kContext}, kWords}}),
        ids_(std::move(ids)) {
    ids_.resize(kContext, 0);
  }
  void FillIds(int, int64_t, int64_t, absl::Span<int32_t> out) const override {
    std::copy(ids_.begin(), ids_.end(), out.begin());
  }

 private:
  std::vector<int32_t> ids_;
};

// Decodes as plainly as can be: everything again for each token, nothing cached.
std::vector<int32_t> DecodeSerially(SerialTrainer* model, std::vector<int32_t> ids, int64_t output,
                                    double temperature, int request) {
  const size_t prompt = ids.size();
  for (int64_t n = 0; n < output; ++n) {
    std::vector<float> logits;
    EXPECT_TRUE(model->Evaluate(Sequence(ids), 0, 0, 1, &logits).ok());
    const int64_t last = static_cast<int64_t>(ids.size()) - 1;
    ids.push_back(ChooseToken(absl::MakeConstSpan(logits).subspan(last * kWords, kWords),
                              temperature, /*seed=*/1, request, last));
  }
  return {ids.begin() + static_cast<std::ptrdiff_t>(prompt), ids.end()};
}

PassPlan PlanOf(const std::vector<Request>& requests, const ServingOptions& options) {
  return *PlanPasses(requests, options, ServingTimes::Unit());
}

ModelPartition CutEvenly(const ModelGraph& graph, int stages) {
  std::vector<int> stage_of_layer;
  const int layers = static_cast<int>(graph.layers.size());
  for (int i = 0; i < layers; ++i) stage_of_layer.push_back(i * stages / layers);
  return *MakePartition(graph, stage_of_layer);
}

struct Prompts {
  std::vector<Request> requests;
  std::vector<std::vector<int32_t>> ids;
};

// Prompts of unequal lengths, more than there are slots.
Prompts SomePrompts() {
  Prompts prompts;
  const CounterRng rng(7, "prompts");
  uint64_t n = 0;
  for (int r = 0; r < 9; ++r) {
    Request request;
    request.prompt = 1 + static_cast<int64_t>(rng.Below(n++, 9));
    request.output = 1 + static_cast<int64_t>(rng.Below(n++, 12));
    prompts.requests.push_back(request);
    std::vector<int32_t>& ids = prompts.ids.emplace_back();
    for (int64_t i = 0; i < request.prompt; ++i) {
      ids.push_back(static_cast<int32_t>(rng.Below(n++, kWords)));
    }
  }
  return prompts;
}

absl::Status KeepWeights(StageParameters*) { return absl::OkStatus(); }

ServingOptions Sizes(int devices, int groups, int slots, int64_t chunk) {
  ServingOptions options;
  options.devices = devices;
  options.groups = groups;
  options.slots = slots;
  options.cache_tokens = 20;
  options.chunk = chunk;
  return options;
}

TEST(Generate, TokensAreThoseOfSerialDecoding) {
  const Prompts prompts = SomePrompts();
  for (const auto& [name, config] : Nets()) {
    PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph graph, BuildGpt(config));
    Arena arena;
    const std::unique_ptr<Backend> backend = MakeCpuBackend(&arena);
    const Sequence none({});
    SerialOptions serial;
    serial.data = &none;
    PIPELAB_ASSERT_OK_AND_ASSIGN(const std::unique_ptr<SerialTrainer> model,
                                 SerialTrainer::Create(graph, backend.get(), serial));
    for (const double temperature : {0.0, 1.0}) {
      std::vector<std::vector<int32_t>> expected;
      for (size_t r = 0; r < prompts.ids.size(); ++r) {
        expected.push_back(DecodeSerially(model.get(), prompts.ids[r], prompts.requests[r].output,
                                          temperature, static_cast<int>(r)));
      }
      for (const ServingOptions& sizes :
           {Sizes(1, 1, 1, 20), Sizes(1, 2, 2, 3), Sizes(2, 2, 1, 20), Sizes(4, 4, 1, 1),
            Sizes(4, 4, 2, 4), Sizes(3, 2, 3, 20)}) {
        GenerateOptions options;
        options.plan = PlanOf(prompts.requests, sizes);
        options.prompts = prompts.ids;
        options.partition = CutEvenly(graph, sizes.devices);
        options.set_weights = KeepWeights;
        options.temperature = temperature;
        PIPELAB_ASSERT_OK_AND_ASSIGN(const Generated made, Generate(graph, options));
        EXPECT_EQ(made.tokens, expected) << name << ", " << sizes.devices << " devices";
        int64_t numbers = 0;
        for (const LayerSpec& layer : graph.layers) numbers += *CacheNumbers(layer);
        Bytes caches;
        for (const Bytes bytes : made.caches) caches += bytes;
        EXPECT_EQ(caches.value(), numbers * 4 * sizes.groups * sizes.slots * sizes.cache_tokens);
      }
    }
  }
}

TEST(Generate, Errors) {
  const GptConfig config = Nets()[0].second;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph graph, BuildGpt(config));
  GenerateOptions options;
  options.plan = PlanOf({{Nanoseconds(0), 3, 2}}, Sizes(2, 1, 1, 20));
  options.partition = CutEvenly(graph, 2);
  options.set_weights = KeepWeights;
  const auto error = [&] { return std::string(Generate(graph, options).status().message()); };
  EXPECT_EQ(error(), "0 prompts for a plan of 1 requests");
  options.prompts = {{1, 2}};
  EXPECT_EQ(error(), "prompt 0 has 2 tokens, and 3 in the plan");
  options.prompts = {{1, 2, 50}};
  EXPECT_EQ(error(), "prompt 0: token 50 is not one of the model's, which are 0 to 49");
  options.prompts = {std::vector<int32_t>(24, 1)};
  EXPECT_EQ(error(), "prompt 0: 24 tokens and 2 more are longer than the model's context of 24");
  options.prompts = {{1, 2, 3}};
  options.plan.options.cache_tokens = int64_t{1} << 45;
  EXPECT_THAT(error(), testing::MatchesRegex("weights and caches need .* GiB of memory, and .* are "
                                             "free; fewer --groups or --slots, .*"));
  options.plan.options.cache_tokens = 20;
  options.partition = CutEvenly(graph, 3);
  EXPECT_EQ(error(), "the layers are in 3 stages, the plan has 2 devices");
}

}  // namespace
}  // namespace pipelab

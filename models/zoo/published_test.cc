// Counts of the papers' models: as printed, and as the papers' own formulas have them.
#include "models/zoo/published.h"

#include <cmath>
#include <cstdio>
#include <map>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::AllOf;
using testing::HasSubstr;

int64_t CountOf(const std::string& name) {
  auto graph = BuildPublished(name);
  EXPECT_THAT(graph, IsOk());
  return graph.ok() ? graph->num_parameters() : 0;
}

// Sizes that a paper does not give are ours (PublishedModel::assumed), and here they miss the
// printed count by more than its last digit: by how much of it.
const std::map<std::string, double> kMissed = {
    {"t-24-8192-16", 0.05},  {"t-12-16384-32", 0.05},  // 1.24B; a third table would make it 1.30B
    {"gpt-6.6b", 0.01},                                // 6.66B with 51200 words
    {"llama-65b", 0.002},                              // 65.286B, which the paper cuts off
    {"llama-3-405b", 0.003},                           // 405.85B
    {"llama-3-70b", 0.01},                             // 70.55B
    {"llama-2-70b", 0.02},                             // 68.98B
    {"qwen2.5-7b", 0.001},                             // 7.616B
    {"qwen2.5-32b", 0.01},                             // 32.76B
};

TEST(Published, CountsAreThosePrinted) {
  std::set<std::string> names;
  for (const PublishedModel& m : PublishedModels()) {
    EXPECT_TRUE(names.insert(m.name).second) << m.name;
    EXPECT_FALSE(m.source.empty()) << m.name;
    const auto count = static_cast<double>(CountOf(m.name));
    std::printf("%-18s %18.0f  printed %.4g\n", m.name.c_str(), count, m.printed);
    if (m.printed == 0) continue;
    const auto missed = kMissed.find(m.name);
    if (missed == kMissed.end()) {
      EXPECT_LE(std::abs(count - m.printed), m.unit / 2) << m.name;
    } else {
      EXPECT_GT(std::abs(count - m.printed), m.unit / 2) << m.name << " fits: no exception";
      EXPECT_LE(std::abs(count - m.printed), missed->second * m.printed) << m.name;
    }
  }
}

// As the published weights have them.
TEST(Published, LlamaToTheLastParameter) {
  EXPECT_EQ(CountOf("llama-7b"), 6738415616);
  EXPECT_EQ(CountOf("llama-13b"), 13015864320);
  EXPECT_EQ(CountOf("llama-33b"), 32528943616);
  EXPECT_EQ(CountOf("llama-65b"), 65285660672);
  EXPECT_EQ(CountOf("llama-2-70b"), 68976648192);
  EXPECT_EQ(CountOf("llama-3-8b"), 8030261248);
  EXPECT_EQ(CountOf("llama-3-70b"), 70553706496);
  EXPECT_EQ(CountOf("llama-3-405b"), 405853388800);
  EXPECT_EQ(CountOf("mistral-7b"), 7241732096);
  EXPECT_EQ(CountOf("qwen2.5-0.5b"), 494032768);
  EXPECT_EQ(CountOf("qwen2.5-7b"), 7615616512);
  EXPECT_EQ(CountOf("qwen2.5-32b"), 32763876352);
  EXPECT_EQ(CountOf("qwen2.5-72b"), 72706203648);
  // Table 2 of Gemma's paper has those that are no embeddings.
  EXPECT_EQ(CountOf("gemma-2b"), int64_t{256000} * 2048 + 1981884416);
  EXPECT_EQ(CountOf("gemma-2-2b"), int64_t{256000} * 2304 + 2024517888);
  EXPECT_EQ(CountOf("gemma-2-9b"), int64_t{256000} * 3584 + 8324201984);
  EXPECT_EQ(CountOf("gemma-3-1b"), int64_t{262144} * 1152 + 697896064);
  EXPECT_EQ(CountOf("gemma-7b"), int64_t{256000} * 3072 + 7751248896);
}

TEST(Published, ExpertsToTheLastParameter) {
  EXPECT_EQ(CountOf("mixtral-8x7b"), 46702792704);
  EXPECT_EQ(CountOf("qwen3-0.6b"), 596049920);
  EXPECT_EQ(CountOf("qwen3-8b"), 8190735360);
  EXPECT_EQ(CountOf("qwen3-30b-a3b"), 30532122624);
  EXPECT_EQ(CountOf("qwen3-235b-a22b"), 235093634560);
  EXPECT_EQ(CountOf("gpt-oss-20b"), 20914757184);
  EXPECT_EQ(CountOf("gpt-oss-120b"), 116829156672);
}

// The published weights have besides a bias of each expert's score, which no gradient changes.
TEST(Published, LatentAttentionToTheLastParameter) {
  EXPECT_EQ(CountOf("deepseek-v3") + 58 * 256, 671026419200);
  EXPECT_EQ(CountOf("kimi-k2") + 60 * 384, 1026408232448);
  // Without embeddings Table 2 of Moonlight's paper says 15.29B.
  EXPECT_EQ((CountOf("moonlight-16b-a3b") - 2 * 163840 * 2048) / 10'000'000, 1528);
}

// Flops of a token are those of the experts that it takes: of a product's weights two each. The
// model cards say 12.9B and 3.3B of them.
TEST(Published, ExpertsCountFlopsOfWhatATokenTakes) {
  for (const auto& [name, active] :
       {std::make_pair("mixtral-8x7b", 12.9e9), std::make_pair("qwen3-30b-a3b", 3.3e9)}) {
    PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph g, BuildPublished(name));
    double products = 0;
    for (const LayerSpec& layer : g.layers) {
      products += layer.costs(1).backward_weight.value() / (2 * 4096);
    }
    const auto table = static_cast<double>(g.layers[0].parameters[0].size());  // looked up
    EXPECT_NEAR((products + table) / 1e9, active / 1e9, 0.06) << name;
  }
}

// 37B of DeepSeek-V3 as its paper has it; of Moonlight without the output table 2.24B.
TEST(Published, LatentAttentionCountsFlopsOfWhatATokenTakes) {
  const auto active = [](const char* name) {
    double products = 0;
    const ModelGraph graph = *BuildPublished(name);
    for (const LayerSpec& layer : graph.layers) {
      products += layer.costs(1).backward_weight.value() / (2 * 4096);
    }
    return products;
  };
  EXPECT_NEAR(active("deepseek-v3"), 37e9, 0.5e9);
  EXPECT_NEAR(active("moonlight-16b-a3b") - 163840 * 2048, 2.24e9, 0.005e9);
}

// GPipe's Table 1: layers of 4 d^2 + 2 d d_ff and two tables; biases and norms are 9 d + d_ff a
// layer, 2 d at the end, and a bias for each word.
TEST(Published, TransformerLFollowsGPipesArithmetic) {
  const int64_t d = 2048, ff = 8192, words = 32000;
  for (int64_t l : {3, 13, 103, 415, 1663}) {
    EXPECT_EQ(CountOf("transformer-l-" + std::to_string(l)),
              l * (4 * d * d + 2 * d * ff) + 2 * words * d + l * (9 * d + ff) + 2 * d + words);
  }
}

// Megatron-LM: 12 l h^2 (1 + 13 / (12 h) + (V + s) / (12 l h)), which leaves out the last norm, 2
// h.
TEST(Published, MegatronRowsFollowItsFormula) {
  struct Row {
    const char* name;
    int64_t l, h;
  };
  for (const Row& r : {Row{"megatron-3.6b", 30, 3072}, Row{"megatron-18.4b", 40, 6144},
                       Row{"megatron-76.1b", 60, 10240}, Row{"megatron-310.1b", 96, 16384},
                       Row{"megatron-1008b", 128, 25600}}) {
    EXPECT_EQ(CountOf(r.name),
              12 * r.l * r.h * r.h + 13 * r.l * r.h + (51200 + 2048) * r.h + 2 * r.h)
        << r.name;
  }
}

// Its flops of an iteration with recompute, 96 B s l h^2 (1 + s / (6 h) + V / (16 l h)): a forward
// twice and a backward of twice its flops. Ours skip the scores above the diagonal's blocks, and
// their backward computes the scores again: 5 products where the formula has 4.
TEST(Published, MegatronFlopsFollowItsFormula) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph g, BuildPublished("megatron-76.1b"));
  const double l = 60, h = 10240, s = 2048, v = 51200;
  double linear = 0, scores = 0;
  for (const LayerSpec& layer : g.layers) {
    const LayerCosts c = layer.costs(1);
    const double forward = c.forward.value(), weight = c.backward_weight.value();
    linear += layer.kind == "gpt_head" ? 3 * weight : 4 * weight;  // a head is not recomputed
    scores += forward - weight;
  }
  EXPECT_DOUBLE_EQ(linear, 96 * s * l * h * h + 6 * s * v * h);
  const double full = l * 4 * s * s * h;  // 2 products of s x s a layer
  const double blocks = s / 64;
  EXPECT_DOUBLE_EQ(scores, full * (blocks + 1) / (2 * blocks));
}

// BERT-48 with segments (2 h), its pooler and sentence-order head (h^2 + h, 2 h + 2) has the
// 669,790,012 parameters of BertForPreTraining with an output table of its own.
TEST(Published, Bert48IsThatOfTheLibraries) {
  const int64_t h = 1024;
  EXPECT_EQ(CountOf("bert-48") + 2 * h + (h * h + h) + (2 * h + 2), 669'790'012);
}

TEST(Published, BranchedModelsFollowTheirClosedForms) {
  const int64_t d = 4096, square = d * d + d;
  const int64_t end = 3 * square + d + 1;  // 3 of the 4 layers after the join, the number
  EXPECT_EQ(CountOf("dlrm"), 7 * 4 * square + 7 * 64'000'000 + (7 * d + 7 * 64) * d + d + end);
  EXPECT_EQ(CountOf("candle-uno"), 7 * 4 * square + 7 * d * d + d + end);
  const int64_t c = 1024, ff = 4096, v = 32000, t = 256;
  const int64_t repeat = 4 * c * c + 4 * c + 2 * c + 2 * c * ff + c + ff;
  EXPECT_EQ(CountOf("case-study"), 2 * (4 * repeat + (v + t) * c) + 2 * c + v * c);
}

TEST(Published, AnUnknownNameListsTheOthers) {
  EXPECT_THAT(BuildPublished("gpt"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("--model=gpt: is not one of "), HasSubstr("gpt-52b, "))));
}

}  // namespace
}  // namespace pipelab

// One configuration has one price: every command, the studies' entry, the search and what `run`
// predicts give the same step time to the nanosecond and the same memory to the byte.
#include <cstdint>
#include <fstream>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "experiments/commands/command.h"
#include "experiments/vocabulary/vocabulary_steps.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pipelines/cluster/catalog.h"
#include "pipelines/cluster/cluster.h"
#include "pipelines/cluster/cluster_json.h"
#include "pipelines/schedules/catalog.h"
#include "pipelines/schedules/variants.h"
#include "pipelines/schedules/vocabulary.h"
#include "pipelines/step/execution.h"
#include "pipelines/step/model_on_cluster.h"
#include "pipelines/step/step.h"
#include "tools/base/json.h"
#include "tools/base/status_matchers.h"

ABSL_DECLARE_FLAG(std::string, model);
ABSL_DECLARE_FLAG(std::string, cluster);
ABSL_DECLARE_FLAG(std::string, dtype);
ABSL_DECLARE_FLAG(std::string, kernels);
ABSL_DECLARE_FLAG(std::string, json_out);
ABSL_DECLARE_FLAG(std::string, explain);

namespace pipelab {
namespace {

constexpr int kAll = 2;

struct Place {
  int half;   // of all configurations, 0 or 1; kAll
  int least;  // configurations that it prices
  const char* model;
  const char* cluster;
  const char* dtype;
};

constexpr Place kPlaces[] = {
    {0, 1200, "gpt-6.6b", "dgx-a100", "bf16"},       {1, 1200, "gpt-6.6b", "dgx1-v100", "fp16"},
    {0, 1000, "bert-64", "p3.16xlarge", "fp16"},     {1, 1000, "gpt-52b", "summit", "fp32"},
    {kAll, 150, "resnet-small", "dgx-a100", "fp32"}, {1, 150, "mixtral-8x7b", "dgx-h100", "bf16"}};

// What a user reads off a command.
struct Answer {
  bool ok = false;
  std::string error;
  double step_ms = 0;
  int64_t memory = 0;

  friend bool operator==(const Answer& a, const Answer& b) {
    return a.ok == b.ok && a.step_ms == b.step_ms && a.memory == b.memory;
  }
  friend void PrintTo(const Answer& a, std::ostream* out) {
    *out << a.step_ms << " ms, " << a.memory << " bytes" << a.error;
  }
};

Answer AnswerOf(const absl::Status& status, const std::string& path, size_t index = 0) {
  Answer answer;
  // A step that does not fit is told all the same.
  if (!status.ok() && !absl::IsResourceExhausted(status)) {
    answer.error = std::string(status.message());
    return answer;
  }
  std::ifstream file(path);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const auto json = ParseJson(text, path);
  if (!json.ok()) return answer;
  const nlohmann::json& value = json->is_array() ? (*json)[index] : *json;
  answer.ok = true;
  answer.step_ms = value["step_ms"].get<double>();
  answer.memory = value["memory_bytes"].get<int64_t>();
  return answer;
}

// As commands print it: divided once.
double Ms(Nanoseconds time) { return static_cast<double>(time.value()) / 1e6; }

Answer AnswerOf(const absl::StatusOr<StepPrediction>& p) {
  if (!p.ok()) return {false, std::string(p.status().message()), 0, 0};
  return {true, "", Ms(p->step_time), p->largest_device.value()};
}

// All ways to run each scheme on several grids; every third sharding and recomputation, and some in
// sets. With experts some of them, which copies divide, and ranks too where they split rows.
// Schemes with passes for parts of the vocabulary have parts.
std::vector<StepConfig> ConfigsOf(int max_stages, bool experts) {
  std::vector<StepConfig> configs;
  const std::vector<Sharding> shardings = {Sharding::kReplicated, Sharding::kOptimizer,
                                           Sharding::kGradients, Sharding::kFully};
  size_t turn = 0;
  for (const Scheme& scheme : Catalog()) {
    const bool parts = TakesVocabularyParts(scheme);
    if ((scheme.options & kStageGraph) != 0 && !parts) continue;  // needs edges of its own
    for (const auto& [p, t, d] :
         {std::tuple(2, 1, 1), {4, 1, 2}, {4, 2, 1}, {2, 2, 4}, {8, 1, 1}, {4, 2, 8}, {2, 4, 3}}) {
      for (const int m : {8, 16}) {
        StepConfig c;
        c.scheme = std::string(scheme.name);
        c.pipeline = p;
        c.tensor = t;
        c.data = d;
        c.micro_batches = m;
        VariantLimits limits;
        limits.max_stages = max_stages;
        for (const SchemeParams& params : Variants(scheme, SchemeSizes(c), limits)) {
          c.virtual_stages = params.virtual_stages;
          c.group_size = params.group_size;
          c.replicas = params.replicas;
          c.concatenation = params.concatenation;
          c.slices = params.slices;
          c.update_interval = params.update_interval;
          for (int i = 0; i < 2; ++i, ++turn) {
            const bool forward_only = (scheme.options & kForwardOnly) != 0;
            const bool whole = scheme.asynchronous || forward_only || d == 1;
            c.sharding = whole ? Sharding::kReplicated : shardings[turn % 4];
            // Else a split backward with sharded gradients is refused.
            c.split_head = (scheme.options & kSplitBackward) != 0 &&
                           (turn % 5 == 0 || ShardsGradients(c.sharding));
            const bool recompute = turn % 3 == 0 && !scheme.asynchronous && !forward_only;
            c.recompute = recompute ? Recompute::kFull : Recompute::kNone;
            c.overlap_data = turn % 5 != 0;
            c.sequence_parallel = t > 1 && turn % 7 == 0;
            c.micro_batch_size = 1 + static_cast<int64_t>(turn % 2);
            c.vocabulary_barriers = parts ? 1 + static_cast<int>(turn / 2 % 2) : 0;
            const bool once = parts && turn / 4 % 2 == 1;
            c.vocabulary_exchange =
                once ? VocabularyExchange::kCollectives : VocabularyExchange::kMessages;
            if (experts && turn / 8 % 3 != 0) continue;
            c.whole_experts = experts && c.sequence_parallel;
            c.experts = !experts ? 1 : c.whole_experts ? t * d : d;
            const bool sets = d % 4 == 0 && c.sharding != Sharding::kReplicated && turn % 2 == 1;
            c.shards = sets && !experts ? d / 2 : 0;
            configs.push_back(c);
            if (turn % 12 == 7 && c.slices == 0) {
              StepConfig& chunks = configs.emplace_back(c);
              chunks.context = 2;
              const bool ring = turn % 24 == 7;
              if (ring) chunks.context_exchange = ContextExchange::kRing;
            }
            // Refused alike where its calls do not suit the sizes.
            if (turn % 4 != 1 || (c.scheme != "1f1b" && c.scheme != "interleaved")) continue;
            StepConfig& megatron = configs.emplace_back(c);
            megatron.execution = kAllExecutionParts;
            megatron.overlap_data = false;
          }
        }
      }
    }
  }
  return configs;
}

class OnePrice : public testing::TestWithParam<Place> {
 protected:
  OnePrice()
      : path_(testing::TempDir() + "/answer.json"),
        calibrated_(testing::TempDir() + "/calibrated.json") {
    const Place& place = GetParam();
    absl::SetFlag(&FLAGS_model, place.model);
    absl::SetFlag(&FLAGS_cluster, place.cluster);
    absl::SetFlag(&FLAGS_dtype, place.dtype);
    absl::SetFlag(&FLAGS_json_out, path_);
    on_ = ModelOnCluster::Load(place.model, place.cluster, place.dtype).value();
    ClusterSpec calibrated = *on_->step().cluster;
    calibrated.device.calibrated = "to nothing: for this test";
    std::ofstream(calibrated_) << ClusterToJson(calibrated);
  }

  // A machine that is not calibrated has a note, which prices each configuration twice more, for
  // the best and the worst efficiency. Once is enough for a way: then it is taken with a file of
  // the same machine that says otherwise.
  void TakeCluster(bool with_note) {
    absl::SetFlag(&FLAGS_cluster, with_note ? GetParam().cluster : calibrated_);
  }

  // The way's text, with the note, where there is one, of the study's price.
  void ExpectNote(const Answer& study) const {
    if (CalibrationWarning(*on_->step().cluster).empty()) return;
    EXPECT_THAT(text_, testing::HasSubstr(absl::StrFormat("%.1f ms expected", study.step_ms)));
  }

  Answer Simulated(const std::string& config) {
    testing::internal::CaptureStdout();
    const absl::Status status = SimulateCommand({"simulate", config});
    text_ = testing::internal::GetCapturedStdout();
    return AnswerOf(status, path_);
  }

  Answer Explained(const std::string& config) {
    absl::SetFlag(&FLAGS_explain, config);
    testing::internal::CaptureStdout();
    const absl::Status status = SearchCommand({"search"});
    text_ = testing::internal::GetCapturedStdout();
    absl::SetFlag(&FLAGS_explain, "");
    return AnswerOf(status, path_);
  }

  Answer ComparedWith(const std::string& config, const std::string& other) {
    testing::internal::CaptureStdout();
    const absl::Status status = CompareCommand({"compare", other, config});
    text_ = testing::internal::GetCapturedStdout();
    return AnswerOf(status, path_, 1);
  }

  const std::string path_, calibrated_;  // files: of a command's answer, and of the machine
  std::string text_;                     // of the last command
  std::unique_ptr<ModelOnCluster> on_;
};

// Half of the configurations, the other half in the next place, through the study's cache and one
// way more, a fifth each: by `simulate`, without a cache, explained, beside the last one that took
// this way, and with a device for each copy, as `run` executes it.
TEST_P(OnePrice, EveryWayGivesTheSame) {
  StepCache cache(on_->step());
  StepModel every = on_->step();
  every.fold_data = false;
  uint32_t turn = 0;
  int priced = 0, refused = 0;
  int index = 0;
  std::string other;
  std::set<uint32_t> ways;  // that were taken
  for (const StepConfig& c :
       ConfigsOf(on_->model().num_groups(), std::string(GetParam().model) == "mixtral-8x7b")) {
    // By two, since their choices alternate.
    if (index++ / 2 % 2 == 1 - GetParam().half) continue;
    const std::string text = c.ToString();
    SCOPED_TRACE(text);
    const Answer study = AnswerOf(PredictStep(&cache, c));
    TakeCluster(/*with_note=*/false);
    if (!study.ok) {
      EXPECT_EQ(Simulated(text), study) << study.error;
      ++refused;
      continue;
    }
    // Not in the order of the configurations, whose choices recur too.
    const uint32_t way = ((++turn * 2654435761u) >> 16) % 5;
    const bool with_note = way < 3 && ways.insert(way).second;
    TakeCluster(with_note);
    if (way == 0) {
      EXPECT_EQ(Simulated(text), study);
    } else if (way == 1) {
      EXPECT_EQ(Explained(text), study);
    } else if (way == 2) {
      EXPECT_EQ(ComparedWith(text, other.empty() ? text : other), study);
      other = text;
    } else if (way == 3 && (c.data <= 2 || turn % 8 == 0)) {
      EXPECT_EQ(AnswerOf(PredictStep(every, c)), study);
    } else {
      EXPECT_EQ(AnswerOf(PredictStep(on_->step(), c)), study);
    }
    if (with_note) ExpectNote(study);
    ++priced;
    if (HasFailure()) return;
  }
  EXPECT_GE(priced, GetParam().least);
  EXPECT_EQ(ways.size(), 3u);
  std::printf("%d configurations of %s on %s have one price; %d are refused alike\n", priced,
              GetParam().model, GetParam().cluster, refused);
}

// A user's words for a step of the study of divided vocabularies give the study's step.
TEST(OnePriceOfAStudy, DividedVocabularies) {
  const std::string model = testing::TempDir() + "/gpt.json", path = testing::TempDir() + "/a.json";
  std::ofstream(model) << R"({"model_type": "gpt2", "n_embd": 1024, "n_layer": 8, "n_head": 16,
                              "n_positions": 512, "vocab_size": 90001,
                              "tie_word_embeddings": false})";
  absl::SetFlag(&FLAGS_model, model);
  absl::SetFlag(&FLAGS_cluster, "dgx-a100");
  absl::SetFlag(&FLAGS_dtype, "bf16");
  absl::SetFlag(&FLAGS_kernels, "megatron-unfused-loss");
  absl::SetFlag(&FLAGS_json_out, path);
  const VocabularySizes sizes = {4, 8, 8, 1024, 16, 512, 90001};
  const ClusterSpec cluster = LoadCluster("--cluster", "dgx-a100").value();
  for (const auto& [system, words] :
       {std::pair(VocabularySystem::kBaseline, "1f1b:layout=Ett|tt|tt|ttL,"),
        {VocabularySystem::kRedistributed, "1f1b:layout=Ett|ttt|ttt|L,"},
        {VocabularySystem::kVHalf, "v_half:layout=Et|t|t|t|t|t|t|tL,"},
        {VocabularySystem::kVHalfVocab1, "vocab_v_half:vocabulary_barriers=2,"},
        {VocabularySystem::kVocab1, "vocab_1f1b:vocabulary_barriers=2,"},
        {VocabularySystem::kVocab2, "vocab_1f1b:vocabulary_barriers=1,"},
        {VocabularySystem::kInterlaced, "vocab_interlaced:vocabulary_barriers=2,"}}) {
    for (const auto exchange : {VocabularyExchange::kMessages, VocabularyExchange::kCollectives}) {
      std::string config = absl::StrCat(words, "P=4,M=8,state=2+2");
      if (IsDivided(system)) {
        absl::StrAppend(&config, ",vocabulary_exchange=", VocabularyExchangeName(exchange));
      }
      SCOPED_TRACE(config);
      VocabularyOptions options;
      options.exchange = exchange;
      PIPELAB_ASSERT_OK_AND_ASSIGN(const VocabularyStep step,
                                   SimulateVocabulary(system, sizes, cluster, options));
      testing::internal::CaptureStdout();
      const absl::Status status = SimulateCommand({"simulate", config});
      testing::internal::GetCapturedStdout();
      EXPECT_EQ(AnswerOf(status, path), (Answer{true, "", Ms(step.time), step.memory.value()}));
    }
  }
  absl::SetFlag(&FLAGS_kernels, "own");
}

INSTANTIATE_TEST_SUITE_P(Places, OnePrice, testing::ValuesIn(kPlaces),
                         [](const auto& info) { return absl::StrCat("Place", info.index); });

}  // namespace
}  // namespace pipelab

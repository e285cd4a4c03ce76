// One configuration has one price: every command, the studies' entry, the search and what `run`
// predicts give the same step time to the nanosecond and the same memory to the byte.
#include <cstdint>
#include <fstream>
#include <iterator>
#include <memory>
#include <set>
#include <string>
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
#include "pipelines/step/model_on_cluster.h"
#include "pipelines/step/step.h"
#include "tests/priced_configs.h"
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

class OnePrice : public testing::TestWithParam<PricedPlace> {
 protected:
  OnePrice()
      : path_(testing::TempDir() + "/answer.json"),
        calibrated_(testing::TempDir() + "/calibrated.json") {
    const PricedPlace& place = GetParam();
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
  std::string other;
  std::set<uint32_t> ways;  // that were taken
  for (const StepConfig& c : ConfigsOf(GetParam(), on_->model().num_groups())) {
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

INSTANTIATE_TEST_SUITE_P(Places, OnePrice, testing::ValuesIn(kPricedPlaces),
                         [](const auto& info) { return absl::StrCat("Place", info.index); });

}  // namespace
}  // namespace pipelab

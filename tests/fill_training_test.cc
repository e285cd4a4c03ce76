// Other jobs in the waits of a real training: under every scheme the training's losses, parameters
// and peaks are the same bits as without, and the jobs' answers those that they give alone.
#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_backend.h"
#include "models/data/greedy_translator.h"
#include "models/data/translations.h"
#include "models/layers/test_images.h"
#include "models/layers/test_layers.h"
#include "models/zoo/dlrm.h"
#include "models/zoo/transformer.h"
#include "pipelines/fill/fill_evaluation.h"
#include "pipelines/runtime/training.h"
#include "pipelines/schedules/catalog.h"
#include "tests/small_gpt.h"
#include "tests/small_training.h"
#include "tools/base/status_macros.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::HasSubstr;

constexpr int kFillSteps = 6;
constexpr int kRanks = 4, kKinds = 4;  // of fill jobs
constexpr int kOthers = 2;             // that fail
const TranslationOptions kShort{/*source_length=*/20, /*target_length=*/13, /*least_count=*/1};

// Wants more memory than there is.
class LargeWork final : public FillWork {
 public:
  const std::string& name() const override { return name_; }
  bool over() const override { return false; }
  Bytes next_bytes() const override { return Bytes(int64_t{1} << 40); }
  absl::Status RunNext() override { return absl::InternalError("it must not run"); }

 private:
  const std::string name_ = "large";
};

// Fails at its second piece.
class BrokenWork final : public FillWork {
 public:
  const std::string& name() const override { return name_; }
  bool over() const override { return false; }
  Bytes next_bytes() const override { return Bytes(0); }
  absl::Status RunNext() override {
    return ++pieces_ == 1 ? absl::OkStatus() : absl::DataLossError("bad sector");
  }

 private:
  const std::string name_ = "broken";
  int pieces_ = 0;
};

struct FillTrained {
  std::vector<double> losses;
  std::map<std::string, std::vector<float>> values;
  std::vector<Bytes> peaks;
  std::vector<FillReport> fills;
};

ModelGraph SmallTransformer() {
  TransformerConfig c;
  c.layers = 2;
  c.hidden = 16;
  c.heads = 2;
  c.source_tokens = c.target_tokens = 6;
  c.feed_forward = 32;
  c.vocabulary = 20;
  return BuildTransformer(c).value();
}

// Every device of every scheme starts one: tables of a few rows.
ModelGraph RatingsNet() {
  DlrmConfig c = PublishedDlrm();
  for (FeatureField& field : c.dense) field.features = 16;
  for (DlrmConfig::Bag& bag : c.bags) bag.rows = 20;
  c.hidden = c.embedding = 16;
  return BuildDlrm(c).value();
}

class FillTraining : public testing::Test {
 protected:
  struct Kind {
    std::string name;
    const ModelGraph* graph;
    const BatchSource* data;
    int64_t samples;
  };

  std::unique_ptr<FillWork> Work(const Kind& kind, Backend* backend,
                                 std::shared_ptr<EvaluationResults> results) {
    EvaluationOptions options;
    options.samples = kind.samples;
    return MakeEvaluation(kind.name, *kind.graph, kind.data, backend, options, std::move(results))
        .value();
  }

  // Sentences, three at a time, by a network that has learned nothing.
  std::shared_ptr<GreedyTranslation> Sentences() const {
    return std::make_shared<GreedyTranslation>(names_.vocabulary, kShort, 3, names_.train);
  }
  std::unique_ptr<FillWork> Translates(Backend* backend,
                                       std::shared_ptr<GreedyTranslation> sentences) const {
    TransformerConfig c;
    c.layers = 1;
    c.hidden = 8;
    c.heads = 2;
    c.feed_forward = 16;
    c.source_tokens = kShort.source_length;
    c.target_tokens = kShort.target_length;
    c.vocabulary = names_.vocabulary->size();
    return MakeTranslation("names", BuildTransformer(c).value(), backend, EvaluationOptions(),
                           std::move(sentences))
        .value();
  }

  // A broken job, and all kinds, one after the other; each rank begins with another one. One rank
  // translates first.
  TrainingOptions WithFill(TrainingOptions options) {
    results_.clear();
    options.fill.learn_steps = 1;
    options.fill.slack = Nanoseconds(0);
    options.fill.device_memory = Bytes(int64_t{1} << 32);
    options.fill_works = [this](int rank, Backend* backend) -> absl::StatusOr<FillWorks> {
      FillWorks works;
      works.push_back(std::make_unique<BrokenWork>());
      works.push_back(std::make_unique<LargeWork>());
      for (int i = 0; i < kKinds; ++i) {
        results_.push_back(std::make_shared<EvaluationResults>());
        works.push_back(Work(kinds_[(rank + i) % kKinds], backend, results_.back()));
      }
      if (rank == translator_rank_) {
        sentences_said_ = Sentences();
        works.insert(works.begin() + kOthers, Translates(backend, sentences_said_));
      }
      return works;
    };
    return options;
  }

  FillTrained Train(const TrainingOptions& options) {
    FillTrained trained;
    auto training = PipelineTraining::Create(graph_, *batches_, options);
    EXPECT_THAT(training, IsOk());
    for (int step = 0; training.ok() && step < kFillSteps; ++step) {
      const absl::StatusOr<TrainingStep> done = (*training)->Step();
      EXPECT_THAT(done, IsOk());
      if (!done.ok()) return trained;
      trained.losses.push_back(done->loss);
      for (const DeviceTrace& d : done->trace.devices) {
        trained.peaks.push_back(d.peak_activation);
        trained.peaks.push_back(d.peak_state);
      }
    }
    if (!training.ok()) return trained;
    for (const LayerSpec& layer : (*training)->graph().layers) {
      for (const ParameterSpec& p : layer.parameters) {
        trained.values[p.name] = (*training)->ParameterValue(p.name).value();
      }
    }
    trained.fills = (*training)->FillReports();
    return trained;
  }

  // The kind of results_[i].
  static size_t KindOf(size_t i) { return (i / kKinds + i % kKinds) % kKinds; }

  // Alone, to its end.
  EvaluationResults Alone(const Kind& kind) {
    Arena arena;
    const std::unique_ptr<Backend> backend = MakeCpuBackend(&arena);
    auto results = std::make_shared<EvaluationResults>();
    const auto work = Work(kind, backend.get(), results);
    while (!work->over()) {
      const Bytes foreseen = work->next_bytes(), before = arena.current_transient();
      arena.ResetPeaks();
      EXPECT_THAT(work->RunNext(), IsOk());
      EXPECT_LE((arena.peak_transient() - before).value(), foreseen.value());
    }
    return *results;
  }

  const ModelGraph graph_ = SmallGpt(/*tied=*/false);
  const std::unique_ptr<BatchSource> batches_ = SmallText(), texts_ = SmallText();
  const GroupedModel resnet_ = SmallResNet();
  const ModelGraph dlrm_ = RatingsNet();
  const ModelGraph translator_ = SmallTransformer();
  const RandomData pictures_{TestFieldsOf(resnet_.graph)};
  const RandomData ratings_{TestFieldsOf(dlrm_)}, sentences_{TestFieldsOf(translator_)};
  const std::vector<Kind> kinds_ = {{"pictures", &resnet_.graph, &pictures_, 200},
                                    {"texts", &graph_, texts_.get(), 100},
                                    {"ratings", &dlrm_, &ratings_, 100},
                                    {"translations", &translator_, &sentences_, 100}};
  const TranslationData names_ = MakeTranslationData(SyntheticTranslations(12, 1), kShort);
  int translator_rank_ = -1;
  std::shared_ptr<GreedyTranslation> sentences_said_;
  // kKinds of each rank, in the order of its jobs.
  std::vector<std::shared_ptr<EvaluationResults>> results_;
};

TEST_F(FillTraining, ChangesNoBitUnderAnyScheme) {
  std::vector<EvaluationResults> alone;
  for (const Kind& kind : kinds_) {
    alone.push_back(Alone(kind));
    ASSERT_EQ(alone.back().samples, kind.samples);
    ASSERT_FALSE(alone.back().predictions.empty());
  }
  Arena arena;
  const std::unique_ptr<Backend> backend = MakeCpuBackend(&arena);
  const auto all_said = Sentences();
  for (const auto work = Translates(backend.get(), all_said); !work->over();) {
    ASSERT_THAT(work->RunNext(), IsOk());
  }
  int served = 0, said = 0;
  int64_t samples[kKinds] = {}, broken = 0, large = 0;
  for (const Scheme& scheme : Catalog()) {
    if ((scheme.options & kTokenPasses) != 0) continue;  // pipelines/serving/generate_test.cc
    SCOPED_TRACE(scheme.name);
    const TrainingOptions options = SmallTraining(std::string(scheme.name), 4, 8);
    if (!Serves(options.config)) continue;
    translator_rank_ = served++ % kRanks;
    const FillTrained without = Train(options), with = Train(WithFill(options));
    EXPECT_EQ(without.losses, with.losses);
    EXPECT_TRUE(without.values == with.values) << "parameters differ";
    EXPECT_EQ(without.peaks, with.peaks);
    EXPECT_TRUE(without.fills.empty());
    ASSERT_EQ(with.fills.size(), size_t{kRanks});
    for (const FillReport& r : with.fills) {
      ASSERT_GE(r.jobs.size(), size_t{kOthers + kKinds});
      EXPECT_EQ(r.jobs[0].pieces > 1, !r.jobs[0].status.ok());
      EXPECT_EQ(r.jobs[1].pieces, 0);
      if (!r.jobs[1].status.ok()) {
        ++large;
        EXPECT_THAT(r.jobs[1].status,
                    StatusIs(absl::StatusCode::kResourceExhausted,
                             HasSubstr("fill job large: too large for every gap: the next piece")));
      }
      broken += !r.jobs[0].status.ok();
    }
    for (size_t i = 0; i < all_said->said().size(); ++i) {
      const std::string& name = sentences_said_->said()[i];
      if (name.empty()) continue;  // not yet
      EXPECT_EQ(name, all_said->said()[i]);
      ++said;
    }
    for (size_t i = 0; i < results_.size(); ++i) {
      const size_t kind = KindOf(i);
      const std::vector<float>& all = alone[kind].predictions;
      const std::vector<float>& some = results_[i]->predictions;
      ASSERT_LE(some.size(), all.size());
      EXPECT_TRUE(std::equal(some.begin(), some.end(), all.begin())) << "answers differ";
      samples[kind] += results_[i]->samples;
    }
  }
  EXPECT_GE(served, 20);
  for (int kind = 0; kind < kKinds; ++kind) EXPECT_GT(samples[kind], 0) << kinds_[kind].name;
  EXPECT_GT(broken, 0);
  EXPECT_GT(large, 0);
  EXPECT_GT(said, 0);
}

// The whole job, however many steps it takes.
TEST_F(FillTraining, AJobComesToItsEnd) {
  const TrainingOptions options = WithFill(SmallTraining("gpipe", 4, 8));
  auto training = PipelineTraining::Create(graph_, *batches_, options);
  ASSERT_THAT(training, IsOk());
  const EvaluationResults* done = nullptr;
  size_t kind = 0;
  for (int step = 0; step < 3000 && done == nullptr; ++step) {
    ASSERT_THAT((*training)->Step(), IsOk());
    for (size_t i = 0; i < results_.size() && done == nullptr; ++i) {
      kind = KindOf(i);
      if (results_[i]->samples == kinds_[kind].samples) done = results_[i].get();
    }
  }
  ASSERT_NE(done, nullptr);
  const EvaluationResults alone = Alone(kinds_[kind]);
  EXPECT_EQ(done->predictions, alone.predictions);
  EXPECT_EQ(done->loss, alone.loss);
}

TEST_F(FillTraining, RefusesAJobThatIsNone) {
  TrainingOptions options = SmallTraining("gpipe", 2, 2);
  options.fill_works = [this](int, Backend* backend) -> absl::StatusOr<FillWorks> {
    EvaluationOptions none;
    none.samples = 0;
    FillWorks works(1);
    PIPELAB_ASSIGN_OR_RETURN(works[0], MakeEvaluation("empty", graph_, texts_.get(), backend, none,
                                                      std::make_shared<EvaluationResults>()));
    return works;
  };
  EXPECT_THAT(PipelineTraining::Create(graph_, *batches_, options),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "fill job empty: 0 samples, 1 a piece: must be at least 1"));
}

}  // namespace
}  // namespace pipelab

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
#include "models/layers/test_images.h"
#include "models/layers/test_layers.h"
#include "pipelines/runtime/fill_evaluation.h"
#include "pipelines/runtime/training.h"
#include "pipelines/schedules/catalog.h"
#include "tests/small_gpt.h"
#include "tests/small_training.h"
#include "tools/base/status_macros.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

constexpr int kSteps = 6;
constexpr int64_t kPictures = 200, kTexts = 100;

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

struct Trained {
  std::vector<double> losses;
  std::map<std::string, std::vector<float>> values;
  std::vector<Bytes> peaks;
  std::vector<FillReport> fills;
};

class FillTraining : public testing::Test {
 protected:
  std::unique_ptr<FillWork> Pictures(Backend* backend, std::shared_ptr<EvaluationResults> results) {
    EvaluationOptions options;
    options.samples = kPictures;
    options.samples_of_piece = 1;
    return MakeEvaluation("pictures", resnet_.graph, &pictures_, backend, options,
                          std::move(results))
        .value();
  }
  std::unique_ptr<FillWork> Texts(Backend* backend, std::shared_ptr<EvaluationResults> results) {
    EvaluationOptions options;
    options.samples = kTexts;
    return MakeEvaluation("texts", graph_, texts_.get(), backend, options, std::move(results))
        .value();
  }

  // Each rank classifies pictures, and scores texts once it is through.
  TrainingOptions WithFill(TrainingOptions options) {
    results_.clear();
    options.fill.learn_steps = 1;
    options.fill.slack = Nanoseconds(0);
    options.fill_works = [this](int, Backend* backend) -> absl::StatusOr<FillWorks> {
      FillWorks works;
      works.push_back(std::make_unique<BrokenWork>());
      for (int kind = 0; kind < 2; ++kind) {
        results_.push_back(std::make_shared<EvaluationResults>());
        works.push_back(kind == 0 ? Pictures(backend, results_.back())
                                  : Texts(backend, results_.back()));
      }
      return works;
    };
    return options;
  }

  Trained Train(const TrainingOptions& options) {
    Trained trained;
    auto training = PipelineTraining::Create(graph_, *batches_, options);
    EXPECT_THAT(training, IsOk());
    for (int step = 0; training.ok() && step < kSteps; ++step) {
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

  // Alone, to its end.
  EvaluationResults Alone(bool pictures) {
    Arena arena;
    const std::unique_ptr<Backend> backend = MakeCpuBackend(&arena);
    auto results = std::make_shared<EvaluationResults>();
    const auto work = pictures ? Pictures(backend.get(), results) : Texts(backend.get(), results);
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
  const RandomData pictures_{TestFieldsOf(resnet_.graph)};
  std::vector<std::shared_ptr<EvaluationResults>> results_;  // pictures and texts of each rank
};

TEST_F(FillTraining, ChangesNoBitUnderAnyScheme) {
  const EvaluationResults pictures = Alone(true), texts = Alone(false);
  ASSERT_EQ(pictures.samples, kPictures);
  int served = 0;
  int64_t samples = 0, broken = 0;
  for (const Scheme& scheme : Catalog()) {
    SCOPED_TRACE(scheme.name);
    const TrainingOptions options = SmallTraining(std::string(scheme.name), 4, 8);
    if (!MakeSchedule(scheme.name, options.sizes).ok()) continue;
    ++served;
    const Trained without = Train(options), with = Train(WithFill(options));
    EXPECT_EQ(without.losses, with.losses);
    EXPECT_TRUE(without.values == with.values) << "parameters differ";
    EXPECT_EQ(without.peaks, with.peaks);
    EXPECT_TRUE(without.fills.empty());
    ASSERT_EQ(with.fills.size(), 4u);
    for (const FillReport& r : with.fills) {
      ASSERT_EQ(r.jobs.size(), 3u);
      EXPECT_EQ(r.jobs[0].pieces > 1, !r.jobs[0].status.ok());
      broken += !r.jobs[0].status.ok();
    }
    for (size_t i = 0; i < results_.size(); ++i) {
      const std::vector<float>& all = i % 2 == 0 ? pictures.predictions : texts.predictions;
      const std::vector<float>& some = results_[i]->predictions;
      ASSERT_LE(some.size(), all.size());
      EXPECT_TRUE(std::equal(some.begin(), some.end(), all.begin())) << "answers differ";
      samples += results_[i]->samples;
    }
  }
  EXPECT_GE(served, 20);
  EXPECT_GT(samples, 0);
  EXPECT_GT(broken, 0);
}

// The whole job, however many steps it takes.
TEST_F(FillTraining, AJobComesToItsEnd) {
  const EvaluationResults alone = Alone(true);
  const TrainingOptions options = WithFill(SmallTraining("gpipe", 4, 8));
  auto training = PipelineTraining::Create(graph_, *batches_, options);
  ASSERT_THAT(training, IsOk());
  const EvaluationResults* done = nullptr;
  for (int step = 0; step < 3000 && done == nullptr; ++step) {
    ASSERT_THAT((*training)->Step(), IsOk());
    for (size_t rank = 0; rank < 4; ++rank) {
      if (results_[2 * rank]->samples == kPictures) done = results_[2 * rank].get();
    }
  }
  ASSERT_NE(done, nullptr);
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

#include "tests/spread_checkpoints.h"

#include <unistd.h>

#include <atomic>
#include <map>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "experiments/training/checkpoint.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/comm/follow_up.h"
#include "models/checkpoint/training_state.h"
#include "models/data/batch_source.h"
#include "models/layers/test_images.h"
#include "models/layers/test_layers.h"
#include "pipelines/runtime/training.h"
#include "tests/small_gpt.h"
#include "tests/small_training.h"
#include "tools/base/file.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kLegSteps = 2;  // before and after
constexpr absl::Duration kLong = absl::Minutes(2);

using Settings = std::map<std::string, std::string>;

struct Subject {
  std::string name;
  ModelGraph graph;
  std::unique_ptr<BatchSource> data;
  TrainingOptions options;
};

Subject Text(const std::string& name, bool tied, const std::string& scheme, int devices) {
  return {name, SmallGpt(tied, /*words_multiple=*/2), SmallText(),
          SmallTraining(scheme, devices, /*micro_batches=*/8)};
}

// The kinds of state: ties, what optimizers keep, shards of every kind, members of tensor-parallel
// groups, replicas, older weights, running statistics. All with dropout or random data.
std::vector<Subject> Subjects() {
  std::vector<Subject> subjects;
  subjects.push_back(Text("stages", /*tied=*/true, "interleaved", 4));
  for (const Sharding sharding :
       {Sharding::kReplicated, Sharding::kOptimizer, Sharding::kGradients, Sharding::kFully}) {
    const bool fully = sharding == Sharding::kFully;
    subjects.push_back(Text(ShardingName(sharding), fully, fully ? "breadth_first" : "1f1b", 2));
    subjects.back().options.config.data = 2;
    subjects.back().options.config.micro_batch_size = kSmallSamples / 2;
    subjects.back().options.config.sharding = sharding;
  }
  subjects.push_back(Text("tensor parallel", /*tied=*/true, "1f1b", 2));
  subjects.back().options.config.tensor = 2;
  subjects.back().options.config.sequence_parallel = true;
  subjects.push_back(Text("momentum", /*tied=*/false, "gpipe", 4));
  SgdOptions momentum;
  momentum.momentum = 0.9f;
  subjects.back().options.optimizer = OptimizerOptions::Sgd(momentum);
  subjects.back().options.optimizer.clip_norm = 0.5;
  subjects.push_back(Text("replicas", /*tied=*/false, "chimera", 4));
  subjects.push_back(Text("older weights", /*tied=*/false, "pipedream", 4));
  ModelGraph images = SmallResNet().graph;
  auto data = std::make_unique<RandomData>(TestFieldsOf(images));
  subjects.push_back({"running statistics", std::move(images), std::move(data),
                      SmallTraining("1f1b", 2, /*micro_batches=*/4)});
  subjects.back().options.config.data = 2;
  subjects.back().options.config.micro_batch_size = kSmallSamples / 2;
  return subjects;
}

// One process's part in a case.
class Party {
 public:
  explicit Party(Transport* transport) : transport_(transport), group_(transport->processes()) {
    static int count = 0;
    const std::string own =
        first() ? absl::StrCat(testing::TempDir(), "/spread", getpid(), ".", count++) : "";
    auto folder = group_->FromFirst(own, kLong);
    EXPECT_THAT(folder, IsOk());
    if (folder.ok()) folder_ = *folder;
  }
  ~Party() { EXPECT_THAT(group_->Meet(kLong), IsOk()); }

  ProcessGroup* group() const { return group_; }
  bool first() const { return group_->rank() == 0; }
  std::string File(const std::string& name) const { return absl::StrCat(folder_, "/", name); }

  std::unique_ptr<PipelineTraining> Spread(const Subject& subject) {
    TrainingOptions options = subject.options;
    options.transport = transport_;
    return Create(subject.graph, *subject.data, options);
  }
  static std::unique_ptr<PipelineTraining> InOneProcess(const Subject& subject) {
    return Create(subject.graph, *subject.data, subject.options);
  }
  static std::unique_ptr<PipelineTraining> Create(const ModelGraph& graph, const BatchSource& data,
                                                  const TrainingOptions& options) {
    auto training = PipelineTraining::Create(graph, data, options);
    EXPECT_THAT(training, IsOk());
    return training.ok() ? *std::move(training) : nullptr;
  }

  // The error is everybody's, in the words of its rank, and a follow-up to the others.
  template <typename Matcher>
  void ExpectErrorOfFirst(const absl::Status& status, absl::StatusCode code, const Matcher& text) {
    const std::string rank = absl::StrCat("rank 0 of ", group_->size(), ": ");
    EXPECT_THAT(status, StatusIs(code, AllOf(HasSubstr(rank), text)));
    EXPECT_EQ(IsFollowUp(status), !first()) << status;
  }

 private:
  Transport* const transport_;
  ProcessGroup* const group_;
  std::string folder_;
};

std::vector<double> Steps(PipelineTraining* training) {
  std::vector<double> losses;
  for (int i = 0; i < kLegSteps; ++i) {
    const auto step = training->Step();
    EXPECT_THAT(step, IsOk());
    losses.push_back(step.ok() ? step->loss : 0);
  }
  return losses;
}

CheckpointNotes Notes() { return {{{"data", "text"}}, {{"losses", {1, 2.5}}}}; }

std::string Contents(const std::string& file) {
  const absl::StatusOr<std::string> contents = ReadFile(file);
  EXPECT_THAT(contents, IsOk());
  return contents.ok() ? *contents : file;
}

// Goes on from a file: losses of the steps, and what the state is after them, in another file.
std::vector<double> GoOn(std::unique_ptr<PipelineTraining> training, ProcessGroup* group,
                         const std::string& from, const std::string& to) {
  const auto state = ResumeCheckpoint("--resume", from, Notes().settings, group, training.get());
  EXPECT_THAT(state, IsOk());
  if (!state.ok()) return {};
  EXPECT_EQ(state->step, kLegSteps) << "every process knows it";
  EXPECT_EQ(state->records, Notes().records);
  EXPECT_EQ(state->source, from);
  EXPECT_EQ(state->tensors.empty(), group != nullptr && group->rank() != 0);
  std::vector<double> losses = Steps(training.get());
  EXPECT_THAT(SaveCheckpoint(to, *training, Notes(), group), IsOk());
  return losses;
}

// Files of one process and of several are the same, and either goes on in both with the same bits.
void SameFilesAndLosses(Transport& transport, const Subject& subject) {
  SCOPED_TRACE(subject.name);
  Party party(&transport);
  ProcessGroup* const group = party.group();
  const std::string one = party.File("one"), spread = party.File("new/folder/spread"),
                    end = party.File("end");
  std::vector<double> losses;
  if (party.first()) {
    auto training = Party::InOneProcess(subject);
    Steps(training.get());
    EXPECT_THAT(SaveCheckpoint(one, *training, Notes(), nullptr), IsOk());
    losses = Steps(training.get());
    EXPECT_THAT(SaveCheckpoint(end, *training, Notes(), nullptr), IsOk());
  }
  auto training = party.Spread(subject);
  Steps(training.get());
  ASSERT_THAT(SaveCheckpoint(spread, *training, Notes(), group), IsOk());
  // It goes on undisturbed.
  const std::vector<double> undisturbed = Steps(training.get());
  if (party.first()) {
    EXPECT_EQ(undisturbed, losses);
    EXPECT_TRUE(Contents(spread) == Contents(one));
    EXPECT_EQ(GoOn(Party::InOneProcess(subject), nullptr, spread, party.File("spread_one")),
              losses);
    EXPECT_TRUE(Contents(party.File("spread_one")) == Contents(end));
  }
  training = nullptr;
  const std::vector<double> again =
      GoOn(party.Spread(subject), group, one, party.File("one_spread"));
  EXPECT_EQ(again, undisturbed);
  if (party.first()) {
    EXPECT_TRUE(Contents(party.File("one_spread")) == Contents(end));
  }
}

// Every process gets every parameter, with the values that one process has.
void ParameterValues(Transport& transport) {
  Party party(&transport);
  for (const Subject& subject : Subjects()) {
    // Each parameter is some exchanges; the others' are put together no differently.
    if (subject.name != "fully" && subject.name != "tensor parallel") continue;
    SCOPED_TRACE(subject.name);
    const auto training = party.Spread(subject);
    const auto alone = Party::InOneProcess(subject);
    for (const LayerSpec& layer : subject.graph.layers) {
      for (const ParameterSpec& p : layer.parameters) {
        const auto value = training->ParameterValue(p.name),
                   expected = alone->ParameterValue(p.name);
        ASSERT_THAT(value, IsOk());
        EXPECT_TRUE(*value == *expected) << p.name;
      }
    }
    EXPECT_THAT(training->ParameterValue("nobody/w"),
                StatusIs(absl::StatusCode::kNotFound, HasSubstr("nobody/w")));
  }
}

// What cannot be read or does not fit: everybody has the error, and the training is as it was.
void FilesThatDoNotFit(Transport& transport) {
  Party party(&transport);
  const Subject subject = Text("", /*tied=*/false, "1f1b", 4);
  auto training = party.Spread(subject);
  const std::string good = party.File("good"), bad = party.File("bad"), other = party.File("other");
  ASSERT_THAT(SaveCheckpoint(good, *training, Notes(), party.group()), IsOk());
  if (party.first()) {
    std::string contents = Contents(good);
    contents.back() ^= 1;
    EXPECT_THAT(WriteFileAtomically(bad, contents), IsOk());
    Subject smaller = Text("", /*tied=*/false, "1f1b", 4);
    smaller.graph = SmallGpt(/*tied=*/false, /*words_multiple=*/64);
    EXPECT_THAT(SaveCheckpoint(other, *Party::InOneProcess(smaller), Notes(), nullptr), IsOk());
  }
  const auto resume = [&](const std::string& file, const Settings& settings) {
    return ResumeCheckpoint("--resume", file, settings, party.group(), training.get()).status();
  };
  const Settings same = Notes().settings;
  using absl::StatusCode;
  party.ExpectErrorOfFirst(resume(party.File("none"), same), StatusCode::kNotFound,
                           HasSubstr(party.File("none")));
  party.ExpectErrorOfFirst(resume(bad, same), StatusCode::kDataLoss,
                           AllOf(HasSubstr(bad), HasSubstr("damaged")));
  party.ExpectErrorOfFirst(resume(good, {{"data", "pictures"}}), StatusCode::kInvalidArgument,
                           HasSubstr("--resume=" + good + ": trained with data = text, not pict"));
  party.ExpectErrorOfFirst(resume(other, same), StatusCode::kInvalidArgument,
                           AllOf(HasSubstr(other), HasSubstr(" in the model")));
  ASSERT_THAT(SaveCheckpoint(bad, *training, Notes(), party.group()), IsOk());
  if (party.first()) {
    EXPECT_TRUE(Contents(bad) == Contents(good));
  }
}

// Where a file cannot be written everybody hears of it, and the file that was there stays.
void FoldersThatCannotBe(Transport& transport) {
  Party party(&transport);
  const Subject subject = Text("", /*tied=*/false, "1f1b", 4);
  auto training = party.Spread(subject);
  const std::string file = party.File("a"), below = party.File("a/b");
  EXPECT_THAT(CheckpointFile::Take("--checkpoint", file, party.group()).status(), IsOk());
  ASSERT_THAT(SaveCheckpoint(file, *training, Notes(), party.group()), IsOk());
  const std::string before = party.first() ? Contents(file) : "";
  party.ExpectErrorOfFirst(CheckpointFile::Take("--checkpoint", below, party.group()).status(),
                           absl::StatusCode::kInvalidArgument, HasSubstr("--checkpoint=" + file));
  Steps(training.get());
  const absl::Status status = SaveCheckpoint(below, *training, Notes(), party.group());
  party.ExpectErrorOfFirst(status, status.code(), HasSubstr(file));
  if (party.first()) {
    EXPECT_TRUE(Contents(file) == before);
  }
  ASSERT_THAT(SaveCheckpoint(file, *training, Notes(), party.group()), IsOk()) << "it goes on";
  if (party.first()) {
    EXPECT_FALSE(Contents(file) == before);
  }
}

// Text whose reader stands still in one process, once.
class HeldText : public BatchSource {
 public:
  HeldText(const BatchSource* text, absl::Duration pause)
      : BatchSource(text->fields()), text_(text), pause_(pause) {}
  void FillIds(int field, int64_t step, int64_t first_sample,
               absl::Span<int32_t> out) const override {
    if (!held_.exchange(true)) absl::SleepFor(pause_);
    text_->FillIds(field, step, first_sample, out);
  }

 private:
  const BatchSource* const text_;
  const absl::Duration pause_;
  mutable std::atomic<bool> held_{false};
};

// After a step that failed there is nothing to write, in any process.
void AFailedStepIsNotWritten(Transport& transport) {
  Party party(&transport);
  if (party.group()->size() == 1) return;
  const Subject subject = Text("", /*tied=*/false, "1f1b", 4);
  TrainingOptions options = subject.options;
  options.wait_limit = absl::Milliseconds(300);
  options.transport = &transport;
  const HeldText data(subject.data.get(), party.first() ? absl::Seconds(1) : absl::ZeroDuration());
  auto training = Party::Create(subject.graph, data, options);
  ASSERT_NE(training, nullptr);
  EXPECT_THAT(training->Step(), Not(IsOk()));
  const std::string file = party.File("never");
  EXPECT_THAT(SaveCheckpoint(file, *training, Notes(), party.group()),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr(file), HasSubstr("rank "), HasSubstr("step failed"))));
  EXPECT_FALSE(PathExists(file));
}

}  // namespace

std::vector<SpreadCheckpointCase> SpreadCheckpointCases() {
  return {{"same files and losses",
           [](Transport& transport) {
             for (const Subject& subject : Subjects()) SameFilesAndLosses(transport, subject);
           }},
          {"parameter values", ParameterValues},
          {"files that do not fit", FilesThatDoNotFit},
          {"folders that cannot be", FoldersThatCannotBe},
          {"a failed step is not written", AFailedStepIsNotWritten}};
}

}  // namespace pipelab

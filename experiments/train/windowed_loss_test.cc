// The loss over windows against the loss that the model itself computes, window by window.
#include "experiments/train/windowed_loss.h"

#include <memory>
#include <utility>

#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_backend.h"
#include "models/data/text_batches.h"
#include "models/data/text_windows.h"
#include "models/data/token_fields.h"
#include "models/zoo/gpt.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

// A GPT of `context` tokens after a few steps, and the text that it is judged on.
struct Trained {
  explicit Trained(TextData text) : data(std::move(text)) {}

  TextData data;
  Arena arena;
  std::unique_ptr<Backend> backend = MakeCpuBackend(&arena);
  std::unique_ptr<SerialTrainer> trainer;
};

std::unique_ptr<Trained> Train(int64_t context) {
  auto t = std::make_unique<Trained>(*MakeTextData(SyntheticCorpus(8000, 1), context, 1));
  GptConfig config;
  config.layers = 1;
  config.hidden = 16;
  config.heads = 2;
  config.tokens = context;
  config.vocabulary = t->data.train->vocabulary();
  SerialOptions options;
  options.micro_batch_size = 4;
  options.data = t->data.train.get();
  auto trainer = SerialTrainer::Create(*BuildGpt(config), t->backend.get(), options);
  EXPECT_THAT(trainer, IsOk());
  t->trainer = *std::move(trainer);
  for (int i = 0; i < 5; ++i) EXPECT_THAT(t->trainer->Step(), IsOk());
  return t;
}

// The windows without the targets that do not count.
class CountedOnly final : public BatchSource {
 public:
  explicit CountedOnly(const TextWindows& windows)
      : BatchSource(windows.fields()), windows_(windows) {}
  void FillIds(int field, int64_t step, int64_t first, absl::Span<int32_t> out) const override {
    windows_.FillIds(field, step, first, out);
    if (fields()[field].name != kTargets) return;
    const int64_t context = fields()[field].size();
    for (size_t i = 0; i < out.size(); ++i) {
      if (static_cast<int64_t>(i) % context < windows_.first_row()) out[i] = kNoData;
    }
  }

 private:
  const TextWindows& windows_;
};

TEST(WindowedLoss, IsTheModelsOwnLossOverTheTargetsThatCount) {
  for (const int64_t context : {1, 2, 7, 8}) {
    SCOPED_TRACE(context);
    const auto t = Train(context);
    const TextWindows windows(t->data.held_out->tokens(), t->data.vocabulary.size(), context);
    const CountedOnly counted(windows);
    double sum = 0;
    for (int64_t i = 0; i < windows.samples(); ++i) {
      PIPELAB_ASSERT_OK_AND_ASSIGN(const double mean, t->trainer->Evaluate(counted, 0, i, 1));
      sum += mean * static_cast<double>(context);
    }
    const auto targets = static_cast<double>(windows.end_place() - windows.first_place());
    for (const int64_t chunk : {1, 5, 100000}) {
      PIPELAB_ASSERT_OK_AND_ASSIGN(const double loss,
                                   WindowedLoss(t->trainer.get(), windows, chunk));
      EXPECT_NEAR(loss, sum / targets, 1e-5) << chunk;  // sums of float terms of about 3
    }
  }
}

}  // namespace
}  // namespace pipelab

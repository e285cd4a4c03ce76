// Fake stages on all devices of a program, ready to run: what the runtime's tests share.
//
//   FakePipeline pipeline(&program, {.ties = ties});
//   PIPELAB_ASSERT_OK_AND_ASSIGN(Trace trace, pipeline.RunStep());
//   EXPECT_EQ(pipeline.WrongParameters(steps), "");
#ifndef PIPELAB_TESTS_SUPPORT_FAKE_PIPELINE_H_
#define PIPELAB_TESTS_SUPPORT_FAKE_PIPELINE_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "kernels/tensor/arena.h"
#include "pipelines/ir/program.h"
#include "pipelines/ir/trace.h"
#include "pipelines/runtime/executor.h"
#include "tests/support/fake_module.h"
#include "tests/support/fault_injection.h"

namespace pipelab {

struct FakePipelineOptions {
  std::vector<Tie> ties = {};
  // A send returns when its receive is posted: the hardest transport that Lower has to serve.
  bool blocking_sends = false;
  absl::Duration wait_limit = absl::Seconds(60);
  absl::Duration action_limit = absl::Hours(1);
  bool trace = true;
  FaultInjector* faults = nullptr;
};

class FakePipeline {
 public:
  // `program` and options.faults must outlive it.
  FakePipeline(const Program* program, const FakePipelineOptions& options);
  // Frees what an injected fault holds, so that the executor can end.
  ~FakePipeline();

  // What Create returned.
  const absl::Status& created() const { return created_; }
  absl::StatusOr<Trace> RunStep() { return executor_->RunStep(); }

  Arena& arena(int device) { return arenas_[device]; }
  // What is not as after `steps` steps without a pipeline; empty when all copies of all stages are.
  std::string WrongParameters(int steps) const;
  // Ends the executor; what the arenas still hold afterwards, stages' parameters apart.
  Bytes LeftAfterwards();

 private:
  struct Copy {
    int device, replica, stage;
    std::unique_ptr<FakeStage> module;
  };

  const Program* const program_;
  const FakePipelineOptions options_;
  std::deque<Arena> arenas_;
  const int64_t norm_values_;
  std::vector<Copy> copies_;
  std::unique_ptr<Executor> executor_;
  absl::Status created_;
};

}  // namespace pipelab

#endif  // PIPELAB_TESTS_SUPPORT_FAKE_PIPELINE_H_

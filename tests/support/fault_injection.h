// Makes a stage fail at one chosen action, or all be slow, for tests of how a run ends.
//
//   FaultInjector faults({.device = 2, .action = f3, .kind = FaultKind::kError,
//                         .error = absl::DataLossError("bad sector")});
//   StageModule* module = faults.Wrap(/*device=*/2, &stage);   // give this one to the executor
//   ... RunStep() ...
//   faults.Release();                                          // frees what hangs
//
// A hang lasts until Release, whatever the run's limit: as a kernel that never comes back. The
// injector must outlive the executor, and Release must come before the executor ends, because it
// joins its threads.
#ifndef PIPELAB_TESTS_SUPPORT_FAULT_INJECTION_H_
#define PIPELAB_TESTS_SUPPORT_FAULT_INJECTION_H_

#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "pipelines/ir/schedule.h"
#include "pipelines/runtime/stage_module.h"

namespace pipelab {

enum class FaultKind {
  kError,        // the action returns `error`
  kHang,         // it does not return
  kExtraTensor,  // it returns one tensor too many
  kWrongShape,   // its first tensor has lost a row
  kNoTensor,     // its first tensor is empty
  kSlow,         // it takes `pause` longer, and so does every other action of every device
};

struct Fault {
  int device = 0;
  Action action = {};  // forward, backward, weight gradient, recompute or step
  FaultKind kind = FaultKind::kError;
  absl::Status error = {};
  absl::Duration pause = {};
};

class FaultInjector {
 public:
  explicit FaultInjector(Fault fault) : fault_(std::move(fault)) {}
  ~FaultInjector() { Release(); }

  // `module` as the executor should see it on `device`; the injector owns the wrapper.
  StageModule* Wrap(int device, StageModule* module);
  void Release();

 private:
  class Module;

  const Fault fault_;
  std::vector<std::unique_ptr<StageModule>> wrapped_;
  std::mutex mutex_;
  std::condition_variable released_cv_;
  bool released_ = false;
};

}  // namespace pipelab

#endif  // PIPELAB_TESTS_SUPPORT_FAULT_INJECTION_H_

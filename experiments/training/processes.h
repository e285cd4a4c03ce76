// Programs that mpirun may start in several processes: who of them speaks, and how all end.
//
//   absl::Status Run(...) {
//     PIPELAB_ASSIGN_OR_RETURN(Processes processes, Processes::Join());
//     return processes.End(Work(processes.transport()));      // TrainingOptions::transport
//   }
//
// Started alone, this is nothing. Of several processes the first one speaks: the others' stdout and
// progress lines go nowhere, and one of them that fails tells the first. An error of any process
// ends all within seconds, with one line on stderr; so does a process that is killed, with its rank
// and what it was doing.
#ifndef PIPELAB_EXPERIMENTS_TRAINING_PROCESSES_H_
#define PIPELAB_EXPERIMENTS_TRAINING_PROCESSES_H_

#include <functional>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/comm/transport.h"
#include "tools/base/status_macros.h"

namespace pipelab {

class Processes {
 public:
  // Once a program, before anything is printed.
  static absl::StatusOr<Processes> Join();

  Transport* transport() const { return transport_.get(); }
  // Null: this process is alone.
  ProcessGroup* group() const { return transport_->processes(); }
  // This process prints, and does what one process does for all.
  bool speaks() const { return group() == nullptr || group()->rank() == 0; }

  // Each of several processes must have the same `text`; `what` ("options") for the error.
  absl::Status CheckSame(absl::string_view what, absl::string_view text) const;
  // Calls `work` in the first process, then in the others: what it fetches is then there.
  template <typename Result>
  absl::StatusOr<Result> FirstThenAll(const std::function<absl::StatusOr<Result>()>& work) const {
    if (!speaks()) PIPELAB_RETURN_IF_ERROR(PassTurn());
    absl::StatusOr<Result> result = work();
    if (result.ok() && speaks()) PIPELAB_RETURN_IF_ERROR(PassTurn());
    return result;
  }

  // The end of the program, OK or not. Alone: `status`. Of several, when all is well, returns once
  // the first one is done; an error ends this process here.
  absl::Status End(absl::Status status);

 private:
  explicit Processes(std::unique_ptr<Transport> transport) : transport_(std::move(transport)) {}
  absl::Status PassTurn() const;

  std::unique_ptr<Transport> transport_;
};

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_TRAINING_PROCESSES_H_

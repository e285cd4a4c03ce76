// The log of a swarm's coordinator, one event per line: writes it, and proves from it that each
// gradient counted once.
//
//   PIPELAB_ASSIGN_OR_RETURN(auto file, SwarmLogFile::Open("swarm.log"));
//   options.log = [&](const std::string& line) { file->Add(line); };
//   PIPELAB_RETURN_IF_ERROR(file->status());           // the first write that failed
//
//   PIPELAB_ASSIGN_OR_RETURN(const std::string log, ReadFile("swarm.log"));
//   PIPELAB_ASSIGN_OR_RETURN(const SwarmProof proof, CheckSwarmLog(log));
//   proof.steps;                            // each with every gradient once
//
// Events, each followed by `key=value` words. The last is `epoch`, which grows with each start.
//   start   step stages micro_batches       a coordinator's life begins, or everything goes back
//   join    peer                            it is a member
//   ready   peer                            for people
//   move, drop   peer why="..."             it is no member any more
//   refuse  why="..."                       a trainer that is not of this training
//   count   step stage micro_batch peer     the trainer has the answer
//   lose    step stage micro_batch peer     its peer is gone: it must be asked for again
//   commit  step stage shares=3:0,4;7:1,2   whose gradients were summed: peer:micro-batches
//   step    step loss                       all stages of it are committed
//   save    step                            the checkpoint has it
//
// The proof: every commit of a stage names each micro-batch once, each for the member for which it
// was counted and not lost, and a step ends with a commit of each stage, once. No start is before a
// saved step. DataLoss names the line otherwise. A line without its end, where a coordinator was
// killed, is left out.
//
// Several coordinators may have written the log, also line by line. After a later one's start an
// earlier one's lines count for nothing (`late`), and it must not save.
#ifndef PIPELAB_PIPELINES_SWARM_SWARM_LOG_H_
#define PIPELAB_PIPELINES_SWARM_SWARM_LOG_H_

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "tools/base/file_lock.h"

namespace pipelab {

struct SwarmProof {
  int64_t steps = 0;      // that stand at the end, from step 0 or the first start on
  int64_t gradients = 0;  // (step, stage, micro-batch) of them, each once
  int64_t lost = 0;       // that were counted, lost with their peers, and asked for again
  int64_t redone = 0;     // steps that were undone by a start, and done again
  int64_t drops = 0;      // peers
  int64_t late = 0;       // lines of a coordinator after a later one's start
};

absl::StatusOr<SwarmProof> CheckSwarmLog(absl::string_view log);

// Adds lines to a file, each with its time behind it. A log with a line missing proves nothing, so
// the first error stays, and nothing is added after it. Errors name the option --log and the file.
// While it lives no other process of this machine gets the file.
class SwarmLogFile {
 public:
  static absl::StatusOr<std::unique_ptr<SwarmLogFile>> Open(const std::string& path);
  ~SwarmLogFile();
  SwarmLogFile(const SwarmLogFile&) = delete;
  SwarmLogFile& operator=(const SwarmLogFile&) = delete;

  void Add(absl::string_view line);  // with its line end; one thread at a time
  const absl::Status& status() const { return status_; }

 private:
  SwarmLogFile(std::string path, std::FILE* file) : path_(std::move(path)), file_(file) {}

  const std::string path_;
  std::FILE* const file_;
  absl::optional<FileLock> lock_;  // of a file on a disk
  absl::Status status_;
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SWARM_SWARM_LOG_H_

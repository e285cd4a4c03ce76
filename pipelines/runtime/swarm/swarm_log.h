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
// Events, each followed by `key=value` words:
//   start   step stages micro_batches       a coordinator's life begins, or everything goes back
//   join, ready, move   peer ...            for people
//   drop    peer why="..."
//   refuse  why="..."                       a trainer that is not of this training
//   count   step stage micro_batch peer     the trainer has the answer
//   lose    step stage micro_batch peer     its peer is gone: it must be asked for again
//   commit  step stage shares=3:0,4;7:1,2   whose gradients were summed: peer:micro-batches
//   step    step loss                       all stages of it are committed
//
// The proof: every commit of a stage names each micro-batch once, each for the peer for which it
// was counted and not lost, and a step ends with a commit of each stage, once. DataLoss names the
// line otherwise. A last line without its end, where a coordinator was killed, is left out.
#ifndef PIPELAB_PIPELINES_RUNTIME_SWARM_SWARM_LOG_H_
#define PIPELAB_PIPELINES_RUNTIME_SWARM_SWARM_LOG_H_

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace pipelab {

struct SwarmProof {
  int64_t steps = 0;      // that stand at the end, from step 0 or the first start on
  int64_t gradients = 0;  // (step, stage, micro-batch) of them, each once
  int64_t lost = 0;       // that were counted, lost with their peers, and asked for again
  int64_t redone = 0;     // steps that were undone by a start, and done again
  int64_t drops = 0;      // peers
};

absl::StatusOr<SwarmProof> CheckSwarmLog(absl::string_view log);

// Adds lines to a file, each with its time behind it. A log with a line missing proves nothing, so
// the first error stays, and nothing is added after it. Errors name the option --log and the file.
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
  absl::Status status_;
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_RUNTIME_SWARM_SWARM_LOG_H_

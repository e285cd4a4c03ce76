// MPI in this process: started once, ended at the process's end, called by one thread at a time.
//
//   PIPELAB_ASSIGN_OR_RETURN(MpiWorld* world, MpiWorld::Start());
//   std::lock_guard<std::mutex> lock(world->mutex());
//   MPI_Isend(..., world->comm());
//
// Several threads may use it when each holds the mutex around its calls, none of which may block.
// The one place that includes <mpi.h> for the others.
#ifndef PIPELAB_KERNELS_COMM_MPI_WORLD_H_
#define PIPELAB_KERNELS_COMM_MPI_WORLD_H_

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/comm/process_group.h"

namespace pipelab {

class MpiWorld {
 public:
  // MPI_Init_thread, once a process; later calls give the same world. Not thread-safe.
  static absl::StatusOr<MpiWorld*> Start();
  // MPI_Finalize, if it was started: waits for the other processes, so not after an error.
  static void End();

  int rank() const { return rank_; }
  int size() const { return size_; }
  // A duplicate of MPI_COMM_WORLD, used by kernels/comm alone; errors are returned.
  MPI_Comm comm() const { return comm_; }
  std::mutex& mutex() { return mutex_; }
  // Process 0's text, by MPI_Bcast.
  Rendezvous rendezvous();

  // A tag for the bytes of one message: no two messages from this process that could be under way
  // at one time have the same.
  int NextTag();
  // The tag of what goes ahead of them, of a run.
  static int HeadTag(int64_t run);

 private:
  int rank_ = 0, size_ = 1;
  MPI_Comm comm_ = MPI_COMM_NULL;
  std::mutex mutex_;
  int next_tag_ = 0;
};

// "MPI_Isend: MPI_ERR_TRUNCATE: message truncated".
absl::Status MpiError(const char* call, int code);

}  // namespace pipelab

#endif  // PIPELAB_KERNELS_COMM_MPI_WORLD_H_

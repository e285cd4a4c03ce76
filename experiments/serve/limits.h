// What one request of `pipelab serve` may take, and all of them together. Tests shorten the times.
#ifndef PIPELAB_EXPERIMENTS_SERVE_LIMITS_H_
#define PIPELAB_EXPERIMENTS_SERVE_LIMITS_H_

#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"

namespace pipelab {

struct ServeLimits {
  // A request as it comes.
  size_t head_bytes = 16 << 10, body_bytes = 1 << 20;
  int head_lines = 64;
  absl::Duration read_time = absl::Seconds(10);   // for a head, and for a body
  absl::Duration idle_time = absl::Seconds(15);   // of a connection between requests
  absl::Duration write_time = absl::Seconds(30);  // for an answer, once it is made
  int requests_of_connection = 1000;
  int connections = 256;

  // These bound the work that a request asks for.
  int running = 4, waiting = 32;                      // commands at one time
  absl::Duration command_time = absl::Seconds(30);    // waiting and running
  absl::Duration longest_search = absl::Seconds(60);  // synthesize --time_limit
  int64_t command_memory = int64_t{2} << 30;          // bytes of address space
  size_t answer_bytes = 64 << 20;
  int64_t unread_bytes = int64_t{512} << 20;  // of answers that clients have not read yet
  int64_t devices = 1024, micro_batches = 16384, passes = 1 << 18;  // passes: their product
  // A request is read in the server's own thread, too, where it may take a few milliseconds.
  static constexpr int64_t request_values = 1 << 14;
  int64_t search_devices = 4096, search_batch = 1 << 17;
};

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_SERVE_LIMITS_H_

// What a message between two in-process devices takes: from the call of Send on one thread until
// Wait returns it on the other, half of a round trip.
//
//   PIPELAB_ASSIGN_OR_RETURN(const LinkTimes link, MeasureLink({}));
//   link.latency_seconds, link.bytes_per_second
//
// The transport hands memory over and copies nothing, so the bandwidth is what a large message
// makes of the latency. Errors are the communicator's.
#ifndef PIPELAB_EXPERIMENTS_CALIBRATION_LINK_TIMES_H_
#define PIPELAB_EXPERIMENTS_CALIBRATION_LINK_TIMES_H_

#include <cstdint>

#include "absl/status/statusor.h"

namespace pipelab {

struct LinkTimesOptions {
  int round_trips = 400;                    // of each size, after some that warm up
  int64_t large_bytes = int64_t{64} << 20;  // 0: the bandwidth is not measured
};

struct LinkTimes {
  double latency_seconds = 0;   // of 64 bytes
  double bytes_per_second = 0;  // of the large message, all of its time
  int round_trips = 0;
};

absl::StatusOr<LinkTimes> MeasureLink(const LinkTimesOptions& options);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_CALIBRATION_LINK_TIMES_H_

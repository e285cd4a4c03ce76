// The clocks of measured traces and timings, in nanoseconds.
//
//   const int64_t begin = WallNs(), cpu_begin = ThreadCpuNs();
#ifndef PIPELAB_TOOLS_BASE_CLOCKS_H_
#define PIPELAB_TOOLS_BASE_CLOCKS_H_

#include <time.h>

#include <cstdint>

namespace pipelab {

inline int64_t ClockNs(clockid_t clock) {
  timespec t;
  clock_gettime(clock, &t);
  return int64_t{t.tv_sec} * 1000000000 + t.tv_nsec;
}

inline int64_t WallNs() { return ClockNs(CLOCK_MONOTONIC); }  // steady; about 20 ns a call

// Processor time of the calling thread: what an action costs when others use the core as well. A
// system call, about 250 ns.
inline int64_t ThreadCpuNs() { return ClockNs(CLOCK_THREAD_CPUTIME_ID); }

}  // namespace pipelab

#endif  // PIPELAB_TOOLS_BASE_CLOCKS_H_

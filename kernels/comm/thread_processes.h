// Processes as threads of one, for tests where nothing starts several: each has a process group
// over sockets, as real ones have, and the devices of its rank, whose messages go through memory.
//
//   RunAsProcesses(4, [](Transport& transport) {
//     TrainingOptions options;
//     options.transport = &transport;
//     ...                                            // EXPECT_, not ASSERT_, before exchanges
//   });
#ifndef PIPELAB_KERNELS_COMM_THREAD_PROCESSES_H_
#define PIPELAB_KERNELS_COMM_THREAD_PROCESSES_H_

#include <functional>

#include "kernels/comm/transport.h"

namespace pipelab {

// Returns once all have ended; a test failure where they do not find one another.
void RunAsProcesses(int size, const std::function<void(Transport& transport)>& body);

}  // namespace pipelab

#endif  // PIPELAB_KERNELS_COMM_THREAD_PROCESSES_H_

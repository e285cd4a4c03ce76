// How the processes of a swarm reach one another: one call, whatever carries it.
//
//   swarm::Request request;  swarm::Reply reply;
//   PIPELAB_RETURN_IF_ERROR(link->Call("10.0.0.7:4100", request, absl::Seconds(5), &reply));
//
// Peers and coordinators are SwarmServices; grpc_link.h carries calls between processes, and
// test_network.h between threads. Any thread may call. A call ends within its limit: with the
// service's own error; Unavailable, where nobody is there or the service went away meanwhile;
// DeadlineExceeded; PermissionDenied; ResourceExhausted, where a message is too large.
#ifndef PIPELAB_PIPELINES_SWARM_LINK_H_
#define PIPELAB_PIPELINES_SWARM_LINK_H_

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "pipelines/swarm/swarm.pb.h"

namespace pipelab {

inline constexpr int kMostSwarmBytes = 1 << 29;  // of a message

class SwarmService {
 public:
  virtual ~SwarmService() = default;
  // The largest request that its protocol needs.
  virtual int most_request_bytes() const { return kMostSwarmBytes; }
  // By several threads at once. Nobody waits for the answer after `deadline`.
  virtual absl::Status Serve(const swarm::Request& request, absl::Time deadline,
                             swarm::Reply* reply) = 0;
};

class SwarmLink {
 public:
  virtual ~SwarmLink() = default;
  virtual absl::Status Call(const std::string& address, const swarm::Request& request,
                            absl::Duration limit, swarm::Reply* reply) = 0;
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SWARM_LINK_H_

// A swarm's calls over gRPC: deadlines, keep-alive, flow control, TLS with certificates on both
// sides.
//
//   SwarmAccess access;  access.token = "...";
//   PIPELAB_ASSIGN_OR_RETURN(auto server, SwarmServer::Start("127.0.0.1:0", access, &service));
//   server->address();                               // "127.0.0.1:40123"
//   std::unique_ptr<SwarmLink> link = MakeGrpcLink(access);
//
// A server decides who may call before it reads more of a call than its metadata, which has at most
// kMostMetadataBytes. With `authority`, `certificate` and `key` (PEM texts) a caller needs a
// certificate of the same authority for the name "pipelab-swarm": machines that come and go have no
// names of their own. Both sides check it. Without them a caller needs the token, and the server
// listens on loopback alone, where nobody else can read it. A request has at most the bytes that
// its service says, a reply at most kMostSwarmBytes. A server takes kMostSwarmCalls calls at a time
// and refuses more.
//
// InvalidArgument: access that is neither, or a token for an address that is not loopback.
// Unavailable: the address cannot be listened on.
#ifndef PIPELAB_PIPELINES_SWARM_GRPC_LINK_H_
#define PIPELAB_PIPELINES_SWARM_GRPC_LINK_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "pipelines/swarm/link.h"

namespace pipelab {

inline constexpr int kMostMetadataBytes = 8192;
inline constexpr int kMostSwarmCalls = 256;

struct SwarmAccess {
  std::string token;
  std::string authority, certificate, key;  // PEM; all three or none

  bool tls() const { return !authority.empty(); }
};

// That this access serves for that address, "HOST:PORT".
absl::Status CheckAccess(const SwarmAccess& access, const std::string& address);

class SwarmServer {
 public:
  // Port 0: a free one. `service` must outlive the server.
  static absl::StatusOr<std::unique_ptr<SwarmServer>> Start(const std::string& address,
                                                            const SwarmAccess& access,
                                                            SwarmService* service);
  virtual ~SwarmServer() = default;  // ends calls that run
  virtual const std::string& address() const = 0;
};

std::unique_ptr<SwarmLink> MakeGrpcLink(const SwarmAccess& access);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SWARM_GRPC_LINK_H_

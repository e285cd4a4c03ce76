// A swarm's calls over gRPC: deadlines, keep-alive, flow control, TLS with certificates on both
// sides.
//
//   SwarmAccess access;  access.token = "...";
//   PIPELAB_ASSIGN_OR_RETURN(auto server, SwarmServer::Start("127.0.0.1:0", access, &service));
//   server->address();                               // "127.0.0.1:40123"
//   std::unique_ptr<SwarmLink> link = MakeGrpcLink(access);
//
// Who may call is asked before anything of a call is read but its metadata, which is at most
// kMostMetadataBytes: with `authority`, `certificate` and `key` (PEM texts), who has a certificate of the
// same authority for the name "pipelab-swarm" (machines that come and go have no names of their
// own; both sides check it); else who has the token, and then only on loopback, where nobody else listens.
// A request has at most what its service says, a reply kMostSwarmBytes, and a server so many calls at
// once as kMostSwarmCalls; more are refused.
//
// InvalidArgument: access that is neither, or a token for an address that is not loopback.
// Unavailable: the address cannot be listened on.
#ifndef PIPELAB_PIPELINES_RUNTIME_SWARM_GRPC_LINK_H_
#define PIPELAB_PIPELINES_RUNTIME_SWARM_GRPC_LINK_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "pipelines/runtime/swarm/link.h"

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

#endif  // PIPELAB_PIPELINES_RUNTIME_SWARM_GRPC_LINK_H_

#include "pipelines/swarm/grpc_link.h"

#include <arpa/inet.h>

#include <atomic>
#include <chrono>
#include <map>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/cleanup/cleanup.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "grpc/grpc_security_constants.h"
#include "grpc/support/log.h"
#include "grpcpp/grpcpp.h"
#include "pipelines/swarm/swarm.grpc.pb.h"
#include "tools/base/printable.h"
#include "tools/base/secret.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr char kTokenKey[] = "pipelab-token";
constexpr char kCertificateName[] = "pipelab-swarm";
constexpr int kKeepAliveMs = 10'000, kKeepAliveLimitMs = 5'000;

std::string HostOf(const std::string& address) { return address.substr(0, address.rfind(':')); }

// What fails is told by Status alone.
void Silence() {
  gpr_set_log_function([](gpr_log_func_args*) {});
}

// By the address, not by how its name begins: 127.example.org is anybody's.
bool IsLoopback(const std::string& address) {
  const std::string host = HostOf(address);
  if (host == "localhost" || host == "[::1]") return true;
  in_addr ip{};
  return inet_pton(AF_INET, host.c_str(), &ip) == 1 && ntohl(ip.s_addr) >> 24 == 127;
}

bool HasPort(const std::string& address) {
  const size_t colon = address.rfind(':');
  int port = 0;
  return colon != std::string::npos && absl::SimpleAtoi(address.substr(colon + 1), &port) &&
         port >= 0 && port <= 65535;
}

grpc::Status ToGrpc(const absl::Status& s) {
  if (s.ok()) return grpc::Status::OK;
  return {static_cast<grpc::StatusCode>(s.code()), std::string(s.message())};
}

// Codes have the same numbers. What others write as their reason ends in terminals and logs.
absl::Status FromGrpc(const grpc::Status& s) {
  if (s.ok()) return absl::OkStatus();
  return {static_cast<absl::StatusCode>(s.error_code()), Printable(s.error_message())};
}

class Server final : public SwarmServer, private swarm::Swarm::Service {
 public:
  Server(SwarmAccess access, SwarmService* service)
      : access_(std::move(access)), service_(*service) {}
  ~Server() override {
    if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
  }

  absl::Status Listen(const std::string& address) {
    grpc::ServerBuilder builder;
    int port = 0;
    std::shared_ptr<grpc::ServerCredentials> credentials = grpc::InsecureServerCredentials();
    if (access_.tls()) {
      grpc::SslServerCredentialsOptions tls(
          GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
      tls.pem_root_certs = access_.authority;
      tls.pem_key_cert_pairs.push_back({access_.key, access_.certificate});
      credentials = grpc::SslServerCredentials(tls);
    }
    builder.AddListeningPort(address, credentials, &port);
    builder.RegisterService(this);
    builder.SetMaxReceiveMessageSize(service_.most_request_bytes());
    builder.SetMaxSendMessageSize(kMostSwarmBytes);
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    // These limits bound the memory that a stranger's calls can make this process hold. Windows
    // that grow with the bandwidth would hold more; a message that is being read has a window of
    // its size anyway.
    builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, kMostMetadataBytes);
    builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMostSwarmCalls);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 5'000);
    server_ = builder.BuildAndStart();
    if (server_ == nullptr || port == 0) {
      return absl::UnavailableError(absl::StrCat(
          address, ": cannot be listened on; give an address of this host that no process has"));
    }
    address_ = absl::StrCat(HostOf(address), ":", port);
    return absl::OkStatus();
  }

  const std::string& address() const override { return address_; }

 private:
  grpc::Status Call(grpc::ServerContext* context, grpc::ServerReader<swarm::Request>* reader,
                    swarm::Reply* reply) override {
    if (const grpc::Status known = CheckKnown(*context); !known.ok()) return known;
    if (calls_.fetch_add(1) >= kMostSwarmCalls) {
      calls_.fetch_sub(1);
      return {grpc::StatusCode::RESOURCE_EXHAUSTED, "too many calls at once"};
    }
    const absl::Cleanup leave = [this] { calls_.fetch_sub(1); };
    swarm::Request request;
    if (!reader->Read(&request)) {
      return {grpc::StatusCode::RESOURCE_EXHAUSTED,
              absl::StrCat("no whole request of at most ", service_.most_request_bytes(),
                           " bytes has come")};
    }
    return ToGrpc(service_.Serve(request, absl::FromChrono(context->deadline()), reply));
  }

  grpc::Status CheckKnown(const grpc::ServerContext& context) const {
    if (access_.tls()) {  // The handshake has asked for the authority, but not for the name.
      for (const grpc::string_ref& name :
           context.auth_context()->FindPropertyValues(GRPC_X509_SAN_PROPERTY_NAME)) {
        if (name == kCertificateName) return grpc::Status::OK;
      }
      return {grpc::StatusCode::PERMISSION_DENIED,
              absl::StrCat("the certificate is not for the name ", kCertificateName,
                           "; it must have subjectAltName=DNS:", kCertificateName)};
    }
    const auto it = context.client_metadata().find(kTokenKey);
    if (it != context.client_metadata().end() &&
        SameSecret({it->second.data(), it->second.size()}, access_.token)) {
      return grpc::Status::OK;
    }
    return {grpc::StatusCode::PERMISSION_DENIED, "the token is another one"};
  }

  const SwarmAccess access_;
  SwarmService& service_;
  std::string address_;
  std::atomic<int> calls_{0};
  std::unique_ptr<grpc::Server> server_;
};

class Link final : public SwarmLink {
 public:
  explicit Link(SwarmAccess access) : access_(std::move(access)) {}

  absl::Status Call(const std::string& address, const swarm::Request& request, absl::Duration limit,
                    swarm::Reply* reply) override {
    PIPELAB_RETURN_IF_ERROR(CheckAccess(access_, address));
    const std::shared_ptr<swarm::Swarm::Stub> stub = StubOf(address);
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + limit));
    if (!access_.tls()) context.AddMetadata(kTokenKey, access_.token);
    context.set_initial_metadata_corked(true);
    const auto writer = stub->Call(&context, reply);
    writer->WriteLast(request, grpc::WriteOptions());  // Finish says why it failed.
    const absl::Status status = FromGrpc(writer->Finish());
    if (absl::IsUnavailable(status)) Forget(address);
    return status;
  }

 private:
  std::shared_ptr<swarm::Swarm::Stub> StubOf(const std::string& address) {
    absl::MutexLock lock(&mutex_);
    std::shared_ptr<swarm::Swarm::Stub>& stub = stubs_[address];
    if (stub == nullptr) {
      grpc::ChannelArguments args;
      args.SetMaxReceiveMessageSize(kMostSwarmBytes);
      args.SetMaxSendMessageSize(kMostSwarmBytes);
      args.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepAliveMs);
      args.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepAliveLimitMs);
      args.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // a new try connects anew
      args.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
      std::shared_ptr<grpc::ChannelCredentials> credentials = grpc::InsecureChannelCredentials();
      if (access_.tls()) {
        credentials = grpc::SslCredentials({access_.authority, access_.key, access_.certificate});
        args.SetSslTargetNameOverride(kCertificateName);
      }
      stub = swarm::Swarm::NewStub(grpc::CreateCustomChannel(address, credentials, args));
    }
    return stub;
  }
  void Forget(const std::string& address) {
    absl::MutexLock lock(&mutex_);
    stubs_.erase(address);
  }

  const SwarmAccess access_;
  absl::Mutex mutex_;
  std::map<std::string, std::shared_ptr<swarm::Swarm::Stub>> stubs_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

absl::Status CheckAccess(const SwarmAccess& access, const std::string& address) {
  const auto error = [&](const char* what) {
    return absl::InvalidArgumentError(absl::StrCat(address, ": ", what));
  };
  if (!HasPort(address)) return error("must be HOST:PORT, with a port of at most 65535");
  if (access.tls()) {
    if (!access.certificate.empty() && !access.key.empty()) return absl::OkStatus();
    return error("certificates need an authority, a certificate and its key");
  }
  if (access.token.empty()) return error("needs certificates or a token");
  if (IsLoopback(address)) return absl::OkStatus();
  return error("a token alone is for loopback (127.0.0.1); other hosts need certificates");
}

absl::StatusOr<std::unique_ptr<SwarmServer>> SwarmServer::Start(const std::string& address,
                                                                const SwarmAccess& access,
                                                                SwarmService* service) {
  PIPELAB_RETURN_IF_ERROR(CheckAccess(access, address));
  Silence();
  auto server = std::make_unique<Server>(access, service);
  PIPELAB_RETURN_IF_ERROR(server->Listen(address));
  return std::unique_ptr<SwarmServer>(std::move(server));
}

std::unique_ptr<SwarmLink> MakeGrpcLink(const SwarmAccess& access) {
  Silence();
  return std::make_unique<Link>(access);
}

}  // namespace pipelab

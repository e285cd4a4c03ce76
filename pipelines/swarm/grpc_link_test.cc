#include "pipelines/swarm/grpc_link.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "tools/base/file.h"
#include "tools/base/process.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using ::testing::HasSubstr;

class Echo final : public SwarmService {
 public:
  absl::Status Serve(const swarm::Request& request, absl::Time deadline,
                     swarm::Reply* reply) override {
    if (request.has_beat()) return absl::NotFoundError("no such peer");
    if (request.has_ready()) return absl::NotFoundError("no\nstep step=0\x1b[2J");
    if (request.has_commit()) absl::SleepFor(deadline - absl::Now() + absl::Seconds(1));
    reply->set_epoch(request.epoch() + 1);
    return absl::OkStatus();
  }
};

SwarmAccess Token(const std::string& token) {
  SwarmAccess access;
  access.token = token;
  return access;
}

absl::Status Ask(const SwarmAccess& access, const std::string& address,
                 const swarm::Request& request = {}) {
  swarm::Reply reply;
  const absl::Status status =
      MakeGrpcLink(access)->Call(address, request, absl::Milliseconds(2000), &reply);
  if (status.ok()) {
    EXPECT_EQ(reply.epoch(), request.epoch() + 1);
  }
  return status;
}

TEST(GrpcLinkTest, CarriesAnswersAndErrors) {
  Echo echo;
  const auto server = SwarmServer::Start("127.0.0.1:0", Token("a word that nobody knows"), &echo);
  ASSERT_THAT(server, IsOk());
  const std::string& address = (*server)->address();
  EXPECT_THAT(Ask(Token("a word that nobody knows"), address), IsOk());
  EXPECT_THAT(Ask(Token("a word that everybody knows"), address),
              StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("token")));
  swarm::Request request;
  request.mutable_beat();
  EXPECT_THAT(Ask(Token("a word that nobody knows"), address, request),
              StatusIs(absl::StatusCode::kNotFound, "no such peer"));
  request.mutable_ready();
  EXPECT_THAT(Ask(Token("a word that nobody knows"), address, request),
              StatusIs(absl::StatusCode::kNotFound, "no\\nstep step=0\\x1b[2J"));
}

// How a server answers a call of this metadata, of which nothing but the metadata ever comes.
grpc::StatusCode AnswerWithoutMessage(const std::string& address, const std::string& key,
                                      const std::string& word, int seconds = 5) {
  grpc::GenericStub stub(grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
  grpc::CompletionQueue queue;
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(seconds)));
  context.AddMetadata(key, word);
  const auto call = stub.PrepareCall(&context, "/pipelab.swarm.Swarm/Call", &queue);
  grpc::Status status;
  int started = 0, finished = 0;
  call->StartCall(&started);
  void* tag = nullptr;
  bool ok = false;
  EXPECT_TRUE(queue.Next(&tag, &ok));
  call->Finish(&status, &finished);
  EXPECT_TRUE(queue.Next(&tag, &ok));
  return status.error_code();
}

TEST(GrpcLinkTest, AStrangerIsRefusedBeforeAnythingIsRead) {
  Echo echo;
  const auto server = SwarmServer::Start("127.0.0.1:0", Token("a word that nobody knows"), &echo);
  ASSERT_THAT(server, IsOk());
  const std::string& address = (*server)->address();
  EXPECT_EQ(AnswerWithoutMessage(address, "pipelab-token", "a word that everybody knows"),
            grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(AnswerWithoutMessage(address, "other", "a word that nobody knows"),
            grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(AnswerWithoutMessage(address, "pipelab-token", std::string(kMostMetadataBytes, 'x')),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
  // Who has the word is waited for.
  EXPECT_EQ(AnswerWithoutMessage(address, "pipelab-token", "a word that nobody knows",
                                 /*seconds=*/1),
            grpc::StatusCode::DEADLINE_EXCEEDED);
}

TEST(GrpcLinkTest, ARequestHasTheSizeThatItsServiceNeeds) {
  class Small final : public SwarmService {
   public:
    int most_request_bytes() const override { return 1 << 16; }
    absl::Status Serve(const swarm::Request&, absl::Time, swarm::Reply* reply) override {
      reply->set_epoch(1);
      reply->mutable_sum()->mutable_bytes()->resize(1 << 23);
      return absl::OkStatus();
    }
  } small;
  const SwarmAccess access = Token("a word that nobody knows");
  const auto server = SwarmServer::Start("127.0.0.1:0", access, &small);
  ASSERT_THAT(server, IsOk());
  swarm::Request request;
  EXPECT_THAT(Ask(access, (*server)->address(), request), IsOk());
  request.mutable_report()->set_fault(std::string(1 << 16, 'x'));
  EXPECT_THAT(Ask(access, (*server)->address(), request),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("65536)")));
}

TEST(GrpcLinkTest, EveryWaitHasALimit) {
  Echo echo;
  const SwarmAccess access = Token("a word that nobody knows");
  auto server = SwarmServer::Start("127.0.0.1:0", access, &echo);
  ASSERT_THAT(server, IsOk());
  const std::string address = (*server)->address();
  swarm::Request stalls;
  stalls.mutable_commit();
  EXPECT_THAT(Ask(access, address, stalls),
              StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("")));
  server->reset();
  EXPECT_THAT(Ask(access, address), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("")));
}

TEST(GrpcLinkTest, ATokenIsForLoopback) {
  Echo echo;
  EXPECT_THAT(SwarmServer::Start("0.0.0.0:0", Token("a word that nobody knows"), &echo),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "0.0.0.0:0: a token alone is for loopback (127.0.0.1); other hosts need "
                       "certificates"));
  EXPECT_THAT(SwarmServer::Start("127.0.0.1:0", SwarmAccess(), &echo),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("certificates or a token")));
  EXPECT_THAT(Ask(Token("a word that nobody knows"), "10.0.0.1:4100"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("for loopback")));
}

TEST(GrpcLinkTest, LoopbackIsAnAddress) {
  const SwarmAccess access = Token("a word that nobody knows");
  for (const char* own : {"127.0.0.1:0", "127.9.8.7:65535", "localhost:80", "[::1]:80"}) {
    EXPECT_THAT(CheckAccess(access, own), IsOk()) << own;
  }
  for (const char* other : {"127.example.org:80", "127.0.0.1.example.org:80", "127.1:80", "127.:80",
                            "128.0.0.1:80", "1127.0.0.1:80", "localhost.example.org:80", ":80"}) {
    EXPECT_THAT(CheckAccess(access, other),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("for loopback")))
        << other;
  }
  for (const char* none : {"127.0.0.1", "127.0.0.1:", "127.0.0.1:99999", "127.0.0.1:-1",
                           "127.0.0.1:http", "127.0.0.1:65536"}) {
    EXPECT_THAT(CheckAccess(access, none),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("HOST:PORT")))
        << none;
  }
}

// An authority's certificate for a name, made by openssl; with `of`, of that authority.
absl::StatusOr<SwarmAccess> Certificates(const std::string& name,
                                         const std::string& for_name = "pipelab-swarm",
                                         const std::string& of = "") {
  const std::string folder = absl::StrCat(::testing::TempDir(), "/", name);
  absl::Status made = MakeDirectories(folder);
  if (!made.ok()) return made;
  const auto run = [&](const std::string& command) {
    ProcessOptions options;
    options.directory = folder;
    const auto ran = RunProcess({"sh", "-c", command}, options);
    EXPECT_THAT(ran, IsOk());
    if (ran.ok()) {
      EXPECT_EQ(ran->exit_code, 0) << ran->error;
    }
  };
  const std::string key = "openssl req -newkey rsa:2048 -nodes ";
  if (of.empty()) {
    run(key + "-x509 -days 2 -subj /CN=authority -keyout ca.key -out authority.pem");
  } else {
    run(absl::StrCat("cp ../", of, "/ca.key ../", of, "/authority.pem ."));
  }
  run(key + "-subj /CN=pipelab-swarm -keyout key.pem -out own.csr");
  run(absl::StrCat("printf subjectAltName=DNS:", for_name, " > own.ext; openssl x509 -req -days 2 ",
                   "-in own.csr -CA authority.pem -CAkey ca.key -CAcreateserial ",
                   "-extfile own.ext -out certificate.pem"));
  SwarmAccess access;
  for (const auto& [file, text] :
       {std::pair("authority.pem", &access.authority),
        std::pair("certificate.pem", &access.certificate), std::pair("key.pem", &access.key)}) {
    const auto read = ReadFile(JoinPath(folder, file));
    if (!read.ok()) return read.status();
    *text = *read;
  }
  return access;
}

TEST(GrpcLinkTest, CertificatesOnBothSides) {
  if (!RunProcess({"openssl", "version"}).ok()) GTEST_SKIP() << "there is no openssl";
  const auto ours = Certificates("ours"), theirs = Certificates("theirs");
  ASSERT_THAT(ours, IsOk());
  ASSERT_THAT(theirs, IsOk());
  Echo echo;
  const auto server = SwarmServer::Start("0.0.0.0:0", *ours, &echo);
  ASSERT_THAT(server, IsOk());
  const std::string& all = (*server)->address();
  const std::string address = absl::StrCat("127.0.0.1", all.substr(all.rfind(':')));
  EXPECT_THAT(Ask(*ours, address), IsOk());
  EXPECT_THAT(Ask(*theirs, address), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("")));
  // Ours to trust, theirs to show: the server wants its own authority's.
  SwarmAccess mixed = *theirs;
  mixed.authority = ours->authority;
  EXPECT_THAT(Ask(mixed, address), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("")));
  EXPECT_THAT(Ask(Token("a word that nobody knows"), address),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("")));
}

// An authority may have made certificates for other purposes; neither side takes them.
TEST(GrpcLinkTest, CertificatesAreForTheNameOnBothSides) {
  if (!RunProcess({"openssl", "version"}).ok()) GTEST_SKIP() << "there is no openssl";
  const auto ours = Certificates("named");
  const auto other = Certificates("web", "pipelab-swarm.example.org", /*of=*/"named");
  ASSERT_THAT(ours, IsOk());
  ASSERT_THAT(other, IsOk());
  Echo echo;
  const auto server = SwarmServer::Start("127.0.0.1:0", *ours, &echo);
  ASSERT_THAT(server, IsOk());
  EXPECT_THAT(Ask(*ours, (*server)->address()), IsOk());
  EXPECT_THAT(Ask(*other, (*server)->address()),
              StatusIs(absl::StatusCode::kPermissionDenied,
                       HasSubstr("must have subjectAltName=DNS:pipelab-swarm")));
  const auto others = SwarmServer::Start("127.0.0.1:0", *other, &echo);
  ASSERT_THAT(others, IsOk());
  EXPECT_THAT(Ask(*ours, (*others)->address()),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("")));
}

}  // namespace
}  // namespace pipelab

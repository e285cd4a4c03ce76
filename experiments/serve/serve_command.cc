#include "experiments/serve/serve_command.h"

#include <arpa/inet.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "experiments/commands/token_file.h"
#include "experiments/flags/interrupt.h"
#include "experiments/flags/output.h"
#include "experiments/flags/waiting.h"
#include "experiments/serve/command_pool.h"
#include "experiments/serve/page_server.h"
#include "tools/base/status_macros.h"

ABSL_DECLARE_FLAG(std::string, token_file);  // token_file.cc
ABSL_FLAG(int, port, 8080, "port to listen on; 0: a free one");
ABSL_FLAG(std::string, address, "127.0.0.1",
          "address to listen on; any but this host's own (127.0.0.1) asks for a token, which is "
          "printed, or that of --token_file");

namespace pipelab {
namespace {

absl::StatusOr<PageServerOptions> ServerOptionsFromFlags() {
  PageServerOptions options;
  options.address = absl::GetFlag(FLAGS_address);
  options.port = absl::GetFlag(FLAGS_port);
  if (options.port < 0 || options.port > 65535) {
    return absl::InvalidArgumentError(
        absl::StrCat("--port=", options.port, ": must be from 0 to 65535"));
  }
  if (options.address == "localhost") options.address = "127.0.0.1";
  in6_addr address;
  if (inet_pton(AF_INET, options.address.c_str(), &address) != 1 &&
      inet_pton(AF_INET6, options.address.c_str(), &address) != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("--address=", options.address,
                     ": must be an address in numbers, such as 127.0.0.1 or 0.0.0.0"));
  }
  if (!absl::GetFlag(FLAGS_token_file).empty()) {
    PIPELAB_ASSIGN_OR_RETURN(options.token, TokenFromFlag());
  } else if (!absl::StartsWith(options.address, "127.") && options.address != "::1") {
    options.token = NewToken();
  }
  return options;
}

}  // namespace

absl::Status ServeCommand(const Words& words) {
  PIPELAB_RETURN_IF_ERROR(CheckOptionsAlone(words, "serve"));
  PIPELAB_ASSIGN_OR_RETURN(const PageServerOptions options, ServerOptionsFromFlags());
  ServeLimits limits;
  limits.running = std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 2, 8);
  PIPELAB_ASSIGN_OR_RETURN(const std::unique_ptr<CommandPool> pool, CommandPool::Start(limits));
  PageServer server(options, limits, pool.get());
  PIPELAB_RETURN_IF_ERROR(server.Bind());
  PIPELAB_RETURN_IF_ERROR(
      WriteOutput("stdout", "-", absl::StrCat("serving ", server.Url(), " (Ctrl-C ends it)\n")));
  Waiting::Hush();
  const InterruptGuard interrupt;
  std::atomic<bool> ended{false};
  std::thread thread([&server, &ended] {
    server.Run();
    ended = true;
  });
  while (!interrupt.raised() && !ended) absl::SleepFor(absl::Milliseconds(50));
  const bool asked = interrupt.raised();
  server.Stop();
  thread.join();
  return asked ? absl::OkStatus() : absl::UnavailableError("serve: the server has ended by itself");
}

void LinkServeCommand() { LinkCommand("serve", &ServeCommand); }

}  // namespace pipelab

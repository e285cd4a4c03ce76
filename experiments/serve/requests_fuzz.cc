// Entry point for libFuzzer (how to run it: tools/build_defs/package.bzl), and for the seeded test
// beside it. A request that is taken has plain options of its command, and names no path.
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "experiments/serve/command_request.h"
#include "experiments/serve/http_head.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const pipelab::ServeLimits limits;
  const pipelab::HttpHead head = pipelab::ReadHttpHead(text, limits);
  if (head.body_bytes > limits.body_bytes || (head.status != 0) == head.reason.empty()) {
    __builtin_trap();
  }
  for (const absl::string_view command : {"simulate", "search"}) {
    const auto request = pipelab::ParseCommandRequest(command, text);
    if (!request.ok()) {
      if (request.status().message().empty()) __builtin_trap();
      continue;
    }
    for (const std::string& option : request->options) {
      if (!absl::StartsWith(option, "--") || absl::StrContains(option, '\n')) __builtin_trap();
      const bool quantity =
          absl::StartsWith(option, "--bandwidth=") || absl::StartsWith(option, "--layout=");
      if (!quantity && absl::StrContains(option, "/etc/")) __builtin_trap();
    }
    for (const auto& [name, file] : request->files) {
      if (absl::StrContains(name, '/') || name[0] == '.' || name[0] == '-') __builtin_trap();
    }
  }
  return 0;
}

#include "experiments/serve/http_head.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "nlohmann/json.hpp"
#include "tools/base/printable.h"

namespace pipelab {
namespace {

constexpr size_t kLongestTarget = 2048, kLongestRange = 64;

HttpHead RefusedHead(int status, std::string reason) { return {status, std::move(reason), 0}; }

bool IsVisible(char c) { return c > ' ' && c < 127; }

HttpHead ReadRequestLine(absl::string_view line) {
  const std::vector<absl::string_view> parts = absl::StrSplit(line, ' ');
  const bool form =
      parts.size() == 3 && !parts[0].empty() && !parts[1].empty() &&
      std::all_of(line.begin(), line.end(), [](char c) { return c == ' ' || IsVisible(c); });
  if (!form || (parts[2] != "HTTP/1.1" && parts[2] != "HTTP/1.0")) {
    return RefusedHead(400, "the first line is not METHOD TARGET HTTP/1.1");
  }
  if (parts[0] != "GET" && parts[0] != "HEAD" && parts[0] != "POST") {
    return RefusedHead(405, absl::StrCat(parts[0].substr(0, 20), ": use GET or POST"));
  }
  if (parts[1].size() > kLongestTarget) {
    return RefusedHead(
        414, absl::StrCat("a target of ", parts[1].size(), " bytes; at most ", kLongestTarget));
  }
  if (parts[1][0] != '/') return RefusedHead(400, "the target does not begin with /");
  return {};
}

// What the fields say of the body; a name with spaces or a length that is none is refused.
struct Fields {
  int lengths = 0, hosts = 0;
  bool chunked = false;
  uint64_t length = 0;
};

HttpHead ReadField(absl::string_view line, Fields* fields) {
  const size_t colon = line.find(':');
  const absl::string_view name = line.substr(0, colon);
  if (colon == absl::string_view::npos || name.empty() ||
      !std::all_of(name.begin(), name.end(), IsVisible) ||
      std::any_of(line.begin(), line.end(),
                  [](char c) { return absl::ascii_iscntrl(c) && c != '\t'; })) {
    return RefusedHead(400, "a line of the head is not NAME: VALUE");
  }
  const absl::string_view value = absl::StripAsciiWhitespace(line.substr(colon + 1));
  if (absl::EqualsIgnoreCase(name, "host")) ++fields->hosts;
  if (absl::EqualsIgnoreCase(name, "transfer-encoding")) fields->chunked = true;
  // httplib would unpack it to any size.
  if (absl::EqualsIgnoreCase(name, "content-encoding") &&
      !absl::EqualsIgnoreCase(value, "identity")) {
    return RefusedHead(415, absl::StrCat("Content-Encoding: ", value.substr(0, 20),
                                         ": must be identity, a body as it is"));
  }
  // httplib would answer each range of a list, however they overlap.
  if (absl::EqualsIgnoreCase(name, "range") &&
      (absl::StrContains(value, ',') || value.size() > kLongestRange)) {
    return RefusedHead(416, absl::StrCat("Range: ", value.substr(0, 20), "...: give one range"));
  }
  if (!absl::EqualsIgnoreCase(name, "content-length")) return {};
  ++fields->lengths;
  const bool digits =
      !value.empty() && std::all_of(value.begin(), value.end(), absl::ascii_isdigit);
  if (digits && absl::SimpleAtoi(value, &fields->length)) return {};
  return RefusedHead(400, "Content-Length is not a number");
}

// "10.0.0.2", "[fe80::1]".
bool IsNumericAddress(absl::string_view name) {
  in6_addr address;
  if (inet_pton(AF_INET, std::string(name).c_str(), &address) == 1) return true;
  return absl::ConsumePrefix(&name, "[") && absl::ConsumeSuffix(&name, "]") &&
         inet_pton(AF_INET6, std::string(name).c_str(), &address) == 1;
}

const char* StatusName(int status) {
  switch (status) {
    case 400:
      return "Bad Request";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 411:
      return "Length Required";
    case 413:
      return "Payload Too Large";
    case 414:
      return "URI Too Long";
    case 415:
      return "Unsupported Media Type";
    case 416:
      return "Range Not Satisfiable";
    case 431:
      return "Request Header Fields Too Large";
    default:
      return "Service Unavailable";
  }
}

}  // namespace

HttpHead ReadHttpHead(absl::string_view text, const ServeLimits& limits) {
  if (text.size() > limits.head_bytes) {
    return RefusedHead(431, absl::StrCat("a head of more than ", limits.head_bytes, " bytes"));
  }
  std::vector<absl::string_view> lines = absl::StrSplit(text, "\r\n");
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  if (lines.empty()) return RefusedHead(400, "the head is empty");
  if (lines.size() > static_cast<size_t>(limits.head_lines)) {
    return RefusedHead(
        431, absl::StrCat("a head of ", lines.size(), " lines; at most ", limits.head_lines));
  }
  HttpHead head = ReadRequestLine(lines[0]);
  Fields fields;
  for (size_t i = 1; i < lines.size() && head.status == 0; ++i) head = ReadField(lines[i], &fields);
  if (head.status != 0) return head;
  if (fields.hosts != 1)
    return RefusedHead(400, absl::StrCat(fields.hosts, " Host lines; give one"));
  if (fields.chunked) return RefusedHead(411, "a body in chunks; give its Content-Length");
  if (fields.lengths > 1) return RefusedHead(400, "two lines with a Content-Length");
  if (fields.lengths == 0 && absl::StartsWith(lines[0], "POST")) {
    return RefusedHead(411, "a POST without a Content-Length");
  }
  if (fields.length > limits.body_bytes) {
    return RefusedHead(
        413, absl::StrCat("a body of ", fields.length, " bytes; at most ", limits.body_bytes));
  }
  head.body_bytes = static_cast<size_t>(fields.length);
  return head;
}

std::string ErrorJson(absl::string_view reason) {
  const nlohmann::json error = {
      {"error", absl::StrReplaceAll(WithoutMiddle(reason), {{"\n", "\\n"}})}};
  return error.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::string RefusalText(int status, absl::string_view reason) {
  const std::string body = ErrorJson(reason);
  return absl::StrCat("HTTP/1.1 ", status, " ", StatusName(status),
                      "\r\nContent-Type: application/json\r\nContent-Length: ", body.size(),
                      "\r\nConnection: close\r\n\r\n", body);
}

bool IsOwnHost(absl::string_view host, absl::string_view address, int port) {
  const std::string suffix = absl::StrCat(":", port);
  if (!absl::EndsWith(host, suffix)) return false;
  const absl::string_view name = host.substr(0, host.size() - suffix.size());
  for (const absl::string_view own : {"localhost", "127.0.0.1", "[::1]"}) {
    if (absl::EqualsIgnoreCase(name, own)) return true;
  }
  // A name that leads to a given address cannot be told from another site's: numbers alone.
  if (address == "0.0.0.0" || address == "::") return IsNumericAddress(name);
  return name == address || name == absl::StrCat("[", address, "]");
}

}  // namespace pipelab

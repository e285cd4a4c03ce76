#include "experiments/report/browser.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tools/base/file.h"
#include "tools/base/json.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr int kWindowWidth = 1200, kWindowHeight = 900;

std::string TempFolder() {
  const char* folder = ::getenv("TEST_TMPDIR");
  std::string name = absl::StrCat(folder == nullptr ? "/tmp" : folder, "/browser_XXXXXX");
  return ::mkdtemp(&name[0]) == nullptr ? "" : name;
}

// Waits for something to read; false at the deadline.
bool Readable(int fd, absl::Time deadline) {
  pollfd poll_fd = {fd, POLLIN, 0};
  for (;;) {
    const int64_t left = absl::ToInt64Milliseconds(deadline - absl::Now());
    const int ready = ::poll(&poll_fd, 1, static_cast<int>(left > 0 ? left : 0));
    if (ready > 0) return true;
    if (ready == 0 || errno != EINTR) return false;
  }
}

struct KeyCode {
  int code;
  const char* text;
};

absl::StatusOr<KeyCode> CodeOf(absl::string_view key) {
  static const auto* codes = new std::map<absl::string_view, KeyCode>{
      {"Enter", {13, "\r"}},   {"Tab", {9, ""}},         {" ", {32, " "}},
      {"Escape", {27, ""}},    {"Home", {36, ""}},       {"End", {35, ""}},
      {"ArrowLeft", {37, ""}}, {"ArrowRight", {39, ""}}, {"ArrowUp", {38, ""}},
      {"ArrowDown", {40, ""}}, {"+", {187, "+"}},        {"-", {189, "-"}}};
  const auto at = codes->find(key);
  if (at == codes->end()) return absl::InvalidArgumentError(absl::StrCat("no such key: ", key));
  return at->second;
}

}  // namespace

absl::optional<std::string> FindBrowser() {
  const char* path = ::getenv("PATH");
  for (absl::string_view folder : absl::StrSplit(path == nullptr ? "/usr/bin" : path, ':')) {
    const std::string program = absl::StrCat(folder, "/chromium");
    if (::access(program.c_str(), X_OK) == 0) return program;
  }
  return absl::nullopt;
}

absl::StatusOr<std::unique_ptr<NetworkTrap>> NetworkTrap::Start() {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return absl::UnavailableError("no socket");
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  if (::bind(fd, reinterpret_cast<sockaddr*>(&address), size) != 0 || ::listen(fd, 64) != 0 ||
      ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    ::close(fd);
    return absl::UnavailableError("no port of 127.0.0.1");
  }
  return std::unique_ptr<NetworkTrap>(new NetworkTrap(fd, ntohs(address.sin_port)));
}

NetworkTrap::~NetworkTrap() { ::close(socket_); }

const std::vector<std::string>& NetworkTrap::Collect() {
  while (Readable(socket_, absl::Now())) {
    const int fd = ::accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) break;
    char text[4096];
    // Connections that were opened ahead, for nothing yet, say nothing.
    const ssize_t size =
        Readable(fd, absl::Now() + absl::Milliseconds(200)) ? ::recv(fd, text, sizeof(text), 0) : 0;
    ::close(fd);
    if (size <= 0) continue;
    const std::string request(text, static_cast<size_t>(size));
    requests_.push_back(request.substr(0, request.find('\r')));
  }
  return requests_;
}

absl::StatusOr<std::unique_ptr<Browser>> Browser::Start(const std::string& reaches) {
  ::signal(SIGPIPE, SIG_IGN);  // writing to a browser that is gone is an error, not the end
  const absl::optional<std::string> program = FindBrowser();
  if (!program) return absl::UnavailableError(kNoBrowser);
  std::unique_ptr<Browser> browser(new Browser());
  browser->folder_ = TempFolder();
  if (browser->folder_.empty()) return absl::UnavailableError("no folder for the browser");
  PIPELAB_ASSIGN_OR_RETURN(browser->trap_, NetworkTrap::Start());
  PIPELAB_RETURN_IF_ERROR(browser->Launch(*program, reaches));
  PIPELAB_ASSIGN_OR_RETURN(const nlohmann::json target,
                           browser->CallOf("", "Target.createTarget", {{"url", "about:blank"}}));
  PIPELAB_ASSIGN_OR_RETURN(const nlohmann::json attached,
                           browser->CallOf("", "Target.attachToTarget",
                                           {{"targetId", target["targetId"]}, {"flatten", true}}));
  browser->session_ = attached["sessionId"];
  for (const char* domain : {"Page", "Network", "Runtime", "Log"}) {
    PIPELAB_RETURN_IF_ERROR(
        browser->Call(absl::StrCat(domain, ".enable"), nlohmann::json::object()).status());
  }
  PIPELAB_RETURN_IF_ERROR(
      browser
          ->Call("Emulation.setDeviceMetricsOverride", {{"width", kWindowWidth},
                                                        {"height", kWindowHeight},
                                                        {"deviceScaleFactor", 1},
                                                        {"mobile", false}})
          .status());
  return browser;
}

absl::Status Browser::Launch(const std::string& program, const std::string& reaches) {
  int down[2], up[2];
  if (::pipe2(down, O_CLOEXEC) != 0 || ::pipe2(up, O_CLOEXEC) != 0)
    return absl::UnavailableError("no pipe");
  const std::vector<std::string> words = {
      program,
      "--headless",
      "--hide-scrollbars",
      "--remote-debugging-pipe",
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--disable-dev-shm-usage",
      "--no-first-run",
      "--no-default-browser-check",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
      "--disable-extensions",
      "--disable-default-apps",
      "--metrics-recording-only",
      absl::StrCat("--proxy-server=http://127.0.0.1:", trap_->port()),
      absl::StrCat("--proxy-bypass-list=<-loopback>", reaches.empty() ? "" : ";", reaches),
      absl::StrCat("--user-data-dir=", folder_, "/profile"),
      "about:blank"};
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const std::string log = absl::StrCat(folder_, "/browser.log");
  pid_ = ::fork();
  if (pid_ < 0) return absl::UnavailableError("fork failed");
  if (pid_ == 0) {
    ::setpgid(0, 0);
    // The protocol's pipes are 3 and 4. Copies first, since either may be in the other's place.
    const int in = ::fcntl(down[0], F_DUPFD, 10), out = ::fcntl(up[1], F_DUPFD, 10);
    const int nothing = ::open("/dev/null", O_RDONLY);
    const int said = ::open(log.c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0600);
    ::dup2(nothing, 0);
    ::dup2(said, 1);
    ::dup2(said, 2);
    ::dup2(in, 3);
    ::dup2(out, 4);
    ::setenv("HOME", folder_.c_str(), 1);
    ::execv(arguments[0], arguments.data());
    ::_exit(127);
  }
  ::close(down[0]);
  ::close(up[1]);
  to_ = down[1];
  from_ = up[0];
  return absl::OkStatus();
}

Browser::~Browser() {
  if (to_ >= 0) ::close(to_);
  if (from_ >= 0) ::close(from_);
  if (pid_ > 0) {
    ::kill(-pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  if (!folder_.empty()) RemoveTree(folder_).IgnoreError();
}

absl::StatusOr<nlohmann::json> Browser::NextMessage(absl::Time deadline) {
  for (;;) {
    const size_t end = buffer_.find('\0');
    if (end != std::string::npos) {
      const std::string text = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      return ParseJson(text, "the browser's message");
    }
    // Who asks the network is answered, or a page would wait for it.
    if (!Readable(from_, std::min(deadline, absl::Now() + absl::Milliseconds(50)))) {
      trap_->Collect();
      if (absl::Now() < deadline) continue;
      return absl::DeadlineExceededError("the browser does not answer");
    }
    char text[1 << 16];
    const ssize_t size = ::read(from_, text, sizeof(text));
    if (size <= 0) {
      const auto log = ReadFile(absl::StrCat(folder_, "/browser.log"));
      return absl::UnavailableError(
          absl::StrCat("the browser has ended: ", log.ok() ? *log : "no log"));
    }
    buffer_.append(text, static_cast<size_t>(size));
  }
}

absl::StatusOr<nlohmann::json> Browser::CallOf(absl::string_view session, absl::string_view method,
                                               nlohmann::json params) {
  const int id = next_id_++;
  nlohmann::json message = {{"id", id}, {"method", std::string(method)}, {"params", params}};
  if (!session.empty()) message["sessionId"] = std::string(session);
  const std::string text = message.dump();
  // With the 0 at the end.
  for (size_t sent = 0; sent <= text.size();) {
    const ssize_t size = ::write(to_, text.c_str() + sent, text.size() + 1 - sent);
    if (size <= 0) return absl::UnavailableError("the browser does not listen");
    sent += static_cast<size_t>(size);
  }
  const absl::Time deadline = absl::Now() + kLimit;
  for (;;) {
    PIPELAB_ASSIGN_OR_RETURN(const nlohmann::json answer, NextMessage(deadline));
    if (answer.value("id", 0) != id) {
      Note(answer);
    } else if (answer.contains("error")) {
      return absl::InternalError(absl::StrCat(method, ": ", answer["error"].dump()));
    } else {
      return answer["result"];
    }
  }
}

absl::StatusOr<nlohmann::json> Browser::Call(absl::string_view method, nlohmann::json params) {
  return CallOf(session_, method, std::move(params));
}

void Browser::Note(const nlohmann::json& event) {
  const std::string method = event.value("method", "");
  if (method == "Page.loadEventFired") loaded_ = true;
  if (method == "Network.requestWillBeSent") {
    const std::string url = event["params"]["request"]["url"];
    if (url != url_) requests_.push_back(url);
  }
  if (method == "Runtime.exceptionThrown") {
    complaints_.push_back(event["params"]["exceptionDetails"].dump());
  }
  if (method == "Log.entryAdded" && event["params"]["entry"].value("level", "") == "error") {
    complaints_.push_back(event["params"]["entry"].value("text", ""));
  }
}

absl::Status Browser::Open(absl::string_view html) {
  const std::string path = absl::StrCat(folder_, "/page", pages_++, ".html");
  PIPELAB_RETURN_IF_ERROR(WriteFileAtomically(path, html));
  return OpenUrl(absl::StrCat("file://", path));
}

absl::Status Browser::OpenUrl(const std::string& url) {
  url_ = url;
  requests_.clear();
  complaints_.clear();
  loaded_ = false;
  PIPELAB_RETURN_IF_ERROR(Call("Page.navigate", {{"url", url_}}).status());
  const absl::Time deadline = absl::Now() + kLimit;
  while (!loaded_) {
    PIPELAB_ASSIGN_OR_RETURN(const nlohmann::json event, NextMessage(deadline));
    Note(event);
  }
  return absl::OkStatus();
}

absl::StatusOr<nlohmann::json> Browser::Evaluate(absl::string_view expression) {
  PIPELAB_ASSIGN_OR_RETURN(const nlohmann::json answer,
                           Call("Runtime.evaluate", {{"expression", std::string(expression)},
                                                     {"returnByValue", true},
                                                     {"awaitPromise", true}}));
  if (answer.contains("exceptionDetails")) {
    return absl::InternalError(absl::StrCat(expression, ": ", answer["exceptionDetails"].dump()));
  }
  return answer["result"].contains("value") ? answer["result"]["value"] : nlohmann::json();
}

absl::Status Browser::Key(absl::string_view key) {
  PIPELAB_ASSIGN_OR_RETURN(const KeyCode code, CodeOf(key));
  const std::string text = code.text;
  nlohmann::json event = {{"type", text.empty() ? "rawKeyDown" : "keyDown"},
                          {"key", std::string(key)},
                          {"code", key == " " ? "Space" : std::string(key)},
                          {"windowsVirtualKeyCode", code.code}};
  if (!text.empty()) event["text"] = text;
  PIPELAB_RETURN_IF_ERROR(Call("Input.dispatchKeyEvent", event).status());
  event["type"] = "keyUp";
  event.erase("text");
  return Call("Input.dispatchKeyEvent", event).status();
}

absl::Status Browser::Mouse(absl::string_view type, double x, double y, bool down) {
  return Call("Input.dispatchMouseEvent", {{"type", std::string(type)},
                                           {"x", x},
                                           {"y", y},
                                           {"button", down ? "left" : "none"},
                                           {"buttons", down ? 1 : 0},
                                           {"clickCount", type == "mouseMoved" ? 0 : 1}})
      .status();
}

absl::Status Browser::MoveTo(double x, double y) { return Mouse("mouseMoved", x, y, false); }

absl::Status Browser::Click(double x, double y) {
  PIPELAB_RETURN_IF_ERROR(MoveTo(x, y));
  PIPELAB_RETURN_IF_ERROR(Mouse("mousePressed", x, y, true));
  return Mouse("mouseReleased", x, y, true);
}

absl::Status Browser::Drag(double x, double y, double to_x, double to_y) {
  PIPELAB_RETURN_IF_ERROR(MoveTo(x, y));
  PIPELAB_RETURN_IF_ERROR(Mouse("mousePressed", x, y, true));
  PIPELAB_RETURN_IF_ERROR(Mouse("mouseMoved", to_x, to_y, true));
  return Mouse("mouseReleased", to_x, to_y, true);
}

absl::Status Browser::Emulate(absl::string_view media, absl::string_view scheme) {
  return Call("Emulation.setEmulatedMedia",
              {{"media", std::string(media)},
               {"features", {{{"name", "prefers-color-scheme"}, {"value", std::string(scheme)}}}}})
      .status();
}

absl::StatusOr<std::string> Browser::Png() {
  PIPELAB_ASSIGN_OR_RETURN(const nlohmann::json metrics,
                           Call("Page.getLayoutMetrics", nlohmann::json::object()));
  nlohmann::json clip = metrics["cssContentSize"];
  clip["scale"] = 1;
  PIPELAB_ASSIGN_OR_RETURN(
      const nlohmann::json picture,
      Call("Page.captureScreenshot",
           {{"format", "png"}, {"captureBeyondViewport", true}, {"clip", clip}}));
  std::string png;
  if (!absl::Base64Unescape(picture["data"].get<std::string>(), &png))
    return absl::InternalError("a picture that is not base64");
  return png;
}

absl::StatusOr<std::string> Browser::Pdf() {
  PIPELAB_ASSIGN_OR_RETURN(
      const nlohmann::json paper,
      Call("Page.printToPDF",
           {{"paperWidth", 8.27}, {"paperHeight", 11.69}, {"preferCSSPageSize", true}}));
  std::string pdf;
  if (!absl::Base64Unescape(paper["data"].get<std::string>(), &pdf))
    return absl::InternalError("a PDF that is not base64");
  return pdf;
}

}  // namespace pipelab

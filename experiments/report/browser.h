// A headless Chromium that a test drives: pages, real keys and pointer, media, pictures, and
// whatever tries to reach the network.
//
//   if (!FindBrowser()) GTEST_SKIP() << kNoBrowser;
//   PIPELAB_ASSERT_OK_AND_ASSIGN(auto browser, Browser::Start());
//   ASSERT_THAT(browser->Open(html), IsOk());
//   ASSERT_THAT(browser->Key("Enter"), IsOk());
//   PIPELAB_ASSERT_OK_AND_ASSIGN(nlohmann::json title, browser->Evaluate("document.title"));
//   EXPECT_THAT(browser->requests(), IsEmpty());
//
// It talks DevTools' protocol over a pipe (--remote-debugging-pipe): no port, no other program. All
// its traffic goes to a proxy within this process, which notes what is asked for and answers
// nothing. Debian's package is `chromium` (tools/bazel test --config=browser installs it).
//
// Errors: Unavailable when it does not start or goes away, DeadlineExceeded after kLimit, Internal
// for what the protocol refuses or a script throws. POSIX only; one thread.
#ifndef PIPELAB_EXPERIMENTS_REPORT_BROWSER_H_
#define PIPELAB_EXPERIMENTS_REPORT_BROWSER_H_

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "nlohmann/json.hpp"

namespace pipelab {

inline constexpr absl::Duration kLimit = absl::Minutes(2);  // of one answer, on a busy machine
inline constexpr char kNoBrowser[] =
    "no Chromium on PATH: apt-get install -y chromium, or test with --config=browser";

// Its path; nothing where there is none.
absl::optional<std::string> FindBrowser();

// A proxy that notes the first line of each request and closes.
class NetworkTrap {
 public:
  static absl::StatusOr<std::unique_ptr<NetworkTrap>> Start();
  ~NetworkTrap();
  int port() const { return port_; }
  // Those that came so far, in order: "GET http://example.org/x.png HTTP/1.1".
  const std::vector<std::string>& Collect();

 private:
  NetworkTrap(int socket, int port) : socket_(socket), port_(port) {}
  int socket_, port_;
  std::vector<std::string> requests_;
};

class Browser {
 public:
  // `reaches` is a server that requests go to, "127.0.0.1:8080"; empty: none.
  static absl::StatusOr<std::unique_ptr<Browser>> Start(const std::string& reaches = "");
  ~Browser();  // ends the browser with all its processes

  // Writes the page to a file, opens it in a tab of 1200 x 900 and waits until it is loaded.
  absl::Status Open(absl::string_view html);
  // The same with a page of the server's.
  absl::Status OpenUrl(const std::string& url);
  // The value of an expression, or of the promise that it is.
  absl::StatusOr<nlohmann::json> Evaluate(absl::string_view expression);
  // Down and up, as the user's keyboard would: "Enter", "Tab", "ArrowRight", "a", " ".
  absl::Status Key(absl::string_view key);
  absl::Status MoveTo(double x, double y);
  absl::Status Click(double x, double y);
  absl::Status Drag(double x, double y, double to_x, double to_y);
  // media: "screen" or "print"; scheme: "light" or "dark".
  absl::Status Emulate(absl::string_view media, absl::string_view scheme);
  absl::StatusOr<std::string> Png();  // the whole page
  absl::StatusOr<std::string> Pdf();  // on A4
  // Any call of the protocol, for what has no function here.
  absl::StatusOr<nlohmann::json> Call(absl::string_view method, nlohmann::json params);

  // What the page asked for since Open, but for itself: URLs.
  const std::vector<std::string>& requests() const { return requests_; }
  // What scripts threw and what was written to the console as an error since Open.
  const std::vector<std::string>& complaints() const { return complaints_; }
  NetworkTrap& trap() { return *trap_; }

 private:
  Browser() = default;
  absl::Status Launch(const std::string& program, const std::string& reaches);
  absl::StatusOr<nlohmann::json> NextMessage(absl::Time deadline);
  absl::StatusOr<nlohmann::json> CallOf(absl::string_view session, absl::string_view method,
                                        nlohmann::json params);
  void Note(const nlohmann::json& event);
  absl::Status Mouse(absl::string_view type, double x, double y, bool down);

  std::unique_ptr<NetworkTrap> trap_;
  pid_t pid_ = -1;
  int to_ = -1, from_ = -1;
  int next_id_ = 1, pages_ = 0;
  bool loaded_ = false;
  std::string folder_, session_, url_, buffer_;
  std::vector<std::string> requests_, complaints_;
};

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_REPORT_BROWSER_H_

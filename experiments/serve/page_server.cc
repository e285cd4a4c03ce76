#include "experiments/serve/page_server.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"
#include "experiments/report/page_texts.h"
#include "experiments/serve/http_head.h"
#include "experiments/serve/web_texts.h"
#include "glog/logging.h"
#include "tools/base/secret.h"

namespace pipelab {
namespace {

constexpr char kJson[] = "application/json";
constexpr size_t kLongestStop = 1024;
constexpr char kCookie[] = "pipelab_token";
// No script, style or connection but this server's. Drawings have their own styles.
constexpr char kPolicy[] =
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

void Set(int status, const std::string& json, httplib::Response* response) {
  response->status = status;
  response->set_content(json, kJson);
}

void Refuse(int status, absl::string_view reason, httplib::Response* response) {
  Set(status, ErrorJson(reason), response);
}

std::string CookieOf(const httplib::Request& request) {
  const std::string cookies = request.get_header_value("Cookie");
  for (absl::string_view one : absl::StrSplit(cookies, "; ")) {
    if (absl::ConsumePrefix(&one, absl::StrCat(kCookie, "="))) return std::string(one);
  }
  return "";
}

std::string BearerOf(const httplib::Request& request) {
  const std::string header = request.get_header_value("Authorization");
  absl::string_view token = header;
  return absl::ConsumePrefix(&token, "Bearer ") ? std::string(token) : "";
}

std::string TextOf(absl::Span<const EmbeddedText> texts, absl::string_view name) {
  for (const EmbeddedText& text : texts) {
    if (text.name == name) return std::string(text.text);
  }
  LOG(FATAL) << "no text '" << name << "' in the page";
}

}  // namespace

PageServer::PageServer(const PageServerOptions& options, const ServeLimits& limits,
                       CommandPool* pool)
    : options_(options), pool_(pool), server_(limits) {
  server_.set_default_headers({{"Content-Security-Policy", kPolicy},
                               {"X-Content-Type-Options", "nosniff"},
                               {"Referrer-Policy", "no-referrer"},
                               {"Cross-Origin-Resource-Policy", "same-origin"},
                               {"Cache-Control", "no-store"}});
  server_.set_pre_routing_handler([this](const auto& request, auto& response) {
    return Refuses(request, &response) ? httplib::Server::HandlerResponse::Handled
                                       : httplib::Server::HandlerResponse::Unhandled;
  });
  server_.set_error_handler([](const httplib::Request& request, httplib::Response& response) {
    if (!response.body.empty()) return;
    if (BoundedServer::ClientIsTooSlow()) {
      return Refuse(408, "the body of the request comes too slowly", &response);
    }
    const bool missing = response.status == 404;
    Refuse(response.status,
           missing ? absl::StrCat(request.path.substr(0, 60),
                                  ": no such page; / is the page, and "
                                  "commands are POST /api/COMMAND")
                   : "the request cannot be read; its body is not what its head says",
           &response);
  });
  server_.set_exception_handler([](const auto&, auto& response, const std::exception_ptr&) {
    Refuse(500, "a fault in the server", &response);
  });
  AddPages();
  AddApi();
}

std::string PageServer::Url() const {
  const bool v6 = absl::StrContains(options_.address, ':');
  const bool any = options_.address == "0.0.0.0" || options_.address == "::";
  const std::string host = any ? "127.0.0.1" : options_.address;
  return absl::StrCat("http://", v6 && !any ? absl::StrCat("[", host, "]") : host, ":", port(), "/",
                      options_.token.empty() ? "" : absl::StrCat("?token=", options_.token));
}

bool PageServer::Refuses(const httplib::Request& request, httplib::Response* response) const {
  const std::string host = request.get_header_value("Host");
  if (!IsOwnHost(host, options_.address, port())) {
    Refuse(421,
           absl::StrCat("Host '", host.substr(0, 60), "' is not this server; open http://",
                        options_.address, ":", port(), "/"),
           response);
    return true;
  }
  const std::string origin = request.get_header_value("Origin");
  if (!origin.empty() && origin != absl::StrCat("http://", host)) {
    Refuse(403, absl::StrCat("a page of ", origin.substr(0, 60), " may not ask this server"),
           response);
    return true;
  }
  if (!options_.token.empty() && !SameSecret(CookieOf(request), options_.token) &&
      !SameSecret(BearerOf(request), options_.token)) {
    // The page's address with the token makes a cookie of it, and the token leaves the address.
    if (request.path == "/" && SameSecret(request.get_param_value("token"), options_.token)) {
      response->set_header("Set-Cookie", absl::StrCat(kCookie, "=", options_.token,
                                                      "; HttpOnly; SameSite=Strict; Path=/"));
      response->set_redirect("/");
      return true;
    }
    Refuse(401, "needs the token: open the address that pipelab serve printed", response);
    return true;
  }
  if (request.method != "POST") return false;
  const std::string type = request.get_header_value("Content-Type");
  if (type == kJson || absl::StartsWith(type, "application/json;")) return false;
  Refuse(415, "the body must be application/json", response);
  return true;
}

void PageServer::AddPages() {
  const auto add = [this](const std::string& path, const std::string& text, const char* type) {
    server_.Get(path, [text, type](const auto&, auto& response) {
      response.set_content(text, absl::StrCat(type, "; charset=utf-8"));
    });
  };
  add("/", TextOf(WebTexts(), "index"), "text/html");
  // Looks and the drawing are the reports'.
  add("/style\\.css", TextOf(PageTexts(), "style") + TextOf(WebTexts(), "page"), "text/css");
  for (const char* module : {"app", "state", "api", "views", "panels"}) {
    add(absl::StrCat("/", module, "\\.js"), TextOf(WebTexts(), module), "text/javascript");
  }
  add("/timeline\\.js", TextOf(PageTexts(), "timeline") + "\nexport {Timeline};\n",
      "text/javascript");
}

void PageServer::AddApi() {
  server_.Post("/api/stop", [this](const httplib::Request& request, httplib::Response& response) {
    if (request.body.size() > kLongestStop) {
      return Refuse(
          413, absl::StrCat("a body of ", request.body.size(), " bytes; at most ", kLongestStop),
          &response);
    }
    const absl::StatusOr<std::string> id = ParseStopRequest(request.body);
    if (!id.ok()) return Refuse(400, id.status().message(), &response);
    if (pool_->Stop(*id)) return Set(200, "{}\n", &response);
    Refuse(404, absl::StrCat("id ", *id, ": nothing runs by this id"), &response);
  });
  server_.Post("/api/synthesize",
               [this](const auto& request, auto& response) { Synthesize(request, &response); });
  server_.Post(
      "/api/([^/]{1,60})", [this](const httplib::Request& request, httplib::Response& response) {
        const CommandAnswer answer =
            pool_->Call(request.matches[1].str(), request.body, &BoundedServer::ClientIsGone);
        if (!server_.HasRoom(answer.body.size())) {
          return Refuse(503, "other clients have not read their answers yet; try again soon",
                        &response);
        }
        Set(answer.status, answer.body, &response);
      });
  server_.Get("/api/.{0,60}", [](const httplib::Request& request, httplib::Response& response) {
    Refuse(405, absl::StrCat(request.path.substr(0, 60), ": use POST"), &response);
  });
}

void PageServer::Synthesize(const httplib::Request& request, httplib::Response* response) {
  std::shared_ptr<CommandPool::Running> call =
      pool_->Begin("synthesize", request.body, &BoundedServer::ClientIsGone);
  auto event =
      std::make_shared<CommandPool::Running::Event>(call->Next(&BoundedServer::ClientIsGone));
  if (event->is_answer) return Set(event->answer.status, event->answer.body, response);
  response->set_chunked_content_provider(
      "application/x-ndjson", [call, event](size_t, httplib::DataSink& sink) {
        const std::string line =
            event->is_answer  // on one line: texts in JSON have no line breaks of their own
                ? absl::StrCat("{\"status\":", event->answer.status, ",\"answer\":",
                               absl::StrReplaceAll(event->answer.body, {{"\n", ""}}), "}\n")
                : absl::StrCat("{\"news\":", event->news, "}\n");
        if (!sink.write(line.data(), line.size())) return false;
        if (event->is_answer) {
          sink.done();
        } else {
          *event = call->Next(&BoundedServer::ClientIsGone);
        }
        return true;
      });
}

}  // namespace pipelab

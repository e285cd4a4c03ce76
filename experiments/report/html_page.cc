// The frame of report.html: style, script, and the policy that keeps the page from loading
// anything.
#include "absl/strings/str_cat.h"
#include "experiments/report/markup.h"
#include "experiments/report/page_texts.h"
#include "experiments/report/report_pages.h"
#include "glog/logging.h"

namespace pipelab {
namespace {

absl::string_view PageText(absl::string_view name) {
  for (const EmbeddedText& text : PageTexts()) {
    if (text.name == name) return text.text;
  }
  LOG(FATAL) << "no text '" << name << "' in experiments/report/page";
}

}  // namespace

std::string HtmlPage(absl::string_view title, absl::string_view body) {
  return absl::StrCat(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n",
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; ",
      "style-src 'unsafe-inline'; script-src 'unsafe-inline'; base-uri 'none'; form-action ",
      "'none'\">\n",
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>",
      HtmlEscape(title), "</title>\n<style>\n", PageText("style"), "</style>\n</head>\n<body>\n",
      body, "<script>\n", PageText("timeline"), PageText("script"),
      "</script>\n</body>\n</html>\n");
}

}  // namespace pipelab

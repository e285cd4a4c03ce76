// The pages of a report for people: terminal, Markdown, HTML. Only report.cc uses this; see
// report.h.
//
//   std::string html = ReportPages(report).Html();
//
// The HTML page needs nothing else: drawings, style and script (page/) are inside, and a content
// security policy keeps it from loading anything. Tables sort and timelines zoom, by pointer and by
// keyboard. It follows light and dark, fits phones, and prints; without scripts it shows the same,
// all timelines one below the other. Drawings beyond a page of 2 MB are left to their files.
#ifndef PIPELAB_EXPERIMENTS_REPORT_REPORT_PAGES_H_
#define PIPELAB_EXPERIMENTS_REPORT_REPORT_PAGES_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "experiments/report/report.h"

namespace pipelab {

class ReportPages {
 public:
  explicit ReportPages(const Report& report) : report_(report) {}  // `report` outlives this

  std::string Terminal() const;
  std::string Markdown() const;
  std::string Html() const;

 private:
  std::string HtmlTables() const;
  std::string HtmlTimelines() const;
  std::string HtmlFacts() const;
  // Title and content of each section.
  std::vector<std::pair<std::string, std::string>> HtmlSections() const;
  // Name and text of each setting, and what files there are.
  std::vector<std::pair<std::string, std::string>> Settings() const;
  std::vector<std::pair<std::string, std::string>> FileList() const;

  const Report& report_;
};

// The frame of a page: head with style, script at the end.
std::string HtmlPage(absl::string_view title, absl::string_view body);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_REPORT_REPORT_PAGES_H_

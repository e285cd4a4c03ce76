#include "experiments/report/report_pages.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "experiments/report/markup.h"

namespace pipelab {
namespace {

std::vector<std::string> Paragraphs(absl::string_view text) {
  std::vector<std::string> paragraphs;
  for (absl::string_view p : absl::StrSplit(text, "\n\n")) {
    p = absl::StripAsciiWhitespace(p);
    if (!p.empty()) paragraphs.push_back(std::string(p));
  }
  return paragraphs;
}

std::string ConfigText(const ConfigValue& value) {
  struct Visitor {
    std::string operator()(bool b) const { return b ? "true" : "false"; }
    std::string operator()(int64_t i) const { return absl::StrCat(i); }
    std::string operator()(double d) const { return FullNumber(d); }
    std::string operator()(const std::string& s) const { return s; }
  };
  return absl::visit(Visitor(), value);
}

using Facts = std::vector<std::pair<std::string, std::string>>;

std::string HtmlFactTable(absl::string_view caption, const Facts& facts) {
  std::string html =
      absl::StrCat("<table class=\"facts\">\n<caption>", caption, "</caption>\n<tbody>\n");
  for (const auto& [name, value] : facts) {
    absl::StrAppend(&html, "<tr><th scope=\"row\">", HtmlEscape(name), "</th><td>",
                    HtmlEscape(value), "</td></tr>\n");
  }
  return html + "</tbody>\n</table>\n";
}

std::string MarkdownFacts(const Facts& facts) {
  std::string text = "| | |\n|---|---|\n";
  for (const auto& [name, value] : facts) {
    absl::StrAppend(&text, "| ", MarkdownEscape(name), " | ",
                    absl::StrReplaceAll(MarkdownEscape(value), {{"|", "\\|"}, {"\n", " "}}),
                    " |\n");
  }
  return text + "\n";
}

std::string HtmlFigure(absl::string_view label, absl::string_view svg) {
  return absl::StrCat(
      "<figure>\n<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"",
      HtmlEscape(label), "\">\n", svg, "</div>\n</figure>\n");
}

}  // namespace

Facts ReportPages::Settings() const {
  Facts facts;
  facts.emplace_back("command", report_.options_.command);
  facts.emplace_back("seed", absl::StrCat(report_.options_.seed));
  for (const auto& [name, value] : report_.config_) facts.emplace_back(name, ConfigText(value));
  return facts;
}

Facts ReportPages::FileList() const {
  Facts files = {
      {"report.html, report.md", "this report"},
      {"records.csv", "every number of every table: a row for each, with unit and origin"},
      {"claims.json", "what is claimed, published and found"},
      {"deterministic.csv", "the numbers that every run must have, on every machine"},
      {"samples.csv", "the measurements behind measured medians"},
      {"run.json", "rows with a time, in Google Benchmark's form"},
      {"config.json", "settings and seed"},
      {"env.json", "commit, compiler, processor, packages"}};
  for (const Table& t : report_.tables_) {
    files.emplace_back(absl::StrCat("table_", t.id(), ".csv"),
                       absl::StrCat("the table \"", t.caption(), "\""));
  }
  for (const auto& c : report_.curves_) {
    files.emplace_back(absl::StrCat("curves_", c.id, ".svg, .csv"), c.title);
  }
  for (const auto& t : report_.timelines_) {
    if (!t.svg.empty()) {
      files.emplace_back(absl::StrCat("timeline_", t.slug, ".svg, trace_", t.slug, ".json"),
                         absl::StrCat(t.title, "; the trace is for Perfetto or chrome://tracing"));
    }
    const std::pair<std::string, std::string> schedule(
        t.schedule_file, absl::StrCat("the order of actions of ", t.scheme, ", a row a device"));
    if (files.back() != schedule &&
        std::find(files.begin(), files.end(), schedule) == files.end()) {
      files.push_back(schedule);
    }
  }
  return files;
}

std::string ReportPages::Terminal() const {
  std::string text;
  for (const Table& t : report_.tables_) absl::StrAppend(&text, t.ToTerminal(), "\n");
  for (const std::string& note : report_.notes_) absl::StrAppend(&text, note, "\n");
  return text;
}

std::string ReportPages::Markdown() const {
  std::string text = absl::StrCat("# ", MarkdownEscape(report_.options_.title), "\n\n");
  for (const std::string& p : Paragraphs(report_.options_.summary)) {
    absl::StrAppend(&text, MarkdownEscape(p), "\n\n");
  }
  if (!report_.options_.command.empty())
    absl::StrAppend(&text, "    ", report_.options_.command, "\n\n");
  for (const Table& t : report_.tables_) absl::StrAppend(&text, t.ToMarkdown(), "\n");
  if (!report_.notes_.empty()) absl::StrAppend(&text, "## Notes\n\n");
  for (const std::string& note : report_.notes_)
    absl::StrAppend(&text, "- ", MarkdownEscape(note), "\n");
  if (!report_.notes_.empty()) absl::StrAppend(&text, "\n");
  for (const auto& c : report_.curves_) {
    absl::StrAppend(&text, "## ", MarkdownEscape(c.title), "\n\n![", MarkdownEscape(c.title),
                    "](curves_", c.id, ".svg)\n\n");
  }
  if (!report_.timelines_.empty()) absl::StrAppend(&text, "## Timelines\n\n");
  for (const auto& t : report_.timelines_) {
    if (!t.svg.empty()) {
      absl::StrAppend(&text, "![", MarkdownEscape(t.title), "](timeline_", t.slug, ".svg)\n\n");
    }
    if (t.breakdown) absl::StrAppend(&text, t.breakdown->ToMarkdown(), "\n");
  }
  absl::StrAppend(&text, "## Settings\n\n", MarkdownFacts(Settings()), "## Environment\n\n",
                  MarkdownFacts(EnvironmentFields(report_.environment_)), "## Files\n\n",
                  MarkdownFacts(FileList()));
  return text;
}

std::string ReportPages::HtmlCharts() const {
  std::string html;
  for (const auto& c : report_.curves_) {
    absl::StrAppend(&html, "<section>\n<h2>", HtmlEscape(c.title), "</h2>\n",
                    HtmlFigure(c.title, c.svg), "</section>\n");
  }
  if (report_.timelines_.empty()) return html;
  absl::StrAppend(&html, "<section>\n<h2>Timelines</h2>\n");
  for (const auto& t : report_.timelines_) {
    if (t.svg.empty() && !t.breakdown) continue;
    // The drawing's own title says the rest.
    absl::StrAppend(&html, "<h3>", HtmlEscape(t.scheme), ", ", t.origin, "</h3>\n");
    if (!t.svg.empty()) absl::StrAppend(&html, HtmlFigure(t.title, t.svg));
    if (t.breakdown) {
      absl::StrAppend(&html, "<details>\n<summary>Where the time went</summary>\n",
                      t.breakdown->ToHtml(), "</details>\n");
    }
  }
  return html + "</section>\n";
}

std::string ReportPages::HtmlFacts() const {
  return absl::StrCat("<section>\n<h2>How this was made</h2>\n",
                      HtmlFactTable("Settings", Settings()),
                      HtmlFactTable("Environment", EnvironmentFields(report_.environment_)),
                      HtmlFactTable("Files of this folder", FileList()), "</section>\n");
}

std::string ReportPages::Html() const {
  std::string body = absl::StrCat("<header>\n<h1>", HtmlEscape(report_.options_.title), "</h1>\n");
  for (const std::string& p : Paragraphs(report_.options_.summary)) {
    absl::StrAppend(&body, "<p>", HtmlEscape(p), "</p>\n");
  }
  if (!report_.options_.command.empty()) {
    absl::StrAppend(&body, "<pre><code>", HtmlEscape(report_.options_.command), "</code></pre>\n");
  }
  absl::StrAppend(&body, "</header>\n<main>\n");
  if (!report_.tables_.empty()) absl::StrAppend(&body, "<section>\n<h2>Results</h2>\n");
  for (const Table& t : report_.tables_) absl::StrAppend(&body, t.ToHtml());
  if (!report_.tables_.empty()) absl::StrAppend(&body, "</section>\n");
  if (!report_.notes_.empty()) {
    absl::StrAppend(&body, "<section>\n<h2>Notes</h2>\n<ul>\n");
    for (const std::string& note : report_.notes_)
      absl::StrAppend(&body, "<li>", HtmlEscape(note), "</li>\n");
    absl::StrAppend(&body, "</ul>\n</section>\n");
  }
  absl::StrAppend(&body, HtmlCharts(), HtmlFacts(), "</main>\n");
  return HtmlPage(report_.options_.title, body);
}

}  // namespace pipelab

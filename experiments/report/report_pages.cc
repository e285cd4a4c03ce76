#include "experiments/report/report_pages.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "experiments/report/markup.h"
#include "experiments/report/overview_html.h"

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

std::string HtmlFigure(absl::string_view kind, absl::string_view label, absl::string_view svg) {
  return absl::StrCat("<figure class=\"", kind,
                      "\">\n<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"",
                      HtmlEscape(label), "\">\n", svg, "</div>\n</figure>\n");
}

std::string SectionId(absl::string_view title) { return absl::StrCat("section-", Slug(title)); }

std::string HtmlSection(absl::string_view title, absl::string_view content) {
  const std::string id = SectionId(title);
  return absl::StrCat("<section aria-labelledby=\"", id, "\">\n<h2 id=\"", id, "\">",
                      HtmlEscape(title), "</h2>\n", content, "</section>\n");
}

std::string Folded(absl::string_view summary, absl::string_view content) {
  return absl::StrCat("<details>\n<summary>", HtmlEscape(summary), "</summary>\n", content,
                      "</details>\n");
}

// What a reader must know of the columns, in the words of docs/results.md.
std::string HtmlOrigins(const std::vector<Table>& tables) {
  static constexpr std::pair<Origin, const char*> kMeanings[] = {
      {Origin::kMeasured, "taken from a run on the machine named below"},
      {Origin::kReplayed, "simulated from measured times of actions, with a core for each device"},
      {Origin::kSimulated, "simulated from a cost model"},
      {Origin::kPublished, "printed in a paper; the tag says how it was read"},
      {Origin::kComputed, "worked out from the configuration or from other values"}};
  std::string html;
  for (const auto& [origin, meaning] : kMeanings) {
    const bool used = std::any_of(tables.begin(), tables.end(), [o = origin](const Table& t) {
      return std::any_of(t.columns().begin(), t.columns().end(),
                         [o](const Column& c) { return c.origin == o; });
    });
    if (used) {
      absl::StrAppend(&html, "<dt>", OriginName(origin), "</dt><dd>", meaning, "</dd>\n");
    }
  }
  if (html.empty()) return html;
  return Folded("Where the numbers of a column are from", absl::StrCat("<dl>\n", html, "</dl>\n"));
}

// The drawings of a page, until they are too large for it; the others are named with their files.
class Drawings {
 public:
  std::string Add(const std::string& html, absl::string_view what, absl::string_view file) {
    if (size_ + html.size() > kLargestDrawings) {
      return absl::StrCat("<p class=\"note\">", what, " is in the file ", file,
                          " only, to keep this page small.</p>\n");
    }
    size_ += html.size();
    return html;
  }

 private:
  static constexpr size_t kLargestDrawings = 1'200'000;
  size_t size_ = 0;
};

}  // namespace

Facts ReportPages::Settings() const {
  Facts facts;
  facts.emplace_back("command", report_.options_.command);
  facts.emplace_back("seed", absl::StrCat(report_.options_.seed));
  for (const auto& [name, value] : report_.config_) facts.emplace_back(name, ConfigText(value));
  return facts;
}

Facts ReportPages::FileList() const {
  Facts files = {{"report.html, report.md", "this report"},
                 {"records.csv", "every number of every table, one per row, with unit and origin"},
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
    if (!t.memory_svg.empty()) {
      files.emplace_back(absl::StrCat("memory_", t.slug, ".svg"),
                         absl::StrCat("memory of each device over time, ", t.scheme));
    }
    const std::pair<std::string, std::string> schedule(
        t.schedule_file,
        absl::StrCat("the order of actions of ", t.scheme, ", one row per device"));
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
  if (!report_.takeaway_.empty()) {
    absl::StrAppend(&text, "**", MarkdownEscape(report_.takeaway_), "**\n\n");
  }
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
    if (!t.memory_svg.empty()) {
      absl::StrAppend(&text, "![Memory over time of ", MarkdownEscape(t.scheme), "](memory_",
                      t.slug, ".svg)\n\n");
    }
    if (t.breakdown) absl::StrAppend(&text, t.breakdown->ToMarkdown(), "\n");
  }
  absl::StrAppend(&text, "## Settings\n\n", MarkdownFacts(Settings()), "## Environment\n\n",
                  MarkdownFacts(EnvironmentFields(report_.environment_)), "## Files\n\n",
                  MarkdownFacts(FileList()));
  return text;
}

// Each is a pane with its scheme and origin, of which the script shows one at a time.
std::string ReportPages::HtmlTimelines() const {
  std::string html;
  Drawings drawings;
  for (const auto& t : report_.timelines_) {
    if (t.svg.empty() && !t.breakdown) continue;
    // The drawing's own title says the rest.
    absl::StrAppend(&html, "<div class=\"pane\" data-scheme=\"", HtmlEscape(t.scheme),
                    "\" data-origin=\"", t.origin, "\">\n<h3>", HtmlEscape(t.scheme), ", ",
                    t.origin, "</h3>\n");
    if (!t.figure.empty()) {
      html += drawings.Add(t.figure, "The drawing", absl::StrCat("timeline_", t.slug, ".svg"));
    }
    if (!t.memory_svg.empty()) {
      const std::string label = absl::StrCat("Memory over time of ", t.scheme,
                                             ", at the times of the ", t.origin, " step");
      html += drawings.Add(HtmlFigure("memory", label, t.memory_svg), "Memory over time",
                           absl::StrCat("memory_", t.slug, ".svg"));
    }
    if (t.breakdown) html += Folded("Where the time went", t.breakdown->ToHtml());
    html += "</div>\n";
  }
  return html;
}

std::string ReportPages::HtmlFacts() const {
  return absl::StrCat(HtmlFactTable("Settings", Settings()),
                      HtmlFactTable("Environment", EnvironmentFields(report_.environment_)),
                      HtmlFactTable("Files of this folder", FileList()));
}

std::string ReportPages::HtmlTables() const {
  constexpr size_t kLongTable = 12;
  std::vector<Table> all = report_.AllTables();
  all.insert(all.end(), report_.tables_.begin(), report_.tables_.end());  // that of claims, too
  std::string first, others;
  for (const Table& t : report_.tables_) {
    if (t.id() == report_.overview_table_) {
      first = absl::StrCat(OverviewHtml(t, report_.overview_metrics_), t.ToHtml());
    } else if (!report_.overview_table_.empty() && t.rows().size() > kLongTable) {
      others += Folded(absl::StrCat(t.caption(), " (", t.rows().size(), " rows)"), t.ToHtml());
    } else {
      others += t.ToHtml();
    }
  }
  return absl::StrCat(first, HtmlOrigins(all), others);
}

Facts ReportPages::HtmlSections() const {
  Facts sections;
  if (!report_.tables_.empty()) sections.emplace_back("Results", HtmlTables());
  for (const auto& c : report_.curves_) {
    sections.emplace_back(c.title, HtmlFigure("curves", c.title, c.svg));
  }
  if (!report_.timelines_.empty()) sections.emplace_back("Timelines", HtmlTimelines());
  if (!report_.notes_.empty()) {
    std::string notes = "<ul>\n";
    for (const std::string& note : report_.notes_)
      absl::StrAppend(&notes, "<li>", HtmlEscape(note), "</li>\n");
    sections.emplace_back("Notes", notes + "</ul>\n");
  }
  sections.emplace_back("How this was made", HtmlFacts());
  return sections;
}

std::string ReportPages::Html() const {
  std::string body =
      absl::StrCat("<a class=\"skip\" href=\"#content\">Skip to the content</a>\n<header>\n<h1>",
                   HtmlEscape(report_.options_.title), "</h1>\n");
  for (const std::string& line : {report_.takeaway_, ClaimsSummary(report_.claims_)}) {
    if (!line.empty()) {
      absl::StrAppend(&body, "<p class=\"takeaway\">", HtmlEscape(line), "</p>\n");
    }
  }
  for (const std::string& p : Paragraphs(report_.options_.summary)) {
    absl::StrAppend(&body, "<p>", HtmlEscape(p), "</p>\n");
  }
  if (!report_.options_.command.empty()) {
    absl::StrAppend(&body, "<pre tabindex=\"0\" aria-label=\"Command\"><code>",
                    HtmlEscape(report_.options_.command), "</code></pre>\n");
  }
  const Facts sections = HtmlSections();
  absl::StrAppend(&body, "</header>\n<nav aria-label=\"Sections\">\n<ul>\n");
  for (const auto& section : sections) {
    absl::StrAppend(&body, "<li><a href=\"#", SectionId(section.first), "\">",
                    HtmlEscape(section.first), "</a></li>\n");
  }
  absl::StrAppend(&body, "</ul>\n</nav>\n<main id=\"content\" tabindex=\"-1\">\n");
  for (const auto& [title, content] : sections) absl::StrAppend(&body, HtmlSection(title, content));
  return HtmlPage(report_.options_.title, body + "</main>\n");
}

}  // namespace pipelab

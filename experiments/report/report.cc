#include "experiments/report/report.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "experiments/report/breakdown.h"
#include "experiments/report/chrome_trace.h"
#include "experiments/report/claim_json.h"
#include "experiments/report/markup.h"
#include "experiments/report/memory_svg.h"
#include "experiments/report/overview_html.h"
#include "experiments/report/records.h"
#include "experiments/report/report_pages.h"
#include "experiments/report/timeline_page.h"
#include "experiments/report/timeline_svg.h"
#include "nlohmann/json.hpp"
#include "pipelines/analysis/analysis.h"
#include "pipelines/ir/text.h"
#include "tools/base/file.h"
#include "tools/base/json.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

// A column a series; empty where a series is shorter.
std::string CurvesCsv(absl::string_view x_label, const std::vector<Series>& series) {
  std::string csv = CsvField(x_label);
  std::map<int64_t, std::vector<std::string>> rows;  // by step
  for (size_t column = 0; column < series.size(); ++column) {
    const Series& s = series[column];
    absl::StrAppend(&csv, ",", CsvField(s.name));
    for (size_t i = 0; i < s.values.size(); ++i) {
      std::vector<std::string>& row = rows[s.StepOf(i)];
      row.resize(series.size());
      row[column] = FullNumber(s.values[i]);
    }
  }
  absl::StrAppend(&csv, "\n");
  for (const auto& [step, row] : rows) {
    absl::StrAppend(&csv, step, ",", absl::StrJoin(row, ","), "\n");
  }
  return csv;
}

nlohmann::json ConfigToJson(const ConfigValue& value) {
  return absl::visit([](const auto& v) { return nlohmann::json(v); }, value);
}

}  // namespace

Report::Report(ReportOptions options) : options_(std::move(options)) {
  environment_ = options_.environment ? *options_.environment : ReadEnvironment();
  if (!IsSlug(options_.name)) {
    Fail(absl::InvalidArgumentError("the name is not lower case, digits and underscores"));
  }
}

void Report::Fail(const absl::Status& status) {
  if (status.ok() || !status_.ok()) return;
  status_ =
      absl::Status(status.code(), absl::StrCat("report '", options_.name, "': ", status.message()));
}

void Report::SetConfig(absl::string_view name, ConfigValue value) {
  for (const auto& entry : config_) {
    if (entry.first == name)
      Fail(absl::InvalidArgumentError(absl::StrCat("setting '", name, "' is given twice")));
  }
  config_.emplace_back(std::string(name), std::move(value));
}

void Report::AddTable(Table table) {
  Fail(table.status());
  for (const Table& t : tables_) {
    if (t.id() == table.id())
      Fail(absl::InvalidArgumentError(absl::StrCat("two tables are called '", t.id(), "'")));
  }
  tables_.push_back(std::move(table));
}

void Report::AddTimeline(absl::string_view scheme, const Program& program, const Trace& trace,
                         const CostTable* costs) {
  const auto analysis = Analyze(program, trace);
  if (!analysis.ok()) return Fail(analysis.status());
  Timeline t;
  t.scheme = std::string(scheme);
  t.origin = std::string(OriginName(OriginOf(trace)));
  t.slug = absl::StrCat(Slug(scheme), "_", t.origin);
  t.title = TimelineTitle(scheme, program, trace, analysis->overall.bubble);
  // A schedule that cells cannot say is written in the project's own text form.
  const auto csv = ToCsv(program.schedule);
  t.schedule = csv.ok() ? *csv : ToText(program.schedule);
  t.schedule_file = absl::StrCat("schedule_", Slug(scheme), csv.ok() ? ".csv" : ".txt");
  for (const Timeline& other : timelines_) {
    if (other.slug == t.slug)
      return Fail(absl::InvalidArgumentError(absl::StrCat("two timelines '", t.slug, "'")));
    if (other.schedule_file == t.schedule_file && other.schedule != t.schedule) {
      return Fail(
          absl::InvalidArgumentError(absl::StrCat("two schedules for '", t.schedule_file, "'")));
    }
  }
  if (analysis->has_spans) {
    t.breakdown = BreakdownTable(absl::StrCat("breakdown_", t.slug), scheme, *analysis);
    const absl::Status drawn = Draw(program, trace, costs, &t);
    if (absl::IsResourceExhausted(drawn)) {
      AddNote(absl::StrCat("No timeline of ", t.title, ": ", drawn.message(), "."));
    } else if (!drawn.ok()) {
      return Fail(drawn);
    }
  }
  timelines_.push_back(std::move(t));
}

absl::Status Report::Draw(const Program& program, const Trace& trace, const CostTable* costs,
                          Timeline* t) {
  PIPELAB_ASSIGN_OR_RETURN(
      t->svg, TimelineSvg(absl::StrCat("timeline-", t->slug), t->scheme, program, trace));
  PIPELAB_ASSIGN_OR_RETURN(
      t->figure, TimelineFigure(absl::StrCat("timeline-", t->slug), t->scheme, program, trace));
  PIPELAB_ASSIGN_OR_RETURN(t->chrome_trace, ChromeTrace(t->scheme, program, trace, costs));
  if (costs == nullptr) return absl::OkStatus();
  auto memory = MemorySvg(absl::StrCat("memory-", t->slug), t->scheme, program, *costs, trace);
  if (absl::IsResourceExhausted(memory.status())) {
    AddNote(
        absl::StrCat("No memory over time of ", t->title, ": ", memory.status().message(), "."));
    return absl::OkStatus();
  }
  PIPELAB_ASSIGN_OR_RETURN(t->memory_svg, std::move(memory));
  return absl::OkStatus();
}

void Report::AddCurves(absl::string_view title, absl::string_view x_label,
                       absl::string_view y_label, const std::vector<Series>& series,
                       bool doubling) {
  Curves c;
  for (const Series& s : series) {
    if (s.steps.empty() || s.steps.size() == s.values.size()) continue;
    return Fail(absl::InvalidArgumentError(absl::StrCat(
        "the line '", s.name, "' has ", s.values.size(), " values at ", s.steps.size(), " steps")));
  }
  c.id = Slug(title);
  c.title = std::string(title);
  for (const Curves& other : curves_) {
    if (other.id == c.id)
      return Fail(absl::InvalidArgumentError(absl::StrCat("two charts are called '", title, "'")));
  }
  ChartOptions options;
  options.id = absl::StrCat("curves-", c.id);
  options.title = c.title;
  options.x_label = std::string(x_label);
  options.y_label = std::string(y_label);
  options.doubling = doubling;
  c.svg = LineChartSvg(options, series);
  c.csv = CurvesCsv(x_label, series);
  curves_.push_back(std::move(c));
}

void Report::AddClaim(Claim claim) {
  Fail(CheckClaim(claim));
  for (const Claim& c : claims_) {
    if (c.id == claim.id)
      Fail(absl::InvalidArgumentError(absl::StrCat("two claims are called '", c.id, "'")));
  }
  if (!claims_.empty()) tables_.erase(tables_.begin());
  claims_.push_back(std::move(claim));
  Table table = ClaimsTable(claims_);
  Fail(table.status());
  tables_.insert(tables_.begin(), std::move(table));
}

void Report::SetTakeaway(absl::string_view text) { takeaway_ = std::string(text); }

void Report::AddOverview(absl::string_view table, std::vector<std::string> metrics) {
  const auto found =
      std::find_if(tables_.begin(), tables_.end(), [&](const Table& t) { return t.id() == table; });
  if (found == tables_.end()) {
    return Fail(absl::InvalidArgumentError(absl::StrCat("overview: no table '", table, "'")));
  }
  for (const std::string& metric : metrics) {
    if (FindColumn(*found, metric) >= 0) continue;
    return Fail(absl::InvalidArgumentError(
        absl::StrCat("overview: the table '", table, "' has no column '", metric, "'")));
  }
  overview_table_ = std::string(table);
  overview_metrics_ = std::move(metrics);
}

void Report::AddNote(absl::string_view note) { notes_.push_back(std::string(note)); }

std::vector<Table> Report::AllTables() const {
  std::vector<Table> tables(tables_.begin() + (claims_.empty() ? 0 : 1), tables_.end());
  for (const Timeline& t : timelines_) {
    if (t.breakdown) tables.push_back(*t.breakdown);
  }
  return tables;
}

std::string Report::ToTerminal() const { return ReportPages(*this).Terminal(); }
std::string Report::ToMarkdown() const { return ReportPages(*this).Markdown(); }
std::string Report::ToHtml() const { return ReportPages(*this).Html(); }

absl::StatusOr<std::vector<std::pair<std::string, std::string>>> Report::Files() const {
  PIPELAB_RETURN_IF_ERROR(status_);
  const std::vector<Table> tables = AllTables();
  for (const Table& t : tables) PIPELAB_RETURN_IF_ERROR(t.status());
  nlohmann::json settings = nlohmann::json::object();
  for (const auto& [name, value] : config_) settings[name] = ConfigToJson(value);

  std::vector<std::pair<std::string, std::string>> files = {
      {"config.json", DumpJson({{"experiment", options_.name},
                                {"command", options_.command},
                                {"seed", options_.seed},
                                {"settings", settings}})},
      {"env.json", EnvironmentJson(environment_)},
      {"records.csv", RecordsCsv(options_.name, tables)},
      {"deterministic.csv", DeterministicCsv(tables)},
      {"report.html", ToHtml()},
      {"report.md", ToMarkdown()},
      {"run.json", RunJson(options_.name, environment_, tables)},
  };
  // Always there, so that a folder never keeps those of an older run.
  files.emplace_back("claims.json", ClaimsJson(options_.name, claims_));
  files.emplace_back("samples.csv", SamplesCsv(tables));
  for (const Table& t : tables_)
    files.emplace_back(absl::StrCat("table_", t.id(), ".csv"), t.ToCsv());
  for (const Timeline& t : timelines_) {
    files.emplace_back(t.schedule_file, t.schedule);
    if (t.svg.empty()) continue;
    files.emplace_back(absl::StrCat("timeline_", t.slug, ".svg"), t.svg);
    files.emplace_back(absl::StrCat("trace_", t.slug, ".json"), t.chrome_trace);
    if (!t.memory_svg.empty())
      files.emplace_back(absl::StrCat("memory_", t.slug, ".svg"), t.memory_svg);
  }
  for (const Curves& c : curves_) {
    files.emplace_back(absl::StrCat("curves_", c.id, ".svg"), c.svg);
    files.emplace_back(absl::StrCat("curves_", c.id, ".csv"), c.csv);
  }
  std::sort(files.begin(), files.end());
  // A scheme's timelines share its schedule.
  files.erase(std::unique(files.begin(), files.end()), files.end());
  return files;
}

absl::Status Report::WriteTo(absl::string_view directory) const {
  PIPELAB_RETURN_IF_ERROR(status_);
  PIPELAB_ASSIGN_OR_RETURN(OutputDirectory out, OutputDirectory::Create("--out", directory));
  return WriteTo(&out);
}

absl::Status Report::WriteTo(OutputDirectory* folder) const {
  PIPELAB_ASSIGN_OR_RETURN(const auto files, Files());
  for (const auto& [name, text] : files) PIPELAB_RETURN_IF_ERROR(folder->Write(name, text));
  return folder->Publish();
}

}  // namespace pipelab

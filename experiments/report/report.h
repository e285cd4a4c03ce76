// The result folder of an experiment: tables, timelines and curves in, files out, all or nothing.
//
//   Report report({.name = "quickstart",
//                  .title = "One GPT, five schemes",
//                  .summary = "The same model and data under each scheme.",
//                  .command = "tools/bazel run //experiments:quickstart -- --steps 200",
//                  .seed = 1});
//   report.AddConfig("steps", 200);
//   report.AddTable(std::move(table));                       // table.h
//   report.AddTimeline("1f1b", program, simulated_trace);    // once a scheme and origin
//   report.AddTimeline("1f1b", program, measured_trace);
//   report.AddLossCurves("Training loss", "loss [nats/token]",
//                        {{"serial", {4.1, 3.2}}, {"1f1b", {4.1, 3.2}}});
//   report.AddClaim(claim);                                  // claim.h: beside a published figure
//   report.AddNote("The machine has fewer cores than the pipeline has devices.");
//   PIPELAB_RETURN_IF_ERROR(report.WriteTo(directory));
//   std::cout << report.ToTerminal();                        // the tables, short
//
// WriteTo collects the files in a hidden folder and then publishes them (OutputDirectory in
// tools/base/file.h): a failed or interrupted run leaves neither half a file nor a damaged older
// result. A new folder appears in one rename; in one that has files, each is replaced whole, and
// files that this run did not make stay (report.html lists those that it did). docs/results.md
// describes every file. Equal inputs give equal bytes; the environment, with the date, is one.
//
// Errors: Add... keep the first one, and WriteTo returns it before it touches the folder:
// InvalidArgument for a bad table, a timeline that is there already, a trace that does not belong
// to the program; what the file system says otherwise, naming --out.
#ifndef PIPELAB_EXPERIMENTS_REPORT_REPORT_H_
#define PIPELAB_EXPERIMENTS_REPORT_REPORT_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/variant.h"
#include "experiments/report/chart_svg.h"
#include "experiments/report/claim.h"
#include "experiments/report/environment.h"
#include "experiments/report/table.h"
#include "pipelines/analysis/analysis.h"
#include "pipelines/cost/cost_table.h"
#include "pipelines/ir/program.h"
#include "pipelines/ir/trace.h"
#include "tools/base/file.h"

namespace pipelab {

struct ReportOptions {
  std::string name = {};  // of the experiment: lower case, digits, underscores
  std::string title = {};
  std::string summary = {};  // a paragraph; an empty line starts the next
  std::string command = {};  // how to run it again
  uint64_t seed = 0;
  absl::optional<Environment> environment = {};  // unset: this machine, now
};

using ConfigValue = absl::variant<bool, int64_t, double, std::string>;

class Report {
 public:
  explicit Report(ReportOptions options);

  // Resolved flags and settings, for config.json. Leave out what names a person or a machine.
  void AddConfig(absl::string_view name, bool value) { SetConfig(name, value); }
  void AddConfig(absl::string_view name, int value) { SetConfig(name, int64_t{value}); }
  void AddConfig(absl::string_view name, int64_t value) { SetConfig(name, value); }
  void AddConfig(absl::string_view name, double value) { SetConfig(name, value); }
  void AddConfig(absl::string_view name, absl::string_view value) {
    SetConfig(name, std::string(value));
  }
  void AddConfig(absl::string_view name, const char* value) { SetConfig(name, std::string(value)); }

  // Tables appear in the order in which they are added. Their numbers also go to records.csv and
  // run.json.
  void AddTable(Table table);

  // Draws the trace and writes trace_SCHEME_ORIGIN.json, timeline_SCHEME_ORIGIN.svg,
  // schedule_SCHEME.csv, and a table of where each device's time went; with costs that have bytes
  // also memory_SCHEME_ORIGIN.svg, memory over time. Traces without spans get only the schedule.
  // Copies what it needs.
  void AddTimeline(absl::string_view scheme, const Program& program, const Trace& trace,
                   const CostTable* costs = nullptr);

  // A line a series over whole numbers from 1 on, such as batches or devices (Series::steps; 1, 2,
  // ... where there are none); labels carry the units. Also written as curves_ID.csv and .svg, with
  // the id made from the title. `doubling`: the axis has powers of two, equally far apart.
  void AddCurves(absl::string_view title, absl::string_view x_label, absl::string_view y_label,
                 const std::vector<Series>& series, bool doubling = false);
  // Over training steps.
  void AddLossCurves(absl::string_view title, absl::string_view y_label,
                     const std::vector<Series>& series) {
    AddCurves(title, "step", y_label, series);
  }

  // What a reader should take away, in a sentence or two: report.html and report.md begin with it.
  void SetTakeaway(absl::string_view text);
  // Bars of columns of a table that was added, above all tables of report.html: less is better, and
  // the least is marked. Long tables are then folded.
  void AddOverview(absl::string_view table, std::vector<std::string> metrics);

  // Claims come before all tables, those that are missed first, and go to claims.json.
  void AddClaim(Claim claim);
  const std::vector<Claim>& claims() const { return claims_; }

  // A sentence for the reader: what is missing, skipped or surprising.
  void AddNote(absl::string_view note);

  std::string ToTerminal() const;  // tables and notes
  std::string ToMarkdown() const;
  std::string ToHtml() const;

  // Every file as (name, content), sorted by name: what WriteTo writes.
  absl::StatusOr<std::vector<std::pair<std::string, std::string>>> Files() const;
  // Replaces the folder `directory`, whose parents are made where missing.
  absl::Status WriteTo(absl::string_view directory) const;
  // The same into a folder that was opened before the run, to know early that it can be written.
  absl::Status WriteTo(OutputDirectory* folder) const;

 private:
  friend class ReportPages;  // report_pages.h

  struct Timeline {
    std::string scheme, origin, slug;  // slug: "1f1b_simulated"
    std::string title;
    std::string svg, chrome_trace;  // empty where there is nothing to draw
    std::string figure;             // of report.html: zooms (timeline_page.h)
    std::string memory_svg;
    std::string schedule, schedule_file;  // "schedule_1f1b.csv"
    absl::optional<Table> breakdown;
  };
  struct Curves {
    std::string id, title, svg, csv;
  };

  // The tables of results, without that of claims; those of timelines come last.
  std::vector<Table> AllTables() const;
  absl::Status Draw(const Program& program, const Trace& trace, const CostTable* costs,
                    Timeline* timeline);
  void SetConfig(absl::string_view name, ConfigValue value);
  void Fail(const absl::Status& status);

  ReportOptions options_;
  Environment environment_;
  std::vector<std::pair<std::string, ConfigValue>> config_;
  std::vector<Table> tables_;  // the first is that of claims_, where there are some
  std::vector<Claim> claims_;
  std::vector<Timeline> timelines_;
  std::vector<Curves> curves_;
  std::vector<std::string> notes_;
  std::string takeaway_;
  std::string overview_table_;  // empty: there is none
  std::vector<std::string> overview_metrics_;
  absl::Status status_;
};

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_REPORT_REPORT_H_

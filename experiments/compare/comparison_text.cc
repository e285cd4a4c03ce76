// A comparison for people and for machines.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "experiments/compare/compare_folders.h"
#include "nlohmann/json.hpp"
#include "tools/base/json.h"
#include "tools/base/text_columns.h"

namespace pipelab {
namespace {

using nlohmann::json;

constexpr size_t kLongest = 60;  // characters of a cell

std::string Short(const std::string& text) {
  if (text.empty()) return "-";
  return text.size() <= kLongest ? text : text.substr(0, kLongest - 3) + "...";
}

std::string ChangesText(absl::string_view title, const std::vector<Changed>& changes) {
  if (changes.empty()) return "";
  std::vector<std::vector<std::string>> lines = {{std::string(title), "A", "B"}};
  for (const Changed& c : changes) lines.push_back({c.name, Short(c.a), Short(c.b)});
  return absl::StrCat(AlignColumns(lines, 1, {false, false, false}), "\n");
}

// "37.2 (35.1 to 40.0 of 20)": the middle half of the measurements.
std::string ValueText(const std::string& value, const Spread& spread) {
  std::string text = Short(value);
  if (spread.count == 0) return text;
  absl::StrAppendFormat(&text, " (%.4g to %.4g of %d)", spread.first_quartile,
                        spread.third_quartile, spread.count);
  return text;
}

std::string MetricsText(const StudyComparison& study, bool all) {
  std::vector<std::vector<std::string>> lines = {
      {"table", "configuration", "metric", "unit", "A", "B", "B over A", "p", "verdict"}};
  for (const MetricComparison& m : study.metrics) {
    const bool says_nothing =
        m.verdict == MetricVerdict::kEqual || m.verdict == MetricVerdict::kUntold;
    if (says_nothing && !all) continue;
    lines.push_back({m.table, Short(m.configuration), m.metric, m.unit, ValueText(m.a, m.spread_a),
                     ValueText(m.b, m.spread_b),
                     m.relative.has_value() ? absl::StrFormat("%+.2f %%", 100 * *m.relative) : "-",
                     m.p_value.has_value() ? absl::StrFormat("%.2g", *m.p_value) : "-",
                     std::string(MetricVerdictName(m.verdict))});
  }
  if (lines.size() == 1) return "";
  return absl::StrCat(
      AlignColumns(lines, 1, {false, false, false, false, true, true, true, true, false}), "\n");
}

json ToJson(const std::vector<Changed>& changes) {
  json list = json::array();
  for (const Changed& c : changes) list.push_back({{"name", c.name}, {"a", c.a}, {"b", c.b}});
  return list;
}

json ToJson(const Spread& s) {
  return {{"count", s.count},
          {"median", s.median},
          {"first_quartile", s.first_quartile},
          {"third_quartile", s.third_quartile}};
}

json ToJson(const MetricComparison& m) {
  json object = {{"table", m.table},
                 {"configuration", m.configuration},
                 {"metric", m.metric},
                 {"unit", m.unit},
                 {"origin", std::string(OriginName(m.origin))},
                 {"a", m.a},
                 {"b", m.b},
                 {"verdict", std::string(MetricVerdictName(m.verdict))}};
  if (m.relative.has_value()) object["relative_difference"] = *m.relative;
  if (m.p_value.has_value()) object["p_value"] = *m.p_value;
  if (m.spread_a.count > 0) object["spread_a"] = ToJson(m.spread_a);
  if (m.spread_b.count > 0) object["spread_b"] = ToJson(m.spread_b);
  return object;
}

}  // namespace

std::string ComparisonText(const ResultsComparison& c, bool all) {
  std::string text = absl::StrCat("A: ", c.a, "\nB: ", c.b, "\n\n");
  for (const StudyComparison& study : c.studies) {
    absl::StrAppend(&text, study.name, ": ");
    std::vector<std::string> counts;
    for (const MetricVerdict v :
         {MetricVerdict::kDiffers, MetricVerdict::kOnlyA, MetricVerdict::kOnlyB,
          MetricVerdict::kUntold, MetricVerdict::kNoise, MetricVerdict::kEqual}) {
      const int count = study.Count(v);
      if (count > 0) counts.push_back(absl::StrCat(count, " ", MetricVerdictName(v)));
    }
    absl::StrAppend(&text, counts.empty() ? "no metrics" : absl::StrJoin(counts, ", "), "\n\n",
                    ChangesText("setting", study.settings),
                    ChangesText("environment", study.environment),
                    ChangesText("claim", study.claims), MetricsText(study, all));
  }
  for (const auto& [title, names] :
       {std::make_pair("Only in A: ", &c.only_a), std::make_pair("Only in B: ", &c.only_b)}) {
    if (!names->empty()) absl::StrAppend(&text, title, absl::StrJoin(*names, ", "), "\n");
  }
  absl::StrAppendFormat(
      &text,
      "Measured medians are compared by their measurements with the Mann-Whitney U test, "
      "two-sided, "
      "at %g %%; in brackets the middle half. Other columns are equal or differ.\n%s\n",
      100 * kNoiseLevel, c.same() ? "Nothing differs beyond noise." : "They differ.");
  return text;
}

std::string ComparisonJson(const ResultsComparison& c) {
  json studies = json::array();
  for (const StudyComparison& s : c.studies) {
    json metrics = json::array();
    for (const MetricComparison& m : s.metrics) metrics.push_back(ToJson(m));
    studies.push_back({{"name", s.name},
                       {"settings", ToJson(s.settings)},
                       {"environment", ToJson(s.environment)},
                       {"claims", ToJson(s.claims)},
                       {"metrics", metrics}});
  }
  return DumpJson({{"a", c.a},
                   {"b", c.b},
                   {"test", "Mann-Whitney U, two-sided"},
                   {"level", kNoiseLevel},
                   {"same", c.same()},
                   {"studies", studies},
                   {"only_a", c.only_a},
                   {"only_b", c.only_b}});
}

}  // namespace pipelab

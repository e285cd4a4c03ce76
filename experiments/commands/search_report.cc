#include "experiments/commands/search_report.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "experiments/commands/recipe_input.h"
#include "experiments/report/table.h"

namespace pipelab {
namespace {

nlohmann::json RankedStepJson(const RankedStep& r) {
  const StepConfig& c = r.config;
  return {{"config", c.ToString()},
          {"method", r.method},
          {"scheme", c.scheme},
          {"pipeline", c.pipeline},
          {"tensor", c.tensor},
          {"context", c.context},
          {"experts", c.experts},
          {"data", c.data},
          {"virtual_stages", c.virtual_stages},
          {"micro_batch_samples", c.micro_batch_size},
          {"micro_batches", c.micro_batches},
          {"sharding", ShardingName(c.sharding)},
          {"recompute", RecomputeName(c.recompute)},
          {"sequence", c.sequence_parallel},
          {"step_ms", ToMs(r.step_time)},
          {"samples_per_second", r.samples_per_second},
          {"tflops_per_device", r.tflops_per_device},
          {"memory_bytes", r.largest_device.value()}};
}

StepSpeed SpeedOf(const RankedStep& r) {
  return {r.samples_per_second, r.tflops_per_device, r.config.devices()};
}

// "V=22 to 34, b=4 to 8: up to 1462 ms", of a row's other ways; empty: there are none.
std::string WaysText(const RankedStep& r) {
  if (r.ways.empty()) return "";
  std::set<int64_t> stages = {r.config.virtual_stages}, samples = {r.config.micro_batch_size};
  Nanoseconds slowest = r.step_time;
  for (const RankedStep::Way& way : r.ways) {
    stages.insert(way.config.virtual_stages);
    samples.insert(way.config.micro_batch_size);
    slowest = std::max(slowest, way.step_time);
  }
  const auto range = [](const char* key, const std::set<int64_t>& values) {
    if (values.size() == 1) return std::string();
    return absl::StrCat(key, "=", *values.begin(), " to ", *values.rbegin());
  };
  std::vector<std::string> words = {range("V", stages), range("b", samples)};
  words.erase(std::remove(words.begin(), words.end(), ""), words.end());
  return absl::StrCat("(", r.ways.size(), " more", words.empty() ? "" : " with ",
                      absl::StrJoin(words, ", "), ": up to ", FourDigits(ToMs(slowest)), " ms)");
}

// A difference that no machine repeats.
constexpr double kTie = 0.02;

bool TiesWithFastest(const SearchResult& result, const RankedStep& r) {
  return ToMs(r.step_time) <= (1 + kTie) * ToMs(result.best[0].step_time);
}

// Keys that a user would have to set, in which a configuration differs from the plainest.
int64_t NumChoices(const RankedStep& r) {
  const std::string text = r.config.ToString();
  return std::count(text.begin(), text.end(), ',');
}

// The first rows; among those that tie with the fastest the simplest comes first.
std::vector<const RankedStep*> Rows(const SearchResult& result, size_t top) {
  std::vector<const RankedStep*> rows;
  for (const RankedStep& r : result.best) {
    if (rows.size() < top) rows.push_back(&r);
  }
  const auto ties = std::find_if(rows.begin(), rows.end(),
                                 [&](const RankedStep* r) { return !TiesWithFastest(result, *r); });
  std::stable_sort(rows.begin(), ties, [](const RankedStep* a, const RankedStep* b) {
    return NumChoices(*a) < NumChoices(*b);
  });
  return rows;
}

// RecipeSystem::bias of the system that a row's method names; empty for other methods.
absl::string_view BiasOf(const RankedStep& r) {
  for (const RecipeSystem& system : RecipeSystems()) {
    if (r.method == system.name) return system.bias;
  }
  return "";
}

}  // namespace

std::string LooksText(const SearchRefusals& r) {
  return absl::StrFormat(
      "%d configurations were looked at, %d of them bounded by their schedule's order and %d "
      "simulated; the bounds of the others are beyond what was found.",
      r.considered, r.ordered, r.simulated);
}

std::string RefusalText(const SearchRefusals& r) {
  std::string text = absl::StrFormat("Refused: %d for memory", r.memory);
  if (r.memory > 0) {
    absl::StrAppendFormat(&text, " (the nearest, %s, needs %.2f GiB)", r.nearest,
                          ToGiB(r.least_memory));
  }
  absl::StrAppendFormat(&text,
                        ", %d grids for tensor parallelism, %d for the batch, %d by their scheme",
                        r.tensor, r.batch, r.scheme);
  if (r.scheme > 0) absl::StrAppend(&text, " (", r.scheme_reason, ")");
  return text + ".";
}

std::string SearchTable(const SearchResult& result, const StepFigures& figures, size_t top) {
  std::string text = absl::StrFormat("%-17s %9s   %s%10s  %s\n", "method", "step [ms]",
                                     figures.Titles(), "mem. [GiB]", "configuration");
  const std::vector<const RankedStep*> rows = Rows(result, top);
  int ties = 0;
  for (const RankedStep* r : rows) {
    const bool tie = rows.size() > 1 && TiesWithFastest(result, *r);
    ties += tie ? 1 : 0;
    const std::string before =
        absl::StrFormat("%-17s %9s%s  %s%10.2f  ", r->method, FourDigits(ToMs(r->step_time)),
                        tie ? "=" : " ", figures.Columns(SpeedOf(*r)), ToGiB(r->largest_device));
    absl::StrAppend(&text, Wrapped(before, r->config.ToString()));
    const std::string ways = WaysText(*r);
    if (!ways.empty()) absl::StrAppend(&text, Wrapped(std::string(before.size(), ' '), ways));
  }
  if (ties > 1) {
    absl::StrAppend(&text, "\n= within 2 % of the fastest: a tie, the simplest first.\n");
  }
  std::set<std::string> told;
  for (const RankedStep* r : rows) {
    if (BiasOf(*r).empty() || !told.insert(r->method).second) continue;
    absl::StrAppend(&text, "\n", Wrapped("", absl::StrCat(r->method, ": ", BiasOf(*r), ".")));
  }
  return text;
}

nlohmann::json SearchRows(const SearchResult& result, const StepFigures& figures, size_t top) {
  nlohmann::json rows = nlohmann::json::array();
  for (const RankedStep& r : result.best) {
    if (rows.size() == top) break;
    rows.push_back(RankedStepJson(r));
    rows.back().update(figures.Json(SpeedOf(r)));
    rows.back()["ties_with_best"] = TiesWithFastest(result, r);
    if (!BiasOf(r).empty()) rows.back()["bias"] = std::string(BiasOf(r));
    for (const RankedStep::Way& way : r.ways) {
      rows.back()["ways"].push_back(
          {{"config", way.config.ToString()}, {"step_ms", ToMs(way.step_time)}});
    }
  }
  return rows;
}

}  // namespace pipelab

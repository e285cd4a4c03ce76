#include "experiments/compare/compare_folders.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "tools/base/file.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

using Facts = std::map<std::string, std::string>;

std::vector<Changed> ChangesOf(const Facts& a, const Facts& b) {
  std::set<std::string> names;
  for (const Facts* facts : {&a, &b}) {
    for (const auto& entry : *facts) names.insert(entry.first);
  }
  std::vector<Changed> changes;
  for (const std::string& name : names) {
    const auto in_a = a.find(name), in_b = b.find(name);
    Changed c{name, in_a == a.end() ? "" : in_a->second, in_b == b.end() ? "" : in_b->second};
    if (c.a != c.b) changes.push_back(std::move(c));
  }
  return changes;
}

Facts StatesOf(const std::vector<Claim>& claims) {
  Facts facts;
  for (const Claim& c : claims) {
    facts[c.id] = absl::StrCat(ClaimStateName(c.state), c.ours.empty() ? "" : ", ", c.ours);
  }
  return facts;
}

// What either has of a metric; null: nothing.
MetricComparison CompareMetric(const ResultRecord* a, const ResultRecord* b) {
  const ResultRecord& one = a != nullptr ? *a : *b;
  MetricComparison m;
  m.table = one.table;
  m.configuration = one.configuration;
  m.metric = one.metric;
  m.unit = one.unit;
  m.origin = one.origin;
  if (a != nullptr) m.a = a->value;
  if (b != nullptr) m.b = b->value;
  if (a == nullptr || b == nullptr) {
    m.verdict = a == nullptr ? MetricVerdict::kOnlyB : MetricVerdict::kOnlyA;
    return m;
  }
  double x = 0, y = 0;
  const bool numbers = absl::SimpleAtod(m.a, &x) && absl::SimpleAtod(m.b, &y);
  if (numbers && x != 0) m.relative = y / x - 1;
  m.spread_a = SpreadOf(a->samples);
  m.spread_b = SpreadOf(b->samples);
  if (m.a == m.b || (a->deterministic && b->deterministic && a->rounded == b->rounded)) {
    m.verdict = MetricVerdict::kEqual;
  } else if (a->deterministic || b->deterministic) {
    m.verdict = MetricVerdict::kDiffers;
  } else {
    const NoiseVerdict noise = CompareSamples(a->samples, b->samples);
    m.verdict = MetricVerdict::kUntold;
    if (noise.enough) {
      m.p_value = noise.p_value;
      m.verdict = noise.same ? MetricVerdict::kNoise : MetricVerdict::kDiffers;
    }
  }
  return m;
}

}  // namespace

absl::StatusOr<std::map<std::string, std::string>> StudyFolders(const std::string& folder) {
  std::map<std::string, std::string> studies;
  if (IsResultFolder(folder)) {
    PIPELAB_ASSIGN_OR_RETURN(const ResultFolder r, ReadResultFolder(folder));
    studies[r.experiment] = folder;
    return studies;
  }
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string path = entry.path().string();
    const std::string name = entry.path().filename().string();
    if (name[0] != '.' && IsResultFolder(path)) studies[name] = path;
  }
  if (!studies.empty()) return studies;
  if (!PathExists(folder))
    return absl::NotFoundError(absl::StrCat(folder, ": there is no such folder"));
  return absl::NotFoundError(
      absl::StrCat(folder, ": holds no result: neither a config.json nor folders that have one"));
}

absl::string_view MetricVerdictName(MetricVerdict verdict) {
  switch (verdict) {
    case MetricVerdict::kDiffers:
      return "differs";
    case MetricVerdict::kOnlyA:
      return "only in A";
    case MetricVerdict::kOnlyB:
      return "only in B";
    case MetricVerdict::kUntold:
      return "cannot be told";
    case MetricVerdict::kNoise:
      return "same within noise";
    case MetricVerdict::kEqual:
      break;
  }
  return "equal";
}

int StudyComparison::Count(MetricVerdict verdict) const {
  return static_cast<int>(std::count_if(metrics.begin(), metrics.end(),
                                        [&](const auto& m) { return m.verdict == verdict; }));
}

bool ResultsComparison::same() const {
  return only_a.empty() && only_b.empty() &&
         std::all_of(studies.begin(), studies.end(), [](const StudyComparison& s) {
           return s.Count(MetricVerdict::kDiffers) + s.Count(MetricVerdict::kOnlyA) +
                      s.Count(MetricVerdict::kOnlyB) ==
                  0;
         });
}

StudyComparison CompareStudies(const ResultFolder& a, const ResultFolder& b) {
  StudyComparison study;
  study.name = a.experiment;
  study.settings = ChangesOf(a.settings, b.settings);
  study.environment = ChangesOf(a.environment, b.environment);
  study.claims = ChangesOf(StatesOf(a.claims), StatesOf(b.claims));
  std::map<std::string, const ResultRecord*> in_b;
  for (const ResultRecord& r : b.records) in_b[r.Key()] = &r;
  for (const ResultRecord& r : a.records) {
    const auto found = in_b.find(r.Key());
    study.metrics.push_back(CompareMetric(&r, found == in_b.end() ? nullptr : found->second));
    if (found != in_b.end()) in_b.erase(found);
  }
  for (const ResultRecord& r : b.records) {
    if (in_b.count(r.Key()) > 0) study.metrics.push_back(CompareMetric(nullptr, &r));
  }
  std::stable_sort(study.metrics.begin(), study.metrics.end(),
                   [](const auto& x, const auto& y) { return x.verdict < y.verdict; });
  return study;
}

absl::StatusOr<ResultsComparison> CompareResults(absl::string_view a, absl::string_view b) {
  ResultsComparison c;
  c.a = std::string(a);
  c.b = std::string(b);
  PIPELAB_ASSIGN_OR_RETURN(auto in_a, StudyFolders(c.a));
  PIPELAB_ASSIGN_OR_RETURN(auto in_b, StudyFolders(c.b));
  if (in_a.size() == 1 && in_b.size() == 1 && in_a.begin()->first != in_b.begin()->first) {
    return absl::InvalidArgumentError(absl::StrCat(c.a, " has ", in_a.begin()->first, ", ", c.b,
                                                   " ", in_b.begin()->first,
                                                   ": results of one study can be compared"));
  }
  for (const auto& [name, path] : in_a) {
    const auto found = in_b.find(name);
    if (found == in_b.end()) {
      c.only_a.push_back(name);
      continue;
    }
    PIPELAB_ASSIGN_OR_RETURN(const ResultFolder one, ReadResultFolder(path));
    PIPELAB_ASSIGN_OR_RETURN(const ResultFolder other, ReadResultFolder(found->second));
    c.studies.push_back(CompareStudies(one, other));
    in_b.erase(found);
  }
  for (const auto& entry : in_b) c.only_b.push_back(entry.first);
  return c;
}

}  // namespace pipelab

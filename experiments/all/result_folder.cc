#include "experiments/all/result_folder.h"

#include <map>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "experiments/report/claim_json.h"
#include "tools/base/csv.h"
#include "tools/base/file.h"
#include "tools/base/file_fault.h"
#include "tools/base/json.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

using nlohmann::json;

std::string TextOf(const json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

absl::Status ReadConfig(ResultFolder* r) {
  const std::string file = JoinPath(r->path, "config.json");
  PIPELAB_ASSIGN_OR_RETURN(const std::string text, ReadFile(file));
  PIPELAB_ASSIGN_OR_RETURN(const json config, ParseJson(text, file));
  PIPELAB_ASSIGN_OR_RETURN(r->experiment, JsonField<std::string>(config, "experiment", file));
  PIPELAB_ASSIGN_OR_RETURN(r->command, JsonField<std::string>(config, "command", file));
  PIPELAB_ASSIGN_OR_RETURN(const json settings, JsonField<json>(config, "settings", file));
  if (!settings.is_object()) {
    return absl::InvalidArgumentError(absl::StrCat(file, ": field 'settings': must be an object"));
  }
  for (const auto& [name, value] : settings.items()) r->settings[name] = TextOf(value);
  PIPELAB_ASSIGN_OR_RETURN(const json seed, JsonField<json>(config, "seed", file));
  r->settings["seed"] = TextOf(seed);
  return absl::OkStatus();
}

absl::Status ReadEnv(ResultFolder* r) {
  const std::string file = JoinPath(r->path, "env.json");
  PIPELAB_ASSIGN_OR_RETURN(const std::string text, ReadFile(file));
  PIPELAB_ASSIGN_OR_RETURN(const json env, ParseJson(text, file));
  if (!env.is_object()) {
    return absl::InvalidArgumentError(absl::StrCat(file, ": must be an object"));
  }
  for (const auto& [name, value] : env.items()) {
    if (!value.is_object()) {
      r->environment[name] = TextOf(value);
      continue;
    }
    for (const auto& [package, version] : value.items()) {
      r->environment[absl::StrCat("package ", package)] = TextOf(version);
    }
  }
  return absl::OkStatus();
}

std::string KeyOf(const CsvTable& t, const std::vector<std::string>& row) {
  return absl::StrCat(row[t.Column("table")], "/", row[t.Column("configuration")], "/",
                      row[t.Column("metric")]);
}

absl::Status ReadRecords(ResultFolder* r) {
  const std::string file = JoinPath(r->path, "records.csv");
  PIPELAB_ASSIGN_OR_RETURN(const std::string text, ReadFile(file));
  PIPELAB_ASSIGN_OR_RETURN(const CsvTable t,
                           CsvTable::Parse(text, file,
                                           {"table", "configuration", "metric", "unit", "value",
                                            "origin", "tag", "note"}));
  for (const std::vector<std::string>& row : t.rows()) {
    ResultRecord record;
    record.table = row[t.Column("table")];
    record.configuration = row[t.Column("configuration")];
    record.metric = row[t.Column("metric")];
    record.unit = row[t.Column("unit")];
    record.value = row[t.Column("value")];
    record.tag = row[t.Column("tag")];
    record.note = row[t.Column("note")];
    const std::string& origin = row[t.Column("origin")];
    const absl::optional<Origin> found = FindOrigin(origin);
    if (!found.has_value()) {
      return absl::InvalidArgumentError(
          absl::StrCat(file, ": ", record.Key(), ": origin ", origin, ": there is no such one"));
    }
    record.origin = *found;
    r->records.push_back(std::move(record));
  }
  return absl::OkStatus();
}

// What deterministic.csv and samples.csv say of the records.
absl::Status ReadMore(ResultFolder* r) {
  const std::string same = JoinPath(r->path, "deterministic.csv");
  PIPELAB_ASSIGN_OR_RETURN(r->deterministic, ReadFile(same));
  PIPELAB_ASSIGN_OR_RETURN(
      const CsvTable t,
      CsvTable::Parse(r->deterministic, same, {"table", "configuration", "metric", "value"}));
  std::map<std::string, std::string> deterministic;
  for (const auto& row : t.rows()) deterministic[KeyOf(t, row)] = row[t.Column("value")];
  const std::string file = JoinPath(r->path, "samples.csv");
  PIPELAB_ASSIGN_OR_RETURN(const std::string text, ReadFile(file));
  PIPELAB_ASSIGN_OR_RETURN(
      const CsvTable s,
      CsvTable::Parse(text, file, {"table", "configuration", "metric", "index", "value"}));
  std::map<std::string, std::vector<double>> samples;
  for (const auto& row : s.rows()) {
    double value = 0;
    if (!absl::SimpleAtod(row[s.Column("value")], &value)) {
      return absl::InvalidArgumentError(
          absl::StrCat(file, ": ", row[s.Column("value")], ": must be a number"));
    }
    samples[KeyOf(s, row)].push_back(value);
  }
  for (ResultRecord& record : r->records) {
    const auto same_everywhere = deterministic.find(record.Key());
    record.deterministic = same_everywhere != deterministic.end();
    if (record.deterministic) record.rounded = same_everywhere->second;
    const auto found = samples.find(record.Key());
    if (found != samples.end()) record.samples = found->second;
  }
  return absl::OkStatus();
}

absl::Status ReadAll(ResultFolder* r) {
  PIPELAB_RETURN_IF_ERROR(ReadConfig(r));
  PIPELAB_RETURN_IF_ERROR(ReadEnv(r));
  PIPELAB_RETURN_IF_ERROR(ReadRecords(r));
  PIPELAB_RETURN_IF_ERROR(ReadMore(r));
  const std::string claims = JoinPath(r->path, "claims.json");
  PIPELAB_ASSIGN_OR_RETURN(const std::string text, ReadFile(claims));
  PIPELAB_ASSIGN_OR_RETURN(r->claims, ParseClaims(text, claims));
  return absl::OkStatus();
}

}  // namespace

bool IsResultFolder(absl::string_view path) { return PathExists(JoinPath(path, "config.json")); }

absl::StatusOr<ResultFolder> ReadResultFolder(absl::string_view path) {
  if (!IsResultFolder(path)) {
    return absl::NotFoundError(
        absl::StrCat(path, ": is no result folder: there is no config.json in it"));
  }
  ResultFolder r;
  r.path = std::string(path);
  PIPELAB_RETURN_IF_ERROR(FaultOfFile(ReadAll(&r)));
  return r;
}

}  // namespace pipelab

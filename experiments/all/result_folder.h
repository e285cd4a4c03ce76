// A study's result folder, read back: settings, environment, records, samples, claims.
//
//   PIPELAB_ASSIGN_OR_RETURN(ResultFolder r, ReadResultFolder("results/quickstart"));
//   r.experiment;  r.settings.at("steps");  r.records[0].value;
//
// Errors: one line with the file and what is wrong with it; NotFound for what is no result folder.
#ifndef PIPELAB_EXPERIMENTS_ALL_RESULT_FOLDER_H_
#define PIPELAB_EXPERIMENTS_ALL_RESULT_FOLDER_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "experiments/report/claim.h"
#include "experiments/report/table.h"

namespace pipelab {

// A row of records.csv.
struct ResultRecord {
  std::string table, configuration, metric, unit, value, tag, note;
  Origin origin = Origin::kComputed;
  bool deterministic = false;   // is in deterministic.csv
  std::string rounded;          // its value there, which is what machines must agree on
  std::vector<double> samples;  // of samples.csv

  std::string Key() const { return table + "/" + configuration + "/" + metric; }
};

struct ResultFolder {
  std::string path;
  std::string experiment, command;
  std::map<std::string, std::string> settings;     // of config.json
  std::map<std::string, std::string> environment;  // of env.json; packages as "package g++"
  std::vector<ResultRecord> records;               // in the order of the file
  std::vector<Claim> claims;
  std::string deterministic;  // the file's text
};

// Whether there is a result in the folder (a config.json).
bool IsResultFolder(absl::string_view path);
absl::StatusOr<ResultFolder> ReadResultFolder(absl::string_view path);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_ALL_RESULT_FOLDER_H_

// What a result depends on besides the code's inputs: commit, compiler, processor, packages.
//
//   Environment env = ReadEnvironment();
//   std::string json = EnvironmentJson(env);   // env.json
//
// Holds no host name, user name or path. What cannot be found out is the text "unknown".
#ifndef PIPELAB_EXPERIMENTS_REPORT_ENVIRONMENT_H_
#define PIPELAB_EXPERIMENTS_REPORT_ENVIRONMENT_H_

#include <string>
#include <utility>
#include <vector>

namespace pipelab {

struct Environment {
  std::string date;       // UTC, "2024-05-01T12:00:00Z"
  std::string commit;     // of the checkout that `bazel run` ran in
  bool modified = false;  // the checkout differed from that commit
  std::string compiler;
  std::string build;  // "opt" (assertions off) or "debug"
  std::string cpu;
  int cores = 0;    // that this process may use
  std::string gpu;  // "none" where there is none
  std::string os;
  std::vector<std::pair<std::string, std::string>> packages;  // Debian package -> version, sorted
};

Environment ReadEnvironment();
std::string EnvironmentJson(const Environment& environment);

// The fields in reading order, for tables.
std::vector<std::pair<std::string, std::string>> EnvironmentFields(const Environment& environment);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_REPORT_ENVIRONMENT_H_

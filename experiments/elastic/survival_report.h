// The table of a study of swarms that survive, and the claims that its rows are checked against.
//
//   std::vector<SurvivalRow> rows;                  // the undisturbed run first
//   report->AddTable(SurvivalTable(rows));
//   AddSurvivalClaims(rows, report);
#ifndef PIPELAB_EXPERIMENTS_ELASTIC_SURVIVAL_REPORT_H_
#define PIPELAB_EXPERIMENTS_ELASTIC_SURVIVAL_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "experiments/elastic/survival.h"
#include "experiments/report/report.h"
#include "experiments/report/table.h"

namespace pipelab {

// Runs that claims look for.
inline constexpr char kKilled[] = "a peer killed", kCoordinator[] = "the coordinator killed",
                      kFloatSums[] = "a peer killed, float sums",
                      kDelayed[] = "a peer killed, delayed updates";

struct SurvivalRow {
  std::string what;
  uint64_t seed = 0;
  SurvivalRun run;
  double apart = 0;  // the largest difference of a loss to the undisturbed run's, nats
  double first_loss = 0;
  bool same = false;  // all bits
};

Table SurvivalTable(const std::vector<SurvivalRow>& rows);
void AddSurvivalClaims(const std::vector<SurvivalRow>& rows, Report* report);
// One figure of this machine.
void AddMeasured(const char* id, const char* text, double value, const char* unit, bool met,
                 const std::string& accepted, const char* reason, Report* report);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_ELASTIC_SURVIVAL_REPORT_H_

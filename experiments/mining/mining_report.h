// Tables, claims and examples of what was mined from the manuals.
//
//   AddMiningTables(all, &report);
//   AddMiningClaims(all, &report);           // of the pools "manual", "noise" and "no pair"
#ifndef PIPELAB_EXPERIMENTS_MINING_MINING_REPORT_H_
#define PIPELAB_EXPERIMENTS_MINING_MINING_REPORT_H_

#include <string>
#include <utility>
#include <vector>

#include "experiments/mining/mined.h"
#include "experiments/report/report.h"

namespace pipelab {

struct Wanted {
  const char *id, *text;
};

// A figure of each language.
struct MiningFigures {
  std::vector<std::pair<std::string, double>> of_language;

  double Least() const;      // 1 where there is none
  double Most() const;       // 0 where there is none, or none above it
  std::string Text() const;  // "de 0.853, fr 0.881"
};

void AddClaim(Report* report, const Wanted& wanted, double value, const std::string& text, bool met,
              const std::string& accepted, const std::string& reason);
void AddNotMade(const std::vector<Wanted>& all, const std::string& reason, Report* report);
// Columns "precision", "recall" and "f1", and a row of them behind other cells.
void AddScoreColumns(Table* table);
void AddScore(Table* table, std::vector<Cell> row, const MiningScore& score);

void AddMiningTables(const std::vector<Mined>& all, Report* report);
void AddMiningClaims(const std::vector<Mined>& all, Report* report);
// The same claims, not made.
void NoMiningClaims(const std::string& reason, Report* report);

// For people: the first pairs of each language's manual, right and wrong.
std::string MiningExamples(const std::vector<Mined>& all);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_MINING_MINING_REPORT_H_

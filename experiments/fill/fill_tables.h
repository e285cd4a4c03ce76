// The tables and claims of //experiments:bubble_filling.
//
//   PIPELAB_ASSIGN_OR_RETURN(const FillStudy study, RunFillStudy(options));
//   report.AddTable(ScaleTable(study));
//   for (Claim& c : FillClaims(study)) report.AddClaim(std::move(c));
#ifndef PIPELAB_EXPERIMENTS_FILL_FILL_TABLES_H_
#define PIPELAB_EXPERIMENTS_FILL_FILL_TABLES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "experiments/fill/bubble_gain.h"
#include "experiments/report/claim.h"
#include "experiments/report/table.h"
#include "pipelines/cluster/cluster.h"

namespace pipelab {

struct FillStudyOptions {
  ClusterSpec cluster;               // V100s: which, the paper's sources at hand do not say
  std::vector<ClusterSpec> others;   // that it may have been; for claims
  int64_t requests = 2000;           // of the table of policies
  std::vector<std::string> schemes;  // of the table of schemes; empty: the catalogue
};

// One number of GPUs, with the global batch of all.
struct ScalePoint {
  MainRun equal, whole;
  std::vector<std::vector<FillGain>> equal_gains, whole_gains;  // [set][kind]
};

struct SchemePointOfFill {
  MainRun run;
  FillGain mean;        // over the kinds of the first set
  std::string missing;  // why there is none
};

// On one cluster.
struct ScaleResults {
  std::string cluster;
  std::vector<FillSet> sets;  // numbers that fill jobs compute with
  std::vector<ScalePoint> points;

  double DaysAt(const ScalePoint& point) const;  // from the published ones at the first point
};

struct FillStudy {
  FillStudyOptions options;
  ScaleResults scale;                // on the cluster
  std::vector<ScaleResults> others;  // on the others, at the numbers of GPUs that claims are of
  std::vector<SchemePointOfFill> schemes;
};

absl::StatusOr<FillStudy> RunFillStudy(const FillStudyOptions& options);

Table ScaleTable(const FillStudy& study);
Table KindTable(const FillStudy& study);    // at the most GPUs
Table SchemeTable(const FillStudy& study);  // every scheme of the catalogue
absl::StatusOr<Table> PolicyTable(const FillStudy& study);
std::vector<Claim> FillClaims(const FillStudy& study);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_FILL_FILL_TABLES_H_

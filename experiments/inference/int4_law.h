// The law of products with 4-bit weights beside what MARLIN publishes (Frantar et al., PPoPP 2025,
// arXiv 2408.11743): the larger of packed bytes / bandwidth and flops / peak, as the cost model
// prices them (models/graph/operation.h).
//
//   PIPELAB_ASSIGN_OR_RETURN(const Int4Charts charts, PublishedInt4Charts());
//   for (Table& t : Int4LawTables(charts)) report.AddTable(std::move(t));
#ifndef PIPELAB_EXPERIMENTS_INFERENCE_INT4_LAW_H_
#define PIPELAB_EXPERIMENTS_INFERENCE_INT4_LAW_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "experiments/report/chart_svg.h"
#include "experiments/report/claim.h"
#include "experiments/report/table.h"

namespace pipelab {

// Speed-ups over fp16 weights on one device.
struct Int4BatchRow {
  int64_t batch = 0;
  double ideal = 0, marlin = 0;  // published
  double law = 0;                // computed
  double share = 0;              // of the peak flop/s, by the law
};
struct Int4ModelRow {
  std::string model;
  double a10 = 0, a100 = 0;          // published, batch 16
  double law_a10 = 0, law_a100 = 0;  // computed, each product launched
};
struct Int4Charts {
  std::vector<Int4BatchRow> batches;  // 72k x 18k on an A10
  std::vector<Int4ModelRow> models;
};

absl::StatusOr<Int4Charts> PublishedInt4Charts();
// Over batches: speed-ups, and the roofline.
struct Int4Curves {
  std::vector<Series> speed_ups;  // over whole weights
  std::vector<Series> shares;     // of the peak flop/s, in %
};
// On the A10, published and by the law.
Int4Curves Int4LawCurves(const Int4Charts& charts);
std::vector<Claim> Int4LawClaims(const Int4Charts& charts);
std::vector<Table> Int4LawTables(const Int4Charts& charts);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_INFERENCE_INT4_LAW_H_

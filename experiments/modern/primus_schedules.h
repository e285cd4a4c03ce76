// Six schedules of one model, which AMD measured with Primus against 1F1B, beside predictions.
//
//   PIPELAB_ASSIGN_OR_RETURN(const auto rows, PredictPrimusSchedules());
//   report.AddTable(PrimusSchedulesTable(rows));
//   report.AddClaim(PrimusSchedulesClaim(rows));
//
// Printed are tokens a second and peak memory of each, of a Llama-2 of 16 layers on 8 MI300s under
// P = 8. Its flops a token are those of the width of 7B: 4,096, 32 heads, 4,096 tokens. The number
// of micro-batches is not printed, so each of kPrimusMicroBatches is tried for all schedules.
// Assumed are one sample a micro-batch and state as Megatron-Core's. By the released code (commit
// 83cf340258, primuspipe/handlers/communication_handler.py and pipeline_parallel/scheduler) one
// handler sends for all schedules and waits until a message is there, orders that split backwards
// are made for equal times, and the head's backward is whole.
#ifndef PIPELAB_EXPERIMENTS_MODERN_PRIMUS_SCHEDULES_H_
#define PIPELAB_EXPERIMENTS_MODERN_PRIMUS_SCHEDULES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "experiments/report/claim.h"
#include "experiments/report/table.h"

namespace pipelab {

struct PrimusSchedule {
  std::string name, scheme;       // "ZB-V", "zbv"
  double measured = 0;            // tokens a second, over those of 1F1B
  double measured_gib = 0;        // peak memory
  double gib = 0;                 // predicted
  std::vector<double> predicted;  // [kPrimusMicroBatches]
};

inline constexpr int kPrimusMicroBatches[] = {8, 16, 24, 32, 64};

// As printed, with 1F1B first.
absl::StatusOr<std::vector<PrimusSchedule>> PredictPrimusSchedules();

Table PrimusSchedulesTable(const std::vector<PrimusSchedule>& rows);
// Over the numbers of micro-batches: met where the order is the measured one and each gain is
// within 4 points. Not made without rows.
Claim PrimusSchedulesClaim(const std::vector<PrimusSchedule>& rows);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_MODERN_PRIMUS_SCHEDULES_H_

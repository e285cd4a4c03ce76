// How a schedule is read from JSON, field by field (schedule_json.h says what stands in it).
// Private to :schedule_json.
//
//   PIPELAB_ASSIGN_OR_RETURN(Schedule s, ScheduleJsonReader(root, "--json=a.json").Read());
#ifndef PIPELAB_PIPELINES_IR_SCHEDULE_JSON_READER_H_
#define PIPELAB_PIPELINES_IR_SCHEDULE_JSON_READER_H_

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"
#include "pipelines/ir/schedule.h"

namespace pipelab {

class ScheduleJsonReader {
 public:
  // Both must outlive the reader.
  ScheduleJsonReader(const nlohmann::json& root, absl::string_view what)
      : root_(root), what_(what) {}

  // Once.
  absl::StatusOr<Schedule> Read();

 private:
  using json = nlohmann::json;
  static constexpr int64_t kMaxInt16 = std::numeric_limits<int16_t>::max();
  static constexpr int64_t kMaxInt32 = std::numeric_limits<int32_t>::max();
  static constexpr int64_t kMaxReplicas = 256;

  template <typename... Parts>
  absl::Status Error(const Parts&... parts) const {
    return absl::InvalidArgumentError(absl::StrCat(what_, ": ", parts...));
  }
  // The value as an error shows it.
  static std::string Brief(const json& value);

  // schedule_json.cc
  absl::Status CheckKeys() const;
  absl::StatusOr<int64_t> Number(const json& value, int64_t max, absl::string_view where) const;
  // The field, or `otherwise` where it is missing.
  absl::StatusOr<int64_t> Size(const char* key, int64_t max, int64_t otherwise) const;
  absl::Status ReadOrder();
  absl::Status ReadAction(const json& value, const std::string& where);
  absl::Status ReadSizes();
  absl::Status ReadStageMicroBatches();
  // The smallest micro-batches that an action's has; none where it is out of range.
  PassRange Smallest(const Action& a) const;
  absl::Status ReadEdges();
  absl::Status ReadCarried();
  absl::Status ReadPrepares();

  // schedule_json_placement.cc
  absl::Status ReadPlacement();
  // What actions say of their micro-batch's replica; -1 where none says it.
  absl::Status ReplicasFromActions();
  absl::StatusOr<Reads> ReadGradient(const json& lag, absl::string_view where) const;
  absl::StatusOr<std::vector<int>> ReadGroup(const json& value, const std::string& where) const;
  absl::Status ReadStageToDevice(const json& value);
  // Micro-batches whose actions name no replica get the one on whose devices most of them stand.
  void ReplicasThatFit();
  absl::Status PlacementFromRows();
  // A stage of a replica is where its first action stands; the validator names those elsewhere.
  absl::Status GroupsFromActions();

  const json& root_;
  const absl::string_view what_;
  Schedule s_;
  std::vector<std::vector<int>> replica_;  // [device][position] as given; -1 where it is not
  int64_t actions_ = 0, stages_ = 0, micro_batches_ = 0;
  int replay_ = 0;         // how many outputs a buffer has; 0: there is none
  int most_replicas_ = 0;  // 1 + the largest that an action names
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_IR_SCHEDULE_JSON_READER_H_

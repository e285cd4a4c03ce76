// Passes that exchange attention (slice_exchange.h) meet on the devices of their slot: this knows
// these, as a part of CheckProgram.
//
//   AttentionMeetings meetings(program);
//   EXPECT_EQ(meetings.Check(), "");
//   meetings.DevicesOf(program.exchanges[i.arg].slot)   // whose passes are under way with this one
#ifndef PIPELAB_TESTS_SUPPORT_ATTENTION_MEETINGS_H_
#define PIPELAB_TESTS_SUPPORT_ATTENTION_MEETINGS_H_

#include <map>
#include <string>
#include <vector>

#include "pipelines/ir/program.h"

namespace pipelab {

class AttentionMeetings {
 public:
  // `program` is kept.
  explicit AttentionMeetings(const Program& program);

  // Empty, or the first thing that is wrong:
  //  * a pass with an exchange that is not there, or of another action;
  //  * an exchange that is not in the lists exactly once, or in a slot where its device is twice;
  //  * chunks that nobody of the slot receives, or gives.
  std::string Check() const;

  // In order.
  const std::vector<int>& DevicesOf(int32_t slot) const { return devices_.at(slot); }

 private:
  const Program& p_;
  std::string wrong_;                            // of the lists
  std::vector<int> device_;                      // [exchange]
  std::map<int32_t, std::vector<int>> devices_;  // [slot]
};

}  // namespace pipelab

#endif  // PIPELAB_TESTS_SUPPORT_ATTENTION_MEETINGS_H_

// When passes begin and end at stages that take them in one order: a recurrence of sums and
// maxima.
//
//   PassClock clock(options.devices, &times);
//   const Nanoseconds tokens_at = clock.Add(/*earliest=*/Nanoseconds(0), /*taken=*/true, &pass);
#ifndef PIPELAB_PIPELINES_SERVING_PASS_CLOCK_H_
#define PIPELAB_PIPELINES_SERVING_PASS_CLOCK_H_

#include <vector>

#include "pipelines/serving/pass_plan.h"
#include "tools/base/units.h"

namespace pipelab {

class PassClock {
 public:
  PassClock(int stages, const ServingTimes* times)
      : times_(times), stage_free_(stages), link_free_(stages) {}

  // When the first stage can begin the next pass.
  Nanoseconds free() const { return stage_free_[0]; }
  // Sets the pass's begins and ends. When its tokens are at the first stage; `taken`: a later pass
  // asks for them, so there is a message.
  Nanoseconds Add(Nanoseconds earliest, bool taken, Pass* pass);

 private:
  const ServingTimes* times_;
  std::vector<Nanoseconds> stage_free_, link_free_;  // [stage]
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SERVING_PASS_CLOCK_H_

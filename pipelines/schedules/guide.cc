#include "pipelines/schedules/guide.h"

#include "glog/logging.h"
#include "pipelines/schedules/earliest.h"

namespace pipelab {

Guide::Guide(const Schedule& schedule, const PassLengths& lengths)
    : schedule(schedule), lengths(lengths) {
  const int stages = schedule.num_stages(), devices = schedule.num_devices();
  const Placement& placement = schedule.placement;
  queues.resize(size_t{2} * placement.num_replicas() * stages);
  for (auto& of_device : queues_of) of_device.resize(devices);
  for (size_t q = 0; q < queues.size(); ++q) {
    const int stage = static_cast<int>(q / 2) % stages;
    queues[q].stage = stage;
    queues[q].device = placement.groups[q / 2 / stages][stage][0];
    queues_of[q % 2][queues[q].device].push_back(static_cast<int>(q));
  }
  held_by.resize(devices);
  work.resize(devices);
  std::vector<int> last(queues.size(), -1);
  for (int d = 0; d < devices; ++d) {
    for (const Action& a : schedule.order[d]) {
      const int q = QueueOf(a);
      CHECK_LT(last[q], a.micro_batch) << "stage " << a.stage << " on device " << d;
      last[q] = a.micro_batch;
      const bool forward = a.kind == ActionKind::kForward;
      queues[q].places.push_back(static_cast<int32_t>(held_by[d].size()));
      held_by[d].push_back(forward ? 1 : -1);
      work[d] += PassLength(lengths, a);
      if (!forward) work[d] += lengths.backward_weight[a.stage];
    }
  }
}

bool Guide::IsCountable() const {
  double all = 0;
  for (const int64_t of_device : work) all += static_cast<double>(of_device);
  for (const PassQueue& queue : queues) {
    all += static_cast<double>(lengths.hop[queue.stage]) * static_cast<double>(queue.places.size());
  }
  return all < static_cast<double>(Earliest::Latest(schedule.num_devices()));
}

}  // namespace pipelab

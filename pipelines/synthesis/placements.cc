#include "pipelines/synthesis/placements.h"

#include <algorithm>

#include "glog/logging.h"

namespace pipelab {
namespace {

// The largest, and where several are as large, fewer of them and the next.
double Cost(const std::vector<int64_t>& work, const std::vector<double>& speeds,
            const std::vector<int>& visits, const std::vector<size_t>& ends) {
  std::vector<double> load(speeds.size(), 0);
  double largest = 0, squares = 0;
  size_t s = 0;
  for (size_t run = 0; run < visits.size(); ++run) {
    for (; s < ends[run]; ++s) {
      load[visits[run]] += static_cast<double>(work[s]) / speeds[visits[run]];
    }
  }
  for (const double l : load) {
    largest = std::max(largest, l);
    squares += l * l;
  }
  return largest + 1e-6 * squares / (largest + 1);
}

}  // namespace

std::vector<int> BalancedDevices(const std::vector<int64_t>& work,
                                 const std::vector<double>& speeds,
                                 const std::vector<int>& visits) {
  const size_t runs = visits.size();
  CHECK_GE(work.size(), runs);
  std::vector<size_t> ends(runs);  // of runs, behind their last stage
  for (size_t run = 0; run < runs; ++run) ends[run] = (run + 1) * work.size() / runs;
  double cost = Cost(work, speeds, visits, ends);
  // Moves a border, or all borders between two, by one stage while that helps.
  for (bool better = true; better;) {
    better = false;
    for (size_t first = 0; first + 1 < runs; ++first) {
      for (size_t last = first; last + 1 < runs; ++last) {
        for (const int step : {-1, 1}) {
          std::vector<size_t> moved = ends;
          for (size_t run = first; run <= last; ++run) moved[run] += step;
          bool sound = moved[0] > 0;
          for (size_t run = 0; run + 1 < runs; ++run) sound &= moved[run] < moved[run + 1];
          if (!sound) continue;
          const double now = Cost(work, speeds, visits, moved);
          if (now >= cost * (1 - 1e-12)) continue;
          cost = now;
          ends = moved;
          better = true;
        }
      }
    }
  }
  std::vector<int> devices;
  for (size_t run = 0; run < runs; ++run) devices.resize(ends[run], visits[run]);
  return devices;
}

}  // namespace pipelab

// The next of several devices to wake up. Private to guided_order.
//
//   Earliest wake_ups(devices, /*time=*/0);
//   while (wake_ups.any()) Look(wake_ups.device(), wake_ups.time());    // which sets it again
#ifndef PIPELAB_PIPELINES_SCHEDULES_EARLIEST_H_
#define PIPELAB_PIPELINES_SCHEDULES_EARLIEST_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace pipelab {

inline constexpr int64_t kUnknown = std::numeric_limits<int64_t>::max();

// The earliest of times, one for each device; of equal ones that of the first device. Times are at
// most Latest, or kUnknown.
class Earliest {
 public:
  static int64_t Latest(size_t devices) { return (kUnknown >> BitsOf(devices)) - 1; }

  Earliest(size_t devices, int64_t time)
      : bits_(BitsOf(devices)), leaves_(size_t{1} << bits_), keys_(2 * leaves_, kUnknown) {
    for (size_t d = 0; d < devices; ++d) keys_[leaves_ + d] = KeyOf(d, time);
    for (size_t n = leaves_; n-- > 1;) keys_[n] = std::min(keys_[2 * n], keys_[2 * n + 1]);
  }

  bool any() const { return keys_[1] != kUnknown; }  // that is known
  int64_t time() const { return keys_[1] >> bits_; }
  size_t device() const { return static_cast<size_t>(keys_[1]) & (leaves_ - 1); }
  void Set(size_t device, int64_t time) { SetKey(device, KeyOf(device, time)); }
  // Where it is not earlier already.
  void SetEarlier(size_t device, int64_t time) {
    const int64_t key = KeyOf(device, time);
    if (key < keys_[leaves_ + device]) SetKey(device, key);
  }

 private:
  static int BitsOf(size_t devices) {
    int bits = 0;
    while (size_t{1} << bits < devices) ++bits;
    return bits;
  }
  // Compares as (time, device) does, in one comparison.
  int64_t KeyOf(size_t device, int64_t time) const {
    return time == kUnknown ? kUnknown : (time << bits_) | static_cast<int64_t>(device);
  }
  void SetKey(size_t device, int64_t key) {
    size_t n = leaves_ + device;
    keys_[n] = key;
    for (; n > 1; n /= 2) {
      const int64_t least = std::min(keys_[n], keys_[n ^ 1]);
      if (keys_[n / 2] == least) return;
      keys_[n / 2] = least;
    }
  }

  int bits_;
  size_t leaves_;
  std::vector<int64_t> keys_;  // a binary tree of the least
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SCHEDULES_EARLIEST_H_

// One accelerator (or one CPU core) as the cost model sees it: peaks, memory, and which share of
// them an operation of a given kind and size gets.
//
//   PIPELAB_ASSIGN_OR_RETURN(Nanoseconds t,
//                            OperationTime(device, NumberType::kFp16, MatmulOperation(m, n, k)));
//
// The roofline (Williams, Waterman and Patterson 2009) with efficiencies: an operation takes the
// larger of flops / (peak * share) and bytes / (bandwidth * share), and the launch overhead on top.
// A share follows from the operation's size by a curve of points: between two of them it is
// straight on paper with logarithms on both sides, beyond the last it is constant, and below the
// first it falls with the size, so that time is constant there and never grows as work shrinks.
//
// Operations without products (norms, activations, residual sums) move far more bytes than they
// compute on every accelerator here, so memory alone counts for them and they have no curve of
// flops. Where one of them is slower than that, it has a memory curve of its own.
//
// A device may compute products in whole tiles: then they cost what their sizes rounded up would.
// It may also be slower at those whose rows do not begin at whole words of memory
// (ProductAlignment).
//
// A host launches operations ahead of the device. Where it needs longer for that than the device
// for the work, the launches rule: a run of operations takes the larger of the two sums (RunTime).
//
// Every value says where it is from (Sourced::source).
#ifndef PIPELAB_PIPELINES_CLUSTER_DEVICE_H_
#define PIPELAB_PIPELINES_CLUSTER_DEVICE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "models/graph/operation.h"
#include "tools/base/units.h"

namespace pipelab {

struct KernelRates;

template <typename T>
struct Sourced {
  T value{};
  std::string source;
};

// kFp8: products of layers take numbers of 1 byte but for those that say otherwise
// (Operation::half); attention, all that is kept and all that is sent have bf16's 2. What casts the
// numbers is operations of its own, where a model has them.
enum class NumberType : uint8_t { kFp32, kTf32, kBf16, kFp16, kFp8 };

const char* NumberTypeName(NumberType type);  // "fp32": as specification files write it
// InvalidArgument lists the names that there are.
absl::StatusOr<NumberType> FindNumberType(absl::string_view name);
int64_t BytesOf(NumberType type);  // of one number in memory

// Share of a peak, by size: flops for arithmetic, bytes for memory.
struct EfficiencyCurve {
  struct Point {
    double size = 0;   // above 0, ascending
    double share = 0;  // above 0, at most 1
  };
  std::vector<Point> points;  // at least one

  double At(double size) const;
};
// InvalidArgument says which point is wrong: sizes ascend, shares are above 0 and at most 1, and no
// larger operation takes less time than a smaller one.
absl::Status CheckCurve(const EfficiencyCurve& curve);

// y_MN = x_MK w_KN is computed as if m, n and k were the next multiples of these. Of attention only
// the size of a head counts: it is k in one of its products and n in the other.
struct ProductTile {
  int64_t m = 1, n = 1, k = 1;
};

// Products of which n or k (those that are known) is not a multiple of `numbers` get this share of
// what the others get. Half precision tensor cores load 16 bytes, 8 numbers, at a time, and these
// are next to each other within a row, so that the number of rows does not matter: m, or, where
// Operation::sums_rows, k in place of m.
struct ProductAlignment {
  struct Point {
    int64_t numbers = 1;  // ascending, each a multiple of the one before; the first is 1
    double share = 1;     // above 0, at most 1, not less than the one before; the last is 1
  };
  std::vector<Point> points;  // at least one

  double At(const Operation& operation) const;
};
// InvalidArgument says which point is wrong.
absl::Status CheckAlignment(const ProductAlignment& alignment);

// What efficiencies that were not calibrated may be off by, as multiples of all shares.
struct EfficiencyRange {
  double worst = 1, best = 1;  // above 0, at most 1; at least 1
};

struct DeviceSpec {
  std::string name;
  std::map<NumberType, Sourced<FlopsPerSecond>> peaks;
  Sourced<Bytes> memory;
  Sourced<BytesPerSecond> memory_bandwidth;
  Sourced<Nanoseconds> launch_overhead;                          // of one operation
  std::map<OperationKind, Sourced<EfficiencyCurve>> arithmetic;  // of those with products
  Sourced<EfficiencyCurve> memory_efficiency;
  // In its place, for some kinds.
  std::map<OperationKind, Sourced<EfficiencyCurve>> memory_efficiency_of;
  absl::optional<Sourced<ProductTile>> product_tile;
  absl::optional<Sourced<ProductAlignment>> product_alignment;
  // What the host takes for each operation while the device computes: a framework's code, down to
  // the launch. Unset: nothing.
  absl::optional<Sourced<Nanoseconds>> host_launch;
  // What the host takes for a collective operation. Unset: host_launch.
  absl::optional<Sourced<Nanoseconds>> collective_launch;
  // What a collective operation takes beside its transfers. Unset: nothing.
  absl::optional<Sourced<Nanoseconds>> collective_overhead;
  // From when the host finds that the device has nothing to do until the device works again. Unset:
  // one host_launch.
  absl::optional<Sourced<Nanoseconds>> launch_gap;
  // What a training step takes before its first operation: input, dispatch. Unset: nothing.
  absl::optional<Sourced<Nanoseconds>> step_set_up;
  // The efficiencies are those of this project's kernels, so what they compute again and copy
  // (Operation::own) takes its time too.
  bool own_kernels = false;
  // Measured, in the place of shares of the peak where it has a table (kernel_rates.h). Null: none.
  std::shared_ptr<const KernelRates> rates;
  // What runs or measurements the efficiencies are fitted to. Empty: none, they are assumed.
  std::string calibrated;
  // What published runs reach, of whom and where: "42 to 49 % of the bf16 peak (...)". Empty: not
  // known.
  std::string published;
  // The range of efficiencies that are not calibrated. Unset: kAssumedRange (cluster.h).
  absl::optional<Sourced<EfficiencyRange>> efficiency_range;
};

// After a synchronisation of host and device: DeviceSpec::launch_gap or its default.
Nanoseconds LaunchGap(const DeviceSpec& device);

// The flops that the device spends on an operation: its own, or those of whole tiles.
Flops FlopsSpent(const DeviceSpec& device, const Operation& operation);

// At most 10^6 seconds, so that sums over a schedule fit. NotFound naming the device where it has
// no peak for the type, or no curve for the kind.
absl::StatusOr<Nanoseconds> OperationTime(const DeviceSpec& device, NumberType type,
                                          const Operation& operation);

// The time of operations one after the other, and of so many collectives, which the host launches
// too, of `collectives_time` together: the larger of the device's sum and of the host's. Measured
// operations have their launches in their times.
absl::StatusOr<Nanoseconds> RunTime(const DeviceSpec& device, NumberType type,
                                    absl::Span<const Operation> operations, int64_t collectives = 0,
                                    Nanoseconds collectives_time = Nanoseconds(0));

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_CLUSTER_DEVICE_H_

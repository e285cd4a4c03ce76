// Kernel rates as the JSON of a cluster's file or of a file of pipelines/cluster/rates; what all of
// the catalogue's tables share is in shared_rates.json.
//
//   {"sustained": {"value": 0.9, "source": "..."},
//    "matmul": {"bf16": {"m": [512, 1024], "n": [256], "k": [256], "tflops": [300, 310],
//                        "source": "..."}},
//    "attention": {"bf16": {"tokens": [...], "heads": [...], "head_size": [...], ...}}}
//
// In a table's place may stand exact shapes (shape_rates.h) by passes: m, n and k, or tokens, heads
// and the size of a head, Tflop/s, and the groups of grouped products:
//
//   {"shapes": {"forward": [[8192, 6144, 4096, 700]], "weight_gradient": [[512, 3072, 4096, 300,
//               16]]}, "source": "measured: ..."}
//
//   PIPELAB_ASSIGN_OR_RETURN(auto rates, ReadKernelRates(device, "rates"));   // or a name
#ifndef PIPELAB_PIPELINES_CLUSTER_KERNEL_RATES_JSON_H_
#define PIPELAB_PIPELINES_CLUSTER_KERNEL_RATES_JSON_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"
#include "pipelines/cluster/kernel_rates.h"
#include "tools/base/json_object.h"

namespace pipelab {

// The field is a name of the catalogue or an object. Errors name file, place and what would be
// right.
absl::StatusOr<std::shared_ptr<const KernelRates>> ReadKernelRates(const JsonObject& device,
                                                                   absl::string_view key);

// The JSON that ReadKernelRates reads back as the same.
nlohmann::json KernelRatesToJson(const KernelRates& rates);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_CLUSTER_KERNEL_RATES_JSON_H_

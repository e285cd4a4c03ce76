// The two families of models that the GPipe paper scales (Huang et al. 2019), as graphs whose
// groups are the layers that it cuts between.
//
//   PIPELAB_ASSIGN_OR_RETURN(const GpipeFamily* f, FindGpipeFamily("amoebanet"));
//   PIPELAB_ASSIGN_OR_RETURN(GroupedModel m, f->build(/*layers=*/18, /*width=*/256));
//
// What the paper leaves out and is assumed here: activations have 2 bytes on TPUs and 4 on GPUs;
// attention is not fused (models/specs/unfused_attention_spec.h), as in 2018; Transformers have
// the sizes of Table 1 in all tables.
#ifndef PIPELAB_EXPERIMENTS_SCALING_GPIPE_FAMILY_H_
#define PIPELAB_EXPERIMENTS_SCALING_GPIPE_FAMILY_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "models/zoo/layer_groups.h"
#include "pipelines/cluster/cluster.h"

namespace pipelab {

struct GpipeFamily {
  std::string id;       // of the published tables: "amoebanet"
  std::string title;    // "AmoebaNet-D"
  std::string cluster;  // of Table 1
  int64_t batch = 0;    // samples of a step in Table 1
  // Memory as Table 1 prints it.
  std::string unit;  // "GB"
  double bytes_of_unit = 0;
  // Table 1 asks for the largest of these: the width in steps, or the layers.
  bool widens = false;
  int64_t step = 1;
  absl::StatusOr<GroupedModel> (*build)(int64_t layers, int64_t width) = nullptr;

  std::string ModelName(int64_t layers, int64_t width) const;  // "AmoebaNet-D (18, 256)"
};

absl::StatusOr<const GpipeFamily*> FindGpipeFamily(absl::string_view id);

// fp32 where the device computes it, else bf16.
NumberType TypeOn(const ClusterSpec& cluster);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_SCALING_GPIPE_FAMILY_H_

// AmoebaNet-D (L, D), the network of GPipe's image experiments: Real et al., "Regularized Evolution
// for Image Classifier Architecture Search" (2019), as Huang et al., "GPipe" (2019) trains it.
//
//   AmoebaNetConfig c;  c.layers = 18;  c.filters = 208;
//   PIPELAB_ASSIGN_OR_RETURN(GroupedModel m, BuildAmoebaNet(c));
//   m.graph.num_parameters();      // 81.5M; nothing is allocated
//   m.num_groups();                // 24: L + 6 cells
//
// A stem convolution, two reduction cells, L/3 normal cells, a reduction, L/3 normal cells, a
// reduction, L/3 normal cells, and the classifier. A cell takes the outputs of the two cells before
// it, so wherever the cells are cut, pairs go from stage to stage.
//
// Cells, operations and joined states are those with which torchgpipe reproduces GPipe's parameter
// counts (the paper's own figure of the normal cell joins other states). Its max pool of 3 x 3 is a
// maximum here; torchgpipe's averages. Without the paper's auxiliary head and drop-path.
#ifndef PIPELAB_MODELS_ZOO_AMOEBANET_H_
#define PIPELAB_MODELS_ZOO_AMOEBANET_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "models/zoo/layer_groups.h"

namespace pipelab {

struct AmoebaNetConfig {
  int64_t layers = 0;   // normal cells: L, a multiple of 3
  int64_t filters = 0;  // D, a multiple of 16; channels start at D / 4
  int64_t classes = 1000;
  int64_t height = 224, width = 224, channels = 3;  // of the data's images
  // The stem. Small images want 1 and 0: then there are L + 4 cells.
  int64_t stem_stride = 2;
  int64_t stem_reductions = 2;
};

// 3 cells of 32 filters for images of about 32 x 32, at full resolution: 25,730 parameters on gray
// ones.
AmoebaNetConfig SmallAmoebaNet(int64_t height, int64_t width, int64_t channels, int64_t classes);

// InvalidArgument names the field as an option, and its value: "--filters=100: must be a multiple
// of 16". Height and width must halve in each reduction.
absl::StatusOr<GroupedModel> BuildAmoebaNet(const AmoebaNetConfig& config);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_ZOO_AMOEBANET_H_

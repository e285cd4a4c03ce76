#include "models/zoo/amoebanet.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "glog/logging.h"
#include "models/zoo/image_builder.h"
#include "models/zoo/size_check.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

enum class Op : uint8_t { kNone, kConv1x1, kConv3x3, kConv1x7_7x1, kMax2, kMax3, kAverage3 };

struct Step {
  int state;  // 0: the cell before the last one's output, reduced; 1: the last one's; then sums
  Op op;
};

// Steps 2k and 2k + 1 are summed into state k + 2.
constexpr Step kNormal[] = {
    {1, Op::kConv1x1},     {1, Op::kMax3}, {1, Op::kNone}, {0, Op::kConv1x7_7x1}, {0, Op::kConv1x1},
    {0, Op::kConv1x7_7x1}, {2, Op::kMax3}, {2, Op::kNone}, {1, Op::kAverage3},    {5, Op::kConv1x1},
};
constexpr int kNormalJoined[] = {0, 3, 4, 6};
constexpr Step kReduction[] = {
    {0, Op::kMax2}, {0, Op::kMax3}, {2, Op::kNone}, {1, Op::kConv3x3},  {2, Op::kConv1x7_7x1},
    {2, Op::kMax3}, {3, Op::kNone}, {1, Op::kMax2}, {2, Op::kAverage3}, {3, Op::kConv1x1},
};
constexpr int kReductionJoined[] = {4, 5, 6};

class AmoebaNetBuilder {
 public:
  explicit AmoebaNetBuilder(const AmoebaNetConfig& config)
      : config_(config), b_("amoebanet_d"), channels_(config.filters / 4) {}

  absl::StatusOr<GroupedModel> Build() {
    const ImageAt data = b_.Data(config_.height, config_.width, config_.channels);
    last_ = b_.Conv("stem", data, ConvOf(channels_, 3, config_.stem_stride, /*relu=*/false));
    before_ = last_;
    for (int64_t i = 0; i < config_.stem_reductions; ++i) Cell(/*reduction=*/true);
    for (int part = 0; part < 3; ++part) {
      if (part > 0) Cell(/*reduction=*/true);
      for (int64_t i = 0; i < config_.layers / 3; ++i) Cell(/*reduction=*/false);
    }
    b_.NextGroup();
    b_.Classify("classifier", b_.GlobalAverage("pool", last_), config_.classes);
    return b_.Finish();
  }

 private:
  void Cell(bool reduction) {
    b_.NextGroup();
    const std::string name = absl::StrCat("cell", ++cells_, reduction ? "_reduction" : "_normal");
    if (reduction) channels_ *= 2;
    std::vector<ImageAt> states = {
        ReduceBefore(name + "/reduce2"),
        b_.Conv(name + "/reduce1", last_, ConvOf(channels_, 1, 1, true))};
    const absl::Span<const Step> steps =
        reduction ? absl::MakeConstSpan(kReduction) : absl::MakeConstSpan(kNormal);
    for (size_t i = 0; i < steps.size(); i += 2) {
      const std::string sum = absl::StrCat(name, "/state", states.size());
      const ImageAt a = Apply(sum + "a", steps[i], reduction, states);
      const ImageAt b = Apply(sum + "b", steps[i + 1], reduction, states);
      states.push_back(b_.Add(sum, {a, b}));
    }
    std::vector<ImageAt> joined;
    for (int s :
         reduction ? absl::MakeConstSpan(kReductionJoined) : absl::MakeConstSpan(kNormalJoined)) {
      joined.push_back(states[s]);
    }
    before_ = last_;
    last_ = b_.Concat(name + "/join", joined);
    after_reduction_ = reduction;
  }

  // Brings the output of the cell before the last one to this cell's channels and pixels.
  ImageAt ReduceBefore(const std::string& name) {
    if (after_reduction_) return FactorizedReduction(name);
    if (before_.channels == channels_) return before_;
    return b_.Conv(name, before_, ConvOf(channels_, 1, 1, /*relu=*/true));
  }

  // Half of the channels see the even pixels, the others the odd ones.
  ImageAt FactorizedReduction(const std::string& name) {
    ConvOptions half = ConvOf(channels_ / 2, 1, 1, /*relu=*/true);
    half.norm = false;
    const ImageAt even =
        b_.Conv(name + "/even_conv", b_.Subsample(name + "/even", before_, 0), half);
    const ImageAt odd = b_.Conv(name + "/odd_conv", b_.Subsample(name + "/odd", before_, 1), half);
    return b_.Norm(name + "/norm", b_.Concat(name + "/join", {even, odd}));
  }

  // A reduction cell halves the image where an operation takes one of its inputs.
  ImageAt Apply(const std::string& name, const Step& step, bool reduction,
                const std::vector<ImageAt>& states) {
    const ImageAt& x = states[step.state];
    const int64_t stride = reduction && step.state < 2 ? 2 : 1;
    switch (step.op) {
      case Op::kNone:
        CHECK_EQ(stride, 1);
        return x;
      case Op::kConv1x1:
        return b_.Conv(name + "/conv", x, ConvOf(x.channels, 1, stride, true));
      case Op::kConv3x3: {
        const int64_t inner = x.channels / 4;
        const ImageAt down = b_.Conv(name + "/down", x, ConvOf(inner, 1, 1, true));
        const ImageAt conv = b_.Conv(name + "/conv", down, ConvOf(inner, 3, stride, true));
        return b_.Conv(name + "/up", conv, ConvOf(x.channels, 1, 1, true));
      }
      case Op::kConv1x7_7x1:
        return Conv1x7(name, x, stride);
      case Op::kMax2:
        return b_.Pool(name + "/max2", x, PoolKind::kMax, 2, stride, 0);
      case Op::kMax3:
        return b_.Pool(name + "/max3", x, PoolKind::kMax, 3, stride, 1);
      case Op::kAverage3:
        return b_.Pool(name + "/average3", x, PoolKind::kAverage, 3, stride, 1);
    }
    LOG(FATAL) << "operation " << static_cast<int>(step.op);
  }

  ImageAt Conv1x7(const std::string& name, const ImageAt& x, int64_t stride) {
    const int64_t inner = x.channels / 4;
    ConvOptions row = ConvOf(inner, 1, 1, true), column = row;
    row.kernel_width = column.kernel_height = 7;
    row.stride_width = column.stride_height = stride;
    const ImageAt down = b_.Conv(name + "/down", x, ConvOf(inner, 1, 1, true));
    const ImageAt middle = b_.Conv(name + "/7x1", b_.Conv(name + "/1x7", down, row), column);
    return b_.Conv(name + "/up", middle, ConvOf(x.channels, 1, 1, true));
  }

  const AmoebaNetConfig& config_;
  ImageBuilder b_;
  int64_t channels_;
  ImageAt last_, before_;  // outputs of the last cell and of the one before it
  bool after_reduction_ = false;
  int cells_ = 0;
};

absl::Status CheckHalves(const char* field, int64_t size, const AmoebaNetConfig& c) {
  const int64_t divisor = c.stem_stride << (c.stem_reductions + 2);
  if (size % divisor == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--", field, "=", size, ": must be a multiple of ", divisor, ", to halve in ",
                   c.stem_reductions + 2, " reductions behind a stem of stride ", c.stem_stride));
}

absl::Status CheckMultiple(const char* field, int64_t value, int64_t most, int64_t of) {
  PIPELAB_RETURN_IF_ERROR(CheckModelSize(field, value, most));
  if (value % of == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--", field, "=", value, ": must be a multiple of ", of));
}

absl::Status CheckAmoebaNet(const AmoebaNetConfig& c) {
  PIPELAB_RETURN_IF_ERROR(CheckMultiple("layers", c.layers, kMostLayers, 3));
  PIPELAB_RETURN_IF_ERROR(CheckMultiple("filters", c.filters, kMostHidden, 16));
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("classes", c.classes, kMostVocabulary));
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("channels", c.channels, kMostHidden));
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("height", c.height, kMostImageSide));
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("width", c.width, kMostImageSide));
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("stem_stride", c.stem_stride, 2));
  if (c.stem_reductions < 0 || c.stem_reductions > 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("--stem_reductions=", c.stem_reductions, ": must be from 0 to 2"));
  }
  PIPELAB_RETURN_IF_ERROR(CheckHalves("height", c.height, c));
  return CheckHalves("width", c.width, c);
}

}  // namespace

AmoebaNetConfig SmallAmoebaNet(int64_t height, int64_t width, int64_t channels, int64_t classes) {
  AmoebaNetConfig c;
  c.layers = 3;
  c.filters = 32;
  c.classes = classes;
  c.height = height;
  c.width = width;
  c.channels = channels;
  c.stem_stride = 1;
  c.stem_reductions = 0;
  return c;
}

absl::StatusOr<GroupedModel> BuildAmoebaNet(const AmoebaNetConfig& config) {
  PIPELAB_RETURN_IF_ERROR(CheckAmoebaNet(config));
  return AmoebaNetBuilder(config).Build();
}

}  // namespace pipelab

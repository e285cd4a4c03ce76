#include "models/files/hugging_face_tensors.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace pipelab {
namespace {

// The place of a turning number that lies in pairs: here the numbers of a pair are half of all
// apart.
int64_t InPairs(int64_t number, int64_t size) {
  const int64_t half = size / 2;
  return number < half ? 2 * number : 2 * (number - half) + 1;
}

// The output that is column j here.
int64_t OutputOf(const TensorPart& part, int64_t j) {
  const int64_t rope = part.rope_size, nope = part.nope_size;
  if (part.layout == WeightLayout::kBehindLatent) return part.first_output + InPairs(j, rope);
  if (part.layout != WeightLayout::kTurningHeads) return part.first_output + j;
  const int64_t head = j / (rope + nope) * (rope + nope), at = j % (rope + nope);
  return head + (at < rope ? nope + InPairs(at, rope) : at - rope);
}

}  // namespace

std::vector<int64_t> ShapeOf(const TensorPart& part) {
  if (part.vector) return {part.width};
  switch (part.layout) {
    case WeightLayout::kSame:
    case WeightLayout::kFirstRows:
      return {part.rows, part.width};
    case WeightLayout::kPatches:
      return {part.width, part.rows / part.patch / part.patch, part.patch, part.patch};
    case WeightLayout::kTransposed:
    case WeightLayout::kTurningHeads:
    case WeightLayout::kBehindLatent:
    case WeightLayout::kLatent:
      return {part.outputs, part.inputs};
  }
  return {};
}

int64_t PlaceOf(const TensorPart& part, int64_t i, int64_t j) {
  if (part.vector) return j;
  switch (part.layout) {
    case WeightLayout::kSame:
    case WeightLayout::kFirstRows:
      return i * part.width + j;
    case WeightLayout::kPatches: {  // a patch is [row, column, channel] here
      const int64_t pixels = part.patch * part.patch, channels = part.rows / pixels;
      return (j * channels + i % channels) * pixels + i / channels;
    }
    case WeightLayout::kTransposed:
    case WeightLayout::kTurningHeads:
    case WeightLayout::kBehindLatent:
    case WeightLayout::kLatent:
      return OutputOf(part, j) * part.inputs + i;
  }
  return 0;
}

std::pair<std::string, std::string> PatternOf(absl::string_view name) {
  constexpr absl::string_view kBlock = "block";
  const size_t slash = name.find('/');
  if (!absl::StartsWith(name, kBlock) || slash == absl::string_view::npos) {
    return {std::string(name), ""};
  }
  return {absl::StrCat(kBlock, "#", name.substr(slash)),
          std::string(name.substr(kBlock.size(), slash - kBlock.size()))};
}

std::vector<std::string> PartsOf(const std::string& pattern) {
  const size_t begin = pattern.find('{'), end = pattern.find('}');
  if (begin == std::string::npos) return {pattern};
  std::vector<std::string> parts;
  for (absl::string_view part : absl::StrSplit(pattern.substr(begin + 1, end - begin - 1), ',')) {
    parts.push_back(absl::StrCat(pattern.substr(0, begin), part, pattern.substr(end + 1)));
  }
  return parts;
}

}  // namespace pipelab

#include "models/layers/data_view.h"

#include "absl/strings/str_cat.h"

namespace pipelab {

BatchView LoadData(const LayerSpec& spec, const BatchSource& source, Arena* arena, int64_t step,
                   int64_t first_sample, int64_t samples) {
  const bool tokens = Reads(spec, kReadsTokens), targets = Reads(spec, kReadsTargets);
  BatchView view;
  if (!tokens && !targets) return view;
  const Shape shape = {samples * source.tokens_per_sample()};
  absl::Span<int32_t> tokens_M, targets_M;
  if (tokens) {
    view.tokens_M = arena->Allocate(DataType::kInt32, shape, MemoryKind::kActivation);
    tokens_M = view.tokens_M.i32();
  }
  if (targets) {
    view.targets_M = arena->Allocate(DataType::kInt32, shape, MemoryKind::kActivation);
    targets_M = view.targets_M.i32();
  }
  source.Fill(step, first_sample, tokens_M, targets_M);
  return view;
}

absl::Status CheckData(const LayerSpec& spec, const BatchSource* source) {
  if (!Reads(spec, kReadsTokens) && !Reads(spec, kReadsTargets)) return absl::OkStatus();
  if (source == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("layer \"", spec.name, "\" reads the data, and there is no data source"));
  }
  const int64_t tokens = static_cast<int64_t>(Attribute(spec, "tokens"));
  if (source->tokens_per_sample() != tokens) {
    return absl::InvalidArgumentError(absl::StrCat("layer \"", spec.name, "\" takes samples of ",
                                                   tokens, " tokens, the data has ",
                                                   source->tokens_per_sample()));
  }
  const int64_t vocabulary = static_cast<int64_t>(Attribute(spec, "vocabulary"));
  if (source->vocabulary() > vocabulary) {
    return absl::InvalidArgumentError(absl::StrCat("layer \"", spec.name, "\" knows ", vocabulary,
                                                   " tokens, the data has ", source->vocabulary()));
  }
  return absl::OkStatus();
}

}  // namespace pipelab

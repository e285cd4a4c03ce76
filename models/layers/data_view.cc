#include "models/layers/data_view.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"

namespace pipelab {
namespace {

// The slice's tokens of each sample, out of whole ones.
void Cut(absl::Span<const int32_t> whole, int64_t tokens, TokenSlice slice,
         absl::Span<int32_t> out) {
  for (size_t sample = 0; sample * slice.count < out.size(); ++sample) {
    const auto from = whole.begin() + static_cast<std::ptrdiff_t>(sample) * tokens + slice.first;
    std::copy(from, from + slice.count, out.begin() + sample * slice.count);
  }
}

// Sources know whole samples: a slice is cut out of them.
void Fill(const BatchSource& source, int64_t step, int64_t first_sample, int64_t samples,
          TokenSlice slice, absl::Span<int32_t> tokens_M, absl::Span<int32_t> targets_M) {
  if (slice.whole()) {
    source.Fill(step, first_sample, tokens_M, targets_M);
    return;
  }
  const int64_t tokens = source.tokens_per_sample();
  std::vector<int32_t> whole_tokens(tokens_M.empty() ? 0 : samples * tokens);
  std::vector<int32_t> whole_targets(targets_M.empty() ? 0 : samples * tokens);
  source.Fill(step, first_sample, absl::MakeSpan(whole_tokens), absl::MakeSpan(whole_targets));
  Cut(whole_tokens, tokens, slice, tokens_M);
  Cut(whole_targets, tokens, slice, targets_M);
}

}  // namespace

BatchView LoadData(const LayerSpec& spec, const BatchSource& source, Arena* arena, int64_t step,
                   int64_t first_sample, int64_t samples, TokenSlice slice) {
  const bool tokens = Reads(spec, kReadsTokens), targets = Reads(spec, kReadsTargets);
  BatchView view;
  if (!tokens && !targets) return view;
  const Shape shape = {samples * slice.CountOf(source.tokens_per_sample())};
  absl::Span<int32_t> tokens_M, targets_M;
  if (tokens) {
    view.tokens_M = arena->Allocate(DataType::kInt32, shape, MemoryKind::kActivation);
    tokens_M = view.tokens_M.i32();
  }
  if (targets) {
    view.targets_M = arena->Allocate(DataType::kInt32, shape, MemoryKind::kActivation);
    targets_M = view.targets_M.i32();
  }
  Fill(source, step, first_sample, samples, slice, tokens_M, targets_M);
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

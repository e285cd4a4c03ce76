#include "models/layers/data_view.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/embedding_kernels.h"
#include "kernels/loss_kernels.h"
#include "kernels/tensor/host_values.h"

namespace pipelab {

static_assert(kNoData == kNoId && kNoData == kNoTarget, "one mark for what is not there");

namespace {

// The ranges that the pass reads of a field's first dimension: a slice, or the device's tokens; all.
std::vector<TokenSlice> RangesOf(const LayerSpec& spec, const DataField& field, TokenSlice slice) {
  const bool tokens = !spec.context.whole() && field.shape[0] == TokensOf(spec);
  if (tokens) return spec.context.Tokens(field.shape[0]);
  return {slice.whole() ? TokenSlice{0, field.shape[0]} : slice};
}

int64_t RowsIn(const std::vector<TokenSlice>& ranges) {
  int64_t rows = 0;
  for (const TokenSlice& range : ranges) rows += range.count;
  return rows;
}

// Sources know whole samples: ranges (of the first dimension) are cut out of them.
template <typename T, typename Fill>
void FillRanges(const DataField& field, int64_t samples, const std::vector<TokenSlice>& ranges,
                absl::Span<T> out, const Fill& fill) {
  if (RowsIn(ranges) == field.shape[0]) {
    fill(out);
    return;
  }
  std::vector<T> whole(samples * field.size());
  fill(absl::MakeSpan(whole));
  const int64_t row = field.row_size();
  auto to = out.begin();
  for (int64_t sample = 0; sample < samples; ++sample) {
    for (const TokenSlice& range : ranges) {
      const auto from = whole.begin() + sample * field.size() + range.first * row;
      to = std::copy(from, from + range.count * row, to);
    }
  }
}

// "ids below 82 [128]", "numbers [1, 28, 28]".
std::string Describe(const DataField& field) {
  return absl::StrCat(
      field.type == FieldType::kId ? absl::StrCat("ids below ", field.limit) : "numbers", " [",
      absl::StrJoin(field.shape, ", "), "]", field.padded ? " or none" : "");
}

std::string FieldNames(const BatchSource& source) {
  return absl::StrJoin(source.fields(), ", ", [](std::string* out, const DataField& f) {
    absl::StrAppend(out, "\"", f.name, "\"");
  });
}

}  // namespace

BatchView LoadData(const LayerSpec& spec, const BatchSource& source, Arena* arena, int64_t step,
                   int64_t first_sample, int64_t samples, TokenSlice slice) {
  BatchView view;
  for (const DataField& field : spec.data) {
    const int place = source.FindField(field.name);
    const bool ids = field.type == FieldType::kId;
    Shape shape(field.shape.begin(), field.shape.end());
    const std::vector<TokenSlice> ranges = RangesOf(spec, field, slice);
    shape[0] = samples * RowsIn(ranges);
    Tensor tensor = arena->Allocate(ids ? DataType::kInt32 : DataType::kFloat32, shape,
                                    MemoryKind::kActivation);
    if (ids) {
      const auto fill = [&](absl::Span<int32_t> out) {
        source.FillIds(place, step, first_sample, out);
      };
      FillOnHost<int32_t>(tensor, [&](absl::Span<int32_t> out) {
        FillRanges(field, samples, ranges, out, fill);
        if (!tensor.on_host()) view.host_ids.emplace_back(out.begin(), out.end());
      });
    } else {
      const auto fill = [&](absl::Span<float> out) {
        source.FillFloats(place, step, first_sample, out);
      };
      FillOnHost<float>(tensor, [&](absl::Span<float> out) {
        FillRanges(field, samples, ranges, out, fill);
        if (!tensor.on_host()) view.host_ids.emplace_back();  // in the fields' places
      });
    }
    view.fields.push_back(std::move(tensor));
  }
  return view;
}

BatchView CachedData(const LayerSpec& spec, const CachedPass& pass, Arena* arena) {
  BatchView view;
  if (spec.data.empty() || spec.data[0].name != kTokens) return view;
  const Shape shape = {static_cast<int64_t>(pass.tokens.size())};
  Tensor ids = arena->Allocate(DataType::kInt32, shape, MemoryKind::kActivation);
  SetHostIds(ids, pass.tokens);
  if (!ids.on_host()) view.host_ids.emplace_back(pass.tokens.begin(), pass.tokens.end());
  view.fields.push_back(std::move(ids));
  return view;
}

absl::Status CheckData(const LayerSpec& spec, const BatchSource* source) {
  for (const DataField& field : spec.data) {
    const auto error = [&](const auto&... words) {
      return absl::InvalidArgumentError(
          absl::StrCat("layer \"", spec.name, "\" reads \"", field.name, "\"", words...));
    };
    if (source == nullptr) return error(", and there is no data source");
    const int place = source->FindField(field.name);
    if (place < 0) return error("; the data has ", FieldNames(*source));
    const DataField& offered = source->fields()[place];
    if (offered.type != field.type || offered.shape != field.shape || offered.limit > field.limit ||
        (offered.padded && !field.padded)) {
      return error(" as ", Describe(field), "; the data has ", Describe(offered));
    }
  }
  return absl::OkStatus();
}

}  // namespace pipelab

#include "models/data/batch_source.h"

#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "glog/logging.h"
#include "tools/base/rng.h"

namespace pipelab {

BatchSource::BatchSource(std::vector<DataField> fields) : fields_(std::move(fields)) {
  std::set<std::string> names;
  for (const DataField& f : fields_) {
    CHECK(names.insert(f.name).second) << "two fields \"" << f.name << "\"";
    CHECK(!f.shape.empty()) << "field \"" << f.name << "\"";
    CHECK_GT(f.size(), 0) << "field \"" << f.name << "\"";
    CHECK_EQ(f.type == FieldType::kId, f.limit > 0) << "field \"" << f.name << "\"";
  }
  CHECK_GE(FindField(kTargets), 0) << "no field \"" << kTargets << "\"";
}

int BatchSource::FindField(absl::string_view name) const {
  for (size_t i = 0; i < fields_.size(); ++i) {
    if (fields_[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

const DataField& BatchSource::Field(absl::string_view name) const {
  const int field = FindField(name);
  CHECK_GE(field, 0) << "the data has no field \"" << name << "\"";
  return fields_[field];
}

std::string BatchSource::Fingerprint() const {
  std::string text;
  std::vector<float> floats;
  std::vector<int32_t> ids;
  const auto append = [&](const auto& numbers) {
    text.append(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(numbers[0]));
  };
  for (size_t i = 0; i < fields_.size(); ++i) {
    const DataField& f = fields_[i];
    absl::StrAppend(&text, f.name, " ", absl::StrJoin(f.shape, ","), " ", f.limit, "\n");
    for (const int64_t step : {0, 1, 2, 10, 100, 1000}) {
      const auto field = static_cast<int>(i);
      if (f.type == FieldType::kFloat) {
        floats.assign(f.size(), 0);
        FillFloats(field, step, /*first_sample=*/0, absl::MakeSpan(floats));
        append(floats);
      } else {
        ids.assign(f.size(), 0);
        FillIds(field, step, /*first_sample=*/0, absl::MakeSpan(ids));
        append(ids);
      }
    }
  }
  return absl::StrFormat("%016x", StableHash(text));
}

int64_t BatchSource::SamplesIn(int field, size_t out) const {
  const size_t size = static_cast<size_t>(fields_[field].size());
  CHECK(out % size == 0) << out << " numbers of \"" << fields_[field].name
                         << "\", whose samples have " << size;
  return static_cast<int64_t>(out / size);
}

void BatchSource::FillFloats(int field, int64_t, int64_t, absl::Span<float>) const {
  LOG(FATAL) << "field \"" << fields_[field].name << "\" holds no floats";
}

void BatchSource::FillIds(int field, int64_t, int64_t, absl::Span<int32_t>) const {
  LOG(FATAL) << "field \"" << fields_[field].name << "\" holds no ids";
}

}  // namespace pipelab

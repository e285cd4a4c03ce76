#include "models/data/batch_source.h"

#include <set>
#include <string>
#include <utility>

#include "glog/logging.h"

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

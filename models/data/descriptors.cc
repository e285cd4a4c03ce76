#include "models/data/descriptors.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "models/data/metrics.h"
#include "tools/base/rng.h"

namespace pipelab {
namespace {

constexpr int kHidden = 4;

std::vector<DataField> DescriptorFields(const DescriptorTable& table) {
  std::vector<DataField> fields;
  for (const DescriptorFamily& f : table.families) {
    fields.push_back({f.name, FieldType::kFloat, {f.count}});
  }
  fields.push_back({kTargets, FieldType::kFloat, {1}});
  return fields;
}

std::shared_ptr<DescriptorTable> RowsOf(const DescriptorTable& table,
                                        const std::vector<int64_t>& rows) {
  auto part = std::make_shared<DescriptorTable>();
  part->name = table.name;
  part->families = table.families;
  part->columns = table.columns;
  for (const int64_t row : rows) {
    const float* from = table.values.data() + row * table.columns;
    part->values.insert(part->values.end(), from, from + table.columns);
    part->targets.push_back(table.targets[row]);
  }
  return part;
}

struct Moments {
  double mean = 0, deviation = 0;
};

// The moments of every `stride`-th number from `first` on.
Moments MomentsOf(const std::vector<float>& values, int64_t first, int64_t stride) {
  double sum = 0, squares = 0, n = 0;
  for (size_t i = first; i < values.size(); i += stride) {
    sum += values[i];
    ++n;
  }
  Moments m;
  m.mean = sum / n;
  for (size_t i = first; i < values.size(); i += stride) squares += std::pow(values[i] - m.mean, 2);
  m.deviation = std::sqrt(squares / n);
  return m;
}

void StandardiseBy(const Moments& m, int64_t first, int64_t stride, std::vector<float>* values) {
  // What varies by rounding alone does not vary.
  const bool varies = m.deviation > 1e-6 * std::abs(m.mean) && m.deviation > 0;
  for (size_t i = first; i < values->size(); i += stride) {
    float& v = (*values)[i];
    v = varies ? static_cast<float>((v - m.mean) / m.deviation) : 0.0f;
  }
}

}  // namespace

DescriptorTable SyntheticDescriptors(int64_t compounds, uint64_t seed) {
  DescriptorTable table;
  table.name = "synthetic";
  table.families = {{"a", 0, 6}, {"b", 6, 20}, {"c", 26, 9}};
  table.columns = 35;
  const CounterRng mixing(seed, "data/synthetic/descriptors");
  for (int64_t i = 0; i < compounds; ++i) {
    const CounterRng rng(seed, absl::StrCat("data/synthetic/compound", i));
    double hidden[kHidden];
    for (int k = 0; k < kHidden; ++k) hidden[k] = rng.Normal(k);
    for (int64_t c = 0; c < table.columns; ++c) {
      double v = 0.3 * rng.Normal(100 + c);
      for (int k = 0; k < kHidden; ++k) v += mixing.Normal(kHidden * c + k) * hidden[k];
      table.values.push_back(static_cast<float>(10 * v + static_cast<double>(c)));
    }
    const double target = std::sin(hidden[0]) + 0.5 * hidden[1] * hidden[2] + 0.5 * hidden[3];
    table.targets.push_back(static_cast<float>(target + 0.1 * rng.Normal(50)));
  }
  return table;
}

DescriptorData SplitDescriptors(const DescriptorTable& table, int fold, uint64_t seed) {
  CHECK(fold >= 0 && fold < kFolds);
  CHECK_GE(table.compounds(), 2 * kFolds);
  const Shuffle shuffle(static_cast<uint64_t>(table.compounds()), seed, "data/descriptors/split");
  std::vector<int64_t> train, held_out;
  for (int64_t i = 0; i < table.compounds(); ++i) {
    (shuffle.At(static_cast<uint64_t>(i)) % kFolds == static_cast<uint64_t>(fold) ? held_out
                                                                                  : train)
        .push_back(i);
  }
  const auto train_part = RowsOf(table, train), held_out_part = RowsOf(table, held_out);
  for (int64_t c = 0; c < table.columns; ++c) {
    const Moments m = MomentsOf(train_part->values, c, table.columns);
    for (DescriptorTable* part : {train_part.get(), held_out_part.get()}) {
      StandardiseBy(m, c, table.columns, &part->values);
    }
  }
  const Moments m = MomentsOf(train_part->targets, 0, 1);
  for (DescriptorTable* part : {train_part.get(), held_out_part.get()}) {
    StandardiseBy(m, 0, 1, &part->targets);
  }
  return {table.name, train_part, held_out_part, m.mean, m.deviation};
}

std::vector<float> NearestNeighbours(const DescriptorTable& train, const DescriptorTable& asked,
                                     int k) {
  CHECK_EQ(train.columns, asked.columns);
  CHECK(k >= 1 && k <= train.compounds());
  std::vector<float> predictions;
  std::vector<std::pair<double, int64_t>> near(train.compounds());
  for (int64_t a = 0; a < asked.compounds(); ++a) {
    for (int64_t t = 0; t < train.compounds(); ++t) {
      double distance = 0;
      for (int64_t c = 0; c < train.columns; ++c) {
        const double d = static_cast<double>(asked.values[a * train.columns + c]) -
                         train.values[t * train.columns + c];
        distance += d * d;
      }
      near[t] = {distance, t};
    }
    std::partial_sort(near.begin(), near.begin() + k, near.end());
    double sum = 0;
    for (int i = 0; i < k; ++i) sum += train.targets[near[i].second];
    predictions.push_back(static_cast<float>(sum / k));
  }
  return predictions;
}

double NearestNeighboursRSquared(const DescriptorTable& table, int k, uint64_t seed) {
  std::vector<float> targets, predictions;
  for (int fold = 0; fold < kFolds; ++fold) {
    const DescriptorData data = SplitDescriptors(table, fold, seed);
    const auto undo = [&](float v) {
      return static_cast<float>(v * data.target_deviation + data.target_mean);
    };
    for (const float p : NearestNeighbours(*data.train, *data.held_out, k)) {
      predictions.push_back(undo(p));
    }
    for (const float t : data.held_out->targets) targets.push_back(undo(t));
  }
  return RSquared(targets, predictions);
}

DescriptorBatchSource::DescriptorBatchSource(std::shared_ptr<const DescriptorTable> table,
                                             ExampleOrder order)
    : ExampleSource(DescriptorFields(*table), std::move(order)), table_(std::move(table)) {
  CHECK_EQ(examples(), table_->compounds());
}

void DescriptorBatchSource::WriteFloats(int field, const Draw& draw, absl::Span<float> out) const {
  if (field == static_cast<int>(table_->families.size())) {
    out[0] = table_->targets[draw.example];
    return;
  }
  const float* from = table_->values.data() + draw.example * table_->columns;
  const DescriptorFamily& family = table_->families[field];
  std::copy(from + family.first, from + family.first + family.count, out.begin());
}

}  // namespace pipelab

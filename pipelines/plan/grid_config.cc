#include "pipelines/plan/grid_config.h"

#include <set>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr char kWords[] =
    "must be P=, T=, D=, V=, b=, M= with a number, sharding=NAME, recompute, sequence, "
    "gathers_each, no_pipeline_overlap, no_data_overlap or whole_messages";

absl::Status Invalid(absl::string_view option, absl::string_view text, absl::string_view word,
                     absl::string_view right) {
  return absl::InvalidArgumentError(absl::StrCat(option, "=", text, ": \"", word, "\": ", right));
}

// One of the numbers, if the key is one's.
int* NumberOf(absl::string_view key, GridConfig* c) {
  if (key == "P") return &c->pipeline;
  if (key == "T") return &c->tensor;
  if (key == "D") return &c->data;
  if (key == "V") return &c->loops;
  if (key == "M") return &c->micro_batches;
  return nullptr;
}

bool SetSwitch(absl::string_view word, GridConfig* c) {
  if (word == "recompute") {
    c->recompute = true;
  } else if (word == "sequence") {
    c->sequence_parallel = true;
  } else if (word == "gathers_each") {
    c->residency = Residency::kMicroBatch;
  } else if (word == "no_pipeline_overlap") {
    c->overlap_pipeline = false;
  } else if (word == "no_data_overlap") {
    c->overlap_data = false;
  } else if (word == "whole_messages") {
    c->whole_messages = true;
  } else {
    return false;
  }
  return true;
}

}  // namespace

std::string GridConfig::ToString() const {
  std::string text = absl::StrCat(scheme, ":P=", pipeline, ",T=", tensor, ",D=", data, ",V=", loops,
                                  ",b=", micro_batch_samples, ",M=", micro_batches);
  if (sharding != Sharding::kReplicated) {
    absl::StrAppend(&text, ",sharding=", ShardingName(sharding));
  }
  if (recompute) absl::StrAppend(&text, ",recompute");
  if (sequence_parallel) absl::StrAppend(&text, ",sequence");
  if (residency == Residency::kMicroBatch) absl::StrAppend(&text, ",gathers_each");
  if (!overlap_pipeline) absl::StrAppend(&text, ",no_pipeline_overlap");
  if (!overlap_data) absl::StrAppend(&text, ",no_data_overlap");
  if (whole_messages) absl::StrAppend(&text, ",whole_messages");
  return text;
}

NumberType NarrowestType(const DeviceSpec& device) {
  NumberType narrowest = device.peaks.begin()->first;
  for (const auto& [type, peak] : device.peaks) {
    if (BytesOf(type) < BytesOf(narrowest)) narrowest = type;
  }
  return narrowest;
}

absl::StatusOr<GridConfig> ParseGridConfig(absl::string_view option, absl::string_view text) {
  const std::vector<absl::string_view> parts = absl::StrSplit(text, absl::MaxSplits(':', 1));
  GridConfig c;
  c.scheme = std::string(parts[0]);
  if (parts.size() < 2) return c;
  std::set<absl::string_view> keys;
  for (absl::string_view word : absl::StrSplit(parts[1], ',', absl::SkipEmpty())) {
    const std::vector<absl::string_view> pair = absl::StrSplit(word, absl::MaxSplits('=', 1));
    if (pair.size() == 1) {
      if (!SetSwitch(word, &c)) return Invalid(option, text, word, kWords);
      continue;
    }
    if (pair[0] == "sharding") {
      PIPELAB_ASSIGN_OR_RETURN(c.sharding,
                               ParseSharding(pair[1], absl::StrCat(option, ": sharding")));
      continue;
    }
    int samples = 0;
    int* number = pair[0] == "b" ? &samples : NumberOf(pair[0], &c);
    if (number == nullptr) return Invalid(option, text, word, kWords);
    if (!keys.insert(pair[0]).second) return Invalid(option, text, word, "its key comes twice");
    if (!absl::SimpleAtoi(pair[1], number) || *number < (pair[0] == "V" ? 0 : 1)) {
      return Invalid(option, text, word, "must be a whole number of at least 1");
    }
    if (pair[0] == "b") c.micro_batch_samples = samples;
  }
  return c;
}

}  // namespace pipelab

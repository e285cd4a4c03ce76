// The table of losses and gradient norms that tools/pytorch/train_networks.py makes: what PyTorch
// gets in float64, and how far from it PyTorch is in float32.
//
//   PIPELAB_ASSIGN_OR_RETURN(LossTable table, ReadLossTable("tests/pytorch/losses.csv"));
//   table["gpt"][3].loss.value;             // before the fourth step; mean over targets
//
// Columns: network, step (from 0), loss, gradient_norm, loss_float32_error,
// gradient_norm_float32_error. Lines that begin with # are comments. InvalidArgument names file and
// line; a network's steps must come in order, without gaps.
#ifndef PIPELAB_TESTS_PYTORCH_LOSS_TABLE_H_
#define PIPELAB_TESTS_PYTORCH_LOSS_TABLE_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace pipelab {

struct TableValue {
  double value = 0;
  double float32_error = 0;
};

struct LossTableRow {
  TableValue loss, gradient_norm;
};

using LossTable = std::map<std::string, std::vector<LossTableRow>>;  // [network][step]

absl::StatusOr<LossTable> ParseLossTable(absl::string_view text, absl::string_view file);
absl::StatusOr<LossTable> ReadLossTable(absl::string_view path);

}  // namespace pipelab

#endif  // PIPELAB_TESTS_PYTORCH_LOSS_TABLE_H_

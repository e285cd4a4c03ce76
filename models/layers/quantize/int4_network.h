// A network whose matrices are in 4 bits, in a safetensors file: packed as products read them, with
// all else in float32. The file is enough to compute with; nothing can be trained further from it.
//
//   const Int4Network network = NetworkOf(*trained, matrices);          // quantize_model.h
//   PIPELAB_RETURN_IF_ERROR(WriteInt4Network("a.safetensors", network));
//   PIPELAB_ASSIGN_OR_RETURN(const Int4Network again, ReadInt4Network("a.safetensors"));
//   PIPELAB_RETURN_IF_ERROR(TakeInt4Network(again, trained));           // all of it, or nothing
//   PackInt4(q.shape, q.book, q.codes_KN, q.scales_GN, &arena);         // of again.matrices
//
// For each matrix NAME of K x N weights, in the layout of kernels/int4_weights.h: NAME/codes, I32
// [panels, units, 32]; NAME/scales, BF16 [panels, groups, 32]; NAME/book, F32 [16]; and metadata
// NAME/shape "K,N" and NAME/group. Other parameters are NAME/value, F32, and running statistics
// NAME/statistics, as training states have them. Codes, scales and books keep their bits.
//
// Errors: DataLoss for a file that is damaged or no such network, "FILE: matrix "fc/w": groups of
// 48 rows; 32, 64, 128 or all 512"; InvalidArgument for a network of another model.
#ifndef PIPELAB_MODELS_LAYERS_QUANTIZE_INT4_NETWORK_H_
#define PIPELAB_MODELS_LAYERS_QUANTIZE_INT4_NETWORK_H_

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "models/checkpoint/safetensors.h"
#include "models/layers/quantize/quantizer.h"
#include "models/layers/serial_trainer.h"

namespace pipelab {

struct Int4Network {
  std::string model;                          // the graph's name
  QuantizedMatrices matrices;                 // by name
  std::map<std::string, StoredTensor> rest;   // "NAME/value", "NAME/statistics": F32
  std::string source = "the packed network";  // names it in errors: the file
};

Int4Network NetworkOf(const SerialTrainer& trained, QuantizedMatrices matrices);
// The trainer computes with what the codes stand for.
absl::Status TakeInt4Network(const Int4Network& network, SerialTrainer* trained);

std::string SerializeInt4Network(const Int4Network& network);
// `file` becomes the source.
absl::StatusOr<Int4Network> ParseInt4Network(absl::string_view contents, absl::string_view file);

// The file appears whole or stays as it was.
absl::Status WriteInt4Network(absl::string_view path, const Int4Network& network);
absl::StatusOr<Int4Network> ReadInt4Network(absl::string_view path);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_LAYERS_QUANTIZE_INT4_NETWORK_H_

// The fields of a language model's data: tokens, and for each the token to predict.
#ifndef PIPELAB_MODELS_DATA_TOKEN_FIELDS_H_
#define PIPELAB_MODELS_DATA_TOKEN_FIELDS_H_

#include <cstdint>
#include <vector>

#include "models/graph/data_field.h"

namespace pipelab {

// Places 0 and 1: kTokens and kTargets, `tokens` numbers a sample.
inline std::vector<DataField> TokenFields(int64_t tokens, int64_t vocabulary) {
  return {{kTokens, FieldType::kId, {tokens}, vocabulary},
          {kTargets, FieldType::kId, {tokens}, vocabulary}};
}

}  // namespace pipelab

#endif  // PIPELAB_MODELS_DATA_TOKEN_FIELDS_H_
